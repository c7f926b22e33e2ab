//! Captures of a program's memory: the block that an address lies in, and the calls that asked for it.
//!
//! Byte layout: `docs/reference/trace-format.md`.

/// Calls that a capture has room for, the innermost first.
pub const MOST_SITES: usize = 29;

/// What lies at an address of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum BlockState {
    /// No block.
    None = 0,
    /// A block.
    Live = 1,
    /// A block that was given back within the window.
    Freed = 2,
    /// What the allocator keeps in front of a block.
    Header = 3,
}

/// The block at an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlockCapture {
    /// Where the block begins; without a block the address that was asked for.
    pub address: u64,
    /// Its size; 0 without a block.
    pub size_bytes: u64,
    /// What there is.
    pub state: BlockState,
    /// The calls that asked for it, the innermost first.
    pub sites: Vec<u64>,
}

impl BlockCapture {
    /// Bytes of a capture in a trace.
    pub const SIZE_BYTES: usize = 24 + 8 * MOST_SITES;

    /// The capture as it stands in a trace.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE_BYTES] {
        let mut bytes = [0; Self::SIZE_BYTES];
        let count = self.sites.len().min(MOST_SITES);
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.size_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&(self.state as u32).to_le_bytes());
        bytes[20..24].copy_from_slice(&(count as u32).to_le_bytes());
        for (place, site) in bytes[24..].chunks_exact_mut(8).zip(&self.sites) {
            place.copy_from_slice(&site.to_le_bytes());
        }
        bytes
    }

    /// Reads a capture; `None` if the bytes are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::SIZE_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let half = |at: usize| word(at) as u32;
        let state = match half(16) {
            0 => BlockState::None,
            1 => BlockState::Live,
            2 => BlockState::Freed,
            3 => BlockState::Header,
            _ => return None,
        };
        let count = half(20) as usize;
        if count > MOST_SITES {
            return None;
        }
        let sites = (0..count).map(|index| word(24 + 8 * index)).collect();
        Some(Self { address: word(0), size_bytes: word(8), state, sites })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn captures_come_back(address: u64, size_bytes: u64, state in 0..4usize, sites in proptest::collection::vec(any::<u64>(), 0..=MOST_SITES)) {
            let state = [BlockState::None, BlockState::Live, BlockState::Freed, BlockState::Header][state];
            let capture = BlockCapture { address, size_bytes, state, sites };
            prop_assert_eq!(BlockCapture::from_bytes(&capture.to_bytes()), Some(capture));
        }

        #[test]
        fn any_bytes_are_a_capture_or_none(bytes in proptest::collection::vec(any::<u8>(), BlockCapture::SIZE_BYTES)) {
            let _ = BlockCapture::from_bytes(&bytes);
        }
    }
}
