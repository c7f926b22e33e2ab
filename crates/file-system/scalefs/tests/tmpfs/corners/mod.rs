//! What the sequences have reached: which call gave which error, on what kind of thing, to whom.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use call_language::{Call, DataOperation, Operation, Outcome};

use crate::host::look;

/// Beside this file, for each kind of sequences.
const LISTED: [&str; 3] = [include_str!("names.txt"), include_str!("data.txt"), include_str!("small.txt")];

/// A call's name, its error number or 0, the kind of what its last path led to, and what the caller is to it.
type Corner = (&'static str, i32, &'static str, &'static str);

/// How often each corner was reached.
#[derive(Default)]
pub struct Corners(Mutex<BTreeMap<Corner, u64>>);

/// What a call is about to act on.
pub struct Place {
    call: &'static str,
    kind: &'static str,
    role: &'static str,
}

impl Corners {
    /// Looks, as the superuser, at what a call on the host is about to act on.
    pub fn before(call: &Call) -> Place {
        let (name, path) = described(&call.operation);
        let (kind, role) = path.map_or(("", ""), |path| look(path, call.user));
        Place { call: name, kind, role }
    }

    /// Notes what came of it.
    pub fn after(&self, place: Place, outcome: &Outcome) {
        let errno = outcome.as_ref().err().copied().unwrap_or(0);
        let mut corners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *corners.entry((place.call, errno, place.kind, place.role)).or_default() += 1;
    }

    /// Prints what was reached by this kind of sequences, and panics if the lists say otherwise: nothing else may be
    /// reached, and of what it lists without a note nothing may be missing. That is said of the sequences that are drawn
    /// unless told otherwise, on a host on which they can be made as any user; of others, what is new is printed.
    pub fn must_hold(&self, kind: &str) {
        let corners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reached: BTreeMap<String, u64> =
            corners.iter().map(|(corner, count)| (told(kind, corner), *count)).collect();
        let is_of_several_users = corners.keys().any(|(.., role)| *role == "other");
        reached.iter().for_each(|(corner, count)| println!("{corner}\t{count}"));
        if !is_of_several_users || std::env::var_os("SCALEFS_NEW_CORNERS").is_some() {
            return;
        }
        let lines = LISTED.iter().flat_map(|listed| listed.lines()).filter(|line| line.starts_with(kind));
        let complaint = complaint(lines, &reached);
        complaint.iter().for_each(|complaint| println!("{complaint}"));
        assert!(is_told_otherwise() || complaint.is_none(), "{}", complaint.unwrap_or_default());
    }
}

/// In what the corners that were reached differ from the lines of a list; `None` if in nothing. Behind rare ones stands how
/// often they come: they may be missing.
fn complaint<'l>(lines: impl Iterator<Item = &'l str>, reached: &BTreeMap<String, u64>) -> Option<String> {
    let listed: BTreeMap<&str, bool> =
        lines.map(|line| line.split_once(" (").map_or((line, false), |(corner, _)| (corner, true))).collect();
    let unknown: Vec<&String> = reached.keys().filter(|corner| !listed.contains_key(corner.as_str())).collect();
    let is_missing = |corner: &str, is_rare: bool| !is_rare && !reached.contains_key(corner);
    let missing: Vec<&str> =
        listed.iter().filter(|(corner, is_rare)| is_missing(corner, **is_rare)).map(|(corner, _)| *corner).collect();
    match (&unknown[..], &missing[..]) {
        ([], []) => None,
        (unknown, []) => Some(format!("reached, but not listed (scripts/corners.py): {unknown:#?}")),
        // The kernel decides what can be reached, so one that lacks a corner is told from a test that lost it.
        (unknown, missing) => Some(format!(
            "not reached any more: {missing:#?}; reached instead, but not listed: {unknown:#?}. If the calls are those \
             of before, this host's kernel ({}) or its settings lack these corners; scripts/corners.py lists what it has",
            release().trim()
        )),
    }
}

/// The kernel's version.
fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned())
}

/// Kernels differ in what can be reached: whoever runs the tests on another one has to be told what is missing, and why.
#[test]
fn a_corner_that_the_kernel_lacks_is_named_with_the_kernel() {
    let reached = |corners: &[&str]| corners.iter().map(|corner| ((*corner).to_owned(), 1)).collect();
    let listed =
        ["names: link 1 file other", "names: open 0 file owner", "names: open 40 file owner (1 of 400,000 calls)"];
    let told = |corners: &[&str]| complaint(listed.into_iter(), &reached(corners));
    assert_eq!(told(&listed[..2]), None);
    let lacking = told(&listed[1..2]).unwrap();
    assert!(lacking.starts_with("not reached any more: [\n    \"names: link 1 file other\",\n]"), "{lacking}");
    assert!(lacking.contains(release().trim()) && !lacking.contains("400,000"), "{lacking}");
    let instead = told(&["names: link 0 file other", listed[1]]).unwrap();
    assert!(instead.contains("reached instead, but not listed: [\n    \"names: link 0 file other\""), "{instead}");
    let new = told(&[listed[0], listed[1], "names: stat 0 file owner"]).unwrap();
    assert!(new.starts_with("reached, but not listed (scripts/corners.py): [\n    \"names: stat 0"), "{new}");
}

/// `names: open 13 file other`: sequences, call, error number or 0, kind of what it acts on, what the caller is to that.
fn told(sequences: &str, (call, errno, kind, role): &Corner) -> String {
    format!("{sequences}: {call} {errno} {kind} {role}").trim_end().to_owned()
}

fn is_told_otherwise() -> bool {
    ["SCALEFS_FUZZ_CALLS", "SCALEFS_FUZZ_SEED"].iter().any(|name| std::env::var_os(name).is_some())
}

/// A call's name, and the path that says what it acts on: of two the second.
fn described(operation: &Operation) -> (&'static str, Option<&str>) {
    match operation {
        Operation::Open(path, ..) => ("open", Some(path)),
        Operation::MakeDirectory(path, _) => ("mkdir", Some(path)),
        Operation::RemoveDirectory(path) => ("rmdir", Some(path)),
        Operation::Symlink(_, path) => ("symlink", Some(path)),
        Operation::ReadLink(path) => ("readlink", Some(path)),
        Operation::Link(_, path, _) => ("link", Some(path)),
        Operation::Unlink(path) => ("unlink", Some(path)),
        Operation::Rename(_, path, _) => ("rename", Some(path)),
        Operation::Stat(path, _) => ("stat", Some(path)),
        Operation::Access(path, _) => ("access", Some(path)),
        Operation::ChangeMode(path, _) => ("chmod", Some(path)),
        Operation::ChangeOwner(path, ..) => ("chown", Some(path)),
        Operation::ChangeDirectory(path) => ("chdir", Some(path)),
        Operation::WorkingDirectory => ("getcwd", None),
        Operation::List(path) | Operation::DirectoryLinks(path) => ("list", Some(path)),
        Operation::Data(operation) => match operation {
            DataOperation::Open(path, ..) => ("open to keep", Some(path)),
            DataOperation::ResizePath(path, _) => ("truncate", Some(path)),
            DataOperation::Contents(path, _) => ("contents", Some(path)),
            DataOperation::Pipe => ("pipe", None),
            DataOperation::Close(_) => ("close", None),
            DataOperation::Duplicate(..) => ("dup", None),
            DataOperation::DuplicateTo(..) => ("dup2", None),
            DataOperation::Read(..) => ("read", None),
            DataOperation::ReadAt(..) => ("pread", None),
            DataOperation::Write(..) => ("write", None),
            DataOperation::WriteAt(..) => ("pwrite", None),
            DataOperation::Seek(..) => ("lseek", None),
            DataOperation::Resize(..) => ("ftruncate", None),
            DataOperation::Flags(_) | DataOperation::SetAppend(..) => ("fcntl", None),
            DataOperation::Stat(_) => ("fstat", None),
            DataOperation::ChangeMode(..) => ("fchmod", None),
        },
    }
}
