//! Models of the lock and of taking another core's depot: `RUSTFLAGS="--cfg loom" cargo test -p percpu --release --test
//! models`.
#![cfg(any(loom, shuttle))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use percpu::model::ModelArena;
use percpu::{Core, CoreLock, LockRank, SizeClass};

fn lock_excludes(first: usize) {
    let model = ModelArena::new(2, 256 << 10);
    let lock: &'static CoreLock = model.arena().place(CoreLock::new()).unwrap();
    let inside = Arc::new(AtomicUsize::new(0));
    let run = |core: Core<'static>, inside: Arc<AtomicUsize>| {
        move || {
            for _ in 0..2 {
                let guard = lock.lock(&core, LockRank(1), &sync::Spin);
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two cores hold the lock");
                sync::model::thread::yield_now();
                inside.fetch_sub(1, Ordering::Relaxed);
                drop(guard);
            }
        }
    };
    let cores = [model.core(first), model.core(1 - first)];
    let threads = cores.map(|core| sync::model::thread::spawn(run(core, Arc::clone(&inside))));
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Both cores take the depot of core 0, which frees at the same time: no object may come out twice.
fn depots_hand_out_once(freeing_first: bool) {
    let model = ModelArena::new(2, 256 << 10);
    let class = SizeClass::of_type::<[u8; 16 << 10]>(); // batches of one object
    let (zero, one) = (model.core(0), model.core(1));
    let mut objects = Vec::new();
    while let Ok(object) = zero.allocate(class) {
        objects.push(object.as_ptr() as usize);
    }
    let (free, held) = (objects.split_off(objects.len() - 2), objects);
    for address in free {
        // SAFETY: allocated above, used by no one.
        unsafe { zero.free(std::ptr::NonNull::new(address as *mut u8).unwrap(), class) };
    }
    let last = held[0];
    let freeing = move || {
        // SAFETY: allocated above, used by no one.
        unsafe { zero.free(std::ptr::NonNull::new(last as *mut u8).unwrap(), class) };
        let mine: Vec<usize> = (0..3).filter_map(|_| zero.allocate(class).ok()).map(|o| o.as_ptr() as usize).collect();
        mine
    };
    let taking = move || {
        let mine: Vec<usize> = (0..2).filter_map(|_| one.allocate(class).ok()).map(|o| o.as_ptr() as usize).collect();
        mine
    };
    let (freed, taken) = sync::model::both(freeing_first, freeing, taking);
    let mut all = [freed, taken].concat();
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count, "an object was handed out twice");
    assert!(count >= 2, "objects were lost");
}

#[test]
fn lock() {
    for first in 0..2 {
        sync::model::explore(2, 20, move || lock_excludes(first));
        sync::model::must_catch("percpu: lock in two steps", 2, move || lock_excludes(first));
    }
}

#[test]
fn depot() {
    for freeing_first in [false, true] {
        sync::model::explore(3, 20, move || depots_hand_out_once(freeing_first));
        sync::model::must_catch("percpu: take-all in two steps", 3, move || depots_hand_out_once(freeing_first));
    }
}
