//! What a core has in its hand: a descriptor that is counted and that no table has, on its way into a table, or out of one.
//!
//! ```text
//! dup:     count 1 more │ hand: it │ marks │ hand: nothing │ the table has it, not the old one │ hand: the old one ...
//! close:                                     hand: nothing │ the table has none                │ hand: the old one ...
//! ... it is closed:                          hand: it, closing │ its end's count 1 less, the last one raises a flag │
//!                                            hand: nothing │ references 1 less
//! ```
//! Whoever takes a dead core over closes what that had in its hand (`repair.rs`), so a pipe's reader does not wait
//! for a writer that nobody is. The hand is empty while a table or a count changes: a death there costs a descriptor that nobody
//! can close, where it could have been closed twice.

use sync::atomic::{AtomicU64, Ordering};

/// Beside the address, which is a line's: the count of descriptors may be one less already.
const CLOSING: u64 = 1;

/// What was in the hand of a core that died, by the address of its description.
pub(crate) enum Left {
    Nothing,
    /// Counted as a descriptor and as a reference.
    Counted(u64),
    /// Counted as a reference, and as a descriptor or not any more.
    Closing(u64),
}

/// A description's address and what is done with it, or zero; written by the core alone.
pub(crate) struct Hand(AtomicU64);

impl Hand {
    pub(crate) fn new() -> Hand {
        Hand(AtomicU64::new(0))
    }

    // Release: what is counted is so before the heir reads of it, and what is not any more is not.
    #[inline]
    fn set(&self, bits: u64) {
        self.0.store(bits, Ordering::Release);
    }

    /// One descriptor is counted, and no table has it.
    #[inline]
    pub(crate) fn take(&self, description: u64) {
        self.set(description);
    }

    /// A table gets what is in the hand, if anything is, and gives this for it.
    #[inline]
    pub(crate) fn exchange(&self, change: impl FnOnce(), given: Option<u64>) {
        self.set(0);
        change();
        if let Some(given) = given {
            self.take(given);
        }
    }

    /// The descriptor in the hand is about to be counted no more.
    #[inline]
    pub(crate) fn close(&self, description: u64) {
        self.set(description | CLOSING);
    }

    /// Nothing is in it.
    #[inline]
    pub(crate) fn empty(&self) {
        self.set(0);
    }

    /// For the heir.
    pub(crate) fn left(&self) -> Left {
        match self.0.load(Ordering::Acquire) {
            0 => Left::Nothing,
            bits if bits & CLOSING == 0 => Left::Counted(bits),
            bits => Left::Closing(bits & !CLOSING),
        }
    }
}
