//! A link: the field of an item by which it stands in a list.

use core::fmt;

use sync::atomic::{AtomicU64, Ordering};

use crate::word::Word;

/// A field of an item by which it can stand in one list at a time: one word. An item stands in as many lists as it has
/// links. See [`links!`](crate::links).
pub struct Link {
    // Atomic; changed by compare and exchange alone, but for an item that no one else has.
    word: AtomicU64,
}

impl Link {
    /// The link of an item that stands in no list.
    #[inline]
    pub fn new() -> Link {
        Link::with(Word::NOWHERE)
    }

    #[inline]
    pub(crate) fn with(word: Word) -> Link {
        Link { word: AtomicU64::new(word.to_bits()) }
    }

    /// What stands there, a mark as it is.
    #[inline]
    pub(crate) fn load(&self) -> Word {
        // SeqCst, a plain load on x86: it comes after the caller's own changes in the order of all such accesses. Acquire
        // pairs with the releases in `exchange`: what is behind a link was written before it.
        Word::from_bits(self.word.load(Ordering::SeqCst))
    }

    /// Replaces `old`.
    ///
    /// # Errors
    /// What stands there instead.
    #[inline]
    pub(crate) fn exchange(&self, old: Word, new: Word) -> Result<(), Word> {
        // SeqCst: see `load`. On failure Acquire, since the caller follows what it finds.
        self.word
            .compare_exchange(old.to_bits(), new.to_bits(), Ordering::SeqCst, Ordering::Acquire)
            .map(|_| ())
            .map_err(Word::from_bits)
    }

    /// Of an item that no one else has.
    #[inline]
    pub(crate) fn store_own(&self, word: Word) {
        // Relaxed: the exchange that lets others find the item releases it.
        self.word.store(word.to_bits(), Ordering::Relaxed);
    }
}

impl Default for Link {
    fn default() -> Link {
        Link::new()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Link")
    }
}
