//! What one operation does to many names or to a whole directory: committed or not, finished, dropped, or out of memory.
#![cfg(not(any(loom, shuttle)))]

use std::cell::{Cell, RefCell};

use commit::Decisions;
use epoch::{Epochs, Guard};
use hashdir::{FIRST_COOKIE, HashDir, InsertError, Key, Killing, LockedName, NotEmpty, free_retired, lock_all};
use percpu::testing::{World, owner};
use percpu::{ArenaConfig, Core};
use sync::{Spin, Wait, WaitReason};

fn key(name: &str) -> Key<'_> {
    Key::new(name.as_bytes(), 42).unwrap()
}

/// A directory in a world of its own.
struct Home<'w> {
    world: &'w World,
    decisions: &'w Decisions,
    epochs: &'w Epochs,
}

impl<'w> Home<'w> {
    fn new(world: &'w World) -> Home<'w> {
        let (decisions, epochs) = (Decisions::create(world.arena()).unwrap(), Epochs::create(world.arena()).unwrap());
        Home { world, decisions, epochs }
    }

    fn dir(&self, core: &Core, bucket_count: usize, names: &[(&str, u64)]) -> &'w HashDir {
        // SAFETY: all lie in one arena, which has one `Epochs`.
        let dir =
            self.world.arena().place(unsafe { HashDir::new(core, self.decisions, bucket_count) }.unwrap()).unwrap();
        let guard = self.epochs.pin(core);
        for &(name, value) in names {
            dir.lock(&guard, &key(name), &Spin).insert(&key(name), value).unwrap();
        }
        dir
    }

    fn maintain(&self, core: &Core) {
        for _ in 0..4 {
            self.epochs.maintain(core, |core, kind, object| {
                // SAFETY: called by the maintenance of the one `Epochs`.
                assert!(unsafe { free_retired(core, kind, object) });
            });
            self.world.for_each_idle_core(owner(1), |_| ());
        }
    }
}

fn value(dir: &HashDir, guard: &Guard<'_>, name: &str) -> Option<u64> {
    let found = dir.lookup(guard, &key(name)).map(|found| found.value());
    assert_eq!(dir.exists(guard, &key(name)), found.is_some());
    found
}

#[test]
fn many_names_change_together_and_are_free_afterwards() {
    const NAMES: [&str; 3] = ["gone", "other", "new"];
    for (commits, finishes) in [(true, true), (true, false), (false, true), (false, false)] {
        let world = World::new(1);
        let home = Home::new(&world);
        let core = world.core(0);
        let dir = home.dir(&core, 2, &[("gone", 1), ("other", 2)]);
        let keys = NAMES.map(key);
        {
            let guard = home.epochs.pin(&core);
            let mut room: [LockedName<'_, usize>; 3] = std::array::from_fn(|_| LockedName::default());
            room.iter_mut().enumerate().for_each(|(index, place)| place.beside = index);
            let mut names = lock_all(&guard, &mut room, |index| (dir, &keys[*index]), &Spin);
            assert!(keys.iter().all(|key| dir.is_locked(&guard, key)));
            let operation = home.decisions.begin_firm(&core);
            for place in names.iter_mut() {
                assert_eq!(place.value(), [Some(1), Some(2), None][place.beside]);
                match place.beside {
                    0 => place.prepare_remove(operation.tag()),
                    1 => place.prepare_replace(7, operation.tag()),
                    _ => place.prepare_insert(&keys[2], 9, operation.tag()).unwrap(),
                }
            }
            assert_eq!(NAMES.map(|name| value(dir, &guard, name)), [Some(1), Some(2), None], "nothing is decided");
            if commits {
                operation.commit().unwrap();
            } else {
                operation.abort();
            }
            let expected = if commits { [None, Some(7), Some(9)] } else { [Some(1), Some(2), None] };
            assert_eq!(NAMES.map(|name| value(dir, &guard, name)), expected);
            if finishes {
                names.finish(commits);
                assert!(keys.iter().all(|key| dir.is_locked(&guard, key)), "finished names stay locked");
                names.unlock();
            } else {
                drop(names);
            }
            assert!(!keys.iter().any(|key| dir.is_locked(&guard, key)), "while their room is still there");
            home.decisions.begin_firm(&core).commit().unwrap(); // a mark that was left would name an operation of the past
            assert_eq!(NAMES.map(|name| value(dir, &guard, name)), expected);
            for (name, key) in NAMES.into_iter().zip(&keys) {
                let locked = dir.lock(&guard, key, &Spin);
                match locked.lookup(key) {
                    Some(found) => found.remove(),
                    None => locked.insert(key, 5).unwrap(),
                }
                drop(locked);
                let was_there = expected[NAMES.iter().position(|one| *one == name).unwrap()].is_some();
                assert_eq!(value(dir, &guard, name).is_some(), !was_there);
            }
        }
        let (mut left, guard) = (Vec::new(), home.epochs.pin(&core));
        dir.list(&guard, FIRST_COOKIE, |listed| {
            left.push(listed.name.len());
            true
        });
        assert_eq!(left, if commits { vec![4] } else { vec![3] }, "what was taken out is in no chain");
        drop(guard);
        // SAFETY: the test is over.
        unsafe { dir.destroy(&core, |_| {}) };
        home.maintain(&core);
        assert_eq!(world.live_bytes(), 0);
    }
}

/// Ends a kill in its third round.
struct EndsKill<'d> {
    killing: RefCell<Option<Killing<'d>>>,
    finishes: bool,
    waits: Cell<u32>,
}

impl Wait for EndsKill<'_> {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert_eq!((reason, round), (WaitReason::Operation, self.waits.get()));
        self.waits.set(round + 1);
        if round == 2 {
            let killing = self.killing.take().expect("it is ended once");
            if self.finishes {
                killing.finish();
            }
        }
    }
}

#[test]
fn who_meets_a_kill_waits_for_its_end_and_knows_its_own() {
    for finishes in [true, false] {
        let world = World::new(2);
        let home = Home::new(&world);
        let (core, other) = (world.core(0), world.core(1));
        let dir = home.dir(&core, 2, &[]);
        let guard = home.epochs.pin(&core);
        assert_eq!([&core, &other].map(|core| dir.is_dead_beside_own(core)), [Some(false); 2]);
        let killing = RefCell::new(Some(dir.begin_kill(&guard, &Spin).unwrap()));
        assert_eq!([&core, &other].map(|core| dir.is_dead_beside_own(core)), [Some(false), None]);
        let wait = EndsKill { killing, finishes, waits: Cell::new(0) };
        dir.wait_for_kill(&wait);
        dir.wait_for_kill(&wait);
        assert_eq!(wait.waits.get(), 3);
        assert_eq!([&core, &other].map(|core| dir.is_dead_beside_own(core)), [Some(finishes); 2]);
        assert_eq!(dir.begin_kill(&guard, &Spin).err(), finishes.then_some(NotEmpty::Dead));
        assert_eq!(dir.begin_kill_with_names(&guard, &Spin).err(), finishes.then_some(NotEmpty::Dead));
    }
}

#[test]
fn a_directory_that_nobody_knows_takes_names_or_none() {
    let world = World::new(1);
    let home = Home::new(&world);
    let core = world.core(0);
    let dir = home.dir(&core, 2, &[]);
    let guard = home.epochs.pin(&core);
    dir.take_names(false);
    assert!(dir.is_dead());
    assert_eq!(dir.lock(&guard, &key("a"), &Spin).insert(&key("a"), 1), Err(InsertError::Dead));
    dir.take_names(true);
    dir.lock(&guard, &key("a"), &Spin).insert(&key("a"), 1).unwrap();
    assert!(!dir.is_empty(&guard));
}

/// Also while it grows, so that names are in two tables.
#[test]
fn a_directory_is_left_by_an_operation_that_removes_all_its_names() {
    for moved_buckets in [0, 1, 3] {
        let world = World::new(1);
        let home = Home::new(&world);
        let core = world.core(0);
        let dir = home.dir(&core, 4, &[]);
        let names: Vec<String> = (0..40).map(|number| format!("name {number}")).collect();
        for name in &names {
            dir.lock(&home.epochs.pin(&core), &key(name), &Spin).insert(&key(name), 1).unwrap();
        }
        assert!(dir.wants_growth());
        home.maintain(&core);
        if moved_buckets > 0 {
            dir.grow(home.epochs, &home.epochs.pin(&core), &Spin, moved_buckets);
        }
        let guard = home.epochs.pin(&core);
        assert!(!dir.is_empty(&guard));
        assert_eq!(dir.begin_kill(&guard, &Spin).err(), Some(NotEmpty::HasNames));
        let killing = dir.begin_kill_with_names(&guard, &Spin).unwrap();
        let operation = home.decisions.begin_firm(&core);
        let keys: Vec<Key<'_>> = names.iter().map(|name| key(name)).collect();
        let mut room: Vec<LockedName<'_, usize>> = keys.iter().map(|_| LockedName::default()).collect();
        room.iter_mut().enumerate().for_each(|(index, place)| place.beside = index);
        let mut locked = lock_all(&guard, &mut room, |index| (dir, &keys[*index]), &Spin);
        for place in locked.iter_mut() {
            assert!(
                !killing.is_left_by(&guard, operation.tag(), &Spin),
                "a name is left, {moved_buckets} buckets moved"
            );
            place.prepare_remove(operation.tag());
        }
        assert!(killing.is_left_by(&guard, operation.tag(), &Spin));
        let tag = operation.tag();
        operation.commit().unwrap();
        assert!(killing.is_left_by(&guard, tag, &Spin));
        locked.finish(true);
        locked.unlock();
        killing.finish();
        assert!(dir.is_dead() && dir.is_empty(&guard));
    }
}

/// Insertion out of memory gives back what it had taken, for names that lie in the entry and for those that lie apart.
#[test]
fn an_insertion_without_memory_takes_none() {
    for name_bytes in [1, 23, 24, 25, 255] {
        let world = World::with(1 << 20, ArenaConfig { core_count: 1, chunk_bytes: 4096 });
        let home = Home::new(&world);
        let core = world.core(0);
        let dir = home.dir(&core, 64, &[]);
        let insert = |name: &str| dir.lock(&home.epochs.pin(&core), &key(name), &Spin).insert(&key(name), 1);
        // Memory for a name that lies apart stays behind once all other memory is given to entries.
        let long = "x".repeat(200);
        insert(&long).unwrap();
        dir.lock(&home.epochs.pin(&core), &key(&long), &Spin).lookup(&key(&long)).unwrap().remove();
        home.maintain(&core);
        let count = (0..).find(|number| insert(&number.to_string()).is_err()).unwrap();
        let before = world.live_bytes();
        let name = "y".repeat(name_bytes);
        assert_eq!(insert(&name), Err(InsertError::OutOfMemory));
        assert_eq!(world.live_bytes(), before);
        let guard = home.epochs.pin(&core);
        assert!((0..count).all(|number| value(dir, &guard, &number.to_string()) == Some(1)));
    }
}
