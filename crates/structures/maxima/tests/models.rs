//! Raises, evictions, resets and exact reads against each other: `RUSTFLAGS="--cfg loom" cargo test -p maxima --release
//! --test models`.
#![cfg(any(loom, shuttle))]

// What came of an execution: no part of the model.
use std::sync::atomic::{AtomicU64, Ordering};

use maxima::{Maxima, MaximaConfig, Maximum};
use percpu::model::ModelArena;
use percpu::{Arena, Core};
use sync::Spin;

type Role = Box<dyn FnOnce(&Maxima<1>, &Core<'static>) + Send>;

fn raise(maxima: &Maxima<1>, core: &Core, object: &Maximum<1>, word: u64) {
    // SAFETY: objects live in the model's arena.
    unsafe { maxima.raise(core, object, [word], &Spin) };
}

/// Runs one role per core, the threads started in the given order.
fn run(order: &[usize], slots_per_core: usize, roles: impl FnOnce(&'static Arena, &'static Maxima<1>) -> Vec<Role>) {
    let model = ModelArena::new(3, 256 << 10);
    let maxima = Maxima::create(model.arena(), MaximaConfig { slots_per_core, seed: 1 }).unwrap();
    let mut roles: Vec<Option<Role>> = roles(model.arena(), maxima).into_iter().map(Some).collect();
    let cores: Vec<_> = (0..roles.len()).map(|number| model.core(number)).collect();
    let mut cores: Vec<_> = cores.into_iter().map(Some).collect();
    let threads: Vec<_> = order
        .iter()
        .map(|&number| {
            let (role, core) = (roles[number].take().unwrap(), cores[number].take().unwrap());
            sync::model::thread::spawn(move || role(maxima, &core))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// 3 on core 0, then 2 on core 2, by one thread: who reads 2 has missed 3.
fn exact(order: &'static [usize]) {
    run(order, 2, |arena, _| {
        let object = arena.place(Maximum::new([1])).unwrap();
        let later = arena.claim(2, percpu::OwnerId::new(2).unwrap()).unwrap();
        vec![
            Box::new(move |maxima, core| {
                raise(maxima, core, object, 3);
                raise(maxima, &later, object, 2);
            }),
            Box::new(move |maxima, _| {
                assert_ne!(maxima.try_read(object), Some([2]), "a maximum that never was");
            }),
        ]
    });
}

/// Each of two cores raises an object of its own, and then reads the other's: one of them sees what the other did.
fn one_sees_the_other(order: &'static [usize]) {
    let seen: &'static [AtomicU64; 2] = Box::leak(Box::new([const { AtomicU64::new(0) }; 2]));
    run(order, 2, |arena, _| {
        let objects = [(); 2].map(|()| &*arena.place(Maximum::new([1])).unwrap());
        let role = |own: usize| -> Role {
            Box::new(move |maxima, core| {
                raise(maxima, core, objects[own], 3);
                // A read in the middle of a raise sees that there is one.
                let [word] = maxima.try_read(objects[1 - own]).unwrap_or([3]);
                seen[own].store(word, Ordering::Relaxed);
            })
        };
        vec![role(0), role(1)]
    });
    assert!(seen.iter().any(|word| word.load(Ordering::Relaxed) == 3), "neither saw what the other did");
}

/// An eviction moves words to the object while somebody reads.
fn evicted(order: &'static [usize]) {
    run(order, 1, |arena, maxima| {
        let object = arena.place(Maximum::new([1])).unwrap();
        let other = arena.place(Maximum::new([0])).unwrap();
        let _ = maxima;
        let ready: &'static _ = Box::leak(Box::new(sync::atomic::AtomicUsize::new(0)));
        vec![
            Box::new(move |maxima, core| {
                raise(maxima, core, object, 3);
                ready.store(1, sync::atomic::Ordering::Release);
                raise(maxima, core, other, 9);
            }),
            Box::new(move |maxima, _| {
                if ready.load(sync::atomic::Ordering::Acquire) == 1 {
                    assert_eq!(maxima.read(object, &Spin), [3], "lost in an eviction");
                }
            }),
        ]
    });
}

/// A core that says that it holds an object raises it, and gives the words to the object, while somebody asks the holders.
fn of_a_holder(order: &'static [usize]) {
    run(order, 1, |arena, _| {
        let object = arena.place(Maximum::listed([1])).unwrap();
        let other = arena.place(Maximum::new([0])).unwrap();
        let raised: &'static _ = Box::leak(Box::new(sync::atomic::AtomicUsize::new(0)));
        vec![
            Box::new(move |maxima, core| {
                raise(maxima, core, object, 3);
                raised.store(1, sync::atomic::Ordering::Release);
                raise(maxima, core, other, 9);
            }),
            Box::new(move |maxima, _| {
                let is_raised = raised.load(sync::atomic::Ordering::Acquire) == 1;
                let [seen] = maxima.read(object, &Spin);
                assert!(seen == 3 || (seen == 1 && !is_raised), "{seen}: a holder was not asked");
            }),
        ]
    });
}

/// As `exact`, where the second core is known to hold the object, and the first one says so now.
fn a_holder_that_comes(order: &'static [usize]) {
    run(order, 2, |arena, maxima| {
        let object = arena.place(Maximum::listed([1])).unwrap();
        let later = arena.claim(2, percpu::OwnerId::new(2).unwrap()).unwrap();
        // Changes nothing, but takes a slot.
        raise(maxima, &later, object, 1);
        vec![
            Box::new(move |maxima, core| {
                raise(maxima, core, object, 3);
                raise(maxima, &later, object, 2);
            }),
            Box::new(move |maxima, _| {
                assert_ne!(maxima.try_read(object), Some([2]), "a maximum that never was");
            }),
        ]
    });
}

/// A raise during a reset: it counts as before or as after.
fn reset(order: &'static [usize]) {
    run(order, 2, |arena, _| {
        let object = arena.place(Maximum::new([8])).unwrap();
        vec![
            Box::new(move |maxima, core| {
                raise(maxima, core, object, 9);
                maxima.flush(core, &Spin);
                let [seen] = maxima.read(object, &Spin);
                assert!(seen == 9 || seen == 2, "{seen}");
            }),
            Box::new(move |maxima, core| {
                let (reset, [before]) = maxima.reset(core, object, &Spin);
                assert!(before == 8 || before == 9, "{before}");
                reset.finish([2]);
                let [seen] = maxima.read(object, &Spin);
                assert!(seen == 2 || seen == 9, "{seen}");
                assert!(!(before == 9 && seen == 9), "an old generation counts");
            }),
        ]
    });
}

fn check(preemptions: usize, orders: &[&'static [usize]], mutant: &'static str, body: fn(&'static [usize])) {
    for &order in orders {
        sync::model::explore(preemptions, 10, move || body(order));
        sync::model::must_catch(mutant, preemptions, move || body(order));
    }
}

#[test]
fn reads_are_exact() {
    check(1, &[&[0, 1], &[1, 0]], "maxima: single collect", exact);
}

#[test]
fn holders_are_enough_to_ask() {
    let orders: [&[usize]; 2] = [&[0, 1], &[1, 0]];
    check(2, &orders, "percpu: a holder is not noted", of_a_holder);
    check(2, &orders, "maxima: a core is struck off before its words are applied", of_a_holder);
    check(2, &orders, "maxima: holders are looked at once", a_holder_that_comes);
}

#[test]
fn of_two_that_raise_and_read_one_sees_the_other() {
    for order in [&[0, 1], &[1, 0]] {
        sync::model::explore(2, 2, move || one_sees_the_other(order));
        sync::model::must_catch_reordering("percpu: no fence before the limit", 2, move || one_sees_the_other(order));
    }
}

#[test]
fn evictions_lose_nothing() {
    check(2, &[&[0, 1], &[1, 0]], "maxima: slots are emptied first", evicted);
}

#[test]
fn resets_end_generations() {
    check(2, &[&[0, 1], &[1, 0]], "maxima: reset keeps its generation", reset);
}
