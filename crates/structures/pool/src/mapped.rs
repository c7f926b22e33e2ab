//! Real memory, by the processor's own instructions.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::instructions::Instructions;
use crate::line::{LINE_BYTES, lines_of};
use crate::memory::{Fault, Memory, in_bounds};

/// Memory at an address, with the processor's instructions for its caches.
///
/// It owns nothing: the caller keeps it mapped.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<'a> {
    start: NonNull<u8>,
    size_bytes: usize,
    instructions: Instructions,
    /// Set once the memory was found to have gone.
    truncated: &'a AtomicBool,
}

// SAFETY: all accesses are by `shared_bytes`, which lets threads and processes read and write the same bytes at once.
unsafe impl Send for Mapped<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapped<'_> {}

impl<'a> Mapped<'a> {
    /// The memory from `start`. While `truncated` is set, every access fails.
    ///
    /// # Safety
    /// For `'a`, `size_bytes` bytes there may be read and written, and are accessed by this crate alone. `start` is a multiple of
    /// [`LINE_BYTES`]. If the memory can go away (a file that is made shorter), a handler replaces it and sets `truncated`.
    pub unsafe fn new(
        start: NonNull<u8>,
        size_bytes: usize,
        instructions: Instructions,
        truncated: &'a AtomicBool,
    ) -> Mapped<'a> {
        debug_assert!(start.addr().get().is_multiple_of(LINE_BYTES));
        Mapped { start, size_bytes, instructions, truncated }
    }

    /// The processor's instructions.
    pub fn instructions(&self) -> Instructions {
        self.instructions
    }

    /// The memory is there, or was not while it was accessed.
    #[inline]
    fn standing(&self) -> Result<(), Fault> {
        // Set by a handler that runs on this thread, or long before by another one.
        if self.truncated.load(Ordering::Relaxed) { Err(Fault::Truncated) } else { Ok(()) }
    }

    #[inline]
    fn each_line(&self, at: usize, length: usize, step: impl Fn(*const u8)) -> Result<(), Fault> {
        in_bounds(at, length, self.size_bytes)?;
        for line in lines_of(at, length) {
            // SAFETY: the line lies within the memory, since memory begins with a line and the bytes lie within.
            step(unsafe { self.start.as_ptr().add(line * LINE_BYTES) });
        }
        self.standing()
    }
}

impl Memory for Mapped<'_> {
    fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    #[inline]
    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        in_bounds(at, into.len(), self.size_bytes)?;
        // SAFETY: within the memory, which `new`'s caller lets this crate read.
        unsafe { shared_bytes::load(into, self.start.as_ptr().add(at)) };
        self.standing()
    }

    #[inline]
    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        in_bounds(at, bytes.len(), self.size_bytes)?;
        // SAFETY: within the memory, which `new`'s caller lets this crate write.
        unsafe { shared_bytes::store(self.start.as_ptr().add(at), bytes) };
        self.standing()
    }

    #[inline]
    fn write_back(&self, at: usize, length: usize) -> Result<(), Fault> {
        // SAFETY: `each_line` gives addresses of mapped lines.
        self.each_line(at, length, |line| unsafe { self.instructions.write_back(line) })
    }

    #[inline]
    fn invalidate(&self, at: usize, length: usize) -> Result<(), Fault> {
        // SAFETY: as above.
        self.each_line(at, length, |line| unsafe { self.instructions.invalidate(line) })?;
        self.instructions.end_of_invalidations();
        Ok(())
    }

    #[inline]
    fn drain(&self) -> Result<(), Fault> {
        self.instructions.drain();
        self.standing()
    }
}
