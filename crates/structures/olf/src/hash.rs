//! Where a key stands in a map: by its hash, read from its last bit on.
//!
//! Bucket b of 2^k holds the hashes whose last k bits are b. Read backwards these lie side by side, and stay so when there
//! are twice as many buckets: half of them belong to bucket b + 2^k then (Shalev and Shavit's split order).

use core::hash::{BuildHasher, Hasher};

/// Makes the [`Mixer`]s of a map.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixing;

/// A hash of 64 bits by multiplications: quick, and no protection against keys that are chosen to collide.
#[derive(Clone, Copy, Debug)]
pub struct Mixer(u64);

impl BuildHasher for Mixing {
    type Hasher = Mixer;

    #[inline]
    fn build_hasher(&self) -> Mixer {
        Mixer(0x243f_6a88_85a3_08d3)
    }
}

impl Mixer {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for Mixer {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.mix(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.mix(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }
}

/// The place of an item: after the sentinel of its bucket.
#[inline]
pub(crate) fn item_order(hash: u64) -> u64 {
    hash.reverse_bits() | 1
}

/// The place of a bucket's sentinel.
#[inline]
pub(crate) fn sentinel_order(bucket: usize) -> u64 {
    (bucket as u64).reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_one_row_and_is_halved_by_the_sentinel_of_a_later_one() {
        for hash in (0..64).chain([u64::MAX, u64::MAX / 3, 1 << 63]) {
            for buckets in [1_u64, 2, 4, 32] {
                let bucket = hash % buckets;
                let next =
                    (0..buckets).map(|other| sentinel_order(other as usize)).filter(|o| *o > item_order(hash)).min();
                assert!(sentinel_order(bucket as usize) < item_order(hash));
                let nearest = (0..buckets).filter(|b| sentinel_order(*b as usize) < item_order(hash));
                assert_eq!(nearest.max_by_key(|b| sentinel_order(*b as usize)), Some(bucket));
                assert!(next.is_none_or(|next| next > sentinel_order(bucket as usize)));
            }
        }
    }

    #[test]
    fn keys_in_a_row_fall_into_many_buckets() {
        let mut is_used = [false; 1024];
        (0..1024_u64).for_each(|key| is_used[Mixing.hash_one(key) as usize % 1024] = true);
        let used = is_used.iter().filter(|is_used| **is_used).count();
        assert!(used > 550, "{used} of 1,024 buckets");
    }
}
