//! One index that is locked, which allows changes of what its value stands for.

use core::convert::Infallible;

use epoch::Guard;
use sync::atomic::Ordering;

use crate::array::{End, RadixArray};
use crate::node::{LeafSlot, Word};

/// An index that the core has locked. Dropping it unlocks it.
pub struct LockedSlot<'g> {
    slot: &'g LeafSlot,
}

impl LeafSlot {
    #[inline]
    pub(crate) fn try_lock<'g>(&'g self, guard: &Guard<'_>) -> Option<LockedSlot<'g>> {
        let word = Word(self.word.load(Ordering::Relaxed));
        if word.value().is_none() || word.holder().is_some() {
            return None;
        }
        let locked = word.locked_by(guard.core().index());
        // Acquire pairs with the release of whoever held the lock before.
        let taken = self.word.compare_exchange(word.0, locked.0, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok().then(|| LockedSlot { slot: self })
    }
}

impl<'g> LockedSlot<'g> {
    /// The slot of an index that the core has locked, and that has one of its own.
    pub(crate) fn of_locked(array: &RadixArray, guard: &'g Guard<'_>, index: u64) -> LockedSlot<'g> {
        let End::Leaf(slot) = array.find(guard, index) else {
            unreachable!("an index that is locked alone has a slot of its own");
        };
        LockedSlot { slot }
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> Option<u64> {
        let word = Word(self.slot.word.load(Ordering::Relaxed));
        word.value().expect("a slot of a leaf that is locked is not dead")
    }

    /// Lets `change` change what the value stands for and return the new value; readers of before look again.
    ///
    /// # Panics
    /// If the value exceeds `MAX_VALUE`.
    #[inline]
    pub fn change(&self, change: impl FnOnce() -> Option<u64>) {
        let Ok(()) = self.try_change(|| Ok::<_, Infallible>(change()));
    }

    /// [`LockedSlot::change`], unless `change` finds that it must not be. Readers wait from before it is called.
    ///
    /// # Errors
    /// What `change` returned, and the value is as before.
    ///
    /// # Panics
    /// If the value exceeds `MAX_VALUE`.
    #[inline]
    pub fn try_change<E>(&self, change: impl FnOnce() -> Result<Option<u64>, E>) -> Result<(), E> {
        self.slot.sequence.change(|| {
            let value = change()?;
            assert!(value.is_none_or(|value| value <= crate::MAX_VALUE), "a value that a slot can hold");
            let word = Word(self.slot.word.load(Ordering::Relaxed));
            self.slot.word.store(word.with(value).0, Ordering::Release);
            Ok(())
        })
    }
}

impl Drop for LockedSlot<'_> {
    #[inline]
    fn drop(&mut self) {
        let word = Word(self.slot.word.load(Ordering::Relaxed));
        // Release pairs with the acquire of the next lock.
        self.slot.word.store(word.unlocked().0, Ordering::Release);
    }
}
