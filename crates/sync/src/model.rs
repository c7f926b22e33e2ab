//! What loom models share: exploring with a bound, counting executions, planting faults. Only built under `cfg(loom)`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    // loom runs all threads of a model as coroutines on the thread that explores it.
    static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether the running model planted the fault `name`.
pub fn planted(name: &str) -> bool {
    PLANTED.with(|planted| planted.get() == Some(name))
}

/// Explores all executions of `body` with at most `preemptions` preemptive switches and returns how many there were.
///
/// Callers assert a lower bound on the number: a model whose threads never meet explores a handful and proves nothing.
pub fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        body();
    });
    executions.load(Ordering::Relaxed)
}

/// Explores `body` with the fault `mutant` planted and panics unless some execution fails.
pub fn must_catch(mutant: &'static str, preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    PLANTED.with(|planted| planted.set(Some(mutant)));
    let outcome = catch_unwind(AssertUnwindSafe(|| explore(preemptions, body)));
    PLANTED.with(|planted| planted.set(None));
    if let Ok(executions) = outcome {
        panic!("the model missed the planted fault `{mutant}` in {executions} executions");
    }
}
