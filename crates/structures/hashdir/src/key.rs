//! A name with its hash, made once per call.
//!
//! **Neighbours.** Names that differ in their last byte alone lie in neighbouring buckets: file-10, file-11, file-12. Names
//! are often made in such runs, and used in them; then the next bucket's lines are on the page, and on the way into the
//! cache, that the one before led to, whereas in a large directory each line of a bucket that is anywhere comes from memory.
//! Such names never collide, if there are 256 buckets. Everything else about the hash is as random as the function is:
//! which bucket a run begins at, and the upper half, by which names of one bucket are distinguished.

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
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
        let (&last, stem) = name.split_last()?;
        // The fixed state depends on nothing but the seed: processes that share an arena agree.
        let mut hasher = FixedState::with_seed(seed).build_hasher();
        hasher.write(stem);
        Some(Key { name, hash: hash_of(hasher.finish(), last) })
    }

    /// The name.
    #[inline]
    pub fn name(&self) -> &'n [u8] {
        self.name
    }

    /// Its hash.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The key of a name that had one with this hash, under the same seed.
    #[inline]
    pub fn again(name: &'n [u8], hash: u64) -> Key<'n> {
        Key { name, hash }
    }

    /// The key of a name with a hash of the caller's choice, for tests of collisions.
    #[doc(hidden)]
    pub fn with_hash(name: &'n [u8], hash: u64) -> Option<Key<'n>> {
        Key::new(name, 0).map(|key| Key { hash, ..key })
    }
}

/// The hash of a name from that of its stem and its last byte.
#[inline]
fn hash_of(stem_hash: u64, last: u8) -> u64 {
    let bucket = (stem_hash as u32 & !0xff) | u32::from((stem_hash as u8).wrapping_add(last));
    // The halves of a product with an odd constant (that of Fibonacci hashing), one upon the other, depend on all bits of
    // both, as in foldhash.
    let product = u128::from(stem_hash ^ u64::from(last) << 24) * 0x9e37_79b9_7f4a_7c15;
    let upper = (product as u64) ^ ((product >> 64) as u64);
    u64::from(bucket) | upper & !u64::from(u32::MAX)
}

/// Bits of a cookie that tell entries with (nearly) equal hashes apart.
pub(crate) const TIE_BITS: u32 = 8;

/// Where entries with this hash stand in listings, without the bits that tell ties apart. Below 2^63.
#[inline]
pub(crate) fn position(hash: u64) -> u64 {
    hash.reverse_bits() >> 1 & !((1 << TIE_BITS) - 1)
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    extern crate std;
    use std::collections::HashMap;
    use std::string::String;
    use std::vec::Vec;
    use std::{format, vec};

    use super::Key;

    const COUNT: usize = 100_000;
    const SEEDS: [u64; 3] = [0, 1, 0x9e37_79b9];

    fn hash(name: &str, seed: u64) -> u64 {
        Key::new(name.as_bytes(), seed).unwrap().hash
    }

    /// Names as programs make them.
    fn families() -> Vec<(&'static str, Vec<String>)> {
        vec![
            ("numbers", (0..COUNT).map(|number| format!("file-{number}")).collect()),
            ("padded numbers", (0..COUNT).map(|number| format!("{number:08}")).collect()),
            ("numbers with an ending", (0..COUNT).map(|number| format!("img_{number}.jpeg")).collect()),
            ("hexadecimal", (0..COUNT).map(|number| format!("{:x}", number * 0x9e37_79b9)).collect()),
            ("one stem each", (0..COUNT).map(|number| format!("{number}x")).collect()),
        ]
    }

    /// Pairs of equal values, of as many as there would be by chance if each of `possible` values were as likely.
    fn collisions_of_expected(values: impl Iterator<Item = u64>, possible: usize) -> f64 {
        let mut loads = HashMap::<u64, u64>::new();
        let count = values.map(|value| *loads.entry(value).or_default() += 1).count() as f64;
        let pairs: u64 = loads.values().map(|load| load * (load - 1) / 2).sum();
        pairs as f64 / (count * (count - 1.0) / 2.0 / possible as f64)
    }

    #[test]
    fn names_that_differ_in_their_last_byte_are_neighbours() {
        for seed in SEEDS {
            for stem in ["", "a", "file-1234", &"x".repeat(254)] {
                let bucket = |last: u8| {
                    let name = [stem.as_bytes(), &[last]].concat();
                    Key::new(&name, seed).unwrap().hash as u32
                };
                for last in 0..255 {
                    let (here, next) = (bucket(last), bucket(last + 1));
                    assert_eq!(here & !0xff, next & !0xff);
                    assert_eq!((here as u8).wrapping_add(1), next as u8);
                }
            }
        }
    }

    #[test]
    fn buckets_are_as_even_as_by_chance_at_least() {
        for seed in SEEDS {
            for (family, names) in families() {
                for bucket_count in [64, 4096, 1 << 17, 1 << 20] {
                    let buckets = names.iter().map(|name| hash(name, seed) & (bucket_count - 1));
                    let found = collisions_of_expected(buckets, bucket_count as usize);
                    assert!(found < 1.1, "{family}, seed {seed}, {bucket_count} buckets: {found}");
                }
            }
        }
    }

    /// The filter of a bucket, and the order of its entries in a listing, go by the upper half.
    #[test]
    fn names_of_one_bucket_differ_in_the_upper_half() {
        for seed in SEEDS {
            for (family, names) in families() {
                let hashes: Vec<_> = names.iter().map(|name| hash(name, seed)).collect();
                let filter = |hash: &u64| (hash & 1023) << 6 | hash >> 48 & 63;
                let found = collisions_of_expected(hashes.iter().map(filter), 1024 * 64);
                assert!(found < 1.1, "{family}, seed {seed}, bits of the filter: {found}");
                let upper = collisions_of_expected(hashes.iter().map(|hash| hash >> 40), 1 << 24);
                assert!((0.7..1.3).contains(&upper), "{family}, seed {seed}, upper 24 bits: {upper}");
                let whole: std::collections::HashSet<_> = hashes.iter().collect();
                assert_eq!(whole.len(), names.len(), "{family}, seed {seed}: equal hashes");
            }
        }
    }

    #[test]
    fn another_seed_is_another_function() {
        let apart = (0..1000).filter(|number| {
            let name = format!("{number}");
            hash(&name, 1) & 0xffff != hash(&name, 2) & 0xffff
        });
        assert!(apart.count() > 980);
    }
}
