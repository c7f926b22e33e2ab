//! Memory that can be mapped at several addresses.

use core::ptr::{self, NonNull};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use percpu::OutOfMemory;

/// A file without a name, in memory, mapped as a whole.
pub(crate) struct MemoryFile {
    file: OwnedFd,
    base: NonNull<u8>,
    size_bytes: usize,
}

// SAFETY: the mapping is plain memory; whoever is given its address sees to who uses it when.
unsafe impl Send for MemoryFile {}
// SAFETY: as above.
unsafe impl Sync for MemoryFile {}

impl MemoryFile {
    /// Zeros, a multiple of a page.
    pub(crate) fn new(size_bytes: usize) -> Result<MemoryFile, OutOfMemory> {
        // SAFETY: a name that ends with zero.
        let number = unsafe { libc::memfd_create(c"scalefs-pages".as_ptr(), libc::MFD_CLOEXEC) };
        if number < 0 {
            return Err(OutOfMemory);
        }
        // SAFETY: opened just now.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        let length = libc::off_t::try_from(size_bytes).map_err(|_| OutOfMemory)?;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new file, and a new mapping of it.
        let base = unsafe {
            if libc::ftruncate(number, length) != 0 {
                return Err(OutOfMemory);
            }
            libc::mmap(ptr::null_mut(), size_bytes, rights, libc::MAP_SHARED, number, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(OutOfMemory);
        }
        let base = NonNull::new(base.cast()).ok_or(OutOfMemory)?;
        Ok(MemoryFile { file, base, size_bytes })
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    pub(super) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; who used it has borrowed this value or counts for it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size_bytes) };
    }
}
