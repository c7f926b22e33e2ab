//! How calls are drawn.

use posix_calls::OpenFlags;
use posix_calls::data::Whence;
use posix_calls::names::RenameMode;

use crate::calls::{Call, Operation, SHARED_GROUP, USERS};
use crate::data::DataOperation;
use crate::random::Random;

/// Permissions that are asked for.
pub const MODES: [u32; 14] =
    [0o777, 0o777, 0o777, 0o755, 0o755, 0o644, 0o4755, 0o2775, 0o2777, 0o1777, 0o070, 0o6777, 0o6711, 0o3775];

/// What a sequence begins with, so that calls meet there what they come upon rarely by themselves: a directory that all
/// may write and none may take others' names out of, one whose files get its group, one far below, one that was removed, a file of two names.
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
    let mut calls = match random.below(if up { 16 } else { 6 }) {
        0 | 1 => vec![
            first(Operation::Open(path("n0"), create, 0o666)),
            first(Operation::Link(path("n0"), path("n1"), false)),
        ],
        2 | 3 => {
            let long = "x".repeat(255);
            (0..random.below(11))
                .flat_map(|_| [Operation::MakeDirectory(long.clone(), 0o777), Operation::ChangeDirectory(long.clone())])
                .map(first)
                .collect()
        }
        4 | 6..=8 => return Vec::new(),
        5 => {
            let mode = random.pick(&[0o777, 0o555, 0o444]);
            return [
                Operation::MakeDirectory(path("n0"), 0o777),
                Operation::ChangeMode(path("n0"), mode),
                Operation::ChangeDirectory(path("n0")),
                Operation::RemoveDirectory(path("../n0")),
            ]
            .map(first)
            .into();
        }
        number => {
            let owner = random.below(3);
            let mode = if number < 12 { 0o1777 } else { 0o2775 + (random.below(2) as u32) * 2 };
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

/// What a sequence with data begins with, now and then: an appending descriptor of a file as large as files can be.
pub fn data_scene(random: &mut Random, user: usize) -> Vec<Call> {
    if random.below(4) > 0 {
        return Vec::new();
    }
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let size = i64::MAX - [0, 0, 1, 4096][random.below(4)];
    let operations = [
        DataOperation::Open("n1".into(), flags, 0o666, random.below(2) == 0),
        DataOperation::Resize(0, size),
        DataOperation::Seek(0, -5, Whence::End),
    ];
    operations.map(|operation| Call { user, operation: Operation::Data(operation) }).into()
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
        let operation = match random.below(42) {
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
                        flags |= flag;
                    }
                }
                let path = if flags.contains(OpenFlags::CREATE) { random.path_to_make(up) } else { random.path(up) };
                Operation::Open(path, flags, random.pick(&MODES))
            }
            6..=9 => Operation::MakeDirectory(random.path_to_make(up), random.pick(&MODES)),
            10 | 11 => Operation::RemoveDirectory(random.path(up)),
            12..=14 => Operation::Symlink(random.path(up), random.path_to_make(up)),
            15 => Operation::ReadLink(random.path(up)),
            // A link by a user who is not the file's owner depends on a setting of the host (protected_hardlinks).
            16..=18 => {
                let operation = Operation::Link(random.path(up), random.path_to_make(up), random.below(2) == 0);
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
            31 | 32 | 37 | 38 => Operation::ChangeMode(random.path(up), random.pick(&MODES)),
            33 | 39..=41 => {
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
