//! Deaths in growth and in changes of names: each name is there or not, and the directory grows to its end.
#![cfg(all(shuttle, unix))]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use commit::Decisions;
use epoch::Epochs;
use hashdir::{FIRST_COOKIE, Growth, HashDir, Key, free_retired};
use percpu::Core;
use percpu::testing::{World, die, die_everywhere};
use sync::mutant::must_be_caught;
use sync::{Wait, WaitReason};

const NAMES: usize = 24;

/// Waits for a while, and then takes it that no one will come.
struct Patience;

impl Wait for Patience {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert!(round < 1_000, "waits for ever: {reason:?}");
    }
}

struct Directory<'w> {
    decisions: &'w Decisions,
    epochs: &'w Epochs,
    dir: &'w HashDir,
}

fn with_key<R>(number: usize, act: impl FnOnce(&Key<'_>) -> R) -> R {
    act(&Key::new(format!("name-{number}").as_bytes(), 42).unwrap())
}

impl Directory<'_> {
    fn new(world: &World) -> Directory<'_> {
        let (decisions, epochs) = (Decisions::create(world.arena()).unwrap(), Epochs::create(world.arena()).unwrap());
        // SAFETY: all lie in one arena, which has one `Epochs`.
        let dir = world.place(unsafe { HashDir::new(&world.core(0), decisions, 1) }.unwrap()).unwrap();
        Directory { decisions, epochs, dir }
    }

    fn insert(&self, core: &Core, number: usize) {
        with_key(number, |key| {
            let guard = self.epochs.pin(core);
            self.dir.lock(&guard, key, &Patience).insert(key, 10 * number as u64).unwrap();
        });
    }

    fn remove(&self, core: &Core, number: usize) {
        with_key(number, |key| {
            let guard = self.epochs.pin(core);
            let locked = self.dir.lock(&guard, key, &Patience);
            let found = locked.lookup(key).expect("a name");
            found.remove();
        });
    }

    fn grow(&self, core: &Core) -> Growth {
        self.dir.grow(self.epochs, &self.epochs.pin(core), &Patience, 1)
    }

    fn maintain(&self, core: &Core) {
        self.epochs.maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`.
            assert!(unsafe { free_retired(core, kind, object) });
        });
    }

    fn names(&self, core: &Core) -> BTreeMap<Vec<u8>, u64> {
        let mut names = BTreeMap::new();
        self.dir.list(&self.epochs.pin(core), FIRST_COOKIE, |listed| {
            assert_eq!(names.insert(listed.name.to_vec(), listed.value), None, "listed twice");
            true
        });
        names
    }
}

/// Growth from one bucket on, bucket by bucket, twice, with changes of names in between.
fn work(directory: &Directory, core: &Core, done: &AtomicUsize) {
    for round in 0..12 {
        directory.grow(core);
        directory.maintain(core);
        directory.insert(core, NAMES + round);
        done.fetch_add(1, Ordering::Relaxed);
        directory.remove(core, round);
        done.fetch_add(1, Ordering::Relaxed);
    }
}

fn survives(access: u64) -> bool {
    let world = World::new(2);
    let directory = Directory::new(&world);
    let core = world.core(0);
    (0..NAMES).for_each(|number| directory.insert(&core, number));
    let done = world.place(AtomicUsize::new(0)).unwrap();
    let Some(heir) = die(&world, 1, access, |core| work(&directory, core, done)) else {
        return false;
    };
    // SAFETY: taken over from a dead process, whose guards were its own.
    unsafe {
        directory.epochs.unpin_taken_over(&heir);
        let last = directory.decisions.last(&heir);
        directory.dir.repair_taken_over(directory.epochs, &directory.epochs.pin(&heir), last, false);
    }
    let check = || {
        let done = done.load(Ordering::Relaxed);
        let names = directory.names(&core);
        for number in 0..NAMES + 12 {
            // New names come in even steps, those of before go in odd ones.
            let step = if number < NAMES { 2 * number + 1 } else { 2 * (number - NAMES) };
            let expected = (done > step) == (number >= NAMES);
            let is_there = names.contains_key(format!("name-{number}").as_bytes());
            assert!(done == step || is_there == expected, "access {access}: name {number} after {done} steps");
        }
        names
    };
    let names = check();
    for _ in 0..64 {
        if directory.grow(&heir) == Growth::Done && !directory.dir.wants_growth() {
            break;
        }
        [&heir, &core].into_iter().for_each(|core| directory.maintain(core));
    }
    assert!(!directory.dir.wants_growth(), "access {access}: growth is stuck");
    assert_eq!(check(), names);
    for name in 100..140 {
        directory.insert(&core, name);
        directory.remove(&heir, name);
    }
    assert_eq!(check(), names);
    true
}

#[test]
fn names_are_there_or_not_wherever_a_process_dies_while_its_directory_grows() {
    die_everywhere(survives);
    for mutant in ["hashdir: an heir keeps the lock of growth", "hashdir: an heir takes growth as settled"] {
        must_be_caught(mutant, || die_everywhere(survives));
    }
}
