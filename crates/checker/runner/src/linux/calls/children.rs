//! Calls that make, end and wait for children of a process. Threads of the process make them, since what homes start are
//! children of homes; `exit` is a call of the child, on the processor of the call ([`super::super::family`]).

use super::super::family::{CHILDREN, Member, member};
use super::super::leftovers::Leftovers;
use super::super::operation::Operation;
use super::super::system_call::{clone_marked, system_call_marked};
use super::{LinuxCall, byte, number, success};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("fork", &["child"], fork, success).of_memory(),
    LinuxCall::new("exit", &["child", "status"], exit, success).of_memory(),
    LinuxCall::new("wait", &["child"], wait, number).of_memory(),
];

/// What a child has in common with its parent.
const COMMON: u64 = (libc::CLONE_FILES | libc::CLONE_FS | libc::SIGCHLD) as u64;

fn child(arguments: &Arguments<'_>) -> Result<u64, String> {
    let number = arguments.number(0)?;
    let known = u64::try_from(number).ok().filter(|number| *number < CHILDREN as u64);
    known.ok_or_else(|| format!("child {number}: expected 0 to {}", CHILDREN - 1))
}

/// The child that the first argument names. There is room for all that [`child`] lets pass.
fn named(operation: &Operation) -> Option<&'static Member> {
    member(operation.process, usize::try_from(operation.arguments[0]).ok()?)
}

fn failed(number: libc::c_int) -> i64 {
    -i64::from(number)
}

fn fork(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    leftovers.forks();
    operation.marking(
        |operation, marks| {
            let Some(member) = named(operation).filter(|member| member.process_id().is_none()) else {
                return failed(libc::EBUSY);
            };
            member.expect();
            let id = clone_marked(COMMON, marks);
            if id == 0 {
                member.live()
            }
            if id > 0 {
                member.born(id);
            }
            id
        },
        [child(arguments)?],
    );
    Ok(())
}

fn exit(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.marking(
        |operation, marks| {
            let Some(member) = named(operation).filter(|member| member.runs()) else { return failed(libc::ESRCH) };
            member.exit((operation.arguments[1] & 0xff) as u8, marks);
            0
        },
        [child(arguments)?, byte(arguments, 1)?.into()],
    );
    Ok(())
}

fn wait(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.marking(
        |operation, marks| {
            let Some((member, id)) = named(operation).and_then(|member| Some((member, member.process_id()?))) else {
                return failed(libc::ECHILD);
            };
            let status = operation.numbers.as_ptr() as u64;
            let waited = system_call_marked(libc::SYS_wait4, [id, status, libc::WNOHANG as u64, 0, 0, 0], marks);
            if waited <= 0 {
                return if waited == 0 { failed(libc::EAGAIN) } else { waited };
            }
            member.forget();
            i64::from(operation.numbers[0] >> 8 & 0xff)
        },
        [child(arguments)?],
    );
    Ok(())
}
