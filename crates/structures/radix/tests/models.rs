//! Range locks against each other, reads against folding: `RUSTFLAGS="--cfg loom" cargo test -p radix --release --test
//! models`. Nodes have two slots there.
#![cfg(any(loom, shuttle))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};

use epoch::{Epochs, Guard};
use percpu::model::ModelArena;
use radix::RadixArray;
use sync::Spin;
use sync::atomic::{AtomicU64, Ordering};

fn run<A, B>(first: bool, setup: impl FnOnce(&RadixArray, &Guard), a: A, b: B)
where
    A: FnOnce(&RadixArray, &Guard) + Send + 'static,
    B: FnOnce(&RadixArray, &Guard) + Send + 'static,
{
    let model = ModelArena::new(2, 128 << 10);
    let epochs = Epochs::create(model.arena()).unwrap();
    // SAFETY: used with this arena and its one `Epochs`.
    let array: &'static RadixArray = model.arena().place(unsafe { RadixArray::new() }).unwrap();
    let (zero, one) = (model.core(0), model.core(1));
    setup(array, &epochs.pin(&zero));
    let a = move || a(array, &epochs.pin(&zero));
    let b = move || b(array, &epochs.pin(&one));
    sync::model::both(first, a, b);
}

/// Overlapping ranges of an array that is empty, or folded, at first: expanded, or waited for, never held by two.
fn ranges_exclude(first: bool, folded: bool) {
    let inside = Arc::new(AtomicUsize::new(0));
    let role = |range: std::ops::Range<u64>| {
        let inside = Arc::clone(&inside);
        move |array: &RadixArray, guard: &Guard| {
            let locked = array.lock(guard, range, &Spin).unwrap();
            assert_eq!(inside.fetch_add(1, Plain::Relaxed), 0, "two cores hold index 1");
            locked.set(1, Some(1)).unwrap();
            inside.fetch_sub(1, Plain::Relaxed);
        }
    };
    let setup = move |array: &RadixArray, guard: &Guard| {
        if folded {
            array.lock(guard, 0..8, &Spin).unwrap().fill(Some(5), |_, _| {});
        }
    };
    run(first, setup, role(0..2), role(1..3));
}

/// A reader of an index while its node is folded away: it sees the old value or the new one. Then a lock that waited.
#[cfg(loom)]
fn reads_during_folding(first: bool) {
    let setup = |array: &RadixArray, guard: &Guard| {
        array.lock(guard, 0..4, &Spin).unwrap().set(1, Some(1)).unwrap();
    };
    run(
        first,
        setup,
        |array, guard| array.lock(guard, 0..2, &Spin).unwrap().fill(Some(2), |_, _| {}),
        |array, guard| {
            let seen = array.get(guard, 1);
            assert!(seen == Some(1) || seen == Some(2), "{seen:?}");
            let locked = array.lock(guard, 1..2, &Spin).unwrap();
            let old = locked.set(1, Some(3)).unwrap();
            assert!(old == Some(1) || old == Some(2), "{old:?}");
            drop(locked);
            let seen = array.get(guard, 1);
            assert!(
                seen == Some(3) || (seen == Some(2) && old == Some(1)),
                "{seen:?} after {old:?}: a change was lost"
            );
        },
    );
}

/// A change of what a value stands for while somebody reads: all of it or nothing.
fn reads_during_changes(first: bool, before: Option<u64>) {
    let words: &'static [AtomicU64; 2] = Box::leak(Box::new([AtomicU64::new(1), AtomicU64::new(1)]));
    // The index has a slot of its own, or gets it for the change.
    let setup = move |array: &RadixArray, guard: &Guard| {
        if before.is_some() {
            array.lock(guard, 0..1, &Spin).unwrap().set(0, before).unwrap();
        }
    };
    run(
        first,
        setup,
        |array, guard| {
            array.lock_slot(guard, 0, &Spin).unwrap().change(|| {
                words.iter().for_each(|word| word.store(2, Ordering::Relaxed));
                Some(2)
            });
        },
        move |array, guard| {
            let seen =
                array.read(guard, 0, &Spin, |value| (value, words.each_ref().map(|w| w.load(Ordering::Relaxed))));
            assert!(seen == (before, [1, 1]) || seen == (Some(2), [2, 2]), "{seen:?}");
        },
    );
}

/// The rest of the array is emptied while an index beyond its nodes is written: either comes first.
fn cuts_and_growth(first: bool) {
    let setup = |array: &RadixArray, guard: &Guard| {
        array.lock(guard, 0..1, &Spin).unwrap().set(0, Some(1)).unwrap();
    };
    run(
        first,
        setup,
        |array, guard| {
            let cut = array.lock_from(guard, 1, &Spin).unwrap();
            cut.fill(None, |_, _| {});
            assert!(!array.any_from(guard, 1, &Spin, |_| false), "something came in behind a cut");
        },
        |array, guard| {
            let slot = array.lock_slot(guard, 3, &Spin).unwrap();
            slot.change(|| Some(3));
            assert_eq!(array.get(guard, 3), Some(3));
        },
    );
}

fn check(at_least: usize, body: impl Fn(bool) + Copy + Send + Sync + 'static) {
    for first in [false, true] {
        sync::model::explore(2, at_least, move || body(first));
        sync::model::must_catch("radix: lock in two steps", 2, move || body(first));
    }
}

#[test]
fn locks() {
    check(10, |first| ranges_exclude(first, false));
    check(10, |first| ranges_exclude(first, true));
}

#[test]
fn changes() {
    for first in [false, true] {
        sync::model::explore(2, 20, move || reads_during_changes(first, Some(1)));
        for mutant in ["seqlock: reader without fence", "seqlock: writer without fence"] {
            sync::model::must_catch_reordering(mutant, 2, move || reads_during_changes(first, Some(1)));
        }
        sync::model::explore(2, 20, move || reads_during_changes(first, None));
        let fault = "radix: an index without a slot is looked at once";
        sync::model::must_catch(fault, 2, move || reads_during_changes(first, None));
        sync::model::explore(2, 20, move || cuts_and_growth(first));
    }
}

/// Nodes of more than two slots are not filled, nor folded, by so few values: `histories` find these faults there.
#[cfg(loom)]
#[test]
fn small_nodes() {
    for first in [false, true] {
        sync::model::must_catch("radix: cuts do not lock the root", 2, move || cuts_and_growth(first));
        sync::model::explore(2, 20, move || reads_during_folding(first));
        sync::model::must_catch("radix: folded slots are not dead", 2, move || reads_during_folding(first));
    }
}
