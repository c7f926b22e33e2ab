//! Torn reads: `RUSTFLAGS="--cfg loom" cargo test -p seqlock --release --test loom`.
#![cfg(loom)]

use std::sync::Arc;

use percpu::LockRank;
use percpu::model::ModelArena;
use seqlock::SeqLock;
use sync::Spin;

fn reader_and_writer(reader_first: bool) {
    let model = ModelArena::new(2, 128 << 10);
    let core = model.core(0);
    let lock = Arc::new(SeqLock::new([0, 0], LockRank(1)));
    let reader = {
        let lock = Arc::clone(&lock);
        move || {
            for _ in 0..2 {
                if let Some([a, b]) = lock.try_read() {
                    assert_eq!(a, b, "a torn read");
                }
            }
        }
    };
    let writer = {
        let lock = Arc::clone(&lock);
        move || {
            for value in 1..3 {
                let writer = lock.write(&core, &Spin);
                writer.set(0, value);
                writer.set(1, value);
            }
        }
    };
    let threads = if reader_first {
        [loom::thread::spawn(reader), loom::thread::spawn(writer)]
    } else {
        [loom::thread::spawn(writer), loom::thread::spawn(reader)]
    };
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(lock.try_read(), Some([2, 2]));
}

fn two_writers(first: usize) {
    let model = ModelArena::new(2, 128 << 10);
    let lock = Arc::new(SeqLock::new([0, 0], LockRank(1)));
    let threads = [first, 1 - first].map(|number| {
        let (lock, core) = (Arc::clone(&lock), model.core(number));
        loom::thread::spawn(move || {
            let writer = lock.write(&core, &Spin);
            writer.set(0, writer.get(0) + 1);
            writer.set(1, writer.get(1) + 1);
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(lock.try_read(), Some([2, 2]));
}

#[test]
fn reads_are_whole() {
    for reader_first in [false, true] {
        let executions = sync::model::explore(3, move || reader_and_writer(reader_first));
        assert!(executions > 200, "{executions}");
        for mutant in ["seqlock: reader without fence", "seqlock: writer without fence"] {
            sync::model::must_catch(mutant, 3, move || reader_and_writer(reader_first));
        }
    }
}

#[test]
fn writers_exclude_each_other() {
    for first in 0..2 {
        assert!(sync::model::explore(3, move || two_writers(first)) > 5);
        sync::model::must_catch("percpu: lock in two steps", 3, move || two_writers(first));
    }
}
