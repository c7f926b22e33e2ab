//! The signals of the model: all tasks of the runner block them, so that they stay pending.

use super::operation::Operation;
use super::system_call::system_call;
use crate::target::Marks;

/// The signals of the model, numbered from 1: none is queued, and nothing else sends them.
pub(super) const SIGNALS: [i32; 6] =
    [libc::SIGUSR1, libc::SIGUSR2, libc::SIGHUP, libc::SIGALRM, libc::SIGTERM, libc::SIGWINCH];

/// Bytes of a set of signals for the kernel.
pub(super) const SET_BYTES: u64 = 8;

/// A signal's bit in a set.
pub(super) const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Takes one of these signals if it is pending.
pub(super) fn take(operation: &mut Operation, set: u64) {
    // The set, and after it how long to wait: not at all.
    operation.vectors = [set, 0, 0, 0];
    let first = operation.vectors.as_ptr() as u64;
    operation.call(libc::SYS_rt_sigtimedwait, [first, 0, first + 8, SET_BYTES]);
}

/// Takes all signals of the model that are pending.
pub(super) fn take_all(operation: &mut Operation) -> i64 {
    for signal in SIGNALS {
        take(operation, bit(signal));
        operation.execute(Marks::None);
    }
    0
}

/// Lets the calling task, and those that it starts, leave the signals of the model pending.
pub(super) fn block() {
    let set = SIGNALS.into_iter().fold(0, |set, signal| set | bit(signal));
    let address = (&raw const set) as u64;
    system_call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as u64, address, 0, SET_BYTES]);
}
