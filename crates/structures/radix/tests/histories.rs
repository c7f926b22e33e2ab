//! Concurrent histories of an array: an order must exist in which plain slots are the same; who has locked an index is alone;
//! nothing stays locked, and no node is lost.
//!
//! A range is emptied or filled index by index, from left to right, and others that change it are kept off in the
//! meantime. Whether there are values from an index on is said of each index at a moment of its own. Who reads an
//! index, and not only gets its value, sees what that stands for as it was at the same moment.
#![cfg(not(loom))]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering as Plain};

use epoch::{Epochs, Guard};
use history::{Event, Made, State, expect_order, explore, overtake, play, rounds, told};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OutOfMemory, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use radix::{RadixArray, free_retired};
use sync::Spin;
use sync::atomic::{AtomicU64, Ordering};

/// Indices that are looked at: of four leaves below two heights.
const PROBES: [u64; 7] = [0, 1, 15, 16, 17, 40, 1030];
/// Where ranges begin and end.
const BOUNDS: [u64; 8] = [0, 1, 2, 16, 17, 32, 48, 1040];
const CORES: usize = 5;
/// Values from here on are set without what they stand for.
const BARE: u64 = 100;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Get(usize),
    Read(usize),
    AnyFrom(usize),
    FirstEmpty(usize),
    /// One index.
    Set(usize, Option<u64>),
    /// One index of a range that is locked for that.
    SetIn(usize, usize, usize, u64),
    Fill(usize, usize, Option<u64>),
    CutFrom(usize),
    /// Sets an index, and empties all after it.
    CutAfter(usize, u64),
    Maintain,
    /// Also for cores that are off-line.
    MaintainAll,
    /// The thread's core goes off-line.
    Leave,
}

/// An operation, and after how many allocations there is no memory left for it.
type Attempt = (Operation, Option<u32>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Is(usize, Option<u64>),
    /// One of the probes from this on.
    SomeFrom(usize),
    /// Keeps others off these.
    Lock(Range<usize>),
    Put(usize, Option<u64>),
    Unlock(Range<usize>),
}

/// What is seen of the array; which probes are locked, by which thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Slots {
    values: [Option<u64>; PROBES.len()],
    locked: [Option<usize>; PROBES.len()],
}

impl State for Slots {
    type Step = Step;

    fn take(&mut self, thread: usize, step: &Step) -> bool {
        match step {
            Step::Is(probe, value) => self.values[*probe] == *value,
            Step::SomeFrom(probe) => self.values[*probe..].iter().any(Option::is_some),
            Step::Lock(range) => {
                let is_free = self.locked[range.clone()].iter().all(Option::is_none);
                self.locked[range.clone()].fill(Some(thread));
                is_free
            }
            Step::Put(probe, value) => {
                self.values[*probe] = *value;
                true
            }
            Step::Unlock(range) => {
                self.locked[range.clone()].fill(None);
                true
            }
        }
    }
}

struct Round<'a> {
    epochs: &'a Epochs,
    array: RadixArray,
    /// What values below [`BARE`] stand for: two words that are equal but for the middle of a change.
    memory: [[AtomicU64; 2]; PROBES.len()],
    held: [AtomicBool; PROBES.len()],
}

/// The probes that lie in a range.
fn probes(range: Range<u64>) -> Range<usize> {
    PROBES.partition_point(|probe| *probe < range.start)..PROBES.partition_point(|probe| *probe < range.end)
}

/// The steps of an operation that locked a range and changed some of its indices.
fn changed(range: Range<usize>, values: impl IntoIterator<Item = (usize, Option<u64>)>) -> Vec<Step> {
    let puts = values.into_iter().map(|(probe, value)| Step::Put(probe, value));
    [Step::Lock(range.clone())].into_iter().chain(puts).chain([Step::Unlock(range)]).collect()
}

impl Round<'_> {
    fn maintain(&self, core: &Core) {
        self.epochs.maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`.
            assert!(unsafe { free_retired(core, kind, object) });
        });
    }

    /// With a range locked.
    fn alone<R>(&self, range: Range<usize>, act: impl FnOnce() -> R) -> R {
        let held = &self.held[range];
        assert!(held.iter().all(|held| !held.swap(true, Plain::SeqCst)), "locked twice");
        let result = act();
        held.iter().for_each(|held| held.store(false, Plain::SeqCst));
        result
    }

    fn write(&self, probe: usize, value: Option<u64>) -> Option<u64> {
        if let Some(value) = value {
            self.memory[probe].iter().for_each(|word| word.store(value, Ordering::Relaxed));
        }
        value
    }

    fn read(&self, guard: &Guard, probe: usize) -> Option<u64> {
        let look = |value: Option<u64>| {
            value.map(|value| (value, self.memory[probe].each_ref().map(|word| word.load(Ordering::Relaxed))))
        };
        let seen = self.array.read(guard, PROBES[probe], &Spin, look);
        let is_torn = |(value, words): &(u64, [u64; 2])| *value < BARE && *words != [*value; 2];
        assert!(!seen.as_ref().is_some_and(is_torn), "read in the middle of a change: {seen:?}");
        seen.map(|(value, _)| value)
    }

    fn act(&self, core: &Core, operation: Operation) -> Result<Vec<Step>, OutOfMemory> {
        let guard = &self.epochs.pin(core);
        let array = &self.array;
        Ok(match operation {
            Operation::Get(probe) => vec![Step::Is(probe, array.get(guard, PROBES[probe]))],
            Operation::Read(probe) => vec![Step::Is(probe, self.read(guard, probe))],
            Operation::AnyFrom(probe) if array.any_from(guard, PROBES[probe], &Spin, |_| false) => {
                vec![Step::SomeFrom(probe)]
            }
            Operation::AnyFrom(probe) => (probe..PROBES.len()).map(|probe| Step::Is(probe, None)).collect(),
            Operation::FirstEmpty(probe) => {
                let first = array.first_empty(guard, PROBES[probe]);
                PROBES.iter().position(|probe| *probe == first).map(|probe| Step::Is(probe, None)).into_iter().collect()
            }
            Operation::Set(probe, value) => {
                let slot = array.lock_slot(guard, PROBES[probe], &Spin)?;
                self.alone(probe..probe + 1, || slot.change(|| self.write(probe, value)));
                changed(probe..probe + 1, [(probe, value)])
            }
            Operation::SetIn(start, end, probe, value) => {
                let range = BOUNDS[start]..BOUNDS[end];
                let covered = probes(range.clone());
                let probe = covered.start + probe % covered.len();
                let locked = array.lock(guard, range, &Spin)?;
                self.alone(covered.clone(), || locked.set(PROBES[probe], Some(BARE + value)))?;
                changed(covered, [(probe, Some(BARE + value))])
            }
            Operation::Fill(start, end, value) => {
                let covered = probes(BOUNDS[start]..BOUNDS[end]);
                let value = value.map(|value| BARE + value);
                let locked = array.lock(guard, BOUNDS[start]..BOUNDS[end], &Spin)?;
                self.alone(covered.clone(), || locked.fill(value, |_, _| ()));
                changed(covered.clone(), covered.map(|probe| (probe, value)))
            }
            Operation::CutFrom(start) => {
                let covered = probes(BOUNDS[start]..u64::MAX);
                let locked = array.lock_from(guard, BOUNDS[start], &Spin)?;
                self.alone(covered.clone(), || locked.fill(None, |_, _| ()));
                changed(covered.clone(), covered.map(|probe| (probe, None)))
            }
            Operation::CutAfter(probe, value) => {
                let (slot, rest) = array.lock_slot_and_rest(guard, PROBES[probe], &Spin)?;
                let change = || {
                    rest.fill(None, |_, _| ());
                    self.write(probe, Some(value))
                };
                self.alone(probe..PROBES.len(), || slot.change(change));
                let emptied = (probe + 1..PROBES.len()).map(|probe| (probe, None));
                changed(probe..PROBES.len(), emptied.chain([(probe, Some(value))]))
            }
            Operation::Maintain | Operation::MaintainAll | Operation::Leave => vec![],
        })
    }
}

fn any_operation(only_empties: bool) -> impl Strategy<Value = Attempt> {
    let probe = || prop_oneof![3 => 0..3_usize, 2 => 0..PROBES.len()];
    let range = || {
        let any = (0..BOUNDS.len() - 1).prop_flat_map(|start| (Just(start), start + 1..BOUNDS.len()));
        any.prop_filter("a probe", |(start, end)| !probes(BOUNDS[*start]..BOUNDS[*end]).is_empty())
    };
    let value = || 1..50_u64;
    let fill = if only_empties { Just(None).boxed() } else { proptest::option::of(value()).boxed() };
    let operation = prop_oneof![
        // Where ranges are filled, indices that are not looked at have values, too.
        3 => probe().prop_map(move |probe| match only_empties {
            true => Operation::AnyFrom(probe),
            false => Operation::FirstEmpty(probe),
        }),
        3 => probe().prop_map(Operation::Get),
        6 => probe().prop_map(Operation::Read),
        6 => (probe(), proptest::option::weighted(0.8, value())).prop_map(|(probe, value)| Operation::Set(probe, value)),
        2 => (range(), 0..9_usize, value())
            .prop_map(|((start, end), probe, value)| Operation::SetIn(start, end, probe, value)),
        4 => (range(), fill).prop_map(|((start, end), value)| Operation::Fill(start, end, value)),
        2 => (0..BOUNDS.len()).prop_map(Operation::CutFrom),
        2 => (probe(), value()).prop_map(|(probe, value)| Operation::CutAfter(probe, value)),
        3 => Just(Operation::Maintain),
        1 => Just(Operation::MaintainAll),
        1 => Just(Operation::Leave),
    ];
    (operation, proptest::option::weighted(0.1, 0..2_u32))
}

/// What each thread does, and whether ranges are only emptied.
type Plan = (Vec<Vec<Attempt>>, bool);

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let (threads, only_empties) = (2 + number as usize % 3, (number / 3).is_multiple_of(2));
    (vec(vec(any_operation(only_empties), 18 / threads), threads), Just(only_empties))
}

/// The steps of an operation: in their order, or, of a look at many indices, each at its own moment.
fn events(made: &[Vec<Made<Attempt, Vec<Step>>>]) -> Vec<Vec<Event<Step>>> {
    let event = |made: &Made<Attempt, _>, steps| Event { steps, began: made.began, ended: made.ended };
    let mut events: Vec<Vec<_>> =
        made.iter().map(|made| made.iter().map(|made| event(made, made.outcome.clone())).collect()).collect();
    for thread in 0..events.len() {
        for (index, made) in made[thread].iter().enumerate() {
            if matches!(made.operation.0, Operation::AnyFrom(_)) && made.outcome.len() > 1 {
                let looks = std::mem::take(&mut events[thread][index].steps);
                events.extend(looks.into_iter().map(|look| vec![event(made, vec![look])]));
            }
        }
    }
    events
}

fn check(number: u64, (plan, _): &Plan) {
    let mut region = HeapRegion::new(512 << 10).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: CORES, chunk_bytes: 4096 }).unwrap();
    let round = &Round {
        epochs: Epochs::create(arena).unwrap(),
        // SAFETY: used with this arena and its one `Epochs`.
        array: unsafe { RadixArray::new() },
        memory: Default::default(),
        held: Default::default(),
    };
    let owner = OwnerId::new(1).unwrap();
    let made = play(plan, |thread| {
        let mut core = None;
        move |(operation, memory): &Attempt| {
            if matches!(operation, Operation::Leave) {
                core = None;
            }
            let core = core.get_or_insert_with(|| arena.claim_waiting(thread, owner, &sync::Spin).unwrap());
            core.fail_allocations_after(*memory);
            let steps = round.act(core, *operation).unwrap_or_default();
            core.fail_allocations_after(None);
            if matches!(operation, Operation::Maintain | Operation::MaintainAll) {
                round.maintain(core);
            }
            if matches!(operation, Operation::MaintainAll) {
                arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| round.maintain(idle));
            }
            steps
        }
    });
    let core = arena.claim_waiting(CORES - 1, owner, &sync::Spin).unwrap();
    let guard = round.epochs.pin(&core);
    // Waits forever if anything is still locked.
    drop(round.array.lock_from(&guard, 0, &Spin).unwrap());
    let mut events = events(&made);
    let last = |probe| Step::Is(probe, round.array.get(&guard, PROBES[probe]));
    events.push(vec![Event { steps: (0..PROBES.len()).map(last).collect(), began: u64::MAX - 1, ended: u64::MAX }]);
    drop(guard);
    expect_order(number, &events, &Slots::default(), || told(&made));
    // SAFETY: all threads have ended.
    unsafe { round.array.destroy(&core) };
    for _ in 0..4 {
        round.maintain(&core);
        arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| round.maintain(idle));
    }
    assert_eq!(arena.live_bytes(), 0, "nodes were lost");
}

#[test]
fn slots_have_an_order() {
    explore(rounds(400), plans, check);
}

#[test]
fn so_it_is_where_a_thread_is_overtaken_at_any_access() {
    overtake(history::plans(10), plans, check);
}

/// The whole of an empty array was locked by its root, and the first index had no slot of its own.
#[test]
fn the_first_index_of_an_empty_array_gets_a_slot() {
    let plan = vec![vec![(Operation::CutAfter(0, 1), None), (Operation::Set(0, Some(2)), None)]];
    history::repeat(1, (plan, true), check);
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for fault in [
        "radix: folded slots are not dead",
        "radix: cuts do not lock the root",
        "radix: lock in two steps",
        "radix: an empty root is taken to stay so",
    ] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }
}
