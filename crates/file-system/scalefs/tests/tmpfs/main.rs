//! Random sequences of calls by several users on ScaleFS, or on crate `plain`, and on the host's tmpfs: every result, every error number, and
//! the trees in the end with all contents must be the same, and when all is removed nothing may be left. A difference is
//! shrunk to the calls that it takes. Three kinds of sequences: calls on names; calls on names, descriptors and data; and
//! the latter on file systems of so few pages that they run full.
//!
//! `SCALEFS_FUZZ_CALLS=N` makes N calls of each kind (10,000 if it is not set), `SCALEFS_FUZZ_SEED=N` starts with another
//! sequence. What was reached is counted (`corners`), and printed with `--nocapture`; it must be what is
//! listed there.
#![cfg(all(not(loom), target_os = "linux"))]

mod cases;
mod corners;
mod extended;
mod host;
mod host_data;
mod locks;
#[cfg(fuzzing)]
mod planted;
mod rights_table;
mod scripts;
mod sequences;
mod systems;

use std::ops::Range;

use call_language::{Call, DataOperation, Operation, PLANTED, Random, USERS, data_scene, scene, shrunk};
use corners::Corners;
use host::Host;
use pages::PAGE_BYTES;
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::names::RenameMode;
use systems::Systems;
use systems::comparison::{Comparison, Seen, calls_of_bytes, difference_from_plain, report};
use systems::maps::Maps;
use systems::ours::Memory;

const CALLS_PER_SEQUENCE: usize = 200;
/// Pages of the small file systems.
const FEW_PAGES: usize = 24;

/// Makes the calls on both systems; the first difference, if there is one.
fn difference<S: Systems>(host: &Host, systems: &mut S, page_limit: Option<usize>, calls: &[Call]) -> Option<String> {
    difference_at(host, systems, page_limit, calls, &Corners::default())
}

/// The same, and notes what the calls reach.
fn difference_at<S: Systems>(
    host: &Host,
    systems: &mut S,
    page_limit: Option<usize>,
    calls: &[Call],
    corners: &Corners,
) -> Option<String> {
    host.clear();
    systems.with_empty(page_limit, host.first_user(), |ours| {
        let both = |index: usize, call: &Call| [ours.call(index, call), host.call(call)];
        let noting = |index: usize, call: &Call| {
            let place = Corners::before(call);
            let outcomes = both(index, call);
            corners.after(place, &outcomes[1]);
            outcomes
        };
        let mut comparison = Comparison::new([S::NAME, "tmpfs"]);
        if let Some(difference) = comparison.different_outcome(calls, &noting) {
            return Some(difference);
        }
        if host.can_use_root() {
            let _ = both(0, &Call { user: 0, operation: Operation::ChangeDirectory("/".into()) });
        }
        let seen = comparison.trees(".", &both);
        match seen {
            Err(difference) => Some(difference),
            Ok(Seen::Part) if host.can_use_root() => Some("a directory cannot be looked at in the end".into()),
            Ok(_) => ours.remains(),
        }
    })
}

fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a number, got {text:?}")))
}

/// How sequences are drawn; the flag says whether paths may lead to the root, and calls be made as other users.
type Draw = fn(&mut Random, bool) -> Vec<Call>;

/// What a search has come to.
enum Search {
    /// This sequence, the one with this number, differs after so many calls of all.
    Different { calls: Vec<Call>, seed: u64, made: u64 },
    /// So many calls gave the same.
    Same(u64),
}

/// Draws sequences, with these numbers, until one differs.
fn search<S: Systems>(
    host: &Host,
    systems: &mut S,
    (page_limit, draw): (Option<usize>, Draw),
    seeds: Range<u64>,
    corners: &Corners,
) -> Search {
    let mut made = 0;
    for seed in seeds {
        let calls = draw(&mut Random::new(seed), host.can_use_root());
        made += calls.len() as u64;
        if difference_at(host, systems, page_limit, &calls, corners).is_some() {
            return Search::Different { calls, seed, made };
        }
    }
    Search::Same(made)
}

/// The sequences that are drawn: so many calls, unless `SCALEFS_FUZZ_CALLS` says how many.
fn seeds() -> Range<u64> {
    let wanted = number_from_environment("SCALEFS_FUZZ_CALLS").unwrap_or(10_000);
    let first = number_from_environment("SCALEFS_FUZZ_SEED").unwrap_or(1);
    first..first + wanted.div_ceil(CALLS_PER_SEQUENCE as u64)
}

/// Draws sequences and compares; panics at the first difference. Returns what was reached; `None` if the host could not
/// be used.
fn compare<S: Systems>(systems: impl Fn() -> S + Sync, kind: (Option<usize>, Draw)) -> Option<Corners> {
    let corners = Corners::default();
    let outcome = host::with_host(kind.0.map(|pages| pages * PAGE_BYTES), |host| {
        let systems = &mut systems();
        match search(host, systems, kind, seeds(), &corners) {
            Search::Same(made) => Ok(made),
            Search::Different { calls, seed, made } => {
                let told = report(calls, |calls| difference(host, systems, kind.0, calls));
                Err(format!("{told}\nafter {made} calls; repeat with SCALEFS_FUZZ_SEED={seed}"))
            }
        }
    })?;
    match outcome {
        Ok(made) => println!("{made} calls held against tmpfs"),
        Err(difference) => panic!("{difference}"),
    }
    Some(corners)
}

/// Calls after one of the beginnings that let them meet.
fn sequence(random: &mut Random, up: bool, mut draw: impl FnMut(&mut Random) -> Call) -> Vec<Call> {
    let mut calls = scene(random, up);
    calls.extend((0..CALLS_PER_SEQUENCE).map(|_| draw(random)));
    calls
}

/// On names alone.
const NAMES: (Option<usize>, Draw) = (None, |random, up| sequence(random, up, |random| Call::any(random, up)));
/// On names, descriptors and data.
const DATA: (Option<usize>, Draw) = (None, |random, up| {
    // One user has all descriptors of a sequence.
    let user = if up { random.below(2) } else { 0 };
    let first = data_scene(random, user);
    [first, sequence(random, up, |random| Call::of_names_and_data(random, up, user, false))].concat()
});
/// The latter on file systems of so few pages that they run full.
const SMALL: (Option<usize>, Draw) = (Some(FEW_PAGES), |random, up| {
    let mut calls = sequence(random, up, |random| Call::of_names_and_data(random, up, 0, true));
    // On the host a symbolic link of more than 127 bytes takes a page.
    calls.retain(|call| !matches!(&call.operation, Operation::Symlink(target, _) if target.len() > 127));
    calls
});

fn compare_names<S: Systems>(systems: impl Fn() -> S + Sync) {
    compare(systems, NAMES).expect("any user can compare without a limit").must_hold("names");
}

fn compare_data<S: Systems>(systems: impl Fn() -> S + Sync) {
    compare(systems, DATA).expect("any user can compare without a limit").must_hold("data");
}

fn compare_small<S: Systems>(systems: impl Fn() -> S + Sync) {
    match compare(systems, SMALL) {
        Some(corners) => corners.must_hold("small"),
        None => eprintln!("not compared: this user may not mount a small tmpfs"),
    }
}

#[test]
fn random_calls_on_names_give_the_same_as_on_tmpfs() {
    compare_names(Memory::new);
}

#[test]
fn random_calls_on_names_and_data_give_the_same_as_on_tmpfs() {
    compare_data(Memory::new);
}

#[test]
fn random_calls_on_small_file_systems_give_the_same_as_on_tmpfs() {
    compare_small(Memory::new);
}

#[test]
fn random_calls_on_names_give_the_same_on_plain() {
    compare_names(|| Maps);
}

#[test]
fn random_calls_on_names_and_data_give_the_same_on_plain() {
    compare_data(|| Maps);
}

#[test]
fn random_calls_on_small_file_systems_give_the_same_on_plain() {
    compare_small(|| Maps);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_that_bytes_stand_for_give_the_same_on_scalefs_and_plain(bytes in vec(any::<u8>(), 0..4000)) {
        prop_assert_eq!(difference_from_plain(&mut Memory::new(), &calls_of_bytes(&bytes)), None);
    }
}

/// Inputs that a fuzzer keeps outlive the version that they were kept by. To another one, which draws from the same bytes in
/// another way, they are other sequences: so each is tried as it is, and changed as a new choice at its start would.
#[test]
fn inputs_kept_by_any_version_are_sequences() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/calls");
    let mut memory = Memory::new();
    let mut tried = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let kept = std::fs::read(entry.unwrap().path()).unwrap();
        let later: Vec<u8> = std::iter::once(7).chain(kept.iter().copied()).collect();
        for bytes in [&kept[..], &kept[1.min(kept.len())..], &kept[..kept.len() / 2], &later[..]] {
            let calls = calls_of_bytes(&bytes[..bytes.len().min(1024)]);
            assert!(!calls.is_empty() || bytes.len() < 8, "{} bytes are no call", bytes.len());
            assert_eq!(difference_from_plain(&mut memory, &calls), None);
            tried += 1;
        }
    }
    assert!(tried >= 40, "{tried} inputs: the kept ones are gone");
}

/// Which error comes first in a directory that was removed, of users that may change it and of others.
#[test]
fn calls_in_removed_directories_give_the_same_as_on_tmpfs() {
    host::with_host(None, |host| {
        if host.can_use_root() {
            check_removed_directories(host);
        } else {
            eprintln!("not compared: only the superuser can be several users");
        }
    });
}

fn check_removed_directories(host: &Host) {
    let by = |user, operation| Call { user, operation };
    let create = scalefs::OpenFlags::WRITE | scalefs::OpenFlags::CREATE;
    let path = str::to_string;
    let memory = &mut Memory::new();
    for mode in [0o777, 0o555, 0o444] {
        let mut calls = vec![
            by(0, Operation::MakeDirectory(path("n0"), 0o777)),
            by(0, Operation::Open(path("n1"), create, 0o666)),
            by(0, Operation::MakeDirectory(path("n2"), 0o777)),
            by(0, Operation::ChangeMode(path("n0"), mode)),
            by(0, Operation::ChangeDirectory(path("n0"))),
            by(0, Operation::RemoveDirectory(path("../n0"))),
        ];
        for user in 0..USERS.len() {
            let mut operations = vec![Operation::WorkingDirectory, Operation::List(path("."))];
            let (long, below_long) = ("x".repeat(256), format!("{}/y", "x".repeat(256)));
            for name in ["x", "x/", ".", "..", "../n1", "x/y", &long, &below_long].map(path) {
                operations.extend([
                    Operation::Open(name.clone(), create, 0o666),
                    Operation::Open(name.clone(), create | scalefs::OpenFlags::EXCLUSIVE, 0o666),
                    Operation::MakeDirectory(name.clone(), 0o777),
                    Operation::Symlink(path("x"), name.clone()),
                    Operation::Unlink(name.clone()),
                    Operation::RemoveDirectory(name.clone()),
                    Operation::Stat(name.clone(), true),
                ]);
                for mode in [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange] {
                    operations.extend(
                        ["../n1", "../n2", "x", ".", &long].map(|old| Operation::Rename(path(old), name.clone(), mode)),
                    );
                }
                // As in `Call::any`: a link by another than the owner depends on a setting of the host.
                operations.extend(
                    [".", "..", "../n1", "../n2", "x", &long]
                        .into_iter()
                        .filter(|old| user == 0 || *old != "../n1")
                        .map(|old| Operation::Link(path(old), name.clone(), false)),
                );
            }
            calls.extend(operations.into_iter().map(|operation| by(user, operation)));
        }
        assert_eq!(difference(host, memory, None, &calls), None, "mode {mode:o}");
        assert_eq!(difference(host, &mut Maps, None, &calls), None, "mode {mode:o}");
    }
}

/// Linux refuses an append to a file that cannot grow before it takes set-id bits away; ours were gone. Random calls met it
/// after 986,823.
#[test]
fn an_append_to_the_largest_file_takes_no_set_id_bit_away() {
    let by_user = |operation| Call { user: 1, operation: Operation::Data(operation) };
    let flags = scalefs::OpenFlags::READ | scalefs::OpenFlags::WRITE | scalefs::OpenFlags::CREATE;
    let calls = [
        by_user(DataOperation::Open("n1".into(), flags, 0o666, true)),
        by_user(DataOperation::Resize(0, i64::MAX)),
        by_user(DataOperation::ChangeMode(0, 0o6711)),
        by_user(DataOperation::Write(0, 5, 3)),
    ];
    host::with_host(None, |host| {
        if host.can_use_root() {
            assert_eq!(difference(host, &mut Memory::new(), None, &calls), None);
            assert_eq!(difference(host, &mut Maps, None, &calls), None);
        }
    });
}

#[test]
fn planted_differences_are_found_and_shrunk() {
    let by_root = |operation| Call { user: 0, operation };
    let data = |operation| by_root(Operation::Data(operation));
    // On tmpfs a directory's link count counts the directories in it; that is told only for this one call.
    let names = [
        by_root(Operation::MakeDirectory("planted".into(), 0o755)),
        by_root(Operation::DirectoryLinks("planted".into())),
    ];
    // The host writes this fill as another one.
    let flags = scalefs::OpenFlags::WRITE | scalefs::OpenFlags::CREATE;
    let bytes = [
        data(DataOperation::Open("planted".into(), flags, 0o644, false)),
        data(DataOperation::WriteAt(0, 5, PLANTED, 8192)),
    ];
    host::with_host(None, |host| {
        let memory = &mut Memory::new();
        for [first, second] in [names, bytes] {
            let mut calls = sequence(&mut Random::new(7), false, |random| {
                Call::of_names_and_data(random, host.can_use_root(), 0, false)
            });
            // The planted descriptor is the only one, and the planted name stays in reach.
            calls.retain(|call| !matches!(call.operation, Operation::Data(_) | Operation::ChangeDirectory(_)));
            calls.insert(20, first);
            calls.push(second);
            assert!(difference(host, memory, None, &calls).is_some());
            let few = shrunk(calls, |calls| difference(host, memory, None, calls).is_some());
            assert_eq!(few.len(), 2, "{few:?}");
        }
    });
}
