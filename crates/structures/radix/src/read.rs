//! Reads of single indices: at once, consistent with what a value stands for, or settled. None of them writes.

use core::ops::{ControlFlow, Range};

use epoch::Guard;
use percpu::CoreIndex;
use sync::atomic::{Ordering, fence};
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::array::{End, RadixArray};
use crate::node::{Content, INDEX_BITS, LeafSlot, Word};

impl RadixArray {
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

    /// Lets `look` look at what the value at an index stands for, again and again until no one has changed it in the
    /// meantime. Writes nothing. `look` may see the middle of a change; what it returned then is dropped.
    #[inline]
    pub fn read<'g, R>(
        &'g self,
        guard: &'g Guard<'g>,
        index: u64,
        wait: &impl Wait,
        look: impl FnMut(Option<u64>) -> R,
    ) -> R {
        self.read_beside_marks(guard, index, wait, |_| false, look)
    }

    /// [`RadixArray::read`] where changes may be marked: `is_as_before` tells whether what a core has marked has not happened. If
    /// so, what is marked is as it was; else the end of the mark is awaited.
    #[inline]
    pub fn read_beside_marks<'g, R>(
        &'g self,
        guard: &'g Guard<'g>,
        index: u64,
        wait: &impl Wait,
        is_as_before: impl Fn(CoreIndex) -> bool,
        mut look: impl FnMut(Option<u64>) -> R,
    ) -> R {
        let mut round = 0;
        loop {
            match self.find(guard, index) {
                End::Uniform(value, _) => {
                    let result = look(value);
                    // Pairs with the release of the one that gives the index a slot of its own: if `look` has seen what
                    // changed under that, we find the slot.
                    fence(Ordering::Acquire);
                    let looks_once = planted("radix: an index without a slot is looked at once");
                    if looks_once || matches!(self.find(guard, index), End::Uniform(same, _) if same == value) {
                        return result;
                    }
                }
                End::Leaf(slot) => {
                    let moment = slot.sequence.now();
                    let word = Word(slot.word.load(Ordering::Acquire));
                    if !moment.is_changing()
                        && let Some(value) = word.value()
                    {
                        let result = look(value);
                        let is_same = slot.sequence.is_still(moment);
                        // A fold or `set` changes the value without the sequence.
                        if is_same && Word(slot.word.load(Ordering::Relaxed)).unlocked() == word.unlocked() {
                            return result;
                        }
                    } else if let Some(result) = look_at_marked(slot, &is_as_before, &mut look) {
                        return result;
                    }
                }
            }
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }

    /// The value at an index at a moment at which no one has it locked. Writes nothing.
    pub fn settled(&self, guard: &Guard<'_>, index: u64, wait: &impl Wait) -> Option<u64> {
        let mut round = 0;
        loop {
            match self.try_settled(guard, index) {
                Ok(value) => return value,
                Err(holder) => wait.wait(WaitReason::Lock { holder: holder.get() as u16 }, round),
            }
            round = round.saturating_add(1);
        }
    }

    /// [`RadixArray::settled`] without waiting; tells who has the index locked.
    ///
    /// # Errors
    /// The core that has the index locked.
    pub fn try_settled(&self, guard: &Guard<'_>, index: u64) -> Result<Option<u64>, CoreIndex> {
        loop {
            let (value, holder) = match self.find(guard, index) {
                End::Uniform(value, holder) => (Some(value), holder),
                End::Leaf(slot) => {
                    let word = Word(slot.word.load(Ordering::Acquire));
                    (word.value(), word.holder())
                }
            };
            // Else the slot was folded away.
            if let Some(value) = value {
                return holder.and_then(CoreIndex::new).map_or(Ok(value), Err);
            }
        }
    }

    /// [`RadixArray::for_each_in`], each index at a moment at which no one has it locked. Writes nothing.
    pub fn for_each_settled_in(
        &self,
        guard: &Guard<'_>,
        range: Range<u64>,
        wait: &impl Wait,
        mut each: impl FnMut(Range<u64>, u64),
    ) {
        let (mut from, mut round) = (range.start, 0);
        loop {
            let walk =
                self.try_for_each_word(guard, &(from..range.end), |part, word| match (word.value(), word.holder()) {
                    (Some(value), None) => {
                        from = part.end;
                        if let Some(value) = value {
                            each(part, value);
                        }
                        ControlFlow::Continue(())
                    }
                    (_, holder) => ControlFlow::Break(holder),
                });
            match walk {
                ControlFlow::Continue(()) => return,
                ControlFlow::Break(Some(holder)) => wait.wait(WaitReason::Lock { holder: holder as u16 }, round),
                // The node was folded away.
                ControlFlow::Break(None) => {}
            }
            round = round.saturating_add(1);
        }
    }

    /// Whether an index from `start` on holds a value. Indices are looked at one after the other; each as
    /// [`RadixArray::read_beside_marks`] would: of one that is about to get its first value, the end of the change is awaited.
    pub fn any_from(
        &self,
        _guard: &Guard<'_>,
        start: u64,
        wait: &impl Wait,
        is_as_before: impl Fn(CoreIndex) -> bool,
    ) -> bool {
        let content = Word(self.root.load(Ordering::Acquire)).content();
        let bits = if let Content::Child(node) = content { node.bits() } else { INDEX_BITS };
        // SAFETY: nodes that are found under the guard are retired at the earliest now, so they live as long as it.
        unsafe { any_below(content, (0, bits), start, wait, &is_as_before) }
    }

    /// The first index from `start` on that holds no value; looks at no index after it, and once at indices that share
    /// a word.
    pub fn first_empty(&self, guard: &Guard<'_>, start: u64) -> u64 {
        let mut index = start;
        while index < 1 << INDEX_BITS {
            match self.find_leaf(guard, index) {
                (Ok(leaf), _) => {
                    // SAFETY: nodes are retired, so the leaf lives as long as the guard.
                    for slot in unsafe { leaf.leaf_slots_from(index) } {
                        match Word(slot.word.load(Ordering::Acquire)).value() {
                            Some(Some(_)) => index += 1,
                            Some(None) => return index,
                            // The leaf was folded away.
                            None => break,
                        }
                    }
                }
                (Err((Some(_), _)), bits) => index = ((index >> bits) + 1) << bits,
                (Err((None, _)), _) => return index,
            }
        }
        index
    }
}

/// # Safety
/// The nodes below live during the call.
unsafe fn any_below(
    content: Content,
    (base, bits): (u64, u32),
    start: u64,
    wait: &impl Wait,
    is_as_before: &impl Fn(CoreIndex) -> bool,
) -> bool {
    if base + ((1 << bits) - 1) < start {
        return false;
    }
    match content {
        Content::Uniform(value) => value.is_some(),
        Content::Dead => false,
        Content::Child(node) => {
            let bits = node.slot_bits;
            // Slots before the one of `start` are not touched.
            let first = (start.saturating_sub(base) >> bits) as usize;
            (first..node.slot_count()).any(|index| {
                // SAFETY: the caller's promise.
                unsafe {
                    if node.is_leaf() {
                        return holds_value(node.leaf_slot(index as u64), wait, is_as_before);
                    }
                    let below = Word(node.slot(index).load(Ordering::Acquire)).content();
                    any_below(below, (base + ((index as u64) << bits), bits), start, wait, is_as_before)
                }
            })
        }
    }
}

fn holds_value(slot: &LeafSlot, wait: &impl Wait, is_as_before: &impl Fn(CoreIndex) -> bool) -> bool {
    let mut round = 0;
    loop {
        // In this order: one that has seen something of a change finds it under way, or its value.
        let is_changing = slot.sequence.now().is_changing() && !planted("radix: a first value is not awaited");
        // Acquire pairs with the end of a mark: who finds none finds what has become of the value.
        let is_marked = slot.next.load(Ordering::Acquire) != 0;
        let value = Word(slot.word.load(Ordering::Acquire)).value();
        if !is_changing {
            return value.flatten().is_some();
        }
        match look_at_marked(slot, is_as_before, &mut |value| value.is_some()) {
            Some(holds) => return holds,
            // A change of what the value stands for.
            None if !is_marked && value != Some(None) => return value.flatten().is_some(),
            None => wait.wait(WaitReason::Operation, round),
        }
        round = round.saturating_add(1);
    }
}

/// What `look` sees of a slot in which a change is marked that has not happened; nothing if it has, or there is none.
#[cold]
fn look_at_marked<R>(
    slot: &LeafSlot,
    is_as_before: &impl Fn(CoreIndex) -> bool,
    look: &mut impl FnMut(Option<u64>) -> R,
) -> Option<R> {
    let moment = slot.sequence.now();
    let word = Word(slot.word.load(Ordering::Acquire));
    let value = word.value()?;
    let holder = word.holder().and_then(CoreIndex::new)?;
    if !moment.is_changing() || slot.next.load(Ordering::Relaxed) == 0 || !is_as_before(holder) {
        return None;
    }
    let result = look(value);
    // Whatever happens from here on: what is marked is touched by no one before its mark ends.
    fence(Ordering::Acquire);
    let is_same = slot.sequence.now() == moment;
    (is_same && Word(slot.word.load(Ordering::Relaxed)) == word).then_some(result)
}
