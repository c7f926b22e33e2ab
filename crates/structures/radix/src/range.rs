//! Range locks, and changes under them.

use core::ops::Range;

use epoch::Guard;
use percpu::{CoreIndex, OutOfMemory};
use sync::atomic::Ordering;
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::array::{End, RadixArray};
use crate::node::{Content, INDEX_BITS, LeafSlot, Node, Word, slot_bits_for};
use crate::place::{Place, places};
use crate::slot::LockedSlot;

/// A range of indices that the core has locked. Dropping it unlocks them.
pub struct LockedRange<'g> {
    array: &'g RadixArray,
    guard: &'g Guard<'g>,
    range: Range<u64>,
    extent: Extent,
}

/// An index of a locked range, with a slot of its own.
pub struct SlotOfRange<'r>(&'r LeafSlot);

impl SlotOfRange<'_> {
    /// The value.
    pub fn value(&self) -> Option<u64> {
        Word(self.0.word.load(Ordering::Relaxed)).value().flatten()
    }

    /// As [`LockedSlot::mark`].
    ///
    /// # Panics
    /// If the value exceeds `MAX_VALUE`.
    pub fn mark(&self, next: Option<u64>) {
        assert!(next.is_none_or(|value| value <= crate::MAX_VALUE), "a value that a slot can hold");
        self.0.mark(next);
    }
}

/// How far a lock reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// To the end of the range; nodes are made until they cover it.
    Range,
    /// To the end of the array: what no node covers is kept empty by a lock on the root.
    Rest,
    /// As that, and the first index gets a slot of its own.
    SlotAndRest,
}

impl Extent {
    fn is_to_end(self) -> bool {
        self != Extent::Range
    }
}

/// Why a walk that locks stops.
enum Stop {
    /// A node was folded away under us: start again with what is not locked yet, at this index.
    Restart(u64),
    OutOfMemory(u64),
}

impl<'g> LockedRange<'g> {
    pub(crate) fn lock(
        array: &'g RadixArray,
        guard: &'g Guard<'g>,
        range: Range<u64>,
        extent: Extent,
        wait: &impl Wait,
    ) -> Result<LockedRange<'g>, OutOfMemory> {
        // What is locked so far is `range.start..from`.
        let mut from = range.start;
        loop {
            let walk = Walk { array, guard, extent, first: range.start, core: guard.core().index(), wait };
            match walk.lock_from_root(&(from..range.end)) {
                Ok(()) => return Ok(LockedRange { array, guard, range, extent }),
                Err(Stop::Restart(index)) => from = from.max(index),
                Err(Stop::OutOfMemory(index)) => {
                    // Unlocks what is ours: perhaps nothing, perhaps only the root.
                    drop(LockedRange { array, guard, range: range.start..from.max(index), extent });
                    return Err(OutOfMemory);
                }
            }
        }
    }

    /// The slot of the first index, which has one of its own, and the rest.
    pub(crate) fn split_first(mut self) -> (LockedSlot<'g>, LockedRange<'g>) {
        let slot = LockedSlot::of_locked(self.array, self.guard, self.range.start);
        self.range.start += 1;
        (slot, self)
    }

    fn core(&self) -> CoreIndex {
        self.guard.core().index()
    }

    /// Sets one index of the range.
    ///
    /// # Errors
    /// [`OutOfMemory`] without a node, and then the index has its old value.
    ///
    /// # Panics
    /// If the index is not in the range or the value exceeds `MAX_VALUE`.
    pub fn set(&self, index: u64, value: Option<u64>) -> Result<Option<u64>, OutOfMemory> {
        assert!(self.range.contains(&index), "an index of the locked range");
        assert!(value.is_none_or(|value| value <= crate::MAX_VALUE), "a value that a slot can hold");
        let mut place = self.root();
        loop {
            let word = Word(place.slot.load(Ordering::Acquire));
            match word.content() {
                Content::Child(node) => {
                    place = places(node, place.base, &(index..index + 1)).next().expect("the node covers the index");
                }
                Content::Uniform(old) if place.bits == 0 || old == value => {
                    let new = Word::new(Content::Uniform(value)).locked_by(self.core());
                    if old != value {
                        place.slot.store(new.0, Ordering::Release);
                    }
                    return Ok(old);
                }
                Content::Uniform(_) => self.expand(place, word)?,
                Content::Dead => unreachable!("what we have locked is not folded by others"),
            }
        }
    }

    /// Sets the whole range, folds nodes that lie in it, and tells `old` of every value that was there. Readers see it index by
    /// index.
    ///
    /// # Panics
    /// If the value exceeds `MAX_VALUE`, or if there is one for all the rest of an array.
    pub fn fill(&self, value: Option<u64>, mut old: impl FnMut(Range<u64>, u64)) {
        assert!(value.is_none() || self.extent == Extent::Range, "what no node covers stays empty");
        assert!(value.is_none_or(|value| value <= crate::MAX_VALUE), "a value that a slot can hold");
        self.fill_below(self.root(), true, value, &mut old);
    }

    /// Marks that all indices that hold a value, of those that `concerns` says, are to be empty: as [`LockedSlot::mark`].
    pub fn mark_empty(&self, mut concerns: impl FnMut(u64) -> bool) {
        self.for_each_slot(self.root(), &mut |index, slot| {
            let holds = Word(slot.word.load(Ordering::Relaxed)).value().flatten().is_some();
            if holds && concerns(index) {
                slot.mark(None);
            }
        });
    }

    /// Ends all marks in the range, as [`LockedSlot::end_mark`]; `gone` gets what that returns.
    pub fn end_marks(&self, happened: bool, mut gone: impl FnMut(u64)) {
        self.for_each_slot(self.root(), &mut |_, slot| {
            if let Some(value) = slot.end_mark(happened) {
                gone(value);
            }
        });
    }

    /// The slot of an index of the range that has one of its own.
    pub fn slot(&self, index: u64) -> Option<SlotOfRange<'_>> {
        assert!(self.range.contains(&index), "an index of the locked range");
        match self.array.find(self.guard, index) {
            End::Leaf(slot) => Some(SlotOfRange(slot)),
            End::Uniform(..) => None,
        }
    }

    fn for_each_slot(&self, place: Place<'g>, each: &mut impl FnMut(u64, &LeafSlot)) {
        let Content::Child(node) = Word(place.slot.load(Ordering::Acquire)).content() else { return };
        for below in places(node, place.base, &self.range) {
            if node.is_leaf() {
                // SAFETY: the node is a leaf; it lives, since we have a slot of it locked.
                each(below.base, unsafe { node.leaf_slot(below.base) });
            } else {
                self.for_each_slot(below, each);
            }
        }
    }

    fn root(&self) -> Place<'g> {
        let content = Word(self.array.root.load(Ordering::Acquire)).content();
        let bits = if let Content::Child(node) = content { node.bits() } else { INDEX_BITS };
        Place { slot: &self.array.root, base: 0, bits }
    }

    fn fill_below(&self, place: Place<'g>, is_root: bool, value: Option<u64>, old: &mut impl FnMut(Range<u64>, u64)) {
        let word = Word(place.slot.load(Ordering::Acquire));
        match word.content() {
            Content::Uniform(before) => {
                // A locked slot lies in the range: `lock` has expanded all others.
                // Of a process that dies between the two something is lost, and nothing given up that is still there.
                let is_early = planted("radix: what was there is given up before it has gone");
                let mut tell = || before.map_or((), |before| old(place.base..place.end(), before));
                if is_early {
                    tell();
                }
                let new = Word::new(Content::Uniform(value)).locked_by(self.core());
                place.slot.store(new.0, Ordering::Release);
                if !is_early {
                    tell();
                }
            }
            Content::Child(node) => {
                for below in places(node, place.base, &self.range) {
                    self.fill_below(below, false, value, old);
                }
                // The root's node stays: others may be raising the root at the same time.
                if !is_root && place.lies_in(&self.range) {
                    self.fold(place, node, value);
                }
            }
            Content::Dead => unreachable!("what we have locked is not folded by others"),
        }
    }

    /// Replaces a node, all of whose slots we have locked and set to `value`, by that value in the slot above.
    fn fold(&self, place: Place<'g>, node: Node, value: Option<u64>) {
        let new = Word::new(Content::Uniform(value)).locked_by(self.core());
        place.slot.store(new.0, Ordering::Release);
        for below in places(node, place.base, &self.range) {
            // Who waits for the slot, or stands at it, starts again and finds the slot above.
            let dead =
                if planted("radix: folded slots are not dead") { new.unlocked() } else { Word::new(Content::Dead) };
            below.slot.store(dead.0, Ordering::Release);
        }
        let (link, kind) = node.retirement();
        // SAFETY: new readers do not find the node. We have locked all of its slots, as no one else can, so that it is
        // folded, and retired, once.
        unsafe { self.guard.retire(link, kind) };
    }

    fn expand(&self, place: Place<'g>, word: Word) -> Result<(), OutOfMemory> {
        // The slot is ours and lies in the range, so all slots of the node are ours.
        let slot_bits = slot_bits_for(1 << place.bits);
        let node = Node::allocate(self.guard.core(), slot_bits, |_| word)?;
        place.slot.store(Word::new(Content::Child(node)).0, Ordering::Release);
        Ok(())
    }

    fn unlock_below(&self, place: Place<'g>) {
        let word = Word(place.slot.load(Ordering::Acquire));
        match word.content() {
            Content::Child(node) => {
                for below in places(node, place.base, &self.range) {
                    self.unlock_below(below);
                }
                // The root of an array that was locked to its end.
                if word.holder() == Some(self.core().get()) {
                    place.slot.store(word.unlocked().0, Ordering::Release);
                }
            }
            // Release pairs with the acquire of the next lock and of readers.
            _ if word.holder() == Some(self.core().get()) => place.slot.store(word.unlocked().0, Ordering::Release),
            _ => {}
        }
    }
}

impl Drop for LockedRange<'_> {
    fn drop(&mut self) {
        self.unlock_below(self.root());
    }
}

/// A walk that locks.
struct Walk<'g, 'w, W> {
    array: &'g RadixArray,
    guard: &'g Guard<'g>,
    extent: Extent,
    /// Where the whole range begins.
    first: u64,
    core: CoreIndex,
    wait: &'w W,
}

impl<'g, W: Wait> Walk<'g, '_, W> {
    fn lock_from_root(&self, range: &Range<u64>) -> Result<(), Stop> {
        let to_end = self.extent.is_to_end();
        let mut round = 0;
        loop {
            let word = Word(self.array.root.load(Ordering::Acquire));
            match word.content() {
                Content::Child(node) if to_end && (!self.wants_first(range) || range.start >> node.bits() == 0) => {
                    return self.lock_to_end(range);
                }
                Content::Child(node) if range.end <= 1 << node.bits() => {
                    for place in places(node, 0, range) {
                        self.lock_place(place, range)?;
                    }
                    return Ok(());
                }
                // Not before the root can be looked at again: another may make a node of it that does not cover our
                // range.
                _ if word.holder().is_some() => {
                    if planted("radix: an empty root is taken to stay so") && word.child().is_none() {
                        let root = Place { slot: &self.array.root, base: 0, bits: INDEX_BITS };
                        return self.lock_place(root, range);
                    }
                    let holder = word.holder().unwrap_or_default();
                    self.wait.wait(WaitReason::Lock { holder: holder as u16 }, round);
                    round = round.saturating_add(1);
                }
                Content::Uniform(_) if *range == (0..1 << INDEX_BITS) && !self.wants_first(range) => {
                    let locked = word.locked_by(self.core).0;
                    if self.array.root.compare_exchange(word.0, locked, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                        return Ok(());
                    }
                }
                // Higher: the old root becomes the first slot of a new one. Empty: the smallest node that will do.
                _ => {
                    let slot_bits = match word.content() {
                        Content::Child(node) => node.bits(),
                        Content::Uniform(Some(_)) => slot_bits_for(1 << INDEX_BITS),
                        _ => slot_bits_for(if to_end { range.start + 1 } else { range.end }),
                    };
                    self.raise_root(word, slot_bits).map_err(|_| Stop::OutOfMemory(range.start))?;
                }
            }
        }
    }

    /// Whether the range begins with an index that gets a slot of its own.
    fn wants_first(&self, range: &Range<u64>) -> bool {
        self.extent == Extent::SlotAndRest && range.start == self.first
    }

    /// Locks all indices from the start of a range on: the root against growth, then what its node covers. In this order:
    /// of two that lock to the end, from different indices on, one waits here and holds nothing.
    fn lock_to_end(&self, range: &Range<u64>) -> Result<(), Stop> {
        let mut round = 0;
        let node = loop {
            let word = Word(self.array.root.load(Ordering::Acquire));
            let Content::Child(node) = word.content() else {
                unreachable!("the root's node stays");
            };
            // Ours already if a fold made us start again.
            if word.holder() == Some(self.core.get()) {
                break node;
            }
            if let Some(holder) = word.holder() {
                self.wait.wait(WaitReason::Lock { holder: holder as u16 }, round);
                round = round.saturating_add(1);
                continue;
            }
            if planted("radix: cuts do not lock the root") {
                break node;
            }
            let locked = word.locked_by(self.core);
            if self.array.root.compare_exchange(word.0, locked.0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                break node;
            }
        };
        let first_end = if self.wants_first(range) { range.start + 1 } else { range.start };
        for part in [range.start..first_end, first_end..range.end] {
            for place in places(node, 0, &part) {
                self.lock_place(place, &part)?;
            }
        }
        Ok(())
    }

    fn raise_root(&self, word: Word, slot_bits: u32) -> Result<(), OutOfMemory> {
        let other = if word.child().is_some() { Word::new(Content::Uniform(None)) } else { word };
        let node = Node::allocate(self.guard.core(), slot_bits, |index| if index == 0 { word } else { other })?;
        let new = Word::new(Content::Child(node)).0;
        if self.array.root.compare_exchange(word.0, new, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // SAFETY: made above, and the exchange that would have published it has failed.
            unsafe { node.free(self.guard.core()) };
        }
        Ok(())
    }

    fn lock_place(&self, place: Place<'g>, range: &Range<u64>) -> Result<(), Stop> {
        let first = place.base.max(range.start);
        let mut round = 0;
        loop {
            let word = Word(place.slot.load(Ordering::Acquire));
            match word.content() {
                Content::Dead => return Err(Stop::Restart(first)),
                Content::Child(node) => {
                    for below in places(node, place.base, range) {
                        self.lock_place(below, range)?;
                    }
                    return Ok(());
                }
                Content::Uniform(_) => {}
            }
            if let Some(holder) = word.holder() {
                self.wait.wait(WaitReason::Lock { holder: holder as u16 }, round);
                round = round.saturating_add(1);
                continue;
            }
            let locked = word.locked_by(self.core);
            if planted("radix: lock in two steps") {
                place.slot.store(locked.0, Ordering::Release);
            } else if place.slot.compare_exchange(word.0, locked.0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            if place.lies_in(range) {
                return Ok(());
            }
            // Only a part is wanted: a node takes over, with the slots that meet the range born locked.
            return match self.expand_locked(place, locked, range) {
                Ok(()) => Ok(()),
                Err(OutOfMemory) => {
                    place.slot.store(word.0, Ordering::Release);
                    Err(Stop::OutOfMemory(first))
                }
            };
        }
    }

    /// Expands a locked slot until each locked slot lies in the range. On failure nothing has changed.
    fn expand_locked(&self, place: Place<'g>, locked: Word, range: &Range<u64>) -> Result<(), OutOfMemory> {
        let bits = slot_bits_for(1 << place.bits);
        let word_of = |index: usize| {
            let base = place.base + ((index as u64) << bits);
            let meets = range.start < base + (1 << bits) && base < range.end;
            if meets { locked } else { locked.unlocked() }
        };
        let node = Node::allocate(self.guard.core(), bits, word_of)?;
        for below in places(node, place.base, range) {
            if !below.lies_in(range)
                && let Err(error) = self.expand_locked(below, locked, range)
            {
                // SAFETY: the node is not published; nodes below it neither.
                unsafe { free_unpublished(self.guard, node) };
                return Err(error);
            }
        }
        place.slot.store(Word::new(Content::Child(node)).0, Ordering::Release);
        Ok(())
    }
}

/// # Safety
/// No one but the caller has seen the node.
unsafe fn free_unpublished(guard: &Guard<'_>, node: Node) {
    // SAFETY: no one has seen the node, and so none of those that are reached through it.
    unsafe {
        for index in 0..node.slot_count() {
            if let Content::Child(below) = Word(node.slot(index).load(Ordering::Relaxed)).content() {
                free_unpublished(guard, below);
            }
        }
        node.free(guard.core());
    }
}
