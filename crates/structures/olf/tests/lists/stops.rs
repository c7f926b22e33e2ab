//! Threads that stop forever in the middle of an operation on doubly linked lists, or of a walk by a cursor.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as Plain;

use olf::{Arc, Domain, Here, Limits, List};
use sync::scheduled::{accesses, end_after, end_never};

use crate::shared::{InOrder, Room, Thing};

const ITEMS: usize = 5;

type Lists<'d> = [List<'d, InOrder>; 2];

/// What the thread does that stops.
#[derive(Clone, Copy, Debug)]
enum Act {
    PushBack,
    PopFront,
    Remove,
    Move,
    MoveWithin,
    Hand,
    /// With a cursor: the place is lost at once, again and again.
    Walk,
}

const ACTS: [Act; 7] = [Act::PushBack, Act::PopFront, Act::Remove, Act::Move, Act::MoveWithin, Act::Hand, Act::Walk];

struct World<'d> {
    lists: Lists<'d>,
    things: Vec<Arc<'d, Thing>>,
}

impl<'d> World<'d> {
    fn act(&self, act: Act, here: &Here<'d>, mover: &Here<'d>) {
        let [one, two] = &self.lists;
        match act {
            Act::PushBack => one.push_back(here, self.things[ITEMS - 1].clone()).unwrap(),
            Act::PopFront => drop(one.pop_front(here)),
            Act::Remove => drop(one.remove(here, &self.things[1])),
            Act::Move => one.move_to_front(two, here, &self.things[1]).unwrap(),
            Act::MoveWithin => one.move_to_back(one, here, &self.things[1]).unwrap(),
            Act::Hand => here
                .atomically(|a| {
                    let item = a.pop_front(one)?;
                    a.push_back(two, item)
                })
                .unwrap(),
            Act::Walk => walk_by_a_cursor(one, &self.things, here, mover),
        }
    }

    fn numbers(&self, list: usize, here: &Here<'d>) -> Vec<usize> {
        self.lists[list].fold(here, Vec::new, |numbers, thing| numbers.push(thing.number))
    }
}

/// Goes along a list while all its items move; returns once a cursor has passed them.
fn walk_by_a_cursor<'d>(list: &List<'d, InOrder>, things: &[Arc<'d, Thing>], here: &Here<'d>, mover: &Here<'d>) {
    let starts = std::cell::Cell::new(0);
    let start = || {
        starts.set(starts.get() + 1);
        0
    };
    list.fold(here, start, |seen, _| {
        *seen += 1;
        // More than a trail.
        if starts.get() == 1 && *seen == 4 {
            for thing in things.iter().filter(|thing| list.contains(mover, *thing)) {
                list.move_to_front(list, mover, thing).unwrap();
            }
            for thing in things.iter().rev().filter(|thing| list.contains(mover, *thing)) {
                list.move_to_back(list, mover, thing).unwrap();
            }
        }
    });
    assert_eq!(starts.get(), 2, "the place was lost, and a cursor set");
}

/// One thread stops at its access of this number; another looks, moves all items and takes them out. Returns how many accesses that
/// took, or none if the first came to its end.
fn stop_at(act: Act, access: u64) -> Option<u64> {
    let (mut room, ended) = (Room::<ITEMS>::new(), Plain::default());
    let domain = Domain::with(Limits { threads: 3, lists: 2 }).unwrap();
    let lists: Lists = [0, 1].map(|_| List::new(&domain).unwrap());
    // A thread that has stopped never leaves; of a walk, the mover may be the one.
    let [stops, mover] = [0, 1].map(|_| ManuallyDrop::new(domain.enter().unwrap()));
    let goes_on = domain.enter().unwrap();
    let things = (0..ITEMS).map(|item| room.thing(&domain, item, item as u32, &ended)).collect();
    let world = World { lists, things };
    for thing in &world.things {
        world.lists[0].push_back(&goes_on, thing.clone()).unwrap();
    }
    // It has stood in a list, and is put back.
    drop(world.lists[0].pop_back(&goes_on));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        end_after(access, || {
            // What is dropped on the way out is no part of it: no one looks at it.
            end_never();
            panic!("stopped")
        });
        world.act(act, &stops, &mover);
    }));
    end_never();

    let before = accesses();
    let numbers = [0, 1].map(|list| world.numbers(list, &goes_on));
    let mut all = numbers.concat();
    all.sort_unstable();
    let expected = [vec![0, 1, 2, 3], vec![0, 1, 2, 3, 4], vec![1, 2, 3], vec![0, 2, 3]];
    assert!(expected.contains(&all), "{act:?} at {access}: {numbers:?}");
    for (list, numbers) in numbers.iter().enumerate() {
        for item in numbers {
            world.lists[list].move_to_back(&world.lists[1 - list], &goes_on, &world.things[*item]).unwrap();
        }
    }
    assert_eq!([0, 1].map(|list| world.numbers(1 - list, &goes_on)), numbers);
    for (list, numbers) in numbers.iter().enumerate() {
        for item in numbers {
            assert_eq!(world.lists[1 - list].pop_front(&goes_on).unwrap().number, *item);
        }
        assert!(world.lists[1 - list].is_empty(&goes_on));
    }
    let took = accesses() - before;
    outcome.is_err().then_some(took)
}

/// Of all that the other thread does with five items: its own steps, and up to six marks and a cursor.
const MOST_OF_THE_OTHER: u64 = 650;

#[test]
fn the_others_go_on() {
    for act in ACTS {
        let took: Vec<u64> = (0..).map_while(|access| stop_at(act, access)).collect();
        let (least, most) = (took.iter().min().unwrap(), took.iter().max().unwrap());
        println!("{act:?}: {} deaths, {least} to {most} accesses of the other thread", took.len());
        assert!(took.len() > 15, "a thread that is never stopped in the middle proves nothing");
        assert!(*most <= MOST_OF_THE_OTHER);
    }
}

/// A reader that has come to its end has taken its cursor out: who asks for an end meets nothing but the end.
fn cursors_go_with_their_readers() {
    let (mut room, ended) = (Room::<ITEMS>::new(), Plain::default());
    let domain = Domain::with(Limits { threads: 2, lists: 1 }).unwrap();
    let (here, mover) = (domain.enter().unwrap(), domain.enter().unwrap());
    let list = List::<InOrder>::new(&domain).unwrap();
    let things: Vec<_> = (0..ITEMS).map(|item| room.thing(&domain, item, item as u32, &ended)).collect();
    let cost = || {
        let before = accesses();
        assert!(list.is_empty(&mover));
        accesses() - before
    };
    let without = cost();
    things.iter().for_each(|thing| list.push_back(&here, thing.clone()).unwrap());
    walk_by_a_cursor(&list, &things, &here, &mover);
    while list.pop_front(&mover).is_some() {}
    assert_eq!(cost(), without);
}

#[test]
fn no_cursor_is_left_behind() {
    cursors_go_with_their_readers();
    sync::mutant::must_be_caught("olf: a cursor is left behind", cursors_go_with_their_readers);
}
