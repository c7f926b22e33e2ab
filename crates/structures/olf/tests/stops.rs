//! A thread that stops forever before any of its accesses in the middle of an operation: the others go on at once, and
//! see the operation as a whole or not at all.
#![cfg(shuttle)]

#[path = "lists/stops.rs"]
mod lists;
mod shared;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as Plain;

use olf::{Domain, Here, Limits, Sorted};
use shared::{ByKey, Room};
use sync::scheduled::{accesses, end_after, end_never};

type Lists<'d> = [Sorted<'d, ByKey>; 2];

/// Where a key is.
fn places(lists: &Lists<'_>, here: &Here<'_>, key: u32) -> [bool; 2] {
    [0, 1].map(|list| lists[list].contains(here, &key))
}

/// One thread stops at its access of this number in a move of the first key; another moves it back, or on, and puts it into
/// order. Returns how many accesses that took, or none if the first came to its end.
fn stop_at(access: u64, other_goes_first: bool) -> Option<u64> {
    let (mut room, ended) = (Room::<3>::new(), Plain::default());
    let domain = Domain::with(Limits { threads: 2, lists: 2 }).unwrap();
    let lists: Lists = [0, 1].map(|_| Sorted::new(&domain).unwrap());
    let mut threads = [0, 1].map(|_| domain.enter().unwrap());
    threads.rotate_left(usize::from(other_goes_first));
    let [stops, goes_on] = threads;
    // A thread that has stopped never leaves.
    let stops = std::mem::ManuallyDrop::new(stops);
    let (stops, goes_on) = (&*stops, &goes_on);
    for key in 0..3 {
        lists[0].insert(goes_on, room.thing(&domain, key, key as u32, &ended)).unwrap();
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        end_after(access, || {
            // What is dropped on the way out is no part of it: no one looks at it.
            end_never();
            panic!("stopped")
        });
        lists[0].move_to(&lists[1], stops, &1).unwrap();
    }));
    end_never();
    let before = accesses();
    let [is_here, is_there] = places(&lists, goes_on, 1);
    let reads = accesses() - before;
    assert!(is_here != is_there, "in one of the lists");
    assert!(reads <= MOST_OF_A_READER, "{reads} accesses of a reader");

    let before = accesses();
    let (from, to) = if is_here { (0, 1) } else { (1, 0) };
    lists[from].move_to(&lists[to], goes_on, &1).unwrap();
    let took = accesses() - before;
    assert_eq!(places(&lists, goes_on, 1), [to == 0, to == 1]);
    assert!(lists[0].remove(goes_on, &0).is_some() && lists[0].remove(goes_on, &2).is_some());
    outcome.is_err().then_some(took)
}

/// Of two looks.
const MOST_OF_A_READER: u64 = 40;
/// Of a move of three words, and of three marks that it meets.
const MOST_OF_A_WRITER: u64 = 120;

fn stop_everywhere(other_goes_first: bool) -> Vec<u64> {
    (0..).map_while(|access| stop_at(access, other_goes_first)).collect()
}

#[test]
fn the_others_go_on() {
    for other_goes_first in [false, true] {
        let took = stop_everywhere(other_goes_first);
        let most = took.iter().max().unwrap();
        println!("{} deaths", took.len());
        println!("at most {most} accesses of the other thread, {} without a stop", took[0]);
        assert!(took.len() > 20, "a thread that is never stopped in the middle proves nothing");
        assert!(*most <= MOST_OF_A_WRITER);
    }
}

/// Who goes first waits less at a mark.
fn precedence_matters() {
    let (first, second) = (stop_everywhere(true), stop_everywhere(false));
    assert!(first.iter().sum::<u64>() < second.iter().sum::<u64>(), "{first:?} {second:?}");
}

#[test]
fn who_goes_first_waits_less() {
    precedence_matters();
    sync::mutant::must_be_caught("olf: no precedence", precedence_matters);
}
