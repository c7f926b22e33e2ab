//! A page that several address spaces have since one was copied: nobody stores to it any more.

use core::mem::offset_of;
use core::ptr::NonNull;

use pages::{PageNumber, PagePool};
use percpu::{ArenaObject, CacheLine, Core, ObjectKind, object_kind};
use refcache::{Counted, CountedKind};

use crate::mapping::MappingRef;

/// Kind of a shared page's count, for the callback of `RefCache::maintain`.
pub const KIND_SHARED_PAGE: CountedKind = CountedKind(9);
/// What tools call a shared page's parts.
pub const SHARED_PAGE: ObjectKind = object_kind!(14, SharedPage as "shared page" { "page" = page, "spaces" = spaces });

/// A page of the pool with the number of address spaces that have it; immutable but for that.
#[repr(C)]
pub struct SharedPage {
    page: PageNumber,
    /// The address of the mapping whose page it is a copy of, or zero; how often the file had been cut then.
    mapping: u64,
    cuts: u64,
    spaces: CacheLine<Counted>,
}

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for SharedPage {
    const KIND: ObjectKind = SHARED_PAGE;
}

impl SharedPage {
    /// A page that two address spaces have from now on.
    pub(crate) fn of_two(page: PageNumber, original: Option<(MappingRef, u64)>) -> SharedPage {
        let (mapping, cuts) = original.map_or((0, 0), |(mapping, cuts)| (mapping.address(), cuts));
        SharedPage { page, mapping, cuts, spaces: CacheLine(Counted::new(2, KIND_SHARED_PAGE)) }
    }

    /// Gives the page back, and what was kept of it: for the callback of `RefCache::maintain`.
    ///
    /// # Safety
    /// The count is of [`KIND_SHARED_PAGE`], of an address space over this pool, and is given once, by that callback.
    pub unsafe fn free_counted(core: &Core<'_>, pages: &PagePool, count: NonNull<Counted>) {
        // SAFETY: the caller's promise. No slot has led to the page since the count fell to zero, which all cores have
        // maintained after: calls that found it there or in a table have ended.
        unsafe {
            let shared = count.byte_sub(offset_of!(SharedPage, spaces)).cast::<SharedPage>();
            pages.free(core, shared.as_ref().page);
            core.free_object(shared);
        }
    }
}

/// A shared page that was found in a slot, during the call that found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedPageRef(NonNull<SharedPage>);

impl SharedPageRef {
    pub(crate) fn new(shared: NonNull<SharedPage>) -> SharedPageRef {
        SharedPageRef(shared)
    }

    #[inline]
    pub(crate) fn from_address(address: u64) -> Option<SharedPageRef> {
        NonNull::new(address as usize as *mut SharedPage).map(SharedPageRef)
    }

    #[inline]
    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as usize as u64
    }

    #[inline]
    fn get(&self) -> &SharedPage {
        // SAFETY: found in this call, in a slot, which its count has one for: that is not applied before all cores have
        // maintained, which none does in a call.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(crate) fn page(self) -> PageNumber {
        self.get().page
    }

    /// The mapping whose page it is a copy of, and how often the file had been cut then.
    #[inline]
    pub(crate) fn original(self) -> Option<(MappingRef, u64)> {
        let shared = self.get();
        MappingRef::from_address(shared.mapping).map(|mapping| (mapping, shared.cuts))
    }

    /// How many address spaces have it.
    #[inline]
    pub(crate) fn spaces(&self) -> &Counted {
        &self.get().spaces
    }
}
