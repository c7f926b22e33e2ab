//! Calls as data: drawn, made on any implementation, and what they tell.

use posix_calls::attributes::{self, Access, NewTime};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Errno, Fields, Follow, Kind, ObjectOperations, OpenFlags, Start, directories};
use proptest::prelude::*;

/// A path of the tree that tests begin with, or near it.
pub type Path = &'static str;

const PATHS: [Path; 14] =
    ["f", "g", "s", "n", "d", "d/f", "d/n", "e", "e/n", "d/c", "d/c/n", "d/../f", "d/c/..", "s/f"];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Call {
    Open(Path),
    Create(Path),
    CreateNew(Path),
    Link(Path, Path),
    Symlink(Path),
    ReadLink(Path),
    Unlink(Path),
    Rename(Path, Path),
    RenameNew(Path, Path),
    Exchange(Path, Path),
    MakeDirectory(Path),
    RemoveDirectory(Path),
    List(Path),
    Stat(Path, Follow, Fields),
    /// The time of modification, if one was set that no clock shows.
    TimeSet(Path),
    Exists(Path),
    Access(Path),
    ChangeMode(Path, u32),
    ChangeGroup(Path, u32),
    ChangeOwner(Path, u32),
    SetTimes(Path, i64),
    ChangeDirectory(Path),
    WorkingDirectory,
}

pub fn call() -> impl Strategy<Value = Call> {
    let path = || prop::sample::select(&PATHS[..]);
    let two = || (path(), path());
    let fields = prop::sample::select(&[Fields::IDENTITY, Fields::LINK_COUNT, Fields::PERMISSIONS, Fields::ALL][..]);
    let follow = prop_oneof![Just(Follow::Symlinks), Just(Follow::Nothing)];
    prop_oneof![
        1 => path().prop_map(Call::Open),
        2 => path().prop_map(Call::Create),
        2 => path().prop_map(Call::CreateNew),
        2 => two().prop_map(|(old, new)| Call::Link(old, new)),
        1 => path().prop_map(Call::Symlink),
        1 => path().prop_map(Call::ReadLink),
        3 => path().prop_map(Call::Unlink),
        3 => two().prop_map(|(old, new)| Call::Rename(old, new)),
        1 => two().prop_map(|(old, new)| Call::RenameNew(old, new)),
        1 => two().prop_map(|(old, new)| Call::Exchange(old, new)),
        2 => path().prop_map(Call::MakeDirectory),
        2 => path().prop_map(Call::RemoveDirectory),
        1 => path().prop_map(Call::List),
        2 => (path(), follow, fields).prop_map(|(path, follow, fields)| Call::Stat(path, follow, fields)),
        1 => path().prop_map(Call::Exists),
        1 => path().prop_map(Call::Access),
        1 => (path(), prop::sample::select(&[0o755, 0o700, 0o2775, 0o1777, 0o4755][..]))
            .prop_map(|(path, mode)| Call::ChangeMode(path, mode)),
        1 => (path(), 5..8_u32).prop_map(|(path, group)| Call::ChangeGroup(path, group)),
        1 => (path(), 5..7_u32).prop_map(|(path, user)| Call::ChangeOwner(path, user)),
        1 => (path(), 1..4_i64).prop_map(|(path, time)| Call::SetTimes(path, time)),
        1 => path().prop_map(Call::ChangeDirectory),
        1 => Just(Call::WorkingDirectory),
    ]
}

impl Call {
    fn paths(self) -> Vec<Path> {
        match self {
            Call::Link(old, new) | Call::Rename(old, new) | Call::RenameNew(old, new) | Call::Exchange(old, new) => {
                vec![old, new]
            }
            Call::Open(path)
            | Call::Create(path)
            | Call::CreateNew(path)
            | Call::Symlink(path)
            | Call::ReadLink(path)
            | Call::Unlink(path)
            | Call::MakeDirectory(path)
            | Call::RemoveDirectory(path)
            | Call::List(path)
            | Call::Stat(path, _, _)
            | Call::TimeSet(path)
            | Call::Exists(path)
            | Call::Access(path)
            | Call::ChangeMode(path, _)
            | Call::ChangeGroup(path, _)
            | Call::ChangeOwner(path, _)
            | Call::SetTimes(path, _)
            | Call::ChangeDirectory(path) => vec![path],
            Call::WorkingDirectory => vec!["."],
        }
    }
}

/// The objects that the paths of a call lead through: each with its number, or that it is not there.
pub fn way<V: ObjectOperations>(call: &V, made: Call, there_first: u64) -> String {
    let mut told = String::new();
    for path in made.paths() {
        let (mut node, mut symlinks) = (call.working_directory(), 0);
        let mut left: Vec<Vec<u8>> = path.split('/').rev().map(|name| name.as_bytes().to_vec()).collect();
        told += ": ";
        while let Some(name) = left.pop() {
            let directory = node;
            if call.kind(directory) != Kind::Directory {
                break;
            }
            if name == b"." {
            } else if name == b".." {
                node = call.parent(directory).ok().unwrap();
            } else {
                let found = call.look_up(directory, &call.key(&name).unwrap()).ok().unwrap();
                let Some(found) = found else {
                    told += "absent ";
                    break;
                };
                node = call.node(&found);
            }
            let number = call.attributes(node, Fields::IDENTITY).ok().unwrap().number.0;
            told += &format!("{} ", known(number, there_first));
            if call.kind(node) == Kind::Symlink && symlinks < 4 {
                symlinks += 1;
                left.extend(
                    call.link_target(node).ok().unwrap().as_ref().split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec),
                );
                node = directory;
            }
        }
    }
    told
}

/// What a call tells of an object's number: which of those it is that were there first.
fn known(number: u64, there_first: u64) -> String {
    if number <= there_first { number.to_string() } else { "new".into() }
}

/// Makes a call; what it tells, without what differs from run to run. `there_first` is the largest number of an object
/// that was there in the beginning.
pub fn perform<V: ObjectOperations>(call: &V, made: Call, there_first: u64) -> Result<String, Errno> {
    let at = || Start::WorkingDirectory;
    let new_mode = 0o666;
    let done = |result: Result<(), Errno>| result.map(|()| "done".to_owned());
    let open = |path: Path, flags| {
        let opened = names::open(call, at(), path.as_bytes(), flags, new_mode)?;
        let is_new = opened.is_new;
        names::close(call, opened.handle);
        Ok(format!("new: {is_new}"))
    };
    let renamed =
        |old: Path, new: Path, mode| done(names::rename(call, (at(), old.as_bytes()), (at(), new.as_bytes()), mode));
    match made {
        Call::Open(path) => open(path, OpenFlags::READ),
        Call::Create(path) => open(path, OpenFlags::CREATE | OpenFlags::WRITE),
        Call::CreateNew(path) => open(path, OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE),
        Call::Link(old, new) => {
            done(names::link(call, (at(), old.as_bytes()), (at(), new.as_bytes()), Follow::Nothing))
        }
        Call::Symlink(path) => done(names::symlink(call, b"d", at(), path.as_bytes())),
        Call::ReadLink(path) => {
            names::read_link(call, at(), path.as_bytes()).map(|target| format!("{:?}", target.as_ref()))
        }
        Call::Unlink(path) => done(names::unlink(call, at(), path.as_bytes())),
        Call::Rename(old, new) => renamed(old, new, RenameMode::Replace),
        Call::RenameNew(old, new) => renamed(old, new, RenameMode::NoReplace),
        Call::Exchange(old, new) => renamed(old, new, RenameMode::Exchange),
        Call::MakeDirectory(path) => done(directories::make_directory(call, at(), path.as_bytes(), 0o777)),
        Call::RemoveDirectory(path) => done(directories::remove_directory(call, at(), path.as_bytes())),
        Call::List(path) => {
            let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
            let opened = names::open(call, at(), path.as_bytes(), flags, 0)?;
            let mut told = Vec::new();
            directories::read_directory(call, call.held(&opened.handle), 0, |entry| {
                told.push((String::from_utf8_lossy(entry.name).into_owned(), known(entry.number.0, there_first)));
                true
            })?;
            names::close(call, opened.handle);
            told.sort();
            Ok(format!("{told:?}"))
        }
        Call::Stat(path, follow, fields) => {
            let mut told = attributes::stat(call, at(), path.as_bytes(), follow, fields)?;
            if told.kind == Kind::Directory {
                told.modified_ns = 0;
            }
            let number = known(told.number.0, there_first);
            told.number.0 = 0;
            Ok(format!("{number} {told:?}"))
        }
        Call::TimeSet(path) => {
            let told = attributes::stat(call, at(), path.as_bytes(), Follow::Nothing, Fields::TIMES)?;
            let is_set = told.kind != Kind::Directory && told.modified_ns < 0;
            Ok(if is_set { told.modified_ns.to_string() } else { "not set".into() })
        }
        Call::Exists(path) => done(attributes::access(call, at(), path.as_bytes(), Follow::Symlinks, Access::EXISTS)),
        Call::Access(path) => {
            let wanted = Access { read: true, write: true, execute: false };
            done(attributes::access(call, at(), path.as_bytes(), Follow::Symlinks, wanted))
        }
        Call::ChangeMode(path, mode) => done(attributes::change_mode(call, at(), path.as_bytes(), mode)),
        Call::ChangeGroup(path, group) => {
            done(attributes::change_owner(call, at(), path.as_bytes(), Follow::Nothing, (None, Some(group))))
        }
        Call::ChangeOwner(path, user) => {
            done(attributes::change_owner(call, at(), path.as_bytes(), Follow::Nothing, (Some(user), None)))
        }
        Call::SetTimes(path, time) => {
            let times = (NewTime::At(time), NewTime::At(time));
            done(attributes::set_times(call, at(), path.as_bytes(), Follow::Nothing, times))
        }
        Call::ChangeDirectory(path) => done(directories::change_directory(call, at(), path.as_bytes())),
        Call::WorkingDirectory => {
            let mut buffer = [0; 64];
            directories::working_directory_path(call, &mut buffer)
                .map(|path| String::from_utf8_lossy(path).into_owned())
        }
    }
}
