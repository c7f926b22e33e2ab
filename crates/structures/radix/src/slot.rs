//! One index that is locked, which allows changes of what its value stands for, and marks of changes to come.
//!
//! A **mark** is a change that goes on until somebody else's decision: the value that is to be stands next to the
//! present one, whose readers ask whether the change has happened ([`RadixArray::read_beside_marks`]). What the present
//! value stands for is not touched in the meantime.

use core::convert::Infallible;

use epoch::Guard;
use sync::atomic::{Ordering, fence};

use crate::array::{End, RadixArray};
use crate::node::{LeafSlot, Word, decode_next, encode_next};

/// An index that the core has locked. Dropping it unlocks it.
pub struct LockedSlot<'g> {
    slot: &'g LeafSlot,
}

impl LeafSlot {
    /// Marks a change to come. The caller's core holds the lock.
    pub(crate) fn mark(&self, next: Option<u64>) {
        // Before the sequence, so that one that finds that odd by the mark finds this.
        self.next.store(encode_next(next), Ordering::Relaxed);
        fence(Ordering::Release);
        self.sequence.begin();
        // Who changes what the value stands for without the lock, and looks at the sequence then, finds it odd, or is seen by
        // one that copies that from now on.
        fence(Ordering::SeqCst);
    }

    /// Ends the mark, if there is one: the value is the new one if that has `happened`. Returns the one that is not in the slot
    /// any more, or does not come into it.
    pub(crate) fn end_mark(&self, happened: bool) -> Option<u64> {
        let bits = self.next.load(Ordering::Relaxed);
        if bits == 0 {
            return None;
        }
        let word = Word(self.word.load(Ordering::Relaxed));
        let (old, next) = (word.value().flatten(), decode_next(bits));
        if happened {
            self.word.store(word.with(next).0, Ordering::Release);
        }
        self.next.store(0, Ordering::Release);
        self.sequence.end();
        let gone = if happened { old } else { next };
        gone.filter(|_| old != next)
    }

    #[inline]
    pub(crate) fn try_lock<'g>(&'g self, guard: &Guard<'_>) -> Option<LockedSlot<'g>> {
        let word = Word(self.word.load(Ordering::Relaxed));
        if word.value().is_none() || word.holder().is_some() {
            return None;
        }
        let locked = word.locked_by(guard.core().index());
        // Acquire pairs with the release of the one that held the lock before.
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

    /// Marks a value that is to be; until [`LockedSlot::end_mark`] readers ask whether it is so already. Keep the slot locked.
    ///
    /// # Panics
    /// If the value exceeds `MAX_VALUE`.
    pub fn mark(&self, next: Option<u64>) {
        assert!(next.is_none_or(|value| value <= crate::MAX_VALUE), "a value that a slot can hold");
        self.slot.mark(next);
    }

    /// The value that is to be, if one is marked.
    pub fn marked(&self) -> Option<Option<u64>> {
        let bits = self.slot.next.load(Ordering::Relaxed);
        (bits != 0).then(|| decode_next(bits))
    }

    /// Ends a mark: the marked value is in the slot if it has `happened`. Returns the value that is not in it any more, or does
    /// not come into it; nothing if both are the same, or there is no mark.
    pub fn end_mark(&self, happened: bool) -> Option<u64> {
        self.slot.end_mark(happened)
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
