//! Which memory belongs to locks: every section modifies it, so it is left out of address sets (section 3 of the paper).

use std::collections::BTreeMap;

use crate::address_set::Word;

/// The memory of all locks seen.
#[derive(Debug, Default)]
pub struct LockWords {
    /// First address after a lock, by its first address; locks do not overlap.
    ends: BTreeMap<u64, u64>,
}

impl LockWords {
    /// A lock lies at `address`. What it overlaps was a lock in memory that has been reused, and is forgotten.
    pub fn add(&mut self, address: u64, size_bytes: u32) {
        let end = address.saturating_add(u64::from(size_bytes));
        if self.ends.get(&address) == Some(&end) {
            return;
        }
        while let Some((&start, _)) = self.ends.range(..end).next_back().filter(|&(_, &old_end)| old_end > address) {
            self.ends.remove(&start);
        }
        self.ends.insert(address, end);
    }

    /// Removes the bytes of locks from a word. Whether anything is left.
    pub fn filter(&self, word: &mut Word) -> bool {
        let (first, behind) = (word.number * 8, word.number * 8 + 8);
        for (&start, &end) in self.ends.range(..behind).rev().take_while(|&(_, &end)| end > first) {
            let (low, high) = (start.max(first) - first, end.min(behind) - first);
            let mask = (((1_u16 << high) - 1) & !((1_u16 << low) - 1)) as u8;
            word.read &= !mask;
            word.written &= !mask;
        }
        word.read | word.written != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(number: u64) -> Word {
        Word { number, read: 0xff, written: 0xff, per_cpu: false, read_site: 0, write_site: 0 }
    }

    proptest! {
        #[test]
        fn exactly_the_bytes_of_locks_are_filtered(
            locks in proptest::collection::vec((0_u64..100, 1_u32..41), 0..8)
        ) {
            let mut words = LockWords::default();
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (address, size_bytes) in locks {
                let end = address + u64::from(size_bytes);
                live.retain(|&(start, old_end)| old_end <= address || end <= start);
                live.push((address, end));
                words.add(address, size_bytes);
            }
            for number in 0..20 {
                let mut filtered = word(number);
                let kept = words.filter(&mut filtered);
                let expected = (0..8)
                    .filter(|byte| !live.iter().any(|&(start, end)| (start..end).contains(&(number * 8 + byte))))
                    .fold(0_u8, |mask, byte| mask | 1 << byte);
                prop_assert_eq!((filtered.read, filtered.written, kept), (expected, expected, expected != 0));
            }
        }
    }
}
