//! Concurrent histories of counts: an order must exist in which plain numbers are the same, and objects die once, when
//! no one has a reference, and all of them do.
//!
//! A count that depends on an operation changes when that commits. An eager release is two steps: it gives up the
//! reference, and then asks whether the count is zero. A weak reference fails only when its object has no other, and from
//! then on.
#![cfg(not(loom))]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use commit::Decisions;
use history::{Event, Made, State, expect_order, explore, overtake, play, rounds, told};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use refcache::{Count, Counted, CountedKind, Noted, RefCache, RefCacheConfig, WeakRef};
use sync::Spin;

const OBJECTS: usize = 3;
const CORES: usize = 5;

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// One reference more, made from one that the thread has.
    Take(usize),
    Release(usize),
    ReleaseEagerly(usize),
    /// A reference more or less if an operation commits: whether it is firm, and tries to commit.
    Conditional {
        object: usize,
        up: bool,
        firm: bool,
        commits: bool,
    },
    Read(usize),
    Upgrade(usize),
    /// Leaves a reference to the one that comes for it.
    Give(usize),
    Accept(usize),
    Maintain,
    /// Also for cores that are off-line.
    MaintainAll,
    /// The thread's core goes off-line.
    Leave,
}

/// What happened to a count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Change(usize, i64),
    Is(usize, i64),
    IsZero(usize, bool),
    Upgraded(usize),
    IsGone(usize),
}

/// Counts, and whose weak reference has failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Counts {
    counts: [i64; OBJECTS],
    gone: [bool; OBJECTS],
}

impl State for Counts {
    type Step = Step;

    fn take(&mut self, _thread: usize, step: &Step) -> bool {
        match *step {
            Step::Change(object, delta) => self.counts[object] += delta,
            Step::Is(object, count) => return self.counts[object] == count,
            Step::IsZero(object, is_zero) => return (self.counts[object] == 0) == is_zero,
            Step::Upgraded(object) => {
                self.counts[object] += 1;
                return !self.gone[object];
            }
            Step::IsGone(object) => {
                self.gone[object] = true;
                return self.counts[object] == 0;
            }
        }
        true
    }
}

/// A count, by the way in which it is read.
trait Kind: Count + Sized {
    const HAS_WEAK: bool;

    fn new(count: i64, number: u64) -> Self;

    fn applied(&self) -> i64 {
        self.counted().applied()
    }
}

impl Kind for Counted {
    const HAS_WEAK: bool = true;

    fn new(count: i64, _number: u64) -> Counted {
        Counted::new(count, CountedKind(1))
    }
}

impl Kind for Noted {
    const HAS_WEAK: bool = false;

    fn new(count: i64, number: u64) -> Noted {
        #[cfg(shuttle)]
        if number.is_multiple_of(3) {
            return Noted::listed(count, CountedKind(1));
        }
        let _ = number;
        Noted::new(count, CountedKind(1))
    }
}

/// An object's parts, and what the test knows of it.
struct Object<'a, C> {
    counted: &'a C,
    weak: &'a WeakRef,
    /// References that threads are sure to have.
    held: AtomicI64,
    /// Of these, references that were given and not accepted yet.
    given: AtomicI64,
    freed: AtomicBool,
}

struct Round<'a, C> {
    arena: &'a Arena,
    decisions: &'a Decisions,
    cache: &'a RefCache,
    objects: [Object<'a, C>; OBJECTS],
}

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

impl<C> Object<'_, C> {
    fn hold(&self) {
        self.held.fetch_add(1, Ordering::SeqCst);
        assert!(!self.freed.load(Ordering::SeqCst), "freed under a reference");
    }
}

impl<'a, C: Kind> Round<'a, C> {
    fn new(region: &'a mut HeapRegion, number: u64, held: i64) -> Round<'a, C> {
        let arena = Arena::create(region, ArenaConfig { core_count: CORES, chunk_bytes: 4096 }).unwrap();
        let decisions = Decisions::create(arena).unwrap();
        let config = RefCacheConfig { slots_per_core: 1 << (number % 2), seed: number };
        let cache = RefCache::create(arena, decisions, config).unwrap();
        let objects = std::array::from_fn(|_| {
            let counted = arena.place(C::new(held, number)).unwrap();
            let weak = arena.place(WeakRef::new()).unwrap();
            if C::HAS_WEAK {
                // SAFETY: both are placed in the arena for good.
                unsafe { weak.attach(counted.counted()) };
            }
            Object {
                counted,
                weak,
                held: AtomicI64::new(held),
                given: AtomicI64::new(0),
                freed: AtomicBool::new(false),
            }
        });
        Round { arena, decisions, cache, objects }
    }

    fn maintain(&self, core: &Core) {
        let free = |_: &Core<'_>, dead: NonNull<Counted>| {
            let object =
                self.objects.iter().find(|object| std::ptr::eq(object.counted.counted(), dead.as_ptr())).unwrap();
            assert!(!object.freed.swap(true, Ordering::SeqCst), "freed twice");
            assert_eq!(object.held.load(Ordering::SeqCst), 0, "freed under a reference");
        };
        // SAFETY: a test's core holds no pointers between its calls.
        unsafe { self.cache.maintain(core, free) };
    }

    /// Does one operation; `mine` are the references that the thread has. Without one most operations must not be done.
    fn act(&self, core: &Core, mine: &mut [i64; OBJECTS], operation: Operation) -> Vec<Step> {
        use Operation::*;
        let object = match operation {
            Upgrade(object) | Accept(object) => object,
            Take(object) | Release(object) | ReleaseEagerly(object) => object,
            Read(object) | Give(object) | Conditional { object, .. } => object,
            Maintain | MaintainAll | Leave => 0,
        };
        let needs_none = matches!(operation, Upgrade(_) | Accept(_) | Maintain | MaintainAll | Leave);
        if (mine[object] == 0 && !needs_none) || (matches!(operation, Upgrade(_)) && !C::HAS_WEAK) {
            return vec![];
        }
        let Object { counted, weak, held, given, .. } = &self.objects[object];
        let change = |delta| {
            // SAFETY: objects are placed in the arena for good; the thread has a reference.
            unsafe { self.cache.change(core, *counted, delta) }
        };
        match operation {
            Take(_) => {
                change(1);
                mine[object] += 1;
                self.objects[object].hold();
                vec![Step::Change(object, 1)]
            }
            Release(_) => {
                mine[object] -= 1;
                held.fetch_sub(1, Ordering::SeqCst);
                change(-1);
                vec![Step::Change(object, -1)]
            }
            ReleaseEagerly(_) => {
                mine[object] -= 1;
                held.fetch_sub(1, Ordering::SeqCst);
                // SAFETY: as above.
                let is_zero = unsafe { self.cache.decrement_eager(core, *counted, &Spin) };
                vec![Step::Change(object, -1), Step::IsZero(object, is_zero)]
            }
            Conditional { up, firm, commits, .. } => {
                let delta = if up { 1 } else { -1 };
                held.fetch_sub(i64::from(!up), Ordering::SeqCst);
                let operation =
                    if firm { self.decisions.begin_firm(core) } else { self.decisions.begin_revocable(core) };
                // SAFETY: as above.
                unsafe { self.cache.prepare(core, *counted, delta, operation.tag()) };
                let happens = commits && operation.commit().is_ok();
                if !happens {
                    operation.abort();
                }
                // SAFETY: as above.
                unsafe { self.cache.settle(core, *counted, happens) };
                if happens == up {
                    self.objects[object].hold();
                }
                if !happens {
                    return vec![];
                }
                mine[object] += delta;
                vec![Step::Change(object, delta)]
            }
            Read(_) => {
                sync::atomic::fence(Ordering::SeqCst);
                // SAFETY: as above.
                let count = unsafe { self.cache.exact_after_fence(core, *counted, &Spin) };
                vec![Step::Is(object, count)]
            }
            Upgrade(_) => match self.cache.upgrade(core, weak) {
                Some(target) => {
                    assert!(std::ptr::eq(counted.counted(), target.as_ptr()));
                    mine[object] += 1;
                    self.objects[object].hold();
                    vec![Step::Upgraded(object)]
                }
                None => vec![Step::IsGone(object)],
            },
            Give(_) => {
                mine[object] -= 1;
                given.fetch_add(1, Ordering::SeqCst);
                vec![]
            }
            Accept(_) => {
                let accepted =
                    given.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left > 0).then(|| left - 1));
                mine[object] += i64::from(accepted.is_ok());
                vec![]
            }
            Maintain => {
                self.maintain(core);
                vec![]
            }
            MaintainAll => {
                self.maintain(core);
                self.arena.for_each_idle_core(owner(), |idle| self.maintain(idle));
                vec![]
            }
            Leave => vec![],
        }
    }
}

fn any_operation(objects: usize) -> impl Strategy<Value = Operation> {
    let object = move || prop_oneof![2 => Just(0_usize), 1 => 0..objects];
    prop_oneof![
        4 => object().prop_map(Operation::Take),
        5 => object().prop_map(Operation::Release),
        2 => object().prop_map(Operation::ReleaseEagerly),
        2 => (object(), any::<bool>(), any::<bool>(), proptest::bool::weighted(0.8))
            .prop_map(|(object, up, firm, commits)| Operation::Conditional { object, up, firm, commits }),
        3 => object().prop_map(Operation::Read),
        3 => object().prop_map(Operation::Upgrade),
        4 => object().prop_map(Operation::Give),
        6 => object().prop_map(Operation::Accept),
        12 => Just(Operation::Maintain),
        2 => Just(Operation::MaintainAll),
        1 => Just(Operation::Leave),
    ]
}

/// What each thread does, and whether each begins with a reference to each object, or one thread alone.
type Plan = (Vec<Vec<Operation>>, bool);

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 3;
    // Counts that meet in slots, or many changes of one.
    let objects = if (number / 3).is_multiple_of(2) { OBJECTS } else { 1 };
    (vec(vec(any_operation(objects), 48 / threads), threads), any::<bool>())
}

fn check(number: u64, plan: &Plan) {
    check_of::<Counted>(number, plan);
}

/// Counts that note their holders, some of which do so from the start.
fn check_noted(number: u64, plan: &Plan) {
    check_of::<Noted>(number, plan);
}

fn check_of<C: Kind>(number: u64, (plan, all_have): &Plan)
where
    for<'a> Round<'a, C>: Sync,
{
    let mut region = HeapRegion::new(256 << 10).unwrap();
    let begins_with = |thread: usize| i64::from(*all_have || thread == 0);
    let count = (0..plan.len()).map(begins_with).sum();
    let round = &Round::<C>::new(&mut region, number, count);
    let left: [AtomicI64; OBJECTS] = std::array::from_fn(|_| AtomicI64::new(0));
    let made = play(plan, |thread| {
        let left = &left;
        let (mut core, mut mine) = (None, [begins_with(thread); OBJECTS]);
        let mut to_do = plan[thread].len();
        move |operation: &Operation| {
            let steps = if matches!(operation, Operation::Leave) {
                core = None;
                vec![]
            } else {
                let core = core.get_or_insert_with(|| round.arena.claim_waiting(thread, owner(), &sync::Spin).unwrap());
                round.act(core, &mut mine, *operation)
            };
            to_do -= 1;
            if to_do == 0 {
                mine.iter().enumerate().for_each(|(object, mine)| _ = left[object].fetch_add(*mine, Ordering::SeqCst));
            }
            steps
        }
    });
    let mut events: Vec<Vec<Event<Step>>> = made.iter().map(|made| made.iter().map(event).collect()).collect();
    let left = left.map(AtomicI64::into_inner);
    let core = round.arena.claim_waiting(CORES - 1, owner(), &sync::Spin).unwrap();
    for _ in 0..12 {
        round.maintain(&core);
        round.arena.for_each_idle_core(owner(), |idle| round.maintain(idle));
    }
    let mut last = vec![];
    for (object, (parts, left)) in round.objects.iter().zip(left).enumerate() {
        let left = left + parts.given.load(Ordering::SeqCst);
        assert_eq!(parts.held.load(Ordering::SeqCst), left);
        assert_eq!(parts.freed.load(Ordering::SeqCst), left == 0, "object {object} with {left} references");
        // SAFETY: placed in the arena for good.
        let count = unsafe { round.cache.exact(parts.counted, &Spin) };
        assert_eq!((count, parts.counted.applied()), (left, left), "object {object}");
        last.push(Event { steps: vec![Step::Is(object, left)], began: u64::MAX - 1, ended: u64::MAX });
    }
    events.push(last);
    let start = Counts { counts: [count; OBJECTS], gone: [false; OBJECTS] };
    expect_order(number, &events, &start, || told(&made));
}

fn event(made: &Made<Operation, Vec<Step>>) -> Event<Step> {
    Event { steps: made.outcome.clone(), began: made.began, ended: made.ended }
}

#[test]
fn counts_have_an_order_and_objects_die_once() {
    explore(rounds(400), plans, check);
}

#[test]
fn counts_that_note_their_holders_have_an_order_too() {
    explore(rounds(400), plans, check_noted);
}

#[test]
fn so_it_is_where_a_thread_is_overtaken_at_any_access() {
    overtake(history::plans(10), plans, check);
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for fault in [
        "refcache: used weak references are ignored",
        "refcache: single collect",
        "refcache: review an epoch early",
        "refcache: epochs do not wait for flushes",
    ] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }
    for fault in ["percpu: a holder is not noted", "refcache: a core is struck off before its delta is applied"] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check_noted));
    }
    // A count is zero when it is queued, and again when it is reviewed, but was not in between, and is not.
    use Operation::*;
    let one = vec![Take(0), Give(0), Maintain, Maintain, Give(0), Maintain];
    let other = vec![Accept(0), Release(0), Maintain, Maintain, Maintain, Accept(0), Release(0), Maintain];
    let third = vec![Maintain, Maintain, Accept(0), Take(0), Give(0)];
    let plan = (vec![one, other, third], false);
    sync::mutant::must_be_caught("refcache: dirt is ignored", || history::repeat(60_000, plan, check));
}
