//! papaya: a hash map whose readers write nothing.
use papaya::HashMap;

type Map = HashMap<i64, i64>;

gallery::map_adapter! { Map: || HashMap::with_capacity(gallery::ROOM);
|map: &Map, key| map.pin().get(&key).copied(),
|map: &Map, key, value| map.pin().insert(key, value).is_none(),
|map: &Map, key| map.pin().remove(&key).is_some(),
HashMap::len }
