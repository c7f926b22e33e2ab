//! Concurrent histories of bare words that depend on operations: a move of two (firm), a link of one that rests on another
//! (revocable). An order must exist in which plain booleans are the same.
#![cfg(not(loom))]

use commit::{Decisions, Observed, Operation as Undecided, Tag};
use history::{Event, State, expect_order, explore, overtake, play, rounds, told};
use percpu::{Arena, ArenaConfig, Core, CoreLock, HeapRegion, LockRank, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use sync::Spin;
use sync::atomic::{AtomicU64, Ordering};

const NAMES: usize = 3;
const CORES: usize = 4;
const RANK: LockRank = LockRank(1);

#[derive(Clone, Copy, Debug)]
enum Operation {
    Look(usize),
    Make(usize),
    Remove(usize),
    /// One for another that is not there; or tries to, and thinks better of it.
    Move(usize, usize, bool),
    /// Makes a name if another is there, which it does not lock.
    Link(usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Is(usize, bool),
    Set(usize, bool),
    Move(usize, usize),
    Link(usize, usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Plain([bool; NAMES]);

impl State for Plain {
    type Step = Step;

    fn take(&mut self, _thread: usize, step: &Step) -> bool {
        match *step {
            Step::Is(name, exists) => self.0[name] == exists,
            Step::Set(name, exists) => std::mem::replace(&mut self.0[name], exists) != exists,
            Step::Move(from, to) => std::mem::take(&mut self.0[from]) && !std::mem::replace(&mut self.0[to], true),
            Step::Link(from, to) => self.0[from] && !std::mem::replace(&mut self.0[to], true),
        }
    }
}

/// A name that is there, is not, or appears or disappears with an operation.
#[derive(Default)]
struct Name {
    /// Bit 0: there, or appears; bit 1: with the operation whose tag is above.
    state: AtomicU64,
    lock: CoreLock,
}

impl Name {
    fn mark(&self, tag: Tag, exists: bool) {
        self.state.store(tag.to_bits() << 2 | 2 | u64::from(exists), Ordering::Release);
    }

    fn settle(&self, exists: bool) {
        self.state.store(exists.into(), Ordering::Release);
    }

    fn exists(&self, decisions: &Decisions) -> bool {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let is_set = state & 1 != 0;
            let Some(tag) = Tag::from_bits(state >> 2) else { return is_set };
            match decisions.observe(tag) {
                Observed::Committed => return is_set,
                Observed::NotCommitted => return !is_set,
                Observed::Over => sync::Wait::wait(&Spin, sync::WaitReason::Operation, 0),
            }
        }
    }
}

struct Round<'a> {
    decisions: &'a Decisions,
    names: [Name; NAMES],
}

impl Round<'_> {
    fn exists(&self, name: usize) -> bool {
        self.names[name].exists(self.decisions)
    }

    fn set(&self, core: &Core, name: usize, exists: bool) -> Vec<Step> {
        let word = &self.names[name];
        let _lock = word.lock.lock(core, RANK, &Spin);
        if self.exists(name) == exists {
            return vec![Step::Is(name, exists)];
        }
        let operation = self.decisions.begin_firm(core);
        word.mark(operation.tag(), exists);
        operation.commit().unwrap();
        word.settle(exists);
        vec![Step::Set(name, exists)]
    }

    fn rename(&self, core: &Core, from: usize, to: usize, commits: bool) -> Vec<Step> {
        // In the order of their addresses.
        let _first = self.names[from.min(to)].lock.lock(core, RANK, &Spin);
        let _second = (from != to).then(|| self.names[from.max(to)].lock.lock(core, RANK, &Spin));
        if from == to || !self.exists(from) {
            return vec![Step::Is(from, self.exists(from))];
        }
        if self.exists(to) {
            return vec![Step::Is(to, true)];
        }
        let operation = self.decisions.begin_firm(core);
        self.names[to].mark(operation.tag(), true);
        self.names[from].mark(operation.tag(), false);
        if commits {
            operation.commit().unwrap()
        } else {
            operation.abort()
        }
        self.names[to].settle(commits);
        self.names[from].settle(!commits);
        if commits { vec![Step::Move(from, to)] } else { vec![] }
    }

    fn link(&self, core: &Core, from: usize, to: usize) -> Vec<Step> {
        let word = &self.names[to];
        let _lock = word.lock.lock(core, RANK, &Spin);
        if self.exists(to) {
            return vec![Step::Is(to, true)];
        }
        let prepare = || -> Undecided<'_> {
            let operation = self.decisions.begin_revocable(core);
            word.mark(operation.tag(), true);
            operation
        };
        let mut operation = prepare();
        loop {
            operation.fence_before_check();
            if !self.exists(from) {
                operation.abort();
                word.settle(false);
                return vec![Step::Is(from, false)];
            }
            if operation.commit().is_ok() {
                word.settle(true);
                return vec![Step::Link(from, to)];
            }
            operation = prepare();
        }
    }

    fn act(&self, core: &Core, operation: Operation) -> Vec<Step> {
        match operation {
            Operation::Look(name) => vec![Step::Is(name, self.exists(name))],
            Operation::Make(name) => self.set(core, name, true),
            Operation::Remove(name) => self.set(core, name, false),
            Operation::Move(from, to, commits) => self.rename(core, from, to, commits),
            Operation::Link(from, to) if from == to => vec![Step::Is(to, self.exists(to))],
            Operation::Link(from, to) => self.link(core, from, to),
        }
    }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let name = || 0..NAMES;
    prop_oneof![
        6 => name().prop_map(Operation::Look),
        3 => name().prop_map(Operation::Make),
        3 => name().prop_map(Operation::Remove),
        4 => (name(), name(), proptest::bool::weighted(0.8))
            .prop_map(|(from, to, commits)| Operation::Move(from, to, commits)),
        4 => (name(), name()).prop_map(|(from, to)| Operation::Link(from, to)),
    ]
}

type Plan = Vec<Vec<Operation>>;

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 3;
    vec(vec(any_operation(), 24 / threads), threads)
}

fn check(number: u64, plan: &Plan) {
    let mut region = HeapRegion::new(128 << 10).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: CORES, chunk_bytes: 4096 }).unwrap();
    let round = &Round { decisions: Decisions::create(arena).unwrap(), names: Default::default() };
    let made = play(plan, |thread| {
        let core = arena.claim_waiting(thread, OwnerId::new(1).unwrap(), &sync::Spin).unwrap();
        move |operation: &Operation| round.act(&core, *operation)
    });
    let event = |steps, began, ended| Event { steps, began, ended };
    let of_thread = |made: &Vec<history::Made<_, Vec<Step>>>| {
        made.iter().map(|made| event(made.outcome.clone(), made.began, made.ended)).collect()
    };
    let mut events: Vec<Vec<_>> = made.iter().map(of_thread).collect();
    let last = (0..NAMES).map(|name| Step::Is(name, round.exists(name))).collect();
    events.push(vec![event(last, u64::MAX - 1, u64::MAX)]);
    expect_order(number, &events, &Plain::default(), || told(&made));
}

#[test]
fn operations_have_an_order() {
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
    for fault in ["commit: observers do not revoke", "percpu: lock in two steps"] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }
}
