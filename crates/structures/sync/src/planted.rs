//! Faults planted in the test that runs. Only built under `cfg(loom)`, `cfg(shuttle)` and `cfg(fuzzing)`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

std::thread_local! {
    // All threads of an execution are coroutines on the thread that runs it; a fuzzer has only one.
    static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether the running test planted the fault `name`.
pub fn planted(name: &str) -> bool {
    PLANTED.with(|planted| planted.get() == Some(name))
}

/// Plants the fault `name` in all that this thread does from now on.
pub fn plant(name: &'static str) {
    PLANTED.with(|planted| planted.set(Some(name)));
}

/// Runs `search` with a fault planted and panics unless it does.
pub fn must_be_caught<T: std::fmt::Debug>(mutant: &'static str, search: impl FnOnce() -> T) {
    plant(mutant);
    let outcome = catch_unwind(AssertUnwindSafe(search));
    PLANTED.with(|planted| planted.set(None));
    if let Ok(searched) = outcome {
        panic!("the planted fault `{mutant}` was missed in {searched:?} executions");
    }
}
