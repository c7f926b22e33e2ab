//! Reads under threads that change the words all the time, a dead writer, and what a reader gets.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU64, Ordering};

use seqlock::Sequence;

#[derive(Default)]
struct Words {
    sequence: Sequence,
    words: [AtomicU64; 6],
}

impl Words {
    fn set(&self, value: u64) {
        self.sequence.change(|| self.words.iter().for_each(|word| word.store(value, Ordering::Relaxed)));
    }

    fn read(&self) -> Option<[u64; 6]> {
        self.sequence.try_read(|| std::array::from_fn(|index| self.words[index].load(Ordering::Relaxed)))
    }
}

#[test]
fn reads_are_whole_while_the_words_change() {
    const CHANGES: u64 = 200_000;
    let words = Words::default();
    std::thread::scope(|scope| {
        scope.spawn(|| (1..=CHANGES).for_each(|value| words.set(value)));
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while last < CHANGES {
                    let Some(seen) = words.read() else { continue };
                    assert!(seen.iter().all(|word| *word == seen[0]), "{seen:?}");
                    assert!(seen[0] >= last, "time went back from {last} to {}", seen[0]);
                    last = seen[0];
                }
            });
        }
    });
}

#[test]
fn readers_wait_for_the_heir_of_a_dead_writer() {
    let words = Words::default();
    words.set(1);
    let death = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        words.sequence.change(|| {
            words.words[0].store(2, Ordering::Relaxed);
            panic!("the planted death");
        })
    }));
    assert!(death.is_err());
    assert!(words.sequence.now().is_changing());
    // An heir may begin what it repairs as if nothing had begun.
    words.sequence.begin();
    assert!(words.sequence.now().is_changing());
    assert_eq!(words.read(), None);
    words.words[0].store(1, Ordering::Relaxed);
    words.sequence.end();
    assert_eq!(words.read(), Some([1; 6]));
}

#[test]
fn a_change_in_the_middle_of_a_read_is_noticed() {
    let words = Words::default();
    let moment = words.sequence.now();
    assert!(words.sequence.is_still(moment));
    words.set(1);
    assert!(!words.sequence.is_still(moment));
    assert!(words.sequence.now().number() > moment.number());
    words.sequence.end();
    assert_eq!(words.sequence.now().number(), moment.number() + 2, "nothing to end");
}
