//! Concurrent histories: two and three threads make a few calls at the same time, and there must be an order of all
//! calls, in keeping with which ended before which began, in which the plain reference returns the same.
#![cfg(not(loom))]

mod reference;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reference::{Bijection, Call, Outcome, Reference, any_call, call};
use scalefs::{ScaleFs, ScaleFsConfig};
use sync::Spin;

/// A call with its outcome, and when it began and ended.
#[derive(Clone, Debug)]
struct Event {
    call: Call,
    outcome: Outcome,
    began: u64,
    ended: u64,
}

/// Whether some order explains the events (Wing and Gong's search, with states that failed remembered).
fn is_linearisable(threads: &[Vec<Event>], start: &Reference) -> bool {
    fn search(
        threads: &[Vec<Event>],
        done: &mut Vec<usize>,
        state: &Reference,
        seen: &mut HashSet<(Vec<usize>, Reference)>,
        order: &mut Vec<(Outcome, Outcome)>,
    ) -> bool {
        if threads.iter().zip(done.iter()).all(|(thread, done)| thread.len() == *done) {
            // Numbers of files must correspond over the whole history.
            let mut numbers = Bijection::default();
            return order.iter().all(|(ours, theirs)| numbers.same(ours, theirs));
        }
        if !seen.insert((done.clone(), state.clone())) {
            return false;
        }
        let heads = threads.iter().zip(done.iter()).filter_map(|(thread, done)| thread.get(*done));
        let first_end = heads.map(|event| event.ended).min().unwrap();
        for thread in 0..threads.len() {
            let Some(event) = threads[thread].get(done[thread]).filter(|event| event.began < first_end) else {
                continue;
            };
            let mut next = state.clone();
            let expected = next.call(&event.call);
            let same = match (&event.outcome, &expected) {
                (Ok((_, ours)), Ok((_, theirs))) => ours == theirs,
                (ours, theirs) => ours == theirs,
            };
            if same {
                done[thread] += 1;
                order.push((event.outcome, expected));
                if search(threads, done, &next, seen, order) {
                    return true;
                }
                order.pop();
                done[thread] -= 1;
            }
        }
        false
    }
    search(threads, &mut vec![0; threads.len()], start, &mut HashSet::new(), &mut Vec::new())
}

#[test]
fn the_checker_refuses_an_impossible_history() {
    let name = || "n0".to_string();
    let open = Call::Open(name(), scalefs::OpenFlags::CreateNew);
    let event = |call, outcome, began, ended| Event { call, outcome, began, ended };
    let made = event(open.clone(), Ok((0, 0)), 1, 2);
    let missed = event(Call::Access(name()), Err(scalefs::Errno::ENOENT), 3, 4);
    assert!(!is_linearisable(&[vec![made.clone()], vec![missed.clone()]], &Reference::default()));
    let overlapping = event(open, Ok((0, 0)), 1, 5);
    assert!(is_linearisable(&[vec![overlapping], vec![missed]], &Reference::default()));
}

#[test]
fn concurrent_histories_have_an_order() {
    let rounds = std::env::var("SCALEFS_HISTORIES").ok().map_or(250, |count| count.parse().unwrap());
    let mut runner = TestRunner::deterministic();
    for round in 0..rounds {
        let thread_count = 2 + round % 2;
        let plan = proptest::collection::vec(proptest::collection::vec(any_call(), 6), thread_count);
        let plan = plan.new_tree(&mut runner).unwrap().current();
        let mut region = HeapRegion::new(4 << 20).unwrap();
        let arena = Arena::create(&mut region, ArenaConfig { core_count: 4, chunk_bytes: 4096 }).unwrap();
        let owner = OwnerId::new(1).unwrap();
        let core = arena.claim(3, owner).unwrap();
        let config = ScaleFsConfig { hash_seed: round as u64, root_bucket_count: 4, count_slots_per_core: 2 };
        let fs = ScaleFs::create(&core, config).unwrap();
        let mut start = Reference::default();
        for number in 0..2 {
            let make = Call::Open(format!("n{number}"), scalefs::OpenFlags::CreateNew);
            assert_eq!(call(fs, &core, &make).is_ok(), start.call(&make).is_ok());
        }
        let (clock, barrier) = (AtomicU64::new(1), Barrier::new(thread_count));
        let events = Mutex::new(vec![Vec::new(); thread_count]);
        std::thread::scope(|scope| {
            for (number, calls) in plan.into_iter().enumerate() {
                let (clock, barrier, events) = (&clock, &barrier, &events);
                scope.spawn(move || {
                    let core = arena.claim(number, owner).unwrap();
                    let mut mine = Vec::new();
                    barrier.wait();
                    for next in calls {
                        let began = clock.fetch_add(1, Ordering::SeqCst);
                        let outcome = call(fs, &core, &next);
                        let ended = clock.fetch_add(1, Ordering::SeqCst);
                        mine.push(Event { call: next, outcome, began, ended });
                        fs.maintain(&core, &Spin);
                    }
                    events.lock().unwrap()[number] = mine;
                });
            }
        });
        let events = events.into_inner().unwrap();
        assert!(is_linearisable(&events, &start), "no order explains {events:#?} (round {round})");
    }
}
