//! Some dozens of changes of a directory by one thread while another looks: few enough for an interpreter that knows
//! undefined behaviour (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use commit::Decisions;
use epoch::Epochs;
use hashdir::{FIRST_COOKIE, Growth, HashDir, Key, free_retired, lock_two};
use percpu::Core;
use percpu::testing::{World, owner};
use sync::Spin;

fn key(name: &str) -> Key<'_> {
    Key::new(name.as_bytes(), 42).unwrap()
}

fn maintain(epochs: &Epochs, core: &Core) {
    epochs.maintain(core, |core, kind, object| {
        // SAFETY: called by the maintenance of the one `Epochs`.
        assert!(unsafe { free_retired(core, kind, object) });
    });
}

#[test]
fn names_come_move_change_and_go_while_another_looks() {
    let world = World::new(2);
    let (decisions, epochs) = (Decisions::create(world.arena()).unwrap(), Epochs::create(world.arena()).unwrap());
    let dir = {
        // SAFETY: all lie in one arena, which has one `Epochs`.
        let dir = unsafe { HashDir::new(&world.core(0), decisions, 1) }.unwrap();
        world.place(dir).unwrap()
    };
    // One has so long a name that it lies in an object of another size.
    let names: Vec<String> = (0..10).map(|number| format!("{number}{}", "-".repeat(number * 20))).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let core = world.core(0);
            for (number, name) in names.iter().enumerate() {
                dir.lock(&epochs.pin(&core), &key(name), &Spin).insert(&key(name), number as u64).unwrap();
                dir.grow(epochs, &epochs.pin(&core), &Spin, 2);
                maintain(epochs, &core);
            }
            for commits in [true, false] {
                let guard = epochs.pin(&core);
                let (from, to) = (key(&names[1]), key("to"));
                let pair = lock_two(&guard, (dir, &from), (dir, &to), &Spin);
                let operation = decisions.begin_firm(&core);
                if let Some(found) = pair.first().lookup(&from) {
                    let gone = found.prepare_remove(operation.tag());
                    let there = pair.second().prepare_insert(&to, 1, operation.tag()).unwrap();
                    if commits {
                        operation.commit().unwrap()
                    } else {
                        operation.abort()
                    }
                    there.finish(commits);
                    gone.finish(commits);
                } else {
                    operation.abort();
                }
            }
            let guard = epochs.pin(&core);
            dir.lock(&guard, &key(&names[2]), &Spin).lookup(&key(&names[2])).unwrap().replace(20);
            for name in &names[5..] {
                dir.lock(&guard, &key(name), &Spin).lookup(&key(name)).unwrap().remove();
            }
            drop(guard);
            maintain(epochs, &core);
        });
        scope.spawn(|| {
            let core = world.core(1);
            for _ in 0..6 {
                let guard = epochs.pin(&core);
                for name in &names[..4] {
                    if let Some(found) = dir.lookup(&guard, &key(name)) {
                        assert!(found.value() <= 20);
                        found.still_same();
                    }
                    dir.exists(&guard, &key(name));
                    dir.present(&guard, &key(name)).map(|present| present.still_present());
                }
                dir.list(&guard, FIRST_COOKIE, |listed| listed.name.len() < 200);
                drop(guard);
                maintain(epochs, &core);
            }
        });
    });
    let core = world.core(0);
    while dir.grow(epochs, &epochs.pin(&core), &Spin, 64) == Growth::Moving {}
    let guard = epochs.pin(&core);
    let mut left = 0;
    dir.list(&guard, FIRST_COOKIE, |_| {
        left += 1;
        true
    });
    assert_eq!(left, 5);
    assert_eq!(dir.lookup(&guard, &key("to")).unwrap().value(), 1);
    drop(guard);
    // SAFETY: the test is over.
    unsafe { dir.destroy(&core, |_| {}) };
    for _ in 0..4 {
        maintain(epochs, &core);
        world.for_each_idle_core(owner(1), |idle| maintain(epochs, idle));
    }
    assert_eq!(world.live_bytes(), 0);
}
