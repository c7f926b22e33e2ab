//! Maxima against a plain map, with evictions and resets; exact under threads; a dead owner.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU64, Ordering};

use maxima::{Maxima, MaximaConfig, Maximum};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::prelude::*;
use sync::Spin;

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

fn with_maxima(slots_per_core: usize, test: impl FnOnce(&Arena, &Maxima<2>)) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(4)).unwrap();
    test(arena, Maxima::create(arena, MaximaConfig { slots_per_core, seed: 1 }).unwrap());
}

fn raise(maxima: &Maxima<2>, core: &Core, object: &Maximum<2>, words: [u64; 2]) {
    // SAFETY: objects of these tests live in the arena forever.
    unsafe { maxima.raise(core, object, words, &Spin) };
}

#[test]
fn an_object_is_a_line() {
    assert_eq!((size_of::<Maximum<1>>(), size_of::<Maximum<5>>()), (64, 64));
}

/// Cores 3 and 11 of 20 raise words, and all read them: soon these two are asked alone, though one of them goes on having
/// the object in its cache from before. So it is with both ways to flush.
#[test]
fn of_many_cores_those_are_asked_that_have_raised_words() {
    for keeps in [false, true] {
        let mut region = HeapRegion::new(4 << 20).unwrap();
        let arena = Arena::create(&mut region, ArenaConfig::new(20)).unwrap();
        let maxima: &Maxima<2> = Maxima::create(arena, MaximaConfig { slots_per_core: 4, seed: 1 }).unwrap();
        let cores: Vec<_> = (0..20).map(|number| arena.claim(number, owner()).unwrap()).collect();
        let object = arena.place(Maximum::new([0, 0])).unwrap();
        let mut round = 0;
        let mut turn = |raising: &[usize]| {
            round += 1;
            for core in &cores {
                if raising.contains(&core.index().get()) {
                    raise(maxima, core, object, [round, round * 100 + core.index().get() as u64]);
                }
                sync::atomic::fence(Ordering::SeqCst);
                let most = raising.iter().filter(|number| **number <= core.index().get()).max();
                // SAFETY: placed in the arena for good.
                let [first, second] = unsafe { maxima.read_after_fence(core, object, &Spin) };
                if let Some(most) = most {
                    assert_eq!([first, second], [round, round * 100 + *most as u64]);
                }
            }
            for core in &cores {
                // Each core is maintained once in a round.
                maxima.narrow(core, || Some(round));
                if keeps {
                    maxima.flush_unchanged(core, &Spin)
                } else {
                    maxima.flush(core, &Spin)
                };
            }
            object.has_list()
        };
        let turns_until = |turn: &mut dyn FnMut() -> bool| (0..60).find(|_| turn());
        let first = turns_until(&mut || turn(&[3, 11])).expect("a list");
        assert!(first >= 3, "{first}: what was raised before the list has to be noted, or come to the object");
        assert!((0..20).all(|_| turn(&[3, 11])), "it stays");
        assert!(!turn(&[3, 11, 5, 7]), "there is no room for two more");
        turns_until(&mut || turn(&[7])).expect("a list again");
    }
}

#[test]
fn a_floor_has_what_the_cores_that_are_asked_have_raised() {
    with_maxima(4, |arena, maxima| {
        let [zero, one, two] = [0, 1, 2].map(|number| arena.claim(number, owner()).unwrap());
        let object = arena.place(Maximum::new([5, 5])).unwrap();
        raise(maxima, &zero, object, [9, 6]);
        raise(maxima, &one, object, [7, 8]);
        let floor = |cores: &[&Core]| {
            maxima.floor_of_cores(object, cores.iter().map(|core| core.index())).map(|floor| floor.words)
        };
        assert_eq!(floor(&[]), Some([5, 5]));
        assert_eq!(floor(&[&two]), Some([5, 5]));
        assert_eq!(floor(&[&one]), Some([7, 8]));
        assert_eq!(floor(&[&one, &zero]), Some([9, 8]));
        let (reset, _) = maxima.reset(&two, object, &Spin);
        assert_eq!(floor(&[&zero]), None);
        reset.finish([1, 1]);
        assert_eq!(floor(&[&zero, &one]), Some([1, 1]), "raised in an older generation");
    });
}

#[test]
fn what_a_core_raised_is_seen_at_once_and_never_undone() {
    with_maxima(4, |arena, maxima| {
        let (zero, one) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let object = arena.place(Maximum::new([5, 5])).unwrap();
        raise(maxima, &zero, object, [7, 1]);
        raise(maxima, &one, object, [6, 9]);
        assert_eq!(maxima.read(object, &Spin), [7, 9]);
        maxima.flush(&one, &Spin);
        raise(maxima, &zero, object, [1, 1]);
        assert_eq!(maxima.read(object, &Spin), [7, 9]);
    });
}

#[test]
fn a_reset_that_a_panic_ends_leaves_what_there_was() {
    with_maxima(4, |arena, maxima| {
        let core = arena.claim(0, owner()).unwrap();
        let object = arena.place(Maximum::new([5, 5])).unwrap();
        raise(maxima, &core, object, [7, 1]);
        drop(maxima.reset(&core, object, &Spin));
        assert_eq!(maxima.try_read(object), Some([7, 5]), "nobody waits for it");
        raise(maxima, &core, object, [8, 1]);
        assert_eq!(maxima.try_read(object), Some([8, 5]));
    });
}

#[test]
fn a_reset_ends_a_generation_and_keeps_what_is_raised_meanwhile() {
    with_maxima(4, |arena, maxima| {
        let (zero, one) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let object = arena.place(Maximum::new([5, 5])).unwrap();
        raise(maxima, &one, object, [90, 90]);
        let (reset, before) = maxima.reset(&zero, object, &Spin);
        assert_eq!(before, [90, 90]);
        raise(maxima, &one, object, [3, 0]);
        reset.finish([2, 2]);
        assert_eq!(maxima.read(object, &Spin), [3, 2]);
        maxima.flush(&one, &Spin);
        assert_eq!(maxima.read(object, &Spin), [3, 2]);
    });
}

#[test]
fn a_dead_owners_reset_is_completed() {
    with_maxima(4, |arena, maxima| {
        let object = arena.place(Maximum::new([5, 5])).unwrap();
        let dead = Box::leak(Box::new(arena.claim(0, owner()).unwrap()));
        std::mem::forget(maxima.reset(dead, object, &Spin));
        // SAFETY: the leaked handle and reset are never used again.
        unsafe {
            let heir = arena.take_over(0, owner(), OwnerId::new(2).unwrap()).unwrap();
            object.repair_taken_over(&heir, [4, 4]);
            maxima.repair_taken_over(&heir);
        }
        assert_eq!(maxima.read(object, &Spin), [4, 4]);
    });
}

/// Ends all turns if its thread fails: those that wait for theirs would wait forever.
struct Turns<'a>(&'a AtomicU64);

impl Turns<'_> {
    fn wait_for(&self, round: u64) {
        while self.0.load(Ordering::Acquire) < round {
            std::thread::yield_now();
        }
        assert_eq!(self.0.load(Ordering::Acquire), round, "another thread has failed");
    }
}

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(u64::MAX, Ordering::Release);
        }
    }
}

#[test]
fn a_maximum_that_never_was_is_never_read_under_threads() {
    const ROUNDS: u64 = 400;
    with_maxima(2, |arena, maxima| {
        let object = arena.place(Maximum::new([0, 0])).unwrap();
        let others: Vec<_> = (0..4).map(|_| arena.place(Maximum::new([0, 0])).unwrap()).collect();
        let turn = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for number in 0..2 {
                let (turn, others) = (&turn, &others);
                scope.spawn(move || {
                    let turns = Turns(turn);
                    let core = arena.claim(number as usize, owner()).unwrap();
                    // In turn, so that values rise from core to core, each by one; other objects cause evictions.
                    for round in (number..ROUNDS).step_by(2) {
                        turns.wait_for(round);
                        raise(maxima, &core, object, [round + 1, 0]);
                        turn.fetch_max(round + 1, Ordering::Release);
                        raise(maxima, &core, others[round as usize % 4], [round, round]);
                    }
                });
            }
            scope.spawn(|| {
                let mut last = 0;
                while last < ROUNDS {
                    let done = turn.load(Ordering::Acquire);
                    let [now, _] = maxima.read(object, &Spin);
                    assert!(now >= done && now >= last, "{now} after {done} and {last}");
                    last = now;
                }
            });
        });
    });
}

#[derive(Clone, Debug)]
enum Step {
    Raise { core: usize, object: usize, words: [u64; 2] },
    Reset { core: usize, object: usize, words: [u64; 2] },
    Flush(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let words = || [0..50_u64, 0..50_u64];
    prop_oneof![
        6 => (0..4usize, 0..6usize, words()).prop_map(|(core, object, words)| Step::Raise { core, object, words }),
        1 => (0..4usize, 0..6usize, words()).prop_map(|(core, object, words)| Step::Reset { core, object, words }),
        1 => (0..4usize).prop_map(Step::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn maxima_follow_the_model(steps in proptest::collection::vec(step(), 0..80)) {
        with_maxima(2, |arena, maxima| {
            let cores: Vec<_> = (0..4).map(|number| arena.claim(number, owner()).unwrap()).collect();
            let objects: Vec<_> = (0..6).map(|_| arena.place(Maximum::new([0, 0])).unwrap()).collect();
            let mut model = [[0; 2]; 6];
            for step in steps {
                match step {
                    Step::Raise { core, object, words } => {
                        raise(maxima, &cores[core], objects[object], words);
                        for (mine, word) in model[object].iter_mut().zip(words) {
                            *mine = word.max(*mine);
                        }
                    }
                    Step::Reset { core, object, words } => {
                        let (reset, before) = maxima.reset(&cores[core], objects[object], &Spin);
                        assert_eq!(before, model[object]);
                        reset.finish(words);
                        model[object] = words;
                    }
                    Step::Flush(core) => maxima.flush(&cores[core], &Spin),
                }
                for (object, words) in objects.iter().zip(model) {
                    assert_eq!(maxima.read(object, &Spin), words);
                }
            }
        });
    }
}

#[test]
fn what_was_raised_since_the_last_flush_stays_in_the_cache_once() {
    with_maxima(4, |arena, maxima| {
        let (object, core) = (arena.place(Maximum::new([0, 0])).unwrap(), arena.claim(1, owner()).unwrap());
        for value in [3, 5, 9] {
            raise(maxima, &core, object, [value, 1]);
            maxima.flush_unchanged(&core, &Spin);
            assert_eq!((maxima.read(object, &Spin), object.applied()), ([value, 1], [0, 0]), "raised all the time");
        }
        maxima.flush_unchanged(&core, &Spin);
        assert_eq!((maxima.read(object, &Spin), object.applied()), ([9, 1], [9, 1]));
    });
}
