//! Asking for lines before they are written.
//!
//! A call that ends with a fence waits there for all of its stores, and a store for its line. Lines that the core will
//! write for sure are therefore asked for as soon as that is known, so that they come while it does other work. Lines that
//! it may not write are not: to ask for a line to write it takes it from other cores.

/// Asks for the lines of so many bytes, to write them. Null asks for nothing.
#[inline]
pub fn prefetch_for_writing(start: *const u8, size_bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    for offset in (0..size_bytes).step_by(crate::LINE_BYTES) {
        let line = start.wrapping_add(offset);
        // SAFETY: a hint, for any address: it changes no register, no flag, and nothing in memory.
        unsafe {
            core::arch::asm!("prefetchw [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    let _ = (start, size_bytes);
}
