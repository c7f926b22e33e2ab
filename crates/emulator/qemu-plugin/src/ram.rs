//! The guest's RAM as a read-only mapping of the file behind it (QEMU's `memory-backend-file` or `-memfd`, shared).

use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

/// The mapped RAM. QEMU may give the file its size only after the plugin was installed, so it is mapped on first use.
pub struct Ram {
    file: File,
    map: Option<MmapRaw>,
}

impl Ram {
    /// Opens the file.
    ///
    /// # Errors
    /// One line if it cannot be opened.
    pub fn open(path: &Path) -> Result<Ram, String> {
        let file = File::open(path)
            .map_err(|error| format!("expected the guest's RAM file at '{}': {error}", path.display()))?;
        Ok(Ram { file, map: None })
    }

    /// The RAM as words, at the offsets of the file.
    ///
    /// # Errors
    /// One line if the file is empty or cannot be mapped.
    pub fn words(&mut self) -> Result<&[AtomicU64], String> {
        if self.map.is_none() {
            let map = MmapOptions::new()
                .map_raw_read_only(&self.file)
                .map_err(|error| format!("cannot map the guest's RAM file: {error}"))?;
            self.map = Some(map);
        }
        let map = self.map.as_ref().ok_or("the guest's RAM is not mapped")?;
        // SAFETY: the mapping lives as long as `self`, is page-aligned, and holds `len` bytes. It is shared with the
        // guest, which changes it at any time: atomic words, which this process only loads, allow for that. QEMU never
        // shrinks the file.
        Ok(unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<AtomicU64>(), map.len() / 8) })
    }
}
