//! Maps that a transaction keeps: rows in the order in which they came, and an index once they are many.
//!
//! Most transactions know a handful of things. To look through a row of them costs less than any index, and a row that is
//! emptied keeps its memory for the next transaction. With more, a hash of the key finds its row.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};
use core::ops::Index;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Up to so many rows are looked through.
const ROW: usize = 16;
/// For so many there is room at once,
const FIRST: usize = 8;
/// if they take no more than this: allocators keep blocks of up to about a thousand bytes at hand for the next one who asks.
const AT_HAND_BYTES: usize = 1024;

/// Rows by key, in the order in which they came. None goes.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    rows: Vec<(K, V)>,
    /// Of all rows, or of none.
    index: HashTable<u32>,
    /// Chosen by the address of the table's first index, so that nobody prepares keys that meet.
    seed: u64,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table { rows: Vec::new(), index: HashTable::new(), seed: 0 }
    }
}

impl<K: Eq + Hash, V> Table<K, V> {
    fn hash_of(&self, key: &K) -> u64 {
        FixedState::with_seed(self.seed).hash_one(key)
    }

    /// Where a key's row is.
    #[inline]
    pub(crate) fn place(&self, key: &K) -> Option<usize> {
        if self.index.is_empty() {
            return self.rows.iter().position(|(known, _)| known == key);
        }
        let found = self.index.find(self.hash_of(key), |row| self.rows[*row as usize].0 == *key);
        found.map(|row| *row as usize)
    }

    /// Of a table that is indexed: all rows whose key has the hash of this one, and perhaps others.
    pub(crate) fn of_hash(&self, key: &K) -> impl Iterator<Item = &(K, V)> {
        self.index.iter_hash(self.hash_of(key)).map(|row| &self.rows[*row as usize])
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.place(key).map(|row| &self.rows[row].1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.place(key).map(|row| &mut self.rows[row].1)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.place(key).is_some()
    }

    /// Adds a row whose key has none.
    pub(crate) fn push(&mut self, key: K, value: V) -> &mut V {
        let row = self.rows.len();
        if row == 0 {
            // What most transactions know.
            self.rows.reserve_exact(FIRST.min(AT_HAND_BYTES / size_of::<(K, V)>()).max(1));
        }
        self.rows.push((key, value));
        if !self.index.is_empty() {
            self.index_rows(row);
        } else if row >= ROW {
            self.seed = self.rows.as_ptr().addr() as u64;
            self.index_rows(0);
        }
        &mut self.rows[row].1
    }

    fn index_rows(&mut self, from: usize) {
        let (rows, seed) = (&self.rows, self.seed);
        let hash_of = |row: &u32| FixedState::with_seed(seed).hash_one(&rows[*row as usize].0);
        for row in from..rows.len() {
            let row = u32::try_from(row).expect("memory holds fewer rows");
            self.index.insert_unique(hash_of(&row), row, hash_of);
        }
    }

    /// The value of a key, made if it has none.
    pub(crate) fn entry(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        match self.place(&key) {
            Some(row) => &mut self.rows[row].1,
            None => self.push(key, V::default()),
        }
    }
}

impl<K, V> Table<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether rows are few: then who wants several of them looks at each once.
    pub(crate) fn is_looked_through(&self) -> bool {
        self.index.is_empty()
    }

    /// All rows, in the order in which they came.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &(K, V)> {
        self.rows.iter()
    }

    /// The row at a place.
    pub(crate) fn row(&self, place: usize) -> &(K, V) {
        &self.rows[place]
    }

    /// Takes all rows out; their memory stays.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (K, V)> {
        self.index.clear();
        self.rows.drain(..)
    }
}

impl<K: Eq + Hash, V> Index<&K> for Table<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("a key that was kept")
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn rows_are_found_however_many() {
        let mut table = Table::default();
        for key in 0..100_u64 {
            assert_eq!(table.get(&key), None);
            table.push(key, key + 1);
            assert!((0..=key).all(|known| table.get(&known) == Some(&(known + 1))));
        }
        let copy = table.clone();
        assert_eq!(table.drain().count(), 100);
        assert!(table.is_empty() && !table.contains(&1));
        *table.entry(7) = 3;
        assert_eq!((table[&7], copy[&7], copy.len()), (3, 8, 100));
    }
}
