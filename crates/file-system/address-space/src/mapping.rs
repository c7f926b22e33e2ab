//! A mapping of a file: what the pages of one `map` have in common.

use core::mem::offset_of;
use core::ptr::NonNull;

use percpu::{ArenaObject, CacheLine, ObjectKind, object_kind};
use posix_calls::Sharing;
use refcache::{Counted, CountedKind};

use crate::files::FileId;

/// Kind of a mapping's count, for the callback of `RefCache::maintain`.
pub const KIND_MAPPING: CountedKind = CountedKind(8);
/// What tools call a mapping's parts.
pub const MAPPING: ObjectKind = object_kind!(9, Mapping as "mapping" { "file" = file, "pages" = pages });

/// Pages of a file in an address space; immutable but for the count.
#[repr(C)]
pub struct Mapping {
    pub(crate) file: FileId,
    /// The page of the space at which the file's page `file_page` would lie.
    pub(crate) first: u64,
    pub(crate) file_page: u64,
    pub(crate) sharing: Sharing,
    /// Pages of address spaces that lead here.
    pub(crate) pages: CacheLine<Counted>,
}

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for Mapping {
    const KIND: ObjectKind = MAPPING;
}

impl Mapping {
    /// The file, to which the mapping has a reference.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// The page of the file that lies at a page of the space.
    #[inline]
    pub(crate) fn page_of_file(&self, page: u64) -> u64 {
        page.wrapping_sub(self.first).wrapping_add(self.file_page)
    }

    /// The mapping whose count this is.
    ///
    /// # Safety
    /// The count is of [`KIND_MAPPING`].
    pub unsafe fn of_count(count: NonNull<Counted>) -> NonNull<Mapping> {
        // SAFETY: the caller's promise.
        unsafe { count.byte_sub(offset_of!(Mapping, pages)).cast() }
    }
}

/// A mapping that was found in a slot, during the call that found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingRef(NonNull<Mapping>);

impl MappingRef {
    pub(crate) fn new(mapping: NonNull<Mapping>) -> MappingRef {
        MappingRef(mapping)
    }

    #[inline]
    pub(crate) fn from_address(address: u64) -> Option<MappingRef> {
        NonNull::new(address as usize as *mut Mapping).map(MappingRef)
    }

    #[inline]
    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as usize as u64
    }

    #[inline]
    pub(crate) fn get(&self) -> &Mapping {
        // SAFETY: found in this call, in a slot or in the core's table (from which it is revoked before its count goes): the
        // count of pages is not applied before all cores have maintained, which none does in a call.
        unsafe { self.0.as_ref() }
    }
}
