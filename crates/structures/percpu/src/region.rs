//! Memory for an arena from the global allocator: for tests, benchmarks, and users within one process.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::OutOfMemory;

/// A zeroed, page-aligned block from the global allocator (under `--cfg shuttle`, one at the same address in each run, of
/// any content); an [`Arena`](crate::Arena) borrows it.
pub struct HeapRegion {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the block is plain memory that the region alone owns.
unsafe impl Send for HeapRegion {}
// SAFETY: a shared `HeapRegion` gives no access to its memory; `Arena::create` borrows it exclusively.
unsafe impl Sync for HeapRegion {}

impl HeapRegion {
    /// Allocates `size_bytes`, rounded up to pages of 4 KiB. Large regions cost memory only where they are touched.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the system has not so much.
    pub fn new(size_bytes: usize) -> Result<HeapRegion, OutOfMemory> {
        let layout = Layout::from_size_align(size_bytes.max(1), 4096).map_err(|_| OutOfMemory)?.pad_to_align();
        #[cfg(shuttle)]
        let base = crate::fixed::take(layout.size());
        // SAFETY: the size is not zero.
        #[cfg(not(shuttle))]
        let base = NonNull::new(unsafe { alloc::alloc::alloc_zeroed(layout) }).ok_or(OutOfMemory)?;
        Ok(HeapRegion { base, layout })
    }

    /// Writes to every page, so that later use takes no page fault (as `MAP_POPULATE` does).
    pub fn populate(&mut self) {
        for offset in (0..self.layout.size()).step_by(4096) {
            // SAFETY: within the block, which is borrowed exclusively.
            unsafe { self.base.add(offset).write_volatile(0) };
        }
    }

    /// Where the block begins, for whoever uses its memory in another way than as an arena.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn base(&mut self) -> NonNull<u8> {
        self.base
    }

    /// Size in bytes, a multiple of 4 KiB.
    pub fn size_bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for HeapRegion {
    fn drop(&mut self) {
        #[cfg(shuttle)]
        crate::fixed::give_back(self.layout.size(), self.base);
        // SAFETY: allocated in `new` with this layout; an arena in it borrowed the region and is gone.
        #[cfg(not(shuttle))]
        unsafe {
            alloc::alloc::dealloc(self.base.as_ptr(), self.layout)
        }
    }
}
