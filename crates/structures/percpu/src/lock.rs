//! A spin lock that names its holder, and the check that locks are taken in order.
//!
//! The word is 0 or 1 + the holder's core index. A process that dies with a lock held therefore leaves a word that says
//! whose operation has to be completed or undone; the one that took over the core ([`Arena::take_over`](crate::Arena))
//! frees it with [`CoreLock::release_taken_over`] once that is done.
//!
//! Cost: one exchange to lock, one store to unlock, on the lock's own line.

use core::fmt;
use core::marker::PhantomData;

use sync::atomic::{AtomicU32, Ordering};
use sync::{Wait, WaitReason};

use crate::core_handle::Core;
use crate::core_index::CoreIndex;
#[cfg(debug_assertions)]
use crate::held_locks::HeldLocks;
use crate::lock_rank::LockRank;

/// A spin lock; see the module's head.
pub struct CoreLock {
    word: AtomicU32,
}

/// Holds a [`CoreLock`] and frees it when dropped.
pub struct CoreLockGuard<'l> {
    lock: &'l CoreLock,
    // It stays with its core, in all builds alike.
    _core: PhantomData<&'l Core<'l>>,
    #[cfg(debug_assertions)]
    held: &'l HeldLocks,
}

impl CoreLock {
    /// A free lock.
    pub fn new() -> CoreLock {
        CoreLock { word: AtomicU32::new(0) }
    }

    /// Takes the lock, waiting for its holder as the caller likes to.
    ///
    /// # Panics
    /// In debug builds, if the core holds a lock that must be taken after this one.
    #[inline]
    pub fn lock<'l>(&'l self, core: &'l Core<'_>, rank: LockRank, wait: &impl Wait) -> CoreLockGuard<'l> {
        #[cfg(debug_assertions)]
        core.held.check(rank, self.address());
        let mut round = 0;
        loop {
            if let Some(guard) = self.try_lock(core, rank) {
                return guard;
            }
            // Look without writing until the word changes, so that waiters do not fight for the line.
            while let Some(holder) = self.holder() {
                wait.wait(WaitReason::Lock { holder: holder.get() as u16 }, round);
                round = round.saturating_add(1);
            }
        }
    }

    /// Takes the lock if it is free. Exempt from the order, since it does not wait.
    #[inline]
    pub fn try_lock<'l>(&'l self, core: &'l Core<'_>, rank: LockRank) -> Option<CoreLockGuard<'l>> {
        let mine = core.index().get() as u32 + 1;
        if sync::mutant::planted("percpu: lock in two steps") && self.holder().is_none() {
            self.word.store(mine, Ordering::Relaxed);
        } else {
            // Acquire pairs with the release in `Drop for CoreLockGuard`.
            self.word.compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed).ok()?;
        }
        #[cfg(debug_assertions)]
        core.held.push(rank, self.address());
        #[cfg(not(debug_assertions))]
        let _ = rank;
        Some(CoreLockGuard {
            lock: self,
            _core: PhantomData,
            #[cfg(debug_assertions)]
            held: &core.held,
        })
    }

    /// Who holds the lock at the moment.
    #[inline]
    pub fn holder(&self) -> Option<CoreIndex> {
        match self.word.load(Ordering::Relaxed) {
            0 => None,
            word => Some(CoreIndex((word - 1) as u16)),
        }
    }

    /// Frees a lock that a dead process held as `core`, which the caller took over.
    ///
    /// # Safety
    /// What the lock guards is whole again, and no guard for this lock exists in a living process.
    pub unsafe fn release_taken_over(&self, core: &Core<'_>) {
        if self.holder() == Some(core.index()) {
            self.word.store(0, Ordering::Release);
        }
    }

    #[cfg(debug_assertions)]
    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }
}

impl Default for CoreLock {
    fn default() -> CoreLock {
        CoreLock::new()
    }
}

impl fmt::Debug for CoreLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.holder() {
            None => formatter.write_str("CoreLock(free)"),
            Some(holder) => write!(formatter, "CoreLock(held by core {})", holder.get()),
        }
    }
}

impl Drop for CoreLockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        self.held.pop(self.lock.address());
        // Release pairs with the acquiring exchange in `try_lock`.
        self.lock.word.store(0, Ordering::Release);
    }
}
