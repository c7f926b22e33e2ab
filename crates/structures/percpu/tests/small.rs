//! Some dozens of operations on arena, slabs, locks and values per core, by two threads: few enough for an interpreter that
//! knows undefined behaviour (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Mutex;

use percpu::testing::{World, owner};
use percpu::{ArenaConfig, Core, CoreLock, LockRank, OutOfMemory, PerCore, SizeClass};
use sync::Spin;

/// An object on its way from one thread to another.
struct Handed(NonNull<[u64; 64]>);
// SAFETY: the one that has it uses the object alone.
unsafe impl Send for Handed {}

fn class() -> SizeClass {
    SizeClass::of_type::<[u64; 64]>()
}

#[test]
fn what_one_core_allocates_another_frees_and_both_use_again() {
    let world = World::with(128 << 10, ArenaConfig { core_count: 2, chunk_bytes: 4096 });
    let handed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let core = world.core(0);
            for number in 0..40_u64 {
                let object = core.allocate(class()).unwrap().cast::<[u64; 64]>();
                // SAFETY: fresh memory of 512 bytes.
                unsafe { object.write([number; 64]) };
                handed.lock().unwrap().push(Handed(object));
            }
            world.maintain(&core);
        });
        scope.spawn(|| {
            let core = world.core(1);
            let mut freed = 0;
            while freed < 40 {
                let Some(Handed(object)) = handed.lock().unwrap().pop() else {
                    std::thread::yield_now();
                    continue;
                };
                // SAFETY: handed over, and allocated with this class.
                unsafe {
                    let words = object.read();
                    assert!(words.iter().all(|word| *word == words[0]));
                    core.free(object.cast(), class());
                }
                freed += 1;
            }
            world.maintain(&core);
        });
    });
    assert_eq!(world.live_bytes(), 0);
    let cores = [world.core(0), world.core(1)];
    let fill = |core: &Core<'_>| std::iter::from_fn(|| core.allocate(class()).ok()).count();
    assert!(fill(&cores[0]) + fill(&cores[1]) > 40);
    assert_eq!(cores[0].allocate(class()), Err(OutOfMemory));
}

#[test]
fn locks_exclude_and_values_are_each_cores_own() {
    let world = World::new(2);
    // SAFETY: the arena outlives the values.
    let values = unsafe { PerCore::create(world.arena(), |_| Cell::new(0)) }.unwrap();
    struct Guarded(Cell<u64>);
    // SAFETY: touched under the lock only.
    unsafe impl Sync for Guarded {}
    let (lock, sum) = (world.place(CoreLock::new()).unwrap(), Guarded(Cell::new(0)));
    let (world, sum) = (&world, &sum);
    std::thread::scope(|scope| {
        for number in 0..2 {
            scope.spawn(move || {
                let core = world.core(number);
                for _ in 0..10 {
                    let _guard = lock.lock(&core, LockRank(1), &Spin);
                    let sum = sum;
                    sum.0.set(sum.0.get() + 1);
                }
            });
        }
    });
    assert_eq!(sum.0.get(), 20);
    for number in 0..2 {
        let core = world.core(number);
        values.get(&core).set(number + 1);
        assert_eq!(values.get(&core).get(), number + 1);
    }
}

#[test]
fn an_heir_finds_the_lists_whole() {
    let world = World::new(2);
    let dead = world.core(0);
    let objects: Vec<_> = (0..20).map(|_| dead.allocate(class()).unwrap()).collect();
    for object in objects {
        // SAFETY: allocated above, used by no one.
        unsafe { dead.free(object, class()) };
    }
    std::mem::forget(dead);
    // SAFETY: the owner's only handle is gone.
    let heir = unsafe { world.take_over(0, owner(1), owner(2)) }.unwrap();
    for _ in 0..20 {
        heir.allocate(class()).unwrap();
    }
}
