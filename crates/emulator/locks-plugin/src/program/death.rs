//! A program that dies of a signal: its report is written before.
//!
//! The emulator calls no plugin then. It takes the signal's default action by sending the signal to itself (`kill`, in
//! `dump_core_and_abort` of `linux-user/signal.c`), and this library is loaded in front of the C library (`LD_PRELOAD` of the
//! emulator's own environment) to hear of it. A program that sends itself the one signal that nobody can catch is met at its
//! system call.

/// `SYS_kill`, `SYS_tkill` and `SYS_tgkill` with the number of the argument that is the signal.
const SENDS_SIGNAL: [(i64, usize); 3] = [(62, 1), (200, 1), (234, 2)];
const SIGKILL: u64 = 9;

/// Whether a system call may be the one with which the program kills itself.
pub fn is_by_own_hand(number: i64, arguments: [u64; 3]) -> bool {
    SENDS_SIGNAL.iter().any(|&(sends, signal)| sends == number && arguments[signal] == SIGKILL)
}

#[cfg(not(test))]
unsafe extern "C" {
    fn syscall(number: i64, ...) -> i64;
}

/// In front of the C library's function.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn kill(process: i32, signal: i32) -> i32 {
    if process == std::process::id().cast_signed() && signal != 0 {
        super::callbacks::report_now();
    }
    // SAFETY: the system call `kill` touches no memory of this process; the C library sets errno.
    let result = unsafe { syscall(SENDS_SIGNAL[0].0, i64::from(process), i64::from(signal)) };
    if result < 0 { -1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signal_that_cannot_be_caught_is_met_at_its_call() {
        assert!(is_by_own_hand(62, [1, 9, 0]));
        assert!(is_by_own_hand(234, [1, 1, 9]));
        assert!(!is_by_own_hand(62, [9, 15, 9]));
        assert!(!is_by_own_hand(1, [9, 9, 9]));
    }
}
