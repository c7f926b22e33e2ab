//! The array: its root, the way to an index, walks over all of it.

use core::convert::Infallible;
use core::ops::{ControlFlow, Range};

use epoch::Guard;
use percpu::{Core, CoreIndex};
use sync::atomic::{AtomicU64, Ordering};

use crate::node::{Content, INDEX_BITS, LeafSlot, Node, Word};
use crate::place::places;

/// An array of 2^52 slots, all empty at first; see the crate's head.
///
/// The root's word covers everything that no node covers: a child covers its indices, and all beyond are empty.
pub struct RadixArray {
    pub(crate) root: AtomicU64,
}

/// Where the way to an index ends.
pub(crate) enum End<'g> {
    /// In a slot of its own.
    Leaf(&'g LeafSlot),
    /// In a word that stands for more than this index, with who has that locked.
    Uniform(Option<u64>, Option<usize>),
}

/// What an index has in common with others: its value, and the core that holds it for a while, as in [`End::Uniform`].
pub(crate) type Common = (Option<u64>, Option<usize>);

impl RadixArray {
    /// An array whose slots are all empty; it has no node.
    ///
    /// # Safety
    /// It is used with cores of one arena and guards of one `Epochs` only, whose maintenance frees with `free_retired`. A core
    /// that has locked an array to its end locks nothing more of it before that lock is dropped.
    pub unsafe fn new() -> RadixArray {
        RadixArray { root: AtomicU64::new(Word::new(Content::Uniform(None)).0) }
    }

    #[inline]
    pub(crate) fn find<'g>(&self, guard: &'g Guard<'_>, index: u64) -> End<'g> {
        self.find_with_bits(guard, index).0
    }

    /// [`RadixArray::find`]; and how many bits of the index the indices differ in that end there, too.
    #[inline]
    pub(crate) fn find_with_bits<'g>(&self, guard: &'g Guard<'_>, index: u64) -> (End<'g>, u32) {
        let (leaf, bits) = self.find_leaf(guard, index);
        let end = match leaf {
            // SAFETY: nodes are retired, so they live as long as the guard.
            Ok(leaf) => End::Leaf(unsafe { leaf.leaf_slot(index) }),
            Err((value, holder)) => End::Uniform(value, holder),
        };
        (end, bits)
    }

    /// The leaf in which an index has a slot of its own, or what it has in common with others, as [`End::Uniform`]; and how many
    /// bits of the index the indices differ in that end there, too. The leaf lives as long as the guard.
    #[inline]
    pub(crate) fn find_leaf(&self, _guard: &Guard<'_>, index: u64) -> (Result<Node, Common>, u32) {
        loop {
            let mut bits = INDEX_BITS;
            let mut word = Word(self.root.load(Ordering::Acquire));
            if let Some(node) = word.child().filter(|node| index >> node.bits() != 0) {
                return (Err((None, None)), node.bits());
            }
            while let Some(node) = word.child() {
                bits = node.slot_bits;
                if node.is_leaf() {
                    return (Ok(node), bits);
                }
                // SAFETY: found under the guard, so it lives as long as that.
                let slot = unsafe { node.slot((index >> bits) as usize) };
                word = Word(slot.load(Ordering::Acquire));
            }
            // A slot without a value is dead: its node was folded away.
            if let Some(value) = word.value() {
                return (Err((value.filter(|_| index >> INDEX_BITS == 0), word.holder())), bits);
            }
        }
    }

    /// Calls `each` for every value with the range of indices that hold it, in order; weakly consistent if others write.
    pub fn for_each(&self, guard: &Guard<'_>, mut each: impl FnMut(Range<u64>, u64)) {
        self.for_each_in(guard, 0..1 << INDEX_BITS, &mut each);
    }

    /// [`RadixArray::for_each`] within a range: values reach no further than that, and slots beyond are not looked at.
    pub fn for_each_in(&self, guard: &Guard<'_>, range: Range<u64>, mut each: impl FnMut(Range<u64>, u64)) {
        let ControlFlow::Continue(()) = self.try_for_each_in(guard, range, |part, value| {
            each(part, value);
            ControlFlow::<Infallible>::Continue(())
        });
    }

    /// [`RadixArray::for_each_in`] until `each` breaks: slots after that are not looked at either.
    pub fn try_for_each_in<B>(
        &self,
        guard: &Guard<'_>,
        range: Range<u64>,
        mut each: impl FnMut(Range<u64>, u64) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.try_for_each_word(guard, &range, |part, word| match word.value().flatten() {
            Some(value) => each(part, value),
            None => ControlFlow::Continue(()),
        })
    }

    /// Calls `each` for every word that is no way to a node, with the part of the range that it stands for, until `each` breaks.
    pub(crate) fn try_for_each_word<B>(
        &self,
        _guard: &Guard<'_>,
        range: &Range<u64>,
        mut each: impl FnMut(Range<u64>, Word) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let word = Word(self.root.load(Ordering::Acquire));
        let bits = word.child().map_or(INDEX_BITS, Node::bits);
        // SAFETY: nodes that are found under the guard are retired at the earliest now, so they live as long as it.
        unsafe { visit(word, (0, bits), range, &mut each) }
    }

    /// Clears the locks that a dead process held, and ends the changes in whose middle it died: readers of those indices
    /// waited for that.
    ///
    /// # Safety
    /// `guard` pins a core that was taken over from a dead owner.
    pub unsafe fn unlock_taken_over(&self, guard: &Guard<'_>) {
        // SAFETY: the caller's promise.
        unsafe { self.end_taken_over(guard, false, |_| ()) };
    }

    /// [`RadixArray::unlock_taken_over`] where the dead process may have marked changes: those have `happened`, or never will.
    /// `gone` gets the values that are in no slot any more, or do not come into one.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn end_taken_over(&self, guard: &Guard<'_>, happened: bool, mut gone: impl FnMut(u64)) {
        unlock_all(&self.root, guard.core(), &mut |slot| {
            if let Some(value) = slot.end_mark(happened) {
                gone(value);
            }
        });
    }

    /// Tells `each` the core that holds a lock of the array, lock by lock: for who looks whether all is whole.
    pub fn for_each_held(&self, guard: &Guard<'_>, mut each: impl FnMut(CoreIndex)) {
        let mut tell = |word: Word| word.holder().and_then(CoreIndex::new).into_iter().for_each(&mut each);
        let root = Word(self.root.load(Ordering::Acquire));
        // Of who has locked the array to its end.
        if root.child().is_some() {
            tell(root);
        }
        let ControlFlow::Continue(()) = self.try_for_each_word(guard, &(0..1 << INDEX_BITS), |_, word| {
            tell(word);
            ControlFlow::<Infallible>::Continue(())
        });
    }

    /// Frees all nodes; the values are the caller's.
    ///
    /// # Safety
    /// No one uses the array any more, or will until it is made again.
    pub unsafe fn destroy(&self, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe { free_below(core, Word(self.root.load(Ordering::Acquire)).content()) };
        self.root.store(Word::new(Content::Uniform(None)).0, Ordering::Release);
    }
}

/// # Safety
/// The nodes below live during the call.
unsafe fn visit<B>(
    word: Word,
    (base, bits): (u64, u32),
    range: &Range<u64>,
    each: &mut impl FnMut(Range<u64>, Word) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Some(node) = word.child() else {
        let part = base.max(range.start)..(base + (1 << bits)).min(range.end);
        return if part.is_empty() { ControlFlow::Continue(()) } else { each(part, word) };
    };
    places(node, base, range).try_for_each(|place| {
        let below = Word(place.slot.load(Ordering::Acquire));
        // SAFETY: the caller's promise.
        unsafe { visit(below, (place.base, place.bits), range, each) }
    })
}

/// Called by a core that is pinned (`unlock_taken_over`), so that nodes below the slot live.
fn unlock_all(slot: &AtomicU64, core: &Core<'_>, end_mark: &mut impl FnMut(&LeafSlot)) {
    let word = Word(slot.load(Ordering::Acquire));
    if let Content::Child(node) = word.content() {
        for index in 0..node.slot_count() {
            if node.is_leaf() {
                // SAFETY: the node is a leaf, and lives: see above.
                unsafe { end_change_taken_over(node.leaf_slot(index as u64), core, end_mark) };
            }
            // SAFETY: the node lives: see above.
            unlock_all(unsafe { node.slot(index) }, core, end_mark);
        }
    }
    // Of nodes only the root's can be held: by who locked the array to its end.
    if word.holder() == Some(core.index().get()) {
        slot.store(word.unlocked().0, Ordering::Release);
    }
}

/// Ends the change in whose middle the holder of the lock died, whose place the core has taken.
fn end_change_taken_over(slot: &LeafSlot, core: &Core<'_>, end_mark: &mut impl FnMut(&LeafSlot)) {
    if Word(slot.word.load(Ordering::Acquire)).holder() == Some(core.index().get()) {
        end_mark(slot);
        slot.sequence.end();
    }
}

/// # Safety
/// No one uses the nodes below.
unsafe fn free_below(core: &Core<'_>, content: Content) {
    if let Content::Child(node) = content {
        // SAFETY: no one uses the node, by the caller's promise; it is freed after all that lie below it, which no
        // other node leads to.
        unsafe {
            for index in 0..node.slot_count() {
                free_below(core, Word(node.slot(index).load(Ordering::Relaxed)).content());
            }
            Node::free(node, core);
        }
    }
}
