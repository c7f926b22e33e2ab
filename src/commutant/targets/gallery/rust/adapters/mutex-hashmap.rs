//! The standard library's hash map behind a lock.
use std::collections::HashMap;
use std::sync::Mutex;

type Map = Mutex<HashMap<i64, i64>>;

gallery::map_adapter! { Map: || Mutex::new(HashMap::with_capacity(gallery::ROOM));
|map: &Map, key| map.lock().unwrap().get(&key).copied(),
|map: &Map, key, value| map.lock().unwrap().insert(key, value).is_none(),
|map: &Map, key| map.lock().unwrap().remove(&key).is_some(),
|map: &Map| map.lock().unwrap().len() }
