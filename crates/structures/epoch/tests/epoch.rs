//! Epochs in ordinary builds: order of freeing, off-line and dead cores, nothing lost, many threads.
#![cfg(not(loom))]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use epoch::{Epochs, Retired, RetiredKind};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId, SizeClass};

const KIND: RetiredKind = RetiredKind(3);
const POISON: u64 = 0xdead;

#[repr(C)]
struct Node {
    link: Retired,
    value: AtomicU64,
}

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

fn node(core: &Core, value: u64) -> NonNull<Node> {
    core.allocate_value(Node { link: Retired::new(), value: AtomicU64::new(value) }).unwrap()
}

fn free(core: &Core, kind: RetiredKind, object: NonNull<Retired>) {
    assert_eq!(kind, KIND);
    let node = object.cast::<Node>();
    // SAFETY: the link is the first field of a `Node` that no one uses any more.
    unsafe {
        node.as_ref().value.store(POISON, Ordering::Relaxed);
        core.free(node.cast(), SizeClass::of_type::<Node>());
    }
}

fn with_epochs(core_count: usize, test: impl FnOnce(&Arena, &Epochs)) {
    let mut region = HeapRegion::new(8 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count, chunk_bytes: 4096 }).unwrap();
    test(arena, Epochs::create(arena).unwrap());
}

#[test]
fn an_object_stays_while_a_core_that_could_see_it_is_pinned() {
    with_epochs(2, |arena, epochs| {
        let (reader, writer) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let pinned = epochs.pin(&reader);
        let nested = epochs.pin(&reader);
        // SAFETY: the node is retired once.
        unsafe { epochs.pin(&writer).retire(node(&writer, 1).cast(), KIND) };
        let freed = |times| (0..times).map(|_| epochs.maintain(&writer, free).freed).sum::<usize>();
        assert_eq!(freed(10), 0);
        drop(pinned);
        assert_eq!(freed(10), 0, "still pinned by the nested guard");
        drop(nested);
        assert_eq!(freed(3), 1);
        assert!(!epochs.maintain(&writer, free).pending);
        assert_eq!(arena.live_objects(SizeClass::of_type::<Node>()), 0);
    });
}

#[test]
fn a_core_that_is_pinned_lets_the_epoch_advance_once() {
    with_epochs(2, |arena, epochs| {
        let (reader, writer) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        for _ in 0..3 {
            assert!(epochs.maintain(&writer, free).advanced);
            let pinned = epochs.pin(&reader);
            assert!(epochs.maintain(&writer, free).advanced, "the reader is in the present epoch");
            assert!(!epochs.maintain(&writer, free).advanced, "it was in the one before");
            drop(pinned);
        }
    });
}

/// A core that never maintains pins again in the middle of an epoch: it is seen in that, and not in those after.
fn pinned_anew() {
    with_epochs(2, |arena, epochs| {
        let (reader, writer) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let first = epochs.pin(&reader);
        let advances = || epochs.maintain(&writer, free).advanced;
        assert_eq!([advances(), advances()], [false, false]);
        drop(first);
        let second = epochs.pin(&reader);
        assert!(advances(), "another guard than the one that was noted");
        // SAFETY: the node is retired once.
        unsafe { epochs.pin(&writer).retire(node(&writer, 1).cast(), KIND) };
        assert_eq!(
            (0..10).map(|_| epochs.maintain(&writer, free).freed).sum::<usize>(),
            0,
            "freed under the second guard"
        );
        drop(second);
        assert_eq!((0..3).map(|_| epochs.maintain(&writer, free).freed).sum::<usize>(), 1);
    });
}

#[test]
fn who_pins_anew_was_seen_once() {
    pinned_anew();
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("epoch: notes of other epochs count", pinned_anew);
}

#[test]
fn a_stamp_has_passed_after_two_epochs() {
    with_epochs(1, |arena, epochs| {
        let core = arena.claim(0, owner()).unwrap();
        for _ in 0..3 {
            let stamp = epochs.stamp();
            assert!(!epochs.has_passed(stamp));
            assert!(epochs.maintain(&core, free).advanced && !epochs.has_passed(stamp));
            assert!(epochs.maintain(&core, free).advanced && epochs.has_passed(stamp));
        }
    });
}

#[test]
fn whoever_waits_for_guards_looks_at_each_other_core_until_it_has_none_or_that_is_enough() {
    with_epochs(4, |arena, epochs| {
        let [own, idle, first, second] = [0, 1, 2, 3].map(|number| arena.claim(number, owner()).unwrap());
        let _own = epochs.pin(&own);
        drop(epochs.pin(&idle));
        let looks = |ends_after: u32| {
            let mut looks = vec![];
            epochs.wait_for_guards(&own, |round| {
                looks.push(round);
                round < ends_after
            });
            looks
        };
        assert!(looks(9).is_empty(), "nobody waits for its own guard, or for a core that has none");
        let guard = epochs.pin(&first);
        assert_eq!(looks(2), [0, 1, 2]);
        let mut ends = Some(epochs.pin(&second));
        assert_eq!(looks(1), [0, 1, 0, 1], "each of two cores");
        drop(guard);
        let mut seen = 0;
        epochs.wait_for_guards(&own, |round| {
            seen = round;
            // It is let go in the middle of the wait.
            drop((round == 4).then(|| ends.take()));
            true
        });
        assert_eq!(seen, 4);
    });
}

#[test]
fn maintenance_tells_what_it_still_keeps() {
    with_epochs(1, |arena, epochs| {
        let core = arena.claim(0, owner()).unwrap();
        // SAFETY: the node is retired once.
        unsafe { epochs.pin(&core).retire(node(&core, 1).cast(), KIND) };
        let kept: Vec<_> = (0..3).map(|_| epochs.maintain(&core, free)).map(|one| (one.freed, one.pending)).collect();
        assert_eq!(kept, [(0, true), (0, true), (1, false)]);
    });
}

#[test]
fn what_an_offline_core_left_is_freed_by_others() {
    with_epochs(3, |arena, epochs| {
        let gone = arena.claim(2, owner()).unwrap();
        for value in 0..100 {
            // SAFETY: the node is retired once.
            unsafe { epochs.pin(&gone).retire(node(&gone, value).cast(), KIND) };
        }
        drop(gone);
        let core = arena.claim(0, owner()).unwrap();
        let mut freed = 0;
        for _ in 0..4 {
            freed += epochs.maintain(&core, free).freed;
            arena.for_each_idle_core(owner(), |idle| freed += epochs.maintain(idle, free).freed);
        }
        assert_eq!(freed, 100);
        assert_eq!(arena.live_bytes(), 0);
    });
}

#[test]
fn a_core_that_died_pinned_is_taken_over() {
    with_epochs(2, |arena, epochs| {
        let core = arena.claim(0, owner()).unwrap();
        let dead = Box::leak(Box::new(arena.claim(1, owner()).unwrap()));
        std::mem::forget(epochs.pin(dead));
        // SAFETY: the node is retired once.
        unsafe { epochs.pin(&core).retire(node(&core, 1).cast(), KIND) };
        assert_eq!((0..10).map(|_| epochs.maintain(&core, free).freed).sum::<usize>(), 0);
        // SAFETY: the leaked handle and guard are never used again.
        unsafe {
            let heir = arena.take_over(1, owner(), OwnerId::new(2).unwrap()).unwrap();
            epochs.unpin_taken_over(&heir);
        }
        assert_eq!((0..3).map(|_| epochs.maintain(&core, free).freed).sum::<usize>(), 1);
    });
}

#[test]
#[should_panic(expected = "while the core is pinned")]
fn maintaining_while_pinned_is_refused() {
    with_epochs(1, |arena, epochs| {
        let core = arena.claim(0, owner()).unwrap();
        let _guard = epochs.pin(&core);
        epochs.maintain(&core, free);
    });
}

#[test]
fn readers_never_see_freed_memory_under_threads() {
    const ROUNDS: u64 = 3_000;
    with_epochs(4, |arena, epochs| {
        let shared = AtomicPtr::new(std::ptr::null_mut::<Node>());
        std::thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|number| {
                let shared = &shared;
                scope.spawn(move || {
                    let core = arena.claim(number, owner()).unwrap();
                    for round in 0..ROUNDS {
                        let guard = epochs.pin(&core);
                        if number < 2 {
                            let old = shared.swap(node(&core, round).as_ptr(), Ordering::AcqRel);
                            if let Some(old) = NonNull::new(old) {
                                // SAFETY: unlinked by this exchange, so retired once.
                                unsafe { guard.retire(old.cast(), KIND) };
                            }
                        } else if let Some(seen) = NonNull::new(shared.load(Ordering::Acquire)) {
                            // SAFETY: reached while pinned.
                            let seen = unsafe { seen.as_ref() };
                            for _ in 0..20 {
                                assert_ne!(seen.value.load(Ordering::Relaxed), POISON);
                            }
                        }
                        drop(guard);
                        if round % 8 == 0 {
                            epochs.maintain(&core, free);
                        }
                    }
                })
            });
            // Of the end of a scope alone ThreadSanitizer sees nothing.
            for thread in threads {
                thread.join().unwrap();
            }
        });
        let core = arena.claim(0, owner()).unwrap();
        free(&core, KIND, NonNull::new(shared.load(Ordering::Relaxed)).unwrap().cast());
        for _ in 0..4 {
            epochs.maintain(&core, free);
            arena.for_each_idle_core(owner(), |idle| {
                epochs.maintain(idle, free);
            });
        }
        assert_eq!(arena.live_bytes(), 0, "nothing is lost");
    });
}

/// A list that was sealed by an owner who died between its report and the stamp stays without one, and what its heir seals got
/// the stamp of that old report in its place: it was freed under a guard.
#[test]
fn what_an_heir_seals_has_no_stamp_of_a_report_of_before() {
    const CORES: usize = 10;
    with_epochs(CORES, |arena, epochs| {
        let cores: Vec<Core> = (0..CORES).map(|index| arena.claim(index, owner()).unwrap()).collect();
        let ([dying, reader, ..], others) = (&cores[..], &cores[2..]) else { unreachable!() };
        let maintain_all = |cores: &[Core], times| {
            for core in (0..times).flat_map(|_| cores) {
                let _ = epochs.maintain(core, free);
            }
        };
        maintain_all(&cores, 6);
        // Such company lets a core report at every second maintenance; this one has just done so.
        let retire = |value| {
            let retired = node(dying, value);
            // SAFETY: the node is retired once.
            unsafe { epochs.pin(dying).retire(retired.cast(), KIND) };
            retired
        };
        for value in 0.. {
            let _ = retire(value);
            epochs.seal(dying);
            if !epochs.report(dying).is_repeated {
                break;
            }
            let _ = epochs.maintain(dying, free);
        }
        maintain_all(others, 40);
        let guard = epochs.pin(reader);
        let seen = retire(7);
        for _ in 0..4 {
            let _ = epochs.maintain(dying, free);
            // SAFETY: its memory is the arena's.
            assert_ne!(unsafe { seen.as_ref() }.value.load(Ordering::Relaxed), POISON, "freed under a guard");
        }
        drop(guard);
    });
}
