//! prometheus: counters by the value of a label.
use commutant_adapter::Arguments;
use prometheus::{IntCounterVec, Opts};

fn make() -> IntCounterVec {
    IntCounterVec::new(Opts::new("calls", "Calls by name."), &["name"]).expect("a good name")
}

fn add(counters: &IntCounterVec, arguments: Arguments) {
    counters.with_label_values(&[arguments.text(0)]).inc_by(arguments.number(1) as u64);
}

fn read(counters: &IntCounterVec, arguments: Arguments) -> i64 {
    counters.with_label_values(&[arguments.text(0)]).get() as i64
}

commutant_adapter::library! { IntCounterVec: make; "add(name, amount)" => add, "read(name)" => read }
