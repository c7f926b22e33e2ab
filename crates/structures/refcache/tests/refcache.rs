//! Counts against a plain reference, at 1 to 256 cores, with and without collisions; nothing freed early or forgotten.
#![cfg(not(loom))]

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::ScopedJoinHandle;

use commit::Decisions;
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OutOfMemory, OwnerId};
use proptest::prelude::*;
use refcache::{Count, Counted, CountedKind, Maintained, Noted, RefCache, RefCacheConfig, WeakRef};
use sync::Spin;

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

fn with_cache(core_count: usize, slots_per_core: usize, test: impl FnOnce(&Arena, &Decisions, &RefCache)) {
    let mut region = HeapRegion::new(8 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count, chunk_bytes: 4096 }).unwrap();
    let decisions = Decisions::create(arena).unwrap();
    let config = RefCacheConfig { slots_per_core, ..RefCacheConfig::default() };
    test(arena, decisions, RefCache::create(arena, decisions, config).unwrap());
}

fn object(arena: &Arena, count: i64) -> &Counted {
    arena.place(Counted::new(count, CountedKind(1))).unwrap()
}

/// Counts safely: the objects of these tests live as long as their arena.
fn change(cache: &RefCache, core: &Core, object: &impl Count, delta: i64) {
    // SAFETY: placed in the arena for good.
    unsafe { cache.change(core, object, delta) }
}

fn exact(cache: &RefCache, object: &impl Count) -> i64 {
    // SAFETY: placed in the arena for good.
    unsafe { cache.exact(object, &Spin) }
}

fn maintain(cache: &RefCache, core: &Core, free: impl FnMut(&Core, NonNull<Counted>)) -> Maintained {
    // SAFETY: placed in the arena for good.
    unsafe { cache.maintain(core, free) }
}

#[test]
fn an_arena_that_is_too_small_is_an_error() {
    let mut region = HeapRegion::new(64 << 10).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 4, chunk_bytes: 4096 }).unwrap();
    let decisions = Decisions::create(arena).unwrap();
    for slots_per_core in [1 << 10, usize::MAX] {
        let config = RefCacheConfig { slots_per_core, seed: 1 };
        assert_eq!(RefCache::create(arena, decisions, config).err(), Some(OutOfMemory));
    }
}

/// Cores 3 and 11 of 20 change a count, and all read it: soon these two are asked alone. Each reading is exact, also when
/// more cores change it than the list has room for, and when they have stopped.
#[test]
fn of_many_cores_those_are_asked_that_have_changed_a_count() {
    with_cache(20, 4, |arena, _, cache| {
        let cores: Vec<_> = (0..20).map(|number| arena.claim(number, owner()).unwrap()).collect();
        let object = arena.place(Noted::new(1, CountedKind(1))).unwrap();
        let mut count = 1;
        let mut turn = |changing: &[usize]| {
            for core in &cores {
                if changing.contains(&core.index().get()) {
                    change(cache, core, object, 1);
                    count += 1;
                }
                // After what the core has changed.
                sync::atomic::fence(sync::atomic::Ordering::SeqCst);
                // SAFETY: placed in the arena for good.
                assert_eq!(unsafe { cache.exact_after_fence(core, object, &Spin) }, count);
            }
            assert_eq!(exact(cache, object), count);
            cores.iter().for_each(|core| _ = maintain(cache, core, |_, _| panic!("it is in use")));
            object.has_list()
        };
        let turns_until = |turn: &mut dyn FnMut() -> bool| (0..60).find(|_| turn());
        let first = turns_until(&mut || turn(&[3, 11])).expect("a list");
        assert!(first >= 3, "{first}: what was changed before the list has to come to the object");
        assert!((0..20).all(|_| turn(&[3, 11])), "it stays");
        assert!(turn(&[3, 11, 5]), "there is room for one more");
        assert!(!turn(&[3, 11, 5, 7]), "there is none");
        assert!(!(0..20).any(|_| turn(&[3, 11, 5, 7])), "a list would be of no use");
        turns_until(&mut || turn(&[7])).expect("a list again");
    });
}

/// How often two cores maintain in turn until an object of this kind is freed that core 0 gives up.
fn rounds_until_freed(kind: CountedKind) -> usize {
    let mut rounds = 0;
    with_cache(2, 4, |arena, _, cache| {
        let counted = arena.place(Counted::new(1, kind)).unwrap();
        let cores = [0, 1].map(|number| arena.claim(number, owner()).unwrap());
        change(cache, &cores[0], counted, -1);
        let maintains = || cores.iter().map(|core| maintain(cache, core, |_, _| ()).freed).sum::<usize>() == 0;
        rounds = (1..9).find(|_| !maintains()).expect("it is freed");
    });
    rounds
}

#[test]
fn a_late_kind_is_freed_an_epoch_later() {
    let check = || assert_eq!([1, 1 | CountedKind::LATE].map(|kind| rounds_until_freed(CountedKind(kind))), [3, 4]);
    check();
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("refcache: late kinds are reviewed with the others", check);
}

#[test]
fn counts_are_exact_over_256_cores_and_after_some_went_offline() {
    with_cache(256, 4, |arena, _, cache| {
        let counted = object(arena, 1);
        let cores: Vec<Core> = (0..256).map(|number| arena.claim(number, owner()).unwrap()).collect();
        for (number, core) in cores.iter().enumerate() {
            change(cache, core, counted, number as i64);
        }
        let sum = 1 + (0..256).sum::<i64>();
        assert_eq!(exact(cache, counted), sum);
        assert_eq!(counted.applied(), 1);
        drop(cores);
        assert_eq!(exact(cache, counted), sum);
        arena.for_each_idle_core(owner(), |idle| {
            maintain(cache, idle, |_, _| panic!("nothing is dead"));
        });
        assert_eq!((exact(cache, counted), counted.applied()), (sum, sum));
    });
}

#[test]
fn a_pending_delta_counts_from_the_commit_on() {
    with_cache(2, 8, |arena, decisions, cache| {
        let counted = object(arena, 5);
        let core = arena.claim(0, owner()).unwrap();
        for (commits, expected) in [(true, 4), (false, 4)] {
            let operation = decisions.begin_firm(&core);
            // SAFETY: placed in the arena for good.
            unsafe { cache.prepare(&core, counted, -1, operation.tag()) };
            assert_eq!(exact(cache, counted), if commits { 5 } else { 4 });
            if commits {
                operation.commit().unwrap()
            } else {
                operation.abort()
            }
            assert_eq!(exact(cache, counted), expected);
            // SAFETY: as above.
            unsafe { cache.settle(&core, counted, commits) };
            assert_eq!(exact(cache, counted), expected);
        }
        let operation = decisions.begin_revocable(&core);
        // SAFETY: as above.
        unsafe { cache.prepare(&core, counted, 1, operation.tag()) };
        assert_eq!(exact(cache, counted), 4, "reading revokes");
        assert!(operation.commit().is_err());
    });
}

#[test]
fn a_dead_object_is_freed_once_after_two_epochs_in_which_all_cores_flushed() {
    with_cache(2, 8, |arena, _, cache| {
        let counted = object(arena, 1);
        let cores = [arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap()];
        change(cache, &cores[1], counted, 1);
        change(cache, &cores[0], counted, -1);
        let freed = Cell::new(0);
        let free = |_: &Core, dead: NonNull<Counted>| {
            assert!(std::ptr::eq(dead.as_ptr(), counted));
            freed.set(freed.get() + 1);
        };
        maintain(cache, &cores[0], free); // sees zero, since core 1 still caches its increment
        for _ in 0..5 {
            for core in &cores {
                maintain(cache, core, free);
            }
        }
        assert_eq!((freed.get(), exact(cache, counted)), (0, 1));
        change(cache, &cores[0], counted, -1);
        for _ in 0..20 {
            maintain(cache, &cores[0], free);
        }
        assert_eq!(freed.get(), 0, "core 1 did not flush");
        for _ in 0..4 {
            for core in &cores {
                maintain(cache, core, free);
            }
        }
        assert_eq!(freed.get(), 1);
        assert!(!maintain(cache, &cores[0], free).pending && !maintain(cache, &cores[1], free).pending);
    });
}

#[test]
fn a_weak_reference_keeps_nothing_alive_but_postpones_death_when_used() {
    with_cache(1, 8, |arena, _, cache| {
        let core = arena.claim(0, owner()).unwrap();
        let counted = object(arena, 1);
        let weak = arena.place(WeakRef::new()).unwrap();
        assert!(cache.upgrade(&core, weak).is_none());
        // SAFETY: both are placed in the arena for good.
        unsafe { weak.attach(counted) };
        let freed = Cell::new(0);
        let free = |_: &Core, _: NonNull<Counted>| freed.set(freed.get() + 1);
        change(cache, &core, counted, -1);
        maintain(cache, &core, free);
        assert!(cache.upgrade(&core, weak).is_some());
        for _ in 0..6 {
            maintain(cache, &core, free);
        }
        assert_eq!(freed.get(), 0, "the upgraded reference counts");
        change(cache, &core, counted, -1);
        for _ in 0..6 {
            maintain(cache, &core, free);
        }
        assert_eq!(freed.get(), 1);
        assert!(cache.upgrade(&core, weak).is_none());
    });
}

#[test]
fn the_last_eager_release_is_told_so() {
    with_cache(4, 2, |arena, _, cache| {
        let last = AtomicI64::new(0);
        for _ in 0..300 {
            let counted = object(arena, 4);
            last.store(0, Ordering::Relaxed);
            std::thread::scope(|scope| {
                for number in 0..4 {
                    let last = &last;
                    scope.spawn(move || {
                        let core = arena.claim(number, owner()).unwrap();
                        // SAFETY: placed in the arena for good; one release per thread and reference.
                        if unsafe { cache.decrement_eager(&core, counted, &Spin) } {
                            last.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            assert!(last.load(Ordering::Relaxed) >= 1);
        }
    });
}

#[test]
fn exact_reads_of_a_constant_sum_never_differ_under_threads() {
    with_cache(3, 1, |arena, _, cache| {
        let (constant, other) = (object(arena, 7), object(arena, 1));
        std::thread::scope(|scope| {
            let changing = [0, 1].map(|number| {
                scope.spawn(move || {
                    let core = arena.claim(number, owner()).unwrap();
                    change(cache, &core, constant, 3);
                    for round in 0..4_000 {
                        // The one slot goes to and fro: each change evicts the other object's delta.
                        change(cache, &core, other, 1);
                        change(cache, &core, constant, 0);
                        change(cache, &core, other, -1);
                        if round % 16 == 0 {
                            maintain(cache, &core, |_, _| panic!("nothing is dead"));
                        }
                    }
                    change(cache, &core, constant, -3);
                })
            });
            scope.spawn(move || {
                // Also if they fail: a flag that they set at their end would never be set then.
                while !changing.iter().all(ScopedJoinHandle::is_finished) {
                    let sum = exact(cache, constant);
                    assert!([7, 10, 13].contains(&sum), "{sum}");
                }
            });
        });
        assert_eq!((exact(cache, constant), exact(cache, other)), (7, 1));
    });
}

#[derive(Clone, Debug)]
enum Step {
    Change { core: usize, object: usize, up: bool },
    Maintain { core: usize },
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_follow_the_model(
        slots in prop_oneof![Just(1usize), Just(2), Just(64)],
        steps in proptest::collection::vec(prop_oneof![
            4 => (0..3usize, 0..5usize, any::<bool>())
                .prop_map(|(core, object, up)| Step::Change { core, object, up }),
            1 => (0..3usize).prop_map(|core| Step::Maintain { core }),
        ], 0..120),
    ) {
        let mut region = HeapRegion::new(1 << 20).unwrap();
        let arena = Arena::create(&mut region, ArenaConfig { core_count: 3, chunk_bytes: 4096 }).unwrap();
        let decisions = Decisions::create(arena).unwrap();
        let config = RefCacheConfig { slots_per_core: slots, seed: 12345 };
        let cache = RefCache::create(arena, decisions, config).unwrap();
        let cores: Vec<Core> = (0..3).map(|number| arena.claim(number, owner()).unwrap()).collect();
        let objects: Vec<&Counted> = (0..5).map(|_| object(arena, 1)).collect();
        let mut model = [1_i64; 5];
        let mut freed = [false; 5];
        let index_of = |dead: NonNull<Counted>| {
            objects.iter().position(|object| std::ptr::eq(*object, dead.as_ptr())).unwrap()
        };
        for step in steps {
            match step {
                // A count that was zero is never raised again: no one has a reference to copy.
                Step::Change { core, object, up } if model[object] > 0 => {
                    let delta = if up { 1 } else { -1 };
                    change(cache, &cores[core], objects[object], delta);
                    model[object] += delta;
                }
                Step::Change { .. } => {}
                Step::Maintain { core } => {
                    maintain(cache, &cores[core], |_, dead| freed[index_of(dead)] = true);
                }
            }
            for object in 0..5 {
                prop_assert_eq!(exact(cache, objects[object]), model[object]);
                prop_assert!(!freed[object] || model[object] == 0);
            }
        }
        for core in cores.iter().cycle().take(24) {
            maintain(cache, core, |_, dead| {
                let index = index_of(dead);
                assert!(!freed[index], "freed twice");
                freed[index] = true;
            });
        }
        for object in 0..5 {
            prop_assert_eq!(freed[object], model[object] == 0);
        }
    }
}
