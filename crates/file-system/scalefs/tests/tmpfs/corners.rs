//! What the sequences have reached: which call gave which error, on what kind of thing, to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use call_language::{Call, DataOperation, Operation, Outcome};

use crate::host::look;

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

    /// Panics if something is missing of what `corners.txt` lists for this kind of sequences. It is of the sequences that
    /// are drawn unless told otherwise, on a host on which they can be made as any user.
    pub fn must_hold(&self, kind: &str) {
        let reached = self.reached();
        if is_told_otherwise() || !self.is_of_several_users() {
            return;
        }
        let listed = include_str!("corners.txt").lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(": "));
        let missing: Vec<&str> = listed.filter(|corner| !reached.contains(*corner)).collect();
        assert!(missing.is_empty(), "not reached any more: {missing:#?}");
    }

    fn is_of_several_users(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().any(|(.., role)| *role == "other")
    }

    /// The corners by call, error and kind, one a line.
    fn reached(&self) -> BTreeSet<String> {
        let corners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |(call, errno, kind, _): &Corner| format!("{call} {errno} {kind}").trim_end().to_owned();
        corners.keys().map(line).collect()
    }

    /// The table for people: by call, error and kind, and how often as whom.
    pub fn table(&self) -> String {
        let corners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        corners.iter().fold(String::new(), |mut text, ((call, errno, kind, role), count)| {
            let _ = writeln!(text, "{call} {errno} {kind} {role}\t{count}");
            text
        })
    }
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
