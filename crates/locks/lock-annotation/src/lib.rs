//! Tells the lock recorder what a lock does: for custom locks, and for the library that stands in front of pthread's.
//!
//! An event is one load of a byte of the lock, whose displacement says what happened: `mov al, [rax + 0x4C..]`. Without the
//! recorder that is all it is; the recorder sees both the instruction and the address. `include/commutant_locks.h` is the
//! same for C and C++.
//!
//! ```
//! use lock_annotation::{Event, tell};
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! struct SpinLock(AtomicU32);
//!
//! impl SpinLock {
//!     fn lock(&self) {
//!         tell::<{ Event::Attempt as u32 }, 4>(&self.0);
//!         while self.0.swap(1, Ordering::Acquire) != 0 {
//!             tell::<{ Event::Wait as u32 }, 4>(&self.0);
//!         }
//!         tell::<{ Event::AcquireExclusive as u32 }, 4>(&self.0);
//!     }
//!
//!     fn unlock(&self) {
//!         tell::<{ Event::Release as u32 }, 4>(&self.0);
//!         self.0.store(0, Ordering::Release);
//!     }
//! }
//!
//! let lock = SpinLock(AtomicU32::new(0));
//! lock.lock();
//! lock.unlock();
//! assert_eq!(lock.0.load(Ordering::Relaxed), 0);
//! ```
#![no_std]

/// What happens to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Event {
    /// A thread is about to acquire it. To be reported before the lock's memory is first touched; from then on the
    /// recorder takes no other instruction for an operation on this lock.
    Attempt = 1,
    /// The thread has to wait.
    Wait = 2,
    /// The thread got it, and keeps all others out.
    AcquireExclusive = 3,
    /// The thread got it, and keeps out writers only.
    AcquireShared = 4,
    /// The thread is about to release it. To be reported before the release, so that the next holder comes later.
    Release = 5,
    /// The thread gave up waiting.
    GiveUp = 6,
    /// The lock's memory is about to be used for something else.
    Destroy = 7,
    /// The calling thread, or another in its place, is about to release it (a semaphore is posted by any thread). A
    /// section that another thread ends is compared with none.
    ReleaseForAny = 8,
    /// What lies there keeps no one out, whatever is reported of it until `Destroy`: a semaphore that is no lock.
    NoLock = 9,
    /// A span of the run begins: where only spans are recorded, what happens outside them is not. Of no lock; the address is
    /// any that the program may read.
    SpanBegin = 10,
    /// The span ends.
    SpanEnd = 11,
}

impl Event {
    const ALL: [Event; 11] = [
        Event::Attempt,
        Event::Wait,
        Event::AcquireExclusive,
        Event::AcquireShared,
        Event::Release,
        Event::GiveUp,
        Event::Destroy,
        Event::ReleaseForAny,
        Event::NoLock,
        Event::SpanBegin,
        Event::SpanEnd,
    ];

    /// The event of that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Event> {
        Self::ALL.into_iter().find(|event| *event as u8 == number)
    }
}

/// The upper byte of every event's displacement.
pub const MAGIC: u32 = 0x4c;

/// The displacement that tells an event of a lock of that size.
#[must_use]
pub const fn displacement(event_number: u32, size_bytes: u16) -> u32 {
    MAGIC << 24 | event_number << 16 | size_bytes as u32
}

/// The event and the lock's size in bytes that an instruction tells, if it tells one.
#[must_use]
pub fn event_of_instruction(bytes: &[u8]) -> Option<(Event, u16)> {
    let [0x8a, 0x80, low, high, number, magic] = *bytes else { return None };
    let event = Event::from_number(number)?;
    (u32::from(magic) == MAGIC).then_some((event, u16::from_le_bytes([low, high])))
}

/// Tells an event (`Event::... as u32`) of a lock, which has `SIZE_BYTES` bytes, all of which are its own.
///
/// # Panics
/// If the lock has no byte: its first one is loaded.
#[inline(always)]
pub fn tell<const EVENT: u32, const SIZE_BYTES: u16>(lock: &impl Sized) {
    assert!(size_of_val(lock) > 0, "a lock has a byte");
    // SAFETY: a reference to a byte.
    unsafe { tell_at::<EVENT, SIZE_BYTES>(core::ptr::from_ref(lock)) }
}

/// [`tell`] of the lock at an address.
///
/// # Safety
/// The byte at the address is readable.
#[inline(always)]
pub unsafe fn tell_at<const EVENT: u32, const SIZE_BYTES: u16>(lock: *const impl Sized) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction loads a byte that the caller says is readable, into a register that is given as clobbered, and
    // does nothing else.
    unsafe {
        let base = lock.cast::<u8>().wrapping_sub(const { displacement(EVENT, SIZE_BYTES) } as usize);
        core::arch::asm!(
            "mov al, byte ptr [rax + {displacement}]",
            displacement = const displacement(EVENT, SIZE_BYTES),
            inout("rax") base => _,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = lock;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_tells_what_was_put_into_it() {
        for event in Event::ALL {
            let bytes = displacement(event as u32, 40).to_le_bytes();
            let instruction = [&[0x8a, 0x80], &bytes[..]].concat();
            assert_eq!(event_of_instruction(&instruction), Some((event, 40)));
        }
        assert_eq!(event_of_instruction(&[0x8a, 0x80, 40, 0, 12, 0x4c]), None);
        assert_eq!(event_of_instruction(&[0x8a, 0x80, 40, 0, 1, 0x4d]), None);
        assert_eq!(event_of_instruction(&[0x8a, 0x00]), None);
    }
}
