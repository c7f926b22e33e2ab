//! Calls on processes: the children of the test's process, each in a place of its own, and the calls under test, each a function.
//!
//! The parent is process 0. One descriptor of it is always open, and closed by `exec`; tests duplicate it to numbers 0 and 1.

use posix_calls::data::{self, DescriptorOptions};
use posix_calls::{DataOperations, Ended, Errno, OnExec, OpenFlags, SpawnOptions, Start, Which, processes};
use runner::arguments::Arguments;
use wire::value::Value;

use crate::children::COUNT;
use crate::subject::Subject;

/// Numbers of descriptors that tests have.
const NUMBERS: u32 = 2;
/// The descriptor that is always open.
const ALWAYS_OPEN: u32 = 100;
/// Who makes all calls.
pub const PARENT: usize = 0;

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub enum ProcessWork {
    Spawn(usize),
    Fork(usize),
    Exec(usize),
    Exit(usize, u8),
    Wait(usize),
    Sees(usize, u32),
    Duplicate(u32, OnExec),
    Drop(u32),
    // Set-up and observation.
    MakeParent,
    MakeChild(usize, [Option<OnExec>; NUMBERS as usize]),
    PeekChild(usize),
    PeekParent,
}

/// What came back.
pub enum Came {
    /// Nothing but success.
    Nothing,
    /// A status.
    Number(u64),
    /// Of what is never recorded.
    Outside(Value<'static>),
}

fn on_exec(survives: bool) -> OnExec {
    if survives { OnExec::Keep } else { OnExec::Close }
}

/// What a call is to do, if it is one on processes.
///
/// # Errors
/// An argument is out of range.
pub fn prepare(call: &str, parameters: &[&str], arguments: &Arguments<'_>) -> Result<Option<ProcessWork>, String> {
    let child = || {
        let number = arguments.number(0)?;
        let child = usize::try_from(number).ok().filter(|child| *child < COUNT);
        child.ok_or_else(|| format!("child {number}: expected 0 to {}", COUNT - 1))
    };
    let descriptor = |parameter| {
        let number = arguments.number(parameter)?;
        let descriptor = u32::try_from(number).ok().filter(|descriptor| *descriptor < NUMBERS);
        descriptor.ok_or_else(|| format!("descriptor {number}: expected 0 to {}", NUMBERS - 1))
    };
    let status = || {
        let number = arguments.number(1)?;
        u8::try_from(number).map_err(|_| format!("status {number}: expected 0 to 255"))
    };
    Ok(Some(match (call, parameters) {
        ("spawn", ["child"]) => ProcessWork::Spawn(child()?),
        ("fork", ["child"]) => ProcessWork::Fork(child()?),
        ("exec", ["child"]) => ProcessWork::Exec(child()?),
        ("exit" | "end_child", ["child", "status"]) => ProcessWork::Exit(child()?, status()?),
        ("wait" | "peek_status", ["child"]) => ProcessWork::Wait(child()?),
        ("sees", ["child", "descriptor"]) => ProcessWork::Sees(child()?, descriptor(1)?),
        ("dup3" | "make_descriptor", ["descriptor", "survives"]) => {
            ProcessWork::Duplicate(descriptor(0)?, on_exec(arguments.flag(1)?))
        }
        ("drop", ["descriptor"]) => ProcessWork::Drop(descriptor(0)?),
        ("make_parent", []) => ProcessWork::MakeParent,
        ("make_child", ["child", ..]) => {
            let opened = |first: usize| -> Result<Option<OnExec>, String> {
                let survives = arguments.flag(first + 1)?;
                Ok(arguments.flag(first)?.then(|| on_exec(survives)))
            };
            ProcessWork::MakeChild(child()?, [opened(1)?, opened(3)?])
        }
        ("peek_child", ["child"]) => ProcessWork::PeekChild(child()?),
        ("peek_parent", []) => ProcessWork::PeekParent,
        _ => return Ok(None),
    }))
}

/// See [`processes::spawn`].
#[inline(never)]
fn spawn<S: Subject>(actor: &S, child: usize) -> Result<(), Errno> {
    refuse_used(actor, child)?;
    let made = processes::spawn(&actor.enter(PARENT), &[], SpawnOptions::default())?;
    let number = S::number(&made);
    actor.children().put(child, made, number);
    Ok(())
}

/// See `Process::fork`.
#[inline(never)]
fn fork<S: Subject>(actor: &S, child: usize) -> Result<(), Errno> {
    refuse_used(actor, child)?;
    let made = actor.fork(PARENT)?;
    let number = S::number(&made);
    actor.children().put(child, made, number);
    Ok(())
}

fn refuse_used<S: Subject>(actor: &S, child: usize) -> Result<(), Errno> {
    if actor.children().number(child).is_some() { Err(Errno::EBUSY) } else { Ok(()) }
}

/// See `Process::exit_with`.
#[inline(never)]
fn exit<S: Subject>(actor: &S, child: usize, status: u8) -> Result<(), Errno> {
    actor.exit(actor.children().take(child)?, Ended::Exited(status));
    Ok(())
}

/// See [`processes::wait`].
#[inline(never)]
fn wait<S: Subject>(actor: &S, child: usize) -> Result<u8, Errno> {
    let number = actor.children().number(child).ok_or(Errno::ECHILD)?;
    match processes::wait(&actor.enter(PARENT), Which::Child(number))? {
        None => Err(Errno::EAGAIN),
        Some((_, Ended::Exited(status) | Ended::Killed(status))) => {
            actor.children().forget(child);
            Ok(status)
        }
    }
}

/// See [`data::status`].
#[inline(never)]
fn sees<S: Subject>(actor: &S, child: usize, descriptor: u32) -> Result<(), Errno> {
    data::status(&actor.enter_child(actor.children().running(child)?), descriptor).map(drop)
}

/// Whether a number is open, and whether it survives `exec`.
fn peek<D: DataOperations>(call: &D) -> Result<Value<'static>, Errno> {
    let mut seen = Vec::new();
    for number in 0..NUMBERS {
        match call.set_on_exec(number, OnExec::Keep) {
            Ok(before) => {
                call.set_on_exec(number, before)?;
                seen.extend([true, before == OnExec::Keep]);
            }
            Err(Errno::EBADF) => seen.extend([false, false]),
            Err(errno) => return Err(errno),
        }
    }
    Ok(Value::Seq(seen.into_iter().map(Value::Bool).collect()))
}

fn make_parent<S: Subject>(actor: &S) -> Result<(), Errno> {
    let call = || actor.enter(PARENT);
    let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
    let opened = data::open(&call(), Start::WorkingDirectory, b"/", flags, 0, DescriptorOptions::PLAIN)?;
    data::duplicate_to(&call(), opened, ALWAYS_OPEN, OnExec::Close)?;
    data::close(&call(), opened)
}

/// Forks a child while the parent has these descriptors.
fn make_child<S: Subject>(actor: &S, child: usize, opened: [Option<OnExec>; NUMBERS as usize]) -> Result<(), Errno> {
    let opened = || (0..NUMBERS).zip(opened).filter_map(|(number, on_exec)| Some((number, on_exec?)));
    for (number, on_exec) in opened() {
        data::duplicate_to(&actor.enter(PARENT), ALWAYS_OPEN, number, on_exec)?;
    }
    fork(actor, child)?;
    opened().try_for_each(|(number, _)| data::close(&actor.enter(PARENT), number))
}

/// Does it, or returns why not. A process that has ended is ESRCH.
///
/// # Errors
/// The error number.
pub fn perform<S: Subject>(actor: &S, work: ProcessWork) -> Result<Came, i64> {
    /// Of a process that is not there; calls of the border have no such error.
    const ESRCH: i64 = 3;
    let no_process = |errno: Errno| if errno == Errno::ECHILD { ESRCH } else { errno.number().into() };
    let nothing = |()| Came::Nothing;
    let number = |errno: Errno| i64::from(errno.number());
    match work {
        ProcessWork::Spawn(child) => spawn(actor, child).map(nothing).map_err(number),
        ProcessWork::Fork(child) => fork(actor, child).map(nothing).map_err(number),
        ProcessWork::Exec(child) => {
            let process = actor.children().running(child).map_err(no_process)?;
            actor.exec(process);
            Ok(Came::Nothing)
        }
        ProcessWork::Exit(child, status) => exit(actor, child, status).map(nothing).map_err(no_process),
        ProcessWork::Wait(child) => wait(actor, child).map(|status| Came::Number(status.into())).map_err(number),
        ProcessWork::Sees(child, descriptor) => sees(actor, child, descriptor).map(nothing).map_err(no_process),
        ProcessWork::Duplicate(descriptor, on_exec) => {
            let done = data::duplicate_to(&actor.enter(PARENT), ALWAYS_OPEN, descriptor, on_exec);
            done.map(|_| Came::Nothing).map_err(number)
        }
        ProcessWork::Drop(descriptor) => data::close(&actor.enter(PARENT), descriptor).map(nothing).map_err(number),
        ProcessWork::MakeParent => make_parent(actor).map(|()| Came::Outside(Value::Null)).map_err(number),
        ProcessWork::MakeChild(child, opened) => {
            make_child(actor, child, opened).map(|()| Came::Outside(Value::Null)).map_err(number)
        }
        ProcessWork::PeekChild(child) => {
            actor.children().number(child).ok_or(number(Errno::ECHILD))?;
            let process = actor.children().running(child).map_err(no_process)?;
            peek(&actor.enter_child(process)).map(Came::Outside).map_err(number)
        }
        ProcessWork::PeekParent => peek(&actor.enter(PARENT)).map(Came::Outside).map_err(number),
    }
}

/// Ends all children of the test, and waits for them.
pub fn end_all<S: Subject>(actor: &S) {
    for child in 0..COUNT {
        let _ = exit(actor, child, 0);
        let _ = wait(actor, child);
    }
}
