//! Semaphores: locks if they begin with one, else left out.
//!
//! A semaphore that begins with one and is posted by the thread that took it is a lock. One that begins with nothing
//! tells threads to go on, and one that begins with more bounds how many do: neither keeps two sections apart, so its
//! events and its words are left out. (POSIX, sem_init; there is no other way to make one in a program's own memory.)

use libc::{EAGAIN, c_char, c_int, c_uint, clockid_t, mode_t, sem_t, timespec};
use lock_annotation::Event;

use crate::tell::tell;
use preload::next;

type Semaphore = *mut sem_t;
const SIZE_BYTES: u16 = size_of::<sem_t>() as u16;

/// The calling thread's error number.
fn errno() -> &'static mut c_int {
    // SAFETY: the C library gives the address of the calling thread's own number, which lives as long as the thread.
    unsafe { &mut *libc::__errno_location() }
}

/// Tells what a semaphore that begins with `value` is.
fn tell_beginning(semaphore: Semaphore, value: c_uint) {
    tell::<{ Event::Destroy as u32 }, SIZE_BYTES>(semaphore);
    if value != 1 {
        tell::<{ Event::NoLock as u32 }, SIZE_BYTES>(semaphore);
    }
}

/// Tries; if that fails because the semaphore is taken, waits by `wait`. The error number is as if it had not been tried.
#[inline]
fn acquire(semaphore: Semaphore, wait: impl FnOnce() -> c_int) -> c_int {
    let before = *errno();
    tell::<{ Event::Attempt as u32 }, SIZE_BYTES>(semaphore);
    let mut result = next!(sem_trywait(semaphore: Semaphore));
    if result != 0 && *errno() == EAGAIN {
        tell::<{ Event::Wait as u32 }, SIZE_BYTES>(semaphore);
        result = wait();
        if result != 0 {
            tell::<{ Event::GiveUp as u32 }, SIZE_BYTES>(semaphore);
        }
    }
    if result == 0 {
        *errno() = before;
        tell::<{ Event::AcquireExclusive as u32 }, SIZE_BYTES>(semaphore);
    }
    result
}

#[unsafe(no_mangle)]
extern "C" fn sem_wait(semaphore: Semaphore) -> c_int {
    acquire(semaphore, || next!(sem_wait(semaphore: Semaphore)))
}

#[unsafe(no_mangle)]
extern "C" fn sem_trywait(semaphore: Semaphore) -> c_int {
    acquire(semaphore, || -1)
}

#[unsafe(no_mangle)]
extern "C" fn sem_timedwait(semaphore: Semaphore, deadline: *const timespec) -> c_int {
    acquire(semaphore, || next!(sem_timedwait(semaphore: Semaphore, deadline: *const timespec)))
}

#[unsafe(no_mangle)]
extern "C" fn sem_clockwait(semaphore: Semaphore, clock: clockid_t, deadline: *const timespec) -> c_int {
    acquire(semaphore, || next!(sem_clockwait(semaphore: Semaphore, clock: clockid_t, deadline: *const timespec)))
}

#[unsafe(no_mangle)]
extern "C" fn sem_post(semaphore: Semaphore) -> c_int {
    tell::<{ Event::ReleaseForAny as u32 }, SIZE_BYTES>(semaphore);
    next!(sem_post(semaphore: Semaphore))
}

#[unsafe(no_mangle)]
extern "C" fn sem_init(semaphore: Semaphore, shared: c_int, value: c_uint) -> c_int {
    let result = next!(sem_init(semaphore: Semaphore, shared: c_int, value: c_uint));
    if result == 0 {
        tell_beginning(semaphore, value);
    }
    result
}

#[unsafe(no_mangle)]
extern "C" fn sem_destroy(semaphore: Semaphore) -> c_int {
    tell::<{ Event::Destroy as u32 }, SIZE_BYTES>(semaphore);
    next!(sem_destroy(semaphore: Semaphore))
}

/// Opens a named semaphore (`mode` and `value` are used with O_CREAT only, and are whatever the registers hold else: a
/// function with a variable number of arguments passes whole numbers where one of four parameters does). What it is then
/// worth says whether it begins as a lock.
#[unsafe(no_mangle)]
extern "C" fn sem_open(name: *const c_char, flags: c_int, mode: mode_t, value: c_uint) -> Semaphore {
    let opened = next_pointer(name, flags, mode, value);
    let mut worth: c_int = 0;
    // SAFETY: the C library has just given this semaphore, and `worth` is ours.
    if opened != libc::SEM_FAILED && unsafe { libc::sem_getvalue(opened, &raw mut worth) } == 0 {
        tell_beginning(opened, worth.unsigned_abs());
    }
    opened
}

fn next_pointer(name: *const c_char, flags: c_int, mode: mode_t, value: c_uint) -> Semaphore {
    next!(sem_open(name: *const c_char, flags: c_int, mode: mode_t, value: c_uint) -> Semaphore)
}
