//! Cursors: places in lists that are no items, one for each thread of a domain.
//!
//! A reader that has lost its place again and again sets its cursor into the list and moves it along. Others step over it, and
//! no one takes it away, but to reach an end before which several stand.

use percpu::{Arena, Core, ObjectKind, OutOfMemory, Part, PerCore, table_kind};

use crate::list_link::ListLink;

/// A place in a list, of one thread.
#[repr(C, align(32))]
pub(crate) struct Cursor {
    // Atomic words, changed by all who change the list there.
    pub(crate) link: ListLink,
}

impl Cursor {
    /// Where it stands, for links.
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }
}

const CURSOR: ObjectKind = table_kind!(Cursor as "cursor of a core" { "link" = link });

/// The cursors of all threads.
pub(crate) struct Cursors(PerCore<Cursor>);

impl Cursors {
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    ///
    /// # Safety
    /// They are not used once the arena's memory is gone.
    pub(crate) unsafe fn create(arena: &Arena) -> Result<Cursors, OutOfMemory> {
        // SAFETY: the caller's promise.
        unsafe { PerCore::create(arena, |_| Cursor { link: ListLink::new() }) }.map(Cursors)
    }

    /// Where they lie, and what tools call them.
    pub(crate) fn table(&self) -> Part {
        Part { memory: self.0.memory(), kind: &CURSOR }
    }

    /// That of the caller's core.
    pub(crate) fn own<'s>(&'s self, core: &'s Core<'_>) -> &'s Cursor {
        self.0.get(core)
    }
}
