//! Arena, cores and slabs against a plain reference: nothing overlaps, nothing is lost, every limit is an error value.
#![cfg(not(loom))]

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use percpu::{
    Arena, ArenaConfig, ArenaObject, ArenaRoot, AttachError, ClaimError, Core, CoreLock, CreateError, HeapRegion,
    Layout as Fingerprint, LockRank, ObjectKind, OutOfMemory, OwnerId, PerCore, SizeClass, object_kind,
};
use proptest::prelude::*;

fn owner() -> OwnerId {
    OwnerId::new(7).unwrap()
}

fn small(core_count: usize) -> ArenaConfig {
    ArenaConfig { core_count, chunk_bytes: 4096 }
}

#[test]
fn an_owner_has_its_number() {
    for number in [1, 7, 1 << 62] {
        assert_eq!(OwnerId::new(number).map(OwnerId::number), Some(number));
    }
    assert!([0, (1 << 62) + 1, u64::MAX].iter().all(|number| OwnerId::new(*number).is_none()));
}

#[test]
fn creation_refuses_what_cannot_work() {
    let mut region = HeapRegion::new(1 << 16).unwrap();
    assert_eq!(Arena::create(&mut region, small(0)).err(), Some(CreateError::CoreCount(0)));
    assert_eq!(Arena::create(&mut region, small(257)).err(), Some(CreateError::CoreCount(257)));
    let config = ArenaConfig { core_count: 1, chunk_bytes: 5000 };
    assert_eq!(Arena::create(&mut region, config).err(), Some(CreateError::ChunkBytes(5000)));
    let mut tiny = HeapRegion::new(1).unwrap();
    assert_eq!(Arena::create(&mut tiny, small(256)).err(), Some(CreateError::TooSmall { size_bytes: 4096 }));
}

/// Two types that lie in one place in other ways.
#[repr(C)]
struct Old(AtomicU64, u32);
#[repr(C)]
struct New(u32, AtomicU64);

// SAFETY: each test has one of them in an arena, and neither has a destructor.
unsafe impl ArenaObject for Old {
    const KIND: ObjectKind = object_kind!(1, Old as "object" { "word" = 0, "number" = 1 });
}
// SAFETY: as above.
unsafe impl ArenaObject for New {
    const KIND: ObjectKind = object_kind!(1, New as "object" { "number" = 0, "word" = 1 });
}
// SAFETY: atomics and immutable numbers.
unsafe impl ArenaRoot for Old {
    const LAYOUT: Fingerprint = <Old as ArenaObject>::LAYOUT;
}
// SAFETY: as above.
unsafe impl ArenaRoot for New {
    const LAYOUT: Fingerprint = <New as ArenaObject>::LAYOUT;
}

#[test]
fn what_another_build_made_is_refused_with_a_reason() {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let base = NonNull::new(region.as_mut_ptr()).unwrap();
    // SAFETY: the region is this test's own, and as long as it says.
    let attach = |offset| unsafe { Arena::attach_at(base.byte_add(offset)) };
    let why = |offset: usize| attach(offset).map(drop).unwrap_err();
    assert_eq!(why(8), AttachError::Misaligned);
    assert_eq!(why(0), AttachError::NotAnArena);
    // SAFETY: as above.
    let arena = unsafe { Arena::create_at(base, 1 << 20, small(1)) }.unwrap();
    assert_eq!(attach(0).map(std::ptr::from_ref), Ok(std::ptr::from_ref(arena)));
    assert_eq!(arena.root::<Old>().map(drop), Err(AttachError::Empty));
    let root = arena.place(Old(AtomicU64::new(3), 4)).unwrap();
    arena.set_root(root);
    assert_eq!(attach(0).unwrap().root::<Old>().unwrap().0.load(Ordering::Relaxed), 3);
    let error = arena.root::<New>().map(drop).unwrap_err();
    assert!(matches!(error, AttachError::OtherBuild { .. }) && error.to_string().contains("another build"), "{error}");
    arena.set_root(arena.place(New(1, AtomicU64::new(2))).unwrap());
    assert_eq!(arena.root::<Old>().unwrap().1, 4, "the first stays");
    // The same arena at another address, and as another build leaves it.
    // SAFETY: within the region, whose arena is not used any more.
    unsafe {
        base.byte_add(1 << 19).copy_from_nonoverlapping(base, 256);
        assert_eq!(why(1 << 19), AttachError::OtherAddress { created_at: base.as_ptr().addr() });
        *base.cast::<u64>().add(1).as_mut() ^= 1;
    }
    assert!(matches!(why(0), AttachError::OtherBuild { .. }));
}

#[test]
fn objects_lie_in_chunks_of_their_kind() {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, small(1)).unwrap();
    let core = arena.claim(0, owner()).unwrap();
    let object = core.allocate_object(Old(AtomicU64::new(1), 2)).unwrap();
    assert!(arena.kinds().any(|(part, kind)| part.contains(&object.addr().get()) && kind == 1));
    // SAFETY: allocated just now.
    unsafe { core.free_object(object) };
    assert_eq!(core.allocate_place::<Old>(), Ok(object));
}

#[test]
fn every_core_count_has_records_and_values_on_own_lines() {
    for core_count in [1, 2, 3, 16, 255, 256] {
        let mut region = HeapRegion::new(4 << 20).unwrap();
        let arena = Arena::create(&mut region, small(core_count)).unwrap();
        // SAFETY: the arena outlives the array.
        let values = unsafe { PerCore::create(arena, |index| AtomicU64::new(index.get() as u64)) }.unwrap();
        let cores: Vec<Core> = (0..core_count).map(|_| arena.claim_any(owner()).unwrap()).collect();
        let lines: std::collections::BTreeSet<usize> =
            cores.iter().map(|core| values.get(core) as *const AtomicU64 as usize / 64).collect();
        assert_eq!(lines.len(), core_count);
        assert!(cores.iter().all(|core| values.get(core).load(Ordering::Relaxed) == core.index().get() as u64));
        assert_eq!(values.all().count(), core_count);
        assert_eq!(arena.claim_any(owner()).err(), Some(ClaimError::Busy));
    }
}

#[test]
fn a_core_is_claimed_once_and_again_after_its_release() {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, small(2)).unwrap();
    let core = arena.claim(1, owner()).unwrap();
    assert_eq!(arena.claim(1, owner()).err(), Some(ClaimError::Busy));
    assert_eq!(arena.claim(2, owner()).err(), Some(ClaimError::OutOfRange { core_count: 2 }));
    assert_eq!(core.owner(), Some(owner()));
    arena.for_each_idle_core(owner(), |idle| assert_eq!(idle.owner(), None));
    assert!(arena.is_claimed(core.index()));
    let mut idle = Vec::new();
    arena.for_each_idle_core(owner(), |core| idle.push(core.index().get()));
    assert_eq!(idle, [0], "only cores below the limit that nobody claims");
    drop(core);
    let mut idle = Vec::new();
    arena.for_each_idle_core(owner(), |core| idle.push(core.index().get()));
    assert_eq!(idle, [0, 1]);
    assert!(arena.claim(1, owner()).is_ok());
}

#[test]
fn a_handle_can_move_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, small(1)).unwrap();
    is_send(&arena.claim(0, owner()).unwrap());
}

#[test]
fn a_dead_owners_core_is_taken_over_with_its_locks() {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, small(2)).unwrap();
    let lock = arena.place(CoreLock::new()).unwrap();
    let dead = arena.claim(0, owner()).unwrap();
    std::mem::forget(lock.lock(&dead, LockRank(1), &sync::Spin));
    std::mem::forget(dead); // as a process killed in its critical section leaves it
    let other = OwnerId::new(8).unwrap();
    // SAFETY: the owner's only handle is gone.
    let heir = unsafe { arena.take_over(0, owner(), other) }.unwrap();
    assert_eq!(lock.holder(), Some(heir.index()));
    // SAFETY: the lock guards nothing here.
    unsafe { lock.release_taken_over(&heir) };
    drop(lock.lock(&heir, LockRank(1), &sync::Spin));
    // SAFETY: as above; the owner is not the core's any more, so that nothing is taken over.
    let again = unsafe { arena.take_over(0, owner(), other) };
    assert_eq!(again.err(), Some(ClaimError::Busy));
}

#[test]
fn exhaustion_is_an_error_and_what_other_cores_freed_can_be_had() {
    let mut region = HeapRegion::new(256 << 10).unwrap();
    let arena = Arena::create(&mut region, small(2)).unwrap();
    let (first, second) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
    let class = SizeClass::of_type::<[u8; 1024]>();
    let mut objects = Vec::new();
    while let Ok(object) = first.allocate(class) {
        objects.push(object);
    }
    assert!(objects.len() > 100);
    assert_eq!(second.allocate(class), Err(OutOfMemory));
    assert_eq!(arena.live_objects(class), objects.len() as i64);
    let total = objects.len();
    for object in objects.drain(..) {
        // SAFETY: allocated above with this class; used by no one.
        unsafe { second.free(object, class) };
    }
    assert_eq!(arena.live_objects(class), 0);
    while let Ok(object) = first.allocate(class) {
        objects.push(object);
    }
    // At most two batches of 16 objects stay with the core that freed.
    assert!(objects.len() + 32 >= total, "{} of {total}", objects.len());
}

#[test]
fn injected_failures_strike_exactly_when_told() {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, small(1)).unwrap();
    let core = arena.claim(0, owner()).unwrap();
    let class = SizeClass::of_type::<u64>();
    core.fail_allocations_after(Some(2));
    assert!(core.allocate(class).is_ok() && core.allocate(class).is_ok());
    assert_eq!(core.allocate(class), Err(OutOfMemory));
    core.fail_allocations_after(None);
    assert!(core.allocate(class).is_ok());
}

#[test]
fn maintained_magazines_spare_the_calls_the_shared_word() {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, small(1)).unwrap();
    let core = arena.claim(0, owner()).unwrap();
    let class = SizeClass::of_type::<[u8; 128]>();
    core.allocate(class).unwrap();
    for _ in 0..20 {
        arena.maintain(&core);
        let untouched = arena.untouched_bytes();
        for _ in 0..16 {
            core.allocate(class).unwrap();
        }
        assert_eq!(arena.untouched_bytes(), untouched);
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "lock order")]
fn locks_out_of_order_are_caught() {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, small(1)).unwrap();
    let core = arena.claim(0, owner()).unwrap();
    let (low, high) = (CoreLock::new(), CoreLock::new());
    let _high = high.lock(&core, LockRank(2), &sync::Spin);
    let _low = low.lock(&core, LockRank(1), &sync::Spin);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "lock order")]
fn a_lock_out_of_order_is_caught_behind_many() {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, small(1)).unwrap();
    let core = arena.claim(0, owner()).unwrap();
    let locks: Vec<CoreLock> = (0..40).map(|_| CoreLock::new()).collect();
    let mut held: Vec<_> = locks[1..].iter().map(|lock| lock.lock(&core, LockRank(1), &sync::Spin)).collect();
    // Those that are freed and taken again in between are checked like the others.
    held.remove(20);
    let _low = locks[0].lock(&core, LockRank(1), &sync::Spin);
}

#[test]
fn locks_exclude_and_slabs_stay_apart_under_threads() {
    const ROUNDS: usize = 4_000;
    let mut region = HeapRegion::new(8 << 20).unwrap();
    let arena = Arena::create(&mut region, small(4)).unwrap();
    let lock = CoreLock::new();
    let shared = std::sync::Mutex::new(Vec::<usize>::new());
    let sum = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (lock, shared, sum) = (&lock, &shared, &sum);
            scope.spawn(move || {
                let core = arena.claim(number, owner()).unwrap();
                let class = SizeClass::of_type::<[u64; 32]>();
                for round in 0..ROUNDS {
                    let object = core.allocate(class).unwrap().cast::<[u64; 32]>();
                    // SAFETY: fresh memory of 256 bytes.
                    unsafe { object.write([(number * ROUNDS + round) as u64; 32]) };
                    // ThreadSanitizer sees what orders those who try to lock, but not what orders those who wait.
                    let lock_shared = || {
                        loop {
                            match shared.try_lock() {
                                Ok(objects) => break objects,
                                Err(_) => std::thread::yield_now(),
                            }
                        }
                    };
                    lock_shared().push(object.as_ptr() as usize);
                    let other = lock_shared().swap_remove(0);
                    let other = std::ptr::NonNull::new(other as *mut [u64; 32]).unwrap();
                    // SAFETY: the one that takes an address from the list owns the object.
                    let words = unsafe { other.read() };
                    assert!(words.iter().all(|word| *word == words[0]), "two owners wrote one object");
                    // SAFETY: as above; same class.
                    unsafe { core.free(other.cast(), class) };
                    let _guard = lock.lock(&core, LockRank(1), &sync::Spin);
                    // A lost update would show that two cores were in the section.
                    sum.store(sum.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(shared.try_lock().unwrap().is_empty(), "each thread took as many objects as it gave");
    assert_eq!(sum.load(Ordering::Relaxed), 4 * ROUNDS as u64);
    assert_eq!(arena.live_bytes(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { core: usize, bytes: usize },
    Free { core: usize, which: usize },
    Maintain { core: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..3usize, prop_oneof![1..200usize, 1..5000usize, 60_000..70_000usize])
            .prop_map(|(core, bytes)| Step::Allocate { core, bytes }),
        4 => (0..3usize, any::<usize>()).prop_map(|(core, which)| Step::Free { core, which }),
        1 => (0..3usize).prop_map(|core| Step::Maintain { core }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn live_objects_never_overlap(steps in proptest::collection::vec(step(), 1..300)) {
        let mut region = HeapRegion::new(1 << 20).unwrap();
        let (start, size) = (0usize, region.size_bytes());
        let arena = Arena::create(&mut region, small(3)).unwrap();
        let base = arena as *const Arena as usize + start;
        let cores: Vec<Core> = (0..3).map(|number| arena.claim(number, owner()).unwrap()).collect();
        let mut live: BTreeMap<usize, SizeClass> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Allocate { core, bytes } => {
                    let Some(class) = SizeClass::of(Layout::from_size_align(bytes, 8).unwrap()) else {
                        prop_assert!(bytes > 1 << 16);
                        continue;
                    };
                    prop_assert!(class.object_bytes() >= bytes);
                    if let Ok(object) = cores[core].allocate(class) {
                        let address = object.as_ptr() as usize;
                        prop_assert_eq!(address % class.object_bytes().min(4096), 0);
                        prop_assert!(address >= base && address + class.object_bytes() <= base + size);
                        if let Some((before, of)) = live.range(..=address).next_back() {
                            prop_assert!(before + of.object_bytes() <= address);
                        }
                        if let Some((after, _)) = live.range(address..).next() {
                            prop_assert!(address + class.object_bytes() <= *after);
                        }
                        // SAFETY: the object has that many bytes.
                        unsafe { object.write_bytes(0xa5, class.object_bytes()) };
                        live.insert(address, class);
                    }
                }
                Step::Free { core, which } => {
                    let Some((&address, &class)) = live.iter().nth(which % live.len().max(1)) else { continue };
                    live.remove(&address);
                    // SAFETY: live until now, with this class.
                    unsafe { cores[core].free(std::ptr::NonNull::new(address as *mut u8).unwrap(), class) };
                }
                Step::Maintain { core } => arena.maintain(&cores[core]),
            }
            let bytes: usize = live.values().map(|class| class.object_bytes()).sum();
            prop_assert_eq!(arena.live_bytes(), bytes as i64);
        }
    }
}
