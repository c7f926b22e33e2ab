//! One index: a consistent look without a lock, and a lock that allows changes of what the value stands for.

use core::convert::Infallible;

use epoch::Guard;
use percpu::{Core, CoreIndex, OutOfMemory};
use sync::atomic::Ordering;
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::array::RadixArray;
use crate::node::{Content, INDEX_BITS, LeafSlot, Word};

/// An index that the core has locked. Dropping it unlocks it.
pub struct LockedSlot<'g> {
    slot: &'g LeafSlot,
}

/// Where the way to an index ends.
pub(crate) enum End<'g> {
    /// In a slot of its own.
    Leaf(&'g LeafSlot),
    /// In a word that stands for more than this index, with who has that locked.
    Uniform(Option<u64>, Option<usize>),
}

impl RadixArray {
    #[inline]
    pub(crate) fn find<'g>(&self, _guard: &'g Guard<'_>, index: u64) -> End<'g> {
        loop {
            let mut word = Word(self.root.load(Ordering::Acquire));
            if word.child().is_some_and(|node| index >> node.bits() != 0) {
                return End::Uniform(None, None);
            }
            while let Some(node) = word.child() {
                if node.is_leaf() {
                    // SAFETY: nodes are retired, so they live as long as the guard.
                    return End::Leaf(unsafe { node.leaf_slot(index) });
                }
                // SAFETY: found under the guard, so it lives as long as that.
                let slot = unsafe { node.slot((index >> node.slot_bits) as usize) };
                word = Word(slot.load(Ordering::Acquire));
            }
            // A slot without a value is dead: its node was folded away.
            if let Some(value) = word.value() {
                return End::Uniform(value.filter(|_| index >> INDEX_BITS == 0), word.holder());
            }
        }
    }

    /// Lets `look` look at what the value at an index stands for, again and again until nobody has changed it meanwhile.
    /// Writes nothing. `look` may see the middle of a change; what it returned then is dropped.
    #[inline]
    pub fn read<'g, R>(
        &'g self,
        guard: &'g Guard<'g>,
        index: u64,
        wait: &impl Wait,
        mut look: impl FnMut(Option<u64>) -> R,
    ) -> R {
        let mut round = 0;
        loop {
            match self.find(guard, index) {
                End::Uniform(value, _) => return look(value),
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
                    }
                }
            }
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }

    /// The value at an index at a moment at which nobody has it locked. Writes nothing.
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

    /// Whether an index from `start` on holds a value. Indices are looked at one after the other; each as
    /// [`RadixArray::read`] would: of one that is about to get its first value, the end of the change is awaited.
    pub fn any_from(&self, _guard: &Guard<'_>, start: u64, wait: &impl Wait) -> bool {
        let content = Word(self.root.load(Ordering::Acquire)).content();
        let bits = if let Content::Child(node) = content { node.bits() } else { INDEX_BITS };
        // SAFETY: nodes that are found under the guard are retired at the earliest now, so they live as long as it.
        unsafe { any_below(content, 0, bits, start, wait) }
    }

    /// The first index from `start` on that holds no value; looks at no index behind it.
    pub fn first_empty(&self, guard: &Guard<'_>, start: u64) -> u64 {
        (start..).find(|index| self.get(guard, *index).is_none()).unwrap_or(1 << INDEX_BITS)
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

    /// Locks one index that has a slot of its own and is not locked; waits for nobody.
    pub fn try_lock_slot<'g>(&'g self, guard: &'g Guard<'g>, index: u64) -> Option<LockedSlot<'g>> {
        match self.find(guard, index) {
            End::Leaf(slot) => slot.try_lock(guard),
            End::Uniform(..) => None,
        }
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

/// # Safety
/// The nodes below live during the call.
unsafe fn any_below(content: Content, base: u64, bits: u32, start: u64, wait: &impl Wait) -> bool {
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
                        return node.leaf_slot(index as u64).holds_value(wait);
                    }
                    let below = Word(node.slot(index).load(Ordering::Acquire)).content();
                    any_below(below, base + ((index as u64) << bits), bits, start, wait)
                }
            })
        }
    }
}

impl LeafSlot {
    #[inline]
    fn try_lock<'g>(&'g self, guard: &Guard<'_>) -> Option<LockedSlot<'g>> {
        let word = Word(self.word.load(Ordering::Relaxed));
        if word.value().is_none() || word.holder().is_some() {
            return None;
        }
        let locked = word.locked_by(guard.core().index());
        // Acquire pairs with the release of whoever held the lock before.
        let taken = self.word.compare_exchange(word.0, locked.0, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok().then(|| LockedSlot { slot: self })
    }

    fn holds_value(&self, wait: &impl Wait) -> bool {
        let mut round = 0;
        loop {
            // In this order: whoever has seen something of a change finds it under way, or its value.
            let is_changing = self.sequence.now().is_changing() && !planted("radix: a first value is not awaited");
            match Word(self.word.load(Ordering::Acquire)).value() {
                Some(None) if is_changing => wait.wait(WaitReason::Operation, round),
                value => return value.flatten().is_some(),
            }
            round = round.saturating_add(1);
        }
    }

    /// Ends the change in whose middle the holder of the lock died, whose place the core has taken.
    pub(crate) fn end_change_taken_over(&self, core: &Core<'_>) {
        if Word(self.word.load(Ordering::Acquire)).holder() == Some(core.index().get()) {
            self.sequence.end();
        }
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
