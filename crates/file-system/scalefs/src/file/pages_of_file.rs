//! The array of a file's pages, and what is known of its reach; one line, which only growth, cuts and maintenance write.

use radix::RadixArray;
use seqlock::Sequence;
use sync::atomic::{AtomicU64, Ordering};

/// See the module's head.
#[repr(align(64))]
pub(super) struct FilePages {
    pub(super) array: RadixArray,
    /// Changes while a cut leaves something of the file: until its end a reader may have seen the pages that go, and not the one in
    /// which the file now ends.
    pub(super) shortenings: Sequence,
    /// Atomic: how many pages the size's floor has ever told of. It is not set back: the floor says whether it is so.
    known: AtomicU64,
}

impl FilePages {
    pub(super) fn new() -> FilePages {
        // SAFETY: used with cores of the instance's arena and guards of its epochs, whose maintenance frees nodes.
        let array = unsafe { RadixArray::new() };
        FilePages { array, shortenings: Sequence::new(), known: AtomicU64::new(0) }
    }

    /// Whether the floor may say that the file has this page as a whole, and something behind it, or a part of it.
    #[inline]
    pub(super) fn may_be_known(&self, page: u64) -> bool {
        self.known.load(Ordering::Relaxed) > page
    }

    /// Notes how many pages the floor has told of. Two cores may set it back by a little: it is asked whether the floor is worth a
    /// look, and no more.
    pub(super) fn note_known(&self, pages: u64) {
        if self.known.load(Ordering::Relaxed) < pages {
            self.known.store(pages, Ordering::Relaxed);
        }
    }
}
