//! dashmap: shards, each behind a lock that readers share.
use dashmap::DashMap;

type Map = DashMap<i64, i64>;

gallery::map_adapter! { Map: || DashMap::with_capacity(gallery::ROOM);
|map: &Map, key| map.get(&key).map(|entry| *entry),
|map: &Map, key, value| map.insert(key, value).is_none(),
|map: &Map, key| map.remove(&key).is_some(),
DashMap::len }
