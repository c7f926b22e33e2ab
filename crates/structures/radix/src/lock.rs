//! Locks of an array: of one index, of a range, of an index and all that follow.

use core::ops::Range;

use epoch::Guard;
use percpu::OutOfMemory;
use sync::atomic::Ordering;
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::array::{End, RadixArray};
use crate::node::{Content, INDEX_BITS, LeafSlot, Word};
use crate::range::{Extent, LockedRange};
use crate::slot::LockedSlot;

impl RadixArray {
    /// Locks all indices of a range against other locks. Fails without memory for a node, and then holds nothing.
    ///
    /// # Errors
    /// [`OutOfMemory`] without a node, and then nothing is held.
    ///
    /// # Panics
    /// If the range is empty or exceeds 2^52.
    pub fn lock<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        range: Range<u64>,
        wait: &impl Wait,
    ) -> Result<LockedRange<'g>, OutOfMemory> {
        assert!(range.start < range.end && range.end <= 1 << INDEX_BITS, "a range within the array");
        LockedRange::lock(self, guard, range, Extent::Range, wait)
    }

    /// Locks an index and all that follow, without making nodes for them; they can only be emptied then, but for those
    /// that nodes cover already. Fails without memory for a node, and then holds nothing.
    ///
    /// # Errors
    /// As [`RadixArray::lock`].
    ///
    /// # Panics
    /// If the index is not below 2^52.
    pub fn lock_from<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        start: u64,
        wait: &impl Wait,
    ) -> Result<LockedRange<'g>, OutOfMemory> {
        assert!(start < 1 << INDEX_BITS, "an index within the array");
        LockedRange::lock(self, guard, start..1 << INDEX_BITS, Extent::Rest, wait)
    }

    /// [`RadixArray::lock_from`] with the first index apart. That is not the same as to lock the index and then the rest:
    /// two calls could each hold what the other one waits for.
    ///
    /// # Errors
    /// As [`RadixArray::lock`].
    ///
    /// # Panics
    /// If the index is not below 2^52 - 1.
    pub fn lock_slot_and_rest<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        index: u64,
        wait: &impl Wait,
    ) -> Result<(LockedSlot<'g>, LockedRange<'g>), OutOfMemory> {
        assert!(index < (1 << INDEX_BITS) - 1, "an index within the array, and not its last");
        LockedRange::lock(self, guard, index..1 << INDEX_BITS, Extent::SlotAndRest, wait).map(LockedRange::split_first)
    }

    /// Locks one index. Fails without memory for a node, and then holds nothing.
    ///
    /// # Errors
    /// [`OutOfMemory`] without a node, and then nothing is held.
    ///
    /// # Panics
    /// If the index exceeds 2^52.
    #[inline]
    pub fn lock_slot<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        index: u64,
        wait: &impl Wait,
    ) -> Result<LockedSlot<'g>, OutOfMemory> {
        let mut round = 0;
        loop {
            let End::Leaf(slot) = self.find(guard, index) else {
                return self.lock_absent_slot(guard, index, wait);
            };
            if let Some(locked) = slot.try_lock(guard) {
                return Ok(locked);
            }
            let holder = Word(slot.word.load(Ordering::Relaxed)).holder().unwrap_or_default() as u16;
            wait.wait(WaitReason::Lock { holder }, round);
            round = round.saturating_add(1);
        }
    }

    /// Whether an index has a slot of its own, so that to lock it takes no memory.
    pub fn has_slot(&self, guard: &Guard<'_>, index: u64) -> bool {
        matches!(self.find(guard, index), End::Leaf(_))
    }

    /// Locks one index that has a slot of its own and is not locked; waits for no one.
    pub fn try_lock_slot<'g>(&'g self, guard: &'g Guard<'g>, index: u64) -> Option<LockedSlot<'g>> {
        match self.find(guard, index) {
            End::Leaf(slot) => slot.try_lock(guard),
            End::Uniform(..) => None,
        }
    }

    /// Whether the array has no more slots than a leaf has.
    pub fn is_small(&self) -> bool {
        Word(self.root.load(Ordering::Acquire)).child().is_none_or(|node| node.is_leaf())
    }

    /// Empties all indices, from left to right and one after the other, and tells `old` of each value under its lock. Nodes stay.
    /// What holds nothing and is not locked is not written to: who locks such an index comes after this walk. Neither
    /// range locks nor folded values are under way in the meantime.
    pub fn empty_each(&self, guard: &Guard<'_>, wait: &impl Wait, mut old: impl FnMut(u64)) {
        empty_below(guard, Word(self.root.load(Ordering::Acquire)).content(), wait, &mut old);
    }

    #[cold]
    fn lock_absent_slot<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        index: u64,
        wait: &impl Wait,
    ) -> Result<LockedSlot<'g>, OutOfMemory> {
        let range = self.lock(guard, index..index + 1, wait)?;
        // The slot stays locked; `LockedSlot` unlocks it.
        core::mem::forget(range);
        Ok(LockedSlot::of_locked(self, guard, index))
    }
}

/// Called under the guard under which the content was found.
fn empty_below(guard: &Guard<'_>, content: Content, wait: &impl Wait, old: &mut impl FnMut(u64)) {
    let Content::Child(node) = content else { return };
    for index in 0..node.slot_count() {
        if node.is_leaf() {
            // SAFETY: a leaf; nodes that are found under the guard are retired at the earliest now, so they live as long as it.
            let slot = unsafe { node.leaf_slot(index as u64) };
            empty_slot(guard, slot, wait, old);
        } else {
            // SAFETY: as above.
            let below = unsafe { node.slot(index) };
            empty_below(guard, Word(below.load(Ordering::Acquire)).content(), wait, old);
        }
    }
}

fn empty_slot(guard: &Guard<'_>, slot: &LeafSlot, wait: &impl Wait, old: &mut impl FnMut(u64)) {
    let mut round = 0;
    loop {
        let word = Word(slot.word.load(Ordering::Acquire));
        let is_left_alone = word.holder().is_none() || planted("radix: a slot that is locked is taken to stay empty");
        if word.value() == Some(None) && is_left_alone {
            return;
        }
        if let Some(locked) = slot.try_lock(guard) {
            if let Some(value) = locked.value() {
                locked.change(|| None);
                // Only now: see `LockedRange::fill`.
                old(value);
            }
            return;
        }
        let holder = word.holder().unwrap_or_default() as u16;
        wait.wait(WaitReason::Lock { holder }, round);
        round = round.saturating_add(1);
    }
}
