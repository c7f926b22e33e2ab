//! Several lists at one moment: what a snapshot returns, how often it reads, and how long others wait for it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use olf::{Arc, Domain, Here, Limits, Link, List, ListLink, Map, Sorted, links};

struct Thing {
    key: u32,
    by_key: Link,
    place: ListLink,
}

links! {
    ByKey: Thing { link: by_key, key: key as u32 }
    InOrder: Thing { list: place }
}

fn thing<'d>(here: &Here<'d>, key: u32) -> Arc<'d, Thing> {
    Arc::new(here.domain(), Thing { key, by_key: Link::new(), place: ListLink::new() })
}

fn domain() -> Domain {
    Domain::with(Limits { threads: 3, lists: 8 }).unwrap()
}

#[test]
fn a_snapshot_is_of_lists_of_all_kinds() {
    let domain = domain();
    let here = domain.enter().unwrap();
    let (sorted, map) = (Sorted::<ByKey>::new(&domain).unwrap(), Map::<ByKey>::new(&domain).unwrap());
    let list = List::<InOrder>::new(&domain).unwrap();
    for key in 0..600 {
        let thing = thing(&here, key);
        list.push_front(&here, thing.clone()).unwrap();
        let outcome = if key < 10 { sorted.insert(&here, thing) } else { map.insert(&here, thing) };
        outcome.unwrap();
    }
    let (in_order, counts) = here.snapshot(|snapshot| {
        let mut keys = Vec::new();
        snapshot.for_each(&list, |thing| keys.push(thing.key));
        (keys, [snapshot.count(&sorted), snapshot.count(&map)])
    });
    assert_eq!((in_order, counts), ((0..600).rev().collect(), [10, 590]));
}

#[test]
fn a_snapshot_reads_again_and_keeps_others_waiting_for_a_while_in_the_end() {
    let domain = domain();
    let (here, other) = (domain.enter().unwrap(), domain.enter().unwrap());
    let lists = [0, 1].map(|_| Sorted::<ByKey>::new(&domain).unwrap());
    lists[0].insert(&here, thing(&here, 1)).unwrap();
    let (readings, longest) = (Cell::new(0), Cell::new(0));
    let found = here.snapshot(|snapshot| {
        readings.set(readings.get() + 1);
        let first = snapshot.count(&lists[0]);
        if readings.get() <= 10 {
            let began = Instant::now();
            let from = usize::from(!lists[0].contains(&other, &1));
            lists[from].move_to(&lists[1 - from], &other, &1).unwrap();
            longest.set(longest.get().max(began.elapsed().as_millis()));
        }
        (first, snapshot.count(&lists[1]))
    });
    assert_eq!((found, readings.get()), ((1, 0), 11));
    println!("a change waited for {} ms", longest.get());
    assert!(longest.get() >= 1, "the ninth reading claims");
    // A thread that has waited once goes on: a claim holds no one up again.
    let began = Instant::now();
    lists[0].move_to(&lists[1], &other, &1).unwrap();
    assert!(began.elapsed().as_millis() < 1);
}

#[test]
fn a_closure_that_changes_what_it_reads_is_refused() {
    let domain = domain();
    let here = domain.enter().unwrap();
    let list = List::<InOrder>::new(&domain).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        here.snapshot(|snapshot| {
            list.push_back(&here, thing(&here, 1)).unwrap();
            snapshot.count(&list)
        })
    }));
    let panic = outcome.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the closure of a snapshot changes a list"));
    assert_eq!(here.snapshot(|snapshot| snapshot.count(&list)), 1);
}
