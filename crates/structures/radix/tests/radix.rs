//! The array against a plain map of runs, with allocation failures; locks under threads; a dead holder.
#![cfg(not(loom))]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use epoch::Epochs;
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OutOfMemory, OwnerId};
use proptest::prelude::*;
use radix::{INDEX_BITS, LockedRange, MAX_VALUE, RadixArray, free_retired};
use sync::{Spin, Wait, WaitReason};

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

fn with_array(test: impl FnOnce(&Arena, &Epochs, &RadixArray)) {
    let mut region = HeapRegion::new(8 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 4, chunk_bytes: 4096 }).unwrap();
    let epochs = Epochs::create(arena).unwrap();
    // SAFETY: used with this arena and its one `Epochs`.
    test(arena, epochs, arena.place(unsafe { RadixArray::new() }).unwrap());
}

fn maintain(epochs: &Epochs, core: &Core) {
    for _ in 0..4 {
        epochs.maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`.
            assert!(unsafe { free_retired(core, kind, object) });
        });
    }
}

#[test]
fn a_small_array_is_one_leaf_and_a_uniform_one_is_none() {
    with_array(|arena, epochs, array| {
        let core = arena.claim(0, owner()).unwrap();
        let guard = epochs.pin(&core);
        assert_eq!(array.get(&guard, 0), None);
        array.lock(&guard, 3..4, &Spin).unwrap().set(3, Some(7)).unwrap();
        assert_eq!(arena.live_bytes(), 1024);
        assert_eq!((array.get(&guard, 3), array.get(&guard, 2), array.get(&guard, u64::MAX)), (Some(7), None, None));
        array.lock(&guard, 1000..1001, &Spin).unwrap().set(1000, Some(MAX_VALUE)).unwrap();
        assert_eq!(arena.live_bytes(), 3 * 1024, "a second leaf and a node above both");
        assert_eq!((array.get(&guard, 3), array.get(&guard, 1000)), (Some(7), Some(MAX_VALUE)));
        let mut old = Vec::new();
        array.lock(&guard, 0..1 << INDEX_BITS, &Spin).unwrap().fill(None, |range, value| old.push((range, value)));
        assert_eq!(old, [(3..4, 7), (1000..1001, MAX_VALUE)]);
        drop(guard);
        maintain(epochs, &core);
        assert!(arena.live_bytes() <= 9 * 1024, "leaves were folded");
        // SAFETY: the test is over.
        unsafe { array.destroy(&core) };
        assert_eq!(arena.live_bytes(), 0);
    });
}

#[test]
fn all_of_an_array_without_a_node_is_locked_without_one() {
    with_array(|arena, epochs, array| {
        let (core, other) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let (guard, of_other) = (epochs.pin(&core), epochs.pin(&other));
        let all = array.lock(&guard, 0..1 << INDEX_BITS, &Spin).unwrap();
        all.fill(Some(7), |_, _| unreachable!("it holds nothing"));
        assert_eq!(array.try_settled(&of_other, 1 << 40), Err(core.index()));
        drop(all);
        assert_eq!([0, 1 << 40].map(|index| array.try_settled(&of_other, index)), [Ok(Some(7)); 2]);
        assert_eq!(arena.live_bytes(), 0);
    });
}

#[test]
fn an_array_that_is_locked_to_its_end_does_not_grow() {
    with_array(|arena, epochs, array| {
        let (core, other) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let (guard, of_other) = (epochs.pin(&core), epochs.pin(&other));
        drop(array.lock_slot(&guard, 3, &Spin).unwrap());
        let cut = array.lock_from(&guard, 5, &Spin).unwrap();
        for index in [5, 1 << 20, (1 << INDEX_BITS) - 1] {
            let locks = || drop(array.lock_slot(&of_other, index, &GiveUp));
            let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(locks)).is_err();
            assert!(waited, "{index} was locked beside the cut");
        }
        drop(array.lock_slot(&of_other, 4, &GiveUp).expect("it lies before the cut"));
        drop(cut);
        drop(array.lock_slot(&of_other, 1 << 20, &GiveUp).expect("nobody has it"));
    });
}

#[test]
fn what_is_there_is_emptied_one_by_one() {
    with_array(|arena, epochs, array| {
        let core = arena.claim(0, owner()).unwrap();
        let guard = epochs.pin(&core);
        assert!(array.is_small(), "an array without a node");
        array.empty_each(&guard, &Spin, |_| unreachable!("it holds nothing"));
        for (index, value) in [(3, 7), (9, 8)] {
            array.lock_slot(&guard, index, &Spin).unwrap().change(|| Some(value));
        }
        assert!(array.is_small(), "one leaf");
        array.lock_slot(&guard, 1000, &Spin).unwrap().change(|| Some(9));
        assert!(!array.is_small());
        let mut old = Vec::new();
        array.empty_each(&guard, &Spin, |value| old.push(value));
        assert_eq!(old, [7, 8, 9], "from left to right");
        assert!(!array.any_from(&guard, 0, &Spin, |_| false));
        assert_eq!(arena.live_bytes(), 3 * 1024, "nodes stay");
        drop(guard);
        // SAFETY: the test is over.
        unsafe { array.destroy(&core) };
    });
}

#[test]
fn what_is_locked_is_not_settled_and_not_locked_again() {
    with_array(|arena, epochs, array| {
        let (core, other) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let (guard, of_other) = (epochs.pin(&core), epochs.pin(&other));
        array.lock(&guard, 3..4, &Spin).unwrap().set(3, Some(7)).unwrap();
        assert_eq!([3, 4, 1 << 20].map(|index| array.settled(&of_other, index, &Spin)), [Some(7), None, None]);
        let locked = array.try_lock_slot(&guard, 3).expect("nobody has it");
        assert_eq!(array.try_settled(&of_other, 3), Err(core.index()));
        assert_eq!(array.try_settled(&of_other, 4), Ok(None));
        assert!(array.try_lock_slot(&of_other, 3).is_none());
        assert!(array.try_lock_slot(&of_other, 1 << 20).is_none(), "it has no slot of its own");
        drop(locked);
        assert_eq!(array.try_lock_slot(&of_other, 3).map(|slot| slot.value()), Some(Some(7)));
    });
}

/// One that waits for the lock gets it unlocked, once, with another value.
struct Unlock<'g>(RefCell<Option<LockedRange<'g>>>);

impl Wait for Unlock<'_> {
    fn wait(&self, reason: WaitReason, _: u32) {
        assert_eq!(reason, WaitReason::Lock { holder: 0 });
        self.0.take().expect("it was unlocked").fill(Some(8), |_, _| ());
    }
}

#[test]
fn a_walk_over_what_is_settled_waits_for_locks_and_for_no_other() {
    with_array(|arena, epochs, array| {
        let (core, other) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let (guard, of_other) = (epochs.pin(&core), epochs.pin(&other));
        array.lock(&guard, 3..40, &Spin).unwrap().fill(Some(7), |_, _| ());
        // All of a leaf and a part of another: the first is folded away when the range is filled.
        drop(array.lock_slot(&guard, 20, &Spin).unwrap());
        let unlock = Unlock(RefCell::new(Some(array.lock(&guard, 16..36, &Spin).unwrap())));
        let walk = |range: Range<u64>| {
            let mut seen = Vec::new();
            array.for_each_settled_in(&of_other, range, &unlock, |part, value| {
                seen.extend(part.map(|index| (index, value)));
            });
            seen
        };
        let sevens = |range: Range<u64>| range.map(|index| (index, 7));
        assert!(walk(0..16).into_iter().eq(sevens(3..16)) && walk(36..90).into_iter().eq(sevens(36..40)));
        assert!(unlock.0.borrow().is_some(), "nothing was waited for");
        let eights = (16..36).map(|index| (index, 8));
        assert!(walk(0..90).into_iter().eq(sevens(3..16).chain(eights).chain(sevens(36..40))));
    });
}

#[test]
fn a_range_that_memory_does_not_suffice_for_frees_no_others_locks() {
    with_array(|arena, epochs, array| {
        let (core, other) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let (guard, of_other) = (epochs.pin(&core), epochs.pin(&other));
        array.lock_slot(&guard, 1000, &Spin).unwrap().change(|| Some(9));
        let held = array.lock_slot(&guard, 1000, &Spin).unwrap();
        other.fail_allocations_after(Some(0));
        assert!(array.lock(&of_other, 5..1001, &Spin).is_err(), "the slots from 5 on would have to be made");
        assert_eq!(array.try_settled(&of_other, 1000), Err(core.index()));
        assert!(array.try_lock_slot(&of_other, 1000).is_none());
        drop(held);
        other.fail_allocations_after(None);
        drop(array.lock(&of_other, 5..1001, &Spin).unwrap());
    });
}

#[test]
fn a_dead_holders_locks_are_cleared() {
    with_array(|arena, epochs, array| {
        let core = arena.claim(0, owner()).unwrap();
        let dead = Box::leak(Box::new(arena.claim(1, owner()).unwrap()));
        let guard = Box::leak(Box::new(epochs.pin(dead)));
        std::mem::forget(array.lock(guard, 5..40, &Spin).unwrap());
        // SAFETY: the leaked handles are never used again.
        unsafe {
            let heir = arena.take_over(1, owner(), OwnerId::new(2).unwrap()).unwrap();
            epochs.unpin_taken_over(&heir);
            array.unlock_taken_over(&epochs.pin(&heir));
        }
        let guard = epochs.pin(&core);
        drop(array.lock(&guard, 0..100, &Spin).unwrap());
    });
}

/// A death in the middle of a change left the slot's version odd, and readers of the index waited forever.
#[test]
fn a_change_in_whose_middle_its_holder_died_ends_with_its_lock() {
    with_array(|arena, epochs, array| {
        let core = arena.claim(0, owner()).unwrap();
        let dead = Box::leak(Box::new(arena.claim(1, owner()).unwrap()));
        let guard = Box::leak(Box::new(epochs.pin(dead)));
        let slot = Box::leak(Box::new(array.lock_slot(guard, 5, &Spin).unwrap()));
        slot.change(|| Some(3));
        let death =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slot.change(|| panic!("the planted death"))));
        assert!(death.is_err());
        // SAFETY: the leaked handles are never used again.
        unsafe {
            let heir = arena.take_over(1, owner(), OwnerId::new(2).unwrap()).unwrap();
            epochs.unpin_taken_over(&heir);
            array.unlock_taken_over(&epochs.pin(&heir));
        }
        let guard = epochs.pin(&core);
        let mut looks = 0;
        let found = array.read(&guard, 5, &GiveUp, |value| {
            looks += 1;
            value
        });
        assert_eq!((found, looks), (Some(3), 1));
    });
}

/// Waits for nothing: who must wait has failed.
struct GiveUp;

impl Wait for GiveUp {
    fn wait(&self, reason: WaitReason, _: u32) {
        panic!("waited for {reason:?}");
    }
}

#[test]
fn locked_ranges_exclude_each_other_under_threads() {
    const ROUNDS: u64 = 1_500;
    with_array(|arena, epochs, array| {
        std::thread::scope(|scope| {
            for number in 0..3_u64 {
                scope.spawn(move || {
                    let core = arena.claim(number as usize, owner()).unwrap();
                    for round in 0..ROUNDS {
                        let guard = epochs.pin(&core);
                        let start = (round * 7 + number * 3) % 90;
                        let locked = array.lock(&guard, start..start + 20, &Spin).unwrap();
                        if round % 8 == 0 {
                            locked.fill(None, |_, _| {});
                        }
                        // Read, then write: a lost update would show that two cores held an index.
                        for index in [start, start + 10] {
                            locked.set(index, Some(number)).unwrap();
                            for _ in 0..3 {
                                assert_eq!(array.get(&guard, index), Some(number));
                            }
                        }
                        drop(locked);
                        drop(guard);
                        if round % 16 == 0 {
                            maintain(epochs, &core);
                        }
                    }
                });
            }
        });
        let core = arena.claim(0, owner()).unwrap();
        // SAFETY: all threads have ended.
        unsafe { array.destroy(&core) };
        // Who has reported is waited for, for eight calls.
        for _ in 0..8 {
            maintain(epochs, &core);
            arena.for_each_idle_core(owner(), |idle| maintain(epochs, idle));
        }
        assert_eq!(arena.live_bytes(), 0);
    });
}

#[test]
fn reads_are_whole_and_cuts_exclude_growth_under_threads() {
    const ROUNDS: u64 = 1_500;
    with_array(|arena, epochs, array| {
        // What index i stands for: two words that must be equal.
        let words: Vec<[AtomicU64; 2]> = (0..64).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
        let inside = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for number in 0..2_u64 {
                let (words, inside) = (&words, &inside);
                scope.spawn(move || {
                    let core = arena.claim(number as usize, owner()).unwrap();
                    for round in 0..ROUNDS {
                        let guard = epochs.pin(&core);
                        let index = (round * 7 + number * 3) % 64;
                        if round % 5 == 4 {
                            let cut = array.lock_from(&guard, index, &Spin).unwrap();
                            assert_eq!(inside.fetch_or(1 << 63, Ordering::SeqCst) >> 63, 0, "two cuts");
                            cut.fill(None, |_, _| {});
                            assert_eq!(array.get(&guard, 63), None, "something came in behind a cut");
                            inside.fetch_and(!(1 << 63), Ordering::SeqCst);
                        } else {
                            let slot = array.lock_slot(&guard, index, &Spin).unwrap();
                            slot.change(|| {
                                let next = words[index as usize][0].load(Ordering::Relaxed) + 1;
                                words[index as usize].iter().for_each(|word| word.store(next, Ordering::Relaxed));
                                Some(next)
                            });
                        }
                        drop(guard);
                        if round % 16 == 0 {
                            maintain(epochs, &core);
                        }
                    }
                });
            }
            scope.spawn(|| {
                let core = arena.claim(2, owner()).unwrap();
                for round in 0..ROUNDS {
                    let guard = epochs.pin(&core);
                    let index = round % 64;
                    let (value, seen) = array.read(&guard, index, &Spin, |value| {
                        (value, words[index as usize].each_ref().map(|word| word.load(Ordering::Relaxed)))
                    });
                    assert_eq!(seen[0], seen[1], "a torn read");
                    assert!(value.is_none_or(|value| value == seen[0]));
                }
            });
        });
        let core = arena.claim(0, owner()).unwrap();
        // SAFETY: all threads have ended.
        unsafe { array.destroy(&core) };
    });
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64, Option<u64>),
    Fill(u64, u64, Option<u64>),
    FailedLock(u64, u64, u32),
    Change(u64, Option<u64>),
    Cut(u64),
    FailedCut(u64, u32),
    Maintain,
}

fn step() -> impl Strategy<Value = Step> {
    let index = prop_oneof![0..40_u64, 0..3000_u64, Just((1 << INDEX_BITS) - 2)];
    let value = || proptest::option::of(0..3_u64);
    prop_oneof![
        4 => (index.clone(), value()).prop_map(|(index, value)| Step::Set(index, value)),
        3 => (index.clone(), 1..2000_u64, value()).prop_map(|(index, length, value)| Step::Fill(index, length, value)),
        2 => (index.clone(), value()).prop_map(|(index, value)| Step::Change(index, value)),
        1 => index.clone().prop_map(Step::Cut),
        1 => (index.clone(), 0..3_u32).prop_map(|(index, allowed)| Step::FailedCut(index, allowed)),
        1 => (index, 1..100_u64, 0..3_u32).prop_map(|(index, length, allowed)| Step::FailedLock(index, length, allowed)),
        1 => Just(Step::Maintain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arrays_follow_the_model(steps in proptest::collection::vec(step(), 0..60)) {
        with_array(|arena, epochs, array| {
            let core = arena.claim(0, owner()).unwrap();
            let mut model = BTreeMap::<u64, u64>::new();
            for step in steps {
                let guard = epochs.pin(&core);
                let range = |start: u64, length: u64| start..(start + length).min(1 << INDEX_BITS);
                match step {
                    Step::Set(index, value) => {
                        let old = array.lock(&guard, index..index + 1, &Spin).unwrap().set(index, value).unwrap();
                        assert_eq!(old, model.get(&index).copied());
                        match value {
                            Some(value) => model.insert(index, value),
                            None => model.remove(&index),
                        };
                    }
                    Step::Fill(start, length, value) => {
                        let range = range(start, length);
                        let mut old = BTreeMap::new();
                        array.lock(&guard, range.clone(), &Spin).unwrap().fill(value, |range, value| {
                            old.extend(range.map(|index| (index, value)));
                        });
                        let expected: BTreeMap<_, _> = model.range(range.clone()).map(|(i, v)| (*i, *v)).collect();
                        assert_eq!(old, expected);
                        for index in range {
                            match value {
                                Some(value) => model.insert(index, value),
                                None => model.remove(&index),
                            };
                        }
                    }
                    Step::FailedLock(start, length, allowed) => {
                        core.fail_allocations_after(Some(allowed));
                        if let Err(error) = array.lock(&guard, range(start, length), &Spin) {
                            assert_eq!(error, OutOfMemory);
                        }
                        core.fail_allocations_after(None);
                        // Nothing stays locked.
                        drop(array.lock(&guard, range(start, length), &Spin).unwrap());
                    }
                    Step::Change(index, value) => {
                        let slot = array.lock_slot(&guard, index, &Spin).unwrap();
                        assert_eq!(slot.value(), model.get(&index).copied());
                        slot.change(|| value);
                        assert_eq!(slot.value(), value);
                        match value {
                            Some(value) => model.insert(index, value),
                            None => model.remove(&index),
                        };
                    }
                    Step::Cut(start) => {
                        let mut old = BTreeMap::new();
                        array.lock_from(&guard, start, &Spin).unwrap().fill(None, |range, value| {
                            old.extend(range.map(|index| (index, value)));
                        });
                        assert_eq!(old, model.split_off(&start));
                    }
                    Step::FailedCut(start, allowed) => {
                        core.fail_allocations_after(Some(allowed));
                        if let Err(error) = array.lock_from(&guard, start, &Spin) {
                            assert_eq!(error, OutOfMemory);
                        }
                        core.fail_allocations_after(None);
                        drop(array.lock_from(&guard, 0, &Spin).unwrap());
                    }
                    Step::Maintain => {
                        drop(guard);
                        maintain(epochs, &core);
                    }
                }
                let guard = epochs.pin(&core);
                for index in (0..60).chain([1000, 2999, (1 << INDEX_BITS) - 2]) {
                    assert_eq!(array.get(&guard, index), model.get(&index).copied());
                    assert_eq!(array.read(&guard, index, &Spin, |value| value), model.get(&index).copied());
                    assert_eq!(array.any_from(&guard, index, &Spin, |_| false), model.range(index..).next().is_some());
                    let empty = (index..).find(|index| !model.contains_key(index)).unwrap();
                    assert_eq!(array.first_empty(&guard, index), empty);
                }
                let mut settled = BTreeMap::new();
                array.for_each_settled_in(&guard, 7..2999, &GiveUp, |range, value| {
                    settled.extend(range.map(|index| (index, value)));
                });
                assert!(settled.iter().eq(model.range(7..2999)));
            }
            let mut all = BTreeMap::new();
            array.for_each(&epochs.pin(&core), |range, value| all.extend(range.map(|index| (index, value))));
            assert_eq!(all, model);
            // SAFETY: the test is over.
            unsafe { array.destroy(&core) };
            maintain(epochs, &core);
            assert_eq!(arena.live_bytes(), 0);
        });
    }
}
