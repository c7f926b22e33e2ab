//! Waiting at words of memory (futex, as Rust's standard library does), and for time to go by.

use std::ffi::{c_int, c_long, c_uint};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{clockid_t, timespec};
use preload::next;

use crate::reason::Reason;
use crate::scheduler::Inside;
use crate::system;
use crate::waits::Woken;

fn fail_by(errno: c_int) -> c_long {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// `syscall` of the C library, with as many arguments as a call can have.
#[unsafe(no_mangle)]
extern "C" fn syscall(
    number: c_long,
    first: c_long,
    second: c_long,
    third: c_long,
    fourth: c_long,
    fifth: c_long,
    sixth: c_long,
) -> c_long {
    if number == libc::SYS_futex
        && let Some(result) = futex(first as usize, second as c_int, third as u32, fourth != 0)
    {
        return result;
    }
    // SAFETY: the program makes this call.
    let result = unsafe { system::call(number, [first, second, third, fourth, fifth, sixth]) };
    if (-4095..0).contains(&result) { fail_by(-result as c_int) } else { result }
}

/// Waiting and waking among threads that take turns; `None` for all else.
fn futex(address: usize, operation: c_int, value: u32, has_time: bool) -> Option<c_long> {
    let command = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    let waits = matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET);
    let wakes = matches!(command, libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET);
    if !waits && !wakes {
        return None;
    }
    let mut inside = Inside::now()?;
    if wakes {
        return Some(inside.wake(Reason::Word(address), value as usize) as c_long);
    }
    // SAFETY: the program has Linux read this word.
    let present = unsafe { AtomicU32::from_ptr(address as *mut u32) }.load(Ordering::SeqCst);
    if present != value {
        return Some(fail_by(libc::EAGAIN));
    }
    let woken = inside.wait(Reason::Word(address));
    Some(if woken == Woken::ByNeed && has_time { fail_by(libc::ETIMEDOUT) } else { 0 })
}

/// Time goes by while others run.
fn pass_time() -> bool {
    Inside::now().map(|mut inside| inside.hand_over()).is_some()
}

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> c_int {
    if pass_time() { 0 } else { next!(sched_yield()) }
}

#[unsafe(no_mangle)]
extern "C" fn nanosleep(time: *const timespec, rest: *mut timespec) -> c_int {
    if pass_time() { 0 } else { next!(nanosleep(time: *const timespec, rest: *mut timespec)) }
}

#[unsafe(no_mangle)]
extern "C" fn clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, rest: *mut timespec) -> c_int {
    if pass_time() {
        return 0;
    }
    next!(clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, rest: *mut timespec))
}

#[unsafe(no_mangle)]
extern "C" fn usleep(time: c_uint) -> c_int {
    if pass_time() { 0 } else { next!(usleep(time: c_uint)) }
}

#[unsafe(no_mangle)]
extern "C" fn sleep(time: c_uint) -> c_uint {
    if pass_time() { 0 } else { next!(sleep(time: c_uint) -> c_uint) }
}
