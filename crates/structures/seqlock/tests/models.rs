//! Torn reads: `RUSTFLAGS="--cfg loom" cargo test -p seqlock --release --test models`.
#![cfg(any(loom, shuttle))]

use std::sync::Arc;

use seqlock::Sequence;
use sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
struct Words {
    sequence: Sequence,
    words: [AtomicU64; 2],
}

impl Words {
    fn read(&self) -> Option<[u64; 2]> {
        self.sequence.try_read(|| [0, 1].map(|index: usize| self.words[index].load(Ordering::Relaxed)))
    }
}

fn reader_and_writer(reader_first: bool) {
    let words = Arc::new(Words::default());
    let reader = {
        let words = Arc::clone(&words);
        move || {
            for _ in 0..2 {
                if let Some([a, b]) = words.read() {
                    assert_eq!(a, b, "a torn read");
                }
            }
        }
    };
    let writer = {
        let words = Arc::clone(&words);
        move || {
            for value in 1..3 {
                words.sequence.change(|| words.words.iter().for_each(|word| word.store(value, Ordering::Relaxed)));
            }
        }
    };
    sync::model::both(reader_first, reader, writer);
    assert_eq!(words.read(), Some([2, 2]));
}

#[test]
fn reads_are_whole() {
    for reader_first in [false, true] {
        sync::model::explore(3, 100, move || reader_and_writer(reader_first));
        for mutant in ["seqlock: reader without fence", "seqlock: writer without fence"] {
            sync::model::must_catch_reordering(mutant, 3, move || reader_and_writer(reader_first));
        }
    }
}
