//! Concurrent histories of cores that take, give and retire pages of a pool that is nearly empty: no one gets a page
//! that another has, and in the end each page is in use, or free and counted so, and can be had.
//!
//! A request may fail while others hold free pages for a moment: it found each budget empty, one after the other.
#![cfg(not(loom))]

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use epoch::Epochs;
use history::threads::lock;
use history::{explore, overtake, play, rounds};
use pages::{PAGE_BYTES, PageNumber, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;

const CORES: usize = 5;
/// More than a core takes at once, and not much.
const MOST_PAGES: usize = 24;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Allocate,
    /// The page that was had longest, or the last one.
    Free {
        longest: bool,
    },
    Retire,
    /// To the one that comes for it.
    Give,
    Accept,
    Count,
    Maintain,
    /// Also for cores that are off-line.
    MaintainAll,
    /// The thread's core goes off-line.
    Leave,
}

struct Round<'a> {
    arena: &'a Arena,
    epochs: &'a Epochs,
    pool: &'a PagePool,
    in_use: [AtomicBool; MOST_PAGES],
    /// Pages that may be free once they have been retired for long enough.
    retired: [AtomicBool; MOST_PAGES],
    given: Mutex<Vec<PageNumber>>,
}

impl Round<'_> {
    fn allocate(&self, core: &Core) -> Option<PageNumber> {
        let page = self.pool.allocate(core).ok()?;
        let index = page.get() as usize;
        let was_retired = self.retired[index].swap(false, Ordering::SeqCst);
        assert!(!self.in_use[index].swap(true, Ordering::SeqCst) || was_retired, "page {index} was had by two");
        Some(page)
    }

    fn free(&self, core: &Core, page: PageNumber) {
        self.in_use[page.get() as usize].store(false, Ordering::SeqCst);
        // SAFETY: allocated, and used by no one.
        unsafe { self.pool.free(core, page) };
    }

    fn maintain(&self, core: &Core) {
        self.epochs.maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`.
            assert!(unsafe { self.pool.free_retired(core, kind, object) });
        });
        self.pool.maintain(core);
    }

    fn act(&self, core: &Core, mine: &mut Vec<PageNumber>, operation: Operation) {
        match operation {
            Operation::Allocate => mine.extend(self.allocate(core)),
            Operation::Free { longest: true } if !mine.is_empty() => self.free(core, mine.remove(0)),
            Operation::Free { .. } => mine.pop().into_iter().for_each(|page| self.free(core, page)),
            Operation::Retire => {
                if let Some(page) = mine.pop() {
                    let guard = self.epochs.pin(core);
                    self.retired[page.get() as usize].store(true, Ordering::SeqCst);
                    // SAFETY: allocated, retired once, and not found by anybody any more.
                    unsafe { self.pool.retire(&guard, page) };
                }
            }
            Operation::Give => lock(&self.given).extend(mine.pop()),
            Operation::Accept => mine.extend(lock(&self.given).pop()),
            Operation::Count => assert!(self.pool.free_pages() <= self.pool.total()),
            Operation::Maintain => self.maintain(core),
            Operation::MaintainAll => {
                self.maintain(core);
                self.arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| self.maintain(idle));
            }
            Operation::Leave => {}
        }
    }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => Just(Operation::Allocate),
        4 => any::<bool>().prop_map(|longest| Operation::Free { longest }),
        3 => Just(Operation::Retire),
        2 => Just(Operation::Give),
        2 => Just(Operation::Accept),
        1 => Just(Operation::Count),
        2 => Just(Operation::Maintain),
        1 => Just(Operation::MaintainAll),
        1 => Just(Operation::Leave),
    ]
}

/// What each thread does, and with how many pages.
type Plan = (Vec<Vec<Operation>>, usize);

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 3;
    (vec(vec(any_operation(), 48 / threads), threads), prop_oneof![1..5_usize, 17..=MOST_PAGES])
}

fn check(_: u64, (plan, page_count): &Plan) {
    let mut region = HeapRegion::new(256 << 10).unwrap();
    let mut memory = HeapRegion::new(MOST_PAGES * PAGE_BYTES).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: CORES, chunk_bytes: 4096 }).unwrap();
    let base = NonNull::new(memory.as_mut_ptr()).unwrap();
    // SAFETY: the memory is ours alone until the round ends.
    let pool = unsafe { PagePool::create(arena, base, *page_count as u32) }.unwrap();
    let round = &Round {
        arena,
        epochs: Epochs::create(arena).unwrap(),
        pool,
        in_use: Default::default(),
        retired: Default::default(),
        given: Mutex::default(),
    };
    let owner = OwnerId::new(1).unwrap();
    let made = play(plan, |thread| {
        let (mut core, mut mine) = (None, vec![]);
        move |operation: &Operation| {
            if matches!(operation, Operation::Leave) {
                core = None;
            }
            round.act(
                core.get_or_insert_with(|| arena.claim_waiting(thread, owner, &sync::Spin).unwrap()),
                &mut mine,
                *operation,
            );
            mine.len()
        }
    });
    let mut used: usize = made.iter().filter_map(|made| made.last()).map(|last| last.outcome).sum();
    used += lock(&round.given).len();
    let core = arena.claim_waiting(CORES - 1, owner, &sync::Spin).unwrap();
    // What was retired last waits for a few rounds of all cores, and each takes several reports.
    for _ in 0..16 {
        round.maintain(&core);
        arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| round.maintain(idle));
    }
    assert_eq!(pool.free_pages() as usize, page_count - used, "pages that are free by the count");
    let left = std::iter::from_fn(|| round.allocate(&core)).count();
    assert_eq!((left, pool.free_pages()), (page_count - used, 0), "pages that could be had");
}

#[test]
fn no_page_is_lost_or_had_by_two() {
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
    sync::mutant::must_be_caught("pages: pop in two steps", || explore(0..20_000, plans, check));
}
