//! Reader-writer locks.

use libc::{EBUSY, c_int, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};
use lock_annotation::Event;

use crate::tell::tell;
use preload::next;

type Lock = *mut pthread_rwlock_t;
const SIZE_BYTES: u16 = size_of::<pthread_rwlock_t>() as u16;

/// Tries; if that fails because of another holder, waits by `wait`; tells the `ACQUIRED` event.
#[inline]
fn acquire<const ACQUIRED: u32>(lock: Lock, attempt: impl FnOnce() -> c_int, wait: impl FnOnce() -> c_int) -> c_int {
    tell::<{ Event::Attempt as u32 }, SIZE_BYTES>(lock);
    let mut result = attempt();
    if result == EBUSY {
        tell::<{ Event::Wait as u32 }, SIZE_BYTES>(lock);
        result = wait();
        if result != 0 {
            tell::<{ Event::GiveUp as u32 }, SIZE_BYTES>(lock);
        }
    }
    if result == 0 {
        tell::<ACQUIRED, SIZE_BYTES>(lock);
    }
    result
}

fn read(lock: Lock, wait: impl FnOnce() -> c_int) -> c_int {
    acquire::<{ Event::AcquireShared as u32 }>(lock, || next!(pthread_rwlock_tryrdlock(lock: Lock)), wait)
}

fn write(lock: Lock, wait: impl FnOnce() -> c_int) -> c_int {
    acquire::<{ Event::AcquireExclusive as u32 }>(lock, || next!(pthread_rwlock_trywrlock(lock: Lock)), wait)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_rdlock(lock: Lock) -> c_int {
    read(lock, || next!(pthread_rwlock_rdlock(lock: Lock)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_tryrdlock(lock: Lock) -> c_int {
    read(lock, || EBUSY)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_timedrdlock(lock: Lock, deadline: *const timespec) -> c_int {
    read(lock, || next!(pthread_rwlock_timedrdlock(lock: Lock, deadline: *const timespec)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_clockrdlock(lock: Lock, clock: clockid_t, deadline: *const timespec) -> c_int {
    read(lock, || next!(pthread_rwlock_clockrdlock(lock: Lock, clock: clockid_t, deadline: *const timespec)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_wrlock(lock: Lock) -> c_int {
    write(lock, || next!(pthread_rwlock_wrlock(lock: Lock)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_trywrlock(lock: Lock) -> c_int {
    write(lock, || EBUSY)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_timedwrlock(lock: Lock, deadline: *const timespec) -> c_int {
    write(lock, || next!(pthread_rwlock_timedwrlock(lock: Lock, deadline: *const timespec)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_clockwrlock(lock: Lock, clock: clockid_t, deadline: *const timespec) -> c_int {
    write(lock, || next!(pthread_rwlock_clockwrlock(lock: Lock, clock: clockid_t, deadline: *const timespec)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_unlock(lock: Lock) -> c_int {
    tell::<{ Event::Release as u32 }, SIZE_BYTES>(lock);
    next!(pthread_rwlock_unlock(lock: Lock))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_init(lock: Lock, attributes: *const pthread_rwlockattr_t) -> c_int {
    tell::<{ Event::Destroy as u32 }, SIZE_BYTES>(lock);
    next!(pthread_rwlock_init(lock: Lock, attributes: *const pthread_rwlockattr_t))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_destroy(lock: Lock) -> c_int {
    tell::<{ Event::Destroy as u32 }, SIZE_BYTES>(lock);
    next!(pthread_rwlock_destroy(lock: Lock))
}
