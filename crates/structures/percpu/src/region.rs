//! Memory for an arena from the global allocator: for tests, benchmarks, and users within one process.

#[cfg(not(shuttle))]
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::OutOfMemory;

/// A zeroed, page-aligned block from the global allocator (under `--cfg shuttle`, one at the same address in each run, of
/// any content); an [`Arena`](crate::Arena) borrows it.
pub struct HeapRegion {
    base: NonNull<u8>,
    size_bytes: usize,
    /// What was asked of the allocator, and got: up to a page more.
    #[cfg(not(shuttle))]
    block: (NonNull<u8>, Layout),
}

const PAGE_BYTES: usize = 4096;

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
        let size_bytes = size_bytes.max(1).checked_next_multiple_of(PAGE_BYTES).ok_or(OutOfMemory)?;
        #[cfg(shuttle)]
        return Ok(HeapRegion { base: crate::fixed::take(size_bytes), size_bytes });
        // Of memory that it aligns by itself the system's allocator writes each byte.
        #[cfg(not(shuttle))]
        {
            let with_slack = size_bytes.checked_add(PAGE_BYTES).ok_or(OutOfMemory)?;
            let layout = Layout::from_size_align(with_slack, align_of::<u64>()).map_err(|_| OutOfMemory)?;
            // SAFETY: the size is not zero.
            let block = NonNull::new(unsafe { alloc::alloc::alloc_zeroed(layout) }).ok_or(OutOfMemory)?;
            // SAFETY: less than a page further on, so within the block, and the region ends in it.
            let base = unsafe { block.add(block.as_ptr().align_offset(PAGE_BYTES)) };
            Ok(HeapRegion { base, size_bytes, block: (block, layout) })
        }
    }

    /// Writes to every page, so that later use takes no page fault (as `MAP_POPULATE` does).
    pub fn populate(&mut self) {
        for offset in (0..self.size_bytes).step_by(PAGE_BYTES) {
            // SAFETY: within the block, which is borrowed exclusively.
            unsafe { self.base.add(offset).write_volatile(0) };
        }
    }

    /// Where the block begins, for code that uses its memory in another way than as an arena.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn base(&mut self) -> NonNull<u8> {
        self.base
    }

    /// Size in bytes, a multiple of 4 KiB.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

impl Drop for HeapRegion {
    fn drop(&mut self) {
        #[cfg(shuttle)]
        crate::fixed::give_back(self.size_bytes, self.base);
        // SAFETY: allocated in `new` with this layout; an arena in it borrowed the region and is gone.
        #[cfg(not(shuttle))]
        unsafe {
            alloc::alloc::dealloc(self.block.0.as_ptr(), self.block.1)
        }
    }
}
