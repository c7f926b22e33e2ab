//! What an object embeds: its words, and the generation in which they may be raised.

use percpu::{Core, CoreIndex, CoreLock, CoreLockGuard, Holders, LockRank};
use sync::Wait;
use sync::atomic::{AtomicU64, Ordering, fence};

/// Those of objects with fewer words come first: a core may keep one of each kind, in that order.
const fn rank(words: usize) -> LockRank {
    LockRank(240 + words as u8)
}

/// Words of an object that only rise within a generation. One line.
#[repr(align(64))]
pub struct Maximum<const WORDS: usize> {
    /// Atomic: a multiple of four; one more while a change is marked, three more while a reset is under way.
    generation: AtomicU64,
    /// Guarded by `lock`; read by anybody who then looks at the generation again.
    words: [AtomicU64; WORDS],
    lock: CoreLock,
    /// The cores that may have it in their caches.
    pub(crate) holders: Holders,
}

/// What the words of an object are at least, within a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor<const WORDS: usize> {
    pub(crate) generation: u64,
    /// The words.
    pub words: [u64; WORDS],
}

/// A change to come that is marked, in its generation: until it ends, readers ask whether it has happened. The words may be
/// raised in the meantime. Ends with [`Mark::raise`], [`Mark::reset`], or dropped, as if there had been none.
#[must_use = "dropped, it ends"]
pub struct Mark<'o, const WORDS: usize> {
    object: &'o Maximum<WORDS>,
    /// There until it becomes a reset's.
    lock: Option<CoreLockGuard<'o>>,
}

const MARKED: u64 = 1;
const RESETTING: u64 = 3;

/// A reset that is under way: raises of before no longer count, readers wait. Ends with [`Reset::finish`]; dropped, it
/// leaves the words that there were before.
#[must_use = "a reset must be finished"]
pub struct Reset<'o, const WORDS: usize> {
    object: &'o Maximum<WORDS>,
    /// What the words will be.
    pub(crate) words: [u64; WORDS],
    // Dropped after the generation is even again.
    _lock: CoreLockGuard<'o>,
}

impl<const WORDS: usize> Maximum<WORDS> {
    /// An object whose words are these.
    pub fn new(words: [u64; WORDS]) -> Maximum<WORDS> {
        const { assert!(WORDS >= 1 && WORDS <= 5, "the words share a line with all else") };
        Maximum {
            generation: AtomicU64::new(0),
            words: words.map(AtomicU64::new),
            lock: CoreLock::new(),
            holders: Holders::new(),
        }
    }

    /// Whether who reads asks the cores of a list, and no others.
    pub fn has_list(&self) -> bool {
        self.holders.seen().is_list()
    }

    /// One that no core has in its cache, and that notes from the start who gets it.
    #[cfg(any(loom, shuttle))]
    pub fn listed(words: [u64; WORDS]) -> Maximum<WORDS> {
        Maximum { holders: Holders::listed(), ..Maximum::new(words) }
    }

    /// Words that the object has at least, as of some moment of the call, and the generation in which that is so; none while
    /// a reset is under way. Looks at no core's cache.
    #[inline]
    pub fn floor(&self) -> Option<Floor<WORDS>> {
        let generation = self.settled_generation()?;
        let words = self.applied();
        // Pairs with the fence in `begin_reset`: words of a later generation are seen with it.
        fence(Ordering::Acquire);
        self.is_still(generation).then_some(Floor { generation, words })
    }

    /// [`Maximum::floor`] where changes may be marked: one that has not happened, by what `is_as_before` says of a core, leaves
    /// the words as they are.
    #[inline]
    pub fn floor_beside_marks(&self, is_as_before: impl Fn(CoreIndex) -> bool) -> Option<Floor<WORDS>> {
        self.floor().or_else(|| {
            let generation = self.marked_generation(is_as_before)?;
            let words = self.applied();
            fence(Ordering::Acquire);
            self.is_still(generation).then_some(Floor { generation, words })
        })
    }

    /// The generation, with its mark, of a change that is marked and has not happened.
    #[cold]
    pub(crate) fn marked_generation(&self, is_as_before: impl Fn(CoreIndex) -> bool) -> Option<u64> {
        let generation = self.generation.load(Ordering::Acquire);
        let is_marked = generation & RESETTING == MARKED;
        (is_marked && is_as_before(self.lock.holder()?)).then_some(generation)
    }

    /// Marks a change to come. Until it ends no one else changes the object's own words; see [`Mark`].
    pub fn mark<'o>(&'o self, core: &'o Core<'_>, wait: &impl Wait) -> Mark<'o, WORDS> {
        let lock = self.lock(core, wait);
        self.generation.store(self.generation.load(Ordering::Relaxed) | MARKED, Ordering::Release);
        fence(Ordering::SeqCst);
        Mark { object: self, lock: Some(lock) }
    }

    /// Whether a floor still holds.
    #[inline]
    pub fn still_has(&self, floor: &Floor<WORDS>) -> bool {
        fence(Ordering::Acquire);
        self.is_still(floor.generation)
    }

    /// Sets the words of an object that no one but the caller knows; what it has raised before is forgotten.
    pub fn set_unshared(&self, words: [u64; WORDS]) {
        self.settle(words);
    }

    pub(crate) fn lock<'o>(&'o self, core: &'o Core<'_>, wait: &impl Wait) -> CoreLockGuard<'o> {
        self.lock.lock(core, const { rank(WORDS) }, wait)
    }

    /// The generation in which those who raise now do so.
    #[inline]
    pub(crate) fn raising_generation(&self) -> u64 {
        (self.generation.load(Ordering::Acquire) + 1) & !RESETTING
    }

    /// The generation, if no reset is under way.
    #[inline]
    pub(crate) fn settled_generation(&self) -> Option<u64> {
        // Acquire pairs with the release in `Reset::drop`.
        Some(self.generation.load(Ordering::Acquire)).filter(|generation| generation.is_multiple_of(4))
    }

    #[inline]
    pub(crate) fn is_still(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Relaxed) == generation
    }

    /// The words without what cores cache: exact when all have flushed.
    #[inline]
    pub fn applied(&self) -> [u64; WORDS] {
        core::array::from_fn(|index| self.words[index].load(Ordering::Acquire))
    }

    /// Raises the words if `generation` is the present one. The caller holds the lock.
    pub(crate) fn apply_locked(&self, generation: u64, words: &[u64; WORDS]) {
        if self.raising_generation() != generation {
            return;
        }
        for (mine, word) in self.words.iter().zip(words) {
            if mine.load(Ordering::Relaxed) < *word {
                // Release pairs with the acquire in `applied`.
                mine.store(*word, Ordering::Release);
            }
        }
    }

    pub(crate) fn begin_reset<'o>(&'o self, lock: CoreLockGuard<'o>, words: [u64; WORDS]) -> Reset<'o, WORDS> {
        let generation = self.generation.load(Ordering::Relaxed);
        self.generation.store(generation | RESETTING, Ordering::Relaxed);
        // Orders the odd generation before what the caller changes; pairs with the acquire fence of readers.
        fence(Ordering::SeqCst);
        Reset { object: self, words, _lock: lock }
    }

    /// Completes a reset in whose middle a process died, with these words.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner, and no reset of it exists in a living process.
    pub unsafe fn repair_taken_over(&self, core: &Core<'_>, words: [u64; WORDS]) {
        if self.lock.holder() != Some(core.index()) {
            return;
        }
        match self.generation.load(Ordering::Relaxed) & RESETTING {
            0 => {}
            MARKED => self.end_mark(),
            _ => self.settle(words),
        }
        // SAFETY: the words are whole; the rest is the caller's promise.
        unsafe { self.lock.release_taken_over(core) };
    }

    /// Whether the owner of `core` died while it had a change marked, or reset the words.
    pub fn is_open_of(&self, core: &Core<'_>) -> bool {
        self.lock.holder() == Some(core.index()) && !self.generation.load(Ordering::Relaxed).is_multiple_of(4)
    }

    /// Lets the words be what a change says that has happened, in whose middle the owner of `core` died: raised to these, or
    /// exactly these. [`Maximum::repair_taken_over`] follows.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn complete_taken_over(&self, words: [u64; WORDS], is_exact: bool) {
        if is_exact {
            self.settle(words);
        } else {
            self.apply_locked(self.raising_generation(), &words);
        }
    }

    fn end_mark(&self) {
        // Release pairs with the acquire of who looks at the generation: the words are what they have become.
        self.generation.store(self.generation.load(Ordering::Relaxed) & !RESETTING, Ordering::Release);
    }

    fn settle(&self, words: [u64; WORDS]) {
        for (mine, word) in self.words.iter().zip(words) {
            mine.store(word, Ordering::Relaxed);
        }
        let generation = self.generation.load(Ordering::Relaxed);
        let next = if sync::mutant::planted("maxima: reset keeps its generation") {
            generation & !RESETTING
        } else {
            (generation | RESETTING) + 1
        };
        // Release pairs with the acquire of who looks at the generation.
        self.generation.store(next, Ordering::Release);
    }
}

impl<'o, const WORDS: usize> Mark<'o, WORDS> {
    pub(crate) fn object(&self) -> &'o Maximum<WORDS> {
        self.object
    }

    /// Lets the words be at least these.
    pub fn raise(self, words: [u64; WORDS]) {
        let object = self.object;
        object.apply_locked(object.raising_generation(), &words);
    }

    /// Begins to set the words back: to zeros, unless [`Reset::finish`] says what they are.
    pub fn reset(mut self) -> Reset<'o, WORDS> {
        let lock = self.lock.take().expect("it is there until the end");
        self.object.begin_reset(lock, [0; WORDS])
    }
}

impl<const WORDS: usize> Drop for Mark<'_, WORDS> {
    fn drop(&mut self) {
        if self.lock.is_some() {
            self.object.end_mark();
        }
    }
}

impl<const WORDS: usize> Reset<'_, WORDS> {
    /// Ends the reset: the words are these now, and whatever was raised since it began.
    pub fn finish(mut self, words: [u64; WORDS]) {
        self.words = words;
    }
}

impl<const WORDS: usize> Drop for Reset<'_, WORDS> {
    fn drop(&mut self) {
        self.object.settle(self.words);
    }
}
