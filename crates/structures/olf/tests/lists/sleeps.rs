//! Closures that wait: who waits for a change sleeps, and is woken by it.

use std::sync::Arc as Plain;
use std::sync::atomic::AtomicUsize;
#[cfg(not(shuttle))]
use std::sync::atomic::Ordering;

use history::{play, repeat};
use olf::{Domain, Limits, List, Map, Stop};
use sync::atomic::{AtomicU32, Ordering as Atomically};
use sync::{Spin, Wait, WaitReason};

use crate::shared::{ByKey, InOrder, Room};

/// Sleeps until it is woken, and not a moment less.
struct Sound;

impl Wait for Sound {
    fn wait(&self, reason: WaitReason, round: u32) {
        Spin.wait(reason, round);
    }

    fn wait_while(&self, word: &AtomicU32, value: u32, _: WaitReason, _: u32) {
        while word.load(Atomically::Acquire) == value {
            Spin.wait(WaitReason::Answer, 0);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    /// Takes the first item of the queue, once there is one.
    Take,
    /// Takes the item of key 0 out of the map, or else the last of the queue, once there is one of them.
    TakeEither,
    Push(usize),
    Insert(usize),
}

const ITEMS: usize = 4;

fn check(plan: &[Vec<Call>]) {
    let ended = Plain::new(AtomicUsize::new(0));
    let mut room = Room::<ITEMS>::new();
    let domain = Domain::with(Limits { threads: 5, lists: 2 }).unwrap().hosted(&Sound);
    let items: Vec<_> = (0..ITEMS).map(|item| room.thing(&domain, item, 0, &ended)).collect();
    let (queue, map) = (List::<InOrder>::new(&domain).unwrap(), Map::<ByKey>::new(&domain).unwrap());
    let made = play(plan, |_| {
        let (here, items, queue, map) = (domain.enter().unwrap(), &items, &queue, &map);
        move |call: &Call| match *call {
            Call::Push(item) => queue.push_back(&here, items[item].clone()).map(|()| item).ok(),
            Call::Insert(item) => map.insert(&here, items[item].clone()).map(|()| item).ok(),
            Call::Take => here
                .atomically(|a| match a.pop_front(queue) {
                    Err(Stop::Absent) => Err(a.retry()),
                    other => other.map(|item| item.number),
                })
                .ok(),
            Call::TakeEither => here
                .atomically(|a| {
                    a.or_else(
                        |a| match a.remove(map, &0) {
                            Err(Stop::Absent) => Err(a.retry()),
                            other => other.map(|item| item.number),
                        },
                        |a| match a.pop_back(queue) {
                            Err(Stop::Absent) => Err(a.retry()),
                            other => other.map(|item| item.number),
                        },
                    )
                })
                .ok(),
        }
    });
    let all = |takes: bool| {
        let of = made.iter().flatten().filter(|made| takes == matches!(made.operation, Call::Take | Call::TakeEither));
        let mut items: Vec<usize> = of.map(|made| made.outcome.expect("it comes to an end")).collect();
        items.sort_unstable();
        items
    };
    assert_eq!(all(true), all(false), "what was taken is what was given");
}

fn plans() -> [Vec<Vec<Call>>; 3] {
    use Call::{Insert, Push, Take, TakeEither};
    [
        vec![vec![Take], vec![Push(0)]],
        vec![vec![Take, Take], vec![Push(0), Push(1)], vec![TakeEither], vec![Push(2)]],
        vec![vec![TakeEither], vec![Insert(0)], vec![TakeEither], vec![Push(1)]],
    ]
}

fn all(rounds: u64) {
    plans().into_iter().for_each(|plan| repeat(rounds, plan, |_, plan| check(plan)));
}

#[test]
fn who_waits_is_woken_by_what_it_waits_for() {
    all(if cfg!(shuttle) { 1_000 } else { 20 });
}

/// By the host of domains that have a standard library: it does not spin.
#[cfg(not(shuttle))]
#[test]
fn who_waits_sleeps() {
    let (mut room, ended, runs) = (Room::<1>::new(), Plain::default(), AtomicUsize::new(0));
    let domain = Domain::with(Limits { threads: 2, lists: 1 }).unwrap();
    let queue = List::<InOrder>::new(&domain).unwrap();
    let thing = room.thing(&domain, 0, 0, &ended);
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let here = domain.enter().unwrap();
            let taken = here.atomically(|a| {
                runs.fetch_add(1, Ordering::Relaxed);
                match a.pop_front(&queue) {
                    Err(Stop::Absent) => Err(a.retry()),
                    other => other.map(|item| item.number),
                }
            });
            assert_eq!(taken, Ok(0));
        });
        let here = domain.enter().unwrap();
        while runs.load(Ordering::Relaxed) == 0 || began.elapsed().as_millis() < 150 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        queue.push_back(&here, thing.clone()).unwrap();
    });
    // At first, every 100 ms, and when it was woken, which a system may do once for nothing.
    let (runs, waited) = (runs.load(Ordering::Relaxed), began.elapsed());
    assert!(runs as u128 <= 3 + waited.as_millis() / 100, "the closure ran {runs} times in {waited:?}");
}

#[cfg(shuttle)]
#[test]
fn faults_of_sleepers_are_found() {
    for mutant in ["olf: who changes a word wakes no one", "olf: who falls asleep does not look again"] {
        sync::mutant::must_be_caught(mutant, || all(10_000));
    }
}
