//! For tests of concurrent structures: plans of a few operations for a few threads, run under many schedules, and the
//! search for an order of what the operations returned.
//!
//! **Idea.** A *plan* is a list of operations for each thread. A *round* draws a plan by its number and lets the threads
//! carry it out ([`play`]), which gives a *history*: what each operation returned, and when it began and ended. Then there must be an
//! order of the operations in which a plain reference returns the same ([`expect_order`]), or something must hold in
//! the end.
//!
//! ```text
//! explore(rounds, plans, check):  for each number: plan = plans(number);  check(plan), which plays it, in a schedule
//! overtake(rounds, plans, check): the same for plans of few calls, each run wherever one of its threads can be overtaken
//! overtake_each(mattering(pairs(calls), no_call_commutes), check):  of every two calls those that do not commute
//! ```
//!
//! The threads are the system's in ordinary builds. Under `--cfg shuttle` one runs at a time, and the round's number chooses at
//! each access to an atomic of crate `sync` which one (`sync::scheduled`); structures whose memory is a
//! `percpu::HeapRegion` find it at the same addresses each time. So a round that failed fails again:
//! `HISTORIES=4711..4712`, of a test that is given by name. `HISTORIES=6000` stands for that many rounds,
//! `HISTORIES_MS=60000` for a minute of each test (plans of few calls, which run wherever a thread can be overtaken:
//! [`overtake`], are a hundredth of that many rounds); otherwise a test has a least number of rounds, and as many more
//! as fit into a moment.
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod commuting;
mod known;
mod linearise;
mod plans;
mod rounds;
mod runs;
mod state;
pub mod threads;

pub use commuting::{CallPlace, in_order, no_call_commutes};
pub use linearise::{expect_order, is_linearisable};
pub use plans::{and_look, beside_two, is_sample, mattering, of_few_calls, of_few_kinds, pairs};
pub use rounds::{Rounds, plans, rounds};
pub use runs::{Made, explore, overtake, overtake_and_repeat, overtake_each, overtake_first, play, repeat, told};
pub use state::{Event, State};
