//! What stands before every item: its count, and how its memory is freed.
//!
//! The last count may end where no one is a core of the domain, in any `drop`. Such items wait in one stack for the one
//! that maintains next ([`Orphans`]); one that has a core at hand retires them at once, and shares nothing.

use core::ptr::{self, NonNull};

use epoch::Retired;
use sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Stands before an item's value.
#[repr(C)]
pub(crate) struct Header {
    // First, so that its address is the header's.
    retired: Retired,
    /// Atomic: of `Arc`s, and one for each list in which the item stands.
    count: AtomicU64,
    /// Atomic: not zero if it ever stood in a list, so that old pointers may lead to it.
    was_listed: AtomicU32,
    /// The next in the stack of orphans, of the one that ended the last count.
    next: AtomicPtr<Header>,
    // Immutable.
    orphans: *const Orphans,
    free: unsafe fn(NonNull<Header>),
}

impl Header {
    /// Of an item with one count.
    pub(crate) fn new(orphans: *const Orphans, free: unsafe fn(NonNull<Header>)) -> Header {
        let next = AtomicPtr::new(ptr::null_mut());
        Header { retired: Retired::new(), count: AtomicU64::new(1), was_listed: AtomicU32::new(0), next, orphans, free }
    }

    /// Where items of its domain wait, which tells the domain.
    pub(crate) fn orphans(&self) -> *const Orphans {
        self.orphans
    }

    /// One count more; the caller has one.
    #[inline]
    pub(crate) fn increment(&self) {
        // Relaxed: the caller's own count keeps the item.
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// One count more, unless the last one has ended.
    pub(crate) fn increment_if_any(&self) -> bool {
        let mut seen = self.count.load(Ordering::Relaxed);
        while seen != 0 {
            // Relaxed: one that asks has read the item already.
            match self.count.compare_exchange_weak(seen, seen + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
        false
    }

    /// One count less; whether it was the last.
    #[inline]
    pub(crate) fn decrement(&self) -> bool {
        // Release pairs with the fence: all that others did with the item comes before its end.
        let was_last = self.count.fetch_sub(1, Ordering::Release) == 1;
        if was_last {
            fence(Ordering::Acquire);
        }
        was_last
    }

    /// Whether the caller, who has a count, is the only one who can reach the item: it has no other count, and never stood in
    /// a list.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        // Relaxed: if it ever stood in a list, the caller has the item from there, or from one that had it from there.
        // Acquire pairs with the release in `decrement`.
        self.was_listed.load(Ordering::Relaxed) == 0 && self.count.load(Ordering::Acquire) == 1
    }

    /// Says that the item is about to stand in a list, or, if it is reached by the caller alone, that it does not after
    /// all.
    #[inline]
    pub(crate) fn set_listed(&self, is_listed: bool) {
        // Relaxed: see `is_own`; the exchange that lets others find the item releases it.
        if (self.was_listed.load(Ordering::Relaxed) != 0) != is_listed {
            self.was_listed.store(is_listed.into(), Ordering::Relaxed);
        }
    }

    /// The link to retire the item by.
    pub(crate) fn retired(header: NonNull<Header>) -> NonNull<Retired> {
        header.cast()
    }

    /// Frees an item that was retired.
    ///
    /// # Safety
    /// `retired` is the first field of a header ([`Header::retired`]) that no one can reach any more.
    pub(crate) unsafe fn free(retired: NonNull<Retired>) {
        let header = retired.cast::<Header>();
        // SAFETY: the caller's promise; `free` was given for this item.
        unsafe { (header.as_ref().free)(header) };
    }
}

/// Items whose last count has ended where no one was a core: a stack that is taken as a whole.
pub(crate) struct Orphans(AtomicPtr<Header>);

impl Orphans {
    pub(crate) fn new() -> Orphans {
        Orphans(AtomicPtr::new(ptr::null_mut()))
    }

    /// # Safety
    /// The item's last count has just ended, by the caller.
    pub(crate) unsafe fn push(&self, header: NonNull<Header>) {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the item is not freed before it was taken out of the stack and retired; `next` is the caller's.
            unsafe { header.as_ref() }.next.store(head, Ordering::Relaxed);
            // Release pairs with the acquire in `take`: takers see `next`.
            match self.0.compare_exchange_weak(head, header.as_ptr(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => head = seen,
            }
        }
    }

    /// Takes all; the caller retires each.
    pub(crate) fn take(&self, mut each: impl FnMut(NonNull<Header>)) {
        if self.0.load(Ordering::Relaxed).is_null() {
            return;
        }
        // Acquire pairs with the release in `push`.
        let mut next = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        while let Some(header) = NonNull::new(next) {
            // SAFETY: items in the stack are not freed before they are retired, here.
            next = unsafe { header.as_ref() }.next.load(Ordering::Relaxed);
            each(header);
        }
    }
}
