//! The standard library's hash map behind a lock that readers share.
use std::collections::HashMap;
use std::sync::RwLock;

type Map = RwLock<HashMap<i64, i64>>;

gallery::map_adapter! { Map: || RwLock::new(HashMap::with_capacity(gallery::ROOM));
|map: &Map, key| map.read().unwrap().get(&key).copied(),
|map: &Map, key, value| map.write().unwrap().insert(key, value).is_none(),
|map: &Map, key| map.write().unwrap().remove(&key).is_some(),
|map: &Map| map.read().unwrap().len() }
