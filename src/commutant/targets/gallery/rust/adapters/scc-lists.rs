//! Two of scc's hash maps. There is no move: an item is inserted in one, then removed from the other.
use gallery::Keyed;
use scc::HashMap;

struct Map(HashMap<i64, i64>);

impl Keyed for Map {
    fn make() -> Map {
        Map(HashMap::with_capacity(gallery::ROOM))
    }

    fn find(&self, key: i64) -> Option<i64> {
        self.0.read_sync(&key, |_, value| *value)
    }

    fn insert(&self, key: i64, value: i64) -> bool {
        self.0.insert_sync(key, value).is_ok()
    }

    fn remove(&self, key: i64) -> bool {
        self.0.remove_sync(&key).is_some()
    }
}

gallery::lists_adapter! { [Map; 2] }
