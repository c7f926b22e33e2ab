//! Changes that are marked, against a plain map: while they are, all is as before for those who say so, and the others
//! wait for the end; then all have happened or none has, whether their core ends them or its heir.
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use epoch::Epochs;
use percpu::testing::{World, owner};
use proptest::prelude::*;
use radix::{INDEX_BITS, LockedRange, MAX_VALUE, RadixArray};
use sync::{Spin, Wait, WaitReason};

/// Indices that have slots of their own in these tests.
const SLOTS: u64 = 40;

type Values = BTreeMap<u64, u64>;
/// What an index is to hold, if anything.
type Changes = BTreeMap<u64, Option<u64>>;

fn with_array(test: impl FnOnce(&World, &Epochs, &RadixArray)) {
    let world = World::new(2);
    let epochs = Epochs::create(world.arena()).unwrap();
    // SAFETY: used with this arena and its one `Epochs`.
    let array = world.place(unsafe { RadixArray::new() }).unwrap();
    test(&world, epochs, array);
}

/// Waits for nothing: who must wait has failed.
struct Never;

impl Wait for Never {
    fn wait(&self, reason: WaitReason, _: u32) {
        panic!("waited for {reason:?}");
    }
}

/// What was waited for ends with the first wait.
struct Once<F: Fn()>(Cell<u32>, F);

impl<F: Fn()> Wait for Once<F> {
    fn wait(&self, _: WaitReason, _: u32) {
        if self.0.replace(self.0.get() + 1) == 0 {
            self.1();
        }
    }
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(MAX_VALUE)]
}

fn values() -> impl Strategy<Value = Values> {
    proptest::collection::btree_map(0..SLOTS, value(), 0..12)
}

fn changes() -> impl Strategy<Value = Changes> {
    proptest::collection::btree_map(0..SLOTS, proptest::option::of(value()), 0..6)
}

/// What becomes of the values, and which of the old and the new ones are in no slot then, in order.
fn expected(before: &Values, marked: &Changes, happened: bool) -> (Values, Vec<u64>) {
    let (mut after, mut gone) = (before.clone(), Vec::new());
    for (&index, &next) in marked {
        let old = before.get(&index).copied();
        if old != next {
            gone.extend(if happened { old } else { next });
        }
        match next {
            Some(next) if happened => after.insert(index, next),
            None if happened => after.remove(&index),
            _ => None,
        };
    }
    (after, gone)
}

fn mark(locked: &LockedRange<'_>, before: &Values, changes: &Changes, emptied: &BTreeSet<u64>) -> Changes {
    let mut marked = changes.clone();
    for (&index, &next) in changes {
        let slot = locked.slot(index).expect("a slot of its own");
        assert_eq!(slot.value(), before.get(&index).copied());
        slot.mark(next);
    }
    let mut asked = BTreeSet::new();
    locked.mark_empty(|index| {
        asked.insert(index);
        let concerns = emptied.contains(&index) && !changes.contains_key(&index);
        if concerns {
            marked.insert(index, None);
        }
        concerns
    });
    assert_eq!(asked, before.keys().copied().collect(), "what holds nothing needs no mark");
    marked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn marked_changes_happen_together_or_not_at_all(
        (before, wanted) in (values(), changes()),
        emptied in proptest::collection::btree_set(0..SLOTS, 0..20),
        (happened, by_heir) in any::<(bool, bool)>(),
    ) {
        with_array(|world, epochs, array| {
            let (reader, core) = (world.core(0), Box::leak(Box::new(world.core(1))));
            let (of_reader, guard) = (epochs.pin(&reader), Box::leak(Box::new(epochs.pin(core))));
            for index in 0..SLOTS {
                array.lock_slot(guard, index, &Spin).unwrap().change(|| before.get(&index).copied());
            }
            let locked = Box::leak(Box::new(array.lock(guard, 0..SLOTS, &Spin).unwrap()));
            let marked = mark(locked, &before, &wanted, &emptied);

            for index in 0..SLOTS + 4 {
                let asked = Cell::new(None);
                let is_as_before = |marker| { asked.set(Some(marker)); true };
                let seen = array.read_beside_marks(&of_reader, index, &Never, is_as_before, |value| value);
                assert_eq!(seen, before.get(&index).copied());
                assert_eq!(asked.get(), marked.contains_key(&index).then(|| core.index()), "asked for a mark alone");
                let holds = array.any_from(&of_reader, index, &Never, |_| true);
                assert_eq!(holds, before.range(index..).next().is_some());
            }

            let (after, expected_gone) = expected(&before, &marked, happened);
            let mut gone = Vec::new();
            if by_heir {
                // SAFETY: the leaked handles are never used again.
                unsafe {
                    let heir = world.take_over(1, owner(1), owner(2)).unwrap();
                    epochs.unpin_taken_over(&heir);
                    array.end_taken_over(&epochs.pin(&heir), happened, |value| gone.push(value));
                }
            } else {
                locked.end_marks(happened, |value| gone.push(value));
                // SAFETY: leaked above, and not used again.
                drop(unsafe { Box::from_raw(core::ptr::from_mut(locked)) });
            }
            assert_eq!(gone, expected_gone);
            for index in 0..SLOTS {
                let is_as_before = |_| panic!("a mark of {index} is left");
                let seen = array.read_beside_marks(&of_reader, index, &Never, is_as_before, |value| value);
                assert_eq!(seen, after.get(&index).copied());
                let slot = array.try_lock_slot(&of_reader, index).expect("no lock is left");
                assert_eq!((slot.value(), slot.marked()), (seen, None));
            }
        });
    }

    #[test]
    fn the_end_of_a_change_that_may_have_happened_is_awaited(
        (before, next) in (proptest::option::of(value()), proptest::option::of(value())),
        happened: bool,
    ) {
        with_array(|world, epochs, array| {
            let (reader, core) = (world.core(0), world.core(1));
            let (of_reader, guard) = (epochs.pin(&reader), epochs.pin(&core));
            array.lock_slot(&guard, 3, &Spin).unwrap().change(|| before);
            let after = if happened { next } else { before };
            for way in 0..3 {
                let slot = array.lock_slot(&guard, 3, &Spin).unwrap();
                slot.mark(next);
                assert_eq!((slot.value(), slot.marked()), (before, Some(next)));
                let end = Once(Cell::new(0), || {
                    let gone = if happened { before } else { next };
                    assert_eq!(slot.end_mark(happened), gone.filter(|_| before != next));
                });
                let seen = match way {
                    0 => array.read(&of_reader, 3, &end, |value| value),
                    1 => array.read_beside_marks(&of_reader, 3, &end, |_| false, |value| value),
                    _ => {
                        assert_eq!(array.any_from(&of_reader, 0, &end, |_| false), after.is_some());
                        after
                    }
                };
                assert_eq!((seen, end.0.get()), (after, 1));
                assert_eq!((slot.marked(), slot.end_mark(true), slot.value()), (None, None, after), "it has ended");
                slot.change(|| before);
            }
        });
    }

    #[test]
    fn an_index_and_all_behind_it_change_apart(
        (before, index) in (values(), 0..SLOTS + 4),
        next in proptest::option::of(value()),
    ) {
        with_array(|world, epochs, array| {
            let (reader, core) = (world.core(0), world.core(1));
            let (of_reader, guard) = (epochs.pin(&reader), epochs.pin(&core));
            for (&at, &value) in &before {
                array.lock_slot(&guard, at, &Spin).unwrap().change(|| Some(value));
            }
            let (slot, rest) = array.lock_slot_and_rest(&guard, index, &Spin).unwrap();
            assert_eq!(slot.value(), before.get(&index).copied());
            assert_eq!(array.try_settled(&of_reader, index), Err(core.index()));
            let mut gone = Values::new();
            rest.fill(None, |range, value| gone.extend(range.map(|at| (at, value))));
            assert_eq!(gone, before.clone().split_off(&(index + 1)));
            assert_eq!(array.get(&of_reader, index), slot.value(), "the first is none of the rest");
            drop(rest);
            assert_eq!(array.try_settled(&of_reader, index), Err(core.index()));
            slot.change(|| next);
            drop(slot);
            let mut after = before.clone();
            let _ = after.split_off(&index);
            after.extend(next.map(|next| (index, next)));
            let mut left = Values::new();
            array.for_each(&of_reader, |range, value| left.extend(range.map(|at| (at, value))));
            assert_eq!(left, after);
            drop(array.lock(&of_reader, 0..1 << INDEX_BITS, &Never).expect("no lock is left"));
        });
    }
}

#[test]
fn who_looks_while_a_mark_ends_looks_again() {
    for happened in [false, true] {
        with_array(|world, epochs, array| {
            let (reader, core) = (world.core(0), world.core(1));
            let (of_reader, guard) = (epochs.pin(&reader), epochs.pin(&core));
            let slot = array.lock_slot(&guard, 3, &Spin).unwrap();
            slot.change(|| Some(1));
            slot.mark(Some(2));
            let mut looks = Vec::new();
            let seen = array.read_beside_marks(
                &of_reader,
                3,
                &Spin,
                |_| true,
                |value| {
                    if looks.is_empty() {
                        slot.end_mark(happened);
                    }
                    looks.push(value);
                    value
                },
            );
            let after = if happened { Some(2) } else { Some(1) };
            assert_eq!((seen, looks), (after, vec![Some(1), after]));
        });
    }
}

#[test]
fn a_first_value_that_is_on_its_way_is_awaited_and_another_value_is_not() {
    with_array(|world, epochs, array| {
        let (reader, core) = (world.core(0), world.core(1));
        let (of_reader, guard) = (epochs.pin(&reader), epochs.pin(&core));
        let slot = array.lock_slot(&guard, 3, &Spin).unwrap();
        let look = || array.any_from(&of_reader, 0, &Never, |_| true);
        slot.change(|| {
            assert!(catch_unwind(AssertUnwindSafe(look)).is_err(), "there may be a value in a moment");
            Some(1)
        });
        slot.change(|| {
            assert!(look(), "whatever it stands for, there is a value");
            None
        });
        assert!(!look());
    });
}
