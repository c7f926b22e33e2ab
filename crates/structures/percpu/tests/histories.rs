//! Concurrent histories of cores in an arena that is nearly exhausted: no one gets memory that another has, no one acts
//! as a core that another is, and in the end each object is in use or can be had.
//!
//! A request may fail while others have free objects: up to two batches of each core are out of reach of the others.
#![cfg(not(loom))]

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering as Plain};

use history::threads::lock;
use history::{explore, overtake, play, rounds};
use percpu::{Arena, ArenaConfig, Core, CoreLock, HeapRegion, LockRank, OwnerId, SizeClass};
use proptest::collection::vec;
use proptest::prelude::*;
use sync::atomic::{AtomicU64, Ordering};
use sync::{Spin, Wait, WaitReason};

const CORES: usize = 4;
/// Two of them are a batch, and one is a chunk.
const CLASS: SizeClass = SizeClass::of_type::<[u8; 8 << 10]>();
const OBJECT_BYTES: usize = CLASS.object_bytes();
const PAGE_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Allocate,
    /// The object that was had longest, or the last one.
    Free {
        longest: bool,
    },
    /// To the one that comes for them.
    GiveAll,
    AcceptAll,
    /// Adds to a number under a lock.
    Add,
    Maintain,
    /// For cores that are off-line.
    MaintainIdle,
    /// The thread becomes another core, or the same again.
    Change,
}

struct Round<'a> {
    arena: &'a Arena,
    is_core: [AtomicBool; CORES],
    /// Addresses of objects that somebody has.
    in_use: Mutex<BTreeSet<usize>>,
    given: Mutex<Vec<usize>>,
    lock: CoreLock,
    number: AtomicU64,
}

/// Says that no one else acts as a core.
struct Alone<'a>(&'a AtomicBool);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.store(false, Plain::SeqCst);
    }
}

/// A core of a thread. The first field is dropped first.
struct Acting<'a> {
    _alone: Alone<'a>,
    core: Core<'a>,
}

impl Round<'_> {
    /// Becomes a core. There are as many as threads, but one that looks at them in turn can miss those that others leave.
    fn claim(&self) -> Acting<'_> {
        loop {
            match self.arena.claim_any(OwnerId::new(1).unwrap()) {
                Ok(core) => break Acting { _alone: self.begin(&core), core },
                Err(_) => Spin.wait(WaitReason::Operation, 0),
            }
        }
    }

    fn begin(&self, core: &Core) -> Alone<'_> {
        let is_core = &self.is_core[core.index().get()];
        assert!(!is_core.swap(true, Plain::SeqCst), "two act as one core");
        Alone(is_core)
    }

    fn allocate(&self, core: &Core) -> Option<usize> {
        let object = core.allocate(CLASS).ok()?.as_ptr() as usize;
        assert!(lock(&self.in_use).insert(object), "had by two");
        Some(object)
    }

    fn free(&self, core: &Core, object: usize) {
        lock(&self.in_use).remove(&object);
        // SAFETY: allocated in this class, and used by no one.
        unsafe { core.free(NonNull::new(object as *mut u8).unwrap(), CLASS) };
    }

    /// How much was added.
    fn act(&self, core: &Core, mine: &mut Vec<usize>, operation: Operation) -> u64 {
        match operation {
            Operation::Allocate => mine.extend(self.allocate(core)),
            Operation::Free { longest: true } if !mine.is_empty() => self.free(core, mine.remove(0)),
            Operation::Free { .. } => mine.pop().into_iter().for_each(|object| self.free(core, object)),
            Operation::GiveAll => lock(&self.given).append(mine),
            Operation::AcceptAll => mine.append(&mut lock(&self.given)),
            Operation::Add => {
                let _locked = self.lock.lock(core, LockRank(1), &Spin);
                self.number.store(self.number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                return 1;
            }
            Operation::Maintain => self.arena.maintain(core),
            Operation::MaintainIdle => {
                self.arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| {
                    let _alone = self.begin(idle);
                    self.arena.maintain(idle);
                });
            }
            Operation::Change => {}
        }
        0
    }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        10 => Just(Operation::Allocate),
        7 => any::<bool>().prop_map(|longest| Operation::Free { longest }),
        1 => Just(Operation::GiveAll),
        1 => Just(Operation::AcceptAll),
        1 => Just(Operation::Add),
        2 => Just(Operation::Maintain),
        1 => Just(Operation::MaintainIdle),
        2 => Just(Operation::Change),
    ]
}

/// What each thread does, and for how many objects there is memory.
type Plan = (Vec<Vec<Operation>>, usize);

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 3;
    (vec(vec(any_operation(), 60 / threads), threads), 6..14_usize)
}

fn check(_: u64, (plan, objects): &Plan) {
    let config = ArenaConfig { core_count: CORES, chunk_bytes: PAGE_BYTES };
    let mut region = HeapRegion::new((objects + 2) * OBJECT_BYTES).unwrap();
    let arena = Arena::create(&mut region, config).unwrap();
    let used_bytes = (arena.size_bytes() - arena.untouched_bytes()).next_multiple_of(PAGE_BYTES);
    let capacity = (arena.size_bytes() - used_bytes) / OBJECT_BYTES;
    let round = &Round {
        arena,
        is_core: Default::default(),
        in_use: Mutex::default(),
        given: Mutex::default(),
        lock: CoreLock::new(),
        number: AtomicU64::new(0),
    };
    let made = play(plan, |_| {
        let (mut core, mut mine) = (None, vec![]);
        let mut added = 0;
        move |operation: &Operation| {
            if matches!(operation, Operation::Change) {
                core = None;
            }
            added += round.act(&core.get_or_insert_with(|| round.claim()).core, &mut mine, *operation);
            added
        }
    });
    let added: u64 = made.iter().filter_map(|made| made.last()).map(|last| last.outcome).sum();
    assert_eq!(round.number.load(Ordering::Relaxed), added, "additions under a lock");
    let in_use = lock(&round.in_use).len();
    assert_eq!(arena.live_objects(CLASS), in_use as i64, "objects in use by the count");
    let take_all = |number| {
        let core = arena.claim_waiting(number, OwnerId::new(1).unwrap(), &sync::Spin).unwrap();
        std::iter::from_fn(|| round.allocate(&core)).count()
    };
    assert_eq!(in_use + (0..CORES).map(take_all).sum::<usize>(), capacity, "objects that can be had");
}

#[test]
fn no_object_is_lost_or_had_by_two() {
    explore(rounds(400), plans, check);
}

#[test]
fn so_it_is_where_a_thread_is_overtaken_at_any_access() {
    overtake(history::plans(10), plans, check);
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for fault in ["percpu: take-all in two steps", "percpu: lock in two steps"] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }
}
