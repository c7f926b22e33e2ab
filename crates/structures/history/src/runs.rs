//! Runs of plans, and what carrying one out gives.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use proptest::strategy::Strategy;

use crate::plans::drawn;
#[cfg(shuttle)]
use crate::rounds::HISTORIES_OF_A_PLAN;
use crate::rounds::are_some_asked_for;
use crate::state::Event;
use crate::threads::{self, Barrier, Clock};
#[cfg(shuttle)]
use sync::preemptions::Overtaken;

#[cfg(not(shuttle))]
enum Overtaken {
    Each,
    First,
}

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

impl<O: Clone, R: Clone> Made<O, R> {
    /// It as one step, which took place at some time in between.
    pub fn event(&self) -> Event<(O, R)> {
        let Made { operation, outcome, began, ended } = self;
        Event { steps: vec![(operation.clone(), outcome.clone())], began: *began, ended: *ended }
    }
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

/// In each round, draws a plan as its number says, and runs `check` on it in a schedule. Prints how many there were.
///
/// # Panics
/// If a check does; then the round and its plan are printed.
pub fn explore<P, S>(
    rounds: impl IntoIterator<Item = u64, IntoIter: 'static>,
    plans: impl Fn(u64) -> S + 'static,
    check: impl Fn(u64, &P) + Send + Sync + 'static,
) where
    P: Debug + Send + Sync + 'static,
    S: Strategy<Value = P>,
{
    let running = Running::default();
    let drawn = rounds.into_iter().map(move |number| (number, Arc::new(drawn(number, plans(number)))));
    running.of(drawn, Arc::new(check), threads::run);
    println!("{} histories", running.begun());
}

/// As [`explore`], but that each plan is run again and again: each thread in turn is overtaken by all others before each of
/// its accesses that matters to them (`sync::preemptions::overtake`). For plans of few calls. Where threads are the
/// system's, as [`explore`].
///
/// # Panics
/// As [`explore`].
pub fn overtake<P, S>(
    rounds: impl IntoIterator<Item = u64, IntoIter: 'static>,
    plans: impl Fn(u64) -> S + 'static,
    check: impl Fn(u64, &P) + Send + Sync + 'static,
) where
    P: Debug + Send + Sync + 'static,
    S: Strategy<Value = P>,
{
    overtake_each(rounds.into_iter().map(move |number| (number, Arc::new(drawn(number, plans(number))))), check);
}

/// As [`overtake`], of these plans with their numbers.
///
/// # Panics
/// As [`explore`]; if there is no plan, unless `HISTORIES=first..end` has said which.
pub fn overtake_each<P>(
    plans: impl Iterator<Item = (u64, Arc<P>)> + 'static,
    check: impl Fn(u64, &P) + Send + Sync + 'static,
) where
    P: Debug + Send + Sync + 'static,
{
    overtake_those(Overtaken::Each, plans, check);
}

/// As [`overtake_each`], but that the others overtake the first thread of a plan alone: for plans whose other threads look
/// at what that is in the middle of.
///
/// # Panics
/// As [`overtake_each`].
pub fn overtake_first<P>(
    plans: impl Iterator<Item = (u64, Arc<P>)> + 'static,
    check: impl Fn(u64, &P) + Send + Sync + 'static,
) where
    P: Debug + Send + Sync + 'static,
{
    overtake_those(Overtaken::First, plans, check);
}

fn overtake_those<P>(
    #[cfg_attr(not(shuttle), expect(unused_variables, reason = "where threads are the system's no one chooses"))]
    who: Overtaken,
    plans: impl Iterator<Item = (u64, Arc<P>)> + 'static,
    check: impl Fn(u64, &P) + Send + Sync + 'static,
) where
    P: Debug + Send + Sync + 'static,
{
    let (running, check) = (Running::default(), Arc::new(check));
    #[cfg(not(shuttle))]
    running.of(plans, check, threads::run);
    #[cfg(shuttle)]
    {
        let executions = running.of(plans, check, |numbers, body| sync::preemptions::overtake(who, numbers, body));
        println!("{executions} histories");
    }
    println!("{} plans of few calls", running.begun());
    assert!(running.begun() > 0 || are_some_asked_for(), "no plan is left: a test that runs nothing finds nothing");
}

/// As [`repeat`], once a thread was overtaken wherever that matters ([`overtake`]), some times with others drawn to be let past: for plans of
/// few calls.
///
/// # Panics
/// As [`explore`].
pub fn overtake_and_repeat<P>(rounds: u64, plan: P, check: impl Fn(u64, &P) + Clone + Send + Sync + 'static)
where
    P: Clone + Debug + Send + Sync + 'static,
{
    #[cfg(shuttle)]
    {
        let same = Arc::new(plan.clone());
        let seeds = 0..=(rounds / HISTORIES_OF_A_PLAN).min(MOST_SEARCHES_OF_A_PLAN);
        overtake_each(seeds.map(move |seed| (seed, Arc::clone(&same))), check.clone());
    }
    repeat(rounds, plan, check);
}

/// What this many searches of one plan do not show needs more switches than they make.
#[cfg(shuttle)]
const MOST_SEARCHES_OF_A_PLAN: u64 = 20;

/// Runs `check` on one plan in this many schedules.
///
/// # Panics
/// As [`explore`].
pub fn repeat<P>(rounds: u64, plan: P, check: impl Fn(u64, &P) + Send + Sync + 'static)
where
    P: Debug + Send + Sync + 'static,
{
    let plan = Arc::new(plan);
    let same = (0..rounds).map(move |number| (number, Arc::clone(&plan)));
    Running::default().of(same, Arc::new(check), threads::run);
}

/// Which round runs: printed if a check panics.
struct Running<P: Debug>(Arc<Mutex<Round<P>>>);

struct Round<P> {
    number_and_plan: Option<(u64, Arc<P>)>,
    /// How many have begun.
    begun: u64,
}

impl<P: Debug> Default for Running<P> {
    fn default() -> Running<P> {
        Running(Arc::new(Mutex::new(Round { number_and_plan: None, begun: 0 })))
    }
}

impl<P: Debug + Send + Sync + 'static> Running<P> {
    /// Lets `run` run a check of these plans, each as its number says; returns what `run` does.
    fn of<R>(
        &self,
        plans: impl Iterator<Item = (u64, Arc<P>)> + 'static,
        check: Arc<impl Fn(u64, &P) + Send + Sync + 'static>,
        run: impl FnOnce(Box<dyn Iterator<Item = u64>>, Box<dyn Fn() + Send + Sync>) -> R,
    ) -> R {
        let (next, now) = (Arc::clone(&self.0), Arc::clone(&self.0));
        let numbers = plans.map(move |(number, plan)| {
            let mut round = threads::lock(&next);
            *round = Round { number_and_plan: Some((number, plan)), begun: round.begun + 1 };
            number
        });
        let body = move || {
            let (number, plan) = threads::lock(&now).number_and_plan.clone().expect("a plan has begun");
            check(number, &plan);
        };
        run(Box::new(numbers), Box::new(body))
    }

    fn begun(&self) -> u64 {
        threads::lock(&self.0).begun
    }
}

impl<P: Debug> Drop for Running<P> {
    fn drop(&mut self) {
        let round = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some((number, plan))) = (std::thread::panicking(), &round.number_and_plan) {
            eprintln!("round {number} failed, of {plan:?}");
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
    let (clock, barrier) = (Clock::new(1), Barrier::new(plan.len()));
    let make = |number: usize, operations: &[O]| {
        let mut act = player(number);
        barrier.wait();
        let made = |operation: &O| {
            let began = clock.now();
            let outcome = act(operation);
            Made { operation: operation.clone(), outcome, began, ended: clock.now() }
        };
        operations.iter().map(made).collect()
    };
    threads::scope(|scope| {
        let make = &make;
        let running: Vec<_> = plan.iter().enumerate().map(|(n, list)| scope.spawn(move || make(n, list))).collect();
        running.into_iter().map(|thread| thread.join().expect("a thread that ends")).collect()
    })
}
