//! System calls that send a signal: a program may end itself by one.

/// `SYS_kill`, `SYS_tkill` and `SYS_tgkill` with the number of the argument that is the signal.
pub const SENDS_SIGNAL: [(i64, usize); 3] = [(62, 1), (200, 1), (234, 2)];
const SIGKILL: u64 = 9;

/// Whether a system call may be the one with which the program kills itself.
pub fn is_by_own_hand(number: i64, arguments: [u64; 3]) -> bool {
    SENDS_SIGNAL.iter().any(|&(sends, signal)| sends == number && arguments[signal] == SIGKILL)
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
