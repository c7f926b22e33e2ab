//! Two of crossbeam's skip lists. There is no move: an item is inserted in one, then removed from the other.
use crossbeam_skiplist::SkipMap;
use gallery::Keyed;

struct List(SkipMap<i64, i64>);

impl Keyed for List {
    fn make() -> List {
        List(SkipMap::new())
    }

    fn find(&self, key: i64) -> Option<i64> {
        self.0.get(&key).map(|entry| *entry.value())
    }

    fn insert(&self, key: i64, value: i64) -> bool {
        let is_new = !self.0.contains_key(&key);
        if is_new {
            self.0.insert(key, value);
        }
        is_new
    }

    fn remove(&self, key: i64) -> bool {
        self.0.remove(&key).is_some()
    }
}

gallery::lists_adapter! { [List; 2] }
