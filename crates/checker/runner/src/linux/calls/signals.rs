//! Signals that a process sends to itself and takes when it asks for them, and its number. All tasks block them
//! ([`super::super::processes`]). A thread of the process makes these calls, since homes are processes of their own.

use super::super::leftovers::Leftovers;
use super::super::operation::Operation;
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

/// The signals of the model, numbered from 1: none is queued, and nothing else sends them.
const SIGNALS: [i32; 6] = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGHUP, libc::SIGALRM, libc::SIGTERM, libc::SIGWINCH];

/// Bytes of a set of signals for the kernel.
const SET_BYTES: u64 = 8;

/// A signal's bit in a set.
const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

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

/// Takes one of these signals if it is pending.
fn take(operation: &mut Operation, set: u64) {
    // The set, and behind it how long to wait: not at all.
    operation.vectors = [set, 0, 0, 0];
    let first = operation.vectors.as_ptr() as u64;
    operation.call(libc::SYS_rt_sigtimedwait, [first, 0, first + 8, SET_BYTES]);
}

/// Takes all signals of the model that are pending.
pub(in super::super) fn take_all(operation: &mut Operation) -> i64 {
    for signal in SIGNALS {
        take(operation, bit(signal));
        operation.execute(crate::target::Marks::None);
    }
    0
}

/// Lets the calling task, and those that it starts, leave the signals of the model pending.
pub(in super::super) fn block() {
    let set = SIGNALS.into_iter().fold(0, |set, signal| set | bit(signal));
    let address = (&raw const set) as u64;
    super::super::system_call::system_call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as u64, address, 0, SET_BYTES]);
}
