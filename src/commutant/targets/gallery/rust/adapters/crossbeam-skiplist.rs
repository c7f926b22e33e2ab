//! crossbeam's skip list.
use std::ops::Bound::Excluded;

use crossbeam_skiplist::SkipMap;

type Map = SkipMap<i64, i64>;

fn store(map: &Map, key: i64, value: i64) -> bool {
    let is_new = !map.contains_key(&key);
    map.insert(key, value);
    is_new
}

gallery::ordered_map_adapter! { Map: Map::new;
|map: &Map, key| map.get(&key).map(|entry| *entry.value()),
store,
|map: &Map, key| map.remove(&key).is_some(),
|map: &Map| map.front().map(|entry| *entry.key()),
|map: &Map, key| map.lower_bound(Excluded(&key)).map(|entry| *entry.key()) }
