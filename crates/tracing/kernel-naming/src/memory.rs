//! The guest's physical memory, as the emulator's RAM file maps it into this process.
//!
//! The guest may run (or a device may write) while it is read, so memory is a slice of atomic words, read with relaxed
//! loads. Whatever is read is hostile data: every address is checked, and an address outside memory reads as `None`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where QEMU's x86 machines continue RAM that does not fit below the PCI hole.
const FOUR_GIB: u64 = 1 << 32;

/// A view of guest RAM by physical address. Cheap to copy.
#[derive(Clone, Copy)]
pub struct GuestMemory<'a> {
    words: &'a [AtomicU64],
    below_4g_bytes: u64,
}

impl<'a> GuestMemory<'a> {
    /// `words` is the whole RAM file; its first `below_4g_bytes` bytes lie at physical address 0, the rest at 4 GiB.
    /// For RAM that has no part above the hole pass any value from the file's size on, for instance `u64::MAX`.
    #[must_use]
    pub fn new(words: &'a [AtomicU64], below_4g_bytes: u64) -> Self {
        let size_bytes = words.len() as u64 * 8;
        Self { words, below_4g_bytes: below_4g_bytes.min(size_bytes).min(FOUR_GIB) & !7 }
    }

    /// One past the highest physical address that RAM may have.
    #[must_use]
    pub fn physical_end(&self) -> u64 {
        let size_bytes = self.words.len() as u64 * 8;
        if size_bytes > self.below_4g_bytes { FOUR_GIB + (size_bytes - self.below_4g_bytes) } else { size_bytes }
    }

    /// The aligned word that holds `physical`, or `None` outside RAM.
    fn word(&self, physical: u64) -> Option<u64> {
        let offset = if physical < self.below_4g_bytes {
            physical
        } else {
            physical.checked_sub(FOUR_GIB)?.checked_add(self.below_4g_bytes)?
        };
        let word = self.words.get(usize::try_from(offset / 8).ok()?)?;
        // Relaxed: the guest is no thread of this program; there is nothing to pair with.
        Some(u64::from_le(word.load(Ordering::Relaxed)))
    }

    /// The little-endian 8 bytes at `physical`, at any alignment.
    #[must_use]
    pub fn read_u64(&self, physical: u64) -> Option<u64> {
        let shift = (physical % 8) * 8;
        let low = self.word(physical)?;
        if shift == 0 {
            return Some(low);
        }
        let high = self.word(physical.checked_add(8)?)?;
        Some((low >> shift) | (high << (64 - shift)))
    }

    /// The little-endian 4 bytes at `physical`, at any alignment.
    #[must_use]
    pub fn read_u32(&self, physical: u64) -> Option<u32> {
        let shift = (physical % 8) * 8;
        if shift <= 32 {
            return Some((self.word(physical)? >> shift) as u32);
        }
        Some(self.read_u64(physical)? as u32)
    }

    /// The byte at `physical`.
    #[must_use]
    pub fn read_u8(&self, physical: u64) -> Option<u8> {
        Some((self.word(physical)? >> ((physical % 8) * 8)) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[u64]) -> Vec<AtomicU64> {
        values.iter().map(|value| AtomicU64::new(value.to_le())).collect()
    }

    #[test]
    fn reads_at_any_alignment() {
        let ram = words(&[0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let memory = GuestMemory::new(&ram, u64::MAX);
        for start in 0..=8u64 {
            let expected = (0..8).fold(0u64, |value, index| value | ((start + index) << (8 * index)));
            assert_eq!(memory.read_u64(start), Some(expected));
        }
        for start in 0..=12u64 {
            let expected = (0..4).fold(0u32, |value, index| value | (((start + index) as u32) << (8 * index)));
            assert_eq!(memory.read_u32(start), Some(expected));
        }
        for start in 0..16u64 {
            assert_eq!(memory.read_u8(start), Some(start as u8));
        }
    }

    #[test]
    fn ends_where_memory_ends() {
        let ram = words(&[1, 2]);
        let memory = GuestMemory::new(&ram, u64::MAX);
        assert_eq!(memory.physical_end(), 16);
        assert_eq!(memory.read_u64(9), None);
        assert_eq!(memory.read_u32(13), None);
        assert_eq!(memory.read_u8(16), None);
        for address in [u64::MAX, u64::MAX - 7, FOUR_GIB, FOUR_GIB - 1] {
            assert_eq!(
                (memory.read_u64(address), memory.read_u32(address), memory.read_u8(address)),
                (None, None, None)
            );
        }
    }

    #[test]
    fn continues_above_the_hole_at_4_gib() {
        let ram = words(&[1, 2, 3]);
        let memory = GuestMemory::new(&ram, 16);
        assert_eq!(memory.physical_end(), FOUR_GIB + 8);
        assert_eq!(memory.read_u64(8), Some(2));
        assert_eq!(memory.read_u64(16), None);
        assert_eq!(memory.read_u64(12), None);
        assert_eq!(memory.read_u64(FOUR_GIB), Some(3));
        assert_eq!(memory.read_u64(FOUR_GIB + 8), None);
    }
}
