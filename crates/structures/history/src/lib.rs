//! For tests of concurrent structures: plans of a few operations for a few threads, run under many schedules, and the
//! search for an order of what the operations returned.
//!
//! **Idea.** A *plan* is a list of operations for each thread. A *round* draws a plan by its number and lets the threads
//! carry it out ([`play`]), which gives a *history*: what each operation returned, and when it began and ended. Then there must be an
//! order of the operations in which a plain reference returns the same ([`is_linearisable`]), or something must hold in
//! the end.
//!
//! ```text
//! explore(rounds, plans, check):  for each number: plan = plans(number);  check(plan), which plays it, in a schedule
//! ```
//!
//! The threads are the system's in ordinary builds. Under `--cfg shuttle` one runs at a time, and the round's number chooses at
//! each access to an atomic of crate `sync` which one (`sync::scheduled`); structures whose memory is a
//! `percpu::HeapRegion` find it at the same addresses each time. So a round that failed fails again:
//! `HISTORIES=4711..4712`, of a test that is told by name. `HISTORIES=6000` stands for so many rounds, `HISTORIES_MS=60000`
//! for a minute of each test (plans of few calls, which run wherever a thread can be overtaken: [`overtake`], are a
//! hundredth of so many rounds); otherwise a test has a least number of rounds, and as many more as fit into a moment.
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod linearise;
mod plans;
pub mod threads;

pub use linearise::{Event, State, is_linearisable};
pub use plans::{
    Made, Rounds, explore, of_few_calls, of_few_kinds, overtake, overtake_and_repeat, plans, play, repeat, rounds, told,
};
