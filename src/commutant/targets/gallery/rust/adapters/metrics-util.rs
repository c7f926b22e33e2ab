//! metrics-util: its registry of counters by key.
use std::sync::atomic::Ordering::Relaxed;

use commutant_adapter::Arguments;
use metrics::Key;
use metrics_util::registry::{AtomicStorage, Registry};

type Counters = Registry<Key, AtomicStorage>;

fn key(arguments: Arguments) -> Key {
    Key::from_name(arguments.text(0).to_owned())
}

fn add(counters: &Counters, arguments: Arguments) {
    let amount = arguments.number(1) as u64;
    counters.get_or_create_counter(&key(arguments), |counter| {
        counter.fetch_add(amount, Relaxed);
    });
}

fn read(counters: &Counters, arguments: Arguments) -> i64 {
    counters.get_counter(&key(arguments)).map_or(0, |counter| counter.load(Relaxed) as i64)
}

commutant_adapter::library! { Counters: Registry::atomic; "add(name, amount)" => add, "read(name)" => read }
