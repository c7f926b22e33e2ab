//! Calls of Linux that no function of the C library stands in front of: this library itself stands in front of some of those.

use std::arch::asm;
use std::ffi::{c_int, c_long};
use std::sync::atomic::AtomicU32;

/// A call with up to six arguments; what Linux returns, a negative error number among it.
///
/// # Safety
/// As the call demands.
pub unsafe fn call(number: c_long, arguments: [c_long; 6]) -> c_long {
    let result: c_long;
    // SAFETY: Linux's convention; what the call does, the caller answers for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Sleeps while the word has this value.
pub fn wait(word: &AtomicU32, value: u32) {
    let arguments = [
        word.as_ptr() as c_long,
        c_long::from(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG),
        c_long::from(value),
        0,
        0,
        0,
    ];
    // SAFETY: the word lives during the call.
    unsafe { call(libc::SYS_futex, arguments) };
}

/// Wakes who sleeps at the word.
pub fn wake(word: &AtomicU32) {
    let arguments = [word.as_ptr() as c_long, c_long::from(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG), 1, 0, 0, 0];
    // SAFETY: as in `wait`.
    unsafe { call(libc::SYS_futex, arguments) };
}

/// Number of the calling thread.
pub fn thread_number() -> u32 {
    // SAFETY: without effect.
    unsafe { call(libc::SYS_gettid, [0; 6]) as u32 }
}

/// Sends a thread of this process a signal.
pub fn signal(thread: u32, signal: c_int) {
    // SAFETY: the process is this one.
    unsafe { call(libc::SYS_tgkill, [std::process::id().into(), thread.into(), signal.into(), 0, 0, 0]) };
}

/// Sleeps.
pub fn sleep(seconds: i64) {
    let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    // SAFETY: the time lives during the call.
    unsafe { call(libc::SYS_nanosleep, [(&raw const time) as c_long, 0, 0, 0, 0, 0]) };
}

/// Ends the process, and runs nothing more of it.
pub fn end(code: c_int) -> ! {
    loop {
        // SAFETY: nothing is used afterwards.
        unsafe { call(libc::SYS_exit_group, [code.into(), 0, 0, 0, 0, 0]) };
    }
}

/// Ends the process for a reason that its user can change.
pub fn refuse(why: &str) -> ! {
    let line = format!("{why}\n");
    // SAFETY: the bytes live during the call.
    unsafe { call(libc::SYS_write, [2, line.as_ptr() as c_long, line.len() as c_long, 0, 0, 0]) };
    end(REFUSED)
}

/// The exit code of who is refused.
pub const REFUSED: c_int = 97;
