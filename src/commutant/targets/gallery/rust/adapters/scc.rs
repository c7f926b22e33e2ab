//! scc: a hash map with a lock per bucket of entries.
use scc::HashMap;

type Map = HashMap<i64, i64>;

gallery::map_adapter! { Map: || HashMap::with_capacity(gallery::ROOM);
|map: &Map, key| map.read_sync(&key, |_, value| *value),
|map: &Map, key, value| map.upsert_sync(key, value).is_none(),
|map: &Map, key| map.remove_sync(&key).is_some(),
HashMap::len }
