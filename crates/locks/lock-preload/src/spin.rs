//! Spin locks.

use libc::{EBUSY, c_int, pthread_spinlock_t};
use lock_annotation::Event;

use crate::tell::tell;
use preload::next;

type Lock = *mut pthread_spinlock_t;
const SIZE_BYTES: u16 = size_of::<pthread_spinlock_t>() as u16;

#[inline]
fn acquire(lock: Lock, wait: impl FnOnce() -> c_int) -> c_int {
    tell::<{ Event::Attempt as u32 }, SIZE_BYTES>(lock);
    let mut result = next!(pthread_spin_trylock(lock: Lock));
    if result == EBUSY {
        tell::<{ Event::Wait as u32 }, SIZE_BYTES>(lock);
        result = wait();
        if result != 0 {
            tell::<{ Event::GiveUp as u32 }, SIZE_BYTES>(lock);
        }
    }
    if result == 0 {
        tell::<{ Event::AcquireExclusive as u32 }, SIZE_BYTES>(lock);
    }
    result
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_lock(lock: Lock) -> c_int {
    acquire(lock, || next!(pthread_spin_lock(lock: Lock)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_trylock(lock: Lock) -> c_int {
    acquire(lock, || EBUSY)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_unlock(lock: Lock) -> c_int {
    tell::<{ Event::Release as u32 }, SIZE_BYTES>(lock);
    next!(pthread_spin_unlock(lock: Lock))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_init(lock: Lock, shared: c_int) -> c_int {
    tell::<{ Event::Destroy as u32 }, SIZE_BYTES>(lock);
    next!(pthread_spin_init(lock: Lock, shared: c_int))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_destroy(lock: Lock) -> c_int {
    tell::<{ Event::Destroy as u32 }, SIZE_BYTES>(lock);
    next!(pthread_spin_destroy(lock: Lock))
}
