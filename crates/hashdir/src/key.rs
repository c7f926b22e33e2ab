//! A name with its hash, made once per call.

use core::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;

/// Longest name in bytes (`NAME_MAX` of Linux).
pub const MAX_NAME_BYTES: usize = 255;

/// A name and its hash under a seed. All directories of a file system use one seed.
#[derive(Clone, Copy, Debug)]
pub struct Key<'n> {
    pub(crate) name: &'n [u8],
    pub(crate) hash: u64,
}

impl<'n> Key<'n> {
    /// The key of a name of 1 to 255 bytes; `None` for any other length.
    #[inline]
    pub fn new(name: &'n [u8], seed: u64) -> Option<Key<'n>> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return None;
        }
        // The fixed state depends on nothing but the seed: processes that share an arena agree.
        let mut hasher = FixedState::with_seed(seed).build_hasher();
        hasher.write(name);
        Some(Key { name, hash: hasher.finish() })
    }

    /// The name.
    #[inline]
    pub fn name(&self) -> &'n [u8] {
        self.name
    }

    /// The key of a name with a hash of the caller's choice, for tests of collisions.
    #[doc(hidden)]
    pub fn with_hash(name: &'n [u8], hash: u64) -> Option<Key<'n>> {
        Key::new(name, 0).map(|key| Key { hash, ..key })
    }
}

/// Bits of a cookie that tell entries with (nearly) equal hashes apart.
pub(crate) const TIE_BITS: u32 = 8;

/// Where entries with this hash stand in listings, without the bits that tell ties apart. Below 2^63.
#[inline]
pub(crate) fn position(hash: u64) -> u64 {
    hash.reverse_bits() >> 1 & !((1 << TIE_BITS) - 1)
}
