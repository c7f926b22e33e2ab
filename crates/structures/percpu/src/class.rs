//! Size classes: how large the memory is that a slab hands out, and whose it is.

use core::alloc::Layout;

use crate::LINE_BYTES;

/// The map of kinds has a byte for this many bytes of the arena.
pub(crate) const KIND_MAP_BYTES: usize = 4096;
/// Kinds have numbers from 1 to this.
pub const MAX_KIND: u8 = 18;
const SMALLEST_BITS: u32 = LINE_BYTES.trailing_zeros();
const LARGEST_BITS: u32 = 16;
pub(crate) const CLASS_COUNT: usize = (LARGEST_BITS - SMALLEST_BITS + 1) as usize;
/// A batch holds this many bytes of objects, but at most `BATCH_OBJECTS` and at least one.
const BATCH_BYTES: usize = 16 << 10;
const BATCH_OBJECTS: usize = 32;

/// A class of objects: their size, a power of two from 64 bytes to 64 KiB, and perhaps their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    size: u8,
    pub(crate) kind: u8,
}

impl SizeClass {
    /// The smallest class that holds an object of this layout; `None` beyond 64 KiB.
    #[inline]
    pub const fn of(layout: Layout) -> Option<SizeClass> {
        let bytes = if layout.size() > layout.align() { layout.size() } else { layout.align() };
        if bytes > 1 << LARGEST_BITS {
            return None;
        }
        let bits = bytes.next_power_of_two().trailing_zeros();
        Some(SizeClass { size: bits.saturating_sub(SMALLEST_BITS) as u8, kind: 0 })
    }

    /// The class of the same size for objects of the kind whose number is from 1 to [`MAX_KIND`].
    pub(crate) const fn of_kind(self, number: u8) -> SizeClass {
        assert!(number > 0 && number <= MAX_KIND);
        SizeClass { size: self.size, kind: number }
    }

    #[inline]
    pub(crate) const fn magazine(self) -> usize {
        if self.kind == 0 { self.size as usize } else { CLASS_COUNT + self.kind as usize - 1 }
    }

    /// The class for a type.
    ///
    /// # Panics
    /// At compile time if used in a constant: the type is larger than 64 KiB.
    pub const fn of_type<T>() -> SizeClass {
        match SizeClass::of(Layout::new::<T>()) {
            Some(class) => class,
            None => panic!("type larger than the largest size class"),
        }
    }

    /// Bytes of an object of the class.
    #[inline]
    pub const fn object_bytes(self) -> usize {
        LINE_BYTES << self.size
    }

    /// Whether objects of the class are as large and as aligned as this.
    #[inline]
    pub const fn holds(self, layout: Layout) -> bool {
        layout.size() <= self.object_bytes()
            && layout.align() <= self.object_bytes()
            && layout.align() <= KIND_MAP_BYTES
    }

    pub(crate) const fn batch_objects(self) -> u32 {
        let fitting = BATCH_BYTES / self.object_bytes();
        if fitting > BATCH_OBJECTS {
            BATCH_OBJECTS as u32
        } else if fitting == 0 {
            1
        } else {
            fitting as u32
        }
    }

    /// A word for the class that is never zero.
    pub(crate) const fn encode(self) -> u16 {
        ((self.kind as u16) << 8) | (self.size as u16 + 1)
    }

    pub(crate) const fn decode(word: u16) -> Option<SizeClass> {
        match word {
            0 => None,
            _ => Some(SizeClass { size: (word & 0xff) as u8 - 1, kind: (word >> 8) as u8 }),
        }
    }
}
