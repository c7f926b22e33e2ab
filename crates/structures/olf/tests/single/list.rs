//! Lists in the order of insertion: their ends, removal by item, moves, closures, and readers that are overtaken.

use std::collections::VecDeque;
use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicUsize, Ordering};

use olf::{Arc, Domain, Here, Limits, Link, List, ListLink, NotMoved, Refused, Sorted, Stop, links};
use proptest::collection::vec;
use proptest::prelude::*;

struct Thing {
    key: u32,
    by_key: Link,
    place: ListLink,
    ended: Plain<AtomicUsize>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

links! {
    ByKey: Thing { link: by_key, key: key as u32 }
    InOrder: Thing { list: place }
}

type Queue<'d> = List<'d, InOrder>;

fn domain() -> Domain {
    Domain::with(Limits { threads: 4, lists: 8 }).unwrap()
}

fn queue(domain: &Domain) -> Queue<'_> {
    List::new(domain).unwrap()
}

fn thing<'d>(domain: &'d Domain, key: u32, ended: &Plain<AtomicUsize>) -> Arc<'d, Thing> {
    Arc::new(domain, Thing { key, by_key: Link::new(), place: ListLink::new(), ended: Plain::clone(ended) })
}

/// Things of these keys, which are in the list in this order.
fn filled<'d>(here: &Here<'d>, list: &Queue<'d>, count: u32) -> Vec<Arc<'d, Thing>> {
    let things: Vec<_> = (0..count).map(|key| thing(here.domain(), key, &Plain::default())).collect();
    things.iter().for_each(|thing| list.push_back(here, thing.clone()).unwrap());
    things
}

fn keys(list: &Queue<'_>, here: &Here<'_>) -> Vec<u32> {
    list.fold(here, Vec::new, |keys, thing| keys.push(thing.key))
}

/// By the other words.
fn keys_backwards<'d>(list: &Queue<'d>, here: &Here<'d>) -> Vec<u32> {
    let mut taken = Vec::new();
    while let Some(thing) = list.pop_back(here) {
        taken.push(thing);
    }
    taken.iter().for_each(|thing| list.push_front(here, thing.clone()).unwrap());
    taken.iter().map(|thing| thing.key).collect()
}

#[test]
fn a_list_is_a_queue_at_both_ends() {
    let domain = domain();
    let here = domain.enter().unwrap();
    let list = queue(&domain);
    assert!(list.is_empty(&here) && list.pop_front(&here).is_none() && list.pop_back(&here).is_none());
    let things: Vec<_> = (0..4).map(|key| thing(&domain, key, &Plain::default())).collect();
    list.push_back(&here, things[1].clone()).unwrap();
    list.push_back(&here, things[2].clone()).unwrap();
    list.push_front(&here, things[0].clone()).unwrap();
    assert!(matches!(list.push_back(&here, things[1].clone()), Err(Refused::Listed(_))));
    assert_eq!(keys(&list, &here), [0, 1, 2]);
    assert_eq!(keys_backwards(&list, &here), [2, 1, 0]);
    let guard = here.pin();
    assert_eq!((list.front(&guard).unwrap().key, list.back(&guard).unwrap().key), (0, 2));
    drop(guard);
    assert_eq!((list.pop_back(&here).unwrap().key, list.pop_front(&here).unwrap().key), (2, 0));
    assert_eq!(keys(&list, &here), [1]);
}

#[test]
fn an_item_leaves_from_anywhere() {
    let domain = domain();
    let here = domain.enter().unwrap();
    let (list, other) = (queue(&domain), queue(&domain));
    let things = filled(&here, &list, 5);
    for (key, left) in [(2, vec![0, 1, 3, 4]), (0, vec![1, 3, 4]), (4, vec![1, 3])] {
        assert!(list.contains(&here, &things[key]) && other.remove(&here, &things[key]).is_none());
        assert!(list.remove(&here, &things[key]).unwrap().is_same(&things[key]));
        assert!(list.remove(&here, &things[key]).is_none() && !list.contains(&here, &things[key]));
        assert_eq!(keys(&list, &here), left);
    }
    assert_eq!(keys_backwards(&list, &here), [3, 1]);
    let guard = here.pin();
    let found = list.find(&guard, |thing| thing.key == 3).unwrap();
    assert!(list.remove(&here, &found).is_some() && list.find(&guard, |thing| thing.key == 3).is_none());
}

#[test]
fn an_item_moves_between_lists_and_within_one() {
    let domain = domain();
    let here = domain.enter().unwrap();
    let (list, other) = (queue(&domain), queue(&domain));
    let things = filled(&here, &list, 4);
    let both = || (keys(&list, &here), keys(&other, &here));
    list.move_to_back(&other, &here, &things[1]).unwrap();
    list.move_to_front(&other, &here, &things[3]).unwrap();
    assert_eq!(both(), (vec![0, 2], vec![3, 1]));
    assert_eq!(list.move_to_back(&other, &here, &things[1]), Err(NotMoved::Absent));
    assert_eq!(list.move_to_front(&list, &here, &things[1]), Err(NotMoved::Absent));
    other.move_to_front(&list, &here, &things[1]).unwrap();
    assert_eq!(both(), (vec![1, 0, 2], vec![3]));
    for (key, front, after) in [(2, true, [2, 1, 0]), (2, true, [2, 1, 0]), (1, false, [2, 0, 1]), (0, true, [0, 2, 1])]
    {
        match front {
            true => list.move_to_front(&list, &here, &things[key]).unwrap(),
            false => list.move_to_back(&list, &here, &things[key]).unwrap(),
        }
        assert_eq!(keys(&list, &here), after);
    }
    assert_eq!(keys_backwards(&list, &here), [1, 2, 0]);
}

#[test]
fn items_end_once_when_no_list_leads_to_them() {
    let ended: Plain<AtomicUsize> = Plain::default();
    let domain = domain();
    let here = domain.enter().unwrap();
    let count = || {
        (0..4).for_each(|_| _ = here.maintain());
        ended.load(Ordering::Relaxed)
    };
    let list = queue(&domain);
    (0..4).for_each(|key| list.push_back(&here, thing(&domain, key, &ended)).unwrap());
    drop(list.pop_front(&here));
    assert_eq!(count(), 1);
    here.atomically(|a| a.pop_back(&list).map(|_| ())).unwrap();
    assert_eq!(count(), 2);
    // Neighbours, the second one first: its word is noted before the item is taken out.
    here.atomically(|a| {
        let front = a.front(&list)?.unwrap();
        a.pop_back(&list)?;
        a.take(&list, front)
    })
    .unwrap();
    assert_eq!((count(), keys(&list, &here)), (4, vec![]));
    list.push_back(&here, thing(&domain, 9, &ended)).unwrap();
    drop(list);
    assert_eq!(count(), 5, "a list gives its counts back");
}

#[test]
fn closures_go_from_lists_to_lists_in_order() {
    let domain = domain();
    let here = domain.enter().unwrap();
    let (list, by_key) = (queue(&domain), Sorted::<ByKey>::new(&domain).unwrap());
    let things = filled(&here, &list, 3);
    for thing in &things {
        by_key.insert(&here, thing.clone()).unwrap();
    }
    // Out of both at one moment.
    let taken = here.atomically(|a| {
        let item = a.remove(&by_key, &1)?;
        a.take(&list, item)?;
        item.to_arc().ok_or(Stop::Again)
    });
    assert_eq!((taken.unwrap().key, keys(&list, &here)), (1, vec![0, 2]));
    let rotated = here.atomically(|a| {
        let first = a.pop_front(&list)?;
        assert!(!a.is_in(&list, first)?);
        a.push_back(&list, first)?;
        Ok::<_, Stop>((a.front(&list)?.unwrap().key, a.back(&list)?.unwrap().key))
    });
    assert_eq!((rotated, keys(&list, &here), keys_backwards(&list, &here)), (Ok((2, 0)), vec![2, 0], vec![0, 2]));
    let refused = here.atomically(|a| {
        let held = a.hold(&things[2]);
        a.push_front(&list, held)
    });
    assert_eq!(refused, Err(Stop::Listed));
    let second = here.atomically(|a| {
        let item = a.or_else(
            |a| {
                a.pop_front(&list)?;
                Err(a.retry())
            },
            |a| a.pop_back(&list),
        )?;
        Ok::<_, Stop>(item.key)
    });
    assert_eq!((second, keys(&list, &here)), (Ok(0), vec![2]));
    here.atomically(|a| a.pop_back(&list).map(|_| ())).unwrap();
    assert_eq!(here.atomically(|a| a.pop_back(&list).map(|_| ())), Err(Stop::Absent));
}

/// `each` moves what it sees to the end of the list, as long as it may.
#[test]
fn a_reader_that_is_overtaken_goes_on_where_it_was() {
    let domain = domain();
    let (here, other) = (domain.enter().unwrap(), domain.enter().unwrap());
    let list = queue(&domain);
    let things = filled(&here, &list, 100);
    // Half of them go to the end while the reader stands at them.
    let (mut seen, mut moved) = (Vec::new(), 0);
    list.for_each(&here, |thing| {
        seen.push(thing.key);
        if thing.key % 2 == 1 && moved < 50 {
            moved += 1;
            list.move_to_back(&list, &other, &things[thing.key as usize]).unwrap();
        }
    });
    let evens: Vec<u32> = seen.iter().copied().filter(|key| key % 2 == 0).collect();
    assert_eq!(evens, (0..100).step_by(2).collect::<Vec<_>>(), "those that stay come once and in order");
    assert_eq!(seen.len(), 150, "those that move come twice");
}

/// All that a reader has passed goes away while it stands there: its place is lost.
fn lose_places(domain: &Domain, losses: u32) -> (u32, Vec<u32>) {
    let (here, other) = (domain.enter().unwrap(), domain.enter().unwrap());
    let list = queue(domain);
    let things = filled(&here, &list, 100);
    let starts = std::cell::Cell::new(0);
    let seen = list.fold(
        &here,
        || {
            starts.set(starts.get() + 1);
            Vec::new()
        },
        |seen, thing| {
            seen.push(thing.key);
            // More than the trail, and all there is.
            if seen.len() == 60 && starts.get() <= losses {
                things.iter().for_each(|thing| list.move_to_front(&list, &other, thing).unwrap());
                things.iter().for_each(|thing| list.move_to_back(&list, &other, thing).unwrap());
            }
        },
    );
    assert_eq!(keys(&list, &here), (0..100).collect::<Vec<_>>());
    assert_eq!(keys_backwards(&list, &here).len(), 100, "no cursor is left");
    (starts.get(), seen)
}

#[test]
fn a_reader_that_has_lost_its_place_begins_again_and_sets_a_cursor_in_the_end() {
    let all: Vec<u32> = (0..100).collect();
    assert_eq!(lose_places(&domain(), 0), (1, all.clone()));
    assert_eq!(lose_places(&domain(), 2), (3, all.clone()));
    // With a cursor: what moves to the end, after it, comes again; nothing is lost any more.
    let (starts, seen) = lose_places(&domain(), 1_000);
    assert_eq!(starts, 4);
    assert_eq!(seen, (0..60).chain(0..100).collect::<Vec<_>>());
}

/// Lets each of these threads set its cursor before all items of a list; then calls `act`.
fn with_cursors<'d>(list: &Queue<'d>, things: &[Arc<'d, Thing>], walkers: &[Here<'d>], act: &mut dyn FnMut()) {
    let Some((here, others)) = walkers.split_first() else {
        return act();
    };
    let mover = here.domain().enter().unwrap();
    let (starts, acted) = (std::cell::Cell::new(0), std::cell::Cell::new(false));
    let start = || {
        starts.set(starts.get() + 1);
        0
    };
    list.fold(here, start, |seen, thing| {
        *seen += 1;
        if starts.get() <= 3 && *seen == 20 {
            things.iter().for_each(|thing| list.move_to_front(list, &mover, thing).unwrap());
            things.iter().for_each(|thing| list.move_to_back(list, &mover, thing).unwrap());
        } else if starts.get() == 4 && !acted.replace(true) {
            // The cursor has passed the first item.
            let first = &things[thing.key as usize];
            list.move_to_back(list, &mover, first).unwrap();
            with_cursors(list, things, others, act);
        }
    });
    assert!(acted.get(), "no cursor was set");
}

#[test]
fn ends_are_found_past_cursors() {
    let domain = Domain::with(Limits { threads: 16, lists: 8 }).unwrap();
    for cursors in 0..5 {
        let walkers: Vec<_> = (0..cursors).map(|_| domain.enter().unwrap()).collect();
        let last = domain.enter().unwrap();
        let list = queue(&domain);
        let things = filled(&last, &list, 40);
        with_cursors(&list, &things, &walkers, &mut || {
            let guard = last.pin();
            let front = || list.front(&guard).map(|thing| thing.key);
            let first = front().unwrap();
            assert_eq!(list.pop_front(&last).unwrap().key, first);
            let second = front().unwrap();
            let taken = last.atomically(|a| a.pop_front(&list)?.to_arc().ok_or(Stop::Again)).unwrap();
            assert_eq!(taken.key, second);
            let rest: Vec<_> = std::iter::from_fn(|| list.pop_front(&last)).collect();
            assert!(rest.len() == 38 && list.is_empty(&last), "only cursors are left");
            assert!(list.pop_back(&last).is_none() && list.back(&guard).is_none());
            assert_eq!(last.atomically(|a| a.pop_back(&list).map(|_| ())), Err(Stop::Absent));
            assert_eq!(last.atomically(|a| Ok::<_, Stop>(a.front(&list)?.is_none())), Ok(true));
            things.iter().for_each(|thing| list.push_back(&last, thing.clone()).unwrap());
        });
        assert_eq!(keys_backwards(&list, &last).len(), 40);
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Push(usize, bool, usize),
    Pop(usize, bool),
    Remove(usize, usize),
    Move(usize, usize, bool, usize),
}

fn any_call() -> impl Strategy<Value = Call> {
    let (list, item, front) = (|| 0..2_usize, || 0..6_usize, any::<bool>);
    prop_oneof![
        (list(), front(), item()).prop_map(|(list, front, item)| Call::Push(list, front, item)),
        (list(), front()).prop_map(|(list, front)| Call::Pop(list, front)),
        (list(), item()).prop_map(|(list, item)| Call::Remove(list, item)),
        (list(), list(), front(), item()).prop_map(|(from, to, front, item)| Call::Move(from, to, front, item)),
    ]
}

fn put(list: &mut VecDeque<usize>, front: bool, item: usize) {
    if front { list.push_front(item) } else { list.push_back(item) }
}

proptest! {
    #[test]
    fn lists_are_as_plain_queues(calls in vec(any_call(), 1..60), by_closure in any::<bool>()) {
        let domain = domain();
        let here = domain.enter().unwrap();
        let lists = [queue(&domain), queue(&domain)];
        let things: Vec<_> = (0..6).map(|key| thing(&domain, key, &Plain::default())).collect();
        let mut plain = [VecDeque::new(), VecDeque::new()];
        for call in calls {
            match call {
                Call::Push(list, front, item) => {
                    let (to, new) = (&lists[list], things[item].clone());
                    let is_free = plain.iter().all(|plain: &VecDeque<usize>| !plain.contains(&item));
                    let outcome = match (by_closure, front) {
                        (true, _) => here.atomically(|a| {
                            let held = a.hold(&things[item]);
                            if front { a.push_front(to, held) } else { a.push_back(to, held) }
                        }).is_ok(),
                        (_, true) => to.push_front(&here, new).is_ok(),
                        (_, false) => to.push_back(&here, new).is_ok(),
                    };
                    prop_assert_eq!(outcome, is_free);
                    if is_free {
                        put(&mut plain[list], front, item);
                    }
                }
                Call::Pop(list, front) => {
                    let from = &lists[list];
                    let taken = match (by_closure, front) {
                        (true, _) => here.atomically(|a| {
                            let item = if front { a.pop_front(from)? } else { a.pop_back(from)? };
                            Ok::<_, Stop>(item.key)
                        }).ok(),
                        (_, true) => from.pop_front(&here).map(|item| item.key),
                        (_, false) => from.pop_back(&here).map(|item| item.key),
                    };
                    let expected = if front { plain[list].pop_front() } else { plain[list].pop_back() };
                    prop_assert_eq!(taken.map(|key| key as usize), expected);
                }
                Call::Remove(list, item) => {
                    let (from, place) = (&lists[list], plain[list].iter().position(|one| *one == item));
                    let is_out = if by_closure {
                        here.atomically(|a| {
                            let held = a.hold(&things[item]);
                            a.take(from, held)
                        }).is_ok()
                    } else {
                        from.remove(&here, &things[item]).is_some()
                    };
                    prop_assert_eq!(is_out, place.is_some());
                    place.map(|place| plain[list].remove(place));
                }
                Call::Move(from, to, front, item) => {
                    let place = plain[from].iter().position(|one| *one == item);
                    let (one, other, thing) = (&lists[from], &lists[to], &things[item]);
                    let outcome = if by_closure {
                        here.atomically(|a| {
                            let held = a.hold(thing);
                            a.take(one, held)?;
                            if front { a.push_front(other, held) } else { a.push_back(other, held) }
                        }).is_ok()
                    } else if front {
                        one.move_to_front(other, &here, thing).is_ok()
                    } else {
                        one.move_to_back(other, &here, thing).is_ok()
                    };
                    prop_assert_eq!(outcome, place.is_some());
                    if let Some(place) = place {
                        plain[from].remove(place);
                        put(&mut plain[to], front, item);
                    }
                }
            }
            for (list, plain) in lists.iter().zip(&plain) {
                let keys: Vec<usize> = keys(list, &here).iter().map(|key| *key as usize).collect();
                prop_assert_eq!(&keys, &Vec::from(plain.clone()));
            }
        }
        for (list, plain) in lists.iter().zip(&plain) {
            let keys: Vec<usize> = keys_backwards(list, &here).iter().rev().map(|key| *key as usize).collect();
            prop_assert_eq!(&keys, &Vec::from(plain.clone()));
        }
    }
}
