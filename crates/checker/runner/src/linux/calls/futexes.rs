//! Calls of futex(2) on words of a test's pages, of which each is the first of its page. No thread waits on them.

use super::super::leftovers::Leftovers;
use super::super::operation::Operation;
use super::memory::address;
use super::{LinuxCall, byte, success};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("futex_wake", &["word"], futex_wake, success).of_memory(),
    LinuxCall::new("futex_wait", &["address", "data"], futex_wait, success).of_memory(),
    LinuxCall::new("futex_requeue", &["address", "data", "target"], futex_requeue, success).of_memory(),
];

/// All who might wait.
const ALL: u64 = i32::MAX as u64;

/// The word of a page that is filled with a byte.
fn word(arguments: &Arguments<'_>, parameter: usize) -> Result<u64, String> {
    Ok(u32::from_ne_bytes([byte(arguments, parameter)?; 4]).into())
}

fn futex_wake(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let command = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64;
    operation.call(libc::SYS_futex, [address(operation, arguments, 0)?, command, ALL]);
    Ok(())
}

/// With a time limit of nothing, which numbers of the operation say.
fn futex_wait(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let command = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as u64;
    operation.vectors = [0; 4];
    let limit = operation.vectors.as_ptr() as u64;
    operation.call(libc::SYS_futex, [address(operation, arguments, 0)?, command, word(arguments, 1)?, limit]);
    Ok(())
}

fn futex_requeue(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let command = (libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG) as u64;
    let (from, to) = (address(operation, arguments, 0)?, address(operation, arguments, 2)?);
    operation.call(libc::SYS_futex, [from, command, 1, ALL, to, word(arguments, 1)?]);
    Ok(())
}
