//! fork, vfork, clone, threads, exit, and what the kernel hears of a thread.
//!
//! ```text
//! parent: a seat for the child, a child of the process, handed over │ all signals blocked │ clone │ whose seat it is
//! child:  registers of dispatch, its own name for cores, the process is received │ signals as before │ the program
//! ```
//! A child that shares its parent's memory (`vfork`, `posix_spawn`, a thread) runs on a stack and a state of its own from its first
//! instruction on.

use core::sync::atomic::Ordering;

use scalefs::{Ended, Errno, HandedOver, Which, data, processes};
use shared_instance::Entry;

use crate::dispatch::{After, Answer};
use crate::entry::Frame;
use crate::guarded;
use crate::home::{CHANGED_BETWEEN, Home};
use crate::instance::{self, Here};
use crate::numbers;
use crate::shared;
use crate::signals;
use crate::start;
use crate::system::{self, number};
use crate::threads::Thread;

/// Its children have other numbers.
const CLONE_NEWPID: u64 = 0x2000_0000;
const CLONE_VM: u64 = 0x100;
/// The parent gets a number for the child.
const CLONE_PIDFD: u64 = 0x1000;
/// The working directory and the mask of permission bits; and descriptors.
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_CALL: u64 = 56;
const FORK_CALL: u64 = 57;
const VFORK_CALL: u64 = 58;
const CLONE3_CALL: u64 = 435;
const SIGCHLD: u64 = 17;
/// `struct clone_args`, as far as we look, and its sizes.
const STACK: usize = 5;
const STACK_SIZE: usize = 6;
const CLONE_ARGS_WORDS: usize = 11;
const FIRST_CLONE_ARGS_BYTES: u64 = 64;

unsafe extern "C" {
    fn scalefs_clone(number: u64, arguments: *const [u64; 6], child: *mut core::ffi::c_void) -> i64;
}

/// What is to be made: flags, and where its stack is; 0 for that of the parent.
struct Wanted {
    flags: u64,
    stack: u64,
    /// As the kernel wants it: with the parent's stack for a child in memory of its own.
    call: (u64, [u64; 6]),
    /// For clone3: what its pointer leads to then.
    words: [u64; CLONE_ARGS_WORDS],
}

fn wanted(frame: &Frame) -> Result<Wanted, Errno> {
    let arguments = frame.arguments();
    let mut words = [0; CLONE_ARGS_WORDS];
    let (flags, stack, call) = match frame.rax {
        CLONE_CALL => (arguments[0], arguments[1], (CLONE_CALL, arguments)),
        FORK_CALL => (SIGCHLD, 0, (CLONE_CALL, [SIGCHLD, 0, 0, 0, 0, 0])),
        VFORK_CALL => {
            let flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
            (flags, 0, (CLONE_CALL, [flags, 0, 0, 0, 0, 0]))
        }
        _ => {
            if arguments[1] < FIRST_CLONE_ARGS_BYTES {
                return Err(Errno::EINVAL);
            }
            let bytes = (arguments[1] as usize).min(size_of_val(&words));
            // SAFETY: words of our own, of which that number of bytes is written.
            let place = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), bytes) };
            guarded::read_bytes(place, arguments[0])?;
            let stack = if words[STACK] == 0 { 0 } else { words[STACK] + words[STACK_SIZE] };
            (words[0], stack, (CLONE3_CALL, [0, bytes as u64, 0, 0, 0, 0]))
        }
    };
    Ok(Wanted { flags, stack, call, words })
}

/// clone, clone3, fork, vfork.
pub(crate) fn clone(thread: &mut Thread, frame: &mut Frame) -> Answer {
    let wanted = match wanted(frame) {
        Ok(wanted) => wanted,
        Err(errno) => return Answer::error(errno),
    };
    if wanted.flags & CLONE_NEWPID != 0 {
        return Answer::error(Errno::EPERM);
    }
    // Threads have these in common, and processes have their own: in the instance there is nothing else.
    let common = if wanted.flags & CLONE_THREAD != 0 { CLONE_FS | CLONE_FILES } else { 0 };
    if wanted.flags & (CLONE_FS | CLONE_FILES) != common {
        return Answer::error(Errno::EINVAL);
    }
    if wanted.flags & CLONE_PIDFD != 0 {
        numbers::make_room(thread.home(), (0, 1));
    }
    let made = match wanted.flags & (CLONE_VM | CLONE_THREAD) {
        0 => fork(thread, frame, wanted),
        CLONE_VM => spawn(thread, frame, wanted),
        _ => make_thread(thread, frame, wanted),
    };
    match made {
        Ok(number) => Answer::Done(number),
        Err(errno) => Answer::number(errno),
    }
}

/// A fault that tests plant.
const OTHER_NUMBERS: &str = "shim: a child has its parent's numbers, and not those of its process";

/// A child of the instance's process, on its way to whom the seat is for.
fn begin_child(thread: &Thread) -> Result<(usize, percpu::OwnerId, HandedOver), Errno> {
    let home = thread.home();
    // Those that have ended are waited for in the kernel; the instance forgets them here.
    let _ = instance::call(thread, |call| {
        while let Ok(Some(_)) = processes::wait(call, Which::Any) {}
        Ok(())
    });
    let (seat, owner) = instance::control().seats.take(Some(home.owner())).ok_or(Errno::EAGAIN)?;
    if let Some(seat) = instance::control().seats.get(seat) {
        seat.set_program_inode(home.seat().program_inode());
    }
    let core = instance::lease(home);
    let file_system = instance::file_system();
    let child = home.process().fork(file_system, &core, &Here);
    // Other threads open and close files until the numbers are copied, too.
    instance::pause_if_planted(&["shim: a child is made slowly", OTHER_NUMBERS]);
    match child {
        Ok(child) => Ok((seat, owner, child.hand_over(file_system, owner))),
        Err(errno) => {
            if let Some(seat) = instance::control().seats.get(seat) {
                seat.leave();
            }
            Err(errno)
        }
    }
}

/// The kernel has made no child: what was for it is ended by the supervisor, to whom it looks as if it had died.
fn abandon(seat: usize, owner: percpu::OwnerId) {
    const NO_PROCESS: i32 = i32::MAX;
    note_child(seat, owner, NO_PROCESS.into());
}

/// A child with memory of its own.
fn fork(thread: &mut Thread, _frame: &mut Frame, wanted: Wanted) -> Result<i64, i32> {
    let (seat, owner, handed_over) = begin_child(thread).map_err(Errno::number)?;
    let home = thread.home();
    let mappings = &instance::control().mappings;
    // What a parent has whose memory this process runs in is in the child's, too.
    let copies = |from| mappings.copy(from, owner);
    let is_told = instance::planted("shim: no one asks a child for what was cut off")
        || copies(home.owner()) && home.lender().is_none_or(copies);
    if !is_told {
        abandon(seat, owner);
        return Err(Errno::EAGAIN.number());
    }
    let (number, mut arguments) = wanted.call;
    let mut words = wanted.words;
    // The child goes on here first, on this stack.
    if number == CLONE3_CALL {
        words[STACK] = 0;
        words[STACK_SIZE] = 0;
        arguments[0] = words.as_ptr() as u64;
    } else {
        arguments[1] = 0;
    }
    let mask = signals::block_all();
    let lock = home.lock();
    let result = system::call(number, arguments);
    if result == 0 {
        home.unlock_in_child();
        shared::begin_in_child();
        core::mem::forget(lock);
        home.sit(seat, owner);
        become_child(thread, handed_over);
        if wanted.stack != 0 {
            thread.user_rsp = wanted.stack;
        }
    } else {
        drop(lock);
        if result > 0 {
            note_child(seat, owner, result);
        } else {
            mappings.release(owner);
            abandon(seat, owner);
        }
    }
    signals::set_mask(mask);
    if result < 0 { Err(-result as i32) } else { Ok(result) }
}

/// Says whose seat it is, unless the child has left it already.
fn note_child(seat: usize, owner: percpu::OwnerId, process: i64) {
    if let Some(seat) = instance::control().seats.get(seat) {
        seat.set_process(owner, process as i32);
    }
}

/// The first that a child does: calls are dispatched, and the process is its own.
fn become_child(thread: &Thread, handed_over: HandedOver) {
    start::arm();
    let home = thread.home();
    instance::pause_if_planted(&["shim: a child receives its process late"]);
    home.seat().set_process(home.owner(), system::call(number::GETPID, [0; 6]) as i32);
    // What was asked for before it could be asked.
    shared::take_away();
    let core = instance::lease(home);
    match instance::file_system().receive(&core, handed_over, &Here) {
        Some(process) => home.set_process(process),
        None => system::die(&["a child does not find its process in the instance"]),
    }
    drop(core);
    let has = |number| instance::call(thread, |call| data::status(call, number)).is_ok();
    let close = |number| _ = instance::call(thread, |call| data::close(call, number));
    if !instance::planted(OTHER_NUMBERS) {
        numbers::agree(home, has, close);
    }
}

/// Bytes that a child begins with which shares its parent's memory: its home.
const HOME_BYTES: u64 = (size_of::<Home>() as u64).next_multiple_of(4096);
/// `PROT_READ | PROT_WRITE`, and `MAP_PRIVATE | MAP_ANONYMOUS`.
const READ_WRITE: u64 = 3;
const PRIVATE_ANONYMOUS: u64 = 0x22;

/// A child in its parent's memory: it has a home of its own.
fn spawn(thread: &mut Thread, frame: &mut Frame, wanted: Wanted) -> Result<i64, i32> {
    let arguments = [0, HOME_BYTES, READ_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0];
    let memory = system::try_call(number::MMAP, arguments)?;
    let free = || system::call(number::MUNMAP, [memory, HOME_BYTES, 0, 0, 0, 0]);
    // SAFETY: zeros are a home of no one, and no one else knows this one.
    let home: &'static Home = unsafe { &*(memory as *const Home) };
    let (seat, owner, handed_over) = match begin_child(thread) {
        Ok(begun) => begun,
        Err(errno) => {
            free();
            return Err(errno.number());
        }
    };
    home.sit(seat, owner);
    if !instance::planted("shim: a child does not know what its parent has mapped") {
        // Of such a child, it is its parent's parent's.
        let parent = thread.home();
        home.seat().set_lender(Some(parent.lender().unwrap_or(parent.owner())));
    }
    home.receives.store(true, Ordering::Relaxed);
    let credentials = thread.credentials;
    home.seat().set_entry(Entry { process: handed_over, works_inside: false, credentials }, &[]);
    let child = Thread::make(home, credentials);
    let Some(child) = child else {
        abandon(seat, owner);
        free();
        return Err(Errno::ENOMEM.number());
    };
    if !instance::planted("shim: a child in its parent's memory knows no numbers") {
        home.copy_from(thread.home());
    }
    instance::pause_if_planted(&["shim: a child in its parent's memory is made slowly", CHANGED_BETWEEN]);
    let result = begin_other(thread, frame, &wanted, child);
    home.let_go();
    if result > 0 {
        note_child(seat, owner, result);
    } else {
        abandon(seat, owner);
    }
    if result <= 0 || wanted.flags & CLONE_VFORK != 0 {
        // SAFETY: the child has another memory by now, or has ended.
        unsafe { Thread::free(child) };
        free();
    }
    if result < 0 { Err(-result as i32) } else { Ok(result) }
}

/// A thread.
fn make_thread(thread: &mut Thread, frame: &mut Frame, wanted: Wanted) -> Result<i64, i32> {
    let home = thread.home();
    let child = Thread::make(home, thread.credentials).ok_or(Errno::ENOMEM.number())?;
    home.threads.fetch_add(1, Ordering::Relaxed);
    let result = begin_other(thread, frame, &wanted, child);
    if result < 0 {
        home.threads.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: it has not begun.
        unsafe { Thread::free(child) };
        return Err(-result as i32);
    }
    Ok(result)
}

/// Begins a thread or a child in this memory, in another state; returns as the call does.
fn begin_other(thread: &mut Thread, frame: &Frame, wanted: &Wanted, child: *mut Thread) -> i64 {
    let (number, mut arguments) = wanted.call;
    let words = wanted.words;
    if number == CLONE3_CALL {
        arguments[0] = words.as_ptr() as u64;
    }
    let user_rsp = if wanted.stack == 0 { thread.user_rsp } else { wanted.stack };
    let mask = signals::block_all();
    // SAFETY: it has not begun; the assembly takes it over in the child.
    let result = unsafe {
        Thread::set_frame(child, frame.with_result(0), user_rsp);
        (*child).mask_in_child = mask;
        scalefs_clone(number, &raw const arguments, child.cast())
    };
    signals::set_mask(mask);
    result
}

/// The first that a thread does, or a child in its parent's memory.
pub(crate) fn begin_thread(thread: &mut Thread) {
    start::arm();
    let home = thread.home();
    home.let_go();
    if home.receives.swap(false, Ordering::Relaxed) {
        let (entry, _) = home.seat().entry();
        become_child(thread, entry.process);
    }
    signals::set_mask(thread.mask_in_child);
}

/// ptrace. A child of `vfork` that is traced by its parent stops at each signal, also that of dispatch, and its parent waits for its
/// exec: so from then on its calls are not dispatched. Those at sites that are rewritten, as exec, come here as before.
pub(crate) fn trace(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    const PTRACE_TRACEME: u64 = 0;
    if call.1[0] == PTRACE_TRACEME && thread.home().lender().is_some() {
        start::disarm();
    }
    Answer::issue(thread, call.0, call.1, After::Nothing)
}

/// unshare. A process that does not see the supervisor's numbers of processes cannot be distinguished from others; and threads have one
/// working directory and one table of descriptors.
pub(crate) fn unshare(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let flags = call.1[0];
    match thread.home().threads.load(Ordering::Relaxed) {
        _ if flags & CLONE_NEWPID != 0 => Answer::error(Errno::EPERM),
        2.. if flags & (CLONE_FS | CLONE_FILES) != 0 => Answer::error(Errno::EINVAL),
        _ => Answer::issue(thread, call.0, call.1, After::Nothing),
    }
}

/// exit: of a thread.
pub(crate) fn end_thread(thread: &mut Thread, status: u64) -> Answer {
    let home = thread.home();
    if home.threads.load(Ordering::Relaxed) <= 1 {
        return end(thread, status);
    }
    home.threads.fetch_sub(1, Ordering::Relaxed);
    thread.end()
}

/// exit_group. With other threads, which may be in calls, the supervisor ends what the process has, as if it had been killed.
pub(crate) fn end(thread: &mut Thread, status: u64) -> Answer {
    let home = thread.home();
    if home.threads.load(Ordering::Relaxed) <= 1 {
        signals::block_all();
        let process = home.take_process();
        let core = instance::lease(home);
        process.exit_with(instance::file_system(), &core, Ended::Exited(status as u8), &Here);
        drop(core);
        let control = instance::control();
        if !control.seats.all().iter().any(|seat| seat.lender() == Some(home.owner())) {
            control.mappings.release(home.owner());
        }
        home.seat().leave();
    }
    loop {
        system::call(number::EXIT_GROUP, [status, 0, 0, 0, 0, 0]);
    }
}

/// prctl: what would take calls from us is refused.
pub(crate) fn control(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    const PR_SET_SECCOMP: u64 = 22;
    const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
    match call.1[0] {
        PR_SET_SECCOMP | PR_SET_SYSCALL_USER_DISPATCH => Answer::error(Errno::EINVAL),
        _ => Answer::issue(thread, call.0, call.1, After::Nothing),
    }
}

/// arch_prctl: the register `gs` is ours; and with a shadow stack no call could go to us by a jump.
pub(crate) fn control_registers(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    const ARCH_SET_GS: u64 = 0x1001;
    const ARCH_SHSTK_ENABLE: u64 = 0x5001;
    match call.1[0] {
        ARCH_SET_GS => Answer::error(Errno::EPERM),
        ARCH_SHSTK_ENABLE => Answer::error(Errno::EOPNOTSUPP),
        _ => Answer::issue(thread, call.0, call.1, After::Nothing),
    }
}
