//! The numbers of the rounds of a test.

use std::ops::Range;
use std::time::{Duration, Instant};

/// So long every exploration goes on, unless `HISTORIES_MS` says how long: some fault shows in one of a thousand rounds,
/// and a thousand take less than a second.
const USUAL_TIME: Duration = Duration::from_millis(300);

/// Numbers of rounds: this many at least, and more while there is time.
#[derive(Clone, Debug)]
pub struct Rounds {
    next: u64,
    least_end: u64,
    time: Duration,
    /// Whether no one has said how long.
    is_usual: bool,
    began: Option<Instant>,
}

impl Rounds {
    /// With this many times the usual time, unless `HISTORIES_MS` says how long: where faults were found last.
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

/// The rounds of a test: this many at least, and more in the time that there is (`HISTORIES_MS` milliseconds), unless
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

/// The rounds of a test whose plans are run some hundred times each ([`overtake`](crate::overtake)): as [`rounds`], but that `HISTORIES=N`
/// stands for a hundredth of that many, or `count` if that is more. Where threads are the system's no one chooses who
/// is overtaken: there they are `count` and no longer than usual.
///
/// # Panics
/// As [`rounds`].
pub fn plans(count: u64) -> Rounds {
    let mut plans = rounds(count);
    plans.is_usual &= cfg!(shuttle);
    let is_number = std::env::var("HISTORIES").is_ok_and(|wanted| !wanted.contains(".."));
    if is_number {
        plans.least_end = count.max(plans.least_end / HISTORIES_OF_A_PLAN);
    }
    plans
}

/// Where a thread can be overtaken, in round figures.
pub(crate) const HISTORIES_OF_A_PLAN: u64 = 100;

fn told_time() -> Option<Duration> {
    let wanted = std::env::var("HISTORIES_MS").ok()?;
    let milliseconds = wanted.parse();
    let milliseconds = milliseconds.unwrap_or_else(|_| panic!("HISTORIES_MS: expected milliseconds, got `{wanted}`"));
    Some(Duration::from_millis(milliseconds))
}

/// Whether a plan of this number, of all of a kind, is asked for: by `HISTORIES=first..end`, or else all, or one of some where threads
/// are the system's, since there chance overtakes them.
pub(crate) fn is_asked_for() -> impl Fn(u64) -> bool {
    let is_range = are_some_asked_for();
    let range = if is_range { rounds(0).next..rounds(0).least_end } else { 0..u64::MAX };
    let one_of = if is_range || cfg!(shuttle) { 1 } else { SYSTEM_THREADS_RUN_ONE_OF };
    move |number| range.contains(&number) && number.is_multiple_of(one_of)
}

/// Whether `HISTORIES=first..end` says which.
pub(crate) fn are_some_asked_for() -> bool {
    std::env::var("HISTORIES").is_ok_and(|wanted| wanted.contains(".."))
}

/// Whether there is time for what says less than the rest: `HISTORIES` or `HISTORIES_MS` asks for some.
pub(crate) fn is_long() -> bool {
    std::env::var_os("HISTORIES").is_some() || told_time().is_some_and(|time| time > Duration::ZERO)
}

/// It has no common divisor with what kinds of plans there are.
const SYSTEM_THREADS_RUN_ONE_OF: u64 = 17;
