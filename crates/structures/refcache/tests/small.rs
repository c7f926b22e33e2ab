//! Some dozens of changes of counts by two threads, pending ones and the freeing of what they count: few enough for an
//! interpreter that knows undefined behaviour (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use std::mem::offset_of;
use std::ptr::NonNull;

use commit::Decisions;
use percpu::testing::{World, owner};
use percpu::{Core, SizeClass};
use refcache::{Counted, CountedKind, RefCache, RefCacheConfig, WeakRef};
use sync::Spin;

/// The count is not at the object's start, as in an inode.
#[repr(C)]
struct Object {
    value: u64,
    count: Counted,
}

struct Objects(Vec<NonNull<Object>>);
// SAFETY: threads touch the counts alone.
unsafe impl Sync for Objects {}

impl Objects {
    fn get(&self, index: usize) -> NonNull<Object> {
        self.0[index]
    }
}

fn free(core: &Core, counted: NonNull<Counted>) {
    // SAFETY: counts of this test lie in objects, which are freed once.
    unsafe {
        let object = counted.byte_sub(offset_of!(Object, count)).cast::<Object>();
        assert_eq!(object.as_ref().value, 7);
        core.free(object.cast(), SizeClass::of_type::<Object>());
    }
}

#[test]
fn counts_go_up_and_down_and_what_nobody_counts_is_freed() {
    let world = World::new(2);
    let decisions = Decisions::create(world.arena()).unwrap();
    let config = RefCacheConfig { slots_per_core: 2, ..RefCacheConfig::default() };
    let cache = RefCache::create(world.arena(), decisions, config).unwrap();
    let weak = world.place(WeakRef::new()).unwrap();
    let made = {
        let core = world.core(0);
        let make = |_| core.allocate_value(Object { value: 7, count: Counted::new(1, CountedKind(1)) }).unwrap();
        Objects((0..5).map(make).collect())
    };
    // SAFETY: the objects live until their last reference is given up, below.
    let object = |index: usize| unsafe { made.get(index).as_ref() };
    // SAFETY: as above.
    unsafe { weak.attach(&object(0).count) };
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (world, object) = (&world, &object);
            scope.spawn(move || {
                let core = world.core(number);
                for round in 0..12 {
                    let count = &object(round % 5).count;
                    // SAFETY: the test holds a reference to each.
                    unsafe {
                        cache.change(&core, count, 1);
                        assert!(cache.exact(count, &Spin) >= 1);
                        cache.change(&core, count, -1);
                        cache.maintain(&core, free);
                    }
                }
            });
        }
    });
    let core = world.core(0);
    for commits in [true, false] {
        let operation = decisions.begin_firm(&core);
        // SAFETY: the test holds a reference to each.
        unsafe {
            cache.prepare(&core, &object(1).count, 1, operation.tag());
            if commits {
                operation.commit().unwrap()
            } else {
                operation.abort()
            }
            cache.settle(&core, &object(1).count, commits);
        }
    }
    // SAFETY: as above; the references are given up once.
    unsafe {
        assert_eq!(cache.exact(&object(1).count, &Spin), 2);
        assert!(cache.upgrade(&core, weak).is_some());
        cache.change(&core, &object(0).count, -1);
        cache.change(&core, &object(1).count, -1);
        for index in 0..5 {
            cache.change(&core, &object(index).count, -1);
        }
        for _ in 0..6 {
            cache.maintain(&core, free);
            world.for_each_idle_core(owner(1), |idle| {
                cache.maintain(idle, free);
            });
        }
    }
    assert!(cache.upgrade(&core, weak).is_none());
    assert_eq!(world.live_bytes(), 0);
}
