//! Hardware of the host: pages of the pool at real addresses, which programs reach by their own loads and stores.
//!
//! **Idea.** The pool's pages lie in a file in memory (`memfd_create`). A program reserves a range of addresses, its *window*, at which
//! nothing can be accessed; its address space puts pages of the pool there (`mmap` with MAP_FIXED) and takes them away.
//!
//! ```text
//! touch:    show: mmap page n of the pool at the address, for loads or for both                       locks held: see `address_space::touch`
//! revoke:   the tables of all cores;  then what is shown of the pages: nothing there, or mprotect to loads
//! cut:      what is shown of the file from the cut on: a place behind the pool's end                  an access raises SIGBUS
//! ```
//! **Faults.** There is no handler for signals: before a program's own instructions find a page, it says [`InProcess::touch`](crate::InProcess::touch), which does
//! what a fault does and tells which signal there would be. An instruction that finds nothing raises SIGSEGV, or SIGBUS on a page that a cut
//! took. A handler that touches and returns is for whoever runs programs that do not know of us.
//!
//! **What is shared.** The host's kernel has one table of pages for all threads, and locks for it; a window has a list of what it shows under a
//! lock, and so has a process of the host of its windows. Nothing here is counted as free of conflicts. The calls on memory
//! themselves use tables in memory per core ([`SoftwareMmu`]), with a window or without.
//!
//! **Limits.** A shared file's last page, if the file ends within it, is shown for loads only. A child of `fork` has no window. What programs
//! store to a page of a file that a change of many things replaces at the same moment may come before or after it.
//! Children of the host's own `fork` must not use the file system.
#![allow(unsafe_code)]

mod areas;
mod memory_file;

use core::ops::Range;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

use address_space::{DirectMmu, Mmu, Revoked, Shown, SoftwareMmu, Translation};
use epoch::Guard;
use percpu::OutOfMemory;
use posix_calls::SPACE_PAGES;
use sync::Wait;

pub use address_space::Access as MemoryAccess;
pub(crate) use areas::{Forgotten, forget};
pub(crate) use memory_file::MemoryFile;

use areas::Areas;

/// Tables in memory, and the window of the program if there is one.
// As `no_window.rs` has it: processes with and without windows may share an instance.
#[repr(C)]
pub struct WindowMmu {
    tables: SoftwareMmu,
    /// Atomic, set once: what an `Arc` of the areas has become, or null.
    areas: AtomicPtr<Areas>,
}

impl WindowMmu {
    /// Without a window.
    ///
    /// # Safety
    /// As for [`SoftwareMmu::new`].
    pub(crate) unsafe fn new() -> WindowMmu {
        // SAFETY: the caller's promise.
        WindowMmu { tables: unsafe { SoftwareMmu::new() }, areas: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Reserves addresses of this process of the host for so many pages; returns the first page's number.
    pub(crate) fn open(&self, pool: &Arc<MemoryFile>, pages: u64) -> Result<u64, OutOfMemory> {
        let areas = Areas::reserve(pool, pages)?;
        let first = areas.first_page();
        if first + pages > SPACE_PAGES {
            return Err(OutOfMemory);
        }
        let mine = Arc::into_raw(areas).cast_mut();
        // Release pairs with the acquire in `areas`.
        match self.areas.compare_exchange(core::ptr::null_mut(), mine, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Ok(first),
            Err(_) => {
                // SAFETY: from `into_raw` just now; nobody else has seen it.
                drop(unsafe { Arc::from_raw(mine) });
                Err(OutOfMemory)
            }
        }
    }

    #[inline]
    fn areas(&self) -> Option<&Areas> {
        // SAFETY: from `Arc::into_raw`; it lives until `destroy`. Acquire pairs with the release in `open`.
        unsafe { self.areas.load(Ordering::Acquire).as_ref() }
    }
}

impl Mmu for WindowMmu {
    #[inline]
    fn find(&self, guard: &Guard<'_>, page: u64, access: MemoryAccess) -> Option<Translation> {
        self.tables.find(guard, page, access)
    }

    fn install(
        &self,
        guard: &Guard<'_>,
        page: u64,
        access: MemoryAccess,
        translation: Translation,
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory> {
        self.tables.install(guard, page, access, translation, wait)
    }

    fn withdraw(&self, guard: &Guard<'_>, page: u64, access: MemoryAccess, wait: &impl Wait) {
        self.tables.withdraw(guard, page, access, wait);
    }

    fn revoke(&self, guard: &Guard<'_>, pages: Range<u64>, which: Revoked, wait: &impl Wait) {
        self.tables.revoke(guard, pages.clone(), which, wait);
        if let Some(areas) = self.areas() {
            areas.revoke(pages, which);
        }
    }

    #[inline]
    fn begin_store(&self, guard: &Guard<'_>, page: u64, wait: &impl Wait) -> Result<(), OutOfMemory> {
        self.tables.begin_store(guard, page, wait)
    }

    #[inline]
    fn end_store(&self, guard: &Guard<'_>) {
        self.tables.end_store(guard);
    }

    fn is_direct(&self) -> bool {
        self.areas().is_some()
    }

    unsafe fn unlock_taken_over(&self, guard: &Guard<'_>, wait: &impl Wait) {
        // SAFETY: the caller's promise.
        unsafe { self.tables.unlock_taken_over(guard, wait) };
    }

    unsafe fn destroy(&self, guard: &Guard<'_>) {
        let areas = self.areas.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: the caller's promise; what was stored there came from `Arc::into_raw`.
        unsafe {
            self.tables.destroy(guard);
            if !areas.is_null() {
                drop(Arc::from_raw(areas));
            }
        }
    }
}

impl DirectMmu for WindowMmu {
    fn show(&self, page: u64, shown: Shown) -> Result<(), OutOfMemory> {
        self.areas().ok_or(OutOfMemory)?.show(page, shown)
    }
}
