//! The calls as values, how they are drawn, and what they return.

use std::collections::BTreeMap;

use posix_calls::OpenFlags;
use posix_calls::names::RenameMode;

use crate::data::DataOperation;

/// Users that make calls; all have their number as group too.
pub const USERS: [u32; 3] = [0, 1001, 1002];
/// The groups that each of them is in beside that: the second and third share one, the third is in the second's own too.
pub const GROUPS: [&[u32]; 3] = [&[], &[SHARED_GROUP], &[SHARED_GROUP, 1001]];
/// A group that two of them are in.
pub const SHARED_GROUP: u32 = 1003;

/// One call of one of [`USERS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who calls: a place in [`USERS`].
    pub user: usize,
    /// What.
    pub operation: Operation,
}

/// What is called, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opens and closes.
    Open(String, OpenFlags, u32),
    /// With these permissions.
    MakeDirectory(String, u32),
    /// If it is empty.
    RemoveDirectory(String),
    /// Target, name.
    Symlink(String, String),
    /// Its target.
    ReadLink(String),
    /// Old name, new name, whether a symbolic link at the old one is followed.
    Link(String, String, bool),
    /// A name that is no directory's.
    Unlink(String),
    /// Old name, new name.
    Rename(String, String, RenameMode),
    /// And whether a symbolic link is followed.
    Stat(String, bool),
    /// Rights as bits: 4 to read, 2 to write, 1 to execute.
    Access(String, u32),
    /// Permissions.
    ChangeMode(String, u32),
    /// Whether a symbolic link is followed; user; group.
    ChangeOwner(String, bool, Option<u32>, Option<u32>),
    /// For all users.
    ChangeDirectory(String),
    /// Its path.
    WorkingDirectory,
    /// All names but `.` and `..`, sorted.
    List(String),
    /// A call on descriptors or data.
    Data(DataOperation),
    /// The link count of a directory, which differs: never drawn.
    DirectoryLinks(String),
}

/// What a call returns; for directories link count and size are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Done,
    /// Of `stat`.
    Status {
        /// Its number on this system.
        file: u64,
        /// As [`posix_calls::Kind`] numbers them.
        kind: u8,
        /// Permissions.
        mode: u32,
        /// Owner.
        user: u32,
        /// Group.
        group: u32,
        /// Names.
        links: u32,
        /// In bytes.
        size: u64,
    },
    /// Bytes.
    Text(Vec<u8>),
    /// A descriptor, an offset, a count.
    Number(i64),
    /// The ends of a pipe.
    Two([u32; 2]),
    /// Of a descriptor.
    Flags {
        /// Open for reading.
        read: bool,
        /// Open for writing.
        write: bool,
        /// O_APPEND.
        append: bool,
    },
    /// With their kinds.
    Names(Vec<(String, u8)>),
}

/// An answer, or an error number.
pub type Outcome = Result<Answer, i32>;

/// An outcome for people: of many bytes their number and the first.
pub fn told(outcome: &Outcome) -> String {
    match outcome {
        Ok(Answer::Text(bytes)) if bytes.len() > 40 => format!("{} bytes, {:?}...", bytes.len(), &bytes[..40]),
        outcome => format!("{outcome:?}"),
    }
}

/// Numbers of files on both systems, which must correspond one to one.
#[derive(Default)]
pub struct Bijection {
    there: BTreeMap<u64, u64>,
    back: BTreeMap<u64, u64>,
}

impl Bijection {
    /// Whether both outcomes are the same, up to the numbers of files.
    pub fn same(&mut self, ours: &Outcome, theirs: &Outcome) -> bool {
        let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return ours == theirs };
        let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
        if let (Answer::Status { file: here, .. }, Answer::Status { file: there, .. }) = (&mut ours, &mut theirs) {
            let is_same = *self.there.entry(*here).or_insert(*there) == *there
                && *self.back.entry(*there).or_insert(*here) == *here;
            if !is_same {
                return false;
            }
            (*here, *there) = (0, 0);
        }
        ours == theirs
    }
}
