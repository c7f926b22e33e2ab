//! The array: its root, and reads.

use core::ops::Range;

use epoch::Guard;
use percpu::{Core, OutOfMemory};
use sync::Wait;
use sync::atomic::{AtomicU64, Ordering};

use crate::node::{Content, INDEX_BITS, Node, Word};
use crate::range::{Extent, LockedRange, places};
use crate::slot::{End, LockedSlot};

/// An array of 2^52 slots, all empty at first; see the crate's head.
///
/// The root's word covers everything that no node covers: a child covers its indices, and all beyond are empty.
pub struct RadixArray {
    pub(crate) root: AtomicU64,
}

impl RadixArray {
    /// An array whose slots are all empty; it has no node.
    ///
    /// # Safety
    /// It is used with cores of one arena and guards of one `Epochs` only, whose maintenance frees with `free_retired`. A core
    /// that has locked an array to its end locks nothing more of it before that lock is dropped.
    pub unsafe fn new() -> RadixArray {
        RadixArray { root: AtomicU64::new(Word::new(Content::Uniform(None)).0) }
    }

    /// The value at an index; `None` if it is empty.
    #[inline]
    pub fn get(&self, guard: &Guard<'_>, index: u64) -> Option<u64> {
        loop {
            match self.find(guard, index) {
                End::Uniform(value, _) => return value,
                End::Leaf(slot) => {
                    if let Some(value) = Word(slot.word.load(Ordering::Acquire)).value() {
                        return value;
                    }
                }
            }
        }
    }

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

    /// Calls `each` for every value with the range of indices that hold it, in order; weakly consistent if others write.
    pub fn for_each(&self, guard: &Guard<'_>, mut each: impl FnMut(Range<u64>, u64)) {
        self.for_each_in(guard, 0..1 << INDEX_BITS, &mut each);
    }

    /// [`RadixArray::for_each`] within a range: values reach no further than that, and slots beyond are not looked at.
    pub fn for_each_in(&self, _guard: &Guard<'_>, range: Range<u64>, mut each: impl FnMut(Range<u64>, u64)) {
        let content = Word(self.root.load(Ordering::Acquire)).content();
        let bits = if let Content::Child(node) = content { node.bits() } else { INDEX_BITS };
        // SAFETY: nodes that are found under the guard are retired at the earliest now, so they live as long as it.
        unsafe { visit(content, (0, bits), &range, &mut each) };
    }

    /// Clears the locks that a dead process held, and ends the changes in whose middle it died: readers of those indices
    /// waited for that.
    ///
    /// # Safety
    /// `guard` pins a core that was taken over from a dead owner.
    pub unsafe fn unlock_taken_over(&self, guard: &Guard<'_>) {
        unlock_all(&self.root, guard.core());
    }

    /// Frees all nodes; the values are the caller's.
    ///
    /// # Safety
    /// Nobody uses the array any more, or will until it is made anew.
    pub unsafe fn destroy(&self, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe { free_below(core, Word(self.root.load(Ordering::Acquire)).content()) };
        self.root.store(Word::new(Content::Uniform(None)).0, Ordering::Release);
    }
}

/// # Safety
/// The nodes below live during the call.
unsafe fn visit(
    content: Content,
    (base, bits): (u64, u32),
    range: &Range<u64>,
    each: &mut impl FnMut(Range<u64>, u64),
) {
    match content {
        Content::Uniform(Some(value)) => {
            let part = base.max(range.start)..(base + (1 << bits)).min(range.end);
            if !part.is_empty() {
                each(part, value);
            }
        }
        Content::Uniform(None) | Content::Dead => {}
        Content::Child(node) => {
            for place in places(node, base, range) {
                let below = Word(place.slot.load(Ordering::Acquire)).content();
                // SAFETY: the caller's promise.
                unsafe { visit(below, (place.base, place.bits), range, each) };
            }
        }
    }
}

/// Called by a core that is pinned (`unlock_taken_over`), so that nodes below the slot live.
fn unlock_all(slot: &AtomicU64, core: &Core<'_>) {
    let word = Word(slot.load(Ordering::Acquire));
    if let Content::Child(node) = word.content() {
        for index in 0..node.slot_count() {
            if node.is_leaf() {
                // SAFETY: the node is a leaf, and lives: see above.
                unsafe { node.leaf_slot(index as u64) }.end_change_taken_over(core);
            }
            // SAFETY: the node lives: see above.
            unlock_all(unsafe { node.slot(index) }, core);
        }
    }
    // Of nodes only the root's can be held: by who locked the array to its end.
    if word.holder() == Some(core.index().get()) {
        slot.store(word.unlocked().0, Ordering::Release);
    }
}

/// # Safety
/// Nobody uses the nodes below.
unsafe fn free_below(core: &Core<'_>, content: Content) {
    if let Content::Child(node) = content {
        // SAFETY: nobody uses the node, by the caller's promise; it is freed after all that lie below it, which no other node
        // leads to.
        unsafe {
            for index in 0..node.slot_count() {
                free_below(core, Word(node.slot(index).load(Ordering::Relaxed)).content());
            }
            Node::free(node, core);
        }
    }
}
