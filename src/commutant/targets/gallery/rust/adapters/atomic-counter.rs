//! One atomic number.
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use commutant_adapter::Arguments;

fn add(sum: &AtomicI64, arguments: Arguments) {
    sum.fetch_add(arguments.number(0), Relaxed);
}

fn read(sum: &AtomicI64, _: Arguments) -> i64 {
    sum.load(Relaxed)
}

commutant_adapter::library! { AtomicI64: || AtomicI64::new(0); "add(amount)" => add, "read()" => read }
