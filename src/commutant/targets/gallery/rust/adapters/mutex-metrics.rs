//! Counters by name in the standard library's hash map behind a lock.
use std::collections::HashMap;
use std::sync::Mutex;

use commutant_adapter::Arguments;

type Counters = Mutex<HashMap<String, i64>>;

fn add(counters: &Counters, arguments: Arguments) {
    *counters.lock().unwrap().entry(arguments.text(0).to_owned()).or_default() += arguments.number(1);
}

fn read(counters: &Counters, arguments: Arguments) -> i64 {
    counters.lock().unwrap().get(arguments.text(0)).copied().unwrap_or_default()
}

commutant_adapter::library! { Counters: || Mutex::new(HashMap::with_capacity(gallery::ROOM));
"add(name, amount)" => add, "read(name)" => read }
