//! One slot of a core's cache: an object, its delta, and a delta that waits for an operation to commit. One line.

use core::ptr;

use commit::{Decisions, Observed, Tag, Viewer};
use percpu::{ObjectKind, object_kind};
use seqlock::Sequence;
use sync::OwnWord;
use sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

use crate::counted::{Counted, Noted};

/// Changed by its core only; read by anybody.
#[repr(align(64))]
pub(crate) struct Slot {
    sequence: Sequence,
    object: AtomicPtr<Counted>,
    delta: AtomicI64,
    pending_tag: AtomicU64,
    pending_delta: AtomicI64,
    /// The core's alone: the object, if this slot stands on its list of holders.
    noted: OwnWord<*mut Noted>,
}

/// What tools call the parts of a slot.
pub const SLOT: ObjectKind = object_kind!(0, Slot as "count's slot" {
    "sequence" = sequence,
    "object" = object,
    "delta" = delta,
    "pending_tag" = pending_tag,
    "pending_delta" = pending_delta,
});

/// What a collect saw, over any number of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Collected {
    pub(crate) versions: u64,
    pub(crate) total: i64,
    pub(crate) changing: bool,
}

impl Slot {
    pub(crate) fn new() -> Slot {
        Slot {
            sequence: Sequence::new(),
            object: AtomicPtr::new(ptr::null_mut()),
            delta: AtomicI64::new(0),
            pending_tag: AtomicU64::new(0),
            pending_delta: AtomicI64::new(0),
            noted: OwnWord::new(ptr::null_mut()),
        }
    }

    /// For the core: whether the slot's object has it on its list.
    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        !self.noted.get().is_null()
    }

    /// Says that the slot's object has its core on its list, or that it has not; returns the object before.
    pub(crate) fn set_noted(&self, noted: Option<&Noted>) -> *mut Noted {
        let before = self.noted.get();
        let noted = noted.map_or(ptr::null_mut(), |noted| ptr::from_ref(noted).cast_mut());
        if before != noted {
            self.noted.set(noted);
        }
        before
    }

    #[inline]
    pub(crate) fn object(&self) -> *mut Counted {
        self.object.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn delta(&self) -> i64 {
        self.delta.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn pending(&self) -> Option<Tag> {
        Tag::from_bits(self.pending_tag.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn add(&self, delta: i64) {
        self.sequence.change(|| self.delta.store(self.delta() + delta, Ordering::Relaxed));
    }

    /// Gives the slot to another object, or to none; `apply` gets the old object's delta inside the change.
    ///
    /// A death in the middle must not leave a count too low, or an object would be freed under its names: increments are
    /// in both places for a moment, decrements in none.
    pub(crate) fn replace(&self, object: *mut Counted, apply: impl FnOnce(i64)) {
        self.sequence.change(|| {
            let delta = self.delta();
            if delta < 0 {
                self.delta.store(0, Ordering::Relaxed);
            }
            apply(delta);
            // Release orders what `apply` did before it.
            self.delta.store(0, Ordering::Release);
            self.object.store(object, Ordering::Release);
        });
    }

    /// Changes something outside of the slot that collects of an object of this slot read, so that they see a change.
    pub(crate) fn beside<R>(&self, change: impl FnOnce() -> R) -> R {
        self.sequence.change(change)
    }

    /// The delta that waits for an operation.
    pub(crate) fn pending_delta(&self) -> i64 {
        self.pending_delta.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_pending(&self, tag: Tag, delta: i64) {
        self.sequence.change(|| {
            self.pending_delta.store(delta, Ordering::Relaxed);
            self.pending_tag.store(tag.to_bits(), Ordering::Relaxed);
        });
    }

    /// Turns the pending delta into a delta if its operation has happened, else forgets it. On a death in the middle, see
    /// `replace`.
    #[inline]
    pub(crate) fn settle(&self, happened: bool) {
        self.sequence.change(|| {
            let pending = if happened { self.pending_delta.load(Ordering::Relaxed) } else { 0 };
            if pending < 0 {
                self.pending_tag.store(0, Ordering::Relaxed);
            }
            // Release orders each of these stores after the one before.
            self.delta.store(self.delta() + pending, Ordering::Release);
            self.pending_tag.store(0, Ordering::Release);
        });
    }

    /// Adds what the slot says about `object` to `seen`.
    #[inline]
    pub(crate) fn collect(
        &self,
        object: *const Counted,
        decisions: &Decisions,
        viewer: impl Viewer,
        seen: &mut Collected,
    ) {
        let moment = self.sequence.now();
        seen.versions = seen.versions.wrapping_add(moment.number());
        seen.changing |= moment.is_changing();
        if !ptr::eq(self.object(), object) {
            return;
        }
        seen.total += self.delta();
        if let Some(tag) = self.pending() {
            self.collect_pending(tag, decisions, viewer, seen);
        }
    }

    /// Adds what waits for an operation.
    #[cold]
    fn collect_pending(&self, tag: Tag, decisions: &Decisions, viewer: impl Viewer, seen: &mut Collected) {
        match decisions.observe_by(tag, viewer) {
            Observed::Committed => seen.total += self.pending_delta.load(Ordering::Relaxed),
            Observed::NotCommitted => {}
            Observed::Over => seen.changing = true,
        }
    }

    /// Ends the change in whose middle the slot's core died.
    pub(crate) fn repair(&self) {
        self.sequence.end();
    }
}
