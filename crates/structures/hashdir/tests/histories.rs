//! Concurrent histories of two directories, one that grows and one that is removed: an order must exist in which plain maps
//! are the same, and nothing is lost.
//!
//! A change of one name or of two is one step, and so are a look-up and a removal of the directory, whether it succeeds or fails. A
//! listing tells each name at a moment of its own; one that it tells twice was away in between.
#![cfg(not(loom))]

use std::collections::BTreeSet;
use std::ops::Range;

use commit::Decisions;
use epoch::{Epochs, Guard};
use hashdir::{FIRST_COOKIE, HashDir, InsertError, Key, MARK, NotEmpty, free_retired, lock_two};
use history::{Event, Made, State, expect_order, explore, overtake, play, rounds, told};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use sync::Spin;

const CORES: usize = 5;
/// Names in each directory; more are in the first from the beginning to the end, and make its chains long.
const NAMES: [&str; 4] = ["a", "b", "c", "a name that is too long to lie in its entry"];
const FILLERS: usize = 20;
const DIRS: usize = 2;

/// A name in a directory: of the one that grows, or of the one that is removed.
type Place = (usize, usize);

#[derive(Clone, Copy, Debug)]
enum Operation {
    LookUp(Place),
    Exists(Place),
    /// Whether the name exists, and its value may have the mark.
    Present(Place),
    Insert(Place, u64),
    Remove(Place),
    Replace(Place, u64),
    /// One name for another, which is replaced: in one operation.
    Rename(Place, Place),
    Exchange(Place, Place),
    /// Inserts a name with the value of another one, whose bucket it does not lock.
    Link(Place, Place),
    List(usize),
    /// Removes the second directory, or changes its mind.
    Kill(bool),
    /// This many buckets.
    Grow(usize),
    Maintain,
    /// The thread's core goes off-line.
    Leave,
}

/// An operation, and after how many allocations there is no memory left for it.
type Attempt = (Operation, Option<u32>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Is(Place, Option<u64>),
    Exists(Place, bool),
    /// The name exists, its value without the mark.
    IsUnmarked(Place),
    Insert(Place, u64),
    Remove(Place),
    Replace(Place, u64),
    Rename(Place, Place),
    Exchange(Place, Place),
    Link(Place, Place),
    IsDead,
    Kill,
    HasNames(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Maps {
    values: [[Option<u64>; NAMES.len()]; DIRS],
    is_dead: bool,
}

impl Maps {
    fn at(&mut self, (dir, name): Place) -> &mut Option<u64> {
        &mut self.values[dir][name]
    }
}

impl State for Maps {
    type Step = Step;

    fn take(&mut self, _thread: usize, step: &Step) -> bool {
        match *step {
            Step::Is(place, value) => *self.at(place) == value,
            Step::Exists(place, exists) => self.at(place).is_some() == exists,
            Step::IsUnmarked(place) => self.at(place).is_some_and(|value| value & MARK == 0),
            Step::Insert(place, value) => (place.0 == 0 || !self.is_dead) && self.at(place).replace(value).is_none(),
            Step::Remove(place) => self.at(place).take().is_some(),
            Step::Replace(place, value) => self.at(place).replace(value).is_some(),
            Step::Rename(from, to) => {
                let value = self.at(from).take();
                *self.at(to) = value;
                value.is_some() && (to.0 == 0 || !self.is_dead)
            }
            Step::Exchange(one, other) => {
                let values = (*self.at(one), *self.at(other));
                (*self.at(one), *self.at(other)) = (values.1, values.0);
                values.0.is_some() && values.1.is_some()
            }
            Step::Link(from, to) => {
                let value = *self.at(from);
                value.is_some() && (to.0 == 0 || !self.is_dead) && {
                    let old = self.at(to);
                    let was = old.is_none();
                    *old = value;
                    was
                }
            }
            Step::IsDead => self.is_dead,
            Step::Kill => {
                let can_die = !self.is_dead && self.values[1].iter().all(Option::is_none);
                self.is_dead = true;
                can_die
            }
            Step::HasNames(dir) => self.values[dir].iter().any(Option::is_some),
        }
    }
}

struct Round<'a> {
    arena: &'a Arena,
    decisions: &'a Decisions,
    epochs: &'a Epochs,
    dirs: [&'a HashDir; DIRS],
    seed: u64,
}

impl<'a> Round<'a> {
    fn new(region: &'a mut HeapRegion, seed: u64) -> Round<'a> {
        let arena = Arena::create(region, ArenaConfig { core_count: CORES, chunk_bytes: 4096 }).unwrap();
        let (decisions, epochs) = (Decisions::create(arena).unwrap(), Epochs::create(arena).unwrap());
        let core = arena.claim_waiting(CORES - 1, OwnerId::new(1).unwrap(), &sync::Spin).unwrap();
        // SAFETY: all lie in one arena, which has one `Epochs`.
        let dir = |_| arena.place(unsafe { HashDir::new(&core, decisions, 1) }.unwrap()).unwrap();
        let round = Round { arena, decisions, epochs, dirs: std::array::from_fn(dir), seed };
        for filler in 0..FILLERS {
            let name = format!("filler {filler}");
            let key = Key::new(name.as_bytes(), seed).unwrap();
            round.dirs[0].lock(&epochs.pin(&core), &key, &Spin).insert(&key, 0).unwrap();
        }
        round
    }

    /// Two of the names have one hash.
    fn key(&self, name: usize) -> Key<'static> {
        let key = Key::new(NAMES[name].as_bytes(), self.seed).unwrap();
        if name < 2 { Key::with_hash(key.name(), self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap() } else { key }
    }

    fn maintain(&self, core: &Core) {
        self.epochs.maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`.
            assert!(unsafe { free_retired(core, kind, object) });
        });
    }

    /// What an insertion that could not be is.
    fn failed(error: InsertError) -> Option<Vec<Step>> {
        match error {
            InsertError::Dead => Some(vec![Step::IsDead]),
            InsertError::OutOfMemory => Some(vec![]),
            InsertError::Killing => None,
        }
    }

    /// Makes an operation; none if it met the removal of a directory, for whose end it has to wait without a lock.
    fn attempt(&self, guard: &Guard, operation: Operation) -> Option<Vec<Step>> {
        let (core, decisions, dirs) = (guard.core(), self.decisions, &self.dirs);
        Some(match operation {
            Operation::LookUp(place @ (dir, name)) => {
                vec![Step::Is(place, dirs[dir].lookup(guard, &self.key(name)).map(|found| found.value()))]
            }
            Operation::Exists(place @ (dir, name)) => {
                vec![Step::Exists(place, dirs[dir].exists(guard, &self.key(name)))]
            }
            Operation::Present(place @ (dir, name)) => match dirs[dir].present(guard, &self.key(name)) {
                Some(present) if !present.may_be_marked() => vec![Step::IsUnmarked(place)],
                present => vec![Step::Exists(place, present.is_some())],
            },
            Operation::Insert(place @ (dir, name), value) => {
                let locked = dirs[dir].lock(guard, &self.key(name), &Spin);
                if locked.lookup(&self.key(name)).is_some() {
                    return Some(vec![Step::Exists(place, true)]);
                }
                match locked.insert(&self.key(name), value) {
                    Ok(()) => vec![Step::Insert(place, value)],
                    Err(error) => return Self::failed(error),
                }
            }
            Operation::Remove(place @ (dir, name)) => {
                let locked = dirs[dir].lock(guard, &self.key(name), &Spin);
                let Some(found) = locked.lookup(&self.key(name)) else { return Some(vec![Step::Exists(place, false)]) };
                found.remove();
                vec![Step::Remove(place)]
            }
            Operation::Replace(place @ (dir, name), value) => {
                let locked = dirs[dir].lock(guard, &self.key(name), &Spin);
                let Some(found) = locked.lookup(&self.key(name)) else { return Some(vec![Step::Exists(place, false)]) };
                found.replace(value);
                vec![Step::Replace(place, value)]
            }
            Operation::Rename(from, to) => {
                let (from_key, to_key) = (self.key(from.1), self.key(to.1));
                let pair = lock_two(guard, (dirs[from.0], &from_key), (dirs[to.0], &to_key), &Spin);
                let Some(found) = pair.first().lookup(&from_key) else { return Some(vec![Step::Exists(from, false)]) };
                if from == to {
                    return Some(vec![Step::Exists(from, true)]);
                }
                let operation = decisions.begin_firm(core);
                let there = match pair.second().lookup(&to_key) {
                    Some(old) => old.prepare_replace(found.value(), operation.tag()),
                    None => match pair.second().prepare_insert(&to_key, found.value(), operation.tag()) {
                        Ok(there) => there,
                        Err(error) => {
                            operation.abort();
                            return Self::failed(error);
                        }
                    },
                };
                let gone = found.prepare_remove(operation.tag());
                operation.commit().unwrap();
                there.finish(true);
                // Dropped, as by a panic after the decision: it ends as it was decided.
                drop(gone);
                vec![Step::Rename(from, to)]
            }
            Operation::Exchange(one, other) => {
                let (one_key, other_key) = (self.key(one.1), self.key(other.1));
                let pair = lock_two(guard, (dirs[one.0], &one_key), (dirs[other.0], &other_key), &Spin);
                let Some(first) = pair.first().lookup(&one_key) else {
                    return Some(vec![Step::Exists(one, false)]);
                };
                let Some(second) = pair.second().lookup(&other_key) else {
                    return Some(vec![Step::Exists(other, false)]);
                };
                if one == other {
                    return Some(vec![Step::Exists(one, true)]);
                }
                let operation = decisions.begin_firm(core);
                let (to_first, to_second) = (second.value(), first.value());
                let changed = [
                    first.prepare_replace(to_first, operation.tag()),
                    second.prepare_replace(to_second, operation.tag()),
                ];
                operation.commit().unwrap();
                changed.into_iter().for_each(|one| one.finish(true));
                vec![Step::Exchange(one, other)]
            }
            Operation::Link(from, to) => {
                let (from_key, to_key) = (self.key(from.1), self.key(to.1));
                let locked = dirs[to.0].lock(guard, &to_key, &Spin);
                let Some(source) = dirs[from.0].lookup(guard, &from_key) else {
                    return Some(vec![Step::Exists(from, false)]);
                };
                if locked.lookup(&to_key).is_some() {
                    return Some(vec![Step::Exists(to, true)]);
                }
                let mut operation = decisions.begin_revocable(core);
                let prepared = match locked.prepare_insert(&to_key, source.value(), operation.tag()) {
                    Ok(prepared) => prepared,
                    Err(error) => {
                        operation.abort();
                        return Self::failed(error);
                    }
                };
                loop {
                    operation.fence_before_check();
                    if !source.still_same() {
                        operation.abort();
                        prepared.finish(false);
                        return Some(vec![]);
                    }
                    if operation.commit().is_ok() {
                        prepared.finish(true);
                        return Some(vec![Step::Link(from, to)]);
                    }
                    operation = decisions.begin_revocable(core);
                    prepared.retag(operation.tag());
                }
            }
            Operation::List(dir) => self.list(guard, dir),
            Operation::Kill(finishes) => match dirs[1].begin_kill(guard, &Spin) {
                Ok(killing) if finishes => {
                    killing.finish();
                    vec![Step::Kill]
                }
                Ok(_) => vec![],
                Err(NotEmpty::HasNames) => vec![Step::HasNames(1)],
                Err(NotEmpty::Dead) => vec![Step::IsDead],
            },
            Operation::Grow(buckets) => {
                dirs[0].grow(self.epochs, guard, &Spin, buckets);
                vec![]
            }
            Operation::Maintain | Operation::Leave => vec![],
        })
    }

    /// What a listing gave of names that may come and go; fillers must all be listed once.
    fn list(&self, guard: &Guard, dir: usize) -> Vec<Step> {
        let (mut steps, mut fillers) = (vec![], vec![]);
        let mut from = Some(FIRST_COOKIE);
        while let Some(cookie) = from {
            let mut left = 3;
            from = self.dirs[dir].list(guard, cookie, |listed| {
                match NAMES.iter().position(|name| name.as_bytes() == listed.name) {
                    Some(name) => steps.push(Step::Is((dir, name), Some(listed.value))),
                    None => fillers.push(listed.name.to_vec()),
                }
                left -= 1;
                left > 0
            });
        }
        let different: BTreeSet<_> = fillers.iter().collect();
        let expected = if dir == 0 { FILLERS } else { 0 };
        assert_eq!((fillers.len(), different.len()), (expected, expected), "names that are there all the time");
        for name in 0..NAMES.len() {
            if !steps.iter().any(|step| matches!(step, Step::Is(place, _) if place.1 == name)) {
                steps.push(Step::Is((dir, name), None));
            }
        }
        steps
    }

    fn act(&self, core: &Core, operation: Operation) -> Vec<Step> {
        loop {
            let guard = self.epochs.pin(core);
            match self.attempt(&guard, operation) {
                Some(steps) => return steps,
                None => self.dirs[1].wait_for_kill(&Spin),
            }
        }
    }
}

fn any_operation(names: Range<usize>) -> impl Strategy<Value = Attempt> {
    let place = || (prop_oneof![3 => Just(0_usize), 2 => Just(1)], names.clone());
    let value = || 2..40_u64;
    let operation = prop_oneof![
        4 => place().prop_map(Operation::LookUp),
        2 => place().prop_map(Operation::Exists),
        2 => place().prop_map(Operation::Present),
        6 => (place(), value()).prop_map(|(place, value)| Operation::Insert(place, value)),
        5 => place().prop_map(Operation::Remove),
        3 => (place(), value()).prop_map(|(place, value)| Operation::Replace(place, value)),
        4 => (place(), place()).prop_map(|(from, to)| Operation::Rename(from, to)),
        2 => (place(), place()).prop_map(|(one, other)| Operation::Exchange(one, other)),
        3 => (place(), place()).prop_map(|(from, to)| Operation::Link(from, to)),
        2 => (0..DIRS).prop_map(Operation::List),
        3 => proptest::bool::weighted(0.7).prop_map(Operation::Kill),
        4 => prop_oneof![Just(1_usize), Just(3), Just(100)].prop_map(Operation::Grow),
        4 => Just(Operation::Maintain),
        1 => Just(Operation::Leave),
    ];
    (operation, proptest::option::weighted(0.05, 0..2_u32))
}

type Plan = Vec<Vec<Attempt>>;

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 3;
    // Many names, or two in buckets of their own that all is about.
    let names = if (number / 3).is_multiple_of(2) { 0..NAMES.len() } else { 1..3 };
    vec(vec(any_operation(names), 24 / threads), threads)
}

/// The steps of operations; those of a listing each at a moment of its own, but for one name in their order, and with the
/// name away in between.
fn events(made: &[Vec<Made<Attempt, Vec<Step>>>]) -> Vec<Vec<Event<Step>>> {
    let event = |made: &Made<Attempt, _>, steps| Event { steps, began: made.began, ended: made.ended };
    let mut events: Vec<Vec<_>> = vec![vec![]; made.len()];
    for (thread, made) in made.iter().enumerate().flat_map(|(thread, made)| made.iter().map(move |one| (thread, one))) {
        let Operation::List(dir) = made.operation.0 else {
            events[thread].push(event(made, made.outcome.clone()));
            continue;
        };
        for name in 0..NAMES.len() {
            let told = made.outcome.iter().filter(|step| matches!(step, Step::Is(place, _) if place.1 == name));
            let away = Step::Is((dir, name), None);
            let steps = told.flat_map(|told| [away.clone(), told.clone()]).skip(1).collect();
            events.push(vec![event(made, steps)]);
        }
    }
    events
}

fn check(number: u64, plan: &Plan) {
    let mut region = HeapRegion::new(2 << 20).unwrap();
    let round = &Round::new(&mut region, number);
    let owner = OwnerId::new(1).unwrap();
    let made = play(plan, |thread| {
        let mut core = None;
        move |(operation, memory): &Attempt| {
            if matches!(operation, Operation::Leave) {
                core = None;
            }
            let core = core.get_or_insert_with(|| round.arena.claim_waiting(thread, owner, &sync::Spin).unwrap());
            core.fail_allocations_after(*memory);
            let steps = round.act(core, *operation);
            core.fail_allocations_after(None);
            if matches!(operation, Operation::Maintain) {
                round.maintain(core);
                round.arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| round.maintain(idle));
            }
            steps
        }
    });
    let mut events = events(&made);
    let core = round.arena.claim_waiting(CORES - 1, owner, &sync::Spin).unwrap();
    let last = |place| match round.act(&core, Operation::LookUp(place)).as_slice() {
        [step] => Event { steps: vec![step.clone()], began: u64::MAX - 1, ended: u64::MAX },
        steps => panic!("one step: {steps:?}"),
    };
    events.push((0..DIRS).flat_map(|dir| (0..NAMES.len()).map(move |name| (dir, name))).map(last).collect());
    expect_order(number, &events, &Maps::default(), || told(&made));
    // SAFETY: all threads have ended.
    round.dirs.iter().for_each(|dir| unsafe { dir.destroy(&core, |_| ()) });
    for _ in 0..4 {
        round.maintain(&core);
        round.arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| round.maintain(idle));
    }
    assert_eq!(round.arena.live_bytes(), 0, "entries or tables were lost");
}

#[test]
fn names_have_an_order() {
    explore(rounds(250), plans, check);
}

#[test]
fn so_it_is_where_a_thread_is_overtaken_at_any_access() {
    overtake(history::plans(10), plans, check);
}

/// A test that cannot fail proves nothing. (A value without its recheck is left to the models: a reader must be stopped between
/// two loads, and a writer between two stores after that.)
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for fault in [
        "hashdir: insertion ignores a kill",
        "hashdir: unlinked entries lose their link",
        "hashdir: kill without bucket locks",
        "hashdir: mark after the value",
        "hashdir: growth does not wait for readers",
        "hashdir: moved before it is linked",
        "hashdir: what is dropped is undone",
        "percpu: lock in two steps",
    ] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }
    let (one, other) = ((0, 0), (1, 2));
    let insert = |place, value| (Operation::Insert(place, value), None);
    let rename = |from, to| (Operation::Rename(from, to), None);
    let look = |place| (Operation::LookUp(place), None);
    let found = |fault, plan| sync::mutant::must_be_caught(fault, || history::repeat(20_000, plan, check));
    // The old name after the new one.
    let plan = vec![vec![insert(one, 2), rename(one, other)], vec![look(other), look(one)]];
    found("hashdir: removal ignores the tag", plan);
    // A link of what is gone, after its name was seen to be absent.
    let link = (Operation::Link(one, other), None);
    let plan = vec![vec![insert(one, 2), link], vec![(Operation::Remove(one), None), look(other)]];
    found("commit: observers do not revoke", plan);
}
