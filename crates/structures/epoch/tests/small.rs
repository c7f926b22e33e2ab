//! Some dozens of objects retired by one thread while another looks at them: few enough for an interpreter that knows
//! undefined behaviour (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use epoch::{Epochs, Retired, RetiredKind};
use percpu::testing::{World, owner};
use percpu::{Core, SizeClass};

const KIND: RetiredKind = RetiredKind(3);

#[repr(C)]
struct Node {
    link: Retired,
    value: u64,
}

fn free(core: &Core, kind: RetiredKind, object: NonNull<Retired>) {
    assert_eq!(kind, KIND);
    // SAFETY: the link is the first field of a `Node` that no one uses any more.
    unsafe { core.free(object.cast(), SizeClass::of_type::<Node>()) };
}

#[test]
fn who_looks_while_another_retires_sees_whole_objects() {
    let world = World::new(2);
    let epochs = Epochs::create(world.arena()).unwrap();
    let shared = AtomicPtr::new(ptr::null_mut::<Node>());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let core = world.core(0);
            for value in 1..=30 {
                let node = core.allocate_value(Node { link: Retired::new(), value }).unwrap();
                let old = shared.swap(node.as_ptr(), Ordering::AcqRel);
                if let Some(old) = NonNull::new(old) {
                    // SAFETY: taken out of the one place that leads to it, once.
                    unsafe { epochs.pin(&core).retire(old.cast(), KIND) };
                }
                epochs.maintain(&core, free);
            }
        });
        scope.spawn(|| {
            let core = world.core(1);
            let mut last = 0;
            for _ in 0..40 {
                let guard = epochs.pin(&core);
                // SAFETY: nodes live as long as the guard.
                if let Some(node) = unsafe { shared.load(Ordering::Acquire).as_ref() } {
                    assert!(node.value >= last);
                    last = node.value;
                }
                drop(guard);
                epochs.maintain(&core, free);
                std::thread::yield_now();
            }
        });
    });
    let core = world.core(0);
    // SAFETY: all threads have ended.
    unsafe { epochs.pin(&core).retire(NonNull::new(shared.into_inner()).unwrap().cast(), KIND) };
    for _ in 0..4 {
        epochs.maintain(&core, free);
        world.for_each_idle_core(owner(1), |idle| {
            epochs.maintain(idle, free);
        });
    }
    assert_eq!(world.live_bytes(), 0);
}
