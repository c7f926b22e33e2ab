//! The calls as values, how they are drawn, and what they return.

use std::collections::BTreeMap;

use scalefs::OpenFlags;
use scalefs::names::RenameMode;

use crate::data::DataOperation;

/// Users that make calls; all have their number as group too.
pub const USERS: [u32; 3] = [0, 1001, 1002];

/// One call of one of [`USERS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub user: usize,
    pub operation: Operation,
}

/// What is called, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opens and closes.
    Open(String, OpenFlags, u32),
    MakeDirectory(String, u32),
    RemoveDirectory(String),
    Symlink(String, String),
    ReadLink(String),
    Link(String, String, bool),
    Unlink(String),
    Rename(String, String, RenameMode),
    Stat(String, bool),
    Access(String, u32),
    ChangeMode(String, u32),
    ChangeOwner(String, bool, Option<u32>, Option<u32>),
    ChangeDirectory(String),
    WorkingDirectory,
    List(String),
    Data(DataOperation),
    /// The link count of a directory, which differs: never drawn.
    DirectoryLinks(String),
}

/// What a call returns; for directories link count and size are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Status { file: u64, kind: u8, mode: u32, user: u32, group: u32, links: u32, size: u64 },
    Text(Vec<u8>),
    Number(i64),
    Two([u32; 2]),
    Flags { read: bool, write: bool, append: bool },
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

/// Splitmix64: good enough, small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % limit as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    fn name(&mut self, up: bool) -> String {
        match self.below(60) {
            0 => ".".into(),
            1 | 2 if up => "..".into(),
            3 => "x".repeat(255),
            4 => "x".repeat(256),
            number => format!("n{}", number % 4),
        }
    }

    pub fn path(&mut self, up: bool) -> String {
        let components = [1, 1, 1, 1, 2, 2, 3][self.below(7)];
        let components: Vec<String> = (0..components).map(|_| self.name(up)).collect();
        match self.below(40) {
            0 => String::new(),
            1 => "x/".repeat(2047),
            2 => "x/".repeat(2048),
            3 if up => "/".into(),
            4 | 5 if up => format!("/{}", components.join("/")),
            6..=8 => format!("{}/", components.join("/")),
            9 => components.join("//"),
            _ => components.join("/"),
        }
    }
}

pub const MODES: [u32; 9] = [0o777, 0o777, 0o755, 0o644, 0o4755, 0o2775, 0o2777, 0o1777, 0o070];

impl Call {
    /// A call on names, or on data by the one user who has descriptors.
    pub fn of_names_and_data(random: &mut Random, up: bool, user: usize, bounded: bool) -> Call {
        if random.below(5) < 2 {
            return Call::any(random, up);
        }
        Call { user, operation: Operation::Data(DataOperation::any(random, up, bounded)) }
    }

    /// A call on names; with `up`, paths may lead above the working directory.
    pub fn any(random: &mut Random, up: bool) -> Call {
        let user = if up { [0, 0, 1, 2][random.below(4)] } else { 0 };
        let operation = match random.below(37) {
            0..=5 => {
                let mut flags = random.pick(&[
                    OpenFlags::READ,
                    OpenFlags::WRITE,
                    OpenFlags::READ | OpenFlags::WRITE,
                    OpenFlags::WRITE | OpenFlags::CREATE,
                    OpenFlags::READ | OpenFlags::CREATE,
                    OpenFlags::READ | OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
                ]);
                for (one_in, flag) in [
                    (6, OpenFlags::TRUNCATE),
                    (8, OpenFlags::DIRECTORY),
                    (6, OpenFlags::NO_FOLLOW),
                    (9, OpenFlags::EXCLUSIVE),
                ] {
                    if random.below(one_in) == 0 {
                        flags = flags | flag;
                    }
                }
                Operation::Open(random.path(up), flags, random.pick(&MODES))
            }
            6..=9 => Operation::MakeDirectory(random.path(up), random.pick(&MODES)),
            10 | 11 => Operation::RemoveDirectory(random.path(up)),
            12..=14 => Operation::Symlink(random.path(up), random.path(up)),
            15 => Operation::ReadLink(random.path(up)),
            // A link by a user who is not the file's owner depends on a setting of the host (protected_hardlinks).
            16..=18 => {
                let operation = Operation::Link(random.path(up), random.path(up), random.below(2) == 0);
                return Call { user: 0, operation };
            }
            19..=21 => Operation::Unlink(random.path(up)),
            22..=27 => {
                let mode = random.pick(&[
                    RenameMode::Replace,
                    RenameMode::Replace,
                    RenameMode::Replace,
                    RenameMode::NoReplace,
                    RenameMode::Exchange,
                ]);
                Operation::Rename(random.path(up), random.path(up), mode)
            }
            28 | 29 => Operation::Stat(random.path(up), random.below(2) == 0),
            30 => Operation::Access(random.path(up), random.below(8) as u32),
            31 | 32 => Operation::ChangeMode(random.path(up), random.pick(&MODES)),
            33 => {
                let owner = |random: &mut Random| [None, Some(0), Some(1001), Some(1002)][random.below(4)];
                let (user, group) = (owner(random), owner(random));
                Operation::ChangeOwner(random.path(up), random.below(2) == 0, user, group)
            }
            34 => Operation::ChangeDirectory(random.path(up)),
            35 if up => Operation::WorkingDirectory,
            _ => Operation::List(random.path(up)),
        };
        Call { user, operation }
    }
}
