//! Faults of calls that tmpfs can show: each is planted, and must be found within as many calls as `make test` makes.
//!
//! `RUSTFLAGS="--cfg fuzzing" cargo test --release -p scalefs --test tmpfs planted -- --nocapture` prints who found which;
//! `PLANTED=text` chooses those with this text in their names.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::corners::Corners;
use crate::host::with_host;
use crate::systems::ours::Memory;
use crate::{DATA, Draw, NAMES, SMALL, Search, check_removed_directories, rights_table, search, seeds, sequences};
use pages::PAGE_BYTES;

/// In the words of docs/notes/planted-faults.md.
const FAULTS: [&str; 24] = [
    "calls: other groups than the first give no right",
    "calls: chmod by a stranger to the group sets its id",
    "calls: chown keeps set-id bits",
    "calls: an owner gives files to any group",
    "calls: changes of data keep set-id bits",
    "calls: files do not get their directory's group",
    "calls: directories do not hand their set-group-id bit on",
    "calls: a sticky directory keeps no one's names",
    "calls: a removed directory asks for rights",
    "calls: creation reports a link before its owner",
    "calls: rename measures the new name first",
    "calls: of two names of one file rename removes one",
    "calls: no exchange with a directory above",
    "calls: directories move without the right to write them",
    "calls: O_CREAT opens directories",
    "calls: names are measured before their directory",
    "calls: paths have no limit",
    "calls: a slash may follow a file",
    "calls: a write of no bytes appends",
    "calls: an lseek too far overflows",
    "calls: dup looks at the number first",
    "calls: a file that is too large is no space",
    "calls: O_APPEND says nothing to pwrite",
    "calls: truncate asks for no right",
];

/// What is found by all short sequences: with how many calls, and not with fewer.
const FAULTS_OF_SEQUENCES: [(&str, usize); 2] = [
    ("hashdir: a name that comes back goes from the filter", 3),
    ("scalefs: rename forgets a link where names have come and gone", 5),
];

/// After how many calls of a kind of sequences the fault shows. A panic of ScaleFS is a finding as well.
fn found_after(fault: &'static str, (page_limit, draw): (Option<usize>, Draw)) -> Option<String> {
    let found = catch_unwind(AssertUnwindSafe(|| {
        with_host(page_limit.map(|pages| pages * PAGE_BYTES), |host| {
            sync::mutant::plant(fault);
            match search(host, &mut Memory::new(), (page_limit, draw), seeds(), &Corners::default()) {
                Search::Different { made, .. } => Some(format!("after {made} calls")),
                Search::Same(_) => None,
            }
        })
    }));
    found.map_or_else(|_| Some("by a panic".into()), |found| found.expect("a host on which one may mount"))
}

/// What else finds it, of tests with fixed calls.
fn found_by_others(fault: &'static str) -> [Option<String>; 2] {
    let removed = catch_unwind(|| {
        with_host(None, |host| {
            sync::mutant::plant(fault);
            check_removed_directories(host);
        })
    });
    let rights = catch_unwind(|| {
        with_host(None, |host| {
            sync::mutant::plant(fault);
            rights_table::finds(host)
        })
    });
    [
        removed.err().map(|_| "removed directories".into()),
        rights.map_or_else(|_| Some("rights by a panic".into()), |found| found.expect("a host to compare with")),
    ]
}

#[test]
fn planted_faults_of_calls_are_found_by_random_calls() {
    let kinds = [("names", NAMES), ("data", DATA), ("small", SMALL)];
    let mut missed = Vec::new();
    let wanted = std::env::var("PLANTED").unwrap_or_default();
    for fault in FAULTS.into_iter().filter(|fault| fault.contains(&wanted)) {
        let found: Vec<String> = kinds
            .into_iter()
            .filter_map(|(kind, draw)| found_after(fault, draw).map(|found| format!("{kind} {found}")))
            .chain(found_by_others(fault).into_iter().flatten())
            .collect();
        println!("{fault}: {}", if found.is_empty() { "missed".into() } else { found.join(", ") });
        if found.is_empty() {
            missed.push(fault);
        }
    }
    assert!(missed.is_empty(), "missed: {missed:#?}");
}

#[test]
fn planted_faults_of_few_calls_are_found_by_all_short_sequences() {
    for (fault, calls) in FAULTS_OF_SEQUENCES {
        assert!(!sequences::shows(fault, calls - 1), "{fault}: fewer than {calls} calls show it");
        assert!(sequences::shows(fault, calls), "{fault}: no sequence of {calls} calls shows it");
    }
}
