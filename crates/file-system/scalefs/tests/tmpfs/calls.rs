//! The calls as values, how they are drawn, and what they return.

use std::collections::BTreeMap;

use scalefs::OpenFlags;
use scalefs::names::RenameMode;

use crate::data::DataOperation;

/// Users that make calls; all have their number as group too.
pub const USERS: [u32; 3] = [0, 1001, 1002];
/// The groups that each of them is in beside that: the second and third share one, the third is in the second's own too.
pub const GROUPS: [&[u32]; 3] = [&[], &[SHARED_GROUP], &[SHARED_GROUP, 1001]];
pub const SHARED_GROUP: u32 = 1003;

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

/// Splitmix64 (good enough, small, and the same everywhere), and the paths that it gave last.
pub struct Random {
    state: u64,
    recent: Vec<String>,
}

/// So many of the last paths are drawn again.
const RECENT_PATHS: usize = 5;
/// Longer ones are not, so that paths grow deep by being drawn again and again, but not without end.
const RECENT_BYTES: usize = 600;

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), recent: Vec::new() }
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
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

    /// A path: two in five times one of those that were drawn last, or one beside or below it. What matters mostly takes
    /// two calls on one thing: that one of two links is renamed to the other was found after 313,000 calls without this.
    pub fn path(&mut self, up: bool) -> String {
        let path = if self.recent.is_empty() || self.below(5) >= 2 { self.new_path(up) } else { self.known_path(up) };
        if (1..=RECENT_BYTES).contains(&path.len()) && !self.recent.contains(&path) {
            if self.recent.len() == RECENT_PATHS {
                self.recent.remove(0);
            }
            self.recent.push(path.clone());
        }
        path
    }

    fn known_path(&mut self, up: bool) -> String {
        let known = self.below(self.recent.len());
        let known = self.recent[known].clone();
        match self.below(8) {
            0 => format!("{known}/{}", self.name(up)),
            1 => match known.rsplit_once('/') {
                Some((directory, _)) => format!("{directory}/{}", self.name(up)),
                None => self.name(up),
            },
            _ => known,
        }
    }

    fn new_path(&mut self, up: bool) -> String {
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

pub const MODES: [u32; 14] =
    [0o777, 0o777, 0o777, 0o755, 0o755, 0o644, 0o4755, 0o2775, 0o2777, 0o1777, 0o070, 0o6777, 0o6711, 0o3775];

/// What a sequence begins with, so that calls meet there what they come upon rarely by themselves: a directory that all
/// may write and none may take others' names out of, one whose files get its group, one far below, a file of two names.
pub fn scene(random: &mut Random, up: bool) -> Vec<Call> {
    let create = OpenFlags::WRITE | OpenFlags::CREATE;
    let path = str::to_string;
    let first = |operation| Call { user: 0, operation };
    let shared_directory = |owner: usize, mode: u32| {
        let by = |operation| Call { user: owner, operation };
        vec![
            by(Operation::MakeDirectory(path("n0"), 0o777)),
            by(Operation::ChangeOwner(path("n0"), true, None, Some([0, SHARED_GROUP, 1001][owner]))),
            by(Operation::ChangeMode(path("n0"), mode)),
        ]
    };
    let mut calls = match random.below(if up { 8 } else { 3 }) {
        0 => vec![
            first(Operation::Open(path("n0"), create, 0o666)),
            first(Operation::Link(path("n0"), path("n1"), false)),
        ],
        1 => {
            let long = "x".repeat(255);
            (0..random.below(11))
                .flat_map(|_| [Operation::MakeDirectory(long.clone(), 0o777), Operation::ChangeDirectory(long.clone())])
                .map(first)
                .collect()
        }
        2 | 3 => return Vec::new(),
        number => {
            let owner = random.below(3);
            let mode = if number < 6 { 0o1777 } else { 0o2775 + (random.below(2) as u32) * 2 };
            let mut calls = shared_directory(owner, mode);
            for user in 0..USERS.len() {
                let name = format!("n0/n{user}");
                let operation = match random.below(4) {
                    0 => Operation::MakeDirectory(name, random.pick(&MODES)),
                    1 => Operation::Symlink(path("n0"), name),
                    _ => Operation::Open(name, create, random.pick(&MODES)),
                };
                calls.push(Call { user, operation });
            }
            calls
        }
    };
    if up && random.below(2) == 0 && calls.len() > 2 {
        calls.push(first(Operation::ChangeDirectory(path("n0"))));
    }
    calls
}

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
                let user = [None, None, Some(0), Some(1001), Some(1002)][random.below(5)];
                let group = [None, Some(0), Some(1001), Some(1002), Some(SHARED_GROUP)][random.below(5)];
                Operation::ChangeOwner(random.path(up), random.below(2) == 0, user, group)
            }
            34 => Operation::ChangeDirectory(random.path(up)),
            35 if up => Operation::WorkingDirectory,
            _ => Operation::List(random.path(up)),
        };
        Call { user, operation }
    }
}
