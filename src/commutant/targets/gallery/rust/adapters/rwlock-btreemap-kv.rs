//! The standard library's ordered map behind a lock that readers share, as a store.
use std::collections::BTreeMap;
use std::sync::RwLock;

use commutant_adapter::{Answer, Arguments, Errno, Items, Member, Sequence};

type Store = RwLock<BTreeMap<i64, i64>>;

fn get(store: &Store, arguments: Arguments) -> Result<Member, Errno> {
    store.read().unwrap().get(&arguments.number(0)).copied().map(Member).ok_or(Errno::ENOENT)
}

fn put(store: &Store, arguments: Arguments) {
    store.write().unwrap().insert(arguments.number(0), arguments.number(1));
}

fn remove(store: &Store, arguments: Arguments) {
    store.write().unwrap().remove(&arguments.number(0));
}

fn compare_and_swap(store: &Store, arguments: Arguments) -> bool {
    match store.write().unwrap().get_mut(&arguments.number(0)) {
        Some(value) if *value == arguments.number(1) => {
            *value = arguments.number(2);
            true
        }
        _ => false,
    }
}

fn scan(store: &Store, arguments: Arguments) -> impl Answer + use<> {
    let (low, high) = (arguments.number(0), arguments.number(1));
    let found: Vec<i64> = match low <= high {
        true => store.read().unwrap().range(low..=high).map(|(_, value)| *value).collect(),
        false => Vec::new(),
    };
    Sequence(move |items: &mut Items| found.iter().for_each(|value| items.put(Member(*value))))
}

commutant_adapter::library! { Store: Store::default;
"get(key)" => get, "put(key, value)" => put, "remove(key)" => remove,
"compare_and_swap(key, old, new)" => compare_and_swap, "scan(low, high)" => scan }
