//! Plans, their rounds, and what carrying one out gives.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::linearise::Event;
use crate::threads::{self, Barrier, Clock};

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

/// So long every exploration goes on, unless `HISTORIES_MS` says how long: some fault shows in one of a thousand rounds,
/// and a thousand take less than a second.
const USUAL_TIME: Duration = Duration::from_millis(300);

/// Numbers of rounds: so many at least, and more while there is time.
#[derive(Clone, Debug)]
pub struct Rounds {
    next: u64,
    least_end: u64,
    time: Duration,
    /// Whether nobody has said how long.
    is_usual: bool,
    began: Option<Instant>,
}

impl Rounds {
    /// With so many times the usual time, unless `HISTORIES_MS` says how long: where faults were found last.
    #[must_use]
    pub fn longer(mut self, factor: u32) -> Rounds {
        if self.is_usual {
            self.time *= factor;
        }
        self
    }

    /// The number of the first.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.next
    }

    /// How many there are at least.
    #[must_use]
    pub fn least(&self) -> u64 {
        self.least_end - self.next
    }
}

impl Iterator for Rounds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let began = *self.began.get_or_insert_with(Instant::now);
        if self.next >= self.least_end && began.elapsed() >= self.time {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

/// The rounds of a test: so many at least, and more in the time that there is (`HISTORIES_MS` milliseconds), unless
/// `HISTORIES` says how many, or which (`first..end`).
///
/// # Panics
/// If one of the two says something else.
pub fn rounds(count: u64) -> Rounds {
    let exactly = |range: Range<u64>| Rounds {
        next: range.start,
        least_end: range.end,
        time: Duration::ZERO,
        is_usual: false,
        began: None,
    };
    let Ok(wanted) = std::env::var("HISTORIES") else {
        let told = told_time();
        return Rounds { time: told.unwrap_or(USUAL_TIME), is_usual: told.is_none(), ..exactly(0..count) };
    };
    let (first, end) = wanted.split_once("..").unwrap_or(("0", &wanted));
    match (first.parse(), end.parse()) {
        (Ok(first), Ok(end)) => exactly(first..end),
        _ => panic!("HISTORIES: expected a number of rounds, or `first..end`, got `{wanted}`"),
    }
}

/// The rounds of a test whose plans are run some hundred times each ([`overtake`]): as [`rounds`], but that `HISTORIES=N`
/// stands for a hundredth of so many, or `count` if that is more.
///
/// # Panics
/// As [`rounds`].
pub fn plans(count: u64) -> Rounds {
    let mut plans = rounds(count);
    let is_number = std::env::var("HISTORIES").is_ok_and(|wanted| !wanted.contains(".."));
    if is_number {
        plans.least_end = count.max(plans.least_end / HISTORIES_OF_A_PLAN);
    }
    plans
}

/// Where a thread can be overtaken, in round figures.
const HISTORIES_OF_A_PLAN: u64 = 100;

fn told_time() -> Option<Duration> {
    let wanted = std::env::var("HISTORIES_MS").ok()?;
    let milliseconds = wanted.parse();
    let milliseconds = milliseconds.unwrap_or_else(|_| panic!("HISTORIES_MS: expected milliseconds, got `{wanted}`"));
    Some(Duration::from_millis(milliseconds))
}

/// Plans for so many threads of calls of one to three kinds, at most so many each. Where all kinds are drawn at once, two of one
/// kind hardly meet ("swarm testing": Groce et al., ISSTA 2012).
pub fn of_few_kinds<C: Clone + Debug, K: PartialEq>(
    calls: impl Strategy<Value = C>,
    kind: impl Fn(&C) -> K + Clone,
    threads: usize,
    most: usize,
) -> impl Strategy<Value = Vec<Vec<C>>> {
    (vec(calls, 20 * threads), 1..=3_usize).prop_map(move |(calls, kind_count)| {
        let mut kinds = Vec::new();
        for call in &calls {
            if kinds.len() < kind_count && !kinds.contains(&kind(call)) {
                kinds.push(kind(call));
            }
        }
        let mut plan = std::vec::from_elem(Vec::new(), threads);
        let chosen = calls.into_iter().filter(|call| kinds.contains(&kind(call)));
        for (number, call) in chosen.take(threads * most).enumerate() {
            plan[number % threads].push(call);
        }
        plan
    })
}

/// Plans of two or three calls in all, of two threads or three: to be overtaken ([`overtake`]).
pub fn of_few_calls<C: Clone + Debug>(calls: impl Strategy<Value = C>) -> impl Strategy<Value = Vec<Vec<C>>> {
    let shapes: &[&[usize]] = &[&[1, 1], &[1, 2], &[1, 2], &[2, 1], &[1, 1, 1]];
    (vec(calls, 3), proptest::sample::select(shapes)).prop_map(|(calls, shape)| {
        let mut calls = calls.into_iter();
        shape.iter().map(|count| calls.by_ref().take(*count).collect()).collect()
    })
}

/// In each round, draws a plan as its number says, and runs `check` on it in a schedule. Prints how many there were.
///
/// # Panics
/// If a check does; then the round and its plan are told.
pub fn explore<P, S>(
    rounds: impl IntoIterator<Item = u64>,
    plans: impl Fn(u64) -> S,
    check: impl Fn(u64, &P) + Send + Sync + 'static,
) where
    P: Debug + Send + Sync + 'static,
    S: Strategy<Value = P>,
{
    let check = Arc::new(check);
    let mut made = 0;
    for number in rounds {
        run(number, Arc::new(drawn(number, plans(number))), Arc::clone(&check));
        made += 1;
    }
    println!("{made} histories");
}

/// As [`explore`], but that each plan is run again and again: each thread in turn is overtaken by all others before each of
/// its accesses that matters to them (`sync::preemptions::overtake`). For plans of few calls. Where threads are the
/// system's, as [`explore`].
///
/// # Panics
/// As [`explore`].
pub fn overtake<P, S>(
    rounds: impl IntoIterator<Item = u64>,
    plans: impl Fn(u64) -> S,
    check: impl Fn(u64, &P) + Send + Sync + 'static,
) where
    P: Debug + Send + Sync + 'static,
    S: Strategy<Value = P>,
{
    #[cfg(not(shuttle))]
    explore(rounds, plans, check);
    #[cfg(shuttle)]
    {
        let check = Arc::new(check);
        let (mut plan_count, mut made) = (0, 0);
        for number in rounds {
            made += overtake_in(number, Arc::new(drawn(number, plans(number))), Arc::clone(&check));
            plan_count += 1;
        }
        println!("{made} histories\n{plan_count} plans of few calls");
    }
}

/// Runs `check` on one plan wherever a thread can be overtaken; returns how often that was.
#[cfg(shuttle)]
fn overtake_in<P>(number: u64, plan: Arc<P>, check: Arc<impl Fn(u64, &P) + Send + Sync + 'static>) -> u64
where
    P: Debug + Send + Sync + 'static,
{
    let _told = Told { number, plan: Arc::clone(&plan) };
    sync::preemptions::overtake(number, move || check(number, &plan))
}

fn drawn<P>(number: u64, plans: impl Strategy<Value = P>) -> P {
    let seed: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(32).collect();
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    plans.new_tree(&mut TestRunner::new_with_rng(Config::default(), random)).expect("a plan").current()
}

/// As [`repeat`], once a thread was overtaken wherever that matters ([`overtake`]): for plans of few calls.
///
/// # Panics
/// As [`explore`].
pub fn overtake_and_repeat<P>(rounds: u64, plan: P, check: impl Fn(u64, &P) + Clone + Send + Sync + 'static)
where
    P: Clone + Debug + Send + Sync + 'static,
{
    #[cfg(shuttle)]
    overtake_in(0, Arc::new(plan.clone()), Arc::new(check.clone()));
    repeat(rounds, plan, check);
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
