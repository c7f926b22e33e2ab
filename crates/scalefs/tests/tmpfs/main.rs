//! Random sequences of calls by several users on ScaleFS and on the host's tmpfs: every result and the trees in the end
//! must be the same. A difference is shrunk to the calls that it takes.
//!
//! `SCALEFS_FUZZ_CALLS=N` makes N calls (10,000 if it is not set), `SCALEFS_FUZZ_SEED=N` starts with another sequence.
#![cfg(all(not(loom), target_os = "linux"))]

mod calls;
mod host;
mod ours;

use calls::{Answer, Call, Operation, Random};
use host::Host;
use ours::Ours;
use percpu::HeapRegion;

const CALLS_PER_SEQUENCE: usize = 200;

/// Makes the calls on both systems; the first difference, if there is one.
fn difference(host: &Host, memory: &mut HeapRegion, calls: &[Call]) -> Option<String> {
    host.clear();
    let mut numbers = calls::Bijection::default();
    ours::with_instance(memory, |ours| {
        for (index, call) in calls.iter().enumerate() {
            let (here, there) = (ours.call(index, call), host.call(call));
            if !numbers.same(&here, &there) {
                return Some(format!("call {index} gives {here:?} on ScaleFS, {there:?} on tmpfs"));
            }
        }
        let at_root = Call { user: 0, operation: Operation::ChangeDirectory("/".into()) };
        if host.can_use_root() {
            let _ = (ours.call(0, &at_root), host.call(&at_root));
        }
        different_trees(ours, host, ".", &mut numbers)
    })
}

/// Compares what is below a directory.
fn different_trees(ours: &Ours, host: &Host, path: &str, numbers: &mut calls::Bijection) -> Option<String> {
    let by_root = |operation| Call { user: 0, operation };
    let list = by_root(Operation::List(path.into()));
    let (here, there) = (ours.call(0, &list), host.call(&list));
    let Ok(Answer::Names(names)) = &here else {
        return Some(format!("{path} cannot be listed on ScaleFS: {here:?}"));
    };
    if here != there {
        return Some(format!("{path} holds {here:?} on ScaleFS, {there:?} on tmpfs"));
    }
    for (name, kind) in names {
        let below = format!("{path}/{name}");
        for operation in [Operation::Stat(below.clone(), false), Operation::ReadLink(below.clone())] {
            let call = by_root(operation);
            let (here, there) = (ours.call(0, &call), host.call(&call));
            if !numbers.same(&here, &there) {
                return Some(format!("{call:?} in the end gives {here:?} on ScaleFS, {there:?} on tmpfs"));
            }
        }
        if *kind == scalefs::Kind::Directory as u8
            && let Some(found) = different_trees(ours, host, &below, numbers)
        {
            return Some(found);
        }
    }
    None
}

/// Leaves out calls as long as some difference stays.
fn shrunk(host: &Host, memory: &mut HeapRegion, mut calls: Vec<Call>) -> Vec<Call> {
    let mut part = calls.len().div_ceil(2);
    loop {
        let mut start = 0;
        while start < calls.len() {
            let end = (start + part).min(calls.len());
            let without = [&calls[..start], &calls[end..]].concat();
            if difference(host, memory, &without).is_some() {
                calls = without;
            } else {
                start = end;
            }
        }
        if part == 1 {
            return calls;
        }
        part = part.div_ceil(2);
    }
}

fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a number, got {text:?}")))
}

#[test]
fn random_calls_give_the_same_as_on_tmpfs() {
    let wanted = number_from_environment("SCALEFS_FUZZ_CALLS").unwrap_or(10_000);
    let first = number_from_environment("SCALEFS_FUZZ_SEED").unwrap_or(1);
    let outcome = host::with_host(|host| {
        let memory = &mut ours::memory();
        for seed in first..first + wanted.div_ceil(CALLS_PER_SEQUENCE as u64) {
            let mut random = Random::new(seed);
            let calls: Vec<Call> =
                (0..CALLS_PER_SEQUENCE).map(|_| Call::any(&mut random, host.can_use_root())).collect();
            if difference(host, memory, &calls).is_some() {
                let few = shrunk(host, memory, calls);
                let lines: Vec<String> = few.iter().map(|call| format!("  {call:?}")).collect();
                let what = difference(host, memory, &few).unwrap_or_default();
                return Err(format!("{what}\n{}\nrepeat with SCALEFS_FUZZ_SEED={seed}", lines.join("\n")));
            }
        }
        Ok(())
    });
    if let Err(difference) = outcome {
        panic!("{difference}");
    }
}

#[test]
fn a_planted_difference_is_found_and_shrunk() {
    host::with_host(|host| {
        let memory = &mut ours::memory();
        let mut random = Random::new(7);
        let mut calls: Vec<Call> = (0..40).map(|_| Call::any(&mut random, host.can_use_root())).collect();
        // On tmpfs a directory's link count counts the directories in it; that is told only for this one call.
        let by_root = |operation| Call { user: 0, operation };
        calls.insert(20, by_root(Operation::MakeDirectory("planted".into(), 0o755)));
        calls.push(by_root(Operation::DirectoryLinks("planted".into())));
        assert!(difference(host, memory, &calls).is_some());
        let few = shrunk(host, memory, calls);
        assert_eq!(few.len(), 2, "{few:?}");
    });
}
