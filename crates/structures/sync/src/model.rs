//! What models share: exploring executions, and faults that some execution must show. Built under `cfg(loom)`, where all
//! executions with few preemptive switches are explored, weak memory included, and under `cfg(shuttle)`, where a number
//! are drawn, each access in the order of the program: that takes no time to speak of.

use crate::planted::must_be_caught;

/// Threads of a model.
pub mod thread {
    #[cfg(loom)]
    pub use loom::thread::{spawn, yield_now};
    #[cfg(shuttle)]
    pub use shuttle::thread::{spawn, yield_now};
}

/// Runs two roles, each in a thread, the one or the other spawned first; returns what they return.
///
/// # Panics
/// If one of them does.
pub fn both<A: Send + 'static, B: Send + 'static>(
    a_first: bool,
    a: impl FnOnce() -> A + Send + 'static,
    b: impl FnOnce() -> B + Send + 'static,
) -> (A, B) {
    let (a, b) = if a_first {
        let a = thread::spawn(a);
        (a, thread::spawn(b))
    } else {
        let b = thread::spawn(b);
        (thread::spawn(a), b)
    };
    (a.join().unwrap(), b.join().unwrap())
}

/// Explores all executions of `body` with at most `preemptions` preemptive switches; prints how many there were.
///
/// # Panics
/// If an execution does, or there were fewer than `least`: a model whose threads never meet explores a handful and proves
/// nothing.
#[cfg(loom)]
#[track_caller]
pub fn explore(preemptions: usize, least: usize, body: impl Fn() + Sync + Send + 'static) {
    let executions = all(preemptions, body);
    println!("{executions} executions");
    assert!(executions >= least, "expected {least} executions at least, there were {executions}");
}

/// Explores `body` with the fault `mutant` planted and panics unless some execution fails.
#[cfg(loom)]
pub fn must_catch(mutant: &'static str, preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    must_be_caught(mutant, || all(preemptions, body));
}

/// As [`must_catch`], a fault that shows only where a processor reorders accesses.
#[cfg(loom)]
pub fn must_catch_reordering(mutant: &'static str, preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    must_catch(mutant, preemptions, body);
}

#[cfg(loom)]
fn all(preemptions: usize, body: impl Fn() + Sync + Send + 'static) -> usize {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Of a model without a fault. Of one with a fault as many as it takes, up to `MOST_DRAWN`.
#[cfg(shuttle)]
const DRAWN: usize = 1_000;

#[cfg(shuttle)]
const MOST_DRAWN: usize = 100_000;

/// Draws executions of `body`; prints how many there were. The bounds are those of all executions: see `cfg(loom)`.
///
/// # Panics
/// If an execution does.
#[cfg(shuttle)]
pub fn explore(_preemptions: usize, _least: usize, body: impl Fn() + Sync + Send + 'static) {
    draw(DRAWN, body);
    println!("{DRAWN} executions");
}

/// Draws executions of `body` with the fault `mutant` planted and panics unless one fails.
#[cfg(shuttle)]
pub fn must_catch(mutant: &'static str, _preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    must_be_caught(mutant, || draw(MOST_DRAWN, body));
}

/// Nothing: here accesses are made in the order of the program. See `cfg(loom)`.
#[cfg(shuttle)]
pub fn must_catch_reordering(_mutant: &'static str, _preemptions: usize, _body: impl Fn() + Sync + Send + 'static) {}

/// Between any two accesses of some execution another thread runs; in one of four it does so nearly always.
#[cfg(shuttle)]
fn draw(executions: usize, body: impl Fn() + Sync + Send + 'static) -> usize {
    crate::scheduled::run((0..executions as u64).map(|seed| (seed, [32, 96, 256, 768][seed as usize % 4])), body);
    executions
}
