//! A program that dies of a signal: its report is written before.
//!
//! The emulator calls no plugin then. It takes the signal's default action by sending the signal to itself (`kill`, in
//! `dump_core_and_abort` of `linux-user/signal.c`), and this library is loaded in front of the C library (`LD_PRELOAD` of the
//! emulator's own environment) to hear of it. A program that sends itself the one signal that no one can catch is met
//! at its system call.

use super::signals::SENDS_SIGNAL;

unsafe extern "C" {
    fn syscall(number: i64, ...) -> i64;
}

/// In front of the C library's function.
#[unsafe(no_mangle)]
extern "C" fn kill(process: i32, signal: i32) -> i32 {
    if process == std::process::id().cast_signed() && signal != 0 {
        super::callbacks::report_now();
    }
    // SAFETY: the system call `kill` touches no memory of this process; the C library sets errno.
    let result = unsafe { syscall(SENDS_SIGNAL[0].0, i64::from(process), i64::from(signal)) };
    if result < 0 { -1 } else { 0 }
}
