//! Where the host has no windows there is nothing that they show. The tables lie in memory as where there are: processes of
//! either kind may share an instance.
#![allow(unsafe_code)]

use core::ops::Range;
use core::sync::atomic::AtomicPtr;

use address_space::{Access, FileId, Mmu, Revoked, SoftwareMmu, Translation};
use epoch::Guard;
use percpu::OutOfMemory;
use sync::Wait;

/// Tables in memory, and the place of a window.
#[repr(C)]
pub struct WindowMmu {
    tables: SoftwareMmu,
    _areas: AtomicPtr<()>,
}

impl WindowMmu {
    /// # Safety
    /// As for [`SoftwareMmu::new`].
    pub(crate) unsafe fn new() -> WindowMmu {
        // SAFETY: the caller's promise.
        WindowMmu { tables: unsafe { SoftwareMmu::new() }, _areas: AtomicPtr::new(core::ptr::null_mut()) }
    }
}

impl Mmu for WindowMmu {
    #[inline]
    fn find(&self, guard: &Guard<'_>, page: u64, access: Access) -> Option<Translation> {
        self.tables.find(guard, page, access)
    }

    fn install(
        &self,
        guard: &Guard<'_>,
        page: u64,
        access: Access,
        translation: Translation,
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory> {
        self.tables.install(guard, page, access, translation, wait)
    }

    fn withdraw(&self, guard: &Guard<'_>, page: u64, access: Access, wait: &impl Wait) {
        self.tables.withdraw(guard, page, access, wait);
    }

    fn revoke(&self, guard: &Guard<'_>, pages: Range<u64>, which: Revoked, wait: &impl Wait) {
        self.tables.revoke(guard, pages, which, wait);
    }

    #[inline]
    fn begin_store(&self, guard: &Guard<'_>, page: u64, wait: &impl Wait) -> Result<(), OutOfMemory> {
        self.tables.begin_store(guard, page, wait)
    }

    #[inline]
    fn end_store(&self, guard: &Guard<'_>) {
        self.tables.end_store(guard);
    }

    unsafe fn unlock_taken_over(&self, guard: &Guard<'_>, wait: &impl Wait) {
        // SAFETY: the caller's promise.
        unsafe { self.tables.unlock_taken_over(guard, wait) };
    }

    unsafe fn destroy(&self, guard: &Guard<'_>) {
        // SAFETY: the caller's promise.
        unsafe { self.tables.destroy(guard) };
    }
}

/// See `window`.
#[derive(Clone, Copy)]
pub(crate) enum Forgotten {
    Stores,
    Replaced,
    CutOff,
}

pub(crate) fn forget(_: FileId, _: &Range<u64>, _: Forgotten) {}
