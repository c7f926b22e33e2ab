//! A reader and a writer that frees what it replaces: `RUSTFLAGS="--cfg loom" cargo test -p epoch --release --test
//! models`.
#![cfg(any(loom, shuttle))]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Plain};

use epoch::{Epochs, Retired, RetiredKind};
use percpu::model::ModelArena;
use percpu::{Core, SizeClass};
use sync::atomic::{AtomicPtr, Ordering, fence};

#[repr(C)]
struct Node {
    link: Retired,
    freed: AtomicBool, // not loom's: a plain look at the moment of execution
}

fn node(core: &Core) -> *mut Node {
    let node = Node { link: Retired::new(), freed: AtomicBool::new(false) };
    core.allocate_value(node).unwrap().as_ptr()
}

fn free(_core: &Core, _kind: RetiredKind, object: NonNull<Retired>) {
    const { assert!(SizeClass::of_type::<Node>().object_bytes() == 64) };
    // SAFETY: the link is the first field of a `Node`; the memory stays, so that a fault can be seen.
    unsafe { object.cast::<Node>().as_ref() }.freed.store(true, Plain::Relaxed);
}

fn reader_and_writer(reader_first: bool) {
    let model = ModelArena::new(2, 128 << 10);
    let epochs = Epochs::create(model.arena()).unwrap();
    let (zero, one) = (model.core(0), model.core(1));
    let shared = Arc::new(AtomicPtr::new(node(&one)));
    let reader = {
        let shared = Arc::clone(&shared);
        move || {
            for _ in 0..2 {
                let guard = epochs.pin(&zero);
                let seen = shared.load(Ordering::Acquire);
                // SAFETY: memory of nodes is never reused in this model.
                let seen = unsafe { &*seen };
                assert!(!seen.freed.load(Plain::Relaxed), "freed before it was read");
                fence(Ordering::Acquire); // a point where the other thread may run
                assert!(!seen.freed.load(Plain::Relaxed), "freed while pinned");
                drop(guard);
            }
        }
    };
    let writer = move || {
        // The reader is seen in the epoch after this one before the object is retired in that.
        epochs.maintain(&one, free);
        let new = node(&one);
        let guard = epochs.pin(&one);
        let old = shared.swap(new, Ordering::AcqRel);
        // SAFETY: unlinked by the exchange, retired once.
        unsafe { guard.retire(NonNull::new(old).unwrap().cast(), RetiredKind(0)) };
        drop(guard);
        for _ in 0..3 {
            epochs.maintain(&one, free);
        }
    };
    sync::model::both(reader_first, reader, writer);
}

#[test]
fn nothing_is_freed_under_a_reader() {
    for reader_first in [false, true] {
        sync::model::explore(3, 200, move || reader_and_writer(reader_first));
        let model = move || reader_and_writer(reader_first);
        sync::model::must_catch_reordering("epoch: pin without fence", 3, model);
        for mutant in ["epoch: free one epoch early", "epoch: advance past pinned cores"] {
            sync::model::must_catch(mutant, 3, model);
        }
    }
}
