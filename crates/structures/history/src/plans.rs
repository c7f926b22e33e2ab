//! Plans, their rounds, and what carrying one out gives.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::threads::{self, Barrier};

/// An operation with what it returned, when it began, and when it ended.
#[derive(Clone, Debug)]
pub struct Made<O, R> {
    /// As in the plan.
    pub operation: O,
    /// What it returned.
    pub outcome: R,
    /// On a clock that all threads of the round share.
    pub began: u64,
    /// As above.
    pub ended: u64,
}

/// What was made, a line each, in the order in which it began.
pub fn told<O: Debug, R: Debug>(made: &[Vec<Made<O, R>>]) -> String {
    let numbered = made.iter().enumerate().flat_map(|(thread, made)| made.iter().map(move |made| (thread, made)));
    let mut lines: Vec<(u64, String)> = numbered
        .map(|(thread, Made { operation, outcome, began, ended })| {
            (*began, format!("{began:3} to {ended:3} thread {thread} {operation:?} = {outcome:?}\n"))
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The rounds of a test: so many, unless `HISTORIES` says how many, or which (`first..end`).
///
/// # Panics
/// If `HISTORIES` says something else.
pub fn rounds(count: u64) -> Range<u64> {
    let Ok(wanted) = std::env::var("HISTORIES") else { return 0..count };
    let (first, end) = wanted.split_once("..").unwrap_or(("0", &wanted));
    match (first.parse(), end.parse()) {
        (Ok(first), Ok(end)) => first..end,
        _ => panic!("HISTORIES: expected a number of rounds, or `first..end`, got `{wanted}`"),
    }
}

/// In each round, draws a plan as its number says, and runs `check` on it in a schedule.
///
/// # Panics
/// If a check does; then the round and its plan are told.
pub fn explore<P, S>(rounds: Range<u64>, plans: impl Fn(u64) -> S, check: impl Fn(u64, &P) + Send + Sync + 'static)
where
    P: Debug + Send + Sync + 'static,
    S: Strategy<Value = P>,
{
    let check = Arc::new(check);
    for number in rounds {
        let seed: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(32).collect();
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let tree = plans(number).new_tree(&mut TestRunner::new_with_rng(Config::default(), random));
        run(number, Arc::new(tree.expect("a plan").current()), Arc::clone(&check));
    }
}

/// Runs `check` on one plan in so many schedules.
///
/// # Panics
/// As [`explore`].
pub fn repeat<P>(rounds: u64, plan: P, check: impl Fn(u64, &P) + Send + Sync + 'static)
where
    P: Debug + Send + Sync + 'static,
{
    let (plan, check) = (Arc::new(plan), Arc::new(check));
    for number in 0..rounds {
        run(number, Arc::clone(&plan), Arc::clone(&check));
    }
}

fn run<P>(number: u64, plan: Arc<P>, check: Arc<impl Fn(u64, &P) + Send + Sync + 'static>)
where
    P: Debug + Send + Sync + 'static,
{
    let _told = Told { number, plan: Arc::clone(&plan) };
    threads::run(number, move || check(number, &plan));
}

/// Tells which round it was if a check panics.
struct Told<P: Debug> {
    number: u64,
    plan: Arc<P>,
}

impl<P: Debug> Drop for Told<P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("round {} failed, of {:?}", self.number, self.plan);
        }
    }
}

/// Lets a thread make each list of operations, all beginning together. `player` becomes what a thread makes its operations
/// with, in that thread.
///
/// # Panics
/// If a thread does.
pub fn play<O, R, A>(plan: &[Vec<O>], player: impl Fn(usize) -> A + Sync) -> Vec<Vec<Made<O, R>>>
where
    O: Clone + Send + Sync,
    R: Send,
    A: FnMut(&O) -> R,
{
    let (clock, barrier) = (AtomicU64::new(1), Barrier::new(plan.len()));
    let make = |number: usize, operations: &[O]| {
        let mut act = player(number);
        barrier.wait();
        let made = |operation: &O| {
            let began = clock.fetch_add(1, Ordering::SeqCst);
            let outcome = act(operation);
            Made { operation: operation.clone(), outcome, began, ended: clock.fetch_add(1, Ordering::SeqCst) }
        };
        operations.iter().map(made).collect()
    };
    threads::scope(|scope| {
        let make = &make;
        let running: Vec<_> = plan.iter().enumerate().map(|(n, list)| scope.spawn(move || make(n, list))).collect();
        running.into_iter().map(|thread| thread.join().expect("a thread that ends")).collect()
    })
}
