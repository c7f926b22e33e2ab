//! Some dozens of operations on each kind of list by two threads: few enough for an interpreter that knows undefined behaviour
//! (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use commit::{Decisions, Keeper, Precedence, Stance};
use olf::{Arc, Domain, Here, Limits, Link, List, ListLink, Map, Sorted, Stop, links};
use percpu::testing::World;

struct Thing {
    key: u32,
    link: Link,
    place: ListLink,
    ended: std::sync::Arc<AtomicUsize>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

links! {
    ByKey: Thing { link: link, key: key as u32 }
    InOrder: Thing { list: place }
}

const THINGS: u32 = 4;

fn things<'d>(domain: &'d Domain, ended: &std::sync::Arc<AtomicUsize>) -> Vec<Arc<'d, Thing>> {
    let thing = |key| Thing { key, link: Link::new(), place: ListLink::new(), ended: ended.clone() };
    (0..THINGS).map(|key| Arc::new(domain, thing(key))).collect()
}

fn all_have_ended(here: &Here<'_>, ended: &AtomicUsize) {
    (0..12).for_each(|_| _ = here.maintain());
    assert_eq!(ended.load(Ordering::Relaxed), THINGS as usize);
}

/// Two threads move all things to and fro, the one by single calls, the other by closures; a third looks.
#[test]
fn things_stand_in_one_of_two_collections() {
    let domain = Domain::with(Limits { threads: 3, lists: 2 }).unwrap();
    let (here, ended) = (domain.enter().unwrap(), std::sync::Arc::default());
    {
        let things = things(&domain, &ended);
        let (list, map) = (Sorted::<ByKey>::new(&domain).unwrap(), Map::<ByKey>::new(&domain).unwrap());
        map.reserve(&here, 4).unwrap();
        things.into_iter().for_each(|thing| assert!(list.insert(&here, thing).is_ok()));
        thread::scope(|scope| {
            scope.spawn(|| {
                let here = domain.enter().unwrap();
                for key in (0..THINGS).cycle().take(12) {
                    let _ = list.move_to(&map, &here, &key);
                    let _ = map.swap(&key, &list, &((key + 1) % THINGS), &here);
                }
            });
            scope.spawn(|| {
                let here = domain.enter().unwrap();
                for key in (0..THINGS).cycle().take(12) {
                    let moved = here.atomically(|a| {
                        let thing = a.remove(&map, &key)?;
                        a.insert(&list, thing)
                    });
                    assert!(matches!(moved, Ok(()) | Err(Stop::Absent)));
                    here.maintain();
                }
            });
            for _ in 0..4 {
                assert_eq!(here.snapshot(|s| s.count(&list) + s.count(&map)), THINGS as usize);
            }
        });
        let left = (0..THINGS).filter_map(|key| list.remove(&here, &key).or_else(|| map.remove(&here, &key)));
        assert_eq!(left.count(), THINGS as usize);
    }
    all_have_ended(&here, &ended);
}

/// A queue that one fills and another empties, who waits for more; and a reader.
#[test]
fn a_queue_gives_all_that_was_put_into_it() {
    let domain = Domain::with(Limits { threads: 3, lists: 1 }).unwrap();
    let (here, ended) = (domain.enter().unwrap(), std::sync::Arc::default());
    {
        let things = things(&domain, &ended);
        let queue = List::<InOrder>::new(&domain).unwrap();
        thread::scope(|scope| {
            let taker = scope.spawn(|| {
                let here = domain.enter().unwrap();
                let take = |_| {
                    let taken = here.atomically(|a| match a.pop_front(&queue) {
                        Err(Stop::Absent) => Err(a.retry()),
                        other => other.map(|thing| thing.key),
                    });
                    taken.unwrap()
                };
                (0..THINGS).map(take).collect::<Vec<_>>()
            });
            for thing in &things {
                assert!(queue.push_back(&here, thing.clone()).is_ok());
                let seen = queue.fold(&here, Vec::new, |keys, thing| keys.push(thing.key));
                assert!(seen.is_sorted());
            }
            assert_eq!(taker.join().unwrap(), [0, 1, 2, 3]);
        });
        for thing in &things {
            assert!(queue.push_front(&here, thing.clone()).is_ok());
        }
        queue.move_to_back(&queue, &here, &things[3]).unwrap();
        assert!(queue.remove(&here, &things[1]).is_some());
        let seen = queue.fold(&here, Vec::new, |keys, thing| keys.push(thing.key));
        assert_eq!(seen, [2, 0, 3]);
    }
    all_have_ended(&here, &ended);
}

/// Memory of another store, with its two cores.
static WORLD: LazyLock<World> = LazyLock::new(|| World::new(2));

struct Kept(&'static Decisions);

// SAFETY: the decisions lie in memory that is never given back.
unsafe impl Keeper for Kept {
    fn decisions(&self) -> &Decisions {
        self.0
    }

    fn wait(&self, _: u32) {
        thread::yield_now();
    }
}

/// Parts of another store's operations, of which every second one happens, while the same things move.
#[test]
fn parts_happen_or_do_not() {
    let decisions = Decisions::create(WORLD.arena()).unwrap();
    let domain = Domain::with(Limits { threads: 3, lists: 2 }).unwrap().together_with(Box::new(Kept(decisions)));
    let (here, ended) = (domain.enter().unwrap(), std::sync::Arc::default());
    {
        let lists = [0, 1].map(|_| Sorted::<ByKey>::new(&domain).unwrap());
        things(&domain, &ended).into_iter().for_each(|thing| assert!(lists[0].insert(&here, thing).is_ok()));
        thread::scope(|scope| {
            scope.spawn(|| {
                let (here, core) = (domain.enter().unwrap(), WORLD.core(0));
                for round in 0..12 {
                    let key = round / 2 % THINGS;
                    let part = here.part(|a| {
                        let thing = a.remove(&lists[0], &key)?;
                        a.insert(&lists[1], thing)
                    });
                    let Ok((mut part, ())) = part else { continue };
                    let mut operation = decisions.begin_firm(&core);
                    if part.mark(&operation).is_ok() {
                        operation.open(Precedence(0), Stance::Yields);
                        let has_happened = round % 2 == 1 && operation.commit().is_ok();
                        operation.abort();
                        part.unmark(has_happened);
                    }
                }
            });
            scope.spawn(|| {
                let here = domain.enter().unwrap();
                for key in (0..THINGS).cycle().take(12) {
                    let _ = lists[1].move_to(&lists[0], &here, &key);
                }
            });
            for _ in 0..4 {
                assert_eq!(here.snapshot(|s| s.count(&lists[0]) + s.count(&lists[1])), THINGS as usize);
            }
        });
        let left = (0..THINGS).filter_map(|key| lists.iter().find_map(|list| list.remove(&here, &key)));
        assert_eq!(left.count(), THINGS as usize);
    }
    all_have_ended(&here, &ended);
}
