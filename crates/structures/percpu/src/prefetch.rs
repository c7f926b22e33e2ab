//! Asking for lines before they are written.
//!
//! A call that ends with a fence waits there for all of its stores, and a store for its line. Lines that the core will
//! write for sure are therefore asked for as soon as that is known, so that they come while it does other work. Lines that
//! it may not write are not: to ask for a line to write it takes it from other cores.
//!
//! A line that is asked for to be written occupies one of the first-level cache's few places for lines that are under way. Many
//! lines out of memory would keep those from what the call needs at once: they are asked for as far as the second-level cache.

use crate::LINE_BYTES;

/// Asks for the lines of this many bytes, to write them. Null asks for nothing.
#[inline]
pub fn prefetch_for_writing(start: *const u8, size_bytes: usize) {
    for line in lines(start, size_bytes) {
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        // SAFETY: a hint, for any address: it changes no register, no flag, and nothing in memory.
        unsafe {
            core::arch::asm!("prefetchw [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly));
        }
        let _ = line;
    }
}

/// Brings the lines of this many bytes, which no other core uses, near.
#[inline]
pub(crate) fn prefetch_unshared(start: *const u8, size_bytes: usize) {
    for line in lines(start, size_bytes) {
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        // SAFETY: a hint, as in `prefetch_for_writing`.
        unsafe {
            core::arch::asm!("prefetcht1 [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly));
        }
        let _ = line;
    }
}

#[inline]
fn lines(start: *const u8, size_bytes: usize) -> impl Iterator<Item = *const u8> {
    (0..size_bytes).step_by(LINE_BYTES).map(move |offset| start.wrapping_add(offset))
}
