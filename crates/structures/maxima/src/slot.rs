//! One slot of a core's cache: an object, its generation, and the words that the core has raised. One line.

use core::ptr;

use percpu::{ObjectKind, object_kind};
use seqlock::Sequence;
use sync::OwnWord;
use sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::maximum::Maximum;

/// Changed by its core only; read by anybody.
#[repr(align(64))]
pub(crate) struct Slot<const WORDS: usize> {
    sequence: Sequence,
    object: AtomicPtr<Maximum<WORDS>>,
    generation: AtomicU64,
    words: [AtomicU64; WORDS],
    /// The core's alone: the sequence's number when [`Slot::was_changed`] was last asked.
    asked_at: OwnWord<u64>,
    /// The core's alone: not zero if the object has the core on its list of holders.
    noted: OwnWord<u8>,
}

/// What tools call the parts of a slot, whatever its number of words.
pub const SLOT: ObjectKind = object_kind!(0, Slot<1> as "maximum's slot" {
    "sequence" = sequence,
    "object" = object,
    "generation" = generation,
    "words" = words,
});
#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot<1>>() == size_of::<Slot<2>>());

/// What a collect saw, over any number of slots.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collected<const WORDS: usize> {
    pub(crate) versions: u64,
    pub(crate) words: [u64; WORDS],
    pub(crate) changing: bool,
}

impl<const WORDS: usize> Collected<WORDS> {
    #[inline]
    pub(crate) fn raise(&mut self, words: &[u64; WORDS]) {
        for (mine, word) in self.words.iter_mut().zip(words) {
            *mine = (*mine).max(*word);
        }
    }
}

impl<const WORDS: usize> Slot<WORDS> {
    pub(crate) fn new() -> Slot<WORDS> {
        Slot {
            sequence: Sequence::new(),
            object: AtomicPtr::new(ptr::null_mut()),
            generation: AtomicU64::new(0),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
            asked_at: OwnWord::new(0),
            noted: OwnWord::new(0),
        }
    }

    /// For the core: whether the object has it on its list.
    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        self.noted.get() != 0
    }

    /// For the core: says whether the object has it on its list; returns what was said before.
    pub(crate) fn set_noted(&self, is_noted: bool) -> bool {
        let before = self.is_noted();
        if before != is_noted {
            self.noted.set(u8::from(is_noted));
        }
        before
    }

    /// For the core: whether the slot has changed since it last asked.
    #[inline]
    pub(crate) fn was_changed(&self) -> bool {
        let number = self.sequence.now().number();
        let was_changed = number != self.asked_at.get();
        if was_changed {
            self.asked_at.set(number);
        }
        was_changed
    }

    #[inline]
    pub(crate) fn object(&self) -> *mut Maximum<WORDS> {
        self.object.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn words(&self) -> [u64; WORDS] {
        core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed))
    }

    /// Raises the words; writes nothing if none is higher.
    #[inline]
    pub(crate) fn raise(&self, words: &[u64; WORDS]) {
        if self.words.iter().zip(words).all(|(mine, word)| mine.load(Ordering::Relaxed) >= *word) {
            return;
        }
        self.sequence.change(|| {
            for (mine, word) in self.words.iter().zip(words) {
                if mine.load(Ordering::Relaxed) < *word {
                    mine.store(*word, Ordering::Relaxed);
                }
            }
        });
    }

    /// Gives the slot to another object, or to none, after `apply` has brought its words to the old one. In between they
    /// are in both places, which changes no maximum: no reader needs to be kept off, and a death loses nothing.
    pub(crate) fn replace(&self, object: *mut Maximum<WORDS>, generation: u64, apply: impl FnOnce([u64; WORDS])) {
        let words = self.words();
        let apply_late = sync::mutant::planted("maxima: slots are emptied first");
        let mut apply = Some(apply);
        if !apply_late && let Some(apply) = apply.take() {
            apply(words);
        }
        self.sequence.change(|| {
            // The release fence in `Sequence::change` orders what `apply` did before this.
            self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            self.generation.store(generation, Ordering::Relaxed);
            self.object.store(object, Ordering::Relaxed);
        });
        if let Some(apply) = apply {
            apply(words);
        }
    }

    /// Adds what the slot says about `object` in `generation` to `seen`.
    #[inline]
    pub(crate) fn collect(&self, object: *const Maximum<WORDS>, generation: u64, seen: &mut Collected<WORDS>) {
        let moment = self.sequence.now();
        seen.versions = seen.versions.wrapping_add(moment.number());
        seen.changing |= moment.is_changing();
        if ptr::eq(self.object(), object) && self.generation() == generation {
            seen.raise(&self.words());
        }
    }

    /// Raises `least` to what the slot says about `object` in `generation`; not if it changes in the meantime.
    #[inline]
    pub(crate) fn raise_least(&self, object: *const Maximum<WORDS>, generation: u64, least: &mut [u64; WORDS]) {
        let moment = self.sequence.now();
        if !ptr::eq(self.object(), object) || self.generation() != generation {
            return;
        }
        let words = self.words();
        let is_still = self.sequence.is_still(moment);
        if is_still || sync::mutant::planted("maxima: a slot is looked at in the middle of a change") {
            least.iter_mut().zip(words).for_each(|(mine, word)| *mine = word.max(*mine));
        }
    }

    /// Ends the change in whose middle the slot's core died.
    pub(crate) fn repair(&self) {
        self.sequence.end();
    }
}
