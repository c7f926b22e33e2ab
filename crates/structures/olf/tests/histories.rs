//! Concurrent histories of lists in order: an order of the operations must exist in which plain sets return the same, and
//! each item is dropped once, when nothing is left that leads to it.
#![cfg(not(loom))]

#[path = "lists/histories.rs"]
mod lists;
mod shared;
#[path = "lists/sleeps.rs"]
mod sleeps;

use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicUsize, Ordering};

use history::{Event, Made, State, expect_order, explore, of_few_calls, overtake, plans, play, rounds, told};
use olf::{Arc, Domain, Limits, Map, NotMoved, Refused, Sorted, Stop};
use proptest::collection::vec;
use proptest::prelude::*;
use shared::{ByKey, Room, Tested, Thing};

const KEYS: usize = 3;
/// Two of each key.
const ITEMS: usize = 2 * KEYS;
const LISTS: usize = 2;
const THREADS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Insert(usize, usize),
    Remove(usize, u32),
    Contains(usize, u32),
    Move(usize, usize, u32),
    /// Of the first list and of the second.
    Swap(u32, u32),
    /// A closure that removes and inserts.
    AtomicMove(usize, usize, u32),
    /// A closure that looks into both lists.
    AtomicLook(u32),
    /// A closure that takes an item out of the one list, or else of the other.
    AtomicTake(u32),
    /// Both lists at one moment.
    Snapshot,
    /// Both lists, one after the other.
    Contents(usize),
    Maintain,
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Inserted,
    Exists,
    Listed,
    Removed(usize),
    Absent,
    Is(bool),
    Are(bool, bool),
    Moved,
    Items(Vec<usize>),
    Both([Vec<usize>; LISTS]),
    Nothing,
}

/// In which list each item stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Places([Option<usize>; ITEMS]);

fn key(item: usize) -> u32 {
    (item % KEYS) as u32
}

impl Places {
    fn find(&self, list: usize, wanted: u32) -> Option<usize> {
        (0..ITEMS).find(|item| key(*item) == wanted && self.0[*item] == Some(list))
    }
}

impl State for Places {
    type Step = (Call, Answer);

    fn take(&mut self, _thread: usize, (call, answer): &Self::Step) -> bool {
        match (call, answer) {
            (&Call::Insert(list, item), Answer::Inserted) => {
                let can = self.0[item].is_none() && self.find(list, key(item)).is_none();
                self.0[item] = Some(list);
                can
            }
            (&Call::Insert(list, item), Answer::Exists) => self.find(list, key(item)).is_some(),
            (&Call::Insert(_, item), Answer::Listed) => self.0[item].is_some(),
            (&Call::Remove(list, key), Answer::Absent) => self.find(list, key).is_none(),
            (&Call::Remove(list, key), &Answer::Removed(item)) => {
                let can = self.find(list, key) == Some(item);
                self.0[item] = None;
                can
            }
            (&Call::Contains(list, key), &Answer::Is(is)) => self.find(list, key).is_some() == is,
            (&Call::Move(from, _, key), Answer::Absent) => self.find(from, key).is_none(),
            (&Call::Move(from, to, key), Answer::Exists) => {
                self.find(from, key).is_some() && self.find(to, key).is_some()
            }
            (&Call::Move(from, to, key), Answer::Moved) => match (self.find(from, key), self.find(to, key)) {
                (Some(item), None) => {
                    self.0[item] = Some(to);
                    true
                }
                _ => false,
            },
            (&Call::AtomicMove(from, to, key), _) => self.take(_thread, &(Call::Move(from, to, key), answer.clone())),
            (&Call::Swap(one, two), answer) => match (self.find(0, one), self.find(1, two), answer) {
                (Some(mine), Some(its), Answer::Moved) => {
                    (self.0[mine], self.0[its]) = (Some(1), Some(0));
                    one == two || (self.find(1, two).is_none() && self.find(0, one).is_none())
                }
                (Some(_), Some(_), Answer::Exists) => {
                    one != two && (self.find(1, one).is_some() || self.find(0, two).is_some())
                }
                (mine, its, Answer::Absent) => mine.is_none() || its.is_none(),
                _ => false,
            },
            (&Call::AtomicLook(key), &Answer::Are(one, two)) => {
                (self.find(0, key).is_some(), self.find(1, key).is_some()) == (one, two)
            }
            (&Call::AtomicTake(key), Answer::Absent) => [0, 1].iter().all(|list| self.find(*list, key).is_none()),
            (&Call::AtomicTake(key), &Answer::Removed(item)) => {
                let can = self.find(0, key).or(self.find(1, key)) == Some(item);
                self.0[item] = None;
                can
            }
            (Call::Snapshot, Answer::Both(both)) => (0..LISTS).all(|list| {
                let is_here = |item: &usize| self.0[*item] == Some(list);
                let mut items = both[list].clone();
                items.sort_unstable();
                items == (0..ITEMS).filter(is_here).collect::<Vec<_>>()
            }),
            (&Call::Contents(list), Answer::Items(items)) => {
                (0..ITEMS).filter(|item| self.0[*item] == Some(list)).all(|item| items.contains(&item))
                    && items.iter().all(|item| self.0[*item] == Some(list))
            }
            (_, Answer::Nothing) => true,
            _ => false,
        }
    }

    fn only_looks((_, answer): &Self::Step) -> bool {
        !matches!(answer, Answer::Inserted | Answer::Removed(_) | Answer::Moved)
    }
}

struct Round<'d, A, B> {
    one: A,
    two: B,
    items: Vec<Arc<'d, Thing>>,
}

impl<'d, A: Tested<'d>, B: Tested<'d>> Round<'d, A, B> {
    fn act(&self, here: &olf::Here<'d>, call: Call) -> Answer {
        let (one, two) = (&self.one, &self.two);
        match call {
            Call::Insert(list, item) => {
                let item = self.items[item].clone();
                match if list == 0 { one.put(here, item) } else { two.put(here, item) } {
                    Ok(()) => Answer::Inserted,
                    Err(Refused::Exists(_)) => Answer::Exists,
                    Err(Refused::Listed(_)) => Answer::Listed,
                }
            }
            Call::Remove(list, key) => match if list == 0 { one.take(here, key) } else { two.take(here, key) } {
                Some(thing) => {
                    let number = thing.number;
                    thing.end(here);
                    Answer::Removed(number)
                }
                None => Answer::Absent,
            },
            Call::Contains(list, key) => Answer::Is(if list == 0 { one.has(here, key) } else { two.has(here, key) }),
            Call::Move(from, _, key) => {
                moved(if from == 0 { one.hand(two, here, key) } else { two.hand(one, here, key) })
            }
            Call::Swap(mine, its) => moved(one.exchange(mine, two, its, here)),
            Call::AtomicMove(from, _, key) => {
                let outcome = here.atomically(|a| {
                    if from == 0 {
                        let item = a.remove(one, &key)?;
                        a.insert(two, item)
                    } else {
                        let item = a.remove(two, &key)?;
                        a.insert(one, item)
                    }
                });
                match outcome {
                    Ok(()) => Answer::Moved,
                    Err(Stop::Absent) => Answer::Absent,
                    Err(Stop::Exists) => Answer::Exists,
                    Err(other) => panic!("{other}"),
                }
            }
            Call::AtomicLook(key) => {
                let look = here.atomically(|a| Ok::<_, Stop>((a.contains(one, &key)?, a.contains(two, &key)?)));
                let (one, two) = look.unwrap();
                Answer::Are(one, two)
            }
            Call::AtomicTake(key) => {
                let taken = here.atomically(|a| match a.remove(one, &key) {
                    Err(Stop::Absent) => a.remove(two, &key).map(|item| item.number),
                    other => other.map(|item| item.number),
                });
                match taken {
                    Ok(item) => Answer::Removed(item),
                    Err(Stop::Absent) => Answer::Absent,
                    Err(other) => panic!("{other}"),
                }
            }
            Call::Snapshot => Answer::Both(here.snapshot(|snapshot| {
                let mut both = [Vec::new(), Vec::new()];
                snapshot.for_each(one, |thing| both[0].push(thing.number));
                snapshot.for_each(two, |thing| both[1].push(thing.number));
                both
            })),
            // Only in the end it is what was there at one moment.
            Call::Contents(list) => Answer::Items(if list == 0 { one.numbers(here) } else { two.numbers(here) }),
            Call::Maintain => {
                here.maintain();
                one.grow(here);
                two.grow(here);
                Answer::Nothing
            }
        }
    }
}

fn moved(outcome: Result<(), NotMoved>) -> Answer {
    match outcome {
        Ok(()) => Answer::Moved,
        Err(NotMoved::Absent) => Answer::Absent,
        Err(NotMoved::Exists) => Answer::Exists,
        Err(other) => panic!("{other}"),
    }
}

type Plan = Vec<Vec<Call>>;

/// Items 0 to this number stand in the first list in the beginning. Of three rounds one is of two lists in order, one
/// of such a list and a map, one of two maps.
fn check(number: u64, in_first: usize, plan: &Plan) {
    match number % 3 {
        0 => check_of!(Sorted, Sorted, number, in_first, plan),
        1 => check_of!(Sorted, Map, number, in_first, plan),
        _ => check_of!(Map, Map, number, in_first, plan),
    }
}

/// Of these two types, with the lifetime of their domain.
macro_rules! check_of {
    ($one:ident, $two:ident, $number:expr, $in_first:expr, $plan:expr) => {{
        let ended = Plain::new(AtomicUsize::new(0));
        let mut room = Room::<ITEMS>::new();
        let domain = Domain::with(Limits { threads: THREADS + 1, lists: 4 }).unwrap();
        let items = (0..ITEMS).map(|item| room.thing(&domain, item, key(item), &ended)).collect();
        let round = Round { one: $one::make(&domain), two: $two::make(&domain), items };
        let here = domain.enter().unwrap();
        for item in 0..$in_first {
            assert_eq!(round.act(&here, Call::Insert(0, item)), Answer::Inserted);
        }
        let made = play($plan, |_| {
            let (here, round) = (domain.enter().unwrap(), &round);
            move |call: &Call| round.act(&here, *call)
        });
        let last = (0..LISTS).map(|list| {
            let call = Call::Contents(list);
            Event { steps: vec![(call, round.act(&here, call))], began: u64::MAX - 1, ended: u64::MAX }
        });
        explained($number, $in_first, &made, last.collect());

        drop(round);
        (0..SETTLED).for_each(|_| _ = here.maintain());
        assert_eq!(ended.load(Ordering::SeqCst), ITEMS, "items that were dropped");
    }};
}
use check_of;

fn explained(number: u64, in_first: usize, made: &[Vec<Made<Call, Answer>>], last: Vec<Event<(Call, Answer)>>) {
    let mut events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(Made::event).collect()).collect();
    events.push(last);
    let start = std::array::from_fn(|item| (item < in_first).then_some(0));
    expect_order(number, &events, &Places(start), || told(made));
}

fn any_call() -> impl Strategy<Value = Call> {
    let (list, item, key) = (|| 0..LISTS, || 0..ITEMS, || 0..KEYS as u32);
    prop_oneof![
        4 => (list(), item()).prop_map(|(list, item)| Call::Insert(list, item)),
        4 => (list(), key()).prop_map(|(list, key)| Call::Remove(list, key)),
        3 => (list(), key()).prop_map(|(list, key)| Call::Contains(list, key)),
        5 => (list(), key()).prop_map(|(from, key)| Call::Move(from, 1 - from, key)),
        1 => (key(), key()).prop_map(|(one, two)| Call::Swap(one, two)),
        2 => (list(), key()).prop_map(|(from, key)| Call::AtomicMove(from, 1 - from, key)),
        1 => key().prop_map(Call::AtomicLook),
        1 => key().prop_map(Call::AtomicTake),
        2 => Just(Call::Snapshot),
        1 => Just(Call::Maintain),
    ]
}

fn any_plan(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % (THREADS - 1);
    vec(vec(any_call(), 16 / threads), threads)
}

/// Neighbours of one list are taken out and put back into the same list.
fn neighbours(number: u64) -> impl Strategy<Value = Plan> {
    let call = (0..KEYS, proptest::bool::weighted(0.5))
        .prop_map(|(item, comes)| if comes { Call::Insert(0, item) } else { Call::Remove(0, item as u32) });
    vec(vec(call, 4), 2 + number as usize % (THREADS - 1))
}

#[test]
fn histories_have_an_order() {
    explore(rounds(300), any_plan, |number, plan| check(number, number as usize % (KEYS + 1), plan));
}

#[test]
fn neighbours_come_back_into_the_same_list() {
    explore(rounds(300), neighbours, |number, plan| check(number, KEYS, plan));
}

/// Calls of maintenance after which nothing is left to do: in each of a few rounds who has reported is waited for, for eight of them
/// (`rounds`; two where a scheduler chooses).
const SETTLED: u32 = if cfg!(shuttle) { 12 } else { 48 };

#[test]
fn few_calls_have_an_order() {
    overtake(plans(20), |_| of_few_calls(any_call()), |number, plan| check(number, number as usize % (KEYS + 1), plan));
}

/// The number of a list that was dropped belongs to no other one as long as a guard of then lives.
fn a_number_waits_for_guards() {
    let domain = Domain::with(Limits { threads: 2, lists: 1 }).unwrap();
    let (here, other) = (domain.enter().unwrap(), domain.enter().unwrap());
    drop(Sorted::<ByKey>::new(&domain).unwrap());
    let guard = other.pin();
    (0..SETTLED).for_each(|_| _ = here.maintain());
    assert!(Sorted::<ByKey>::new(&domain).is_err(), "a reader may know the number");
    drop(guard);
    (0..SETTLED).for_each(|_| _ = here.maintain());
    assert!(Sorted::<ByKey>::new(&domain).unwrap().is_empty(&here));
}

#[test]
fn numbers_are_reused_late() {
    a_number_waits_for_guards();
}

#[cfg(shuttle)]
mod faults {
    use super::*;

    /// This many rounds, if none shows the fault.
    const MOST: u64 = 30_000;

    fn must_show(mutant: &'static str) {
        sync::mutant::must_be_caught(mutant, || {
            explore(0..MOST, any_plan, |number, plan| check(number, number as usize % (KEYS + 1), plan));
        });
    }

    fn neighbours_must_show(mutant: &'static str) {
        sync::mutant::must_be_caught(mutant, || explore(0..MOST, neighbours, |number, plan| check(number, KEYS, plan)));
    }

    #[test]
    fn in_any_plan() {
        must_show("olf: the list is not checked");
        must_show("olf: another list is taken as the end");
        must_show("olf: links without their list");
        must_show("olf: a mark is taken as new");
        must_show("olf: an operation ends without its tag");
        must_show("olf: marks are replaced without revoking");
        must_show("olf: buckets are there before their sentinels");
        must_show("olf: an answer is not confirmed");
        must_show("olf: what is only asked is not noted");
        must_show("olf: errors are not confirmed");
    }

    #[test]
    fn of_numbers() {
        sync::mutant::must_be_caught("olf: a number is reused at once", a_number_waits_for_guards);
    }

    #[test]
    fn among_neighbours() {
        neighbours_must_show("olf: a reused item is linked by one swap");
    }
}
