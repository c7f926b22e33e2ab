//! Reads are whole and current; writers exclude each other; a dead writer's words are repaired.
#![cfg(not(loom))]

use percpu::{Arena, ArenaConfig, HeapRegion, LockRank, OwnerId};
use proptest::prelude::*;
use seqlock::SeqLock;
use sync::Spin;

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

fn with_arena(test: impl FnOnce(&Arena)) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    test(Arena::create(&mut region, ArenaConfig::new(4)).unwrap());
}

#[test]
fn words_and_lock_are_on_different_lines() {
    assert_eq!(size_of::<SeqLock<1>>(), 192, "sequence and words, lock, rank");
}

#[test]
fn readers_see_whole_writes_under_threads() {
    const WRITES: u64 = 20_000;
    with_arena(|arena| {
        let lock = SeqLock::new([0; 4], LockRank(1));
        std::thread::scope(|scope| {
            for number in 0..2 {
                let lock = &lock;
                scope.spawn(move || {
                    let core = arena.claim(number, owner()).unwrap();
                    for _ in 0..WRITES {
                        let writer = lock.write(&core, &Spin);
                        let next = writer.get(0) + 1;
                        (0..4).for_each(|index| writer.set(index, next));
                    }
                });
            }
            scope.spawn(|| {
                let mut last = 0;
                while last < 2 * WRITES {
                    let words = lock.read(&Spin);
                    assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
                    assert!(words[0] >= last);
                    last = words[0];
                }
            });
        });
        assert_eq!(lock.read(&Spin), [2 * WRITES; 4]);
    });
}

#[test]
fn a_dead_writers_words_are_written_anew() {
    with_arena(|arena| {
        let lock = SeqLock::new([1, 1], LockRank(1));
        let dead = Box::leak(Box::new(arena.claim(0, owner()).unwrap()));
        let writer = Box::leak(Box::new(&lock)).write(dead, &Spin);
        writer.set(0, 2);
        std::mem::forget(writer);
        assert_eq!(lock.try_read(), None);
        // SAFETY: the leaked handle and writer are never used again.
        unsafe {
            let heir = arena.take_over(0, owner(), OwnerId::new(2).unwrap()).unwrap();
            lock.repair_taken_over(&heir, [2, 2]);
        }
        assert_eq!(lock.try_read(), Some([2, 2]));
        let core = arena.claim(1, owner()).unwrap();
        lock.write(&core, &Spin).set(1, 3);
        assert_eq!(lock.read(&Spin), [2, 3]);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_hold_what_was_written_last(writes in proptest::collection::vec((0..7usize, any::<u64>()), 0..50)) {
        let mut region = HeapRegion::new(1 << 20).unwrap();
        let arena = Arena::create(&mut region, ArenaConfig::new(1)).unwrap();
        let core = arena.claim(0, owner()).unwrap();
        let lock = SeqLock::new([0; 7], LockRank(1));
        let mut model = [0; 7];
        for (index, value) in writes {
            lock.write(&core, &Spin).set(index, value);
            model[index] = value;
            prop_assert_eq!(lock.read(&Spin), model);
            prop_assert_eq!(lock.word(index), value);
        }
    }
}
