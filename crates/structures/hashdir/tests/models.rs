//! All verbs against each other, two threads, in both spawn orders:
//! `RUSTFLAGS="--cfg loom" cargo test -p hashdir --release --test models`.
#![cfg(any(loom, shuttle))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Plain};

use commit::Decisions;
use epoch::{Epochs, Guard};
use hashdir::{Growth, HashDir, InsertError, Key, LockedName, MARK, free_retired, lock_all, lock_two};
use percpu::Core;
use percpu::model::ModelArena;
use sync::Spin;

#[derive(Clone)]
struct World {
    model: ModelArena,
    decisions: &'static Decisions,
    epochs: &'static Epochs,
    dir: &'static HashDir,
}

/// Names by their hashes, so that a model chooses who shares a bucket.
fn key(name: &'static str, hash: u64) -> Key<'static> {
    Key::with_hash(name.as_bytes(), hash).unwrap()
}

impl World {
    fn new(bucket_count: usize, names: &[(Key<'static>, u64)]) -> World {
        let model = ModelArena::new(2, 256 << 10);
        let (decisions, epochs) = (Decisions::create(model.arena()).unwrap(), Epochs::create(model.arena()).unwrap());
        let core = model.core(0);
        // SAFETY: all lie in one arena, which has one `Epochs`.
        let dir = model.arena().place(unsafe { HashDir::new(&core, decisions, bucket_count) }.unwrap()).unwrap();
        for (key, value) in names {
            dir.lock(&epochs.pin(&core), key, &Spin).insert(key, *value).unwrap();
        }
        drop(core);
        World { model, decisions, epochs, dir }
    }

    fn value(&self, guard: &Guard, key: &Key) -> Option<u64> {
        self.dir.lookup(guard, key).map(|found| found.value())
    }

    /// Removes a name under an operation; whether it existed.
    fn remove(&self, guard: &Guard, key: &Key) -> bool {
        let locked = self.dir.lock(guard, key, &Spin);
        let Some(found) = locked.lookup(key) else { return false };
        let operation = self.decisions.begin_firm(guard.core());
        let prepared = found.prepare_remove(operation.tag());
        operation.commit().unwrap();
        prepared.finish(true);
        true
    }

    fn insert(&self, guard: &Guard, key: &Key, value: u64) -> Result<bool, InsertError> {
        let locked = self.dir.lock(guard, key, &Spin);
        if locked.lookup(key).is_some() {
            return Ok(false);
        }
        locked.insert(key, value).map(|()| true)
    }

    fn rename(&self, guard: &Guard, from: &Key, to: &Key) -> bool {
        let pair = lock_two(guard, (self.dir, from), (self.dir, to), &Spin);
        let Some(found) = pair.first().lookup(from) else { return false };
        let operation = self.decisions.begin_firm(guard.core());
        let value = found.value();
        let gone = found.prepare_remove(operation.tag());
        let there = match pair.second().lookup(to) {
            Some(old) => old.prepare_replace(value, operation.tag()),
            None => pair.second().prepare_insert(to, value, operation.tag()).unwrap(),
        };
        operation.commit().unwrap();
        there.finish(true);
        gone.finish(true);
        true
    }

    /// Changes names at one moment: each to lead to what the next one leads to, or to nothing, or, where it does not exist, to 2.
    fn change_all<const N: usize>(&self, guard: &Guard, keys: [&Key; N], is_turn: bool) {
        let mut room: [LockedName<'_, usize>; N] = std::array::from_fn(|_| LockedName::default());
        room.iter_mut().enumerate().for_each(|(index, place)| place.beside = index);
        let mut names = lock_all(guard, &mut room, |index| (self.dir, keys[*index]), &Spin);
        let mut values = [None; N];
        names.iter().for_each(|name| values[name.beside] = name.value());
        let operation = self.decisions.begin_firm(guard.core());
        for name in names.iter_mut() {
            let index = name.beside;
            match (values[index], values[(index + 1) % N]) {
                (Some(_), Some(next)) if is_turn => name.prepare_replace(next, operation.tag()),
                (Some(_), _) => name.prepare_remove(operation.tag()),
                (None, _) => name.prepare_insert(keys[index], 2, operation.tag()).unwrap(),
            }
        }
        operation.commit().unwrap();
        names.finish(true);
        names.unlock();
    }

    /// link(from, to) as the call layer does it.
    fn link(&self, guard: &Guard, from: &Key, to: &Key) -> bool {
        let locked = self.dir.lock(guard, to, &Spin);
        let Some(source) = self.dir.lookup(guard, from) else { return false };
        let mut operation = self.decisions.begin_revocable(guard.core());
        let prepared = locked.prepare_insert(to, source.value(), operation.tag()).unwrap();
        loop {
            operation.fence_before_check();
            if !source.still_same() {
                operation.abort();
                prepared.finish(false);
                return false;
            }
            if operation.commit().is_ok() {
                prepared.finish(true);
                return true;
            }
            operation = self.decisions.begin_revocable(guard.core());
            prepared.retag(operation.tag());
        }
    }

    fn maintain(&self, core: &Core) {
        self.epochs.maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`.
            assert!(unsafe { free_retired(core, kind, object) });
        });
    }

    /// Runs both roles, each pinned on its own core, and starts `a` first or second.
    fn run<A, B>(&self, a_first: bool, a: A, b: B)
    where
        A: FnOnce(&World, &Guard) + Send + 'static,
        B: FnOnce(&World, &Guard) + Send + 'static,
    {
        let (zero, one) = (self.model.core(0), self.model.core(1));
        let (world_a, world_b) = (self.clone(), self.clone());
        let a = move || a(&world_a, &world_a.epochs.pin(&zero));
        let b = move || b(&world_b, &world_b.epochs.pin(&one));
        sync::model::both(a_first, a, b);
    }
}

fn rename_is_seen_whole(first: bool, target_exists: bool) {
    let (a, b) = (key("a", 0), key("b", 1));
    let names = if target_exists { vec![(a, 1), (b, 2)] } else { vec![(a, 1)] };
    let world = World::new(2, &names);
    world.run(
        first,
        move |world, guard| assert!(world.rename(guard, &a, &b)),
        move |world, guard| {
            let b_seen = world.value(guard, &b);
            let a_seen = world.value(guard, &a);
            assert!(b_seen != Some(1) || a_seen.is_none(), "both names lead to the value");
            if a_seen.is_none() {
                assert_eq!(world.value(guard, &b), Some(1), "neither name leads to the value");
            }
        },
    );
}

/// Two renames onto each other's names: both take both buckets, in one order.
fn crossing_renames(first: bool) {
    let (a, b) = (key("a", 0), key("b", 1));
    let world = World::new(2, &[(a, 1), (b, 2)]);
    world.run(
        first,
        move |world, guard| {
            world.rename(guard, &a, &b);
        },
        move |world, guard| {
            world.rename(guard, &b, &a);
        },
    );
    let core = world.model.core(0);
    let guard = world.epochs.pin(&core);
    let left = [world.value(&guard, &a), world.value(&guard, &b)];
    // a over b, then back: a = 1; b over a, then back: b = 2.
    assert!(left == [Some(1), None] || left == [None, Some(2)], "{left:?}");
}

fn link_against_unlink(first: bool) {
    let (a, b) = (key("a", 0), key("b", 1));
    let world = World::new(2, &[(a, 1)]);
    let linked = Arc::new(AtomicU64::new(0));
    let seen = Arc::new(AtomicU64::new(0));
    let (linked_there, seen_there) = (Arc::clone(&linked), Arc::clone(&seen));
    world.run(
        first,
        move |world, guard| linked_there.store(world.link(guard, &a, &b).into(), Plain::Relaxed),
        move |world, guard| {
            assert!(world.remove(guard, &a));
            seen_there.store(world.value(guard, &b).unwrap_or(0), Plain::Relaxed);
        },
    );
    assert_eq!(linked.load(Plain::Relaxed), seen.load(Plain::Relaxed), "the link came after the unlink of its source");
}

fn one_insertion_wins(first: bool) {
    let name = key("name", 0);
    let world = World::new(1, &[]);
    let wins = Arc::new(AtomicU64::new(0));
    let role = |value| {
        let wins = Arc::clone(&wins);
        move |world: &World, guard: &Guard| {
            if world.insert(guard, &name, value).unwrap() {
                wins.fetch_add(value, Plain::Relaxed);
            }
        }
    };
    world.run(first, role(1), role(2));
    let core = world.model.core(0);
    let guard = world.epochs.pin(&core);
    let wins = wins.load(Plain::Relaxed);
    assert!(wins == 1 || wins == 2, "both inserted");
    assert_eq!(world.value(&guard, &name), Some(wins));
}

/// Removal and insertion around a name of the same chain that stays: it is always found.
fn neighbours_stay_visible(first: bool) {
    let (stays, goes, comes) = (key("stays", 0), key("goes", 0), key("comes", 0));
    let world = World::new(1, &[(stays, 1), (goes, 2)]);
    world.run(
        first,
        move |world, guard| {
            assert!(world.remove(guard, &goes));
            assert_eq!(world.insert(guard, &comes, 3), Ok(true));
        },
        move |world, guard| {
            assert_eq!(world.value(guard, &stays), Some(1));
            let comes_seen = world.value(guard, &comes).is_some();
            assert!(!(comes_seen && world.value(guard, &goes).is_some()), "gone before the other came");
        },
    );
}

fn kill_against_insertion(first: bool) {
    let name = key("name", 1);
    let world = World::new(2, &[]);
    let inserted = Arc::new(AtomicU64::new(0));
    let killed = Arc::new(AtomicU64::new(0));
    let (inserted_there, killed_there) = (Arc::clone(&inserted), Arc::clone(&killed));
    world.run(
        first,
        move |world, guard| {
            if let Ok(killing) = world.dir.begin_kill(guard, &Spin) {
                killing.finish();
                killed_there.store(1, Plain::Relaxed);
            }
        },
        move |world, guard| {
            let outcome = loop {
                match world.insert(guard, &name, 1) {
                    Err(InsertError::Killing) => world.dir.wait_for_kill(&Spin),
                    outcome => break outcome,
                }
            };
            inserted_there.store(u64::from(outcome.is_ok()), Plain::Relaxed);
        },
    );
    let both = inserted.load(Plain::Relaxed) + killed.load(Plain::Relaxed);
    assert_eq!(both, 1, "a name in a dead directory, or a failure of both");
}

/// Who makes a chain of five crowded.
#[cfg(loom)]
const CROWDING: [&str; 1] = ["z"];
#[cfg(shuttle)]
const CROWDING: [&str; 3] = ["x", "y", "z"];

fn growth_hides_nothing(first: bool) {
    let names = ["p", "q", "r", "s", "t"].map(|name| key(name, u64::from(name.as_bytes()[0] - b'p')));
    let mut values: Vec<_> = names.iter().map(|name| (*name, 1)).collect();
    values.extend(CROWDING.map(|name| (key(name, 5), 1)));
    let world = World::new(1, &values);
    let core = world.model.core(0);
    world.maintain(&core);
    drop(core);
    let comes = key("comes", 1);
    world.run(
        first,
        |world, guard| assert_eq!(world.dir.grow(world.epochs, guard, &Spin, 10), Growth::Done),
        move |world, guard| {
            assert_eq!(world.value(guard, &names[0]), Some(1));
            assert!(world.remove(guard, &names[1]));
            assert_eq!(world.value(guard, &names[1]), None);
            assert_eq!(world.insert(guard, &comes, 2), Ok(true));
            assert_eq!(world.value(guard, &comes), Some(2));
        },
    );
    let core = world.model.core(0);
    let guard = world.epochs.pin(&core);
    assert_eq!(world.value(&guard, &names[1]), None);
    assert_eq!(world.value(&guard, &comes), Some(2));
}

/// Two names exchange what they lead to, as many names change: no one sees one changed and the other not.
fn many_are_seen_whole(first: bool) {
    let (a, b) = (key("a", 0), key("b", 1));
    let world = World::new(2, &[(a, 1), (b, 2)]);
    world.run(
        first,
        move |world, guard| world.change_all(guard, [&a, &b], true),
        move |world, guard| {
            // The one that is marked first is looked at first.
            let seen = (world.value(guard, &a), world.value(guard, &b));
            assert!(seen.0 == Some(1) || seen == (Some(2), Some(1)), "one name changed before the other: {seen:?}");
        },
    );
}

/// Many names change while their chains move to a larger table.
fn many_change_beside_growth(first: bool) {
    let names = ["p", "q", "r", "s", "t"].map(|name| key(name, u64::from(name.as_bytes()[0] - b'p')));
    let mut values: Vec<_> = names.iter().map(|name| (*name, 1)).collect();
    values.extend(CROWDING.map(|name| (key(name, 5), 1)));
    let world = World::new(1, &values);
    let core = world.model.core(0);
    world.maintain(&core);
    drop(core);
    let comes = key("comes", 1);
    world.run(
        first,
        |world, guard| assert_eq!(world.dir.grow(world.epochs, guard, &Spin, 10), Growth::Done),
        move |world, guard| world.change_all(guard, [&names[1], &comes], false),
    );
    let core = world.model.core(0);
    let guard = world.epochs.pin(&core);
    assert_eq!((world.value(&guard, &names[1]), world.value(&guard, &comes)), (None, Some(2)), "a change was lost");
}

/// The value of a name that is replaced twice, under two tags of one core: never one whose operation is undecided.
fn replaced_values_are_decided(first: bool) {
    let name = key("name", 0);
    let world = World::new(1, &[(name, 0)]);
    let decided = Arc::new(AtomicU64::new(0));
    let decided_there = Arc::clone(&decided);
    world.run(
        first,
        move |world, guard| {
            let locked = world.dir.lock(guard, &name, &Spin);
            for value in 1..3 {
                let found = locked.lookup(&name).unwrap();
                let operation = world.decisions.begin_firm(guard.core());
                let prepared = found.prepare_replace(value, operation.tag());
                decided_there.store(value, Plain::Relaxed);
                operation.commit().unwrap();
                prepared.finish(true);
            }
        },
        move |world, guard| {
            let seen = world.value(guard, &name).unwrap();
            assert!(seen <= decided.load(Plain::Relaxed), "a value of an undecided operation");
        },
    );
}

/// A name whose value gets the mark while somebody asks for no more than whether it exists: unmarked only before.
fn marks_are_seen_with_values(first: bool) {
    let name = key("name", 0);
    let world = World::new(1, &[(name, 2)]);
    world.run(
        first,
        move |world, guard| {
            let locked = world.dir.lock(guard, &name, &Spin);
            let found = locked.lookup(&name).unwrap();
            let operation = world.decisions.begin_firm(guard.core());
            let prepared = found.prepare_replace(4 | MARK, operation.tag());
            operation.commit().unwrap();
            prepared.finish(true);
        },
        move |world, guard| {
            let seen = world.value(guard, &name).unwrap();
            let marked = world.dir.present(guard, &name).unwrap().may_be_marked();
            assert!(marked || seen & MARK == 0, "a marked value, and then no mark");
        },
    );
}

fn check(at_least: usize, mutants: &[&'static str], preemptions: usize, body: fn(bool)) {
    for first in [false, true] {
        sync::model::explore(preemptions, at_least, move || body(first));
        for mutant in mutants {
            sync::model::must_catch(mutant, preemptions, move || body(first));
        }
    }
}

/// Faults that show only where a processor reorders accesses.
fn reordering(mutants: &[&'static str], preemptions: usize, body: fn(bool)) {
    for (mutant, first) in mutants.iter().flat_map(|mutant| [(mutant, false), (mutant, true)]) {
        sync::model::must_catch_reordering(mutant, preemptions, move || body(first));
    }
}

#[test]
fn rename() {
    check(100, &["hashdir: removal ignores the tag"], 2, |first| rename_is_seen_whole(first, false));
    check(100, &["hashdir: removal ignores the tag"], 2, |first| rename_is_seen_whole(first, true));
    check(10, &["percpu: lock in two steps"], 2, crossing_renames);
}

#[test]
fn many_names() {
    check(100, &["hashdir: many names change one by one"], 2, many_are_seen_whole);
    let fault = "hashdir: chains of many names are not found again";
    check(10, &[fault], 2, many_change_beside_growth);
}

#[test]
fn link() {
    check(100, &["commit: observers do not revoke"], 2, link_against_unlink);
    reordering(&["commit: no fence before the check"], 2, link_against_unlink);
}

#[test]
fn insertion_and_removal() {
    check(20, &["percpu: lock in two steps"], 2, one_insertion_wins);
    check(20, &["hashdir: unlinked entries lose their link"], 2, neighbours_stay_visible);
}

#[test]
fn kill() {
    let mutants = ["hashdir: insertion ignores a kill", "hashdir: kill without bucket locks"];
    check(20, &mutants, 2, kill_against_insertion);
}

#[test]
fn growth() {
    check(20, &["hashdir: moved before it is linked"], 2, growth_hides_nothing);
}

#[test]
fn replacement() {
    check(50, &[], 3, replaced_values_are_decided);
    let faults = ["hashdir: value without recheck", "hashdir: replacement without fence"];
    reordering(&faults, 3, replaced_values_are_decided);
}

#[test]
fn marks() {
    check(20, &["hashdir: mark after the value"], 2, marks_are_seen_with_values);
}
