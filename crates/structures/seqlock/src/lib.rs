//! A sequence number of some words: readers write nothing and know whether what they read belongs together.
//!
//! **Idea** (sequence locks; section 6.3 of the paper). A writer that changes the words makes the number odd before and
//! even after. A reader takes what it read only if the number was the same even one before and after. The words are
//! atomics, so a torn read is discarded rather than undefined. Who may change them is the user's matter: the one core
//! whose words they are (`refcache`, `maxima`), or the holder of a lock (`radix`).
//!
//! ```text
//! writer  seq 4→5 ─ fence ─ words ─ seq 5→6
//! reader    seq=5: again ............. seq=6 ─ words ─ fence ─ seq=6: done
//! ```
//!
//! **Several sequences** are read together by reading all their words twice and comparing the sums of the numbers, which
//! only rise ([`Sequence::now`]); so exact reads over all cores do.
//!
//! **Lines.** The number stands in the line of its words: a reader touches that line and writes none.
//!
//! **Death of a process** in a change leaves an odd number, and readers wait: its heir makes the words whole and calls
//! [`Sequence::end`].
//!
//! **Cost**: a read two loads of the number, a change two stores.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p seqlock --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]
#![forbid(unsafe_code)]

use sync::atomic::{AtomicU64, Ordering, fence};

/// Counts the changes of words that lie next to it; odd during one.
#[derive(Debug)]
pub struct Sequence(AtomicU64);

/// A number that a sequence had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(u64);

impl Moment {
    /// Whether a change was under way.
    #[inline]
    pub fn is_changing(self) -> bool {
        self.0 & 1 != 0
    }

    /// The number.
    #[inline]
    pub fn number(self) -> u64 {
        self.0
    }
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence::new()
    }
}

impl Sequence {
    /// Of words that no one has changed.
    pub fn new() -> Sequence {
        Sequence(AtomicU64::new(0))
    }

    /// Lets `write` change the words, with relaxed stores; no one else does so in the meantime. Readers discard what
    /// they saw.
    #[inline]
    pub fn change<R>(&self, write: impl FnOnce() -> R) -> R {
        self.begin();
        let result = write();
        self.end();
        result
    }

    /// Begins a change that goes on after the call: [`Sequence::end`] ends it.
    #[inline]
    pub fn begin(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        if !sync::mutant::planted("seqlock: writer without fence") {
            // Orders the odd number before the words; pairs with the acquire fence in `is_still`.
            fence(Ordering::Release);
        }
    }

    /// Ends the change that was begun; nothing if there is none.
    #[inline]
    pub fn end(&self) {
        let number = self.0.load(Ordering::Relaxed);
        if number & 1 != 0 {
            // Release pairs with the acquire load in `now`.
            self.0.store(number + 1, Ordering::Release);
        }
    }

    /// Where a read begins: the words are at least as new as this.
    #[inline]
    pub fn now(&self) -> Moment {
        // Acquire pairs with the release at the end of `change`.
        Moment(self.0.load(Ordering::Acquire))
    }

    /// Where a read ends: whether the words, read with relaxed loads since `moment`, belong together.
    #[inline]
    pub fn is_still(&self, moment: Moment) -> bool {
        if !sync::mutant::planted("seqlock: reader without fence") {
            // Pairs with the release fence in `change`: having seen a word of a change, we see its odd number.
            fence(Ordering::Acquire);
        }
        !moment.is_changing() && self.0.load(Ordering::Relaxed) == moment.0
    }

    /// What `look` sees of the words, unless somebody changes them in the meantime.
    #[inline]
    pub fn try_read<R>(&self, look: impl FnOnce() -> R) -> Option<R> {
        let moment = self.now();
        if moment.is_changing() {
            return None;
        }
        let seen = look();
        self.is_still(moment).then_some(seen)
    }
}
