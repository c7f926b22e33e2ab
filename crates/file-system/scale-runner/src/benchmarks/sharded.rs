//! A small library with a planted fault, and without: a map in shards of which each core uses its own; with a counter of all
//! entries, which all cores share.

use std::cell::UnsafeCell;

use sync::atomic::{AtomicU64, Ordering};

use super::of_each;
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

pub const BENCHMARKS: [Benchmark; 2] = [
    Benchmark {
        name: "sharded-map",
        operation: "insertion into a map and removal, each core in a shard of its own",
        maintains: false,
        prepare: |world| map(world, None),
    },
    Benchmark {
        name: "sharded-map-counted",
        operation: "as sharded-map; the map counts its entries in one place",
        maintains: false,
        prepare: |world| map(world, Some(&ENTRY_COUNT)),
    },
];

const SLOTS: usize = 32;

/// The planted fault. Relaxed: nothing hangs on it.
static ENTRY_COUNT: Count = Count(AtomicU64::new(0));

#[repr(align(64))]
struct Count(AtomicU64);

#[repr(align(64))]
struct Shard {
    /// 0: nobody has it. Acquired and released by whoever uses the slots.
    lock: AtomicU64,
    /// Guarded by `lock`.
    slots: UnsafeCell<[u64; SLOTS]>,
}

impl Shard {
    fn with<T>(&self, action: impl FnOnce(&mut [u64; SLOTS]) -> T) -> T {
        while self.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            sync::Wait::wait(&sync::Spin, sync::WaitReason::Operation, 0);
        }
        // SAFETY: the lock is held.
        let result = action(unsafe { &mut *self.slots.get() });
        self.lock.store(0, Ordering::Release);
        result
    }
}

fn map<'w>(world: &'w World, count: Option<&'static Count>) -> Operation<'w> {
    let shards = of_each(world, |_| Shard { lock: AtomicU64::new(0), slots: UnsafeCell::new([0; SLOTS]) });
    Box::new(move |core, round| {
        let slot = round as usize % SLOTS;
        shards[core].with(|slots| slots[slot] = round);
        if let Some(Count(count)) = count {
            count.fetch_add(1, Ordering::Relaxed);
        }
        shards[core].with(|slots| slots[slot] = 0);
        if let Some(Count(count)) = count {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    })
}
