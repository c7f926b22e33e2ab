//! Time, and the processors that threads stay on.

/// Nanoseconds since 1970, as coarse as the clock that Linux marks files with.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Keeps the calling thread on a processor. Where there is none of this number, the system chooses.
pub fn stay_on(processor: usize) {
    // SAFETY: a set of processors is plain bits; it lives through the call.
    unsafe {
        let mut processors: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut processors);
        libc::sched_setaffinity(0, size_of_val(&processors), &raw const processors);
    }
}
