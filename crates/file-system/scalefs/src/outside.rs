//! The host of programs: the system's clock, waiting that lets other threads run, and which processor a thread is on.

use std::time::Duration;

use sync::{Wait, WaitReason};

use crate::host::Host;

/// A waiter looks so often without letting others run, and then so often without sleeping.
const SPINS: u32 = 16;
const YIELDS: u32 = 256;
/// How long it sleeps then between two looks.
const SLEEP: Duration = Duration::from_micros(50);
/// Who sleeps on a word looks again after this, in case its waker has died.
#[cfg(all(target_os = "linux", not(any(loom, shuttle, virtual_cores, miri))))]
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The system's clock, and waiting that lets other threads run.
#[derive(Clone, Copy, Debug)]
pub struct Outside;

impl Wait for Outside {
    fn wait(&self, _: WaitReason, round: u32) {
        match round {
            0..SPINS => core::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            // Whoever is waited for is off its processor, with many others before it.
            _ => std::thread::sleep(SLEEP),
        }
    }

    #[cfg(all(target_os = "linux", not(any(loom, shuttle, virtual_cores, miri))))]
    #[allow(unsafe_code)]
    fn wait_while(&self, word: &sync::atomic::AtomicU32, seen: u32, _: WaitReason, _: u32) {
        let longest = libc::timespec { tv_sec: LONGEST_SLEEP.as_secs() as libc::time_t, tv_nsec: 0 };
        // SAFETY: the kernel reads the word, which the caller lends, and the time.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &raw const longest) };
    }

    #[cfg(all(target_os = "linux", not(any(loom, shuttle, virtual_cores, miri))))]
    #[allow(unsafe_code)]
    fn wake(&self, word: &sync::atomic::AtomicU32) {
        // SAFETY: the kernel knows waiters by the address, and reads nothing.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }
}

impl Host for Outside {
    #[inline]
    fn now_ns(&self) -> u64 {
        now_ns()
    }
}

/// Nanoseconds since 1970; zero before that. Each change asks once or twice, so the system's words are taken as they are: a
/// `SystemTime` would be made, checked and taken apart first.
#[cfg(all(target_os = "linux", not(miri)))]
#[allow(unsafe_code)]
fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system writes the time to where it is lent.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    let nanoseconds = |seconds: u64| seconds.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64);
    u64::try_from(now.tv_sec).map_or(0, nanoseconds)
}

/// As above.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// The number of the processor on which the thread runs at the moment.
#[cfg(all(target_os = "linux", not(miri)))]
#[allow(unsafe_code)]
pub(crate) fn processor() -> usize {
    // SAFETY: asks, and changes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// As if each thread ran on a processor of its own.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn processor() -> usize {
    use core::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_the_systems() {
        let system_ns = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            u64::try_from(since.unwrap().as_nanos()).unwrap()
        };
        // The system's clock may be set back in between, but hardly each time.
        let is_between = (0..10).any(|_| {
            let before = system_ns();
            let now = Outside.now_ns();
            (before..=system_ns()).contains(&now)
        });
        assert!(is_between);
    }
}
