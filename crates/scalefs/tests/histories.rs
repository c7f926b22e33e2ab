//! Concurrent histories: two and three threads make a few calls at the same time, and there must be an order of all
//! calls, in keeping with which ended before which began, in which the plain reference returns the same.
#![cfg(not(loom))]

mod linearise;
mod reference;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use linearise::{Event, State, is_linearisable};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reference::{Answer, Bijection, Call, Outcome, Reference, any_call, call, create_new};
use scalefs::{Context, Credentials, Follow, ScaleFs, ScaleFsConfig};
use sync::Spin;

/// The plain reference, and which numbers of files correspond.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Names {
    reference: Reference,
    numbers: Bijection,
}

impl State for Names {
    type Step = (Call, Outcome);

    fn take(&mut self, _: usize, (call, outcome): &(Call, Outcome)) -> bool {
        let expected = self.reference.call(call);
        self.numbers.same(outcome, &expected)
    }
}

#[test]
fn the_checker_refuses_an_impossible_history() {
    let name = || "n0".to_string();
    let open = Call::Open(name(), create_new());
    let event = |call, outcome, began, ended| Event { steps: vec![(call, outcome)], began, ended };
    let made = event(open.clone(), Ok(Answer::Done), 1, 2);
    let missed = event(Call::Access(name()), Err(scalefs::Errno::ENOENT), 3, 4);
    let empty = &Names::default();
    assert!(!is_linearisable(&[vec![made.clone()], vec![missed.clone()]], empty));
    let status = |file| Ok(Answer::Status { file, kind: 0, links: 1 });
    let stat = |file, began| event(Call::Stat(name(), Follow::Nothing), status(file), began, began + 1);
    assert!(is_linearisable(&[vec![made.clone(), stat(9, 5), stat(9, 7)]], empty));
    assert!(!is_linearisable(&[vec![made, stat(9, 5), stat(8, 7)]], empty), "another file");
    let overlapping = event(open, Ok(Answer::Done), 1, 5);
    assert!(is_linearisable(&[vec![overlapping], vec![missed]], empty));
}

#[test]
fn concurrent_histories_have_an_order() {
    let rounds = std::env::var("SCALEFS_HISTORIES").ok().map_or(250, |count| count.parse().unwrap());
    let mut runner = TestRunner::deterministic();
    for round in 0..rounds {
        let thread_count = 2 + round % 3;
        let plan = proptest::collection::vec(proptest::collection::vec(any_call(), 6), thread_count);
        let plan = plan.new_tree(&mut runner).unwrap().current();
        let mut region = HeapRegion::new(6 << 20).unwrap();
        let arena = Arena::create(&mut region, ArenaConfig { core_count: 5, chunk_bytes: 4096 }).unwrap();
        let owner = OwnerId::new(1).unwrap();
        let core = arena.claim(4, owner).unwrap();
        let config = ScaleFsConfig {
            hash_seed: round as u64,
            root_bucket_count: 4,
            directory_bucket_count: 2,
            count_slots_per_core: 2,
            ..ScaleFsConfig::default()
        };
        let fs = ScaleFs::create(&core, config).unwrap();
        let context = &Context::new(fs, &core, Credentials::SUPERUSER);
        let mut start = Names::default();
        for number in 0..2 {
            let make = if number == 0 {
                Call::Open(format!("n{number}"), create_new())
            } else {
                Call::MakeDirectory(format!("n{number}"))
            };
            assert_eq!(call(fs, &core, context, &make).is_ok(), start.reference.call(&make).is_ok());
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
                        let outcome = call(fs, &core, context, &next);
                        let ended = clock.fetch_add(1, Ordering::SeqCst);
                        mine.push(Event { steps: vec![(next, outcome)], began, ended });
                        fs.maintain(&core, &Spin);
                    }
                    events.lock().unwrap()[number] = mine;
                });
            }
        });
        let events = events.into_inner().unwrap();
        let mut lines: Vec<String> = Vec::new();
        for (thread, events) in events.iter().enumerate() {
            for Event { steps, began, ended } in events {
                let (call, outcome) = &steps[0];
                lines.push(format!("{began:3} to {ended:3} thread {thread} {call:?} = {outcome:?}"));
            }
        }
        lines.sort();
        assert!(is_linearisable(&events, &start), "no order explains round {round}:\n{}", lines.join("\n"));
    }
}
