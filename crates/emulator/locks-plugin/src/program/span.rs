//! The spans of a run that are recorded, where not all of it is: what starts the program switches recording on and off
//! by a byte that it shares with this process, and the program itself does so by annotations, if they are asked for.
//!
//! A byte costs one load at each block of code; what happens outside spans costs little more than that.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// The byte, and how this process has last acted on it.
pub struct Switch {
    byte: MmapRaw,
    noted: AtomicBool,
    /// Whether the program's own annotations switch.
    pub heeds_annotations: bool,
}

impl Switch {
    /// Maps the file, whose first byte is 0 while nothing is to be recorded.
    ///
    /// # Errors
    /// One line if it cannot be mapped.
    pub fn open(path: &Path, heeds_annotations: bool) -> Result<Self, String> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let map = file.and_then(|file| MmapOptions::new().len(1).map_raw(&file));
        let byte = map.map_err(|error| format!("expected a file of one byte at '{}': {error}", path.display()))?;
        Ok(Self { byte, noted: AtomicBool::new(false), heeds_annotations })
    }

    fn byte(&self) -> &AtomicU8 {
        // SAFETY: the mapping lives as long as `self`, is writable and holds a byte; other processes change it at any time, and
        // all go by atomic accesses. The one that made the file does not shrink it.
        unsafe { &*self.byte.as_mut_ptr().cast::<AtomicU8>() }
    }

    /// Whether recording is switched on.
    pub fn is_on(&self) -> bool {
        self.byte().load(Ordering::Relaxed) != 0
    }

    /// Switches it, for all processes of the run.
    pub fn set(&self, on: bool) {
        self.byte().store(u8::from(on), Ordering::Relaxed);
    }

    /// The new state, if no one in this process has acted on it yet; the caller does.
    pub fn news(&self) -> Option<bool> {
        let on = self.is_on();
        (on != self.noted.load(Ordering::Relaxed) && self.noted.swap(on, Ordering::Relaxed) != on).then_some(on)
    }
}
