//! The link of a doubly linked list: what follows, what comes before, and how often the item has left its place.

use core::fmt;

use sync::atomic::{AtomicU64, Ordering};

use crate::link::Link;

/// A field of an item by which it can stand in one [`List`](crate::List) at a time: 32 bytes within a line. See
/// [`links!`](crate::links).
///
/// **Words.** `next` says whether the item stands in a list, and in which. `prev` has a meaning only then: it names the item
/// before, at every moment. When the item leaves, `prev` keeps what it was.
///
/// **Version.** In a list without keys a reader cannot tell from a word whether the item still stands where it was found: it
/// may have left, and come back elsewhere. So one that takes an item from its place moves its version on, after the
/// decision and before the mark in `next` goes.
#[repr(C, align(32))]
pub struct ListLink {
    pub(crate) next: Link,
    pub(crate) prev: Link,
    // Atomic: only grows, by compare and exchange.
    version: AtomicU64,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<ListLink>() == 32, "a link lies within a line");

impl ListLink {
    /// The link of an item that stands in no list.
    #[inline]
    pub fn new() -> ListLink {
        ListLink { next: Link::new(), prev: Link::new(), version: AtomicU64::new(FIRST_VERSION) }
    }

    /// The link whose `next` this is.
    ///
    /// # Safety
    /// It is the `next` of such a link, whose memory has been exposed as a whole.
    #[inline]
    unsafe fn of_next(next: &Link) -> &ListLink {
        // SAFETY: the caller's promise; `next` is the first field.
        unsafe { &*core::ptr::with_exposed_provenance(core::ptr::from_ref(next).addr()) }
    }

    /// How often the item has left its place.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        // SeqCst, a plain load on x86: what is read before and after keeps this order. Pairs with `leave`.
        self.version.load(Ordering::SeqCst)
    }

    /// Moves on the version of an item that has left the place in which it had this one.
    #[inline]
    pub(crate) fn leave(&self, version: u64) {
        if !sync::mutant::planted("olf: a version is not moved on") {
            // One that fails was overtaken by another who does the same. SeqCst as there.
            let _ = self.version.compare_exchange(version, version + 1, Ordering::SeqCst, Ordering::Relaxed);
        }
    }
}

/// Before the mark of a committed operation is replaced: moves the version of an item's place on, if it leaves that by the operation.
#[inline]
pub(crate) fn leave_place(link: &Link, version: u64) {
    if version != 0 {
        // SAFETY: a version stands in a record only for the first field of the link of a list, whose memory has been
        // exposed as a whole and lives as long as the link.
        unsafe { ListLink::of_next(link) }.leave(version);
    }
}

/// Not zero, which says that no item leaves.
const FIRST_VERSION: u64 = 1;

impl Default for ListLink {
    fn default() -> ListLink {
        ListLink::new()
    }
}

impl fmt::Debug for ListLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ListLink")
    }
}
