//! Lines: what caches move, and so what two domains must not both write.

use core::ops::Range;

/// Bytes of a cache line, the unit of every write-back and invalidation.
pub const LINE_BYTES: usize = 64;

/// The line that holds the byte at this offset of the pool.
pub const fn line_of(at: usize) -> usize {
    at / LINE_BYTES
}

/// The lines that `length` bytes from `at` lie in.
pub const fn lines_of(at: usize, length: usize) -> Range<usize> {
    if length == 0 { line_of(at)..line_of(at) } else { line_of(at)..line_of(at + length - 1) + 1 }
}
