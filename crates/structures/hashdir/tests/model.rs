//! A directory against `BTreeMap`, with colliding hashes, growth in the middle, allocation failures, and cookies kept
//! over changes; and what a kill and the death of a process leave.
#![cfg(not(loom))]

use std::collections::{BTreeMap, BTreeSet};

use commit::Decisions;
use epoch::Epochs;
use hashdir::{
    FIRST_COOKIE, Growth, HashDir, InsertError, Key, LockedName, NotEmpty, free_retired, lock_all, lock_two,
};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::prelude::*;
use sync::Spin;

struct World<'a> {
    arena: &'a Arena,
    decisions: &'a Decisions,
    epochs: &'a Epochs,
}

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

fn with_world(test: impl FnOnce(&World)) {
    let mut region = HeapRegion::new(8 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 4, chunk_bytes: 4096 }).unwrap();
    let (decisions, epochs) = (Decisions::create(arena).unwrap(), Epochs::create(arena).unwrap());
    test(&World { arena, decisions, epochs });
}

impl World<'_> {
    fn dir(&self, core: &Core, bucket_count: usize) -> &HashDir {
        // SAFETY: all lie in one arena, which has one `Epochs`.
        let dir = unsafe { HashDir::new(core, self.decisions, bucket_count) }.unwrap();
        self.arena.place(dir).unwrap()
    }

    fn maintain(&self, core: &Core) {
        for _ in 0..4 {
            self.epochs.maintain(core, |core, kind, object| {
                // SAFETY: called by the maintenance of the one `Epochs`.
                assert!(unsafe { free_retired(core, kind, object) });
            });
        }
    }

    fn grow(&self, core: &Core, dir: &HashDir, budget: usize) -> Growth {
        dir.grow(self.epochs, &self.epochs.pin(core), &Spin, budget)
    }

    fn destroy(&self, core: &Core, dir: &HashDir) {
        // SAFETY: the test is over.
        unsafe { dir.destroy(core, |_| {}) };
        self.maintain(core);
        assert_eq!(self.arena.live_bytes(), 0, "memory was lost");
    }
}

fn key(name: &str) -> Key<'_> {
    Key::new(name.as_bytes(), 42).unwrap()
}

fn names_of(world: &World, core: &Core, dir: &HashDir) -> BTreeMap<Vec<u8>, u64> {
    let mut names = BTreeMap::new();
    let end = dir.list(&world.epochs.pin(core), FIRST_COOKIE, |listed| {
        assert!(names.insert(listed.name.to_vec(), listed.value).is_none(), "listed twice");
        true
    });
    assert_eq!(end, None);
    names
}

#[test]
fn names_of_all_lengths_are_kept() {
    assert!(Key::new(b"", 1).is_none() && Key::new(&[b'x'; 256], 1).is_none());
    with_world(|world| {
        let core = world.arena.claim(0, owner()).unwrap();
        let dir = world.dir(&core, 4);
        let names: Vec<String> = (1..=255).map(|length| "n".repeat(length)).collect();
        let guard = world.epochs.pin(&core);
        for name in &names {
            dir.lock(&guard, &key(name), &Spin).insert(&key(name), name.len() as u64).unwrap();
        }
        for name in &names {
            assert_eq!(dir.lookup(&guard, &key(name)).unwrap().value(), name.len() as u64);
        }
        assert_eq!(names_of(world, &core, dir).len(), 255);
        drop(guard);
        world.destroy(&core, dir);
    });
}

#[test]
fn a_large_directory_grows_and_loses_nothing() {
    with_world(|world| {
        let core = world.arena.claim(0, owner()).unwrap();
        let dir = world.dir(&core, 1);
        let mut finished = 0;
        for number in 0..5_000_u64 {
            let name = format!("file-{number}");
            dir.lock(&world.epochs.pin(&core), &key(&name), &Spin).insert(&key(&name), number).unwrap();
            if number % 16 == 0 {
                world.maintain(&core);
                finished += u32::from(world.grow(&core, dir, 64) == Growth::Done);
            }
        }
        assert!(finished >= 5, "{finished}");
        let guard = world.epochs.pin(&core);
        for number in 0..5_000_u64 {
            assert_eq!(dir.lookup(&guard, &key(&format!("file-{number}"))).unwrap().value(), number);
        }
        drop(guard);
        assert_eq!(names_of(world, &core, dir).len(), 5_000);
        world.destroy(&core, dir);
    });
}

#[test]
fn a_killed_directory_is_dead_for_ever_and_a_given_up_kill_leaves_it_alive() {
    with_world(|world| {
        let core = world.arena.claim(0, owner()).unwrap();
        let dir = world.dir(&core, 4);
        let guard = world.epochs.pin(&core);
        let insert = |name: &str| dir.lock(&guard, &key(name), &Spin).insert(&key(name), 1);
        insert("a").unwrap();
        assert!(!dir.is_empty(&guard));
        assert_eq!(dir.begin_kill(&guard, &Spin).err(), Some(NotEmpty::HasNames));
        insert("b").unwrap();
        for name in ["a", "b"] {
            let locked = dir.lock(&guard, &key(name), &Spin);
            locked.lookup(&key(name)).unwrap().remove();
        }
        let killing = dir.begin_kill(&guard, &Spin).unwrap();
        assert_eq!(insert("c"), Err(InsertError::Killing));
        drop(killing);
        insert("c").unwrap();
        let locked = dir.lock(&guard, &key("c"), &Spin);
        locked.lookup(&key("c")).unwrap().remove();
        drop(locked);
        dir.begin_kill(&guard, &Spin).unwrap().finish();
        assert!(dir.is_dead());
        assert_eq!(insert("d"), Err(InsertError::Dead));
        assert_eq!(dir.begin_kill(&guard, &Spin).err(), Some(NotEmpty::Dead));
        drop(guard);
        world.destroy(&core, dir);
    });
}

#[test]
fn checks_of_two_names_notice_changes_in_between() {
    with_world(|world| {
        let core = world.arena.claim(0, owner()).unwrap();
        let dir = world.dir(&core, 4);
        let guard = world.epochs.pin(&core);
        dir.lock(&guard, &key("a"), &Spin).insert(&key("a"), 1).unwrap();
        let found = dir.lookup(&guard, &key("a")).unwrap();
        assert!(found.still_present() && found.still_same());
        let locked = dir.lock(&guard, &key("a"), &Spin);
        locked.lookup(&key("a")).unwrap().replace(2);
        locked.lookup(&key("a")).unwrap().replace(1);
        assert!(found.still_present() && !found.still_same(), "1, 2, 1 is not the same");
        locked.lookup(&key("a")).unwrap().remove();
        locked.insert(&key("a"), 1).unwrap();
        assert!(!found.still_present(), "removed and inserted again is another entry");
    });
}

#[test]
#[should_panic(expected = "a name is removed once")]
fn a_name_that_two_look_ups_found_is_removed_once() {
    with_world(|world| {
        let core = world.arena.claim(0, owner()).unwrap();
        let guard = world.epochs.pin(&core);
        let dir = world.dir(&core, 2);
        let locked = dir.lock(&guard, &key("a"), &Spin);
        locked.insert(&key("a"), 1).unwrap();
        let (first, second) = (locked.lookup(&key("a")).unwrap(), locked.lookup(&key("a")).unwrap());
        first.remove();
        second.remove();
    });
}

#[test]
fn marks_that_were_forgotten_do_not_end_what_is_locked_later() {
    with_world(|world| {
        let core = world.arena.claim(0, owner()).unwrap();
        let guard = world.epochs.pin(&core);
        let dir = world.dir(&core, 2);
        let keys = [(b"a", 0), (b"b", 2), (b"c", 1)].map(|(name, hash)| Key::with_hash(name, hash).unwrap());
        dir.lock(&guard, &keys[2], &Spin).insert(&keys[2], 1).unwrap();
        let mut room: [LockedName<'_, usize>; 2] = std::array::from_fn(|_| LockedName::default());
        room[1].beside = 1;
        let name = |index: &usize| (dir, &keys[*index]);
        let operation = world.decisions.begin_firm(&core);
        let mut names = lock_all(&guard, &mut room, name, &Spin);
        for place in names.iter_mut() {
            let key = &keys[place.beside];
            place.prepare_insert(key, 1, operation.tag()).unwrap();
        }
        operation.abort();
        std::mem::forget(names);
        room.iter_mut().for_each(|place| place.beside = 2);
        drop(lock_all(&guard, &mut room, name, &Spin));
        assert!(dir.exists(&guard, &keys[2]), "another's mark ended it");
    });
}

/// Debug builds alone look: in others it is the promise to `HashDir::new`.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a bucket is asked for its own names")]
fn a_bucket_takes_no_name_of_another() {
    with_world(|world| {
        let core = world.arena.claim(0, owner()).unwrap();
        let guard = world.epochs.pin(&core);
        let dir = world.dir(&core, 2);
        let [zero, one] = [0, 1].map(|hash| Key::with_hash(b"a", hash).unwrap());
        let _ = dir.lock(&guard, &zero, &Spin).insert(&one, 1);
    });
}

#[test]
fn what_a_dead_process_left_is_completed_or_undone() {
    for committed in [false, true] {
        with_world(|world| {
            let core = world.arena.claim(0, owner()).unwrap();
            let dead: &Core = Box::leak(Box::new(world.arena.claim(1, owner()).unwrap()));
            let dir = world.dir(&core, 2);
            for (name, value) in [("a", 1), ("b", 2), ("other", 3)] {
                dir.lock(&world.epochs.pin(&core), &key(name), &Spin).insert(&key(name), value).unwrap();
            }
            {
                // rename("a", "b") and the insertion of "c" under one tag, stopped before or after the decision.
                let guard = Box::leak(Box::new(world.epochs.pin(dead)));
                let keys = ["a", "b", "c"].map(key);
                let mut room: [LockedName<'_, usize>; 3] = std::array::from_fn(|_| LockedName::default());
                room.iter_mut().enumerate().for_each(|(index, place)| place.beside = index);
                let mut names = lock_all(guard, Box::leak(Box::new(room)), |index| (dir, &keys[*index]), &Spin);
                let operation = world.decisions.begin_firm(dead);
                for place in names.iter_mut() {
                    match place.beside {
                        0 => place.prepare_remove(operation.tag()),
                        1 => place.prepare_replace(1, operation.tag()),
                        _ => place.prepare_insert(&keys[2], 4, operation.tag()).unwrap(),
                    }
                }
                std::mem::forget(names);
                if committed {
                    operation.commit().unwrap();
                }
            }
            // SAFETY: the leaked handles are never used again.
            unsafe {
                let heir = world.arena.take_over(1, owner(), OwnerId::new(2).unwrap()).unwrap();
                let last = world.decisions.last(&heir);
                world.epochs.unpin_taken_over(&heir);
                dir.repair_taken_over(world.epochs, &world.epochs.pin(&heir), last, false);
                world.maintain(&heir);
            }
            let expected =
                if committed { [("b", 1), ("c", 4), ("other", 3)] } else { [("a", 1), ("b", 2), ("other", 3)] };
            let names = names_of(world, &core, dir);
            assert_eq!(names, expected.iter().map(|(name, value)| (name.as_bytes().to_vec(), *value)).collect());
            for name in ["a", "b", "c"] {
                drop(dir.lock(&world.epochs.pin(&core), &key(name), &Spin)); // all locks are free
            }
            world.destroy(&core, dir);
        });
    }
}

#[test]
fn a_panic_after_the_decision_undoes_nothing_that_others_have_seen() {
    for committed in [false, true] {
        with_world(|world| {
            let core = world.arena.claim(0, owner()).unwrap();
            let dir = world.dir(&core, 2);
            dir.lock(&world.epochs.pin(&core), &key("a"), &Spin).insert(&key("a"), 1).unwrap();
            let guard = world.epochs.pin(&core);
            {
                let pair = lock_two(&guard, (dir, &key("a")), (dir, &key("b")), &Spin);
                let operation = world.decisions.begin_firm(&core);
                let from = pair.first().lookup(&key("a")).unwrap();
                let _gone = from.prepare_remove(operation.tag());
                let _there = pair.second().prepare_insert(&key("b"), 1, operation.tag()).unwrap();
                if committed {
                    operation.commit().unwrap();
                    assert!(dir.exists(&guard, &key("b")));
                }
                // As a panic would, before either is finished.
            }
            assert_eq!((dir.exists(&guard, &key("a")), dir.exists(&guard, &key("b"))), (!committed, committed));
            drop(guard);
            world.destroy(&core, dir);
        });
    }
}

#[test]
fn a_listing_with_changes_lists_what_stays_once() {
    with_world(|world| {
        let core = world.arena.claim(0, owner()).unwrap();
        let dir = world.dir(&core, 1);
        let insert = |name: &str| {
            let guard = world.epochs.pin(&core);
            dir.lock(&guard, &key(name), &Spin).insert(&key(name), 0).unwrap();
        };
        (0..200).for_each(|number| insert(&format!("stays-{number}")));
        let mut seen = BTreeSet::new();
        let mut cookie = Some(FIRST_COOKIE);
        let mut round = 0;
        while let Some(from) = cookie {
            let mut left = 3;
            cookie = dir.list(&world.epochs.pin(&core), from, |listed| {
                assert!(seen.insert(listed.name.to_vec()), "listed twice");
                left -= 1;
                left > 0
            });
            insert(&format!("comes-{round}"));
            round += 1;
            world.maintain(&core);
            world.grow(&core, dir, 3);
        }
        let stayed = seen.iter().filter(|name| name.starts_with(b"stays")).count();
        assert_eq!(stayed, 200);
        world.destroy(&core, dir);
    });
}

#[derive(Clone, Debug)]
enum Step {
    Insert { dir: usize, name: usize, value: u64 },
    Remove { dir: usize, name: usize },
    Replace { dir: usize, name: usize, value: u64 },
    Rename { from: (usize, usize), to: (usize, usize), commits: bool },
    Grow { dir: usize },
    Maintain,
    FailNext,
}

const NAMES: usize = 12;

fn step() -> impl Strategy<Value = Step> {
    let (dir, name) = (0..2usize, 0..NAMES);
    prop_oneof![
        4 => (dir.clone(), name.clone(), any::<u64>()).prop_map(|(dir, name, value)| Step::Insert { dir, name, value }),
        3 => (dir.clone(), name.clone()).prop_map(|(dir, name)| Step::Remove { dir, name }),
        2 => (dir.clone(), name.clone(), any::<u64>()).prop_map(|(dir, name, value)| Step::Replace { dir, name, value }),
        4 => ((dir.clone(), name.clone()), (dir.clone(), name), any::<bool>())
            .prop_map(|(from, to, commits)| Step::Rename { from, to, commits }),
        1 => dir.prop_map(|dir| Step::Grow { dir }),
        1 => Just(Step::Maintain),
        1 => Just(Step::FailNext),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn directories_follow_the_model(
        hash_mask in prop_oneof![Just(0_u64), Just(3), Just(u64::MAX)],
        steps in proptest::collection::vec(step(), 0..120),
    ) {
        with_world(|world| {
            let core = world.arena.claim(0, owner()).unwrap();
            let dirs = [world.dir(&core, 1), world.dir(&core, 2)];
            let mut models = [BTreeMap::<usize, u64>::new(), BTreeMap::new()];
            let names: Vec<String> = (0..NAMES).map(|number| format!("{number}").repeat(1 + 5 * (number % 7))).collect();
            let key_of = |number: usize| {
                let plain = key(&names[number]);
                let hash = number as u64;
                if hash_mask == u64::MAX { plain } else { Key::with_hash(plain.name(), hash & hash_mask).unwrap() }
            };
            for step in steps {
                let guard = world.epochs.pin(&core);
                core.fail_allocations_after(None);
                match step {
                    Step::Insert { dir, name, value } => {
                        let locked = dirs[dir].lock(&guard, &key_of(name), &Spin);
                        assert_eq!(locked.lookup(&key_of(name)).is_some(), models[dir].contains_key(&name));
                        models[dir].entry(name).or_insert_with(|| {
                            locked.insert(&key_of(name), value).unwrap();
                            value
                        });
                    }
                    Step::Remove { dir, name } => {
                        let locked = dirs[dir].lock(&guard, &key_of(name), &Spin);
                        let found = locked.lookup(&key_of(name));
                        assert_eq!(found.as_ref().map(|found| found.value()), models[dir].remove(&name));
                        if let Some(found) = found {
                            found.remove();
                        }
                    }
                    Step::Replace { dir, name, value } => {
                        let locked = dirs[dir].lock(&guard, &key_of(name), &Spin);
                        if let Some(found) = locked.lookup(&key_of(name)) {
                            found.replace(value);
                            models[dir].insert(name, value);
                        }
                    }
                    Step::Rename { from, to, commits } if from != to => {
                        let (from_key, to_key) = (key_of(from.1), key_of(to.1));
                        let pair = lock_two(&guard, (dirs[from.0], &from_key), (dirs[to.0], &to_key), &Spin);
                        if let Some(found) = pair.first().lookup(&from_key) {
                            let operation = world.decisions.begin_firm(&core);
                            let moved = found.value();
                            let removed = found.prepare_remove(operation.tag());
                            let put = match pair.second().lookup(&to_key) {
                                Some(old) => old.prepare_replace(moved, operation.tag()),
                                None => pair.second().prepare_insert(&to_key, moved, operation.tag()).unwrap(),
                            };
                            assert!(dirs[from.0].exists(&guard, &from_key), "undecided");
                            assert_eq!(dirs[to.0].exists(&guard, &to_key), models[to.0].contains_key(&to.1));
                            if commits {
                                operation.commit().unwrap();
                                let value = models[from.0].remove(&from.1).unwrap();
                                models[to.0].insert(to.1, value);
                            } else {
                                operation.abort();
                            }
                            let seen = dirs[to.0].lookup(&guard, &to_key).map(|found| found.value());
                            assert_eq!(seen, models[to.0].get(&to.1).copied(), "decided, not finished");
                            assert_eq!(dirs[from.0].exists(&guard, &from_key), models[from.0].contains_key(&from.1));
                            removed.finish(commits);
                            put.finish(commits);
                        }
                    }
                    Step::Rename { .. } => {}
                    Step::Grow { dir } => {
                        dirs[dir].grow(world.epochs, &guard, &Spin, 1);
                    }
                    Step::Maintain => {
                        drop(guard);
                        world.maintain(&core);
                    }
                    Step::FailNext => {
                        let Some(name) = (0..NAMES).find(|name| !models[0].contains_key(name)) else { continue };
                        for allowed in 0..2 {
                            core.fail_allocations_after(Some(allowed));
                            let locked = dirs[0].lock(&guard, &key_of(name), &Spin);
                            match locked.insert(&key_of(name), 5) {
                                Ok(()) => locked.lookup(&key_of(name)).unwrap().remove(),
                                Err(error) => assert_eq!(error, InsertError::OutOfMemory),
                            }
                        }
                        core.fail_allocations_after(None);
                    }
                }
                for (dir, model) in dirs.iter().zip(&models) {
                    let guard = world.epochs.pin(&core);
                    for name in 0..NAMES {
                        let found = dir.lookup(&guard, &key_of(name)).map(|found| found.value());
                        assert_eq!(found, model.get(&name).copied());
                    }
                    let mut listed = BTreeMap::new();
                    dir.list(&guard, FIRST_COOKIE, |name| listed.insert(name.name.to_vec(), name.value).is_none());
                    assert_eq!(listed.len(), model.len());
                }
            }
            // SAFETY: the test is over.
            unsafe { dirs[0].destroy(&core, |_| {}) };
            world.destroy(&core, dirs[1]);
        });
    }
}
