//! Concurrent histories of statfs, creations, removals and maintenance: how many inodes are free.
//!
//! **The relaxed specification.** Each core's count is seen at a moment of its own, and a removed file's inode is free after
//! the maintenance that follows. So no fewer inodes are in use than were made before the call began, without those that
//! began to be removed before it ended; and no more than began to be made before it ended. When nobody works the number is
//! exact.

use history::{Made, explore, of_few_calls, overtake, play, repeat, rounds, told};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::{Context, Credentials, Errno, OpenFlags, ScaleFs, ScaleFsConfig, Start, attributes, names};
use sync::Spin;

/// Most files that there can be.
const LIMIT: u64 = 5;
const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Make(usize),
    Remove(usize),
    Free,
    Maintain,
}

/// Of `Free` the number, else nothing.
type Outcome = Result<u64, Errno>;

fn call(fs: &ScaleFs, core: &Core, context: &Context, call: Call) -> Outcome {
    if call == Call::Maintain {
        fs.maintain(core, &Spin);
        return Ok(0);
    }
    let at = Start::WorkingDirectory;
    let verbs = &fs.begin(core, context, &Spin);
    match call {
        Call::Make(name) => {
            let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
            names::close(verbs, names::open(verbs, at, NAMES[name].as_bytes(), flags, 0o600)?.handle);
        }
        Call::Remove(name) => names::unlink(verbs, at, NAMES[name].as_bytes())?,
        Call::Free | Call::Maintain => return Ok(attributes::space(verbs)?.free_inodes),
    }
    Ok(0)
}

/// Whether a number of free inodes may be told beside these calls.
fn may_be(made: &[&Made<Call, Outcome>], told: &Made<Call, Outcome>) -> bool {
    let count =
        |is_meant: &dyn Fn(&Made<Call, Outcome>) -> bool| made.iter().filter(|one| is_meant(one)).count() as u64;
    let before = count(&|one| matches!(one.operation, Call::Make(_)) && one.outcome.is_ok() && one.ended < told.began);
    let gone = count(&|one| matches!(one.operation, Call::Remove(_)) && one.outcome.is_ok() && one.began < told.ended);
    let begun = count(&|one| matches!(one.operation, Call::Make(_)) && one.began < told.ended);
    let (fewest, most) = (before.saturating_sub(gone), begun.min(LIMIT));
    told.outcome.is_ok_and(|free| (LIMIT - most..=LIMIT - fewest).contains(&free))
}

type Plan = Vec<Vec<Call>>;

fn any_call() -> impl Strategy<Value = Call> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => name().prop_map(Call::Make),
        2 => name().prop_map(Call::Remove),
        3 => Just(Call::Free),
        3 => Just(Call::Maintain),
    ]
}

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    vec(vec(any_call(), 6), 2 + number as usize % 2)
}

#[test]
fn free_inodes_are_those_that_are_not_in_use() {
    explore(rounds(250), plans, check);
}

#[test]
fn so_it_is_where_a_thread_is_overtaken_at_any_access() {
    overtake(history::plans(10).longer(10), |_| of_few_calls(any_call()), check);
}

/// None were free, when all were on their way to a core.
fn found_once() -> Plan {
    vec![vec![Call::Maintain], vec![Call::Free]]
}

#[test]
fn inodes_on_their_way_are_free() {
    repeat(if cfg!(shuttle) { 2_000 } else { 50 }, found_once(), check);
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    let fault = "scalefs: a budget is taken in two steps";
    sync::mutant::must_be_caught(fault, || overtake(0..10_000, |_| of_few_calls(any_call()), check));
    let fault = "scalefs: what is left is counted where it lies";
    sync::mutant::must_be_caught(fault, || repeat(100_000, found_once(), check));
}

fn check(number: u64, plan: &Plan) {
    let owner = OwnerId::new(1).unwrap();
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 4, chunk_bytes: 4096 }).unwrap();
    let core = arena.claim_waiting(3, owner, &sync::Spin).unwrap();
    let config = ScaleFsConfig {
        hash_seed: number,
        root_bucket_count: 4,
        inode_limit: LIMIT,
        count_slots_per_core: 2,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create(&core, config).unwrap();
    let context = &Context::new(fs, &core, Credentials::SUPERUSER);
    let player = |thread: usize| {
        let core = arena.claim_waiting(thread, owner, &sync::Spin).unwrap();
        move |next: &Call| call(fs, &core, context, *next)
    };
    let made = play(plan, player);
    let all: Vec<_> = made.iter().flatten().collect();
    for one in all.iter().filter(|one| one.operation == Call::Free) {
        assert!(may_be(&all, one), "{one:?} in round {number}:\n{}", told(&made));
    }
    let settled = || {
        (0..20).for_each(|_| fs.maintain_with_idle_cores(&core, &Spin));
        call(fs, &core, context, Call::Free)
    };
    let now_free = settled().unwrap();
    let there = (0..NAMES.len()).filter(|name| call(fs, &core, context, Call::Remove(*name)).is_ok()).count();
    assert_eq!(now_free, LIMIT - there as u64, "round {number}:\n{}", told(&made));
    assert_eq!(settled(), Ok(LIMIT));
    // And no more, nor fewer, can be made.
    let verbs = &fs.begin(&core, context, &Spin);
    let make = |number: u64| {
        let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let opened = names::open(verbs, Start::WorkingDirectory, format!("n{number}").as_bytes(), flags, 0o600);
        opened.map(|opened| names::close(verbs, opened.handle))
    };
    let outcomes: Vec<_> = (0..=LIMIT).map(make).collect();
    let made_until = outcomes.iter().position(Result::is_err);
    assert_eq!(made_until, Some(LIMIT as usize), "round {number}: {outcomes:?}\n{}", told(&made));
}
