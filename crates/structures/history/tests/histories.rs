//! Rounds can be distinguished and repeated: a failure of which only the number is known can be looked at.
#![cfg(shuttle)]

use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};

use history::{Made, explore, overtake, play};
use percpu::HeapRegion;
use proptest::collection::vec;
use proptest::strategy::Just;
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

/// Additions in a load and a store: one is lost if another thread adds in between, among many accesses to a word that it
/// never touches.
fn additions(in_one_step: bool) -> bool {
    let check = move |_: u64, plan: &Vec<Vec<u64>>| {
        let word = &AtomicU64::new(0);
        play(plan, |_| {
            let own = AtomicU64::new(0);
            move |add: &u64| {
                (0..50).for_each(|_| _ = own.fetch_add(1, Ordering::SeqCst));
                if in_one_step {
                    word.fetch_add(*add, Ordering::SeqCst);
                } else {
                    word.store(word.load(Ordering::SeqCst) + add, Ordering::SeqCst);
                }
            }
        });
        assert_eq!(word.load(Ordering::SeqCst), plan.iter().flatten().sum());
    };
    catch_unwind(move || overtake(0..1, |_| Just(vec![vec![1], vec![2]]), check)).is_ok()
}

#[test]
fn who_is_overtaken_between_a_load_and_a_store_loses_an_addition() {
    assert!(additions(true));
    assert!(!additions(false));
}

/// A lock that is looked at and then taken. Two hold it only if the second stops while it does.
fn locked(in_one_step: bool) -> bool {
    let check = move |_: u64, plan: &Vec<Vec<()>>| {
        let (lock, holders) = (&AtomicU64::new(0), &AtomicU64::new(0));
        play(plan, |_| {
            move |(): &()| {
                let take = || match in_one_step {
                    true => lock.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok(),
                    false => lock.load(Ordering::SeqCst) == 0 && lock.swap(1, Ordering::SeqCst) < 2,
                };
                while !take() {
                    sync::scheduled::yield_now();
                }
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
                holders.fetch_sub(1, Ordering::SeqCst);
                lock.store(0, Ordering::SeqCst);
            }
        });
    };
    catch_unwind(move || overtake(0..20, |_| Just(vec![vec![()]; 3]), check)).is_ok()
}

#[test]
fn who_is_overtaken_may_get_past_the_others() {
    assert!(locked(true));
    assert!(!locked(false));
}

/// Who tries again and again without waiting lets others run in the end, and threads that never end learn so.
#[test]
fn threads_that_wait_for_each_other_without_saying_so_end() {
    let passed = |in_the_end: bool| {
        let check = move |_: u64, plan: &Vec<Vec<u64>>| {
            let word = &AtomicU64::new(0);
            play(plan, |_| {
                move |turn: &u64| {
                    while word.load(Ordering::SeqCst) < *turn {}
                    word.fetch_add(u64::from(in_the_end), Ordering::SeqCst);
                }
            });
        };
        catch_unwind(move || overtake(0..1, |_| Just(vec![vec![2], vec![1], vec![0]]), check)).is_ok()
    };
    assert!(passed(true));
    assert!(!passed(false));
}
