//! Where the host has no windows. The tables lie in memory as where there are: processes of either kind may share an instance.
//!
//! Who lets programs reach pages of files by other means ([`InProcess::page_of`](crate::InProcess::page_of)) hears of those that
//! leave a file ([`hear_of_cuts`]).
#![allow(unsafe_code)]

use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

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

/// Takes pages of a file away from all programs.
pub type TakeAway = fn(FileId, &Range<u64>);

/// Who takes pages away: a [`TakeAway`], or null.
static TAKES_AWAY: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// From now on calls of this process that take pages from a file call `take_away`, before another file can have them: no program must
/// reach these pages after it has returned. The pages' locks are held meanwhile, so it makes no calls.
///
/// Of the page in which a file then ends nothing is said: what programs store behind the end can show when the file grows, as on tmpfs.
pub fn hear_of_cuts(take_away: TakeAway) {
    TAKES_AWAY.store(take_away as *mut (), Ordering::Release);
}

pub(crate) fn forget(file: FileId, pages: &Range<u64>, which: Forgotten) {
    let take_away = TAKES_AWAY.load(Ordering::Acquire);
    if take_away.is_null() || matches!(which, Forgotten::Stores) {
        return;
    }
    // SAFETY: `hear_of_cuts` has put a function of this type there.
    let take_away: TakeAway = unsafe { core::mem::transmute(take_away) };
    take_away(file, pages);
}
