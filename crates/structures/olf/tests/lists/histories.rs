//! Histories of doubly linked lists: they are those of plain queues, and a reader sees once, and in order, what stays.

use std::collections::VecDeque;
use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicUsize, Ordering};

use history::{Event, Made, State, expect_order, explore, of_few_calls, overtake, plans, play, rounds, told};
use olf::{Arc, Domain, Here, Limits, List, NotMoved, Refused, Stop};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::shared::{InOrder, Room, Thing};

const ITEMS: usize = 5;
const LISTS: usize = 2;
const THREADS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Push(usize, bool, usize),
    Pop(usize, bool),
    Remove(usize, usize),
    Move(usize, usize, bool, usize),
    Contains(usize, usize),
    /// The item at an end.
    End(usize, bool),
    /// A closure: from the front of the one to the back of the other.
    Hand(usize, usize),
    /// A closure: an item leaves its list and comes to the front of the other.
    Take(usize, usize),
    /// A closure: the first of the one, and the last of the other.
    Ends(usize, usize),
    /// A closure: the last two leave, the last but one first.
    PopTwo(usize),
    /// Both lists at one moment.
    Snapshot,
    /// A walk: said to be nothing but what stays, in order.
    Walk(usize),
    Maintain,
    /// Of the end alone: all of a list, in order.
    Contents(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Done,
    Listed,
    Absent,
    Item(usize),
    Items(Vec<usize>),
    Is(bool),
    Ends(Option<usize>, Option<usize>),
    Both([Vec<usize>; 2]),
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Queues([VecDeque<usize>; LISTS]);

impl Queues {
    fn end(&self, list: usize, front: bool) -> Option<usize> {
        if front { self.0[list].front().copied() } else { self.0[list].back().copied() }
    }

    fn pop(&mut self, list: usize, front: bool) -> Option<usize> {
        if front { self.0[list].pop_front() } else { self.0[list].pop_back() }
    }

    fn push(&mut self, list: usize, front: bool, item: usize) {
        if front { self.0[list].push_front(item) } else { self.0[list].push_back(item) }
    }

    fn take(&mut self, list: usize, item: usize) -> bool {
        let place = self.0[list].iter().position(|one| *one == item);
        place.map(|place| self.0[list].remove(place)).is_some()
    }
}

impl State for Queues {
    type Step = (Call, Answer);

    fn take(&mut self, _thread: usize, (call, answer): &Self::Step) -> bool {
        match (call, answer) {
            (&Call::Push(list, front, item), Answer::Done) => {
                let is_free = self.0.iter().all(|list| !list.contains(&item));
                self.push(list, front, item);
                is_free
            }
            (&Call::Push(_, _, item), Answer::Listed) => self.0.iter().any(|list| list.contains(&item)),
            (&Call::Pop(list, front), Answer::Absent) => self.pop(list, front).is_none(),
            (&Call::Pop(list, front), &Answer::Item(item)) => self.pop(list, front) == Some(item),
            (&Call::Remove(list, item), Answer::Done) => self.take(list, item),
            (&Call::Remove(list, item), Answer::Absent) => !self.0[list].contains(&item),
            (&Call::Move(from, to, front, item), Answer::Done) => {
                let was_there = self.take(from, item);
                self.push(to, front, item);
                was_there
            }
            (&Call::Move(from, _, _, item), Answer::Absent) => !self.0[from].contains(&item),
            (&Call::Contains(list, item), &Answer::Is(is)) => self.0[list].contains(&item) == is,
            (&Call::End(list, front), Answer::Absent) => self.end(list, front).is_none(),
            (&Call::End(list, front), &Answer::Item(item)) => self.end(list, front) == Some(item),
            (&Call::Hand(from, _), Answer::Absent) => self.0[from].is_empty(),
            (&Call::Hand(from, to), &Answer::Item(item)) => {
                let first = self.pop(from, true);
                self.push(to, false, item);
                first == Some(item)
            }
            (&Call::Take(from, item), answer) => self.take_by_closure(from, item, answer),
            (&Call::Ends(one, other), &Answer::Ends(first, last)) => {
                (self.end(one, true), self.end(other, false)) == (first, last)
            }
            (&Call::PopTwo(list), Answer::Absent) => self.0[list].len() < 2,
            (&Call::PopTwo(list), Answer::Items(items)) => {
                let last = self.pop(list, false);
                last.is_some() && self.pop(list, false).zip(last).is_some_and(|(one, two)| *items == [one, two])
            }
            (&Call::Contents(list), Answer::Items(items)) => self.0[list] == *items,
            (Call::Snapshot, Answer::Both(both)) => self.0.iter().zip(both).all(|(list, items)| list == items),
            (_, Answer::Nothing) => true,
            _ => false,
        }
    }

    fn only_looks((call, answer): &Self::Step) -> bool {
        matches!(
            answer,
            Answer::Listed | Answer::Absent | Answer::Is(_) | Answer::Ends(..) | Answer::Both(_) | Answer::Nothing
        ) || matches!(call, Call::End(..) | Call::Contents(_))
    }
}

impl Queues {
    fn take_by_closure(&mut self, from: usize, item: usize, answer: &Answer) -> bool {
        match answer {
            Answer::Done => {
                let was_there = self.take(from, item);
                self.push(1 - from, true, item);
                was_there
            }
            Answer::Absent => !self.0[from].contains(&item),
            _ => false,
        }
    }
}

struct Round<'d> {
    lists: [List<'d, InOrder>; LISTS],
    items: Vec<Arc<'d, Thing>>,
    /// Items from this number on stay where they are.
    staying: usize,
}

fn done(outcome: Result<(), NotMoved>) -> Answer {
    match outcome {
        Ok(()) => Answer::Done,
        Err(NotMoved::Absent) => Answer::Absent,
        Err(other) => panic!("{other}"),
    }
}

fn or_absent<R>(outcome: Result<R, Stop>, answer: impl FnOnce(R) -> Answer) -> Answer {
    match outcome {
        Ok(result) => answer(result),
        Err(Stop::Absent) => Answer::Absent,
        Err(other) => panic!("{other}"),
    }
}

impl<'d> Round<'d> {
    fn act(&self, here: &Here<'d>, call: Call) -> Answer {
        match call {
            Call::Push(list, front, item) => {
                let (list, item) = (&self.lists[list], self.items[item].clone());
                match if front { list.push_front(here, item) } else { list.push_back(here, item) } {
                    Ok(()) => Answer::Done,
                    Err(Refused::Listed(_)) => Answer::Listed,
                    Err(other) => panic!("{other}"),
                }
            }
            Call::Pop(list, front) => {
                let list = &self.lists[list];
                match if front { list.pop_front(here) } else { list.pop_back(here) } {
                    Some(thing) => self.ended(here, thing),
                    None => Answer::Absent,
                }
            }
            Call::Remove(list, item) => match self.lists[list].remove(here, &self.items[item]) {
                Some(thing) => {
                    thing.end(here);
                    Answer::Done
                }
                None => Answer::Absent,
            },
            Call::Move(from, to, front, item) => {
                let (from, to, item) = (&self.lists[from], &self.lists[to], &self.items[item]);
                done(if front { from.move_to_front(to, here, item) } else { from.move_to_back(to, here, item) })
            }
            Call::Contains(list, item) => Answer::Is(self.lists[list].contains(here, &self.items[item])),
            Call::End(list, front) => {
                let guard = here.pin();
                let found = if front { self.lists[list].front(&guard) } else { self.lists[list].back(&guard) };
                found.map_or(Answer::Absent, |thing| Answer::Item(thing.number))
            }
            Call::Hand(from, to) => {
                let handed = here.atomically(|a| {
                    let item = a.pop_front(&self.lists[from])?;
                    a.push_back(&self.lists[to], item)?;
                    Ok(item.number)
                });
                or_absent(handed, Answer::Item)
            }
            Call::Take(from, item) => {
                let moved = here.atomically(|a| {
                    let item = a.hold(&self.items[item]);
                    a.take(&self.lists[from], item)?;
                    a.push_front(&self.lists[1 - from], item)
                });
                or_absent(moved, |()| Answer::Done)
            }
            Call::Ends(one, other) => {
                let ends = here.atomically(|a| {
                    let first = a.front(&self.lists[one])?.map(|item| item.number);
                    Ok((first, a.back(&self.lists[other])?.map(|item| item.number)))
                });
                or_absent(ends, |(first, last)| Answer::Ends(first, last))
            }
            Call::PopTwo(list) => {
                let list = &self.lists[list];
                let taken = here.atomically(|a| {
                    let last = a.pop_back(list)?;
                    Ok(vec![a.pop_back(list)?.number, last.number])
                });
                or_absent(taken, Answer::Items)
            }
            Call::Snapshot => Answer::Both(here.snapshot(|snapshot| {
                [0, 1].map(|list| {
                    let mut numbers = Vec::new();
                    snapshot.for_each(&self.lists[list], |thing| numbers.push(thing.number));
                    numbers
                })
            })),
            Call::Walk(list) => {
                let seen = self.contents(here, list);
                let stays: Vec<_> = seen.into_iter().filter(|item| *item >= self.staying).collect();
                let all: Vec<_> = (self.staying..self.items.len()).filter(|_| list == 0).collect();
                assert_eq!(stays, all, "what a reader has seen of that which stays");
                Answer::Nothing
            }
            Call::Maintain => {
                here.maintain();
                Answer::Nothing
            }
            Call::Contents(list) => {
                let contents = self.contents(here, list);
                let mut taken: Vec<_> = std::iter::from_fn(|| self.lists[list].pop_back(here)).collect();
                taken.reverse();
                let numbers: Vec<_> = taken.iter().map(|thing| thing.number).collect();
                assert_eq!(contents, numbers, "forwards and backwards");
                taken.into_iter().for_each(|thing| thing.end(here));
                Answer::Items(contents)
            }
        }
    }

    fn ended(&self, here: &Here<'d>, thing: Arc<'d, Thing>) -> Answer {
        let number = thing.number;
        thing.end(here);
        Answer::Item(number)
    }

    fn contents(&self, here: &Here<'d>, list: usize) -> Vec<usize> {
        self.lists[list].fold(here, Vec::new, |numbers, thing| numbers.push(thing.number))
    }
}

type Plan = Vec<Vec<Call>>;

/// Items of these numbers stand in the first list in the beginning, one after the other; those from `staying` on stay.
fn check(number: u64, items: usize, in_first: &[usize], staying: usize, plan: &Plan) {
    let ended = Plain::new(AtomicUsize::new(0));
    let mut room = Room::<8>::new();
    let domain = Domain::with(Limits { threads: THREADS + 1, lists: 4 }).unwrap();
    let things = (0..items).map(|item| room.thing(&domain, item, item as u32, &ended)).collect();
    let round = Round { lists: [0, 1].map(|_| List::new(&domain).unwrap()), items: things, staying };
    let here = domain.enter().unwrap();
    for item in in_first {
        assert_eq!(round.act(&here, Call::Push(0, false, *item)), Answer::Done);
    }
    let made = play(plan, |_| {
        let (here, round) = (domain.enter().unwrap(), &round);
        move |call: &Call| round.act(&here, *call)
    });
    let last = (0..LISTS).map(|list| {
        let call = Call::Contents(list);
        Event { steps: vec![(call, round.act(&here, call))], began: u64::MAX - 1, ended: u64::MAX }
    });
    let mut events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(Made::event).collect()).collect();
    events.push(last.collect());
    let start = Queues([in_first.iter().copied().collect(), VecDeque::new()]);
    expect_order(number, &events, &start, || told(&made));

    drop(round);
    (0..crate::SETTLED).for_each(|_| _ = here.maintain());
    assert_eq!(ended.load(Ordering::SeqCst), items, "items that were dropped");
}

fn check_queues(number: u64, plan: &Plan) {
    let in_first: Vec<usize> = (0..number as usize % (ITEMS + 1)).collect();
    check(number, ITEMS, &in_first, ITEMS, plan);
}

fn any_call() -> impl Strategy<Value = Call> {
    let (list, item, front) = (|| 0..LISTS, || 0..ITEMS, any::<bool>);
    prop_oneof![
        4 => (list(), front(), item()).prop_map(|(list, front, item)| Call::Push(list, front, item)),
        4 => (list(), front()).prop_map(|(list, front)| Call::Pop(list, front)),
        3 => (list(), item()).prop_map(|(list, item)| Call::Remove(list, item)),
        5 => (list(), list(), front(), item()).prop_map(|(from, to, front, item)| Call::Move(from, to, front, item)),
        2 => (list(), item()).prop_map(|(list, item)| Call::Contains(list, item)),
        1 => (list(), front()).prop_map(|(list, front)| Call::End(list, front)),
        2 => (list(), list()).prop_map(|(from, to)| Call::Hand(from, to)),
        1 => (list(), item()).prop_map(|(from, item)| Call::Take(from, item)),
        1 => (list(), list()).prop_map(|(one, other)| Call::Ends(one, other)),
        1 => list().prop_map(Call::PopTwo),
        2 => Just(Call::Snapshot),
        2 => list().prop_map(Call::Walk),
        1 => Just(Call::Maintain),
    ]
}

fn any_plan(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % (THREADS - 1);
    vec(vec(any_call(), 16 / threads), threads)
}

/// Items that move among others that stay: every second one, all in the first list.
const STAYING: [usize; 7] = [4, 0, 5, 1, 2, 6, 3];
const MOVING: usize = 4;

/// One or two threads go along; the others take items away and put them back into the same list, or move them there.
fn readers(number: u64) -> impl Strategy<Value = Plan> {
    let (item, front) = (|| 0..MOVING, any::<bool>);
    let change = prop_oneof![
        4 => (front(), item()).prop_map(|(front, item)| Call::Move(0, 0, front, item)),
        1 => (front(), item()).prop_map(|(front, item)| Call::Move(0, 1, front, item)),
        2 => (front(), item()).prop_map(|(front, item)| Call::Move(1, 0, front, item)),
        2 => item().prop_map(|item| Call::Remove(0, item)),
        2 => (front(), item()).prop_map(|(front, item)| Call::Push(0, front, item)),
    ];
    let walks = vec(Just(Call::Walk(0)), 2);
    (vec(vec(change, 6), 1 + number as usize % 2), vec(walks, 1 + number as usize / 2 % 2))
        .prop_map(|(changes, walks)| changes.into_iter().chain(walks).collect())
}

fn check_readers(number: u64, plan: &Plan) {
    check(number, STAYING.len(), &STAYING, MOVING, plan);
}

#[test]
fn histories_have_an_order() {
    explore(rounds(300), any_plan, check_queues);
}

#[test]
fn readers_see_what_stays() {
    explore(rounds(300), readers, check_readers);
}

#[test]
fn few_calls_have_an_order() {
    overtake(plans(20), |_| of_few_calls(any_call()), check_queues);
}

/// An item goes to and fro while a snapshot reads: two readings find it in no list, and are equal.
fn an_item_goes_to_and_fro() {
    let (mut room, ended) = (Room::<1>::new(), Plain::default());
    let domain = Domain::with(Limits { threads: 2, lists: 2 }).unwrap();
    let (here, other) = (domain.enter().unwrap(), domain.enter().unwrap());
    let lists = [0, 1].map(|_| List::<InOrder>::new(&domain).unwrap());
    let thing = room.thing(&domain, 0, 0, &ended);
    lists[1].push_back(&other, thing.clone()).unwrap();
    let mut readings = 0;
    let counts = here.snapshot(|snapshot| {
        readings += 1;
        let first = snapshot.count(&lists[0]);
        if readings <= 4 {
            lists[1].move_to_back(&lists[0], &other, &thing).unwrap();
        }
        let second = snapshot.count(&lists[1]);
        if readings <= 4 {
            lists[0].move_to_back(&lists[1], &other, &thing).unwrap();
        }
        (first, second)
    });
    assert_eq!(counts, (0, 1));
    drop((lists, thing));
}

#[test]
fn a_snapshot_is_not_two_equal_readings() {
    an_item_goes_to_and_fro();
}

#[cfg(shuttle)]
mod faults {
    use super::*;

    /// This many rounds, if none shows the fault.
    const MOST: u64 = 30_000;

    #[test]
    fn of_queues() {
        for mutant in [
            "olf: prev is changed outside of the operation",
            "olf: a reused item is linked by one swap",
            "olf: an item that has gone from the end is taken",
        ] {
            sync::mutant::must_be_caught(mutant, || explore(0..MOST, any_plan, check_queues));
        }
    }

    #[test]
    fn of_snapshots() {
        sync::mutant::must_be_caught("olf: a snapshot is two equal readings", an_item_goes_to_and_fro);
    }

    #[test]
    fn of_readers() {
        for mutant in ["olf: no version", "olf: a version is not moved on", "olf: no second look"] {
            sync::mutant::must_be_caught(mutant, || explore(0..MOST, readers, check_readers));
        }
    }
}
