//! Signals that a process sends to itself and takes when it asks for them, and its number. All tasks block them
//! ([`super::super::processes`]). A thread of the process makes these calls, since homes are processes of their own.

use super::super::leftovers::Leftovers;
use super::super::operation::Operation;
use super::super::signals::{SET_BYTES, SIGNALS, bit, take};
use super::{LinuxCall, success};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("getpid", &[], getpid, success).of_memory(),
    LinuxCall::new("kill", &["signal"], kill, success).of_memory(),
    LinuxCall::new("sigpending", &["signal"], sigpending, |operation, _, results| {
        results.flag(operation.vectors[0] & operation.vectors[1] != 0);
    })
    .of_memory(),
    LinuxCall::new("sigtimedwait", &["signal"], sigtimedwait, success).of_memory(),
];

fn signal(arguments: &Arguments<'_>) -> Result<i32, String> {
    let number = arguments.number(0)?;
    let known = usize::try_from(number - 1).ok().and_then(|place| SIGNALS.get(place));
    known.copied().ok_or_else(|| format!("signal {number}: expected 1 to {}", SIGNALS.len()))
}

fn getpid(operation: &mut Operation, _: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.call(libc::SYS_getpid, []);
    Ok(())
}

fn kill(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let signal = signal(arguments)?;
    leftovers.signalled();
    operation.call(libc::SYS_kill, [leftovers.process_id(), signal as u64]);
    Ok(())
}

/// The set comes in front of the signal that is asked for.
fn sigpending(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.vectors = [0, bit(signal(arguments)?), 0, 0];
    operation.call(libc::SYS_rt_sigpending, [operation.vectors.as_ptr() as u64, SET_BYTES]);
    Ok(())
}

fn sigtimedwait(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    take(operation, bit(signal(arguments)?));
    Ok(())
}
