//! Mutexes, and condition variables, which release and reacquire one.

use libc::{EBUSY, EOWNERDEAD, c_int, clockid_t, pthread_cond_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use lock_annotation::Event;

use crate::tell::tell;
use preload::next;

type Mutex = *mut pthread_mutex_t;
const SIZE_BYTES: u16 = size_of::<pthread_mutex_t>() as u16;

/// Whether a result means that the caller holds the mutex (POSIX, pthread_mutex_lock: EOWNERDEAD acquires too).
fn acquired(result: c_int) -> bool {
    result == 0 || result == EOWNERDEAD
}

/// Tries; if that fails because of another holder, waits by `wait`.
#[inline]
fn acquire(mutex: Mutex, wait: impl FnOnce() -> c_int) -> c_int {
    tell::<{ Event::Attempt as u32 }, SIZE_BYTES>(mutex);
    let mut result = next!(pthread_mutex_trylock(mutex: Mutex));
    if result == EBUSY {
        tell::<{ Event::Wait as u32 }, SIZE_BYTES>(mutex);
        result = wait();
        if !acquired(result) {
            tell::<{ Event::GiveUp as u32 }, SIZE_BYTES>(mutex);
        }
    }
    if acquired(result) {
        tell::<{ Event::AcquireExclusive as u32 }, SIZE_BYTES>(mutex);
    }
    result
}

/// Waits for a condition: the mutex is released and acquired again in the meantime.
#[inline]
fn await_condition(mutex: Mutex, wait: impl FnOnce() -> c_int) -> c_int {
    tell::<{ Event::Release as u32 }, SIZE_BYTES>(mutex);
    let result = wait();
    tell::<{ Event::AcquireExclusive as u32 }, SIZE_BYTES>(mutex);
    result
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_lock(mutex: Mutex) -> c_int {
    acquire(mutex, || next!(pthread_mutex_lock(mutex: Mutex)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_trylock(mutex: Mutex) -> c_int {
    acquire(mutex, || EBUSY)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_timedlock(mutex: Mutex, deadline: *const timespec) -> c_int {
    acquire(mutex, || next!(pthread_mutex_timedlock(mutex: Mutex, deadline: *const timespec)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_clocklock(mutex: Mutex, clock: clockid_t, deadline: *const timespec) -> c_int {
    acquire(mutex, || next!(pthread_mutex_clocklock(mutex: Mutex, clock: clockid_t, deadline: *const timespec)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_unlock(mutex: Mutex) -> c_int {
    tell::<{ Event::Release as u32 }, SIZE_BYTES>(mutex);
    next!(pthread_mutex_unlock(mutex: Mutex))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_init(mutex: Mutex, attributes: *const pthread_mutexattr_t) -> c_int {
    tell::<{ Event::Destroy as u32 }, SIZE_BYTES>(mutex);
    next!(pthread_mutex_init(mutex: Mutex, attributes: *const pthread_mutexattr_t))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_destroy(mutex: Mutex) -> c_int {
    tell::<{ Event::Destroy as u32 }, SIZE_BYTES>(mutex);
    next!(pthread_mutex_destroy(mutex: Mutex))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_wait(condition: *mut pthread_cond_t, mutex: Mutex) -> c_int {
    await_condition(mutex, || next!(pthread_cond_wait @ c"GLIBC_2.3.2" (condition: *mut pthread_cond_t, mutex: Mutex)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_timedwait(condition: *mut pthread_cond_t, mutex: Mutex, deadline: *const timespec) -> c_int {
    await_condition(mutex, || {
        next!(pthread_cond_timedwait @ c"GLIBC_2.3.2" (
            condition: *mut pthread_cond_t, mutex: Mutex, deadline: *const timespec
        ))
    })
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: Mutex,
    clock: clockid_t,
    deadline: *const timespec,
) -> c_int {
    await_condition(mutex, || {
        next!(pthread_cond_clockwait(
            condition: *mut pthread_cond_t, mutex: Mutex, clock: clockid_t, deadline: *const timespec
        ))
    })
}
