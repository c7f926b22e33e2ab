//! Two parties whose steps are interleaved, against all orders in which they could have run one after the other.

#![allow(dead_code)]

pub mod calls;
pub mod world;

use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;

use calls::{Call, call, perform, way};
use posix_calls::Errno;
use proptest::prelude::*;
use transact::{Fault, Sharing, Transaction};
use world::{World, seen, world};

/// Who makes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// All calls in one transaction.
    Together,
    /// Each for itself.
    OneByOne,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub users: [u32; 2],
    pub parties: [Party; 2],
    pub calls: [Vec<Call>; 2],
    /// Whose step is next; who is left when the other has ended takes all the rest.
    pub schedule: Vec<usize>,
}

pub fn case() -> impl Strategy<Value = Case> {
    let users = || prop::sample::select(&[0, 5, 5][..]);
    let other = prop_oneof![3 => Just(Party::Together), 1 => Just(Party::OneByOne)];
    let calls = || prop::collection::vec(call(), 1..5);
    let schedule = prop::collection::vec(0..2_usize, 14);
    ((users(), users()), other, (calls(), calls()), schedule).prop_map(|(users, other, calls, schedule)| Case {
        users: users.into(),
        parties: [Party::Together, other],
        calls: calls.into(),
        schedule,
    })
}

type Results = Vec<Result<String, Errno>>;

/// What a run has shown: results of each party, and what is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub results: [Results; 2],
    pub left: BTreeMap<String, String>,
}

/// Calls of a party that happen at one moment, from a step to a step.
#[derive(Clone, Copy, Debug)]
struct Block {
    party: usize,
    first: usize,
    end: usize,
    began: usize,
    ended: usize,
}

#[derive(Debug)]
pub struct Run {
    pub shown: Shown,
    blocks: Vec<Block>,
    /// Transactions that were stale.
    pub aborts: usize,
}

fn make(world: &World, party: usize, made: Call) -> Result<String, Errno> {
    let call = world.file_system.begin(&world.processes[party]);
    perform(&call, made, world.there_first)
}

/// Runs a case as its schedule says; a transaction that is stale runs again at the end.
pub fn run(case: &Case) -> Run {
    let world = world(case.users);
    let mut results: [Results; 2] = Default::default();
    let mut open: [Option<Transaction<plain::OpenNode>>; 2] = [None, None];
    let (mut done, mut began) = ([0; 2], [0; 2]);
    let (mut blocks, mut stale) = (Vec::new(), Vec::new());
    let is_over = |done: &[usize; 2], party: usize| done[party] > case.calls[party].len();
    let mut schedule = case.schedule.iter().copied();
    let mut step = 0;
    while !(is_over(&done, 0) && is_over(&done, 1)) {
        step += 1;
        let wanted = schedule.next().unwrap_or(0);
        let party = if is_over(&done, wanted) { 1 - wanted } else { wanted };
        let base = world.file_system.begin(&world.processes[party]);
        let next = case.calls[party].get(done[party]).copied();
        done[party] += 1;
        if case.parties[party] == Party::OneByOne {
            if let Some(made) = next {
                results[party].push(make(&world, party, made));
                blocks.push(Block { party, first: done[party] - 1, end: done[party], began: step, ended: step });
            }
            continue;
        }
        let transaction = open[party].take().unwrap_or_else(|| {
            began[party] = step;
            Transaction::begin(&base, Sharing::Alone).unwrap()
        });
        let is_stale = if let Some(made) = next {
            let result = perform(&transact::Call::new(base, &transaction), made, world.there_first);
            let is_stale = result == Err(Errno::ECANCELED);
            results[party].push(result);
            if is_stale {
                let base = world.file_system.begin(&world.processes[party]);
                assert_eq!(transaction.abort(&base), Err(Fault::Stale));
            } else {
                open[party] = Some(transaction);
            }
            is_stale
        } else {
            match transaction.commit(&base) {
                Ok(()) => {
                    let end = case.calls[party].len();
                    blocks.push(Block { party, first: 0, end, began: began[party], ended: step });
                    false
                }
                Err(Fault::Stale) => true,
                Err(other) => panic!("a commit fails with {other:?}"),
            }
        };
        if is_stale {
            done[party] = usize::MAX;
            stale.push(party);
        }
    }
    let aborts = stale.len();
    for party in stale {
        // Nobody comes in between any more.
        results[party].clear();
        let base = || world.file_system.begin(&world.processes[party]);
        let transaction = Transaction::begin(&base(), Sharing::Alone).unwrap();
        for made in &case.calls[party] {
            results[party].push(perform(&transact::Call::new(base(), &transaction), *made, world.there_first));
        }
        transaction.commit(&base()).expect("nobody comes in between");
        step += 1;
        blocks.push(Block { party, first: 0, end: case.calls[party].len(), began: step, ended: step });
    }
    Run { shown: Shown { results, left: seen(&world) }, blocks, aborts }
}

/// What is told of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Its result.
    Result,
    /// That, and the objects through which its paths lead.
    Way,
}

/// Calls `each` with what each order shows in which all calls of `blocks` can run: those of a party in their order, and a
/// block that ended before another began before it. Ends when `each` returns false.
fn orders(
    world: &World,
    (case, told): (&Case, Told),
    blocks: &[Block],
    so_far: [Results; 2],
    each: &mut dyn FnMut(Shown) -> bool,
) -> bool {
    if blocks.is_empty() {
        return each(Shown { results: so_far, left: seen(world) });
    }
    for (index, block) in blocks.iter().enumerate() {
        let is_before =
            |other: &Block| other.ended < block.began || other.party == block.party && other.first < block.first;
        if blocks.iter().any(is_before) {
            continue;
        }
        let (world, mut results) = (world.clone(), so_far.clone());
        for made in &case.calls[block.party][block.first..block.end] {
            if told == Told::Way {
                let call = world.file_system.begin(&world.processes[block.party]);
                results[block.party].push(Ok(way(&call, *made, world.there_first)));
            }
            results[block.party].push(make(&world, block.party, *made));
        }
        let mut rest = blocks.to_vec();
        rest.remove(index);
        if !orders(&world, (case, told), &rest, results, each) {
            return false;
        }
    }
    true
}

/// Whether some order of what has happened shows the same.
pub fn has_order(case: &Case, run: &Run) -> bool {
    let mut is_found = false;
    orders(&world(case.users), (case, Told::Result), &run.blocks, Default::default(), &mut |shown| {
        is_found = shown == run.shown;
        !is_found
    });
    is_found
}

/// Whether all orders of single calls show the same.
pub fn commutes(case: &Case, told: Told) -> bool {
    show_the_same(case, told, |calls| (0..calls).map(|first| first..first + 1).collect())
}

/// Whether both orders of the two parties, each as a whole, show the same.
pub fn commutes_as_wholes(case: &Case) -> bool {
    show_the_same(case, Told::Result, |calls| iter::once(0..calls).collect())
}

/// Whether all orders of parts, into which `cut` cuts so many calls, show the same.
fn show_the_same(case: &Case, told: Told, cut: impl Fn(usize) -> Vec<Range<usize>>) -> bool {
    let mut blocks = Vec::new();
    for (party, calls) in case.calls.iter().enumerate() {
        let block = |Range { start, end }| Block { party, first: start, end, began: 0, ended: usize::MAX };
        blocks.extend(cut(calls.len()).into_iter().map(block));
    }
    let mut first = None;
    orders(&world(case.users), (case, told), &blocks, Default::default(), &mut |shown| {
        *first.get_or_insert_with(|| shown.clone()) == shown
    })
}
