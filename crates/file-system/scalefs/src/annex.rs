//! What few inodes have: locks, and extended attributes. The object is made with the first of these, and goes with the inode.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use percpu::{ArenaObject, CacheLine, Core, ObjectKind, OutOfMemory, object_kind};
use sync::atomic::Ordering;

use crate::attribute_block::Extended;
use crate::file_locks::FileLocks;
use crate::inode::Inode;

/// See the module's head. Each part has lines of its own.
#[repr(C)]
pub(crate) struct Annex {
    pub(crate) locks: CacheLine<FileLocks>,
    pub(crate) extended: CacheLine<Extended>,
}

/// What tools call the parts.
pub(crate) const ANNEX: ObjectKind = object_kind!(18, Annex as "annex of an inode" {
    "lock of the locks" = locks + FileLocks::LOCK,
    "whether one is waited for" = locks + FileLocks::AWAITED,
    "current locks" = locks + FileLocks::CURRENT,
    "lists of locks" = locks + FileLocks::HALVES,
    "lock of the attributes" = extended + Extended::LOCK,
    "where the attributes are" = extended + Extended::CURRENT,
});

// SAFETY: a kind of its own; what it has is given back before its memory is.
unsafe impl ArenaObject for Annex {
    const KIND: ObjectKind = ANNEX;
}

impl FileLocks {
    /// Those of a file that has any, or has had.
    pub(crate) fn of(inode: &Inode) -> Option<&FileLocks> {
        Annex::of(inode).map(|annex| &*annex.locks)
    }

    /// Those of a file; made now if it has none.
    pub(crate) fn made_for<'i>(inode: &'i Inode, core: &Core<'_>) -> Result<&'i FileLocks, OutOfMemory> {
        Annex::made_for(inode, core).map(|annex| &*annex.locks)
    }
}

impl Annex {
    /// That of an inode which has one.
    pub(crate) fn of(inode: &Inode) -> Option<&Annex> {
        let address = inode.references.annex.load(Ordering::Acquire);
        // SAFETY: set once to an object in the arena, which goes with the inode.
        NonNull::new(address as usize as *mut Annex).map(|place| unsafe { place.as_ref() })
    }

    /// That of an inode; made now if it has none.
    pub(crate) fn made_for<'i>(inode: &'i Inode, core: &Core<'_>) -> Result<&'i Annex, OutOfMemory> {
        if let Some(annex) = Annex::of(inode) {
            return Ok(annex);
        }
        let annex = Annex { locks: CacheLine(FileLocks::new()), extended: CacheLine(Extended::new()) };
        let made = core.allocate_object(annex)?;
        let address = made.as_ptr() as usize as u64;
        // Release: who finds it finds it made.
        let put = inode.references.annex.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
        if put.is_err() {
            // SAFETY: no one else has seen it.
            unsafe { core.free_object(made) };
        }
        Ok(Annex::of(inode).expect("made by us or by another"))
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// No one uses the inode any more.
    #[inline]
    pub(crate) unsafe fn destroy(inode: &Inode, core: &Core<'_>) {
        let address = inode.references.annex.load(Ordering::Acquire);
        if let Some(place) = NonNull::new(address as usize as *mut Annex) {
            // SAFETY: the caller's promise.
            unsafe { Annex::destroy_at(place, core) };
        }
    }

    /// # Safety
    /// No one uses the annex any more.
    #[cold]
    unsafe fn destroy_at(place: NonNull<Annex>, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            place.as_ref().locks.destroy(core);
            place.as_ref().extended.destroy(core);
            core.free_object(place);
        }
    }
}
