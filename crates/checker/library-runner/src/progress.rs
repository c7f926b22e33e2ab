//! How far the runner has come, for those who watch it: a number of windows in memory that both have mapped.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count of windows in a shared page.
pub struct Progress(&'static AtomicU64);

impl Progress {
    /// Maps the first page of a file of at least 8 bytes.
    ///
    /// # Errors
    /// It cannot be opened or mapped.
    pub fn map(path: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{path}: {error}");
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        // SAFETY: a new mapping, which is never taken back.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<AtomicU64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(failed(std::io::Error::last_os_error()));
        }
        // SAFETY: mapped above forever, aligned to a page; the other side only reads.
        Ok(Self(unsafe { &*mapped.cast() }))
    }

    /// One more window begins.
    pub fn step(&self) {
        // Relaxed: a lone number.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
