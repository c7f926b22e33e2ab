//! What an object embeds to be counted, and weak references to it.

use core::ptr::{self, NonNull};

use sync::OwnWord;
use sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

/// Says what kind of object a counted one is, so that any process can free it. Meaning is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedKind(pub u8);

/// The count is kept above these bits of the word.
const STATE_BITS: u32 = 2;
const QUEUED: i64 = 1;
const DIRTY: i64 = 2;
const STATE_MASK: i64 = QUEUED | DIRTY;

/// The count of an object, embedded in it. The true count is this one plus the deltas that cores cache.
#[derive(Debug)]
pub struct Counted {
    /// Atomic: count times 4, plus "is on a review queue", plus "was touched since".
    word: AtomicI64,
    /// Atomic: the one weak reference, or null.
    pub(crate) weak: AtomicPtr<WeakRef>,
    // Owned by the review queue on which the object is; the word's acquire-release exchanges hand them over.
    pub(crate) next: OwnWord<*mut Counted>,
    pub(crate) queued_in: OwnWord<u64>,
    /// Immutable.
    kind: CountedKind,
}

/// What applying a delta or a review found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing to do.
    Alive,
    /// The count became zero: queue the object.
    BecameZero,
    /// Zero, but touched since it was queued: queue it again.
    ZeroButDirty,
    /// Zero for two epochs.
    Dead,
}

impl Counted {
    /// A count that starts at `count`.
    pub fn new(count: i64, kind: CountedKind) -> Counted {
        Counted {
            word: AtomicI64::new(count << STATE_BITS),
            weak: AtomicPtr::new(ptr::null_mut()),
            next: OwnWord::new(ptr::null_mut()),
            queued_in: OwnWord::new(0),
            kind,
        }
    }

    /// What was given at creation.
    #[inline]
    pub fn kind(&self) -> CountedKind {
        self.kind
    }

    /// The count without the deltas that cores cache: exact when all have maintained.
    #[inline]
    pub fn applied(&self) -> i64 {
        self.word.load(Ordering::Acquire) >> STATE_BITS
    }

    pub(crate) fn apply(&self, delta: i64) -> Verdict {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let count = (word >> STATE_BITS) + delta;
            let queued = word & QUEUED != 0;
            let state = match (queued, count) {
                (true, _) => QUEUED | DIRTY,
                (false, 0) => QUEUED,
                (false, _) => 0,
            };
            // Acquire and release hand the queue's cells from the core that unqueued the object to the one that queues.
            match self.word.compare_exchange(word, count << STATE_BITS | state, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if !queued && count == 0 => return Verdict::BecameZero,
                Ok(_) => return Verdict::Alive,
                Err(seen) => word = seen,
            }
        }
    }

    /// Decides about an object whose time on the queue is over.
    pub(crate) fn review(&self) -> Verdict {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let (state, verdict) = if word >> STATE_BITS != 0 {
                (0, Verdict::Alive)
            } else if word & DIRTY != 0 && !sync::mutant::planted("refcache: dirt is ignored") {
                (QUEUED, Verdict::ZeroButDirty)
            } else {
                return if self.kill_weak() { Verdict::Dead } else { Verdict::ZeroButDirty };
            };
            let new = word & !STATE_MASK | state;
            match self.word.compare_exchange(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return verdict,
                Err(seen) => word = seen,
            }
        }
    }

    /// Tells the weak reference that its target is under review.
    pub(crate) fn mark_weak(&self) {
        if let Some(weak) = NonNull::new(self.weak.load(Ordering::Acquire)) {
            // SAFETY: a weak reference outlives its registration, by the contract of `attach_weak`.
            unsafe { weak.as_ref() }.word.fetch_or(WeakRef::DYING, Ordering::AcqRel);
        }
    }

    fn kill_weak(&self) -> bool {
        let Some(weak) = NonNull::new(self.weak.load(Ordering::Acquire)) else {
            return true;
        };
        // SAFETY: as in `mark_weak`.
        let word = unsafe { &weak.as_ref().word };
        if sync::mutant::planted("refcache: used weak references are ignored") {
            word.store(0, Ordering::Release);
            return true;
        }
        let expected = ptr::from_ref(self) as usize as u64 | WeakRef::DYING;
        word.compare_exchange(expected, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// A reference that does not keep its target alive, but can be turned into one that does while the target lives.
#[derive(Debug)]
pub struct WeakRef {
    /// Atomic: address of the target, or zero once it is dead; bit 0 while it is under review.
    word: AtomicU64,
}

impl WeakRef {
    const DYING: u64 = 1;

    /// A reference to nothing.
    pub fn new() -> WeakRef {
        WeakRef { word: AtomicU64::new(0) }
    }

    /// Makes this the weak reference of `target`, which must not have one yet and must be held by the caller.
    ///
    /// # Safety
    /// `target` and `self` stay at their addresses, and `self` lives until `target` is dead.
    pub unsafe fn attach(&self, target: &Counted) {
        self.word.store(ptr::from_ref(target) as usize as u64, Ordering::Release);
        target.weak.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
    }

    /// The target, kept from being freed at the next review; `None` if it is dead.
    pub(crate) fn revive(&self) -> Option<NonNull<Counted>> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let target = NonNull::new((word & !WeakRef::DYING) as usize as *mut Counted)?;
            if word & WeakRef::DYING == 0 {
                return Some(target);
            }
            match self.word.compare_exchange(word, word & !WeakRef::DYING, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(target),
                Err(seen) => word = seen,
            }
        }
    }
}

impl Default for WeakRef {
    fn default() -> WeakRef {
        WeakRef::new()
    }
}
