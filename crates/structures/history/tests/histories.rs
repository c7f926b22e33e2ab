//! Rounds can be told apart and repeated: a failure of which only the number is known can be looked at.
#![cfg(shuttle)]

use std::sync::{Arc, Mutex};

use history::{Made, explore, play};
use percpu::HeapRegion;
use proptest::collection::vec;
use sync::atomic::{AtomicU64, Ordering};

type Histories = Vec<(usize, Vec<Vec<Made<u64, u64>>>)>;

/// What a structure hashes of addresses, and the histories of additions to a word.
fn histories() -> Histories {
    let histories = Arc::new(Mutex::new(Histories::new()));
    let seen = Arc::clone(&histories);
    let plans = |number: u64| vec(vec(0..100_u64, 4), 2 + number as usize % 3);
    explore(0..200, plans, move |_, plan: &Vec<Vec<u64>>| {
        let address = HeapRegion::new(1 << 16).unwrap().as_mut_ptr() as usize;
        let word = &AtomicU64::new(0);
        let made = play(plan, |_| move |add: &u64| word.fetch_add(*add, Ordering::SeqCst));
        seen.lock().unwrap().push((address & ((1 << 42) - 1), made));
    });
    Arc::into_inner(histories).unwrap().into_inner().unwrap()
}

#[test]
fn a_round_can_be_repeated() {
    let told = |histories: &Histories| histories.iter().map(|history| format!("{history:?}")).collect::<Vec<_>>();
    let first = told(&histories());
    assert_eq!(first, told(&histories()));
    assert!(first.iter().zip(&first[1..]).all(|(one, other)| one != other), "two rounds are one");
}
