//! The standard library's ordered map behind a lock that readers share.
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::RwLock;

type Map = RwLock<BTreeMap<i64, i64>>;

gallery::ordered_map_adapter! { Map: Map::default;
|map: &Map, key| map.read().unwrap().get(&key).copied(),
|map: &Map, key, value| map.write().unwrap().insert(key, value).is_none(),
|map: &Map, key| map.write().unwrap().remove(&key).is_some(),
|map: &Map| map.read().unwrap().first_key_value().map(|(key, _)| *key),
|map: &Map, key| map.read().unwrap().range((Excluded(key), Unbounded)).next().map(|(key, _)| *key) }
