//! Every write-back, invalidation, wait and recheck of ring and log is left out once: the checker says so, and under the
//! adversary wrong values show, each from every seed. Built with `RUSTFLAGS="--cfg fuzzing"`, or `--cfg shuttle`.

use pool::emulated::Emulated;
use sync::mutant::{must_be_caught, plant};

use crate::{cxl0, explored, logs, rings};

const SEEDS: u64 = 20;
const STEPS: u64 = 10_000;

const OF_RINGS: [&str; 13] = [
    "pool: a ring's line is not written back",
    "pool: a ring's line is written back before it is whole",
    "pool: the last line of a message is not written back",
    "pool: lines of a ring are not drained",
    "pool: a ring's line is not invalidated",
    "pool: a ring's line is invalidated after it was read",
    "pool: the checksum of a ring's line is not looked at",
    "pool: the number of a ring's line is not looked at",
    "pool: room in a ring is not looked at",
    "pool: what a ring's receiver has taken is not written back",
    "pool: what a ring's receiver has taken is not drained",
    "pool: what a ring's receiver has taken is not invalidated",
    "pool: a ring's lines are given back before they are taken",
];

const OF_LOGS: [&str; 12] = [
    "pool: a log's entry is not written back",
    "pool: one line of a log's entry is not written back",
    "pool: a log's entry is written back after the head",
    "pool: the head of a log does not wait for the entry",
    "pool: the head of a log is not written back",
    "pool: the head of a log is not drained",
    "pool: the head of a log is not invalidated",
    "pool: the checksum of a log's head is not looked at",
    "pool: a log's entry is not invalidated",
    "pool: a log's entry is invalidated before the head is read",
    "pool: the checksum of a log's entry is not looked at",
    "pool: the number of a log's entry is not looked at",
];

/// What one run showed: something wrong, and the memory with its reports.
type Outcome = (Option<&'static str>, Emulated);

fn each(faults: &[&'static str], run: impl Fn(u64) -> Outcome) {
    let mut missed = Vec::new();
    for fault in faults {
        plant(fault);
        let (mut wrong, mut reported) = (0, 0);
        let (mut kinds, mut values) = (Vec::new(), Vec::new());
        for seed in 0..SEEDS {
            let (what, memory) = run(seed);
            wrong += u64::from(what.is_some());
            values.extend(what);
            let reports = memory.reports();
            reported += u64::from(!reports.is_empty());
            assert!(reports.iter().all(|report| report.to_string().contains(&format!("(seed {seed}, step "))));
            kinds.extend(reports.iter().map(|report| report.kind.name()));
        }
        kinds.sort_unstable();
        kinds.dedup();
        values.sort_unstable();
        values.dedup();
        println!("{fault}: wrong {wrong}, reported {reported} of {SEEDS}: {kinds:?} {values:?}");
        if (wrong, reported) != (SEEDS, SEEDS) {
            missed.push(fault);
        }
    }
    plant("nothing");
    assert!(missed.is_empty(), "missed: {missed:#?}");
}

#[test]
fn planted_faults_of_rings_are_reported_and_show() {
    each(&OF_RINGS, |seed| {
        let run = rings::run(rings::adverse(seed), seed, u64::MAX, STEPS);
        (run.wrong, run.memory)
    });
}

/// The number of taken lines is one word, which no cache tears: its checksum is there for bits that go wrong.
#[test]
fn a_planted_fault_in_what_was_taken_is_reported_and_shows() {
    each(&["pool: the checksum of what was taken is not looked at"], |seed| {
        let run = rings::run_damaged(rings::adverse(seed), seed, STEPS);
        (run.wrong, run.memory)
    });
}

#[test]
fn planted_faults_of_logs_are_reported_and_show() {
    each(&OF_LOGS, |seed| {
        let run = logs::run(logs::adverse(seed), seed, u64::MAX, STEPS);
        (run.wrong, run.memory)
    });
}

/// What one message or three show in some order of steps.
#[test]
fn the_search_finds_planted_faults_of_rings() {
    for (count, fault) in [
        (1, "pool: a ring's line is not written back"),
        (1, "pool: a ring's line is written back before it is whole"),
        (1, "pool: the last line of a message is not written back"),
        (1, "pool: lines of a ring are not drained"),
        (1, "pool: a ring's line is not invalidated"),
        (1, "pool: a ring's line is invalidated after it was read"),
        (1, "pool: the checksum of a ring's line is not looked at"),
        (3, "pool: the number of a ring's line is not looked at"),
        (3, "pool: room in a ring is not looked at"),
    ] {
        must_be_caught(fault, || explored::ring(count));
    }
}

#[test]
fn an_emulator_that_is_wrong_is_found_by_other_rules() {
    for fault in ["pool: an emulated write-back does not arrive", "pool: an emulated cache keeps what it is to forget"]
    {
        must_be_caught(fault, cxl0::search);
    }
}
