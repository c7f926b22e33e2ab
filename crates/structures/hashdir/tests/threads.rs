//! Four threads on few buckets, with growth and maintenance: names and values stay consistent, no memory is lost.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use commit::Decisions;
use epoch::Epochs;
use hashdir::{HashDir, Key, free_retired, lock_two};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use sync::Spin;

const ROUNDS: u64 = 1_500;
const SEED: u64 = 7;

fn maintain(core: &Core, epochs: &Epochs) {
    epochs.maintain(core, |core, kind, object| {
        // SAFETY: called by the maintenance of the one `Epochs`.
        assert!(unsafe { free_retired(core, kind, object) });
    });
}

/// An heir looks at all buckets while a living core makes more of them.
#[test]
fn an_heir_repairs_beside_a_core_that_lets_the_directory_grow() {
    let mut region = HeapRegion::new(64 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 2, chunk_bytes: 4096 }).unwrap();
    let (decisions, epochs) = (Decisions::create(arena).unwrap(), Epochs::create(arena).unwrap());
    let owner = OwnerId::new(1).unwrap();
    let core = arena.claim(0, owner).unwrap();
    // SAFETY: all lie in one arena, which has one `Epochs`.
    let dir = arena.place(unsafe { HashDir::new(&core, decisions, 2048) }.unwrap()).unwrap();
    for number in 0..12_000 {
        let name = format!("name-{number}");
        let key = Key::new(name.as_bytes(), SEED).unwrap();
        dir.lock(&epochs.pin(&core), &key, &Spin).insert(&key, number).unwrap();
    }
    assert!(dir.wants_growth());
    let has_begun = AtomicBool::new(false);
    let has_begun = &has_begun;
    std::thread::scope(|scope| {
        let growing = scope.spawn(move || {
            let core = core;
            while !has_begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            while dir.wants_growth() {
                dir.grow(epochs, &epochs.pin(&core), &Spin, 1);
                maintain(&core, epochs);
            }
        });
        scope.spawn(move || {
            while !growing.is_finished() {
                has_begun.store(true, Ordering::Relaxed);
                let number = 1;
                std::mem::forget(arena.claim(number, owner).unwrap());
                // SAFETY: the handle is used no more, and nothing was done with it.
                unsafe {
                    let heir = arena.take_over(number, owner, owner).unwrap();
                    let last = decisions.last(&heir);
                    dir.repair_taken_over(epochs, &epochs.pin(&heir), last, false);
                }
            }
        });
    });
}

/// Each thread moves its own token between two names; an observer must always find exactly one of the two, whichever it
/// looks up first, if it looks again after a miss of both.
#[test]
fn tokens_are_never_lost_or_doubled() {
    let mut region = HeapRegion::new(64 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 5, chunk_bytes: 4096 }).unwrap();
    let (decisions, epochs) = (Decisions::create(arena).unwrap(), Epochs::create(arena).unwrap());
    let owner = OwnerId::new(1).unwrap();
    let first = arena.claim(0, owner).unwrap();
    // SAFETY: all lie in one arena, which has one `Epochs`.
    let dir = arena.place(unsafe { HashDir::new(&first, decisions, 2) }.unwrap()).unwrap();
    drop(first);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..3_u64)
            .map(|mover| {
                scope.spawn(move || {
                    let core = arena.claim(mover as usize, owner).unwrap();
                    let names = [format!("left-{mover}"), format!("right-{mover}")];
                    let keys = names.each_ref().map(|name| Key::new(name.as_bytes(), SEED).unwrap());
                    dir.lock(&epochs.pin(&core), &keys[0], &Spin).insert(&keys[0], mover).unwrap();
                    for round in 0..ROUNDS {
                        let (from, to) = (&keys[(round % 2) as usize], &keys[(1 - round % 2) as usize]);
                        let guard = epochs.pin(&core);
                        {
                            let pair = lock_two(&guard, (dir, from), (dir, to), &Spin);
                            let found = pair.first().lookup(from).unwrap();
                            assert_eq!(found.value(), mover);
                            let operation = decisions.begin_firm(&core);
                            let gone = found.prepare_remove(operation.tag());
                            let there = pair.second().prepare_insert(to, mover, operation.tag()).unwrap();
                            operation.commit().unwrap();
                            there.finish(true);
                            gone.finish(true);
                        }
                        let name = format!("fill-{mover}-{round}");
                        let fill = Key::new(name.as_bytes(), SEED).unwrap();
                        dir.lock(&guard, &fill, &Spin).insert(&fill, round).unwrap();
                        drop(guard);
                        if round % 4 == 0 {
                            maintain(&core, epochs);
                            dir.grow(epochs, &epochs.pin(&core), &Spin, 8);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            let core = arena.claim(4, owner).unwrap();
            // Also if they fail: a flag that they set at their end would never be set then.
            while !movers.iter().all(ScopedJoinHandle::is_finished) {
                for mover in 0..3_u64 {
                    let names = [format!("left-{mover}"), format!("right-{mover}")];
                    let keys = names.each_ref().map(|name| Key::new(name.as_bytes(), SEED).unwrap());
                    let guard = epochs.pin(&core);
                    let left = dir.lookup(&guard, &keys[0]);
                    let right = dir.lookup(&guard, &keys[1]);
                    if let (Some(left), Some(right)) = (&left, &right) {
                        // The token may have come back in between; but not both at one moment.
                        assert!(!(left.still_present() && right.still_present() && left.still_present()));
                    }
                }
                maintain(&core, epochs);
            }
        });
    });
    let core = arena.claim(0, owner).unwrap();
    let mut count = 0;
    dir.list(&epochs.pin(&core), hashdir::FIRST_COOKIE, |_| {
        count += 1;
        true
    });
    assert_eq!(count, 3 * ROUNDS + 3);
    // SAFETY: all threads have ended.
    unsafe { dir.destroy(&core, |_| {}) };
    for _ in 0..4 {
        maintain(&core, epochs);
        arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| maintain(idle, epochs));
    }
    assert_eq!(arena.live_bytes(), 0);
}
