//! The formula against a replay: cores that make their calls again and again, and caches that keep to a protocol.

use proptest::prelude::*;
use transfers::{Access, Course, Event, Kind, Part, Protocol, transfers_to};

/// Whose copy of the line a cache has.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Invalid,
    Shared,
    /// No one else has it; `wrote` says whether this core has written it since it came.
    Only {
        wrote: bool,
    },
}

/// Transfers to core 0 per period, when core *i* > 0 is late by `phases[i - 1]`: counted over a period after the first three.
fn replay(own: &[Event], other: &[Event], phases: &[f64], protocol: Protocol) -> f64 {
    const WARM_UP: i32 = 2;
    const COUNTED: i32 = 1;
    let mut all = Vec::new();
    for round in -1..WARM_UP + COUNTED + 1 {
        let start = f64::from(round);
        all.extend(own.iter().map(|event| (start + event.at, 0, event.takes)));
        for (core, phase) in (1..).zip(phases) {
            all.extend(other.iter().map(|event| (start + event.at + phase, core, event.takes)));
        }
    }
    all.sort_unstable_by(|one, two| one.0.total_cmp(&two.0));
    let mut states = vec![State::Invalid; phases.len() + 1];
    let mut counted = 0;
    for (at, core, takes) in all {
        let is_transfer =
            if takes { !matches!(states[core], State::Only { .. }) } else { states[core] == State::Invalid };
        if takes {
            states.fill(State::Invalid);
            states[core] = State::Only { wrote: true };
        } else if is_transfer {
            let dirty = states.iter().position(|state| *state == State::Only { wrote: true });
            if let (Some(holder), Protocol::TakesOver) = (dirty, protocol) {
                states[holder] = State::Invalid;
                states[core] = State::Only { wrote: false };
            } else {
                for other in states.iter_mut().filter(|state| matches!(state, State::Only { .. })) {
                    *other = State::Shared;
                }
                states[core] = State::Shared;
            }
        }
        let is_counted = at >= f64::from(WARM_UP) && at < f64::from(WARM_UP + COUNTED);
        counted += i32::from(is_transfer && core == 0 && is_counted);
    }
    f64::from(counted) / f64::from(COUNTED)
}

/// The mean over phases that lie evenly in the cube of as many dimensions as there are other cores.
fn replayed(own: &[Event], other: &[Event], cores: u32, protocol: Protocol, samples: u32) -> f64 {
    // Steps of an additive sequence (Roberts): powers of the root of x^(d+1) = x + 1.
    let others = cores as usize - 1;
    let mut root = 2.0_f64;
    (0..60).for_each(|_| root = (1.0 + root).powf(1.0 / (others as f64 + 1.0)));
    let phases = |sample: u32| -> Vec<f64> {
        (1..=others).map(|axis| (0.5 + f64::from(sample) * root.powi(-(axis as i32))).fract()).collect()
    };
    let sum: f64 = (0..samples).map(|sample| replay(own, other, &phases(sample), protocol)).sum();
    sum / f64::from(samples)
}

/// Up to six events in order, none of them at one moment.
fn events() -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::btree_map(0_u32..997, any::<bool>(), 1..6)
        .prop_map(|made| made.into_iter().map(|(at, takes)| Event { at: f64::from(at) / 997.0, takes }).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 48 } else { 2_000 }))]

    #[test]
    fn the_formula_counts_what_a_replay_counts(own in events(), other in events(), cores in 2_u32..=4, plain: bool) {
        let protocol = if plain { Protocol::Plain } else { Protocol::TakesOver };
        let samples = [400, 2_000, 4_000][cores as usize - 2];
        let expected = replayed(&own, &other, cores, protocol, samples);
        let found = transfers_to(&own, &other, cores, protocol);
        prop_assert!((found - expected).abs() < 0.03, "{protocol:?}: {found} by the formula, {expected} by replay");
    }

    #[test]
    fn a_line_that_nobody_writes_or_that_one_core_has_alone_stays(own in events(), cores in 2_u32..40) {
        for protocol in [Protocol::Plain, Protocol::TakesOver] {
            let read_only: Vec<Event> = own.iter().map(|event| Event { takes: false, ..*event }).collect();
            prop_assert_eq!(transfers_to(&read_only, &read_only, cores, protocol), 0.0);
            prop_assert_eq!(transfers_to(&own, &[], cores, protocol), 0.0);
        }
    }

    #[test]
    fn more_cores_take_a_line_away_no_more_seldom(own in events(), other in events(), cores in 2_u32..40) {
        let of = |cores| transfers_to(&own, &other, cores, Protocol::Plain);
        prop_assert!(of(cores) <= of(cores + 1) + 1e-9);
        let writes = own.iter().any(|event| event.takes) || other.iter().any(|event| event.takes);
        let all = if writes { own.len() as f64 } else { 0.0 };
        prop_assert!(of(cores) <= all + 1e-9);
    }
}

fn event(at: f64, takes: bool) -> Event {
    Event { at, takes }
}

#[test]
fn a_counter_and_its_reader() {
    // Each increments once per period: the one that comes next finds the line gone.
    let adds = [event(0.5, true)];
    for protocol in [Protocol::Plain, Protocol::TakesOver] {
        assert_eq!(transfers_to(&adds, &adds, 2, protocol), 1.0);
        assert_eq!(transfers_to(&adds, &adds, 32, protocol), 1.0);
    }
    // One reads three times in a row: one transfer, unless a write falls between two of its reads.
    let reads = [event(0.1, false), event(0.2, false), event(0.3, false)];
    let found = transfers_to(&reads, &adds, 2, Protocol::Plain);
    assert!((found - 1.0).abs() < 1e-9, "{found}");
    let of_thirty_two = transfers_to(&reads, &adds, 32, Protocol::Plain);
    assert!(of_thirty_two > 2.8 && of_thirty_two < 3.0, "{of_thirty_two}");
    // Read and written soon after: the reader that takes the line over need not take it again to write.
    let both = [event(0.5, false), event(0.5001, true)];
    assert!((transfers_to(&both, &both, 2, Protocol::Plain) - 2.0).abs() < 0.01);
    assert!((transfers_to(&both, &both, 2, Protocol::TakesOver) - 1.0).abs() < 0.01);
}

#[test]
fn a_write_finds_the_line_that_was_prefetched_for_it() {
    let counted = |kinds: &[Kind]| {
        let access = |(at, kind): (u32, &Kind)| Access { position: 500 + at, kind: *kind, bytes: 0xFF };
        let own: Vec<Access> = (0..).zip(kinds).map(access).collect();
        let course = Course { periods: vec![1000; 2], lines: vec![vec![own.clone(), own]] };
        let parts = [0, 1].map(|core| Part { line: 0, core, read: u64::MAX, written: u64::MAX });
        course.transfers(&parts, 2, Protocol::Plain)
    };
    // Of two cores each takes the line once a period: by the write, or by the prefetch before it.
    assert_eq!(counted(&[Kind::Write]), 2.0);
    assert_eq!(counted(&[Kind::PrefetchForWrite]), 2.0);
    let both = counted(&[Kind::PrefetchForWrite, Kind::Write]);
    assert!((both - 2.0).abs() < 0.01, "{both}");
}
