//! Locks of pthread, condition variables, barriers, and POSIX's semaphores: who would have to wait lets others go on instead.
//!
//! A function that may wait tries; all else is left to the C library's own function, whose result is returned. Condition variables
//! and barriers, which no one can try, are kept by this library.

use std::ffi::{c_int, c_uint};

use libc::{
    EAGAIN, EBUSY, ETIMEDOUT, clockid_t, pthread_barrier_t, pthread_barrierattr_t, pthread_cond_t, pthread_mutex_t,
    pthread_rwlock_t, pthread_spinlock_t, sem_t, timespec,
};
use preload::next;

use crate::reason::Reason;
use crate::scheduler::{Barrier, Inside};
use crate::waits::Woken;

type Mutex = *mut pthread_mutex_t;
type Lock = *mut pthread_rwlock_t;
type SpinLock = *mut pthread_spinlock_t;
type Condition = *mut pthread_cond_t;
type Semaphore = *mut sem_t;
type Time = *const timespec;

fn try_mutex(mutex: Mutex) -> c_int {
    next!(pthread_mutex_trylock(mutex: Mutex))
}

fn unlock(mutex: Mutex) -> c_int {
    next!(pthread_mutex_unlock(mutex: Mutex))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_lock(mutex: Mutex) -> c_int {
    match Inside::now() {
        Some(mut inside) => inside.until(Reason::Mutex(mutex.addr()), EBUSY, || try_mutex(mutex)),
        None => next!(pthread_mutex_lock(mutex: Mutex)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_timedlock(mutex: Mutex, time: Time) -> c_int {
    match Inside::now() {
        Some(mut inside) => inside.until_time(Reason::Mutex(mutex.addr()), EBUSY, || try_mutex(mutex)),
        None => next!(pthread_mutex_timedlock(mutex: Mutex, time: Time)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_clocklock(mutex: Mutex, clock: clockid_t, time: Time) -> c_int {
    match Inside::now() {
        Some(mut inside) => inside.until_time(Reason::Mutex(mutex.addr()), EBUSY, || try_mutex(mutex)),
        None => next!(pthread_mutex_clocklock(mutex: Mutex, clock: clockid_t, time: Time)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_unlock(mutex: Mutex) -> c_int {
    let inside = Inside::now();
    let result = unlock(mutex);
    if let Some(mut inside) = inside {
        inside.wake(Reason::Mutex(mutex.addr()), 1);
    }
    result
}

/// Waits for a condition: the mutex is released, and acquired again.
fn await_condition(inside: &mut Inside, condition: Condition, mutex: Mutex) -> Woken {
    unlock(mutex);
    inside.wake(Reason::Mutex(mutex.addr()), 1);
    let woken = inside.wait(Reason::Condition(condition.addr()));
    inside.until(Reason::Mutex(mutex.addr()), EBUSY, || try_mutex(mutex));
    woken
}

fn in_time(woken: Woken) -> c_int {
    if woken == Woken::ByEvent { 0 } else { ETIMEDOUT }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_wait(condition: Condition, mutex: Mutex) -> c_int {
    match Inside::now() {
        // Who is woken without a reason waits again, as POSIX demands of it.
        Some(mut inside) => {
            await_condition(&mut inside, condition, mutex);
            0
        }
        None => next!(pthread_cond_wait @ c"GLIBC_2.3.2" (condition: Condition, mutex: Mutex)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_timedwait(condition: Condition, mutex: Mutex, time: Time) -> c_int {
    match Inside::now() {
        Some(mut inside) => in_time(await_condition(&mut inside, condition, mutex)),
        None => next!(pthread_cond_timedwait @ c"GLIBC_2.3.2" (condition: Condition, mutex: Mutex, time: Time)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_clockwait(condition: Condition, mutex: Mutex, clock: clockid_t, time: Time) -> c_int {
    match Inside::now() {
        Some(mut inside) => in_time(await_condition(&mut inside, condition, mutex)),
        None => next!(pthread_cond_clockwait(condition: Condition, mutex: Mutex, clock: clockid_t, time: Time)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_signal(condition: Condition) -> c_int {
    match Inside::now() {
        Some(mut inside) => {
            inside.wake(Reason::Condition(condition.addr()), 1);
            0
        }
        None => next!(pthread_cond_signal @ c"GLIBC_2.3.2" (condition: Condition)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_broadcast(condition: Condition) -> c_int {
    match Inside::now() {
        Some(mut inside) => {
            inside.wake(Reason::Condition(condition.addr()), usize::MAX);
            0
        }
        None => next!(pthread_cond_broadcast @ c"GLIBC_2.3.2" (condition: Condition)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_rdlock(lock: Lock) -> c_int {
    match Inside::now() {
        Some(mut inside) => {
            let attempt = || next!(pthread_rwlock_tryrdlock(lock: Lock));
            inside.until(Reason::ReadWriteLock(lock.addr()), EBUSY, attempt)
        }
        None => next!(pthread_rwlock_rdlock(lock: Lock)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_wrlock(lock: Lock) -> c_int {
    match Inside::now() {
        Some(mut inside) => {
            let attempt = || next!(pthread_rwlock_trywrlock(lock: Lock));
            inside.until(Reason::ReadWriteLock(lock.addr()), EBUSY, attempt)
        }
        None => next!(pthread_rwlock_wrlock(lock: Lock)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_unlock(lock: Lock) -> c_int {
    let inside = Inside::now();
    let result = next!(pthread_rwlock_unlock(lock: Lock));
    if let Some(mut inside) = inside {
        inside.wake(Reason::ReadWriteLock(lock.addr()), usize::MAX);
    }
    result
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_lock(lock: SpinLock) -> c_int {
    match Inside::now() {
        Some(mut inside) => {
            let attempt = || next!(pthread_spin_trylock(lock: SpinLock));
            inside.until(Reason::SpinLock(lock.addr()), EBUSY, attempt)
        }
        None => next!(pthread_spin_lock(lock: SpinLock)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_unlock(lock: SpinLock) -> c_int {
    let inside = Inside::now();
    let result = next!(pthread_spin_unlock(lock: SpinLock));
    if let Some(mut inside) = inside {
        inside.wake(Reason::SpinLock(lock.addr()), 1);
    }
    result
}

#[unsafe(no_mangle)]
extern "C" fn pthread_barrier_init(
    barrier: *mut pthread_barrier_t,
    attributes: *const pthread_barrierattr_t,
    wanted: c_uint,
) -> c_int {
    if let Some(mut inside) = Inside::now() {
        let address = barrier.addr();
        let barriers = &mut inside.scheduler().barriers;
        barriers.retain(|known| known.address != address);
        barriers.push(Barrier { address, wanted, come: 0, round: 0 });
    }
    next!(pthread_barrier_init(
        barrier: *mut pthread_barrier_t, attributes: *const pthread_barrierattr_t, wanted: c_uint
    ))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int {
    let address = barrier.addr();
    if let Some(mut inside) = Inside::now()
        && let Some(index) = inside.scheduler().barriers.iter().position(|known| known.address == address)
    {
        let known = &mut inside.scheduler().barriers[index];
        known.come += 1;
        if known.come == known.wanted {
            (known.come, known.round) = (0, known.round + 1);
            inside.wake(Reason::Barrier(address), usize::MAX);
            return libc::PTHREAD_BARRIER_SERIAL_THREAD;
        }
        let round = known.round;
        let is_over = |known: &Barrier| known.address != address || known.round != round;
        while !inside.scheduler().barriers.get(index).is_none_or(is_over) {
            inside.wait(Reason::Barrier(address));
        }
        return 0;
    }
    next!(pthread_barrier_wait(barrier: *mut pthread_barrier_t))
}

fn set_errno(number: c_int) {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = number };
}

/// The error number of a call that failed with -1, or what it returned.
fn errno_of(result: c_int) -> c_int {
    // SAFETY: this thread's own.
    if result == -1 { unsafe { *libc::__errno_location() } } else { result }
}

fn fail_by(errno: c_int) -> c_int {
    if errno == 0 {
        return 0;
    }
    set_errno(errno);
    -1
}

#[unsafe(no_mangle)]
extern "C" fn sem_wait(semaphore: Semaphore) -> c_int {
    match Inside::now() {
        Some(mut inside) => {
            let attempt = || errno_of(next!(sem_trywait(semaphore: Semaphore)));
            fail_by(inside.until(Reason::Semaphore(semaphore.addr()), EAGAIN, attempt))
        }
        None => next!(sem_wait(semaphore: Semaphore)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn sem_timedwait(semaphore: Semaphore, time: Time) -> c_int {
    match Inside::now() {
        Some(mut inside) => {
            let attempt = || errno_of(next!(sem_trywait(semaphore: Semaphore)));
            fail_by(inside.until_time(Reason::Semaphore(semaphore.addr()), EAGAIN, attempt))
        }
        None => next!(sem_timedwait(semaphore: Semaphore, time: Time)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn sem_post(semaphore: Semaphore) -> c_int {
    let inside = Inside::now();
    let result = next!(sem_post(semaphore: Semaphore));
    if let Some(mut inside) = inside {
        inside.wake(Reason::Semaphore(semaphore.addr()), 1);
    }
    result
}
