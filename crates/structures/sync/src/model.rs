//! What loom models share: exploring with a bound, counting executions. Only built under `cfg(loom)`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::planted::must_be_caught;

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
    must_be_caught(mutant, || explore(preemptions, body));
}
