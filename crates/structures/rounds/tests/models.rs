//! What a report covers, and who is waited for: `RUSTFLAGS="--cfg loom" cargo test -p rounds --release --test models`.
#![cfg(any(loom, shuttle))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};

use percpu::Core;
use percpu::model::ModelArena;
use rounds::{Reporter, Rounds};
use sync::atomic::{AtomicU64, Ordering};

const FIRST_ROUND: u64 = 2;

/// Core 2 does something and reports; who reports in a round after the one that this covers sees it. Cores 0 and 1, of another group,
/// see it in its place: one begins rounds, and the other reports while not all groups know.
fn covers(first: bool) {
    let model = ModelArena::new(3, 128 << 10);
    // SAFETY: used as long as the model's arena.
    let [rounds, _] = unsafe { Rounds::create(model.arena()) }.unwrap();
    let [zero, one, two] = [0, 1, 2].map(|number| model.core(number));
    let done = Arc::new(AtomicU64::new(0));
    let does = {
        let done = Arc::clone(&done);
        move || {
            let reporter = Reporter::new();
            rounds.report(&two, &reporter, None);
            done.store(1, Ordering::Relaxed);
            rounds.report(&two, &reporter, None).covered
        }
    };
    let looks = |core: Core<'static>, done: Arc<AtomicU64>| {
        move || {
            let reporter = Reporter::new();
            [0; 2].map(|_| {
                let round = rounds.report(&core, &reporter, Some(&|_, _| true)).round;
                (round, done.load(Ordering::Relaxed))
            })
        }
    };
    let third = sync::model::thread::spawn(looks(one, Arc::clone(&done)));
    let (covered, seen) = sync::model::both(first, does, looks(zero, done));
    for (round, done) in seen.into_iter().chain(third.join().unwrap()) {
        assert!(round <= covered || done == 1, "covered in {covered}, not seen in {round}");
    }
}

/// No round is over before each core has reported in it.
fn waits(first: bool) {
    let model = ModelArena::new(3, 128 << 10);
    // SAFETY: used as long as the model's arena.
    let [rounds, _] = unsafe { Rounds::create(model.arena()) }.unwrap();
    let [zero, one, two] = [0, 1, 2].map(|number| model.core(number));
    let begun = Arc::new(AtomicUsize::new(0));
    let often = {
        let begun = Arc::clone(&begun);
        move || {
            let reporters = [Reporter::new(), Reporter::new()];
            for _ in 0..2 {
                for (core, reporter) in [&zero, &two].into_iter().zip(&reporters) {
                    let round = rounds.report(core, reporter, None).round;
                    let reports = begun.load(Plain::Relaxed) as u64;
                    assert!(round - FIRST_ROUND <= reports, "round {round} after {reports} reports");
                }
            }
        }
    };
    let seldom = move || {
        let reporter = Reporter::new();
        for _ in 0..2 {
            begun.fetch_add(1, Plain::Relaxed);
            rounds.report(&one, &reporter, None);
        }
    };
    sync::model::both(first, often, seldom);
}

#[test]
fn what_a_report_covers_is_seen_in_the_round_after() {
    for first in [false, true] {
        sync::model::explore(2, 30, move || covers(first));
        sync::model::must_catch("rounds: a late report counts", 2, move || covers(first));
    }
}

#[test]
fn a_round_waits_for_each_core() {
    for first in [false, true] {
        sync::model::explore(2, 30, move || waits(first));
        sync::model::must_catch("rounds: one core is its group", 2, move || waits(first));
    }
}
