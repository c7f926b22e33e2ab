//! Concurrent histories of words that rise: an order must exist in which plain words are the same.
//!
//! A reset is two steps: it tells what the words were, and sets them. A raise between the two counts as having come before the
//! reset, and is lost. A floor is what the words are at least.
#![cfg(not(loom))]

#[cfg(shuttle)]
use history::repeat;
use history::{Event, State, expect_order, explore, overtake, play, rounds, told};
use maxima::{Maxima, MaximaConfig, Maximum};
use percpu::{Arena, ArenaConfig, Core, CoreIndex, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use sync::Spin;

const OBJECTS: usize = 3;
const CORES: usize = 5;
type Words = [u64; 2];

#[derive(Clone, Copy, Debug)]
enum Operation {
    Raise(usize, Words),
    Read(usize),
    /// As a core does that has just been pinned.
    ReadAfterFence(usize),
    Floor(usize),
    /// Of the thread's core and another one.
    FloorOfCores(usize, usize),
    Reset(usize, Words),
    Flush,
    /// Also for cores that are off-line.
    FlushAll,
    /// The thread's core goes off-line.
    Leave,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Raise(usize, Words),
    Are(usize, Words),
    AreAtLeast(usize, Words),
    Set(usize, Words),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Plain([Words; OBJECTS]);

fn raised(words: Words, by: Words) -> Words {
    [words[0].max(by[0]), words[1].max(by[1])]
}

impl State for Plain {
    type Step = Step;

    fn take(&mut self, _thread: usize, step: &Step) -> bool {
        match *step {
            Step::Raise(object, words) => self.0[object] = raised(self.0[object], words),
            Step::Are(object, words) => return self.0[object] == words,
            Step::AreAtLeast(object, words) => return raised(self.0[object], words) == self.0[object],
            Step::Set(object, words) => self.0[object] = words,
        }
        true
    }
}

struct Round<'a> {
    arena: &'a Arena,
    maxima: &'a Maxima<2>,
    objects: [&'a Maximum<2>; OBJECTS],
}

impl Round<'_> {
    fn act(&self, core: &Core, operation: Operation) -> Vec<Step> {
        match operation {
            Operation::Raise(object, words) => {
                // SAFETY: objects lie in the arena for good.
                unsafe { self.maxima.raise(core, self.objects[object], words, &Spin) };
                vec![Step::Raise(object, words)]
            }
            Operation::Read(object) => vec![Step::Are(object, self.maxima.read(self.objects[object], &Spin))],
            Operation::ReadAfterFence(object) => {
                sync::atomic::fence(sync::atomic::Ordering::SeqCst);
                // SAFETY: as above.
                vec![Step::Are(object, unsafe { self.maxima.read_after_fence(core, self.objects[object], &Spin) })]
            }
            Operation::Floor(object) => {
                self.objects[object].floor().map(|floor| Step::AreAtLeast(object, floor.words)).into_iter().collect()
            }
            Operation::FloorOfCores(object, other) => {
                let cores = [core.index(), CoreIndex::new(other).unwrap()];
                let floor = self.maxima.floor_of_cores(self.objects[object], cores);
                floor.map(|floor| Step::AreAtLeast(object, floor.words)).into_iter().collect()
            }
            Operation::Reset(object, words) => {
                let (reset, before) = self.maxima.reset(core, self.objects[object], &Spin);
                reset.finish(words);
                vec![Step::Are(object, before), Step::Set(object, words)]
            }
            Operation::Flush => {
                self.maxima.flush(core, &Spin);
                vec![]
            }
            Operation::FlushAll => {
                self.maxima.flush(core, &Spin);
                self.arena.for_each_idle_core(OwnerId::new(1).unwrap(), |idle| self.maxima.flush(idle, &Spin));
                vec![]
            }
            Operation::Leave => vec![],
        }
    }
}

fn any_operation(objects: usize) -> impl Strategy<Value = Operation> {
    let object = move || prop_oneof![2 => Just(0_usize), 1 => 0..objects];
    let words = || [1..12_u64, 1..12_u64];
    prop_oneof![
        7 => (object(), words()).prop_map(|(object, words)| Operation::Raise(object, words)),
        4 => object().prop_map(Operation::Read),
        1 => object().prop_map(Operation::ReadAfterFence),
        1 => object().prop_map(Operation::Floor),
        2 => (object(), 0..CORES).prop_map(|(object, other)| Operation::FloorOfCores(object, other)),
        2 => (object(), words()).prop_map(|(object, words)| Operation::Reset(object, words)),
        2 => Just(Operation::Flush),
        1 => Just(Operation::FlushAll),
        1 => Just(Operation::Leave),
    ]
}

type Plan = Vec<Vec<Operation>>;

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 3;
    // Objects that meet in slots, or many operations on one.
    let objects = if (number / 3).is_multiple_of(2) { OBJECTS } else { 1 };
    vec(vec(any_operation(objects), 18 / threads), threads)
}

/// Some note from the start which cores hold them.
fn new(number: u64) -> Maximum<2> {
    #[cfg(shuttle)]
    if number.is_multiple_of(5) {
        return Maximum::listed([1, 1]);
    }
    let _ = number;
    Maximum::new([1, 1])
}

fn check(number: u64, plan: &Plan) {
    let mut region = HeapRegion::new(256 << 10).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: CORES, chunk_bytes: 4096 }).unwrap();
    let config = MaximaConfig { slots_per_core: 1 << (number % 2), seed: number };
    let maxima = Maxima::create(arena, config).unwrap();
    let objects = std::array::from_fn(|_| arena.place(new(number)).unwrap());
    let round = &Round { arena, maxima, objects };
    let owner = OwnerId::new(1).unwrap();
    let made = play(plan, |thread| {
        let mut core = None;
        move |operation: &Operation| {
            if matches!(operation, Operation::Leave) {
                core = None;
            }
            round.act(core.get_or_insert_with(|| arena.claim_waiting(thread, owner, &sync::Spin).unwrap()), *operation)
        }
    });
    let event = |(steps, began, ended)| Event { steps, began, ended };
    let mut events: Vec<Vec<_>> = made
        .iter()
        .map(|made| made.iter().map(|made| event((made.outcome.clone(), made.began, made.ended))).collect())
        .collect();
    let core = arena.claim_waiting(CORES - 1, owner, &sync::Spin).unwrap();
    let read = |object: usize| maxima.read(round.objects[object], &Spin);
    let last: [Words; OBJECTS] = std::array::from_fn(read);
    round.act(&core, Operation::FlushAll);
    for (object, words) in last.into_iter().enumerate() {
        assert_eq!((read(object), round.objects[object].applied()), (words, words), "lost in a flush");
        events.push(vec![event((vec![Step::Are(object, words)], u64::MAX - 1, u64::MAX))]);
    }
    expect_order(number, &events, &Plain([[1, 1]; OBJECTS]), || told(&made));
}

#[test]
fn words_have_an_order() {
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
    for fault in [
        "maxima: a reset looks when it has begun",
        "maxima: single collect",
        "maxima: slots are emptied first",
        "maxima: reset keeps its generation",
    ] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }
    // The slot gets another object's words between two looks at it, which a drawn plan seldom meets.
    let fault = "maxima: a slot is looked at in the middle of a change";
    let raises = vec![Operation::Raise(0, [2, 2]), Operation::Raise(1, [11, 11])];
    let plan = vec![raises, vec![Operation::FloorOfCores(0, 0); 3]];
    sync::mutant::must_be_caught(fault, || repeat(20_000, plan.clone(), check));
}
