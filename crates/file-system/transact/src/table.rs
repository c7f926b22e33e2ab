//! Maps that a transaction keeps: rows in the order in which they came, found by chains of those whose keys are alike.
//!
//! A table that is emptied keeps its memory for the next transaction, unless it was a large one.

use alloc::vec::Vec;
use core::ops::Index;

use posix_calls::InodeNumber;

/// So many chains there are at first, and twice as many whenever there is a row for each.
const CHAINS: usize = 32;
/// Memory for more rows than this is given back when the table is emptied.
const KEPT_ROWS: usize = 256;
/// The end of a chain.
const END: u32 = u32::MAX;
/// 2^64 by the golden ratio: the upper bits of a product by it depend on all bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What rows are found by.
pub trait Key: Eq {
    /// A number that equal keys have in common, and others seldom. It need not be spread, and withstands nobody who chooses
    /// keys: names that others choose bring the base's hash.
    fn mixed(&self) -> u64;
}

impl Key for InodeNumber {
    fn mixed(&self) -> u64 {
        self.0
    }
}

/// Rows by key, in the order in which they came. None goes but the last.
#[derive(Debug)]
pub struct Table<K, V> {
    rows: Vec<(K, V)>,
    /// Of each row, the one before it in its chain.
    before: Vec<u32>,
    /// The last row of each chain.
    last: Vec<u32>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table { rows: Vec::new(), before: Vec::new(), last: Vec::new() }
    }
}

impl<K, V> Table<K, V> {
    fn chain_of(&self, mixed: u64) -> usize {
        (mixed.wrapping_mul(SPREAD) >> (u64::BITS - self.last.len().trailing_zeros())) as usize
    }

    /// The places of all rows whose keys have this number, and perhaps of others.
    #[inline]
    fn places(&self, mixed: u64) -> impl Iterator<Item = usize> {
        let mut next = if self.last.is_empty() { END } else { self.last[self.chain_of(mixed)] };
        core::iter::from_fn(move || {
            let place = (next != END).then_some(next as usize)?;
            next = self.before[place];
            Some(place)
        })
    }

    /// All rows whose keys have this number ([`Key::mixed`]), and perhaps others.
    pub(crate) fn like(&self, mixed: u64) -> impl Iterator<Item = &(K, V)> {
        self.places(mixed).map(|place| &self.rows[place])
    }
}

impl<K: Key, V> Table<K, V> {
    /// Where a key's row is.
    #[inline]
    pub(crate) fn place(&self, key: &K) -> Option<usize> {
        self.places(key.mixed()).find(|place| self.rows[*place].0 == *key)
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.place(key).map(|row| &self.rows[row].1)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.place(key).is_some()
    }

    /// Adds a row whose key has none.
    pub(crate) fn push(&mut self, key: K, value: V) -> &mut V {
        let row = self.rows.len();
        if row == self.last.len() {
            self.grow();
        }
        self.chain(row, &key);
        self.rows.push((key, value));
        &mut self.rows[row].1
    }

    fn chain(&mut self, row: usize, key: &K) {
        let chain = self.chain_of(key.mixed());
        let row = u32::try_from(row).expect("memory holds fewer rows");
        self.before.push(core::mem::replace(&mut self.last[chain], row));
    }

    #[cold]
    fn grow(&mut self) {
        let chains = (2 * self.last.len()).max(CHAINS);
        self.last.clear();
        self.last.resize(chains, END);
        self.before.clear();
        self.before.reserve_exact(chains);
        let rows = core::mem::take(&mut self.rows);
        rows.iter().enumerate().for_each(|(row, (key, _))| self.chain(row, key));
        self.rows = rows;
        self.rows.reserve_exact(chains - self.rows.len());
    }

    /// Takes the last row out.
    pub(crate) fn pop(&mut self) {
        if let (Some((key, _)), Some(before)) = (self.rows.pop(), self.before.pop()) {
            // It was the last of its chain, as of all.
            let chain = self.chain_of(key.mixed());
            self.last[chain] = before;
        }
    }
}

impl<K, V> Table<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// All rows, in the order in which they came.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &(K, V)> {
        self.rows.iter()
    }

    /// The row at a place.
    pub(crate) fn row(&self, place: usize) -> &(K, V) {
        &self.rows[place]
    }

    /// The value at a place, to be changed.
    pub(crate) fn row_mut(&mut self, place: usize) -> &mut V {
        &mut self.rows[place].1
    }

    /// Takes all rows out; their memory stays, unless there were many.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(K, V)) {
        self.rows.drain(..).for_each(|(key, value)| each(key, value));
        self.clear();
    }

    /// As [`Table::drain`], row by row where they are.
    pub(crate) fn clear(&mut self) {
        if self.last.len() > KEPT_ROWS {
            *self = Table::default();
        } else if !self.before.is_empty() {
            self.rows.clear();
            self.before.clear();
            self.last.fill(END);
        }
    }
}

impl<K: Key, V> Index<&K> for Table<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("a key that was kept")
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{KEPT_ROWS, Key, Table};

    impl Key for u64 {
        /// Many meet.
        fn mixed(&self) -> u64 {
            *self / 3
        }
    }

    #[test]
    fn rows_are_found_however_many() {
        let mut table = Table::default();
        for key in 0..100_u64 {
            assert_eq!(table.get(&key), None);
            table.push(key, key + 1);
            assert!((0..=key).all(|known| table.get(&known) == Some(&(known + 1))));
        }
        for key in (50..100).rev() {
            table.pop();
            assert!((0..100).all(|known| table.get(&known).is_some() == (known < key)));
        }
        let mut drained = Vec::new();
        table.drain(|key, _| drained.push(key));
        assert_eq!(drained, Vec::from_iter(0..50));
        assert!(table.len() == 0 && !table.contains(&1) && table.rows.capacity() >= 100);
        table.push(7, 3);
        assert_eq!(table[&7], 3);
    }

    #[test]
    fn memory_for_many_rows_is_given_back() {
        let mut table = Table::default();
        (0..=KEPT_ROWS as u64).for_each(|key| assert_eq!(*table.push(key, key), key));
        table.clear();
        assert_eq!((table.rows.capacity(), table.place(&0)), (0, None));
        assert_eq!((*table.push(0, 5), table.place(&0)), (5, Some(0)));
    }
}
