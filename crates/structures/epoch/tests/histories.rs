//! Concurrent histories of readers and of those who retire what they read: nothing is freed while somebody may look at it,
//! and everything in the end, once.
#![cfg(not(loom))]

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering as Plain};

use epoch::{Epochs, Retired, RetiredKind};
use history::{explore, overtake, play, rounds};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const PLACES: usize = 2;
const CORES: usize = 5;

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// Looks at what a place leads to, this many times, with the core pinned; then at another place, pinned twice.
    Read(usize, u8),
    /// Puts another object in a place, and retires the one that was there.
    Replace(usize),
    /// Takes an object out of a place, and frees it itself once a stamp of then has passed; puts another there.
    Withdraw(usize),
    Maintain,
    /// Also for cores that are off-line.
    MaintainAll,
    /// The thread's core goes off-line.
    Leave,
}

/// An object, and what the test knows of it.
struct Object {
    retired: Retired,
    /// Those who read it, and are sure to.
    readers: AtomicI64,
    gone: AtomicBool,
    /// Read by readers, so that a schedule may change between their looks.
    word: AtomicU64,
}

impl Object {
    fn end(&self) {
        assert!(!self.gone.swap(true, Plain::SeqCst), "freed twice");
        assert_eq!(self.readers.load(Plain::SeqCst), 0, "freed under a reader");
    }
}

struct Round<'a> {
    arena: &'a Arena,
    epochs: &'a Epochs,
    places: [AtomicPtr<Object>; PLACES],
    made: AtomicI64,
    freed: AtomicI64,
}

/// What a thread has withdrawn, with stamps.
type Withdrawn = RefCell<Vec<(u64, NonNull<Object>)>>;

impl Round<'_> {
    fn object(&self) -> *mut Object {
        self.made.fetch_add(1, Plain::SeqCst);
        let (readers, gone, word) = (AtomicI64::new(0), AtomicBool::new(false), AtomicU64::new(0));
        let object = Object { retired: Retired::new(), readers, gone, word };
        std::ptr::from_ref(self.arena.place(object).unwrap()).cast_mut()
    }

    fn maintain(&self, core: &Core) {
        self.epochs.maintain(core, |_, kind, link| {
            assert_eq!(kind, RetiredKind(7));
            // SAFETY: only objects are retired, by their links; they lie in the arena for good.
            let object = unsafe { link.byte_sub(std::mem::offset_of!(Object, retired)).cast::<Object>().as_ref() };
            object.end();
            self.freed.fetch_add(1, Plain::SeqCst);
        });
    }

    fn look(&self, place: usize, times: u8) {
        // SAFETY: objects lie in the arena for good.
        let object = unsafe { &*self.places[place].load(Ordering::Acquire) };
        object.readers.fetch_add(1, Plain::SeqCst);
        for _ in 0..=times {
            assert!(!object.gone.load(Plain::SeqCst), "read when it was freed");
            object.word.load(Ordering::Relaxed);
        }
        assert!(!object.gone.load(Plain::SeqCst), "read when it was freed");
        object.readers.fetch_sub(1, Plain::SeqCst);
    }

    fn end_withdrawn(&self, withdrawn: &Withdrawn) {
        withdrawn.borrow_mut().retain(|(stamp, object)| {
            let has_passed = self.epochs.has_passed(*stamp);
            if has_passed {
                // SAFETY: objects lie in the arena for good.
                unsafe { object.as_ref() }.end();
                self.freed.fetch_add(1, Plain::SeqCst);
            }
            !has_passed
        });
    }

    fn act(&self, core: &Core, withdrawn: &Withdrawn, operation: Operation) {
        match operation {
            Operation::Read(place, times) => {
                let _guard = self.epochs.pin(core);
                self.look(place, times);
                let _again = self.epochs.pin(core);
                self.look((place + 1) % PLACES, times);
            }
            Operation::Replace(place) => {
                let new = self.object();
                let guard = self.epochs.pin(core);
                let old = NonNull::new(self.places[place].swap(new, Ordering::AcqRel)).unwrap();
                // SAFETY: the object lies in the arena, no one finds it any more, and only we have taken it out.
                unsafe { guard.retire(NonNull::from(&old.as_ref().retired), RetiredKind(7)) };
            }
            Operation::Withdraw(place) => {
                let old = NonNull::new(self.places[place].swap(self.object(), Ordering::AcqRel)).unwrap();
                withdrawn.borrow_mut().push((self.epochs.stamp(), old));
            }
            Operation::Maintain => self.maintain(core),
            Operation::MaintainAll => {
                self.maintain(core);
                self.arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| self.maintain(idle));
            }
            Operation::Leave => {}
        }
        self.end_withdrawn(withdrawn);
    }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let place = || 0..PLACES;
    prop_oneof![
        4 => (place(), 0..6_u8).prop_map(|(place, times)| Operation::Read(place, times)),
        3 => place().prop_map(Operation::Replace),
        2 => place().prop_map(Operation::Withdraw),
        5 => Just(Operation::Maintain),
        1 => Just(Operation::MaintainAll),
        1 => Just(Operation::Leave),
    ]
}

type Plan = Vec<Vec<Operation>>;

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 3;
    vec(vec(any_operation(), 36 / threads), threads)
}

fn check(_: u64, plan: &Plan) {
    let mut region = HeapRegion::new(256 << 10).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: CORES, chunk_bytes: 4096 }).unwrap();
    let (made, freed) = (AtomicI64::new(0), AtomicI64::new(0));
    let places = std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut()));
    let round = &Round { arena, epochs: Epochs::create(arena).unwrap(), places, made, freed };
    round.places.iter().for_each(|place| place.store(round.object(), Ordering::Release));
    let owner = OwnerId::new(1).unwrap();
    let left = play(plan, |thread| {
        let (mut core, withdrawn) = (None, Withdrawn::default());
        move |operation: &Operation| {
            if matches!(operation, Operation::Leave) {
                core = None;
            }
            let core = core.get_or_insert_with(|| arena.claim_waiting(thread, owner, &sync::Spin).unwrap());
            round.act(core, &withdrawn, *operation);
            withdrawn.borrow().len() as i64
        }
    });
    let left: i64 = left.iter().filter_map(|made| made.last()).map(|last| last.outcome).sum();
    let core = arena.claim_waiting(CORES - 1, owner, &sync::Spin).unwrap();
    for _ in 0..4 {
        round.maintain(&core);
        arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| round.maintain(idle));
    }
    let (made, freed) = (round.made.load(Plain::SeqCst), round.freed.load(Plain::SeqCst));
    assert_eq!(made - freed, PLACES as i64 + left, "of {made} objects {freed} were freed");
}

#[test]
fn objects_are_freed_once_and_not_under_readers() {
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
    for fault in ["epoch: free one epoch early", "epoch: advance past pinned cores"] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }
}
