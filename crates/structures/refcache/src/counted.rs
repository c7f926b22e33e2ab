//! What an object embeds to be counted, and weak references to it.

use core::ptr::{self, NonNull};

use commit::Tag;
use percpu::{CacheLine, Holders};
use sync::OwnWord;
use sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

/// Says what kind of object a counted one is, so that any process can free it. Meaning is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedKind(pub u8);

impl CountedKind {
    /// With this bit an object is freed an epoch later: each core has maintained twice since its count was seen to be zero. For
    /// objects to which caches lead that are emptied at every second maintenance.
    pub const LATE: u8 = 0x80;

    pub(crate) fn is_late(self) -> bool {
        self.0 & CountedKind::LATE != 0 && !sync::mutant::planted("refcache: late kinds are reviewed with the others")
    }
}

/// The count is kept above these bits of the word.
const STATE_BITS: u32 = 3;
const QUEUED: i64 = 1;
const DIRTY: i64 = 2;
/// A delta in the object waits for its operation.
const PENDING: i64 = 4;

/// The count of an object, embedded in it. The true count is this one plus the deltas that cores cache.
#[derive(Debug)]
pub struct Counted {
    /// Atomic: count times 8, plus "is on a review queue", "was touched since", "has a pending delta".
    word: AtomicI64,
    /// Atomic: the operation that has claimed the pending delta, or zero.
    pending_tag: AtomicU64,
    /// Of the claim's core, given by the word.
    pending_delta: AtomicI64,
    /// Atomic: the one weak reference, or null.
    pub(crate) weak: AtomicPtr<WeakRef>,
    // Owned by the review queue on which the object is; the word's acquire-release exchanges hand them over.
    pub(crate) next: OwnWord<*mut Counted>,
    pub(crate) queued_in: OwnWord<u64>,
    /// Immutable.
    kind: CountedKind,
}

/// A count for which an exact reading asks as many cores as have changed it lately, however many there are.
/// ([`percpu::Holders`] has how.) It touches the object's line where a core's first change of a [`Counted`] touches none.
#[repr(C)]
#[derive(Debug)]
pub struct Noted {
    // First, so that its address is the whole's.
    counted: Counted,
    pub(crate) holders: Holders,
}

impl Noted {
    /// A count that starts at `count`.
    pub fn new(count: i64, kind: CountedKind) -> Noted {
        Noted { counted: Counted::new(count, kind), holders: Holders::new() }
    }

    /// One of which no core has a delta, that notes from the start who gets one.
    #[cfg(any(loom, shuttle))]
    pub fn listed(count: i64, kind: CountedKind) -> Noted {
        Noted { holders: Holders::listed(), ..Noted::new(count, kind) }
    }

    /// See [`Counted::applied`].
    #[inline]
    pub fn applied(&self) -> i64 {
        self.counted.applied()
    }

    /// Whether an exact reading asks the cores of a list, and no others.
    pub fn has_list(&self) -> bool {
        self.holders.seen().is_list()
    }
}

/// What has a count.
pub trait Count: sealed::Sealed {
    #[doc(hidden)]
    fn counted(&self) -> &Counted;
    #[doc(hidden)]
    fn noted(&self) -> Option<&Noted>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Counted {}
    impl Sealed for super::Noted {}
    impl<C: Sealed> Sealed for super::CacheLine<C> {}
    impl<C: Sealed> Sealed for &C {}
}

impl Count for Counted {
    #[inline(always)]
    fn counted(&self) -> &Counted {
        self
    }

    #[inline(always)]
    fn noted(&self) -> Option<&Noted> {
        None
    }
}

impl Count for Noted {
    #[inline(always)]
    fn counted(&self) -> &Counted {
        &self.counted
    }

    #[inline(always)]
    fn noted(&self) -> Option<&Noted> {
        Some(self)
    }
}

impl<C: Count> Count for &C {
    #[inline(always)]
    fn counted(&self) -> &Counted {
        (**self).counted()
    }

    #[inline(always)]
    fn noted(&self) -> Option<&Noted> {
        (**self).noted()
    }
}

impl<C: Count> Count for CacheLine<C> {
    #[inline(always)]
    fn counted(&self) -> &Counted {
        self.0.counted()
    }

    #[inline(always)]
    fn noted(&self) -> Option<&Noted> {
        self.0.noted()
    }
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
            pending_tag: AtomicU64::new(0),
            pending_delta: AtomicI64::new(0),
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

    /// [`Counted::applied`], and whether a delta waits next to it.
    #[inline]
    pub(crate) fn applied_and_pending(&self) -> (i64, bool) {
        let word = self.word.load(Ordering::Acquire);
        (word >> STATE_BITS, word & PENDING != 0)
    }

    /// Adds a delta that some core has cached.
    pub(crate) fn apply(&self, delta: i64) -> Verdict {
        self.add(delta, PENDING)
    }

    /// Adds a delta and keeps these bits of the word's state.
    fn add(&self, delta: i64, kept: i64) -> Verdict {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let count = (word >> STATE_BITS) + delta;
            let queued = word & QUEUED != 0;
            let state = match (queued, count) {
                (true, _) => QUEUED | DIRTY,
                (false, 0) => QUEUED,
                (false, _) => 0,
            };
            let new = count << STATE_BITS | state | word & kept;
            // Acquire and release hand the queue's cells from the core that unqueued the object to the one that queues.
            match self.word.compare_exchange(word, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if !queued && count == 0 => return Verdict::BecameZero,
                Ok(_) => return Verdict::Alive,
                Err(seen) => word = seen,
            }
        }
    }

    /// Takes the place for a pending delta, or says whose it is.
    pub(crate) fn claim(&self, tag: Tag) -> Result<(), Tag> {
        if sync::mutant::planted("refcache: a count is claimed in two steps") && self.claimed_by().is_none() {
            self.pending_tag.store(tag.to_bits(), Ordering::Release);
            return Ok(());
        }
        // Acquire pairs with the release in `give_up_claim`.
        let claimed = self.pending_tag.compare_exchange(0, tag.to_bits(), Ordering::Acquire, Ordering::Relaxed);
        claimed.map(drop).map_err(|holder| Tag::from_bits(holder).expect("not zero"))
    }

    /// The operation that has the place.
    pub(crate) fn claimed_by(&self) -> Option<Tag> {
        Tag::from_bits(self.pending_tag.load(Ordering::Acquire))
    }

    /// The delta that waits, for one that saw that there is one.
    pub(crate) fn pending_delta(&self) -> i64 {
        self.pending_delta.load(Ordering::Relaxed)
    }

    /// With the place claimed: lets the delta wait, also if it is zero.
    pub(crate) fn set_pending(&self, delta: i64) {
        self.pending_delta.store(delta, Ordering::Relaxed);
        // Release: who sees that a delta waits sees which, and whose.
        if self.word.load(Ordering::Relaxed) & PENDING == 0 {
            self.word.fetch_add(PENDING, Ordering::Release);
        }
    }

    /// With the place claimed: turns the delta that waits, if any, into a part of the count if its operation has happened,
    /// else forgets it. One store does it, so that a death does not lose or double it.
    pub(crate) fn end_pending(&self, happened: bool) -> Verdict {
        if self.word.load(Ordering::Relaxed) & PENDING == 0 {
            return Verdict::Alive;
        }
        if !happened {
            self.word.fetch_sub(PENDING, Ordering::AcqRel);
            return Verdict::Alive;
        }
        self.add(self.pending_delta(), 0)
    }

    /// Gives the place free.
    pub(crate) fn give_up_claim(&self) {
        self.pending_tag.store(0, Ordering::Release);
    }

    /// Decides about an object whose time on the queue is over.
    pub(crate) fn review(&self) -> Verdict {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let (state, verdict) = if word >> STATE_BITS != 0 {
                (0, Verdict::Alive)
            } else if word & (DIRTY | PENDING) != 0 && !sync::mutant::planted("refcache: dirt is ignored") {
                (QUEUED, Verdict::ZeroButDirty)
            } else {
                return if self.kill_weak() { Verdict::Dead } else { Verdict::ZeroButDirty };
            };
            let new = word & !(QUEUED | DIRTY) | state;
            match self.word.compare_exchange(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return verdict,
                Err(seen) => word = seen,
            }
        }
    }

    /// Tells the weak reference that its target is under review.
    pub(crate) fn mark_weak(&self) {
        if let Some(weak) = NonNull::new(self.weak.load(Ordering::Acquire)) {
            // SAFETY: a weak reference outlives its registration, by the promise to `attach`.
            unsafe { weak.as_ref() }.word.fetch_or(WeakRef::DYING, Ordering::AcqRel);
        }
    }

    fn kill_weak(&self) -> bool {
        let Some(weak) = NonNull::new(self.weak.load(Ordering::Acquire)) else {
            return true;
        };
        // SAFETY: it outlives its registration, by the promise to `attach`.
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
    /// `target` and `self` stay at their addresses, and `self` lives until `target` is dead. Both are used with one
    /// [`RefCache`](crate::RefCache) only.
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

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;

    const DELTAS: [i64; 5] = [-3, -1, 0, 1, 3];

    #[test]
    fn a_delta_that_waits_becomes_part_of_the_count_or_nothing() {
        for (count, delta) in DELTAS.into_iter().flat_map(|delta| [0, 1, 3].map(|count| (count, delta))) {
            for happened in [false, true] {
                let counted = Counted::new(count, CountedKind(1));
                assert_eq!((counted.end_pending(happened), counted.applied()), (Verdict::Alive, count), "none waits");
                counted.set_pending(7);
                counted.set_pending(delta);
                assert_eq!((counted.applied_and_pending(), counted.pending_delta()), ((count, true), delta));
                counted.apply(2);
                assert_eq!(counted.applied_and_pending(), (count + 2, true), "a delta of a cache leaves it waiting");
                let verdict = counted.end_pending(happened);
                let end = count + 2 + if happened { delta } else { 0 };
                assert_eq!(counted.applied_and_pending(), (end, false));
                assert_eq!(verdict, if happened && end == 0 { Verdict::BecameZero } else { Verdict::Alive });
                assert_eq!((counted.end_pending(happened), counted.applied()), (Verdict::Alive, end), "it ends once");
            }
        }
    }

    #[test]
    fn the_place_for_a_delta_is_one_operations_until_it_is_given_up() {
        let counted = Counted::new(1, CountedKind(1));
        let [one, other] = [1 << 20, 2 << 20].map(|bits| Tag::from_bits(bits).unwrap());
        assert_eq!((counted.claimed_by(), counted.claim(one)), (None, Ok(())));
        assert_eq!((counted.claimed_by(), counted.claim(other)), (Some(one), Err(one)));
        counted.give_up_claim();
        assert_eq!((counted.claimed_by(), counted.claim(other)), (None, Ok(())));
    }

    #[test]
    fn a_zero_is_reviewed_until_nothing_touches_it() {
        let counted = Counted::new(1, CountedKind(1));
        assert_eq!(counted.apply(-1), Verdict::BecameZero);
        assert_eq!(counted.apply(1), Verdict::Alive);
        assert_eq!(counted.apply(-1), Verdict::Alive, "it is queued already");
        assert_eq!(counted.review(), Verdict::ZeroButDirty);
        counted.set_pending(1);
        assert_eq!(counted.review(), Verdict::ZeroButDirty, "a delta waits");
        counted.end_pending(false);
        assert_eq!((counted.review(), counted.applied()), (Verdict::Dead, 0));
        let counted = Counted::new(1, CountedKind(1));
        assert_eq!(
            (counted.apply(-1), counted.apply(1), counted.review()),
            (Verdict::BecameZero, Verdict::Alive, Verdict::Alive)
        );
        assert_eq!((counted.applied(), counted.apply(-1)), (1, Verdict::BecameZero), "it is queued again");
    }
}
