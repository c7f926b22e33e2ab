//! Who may do what, as a table: caller, owner, group, mode, set-id and sticky bits, kind and call, each combination once on
//! ScaleFS, on `plain` and on the host's tmpfs. Random calls come upon a combination when they do; here none is left out.
//!
//! Of a mode's twelve bits, nine say what one of three classes may do. A mode is told apart by what the caller's class may,
//! and a caller whose class is mistaken is noticed if the other classes may just the contrary: 24 modes stand for 512.
//!
//! `make test` tries combinations that lie far apart; `RIGHTS=all` tries all, `RIGHTS=N` so many of each table.

use call_language::{Call, DataOperation, Operation, SHARED_GROUP, USERS};
use scalefs::OpenFlags;
use scalefs::names::RenameMode;

use crate::host::{Host, with_host};
use crate::systems::Systems;
use crate::systems::comparison::{Comparison, report};
use crate::systems::maps::Maps;
use crate::systems::ours::Memory;

const GROUPS_OF_OBJECTS: [u32; 3] = [0, 1001, SHARED_GROUP];
/// Set-id and sticky bits that come together.
const SPECIAL: [u32; 5] = [0, 0o1000, 0o2000, 0o4000, 0o7000];
/// What the caller's class may, and which class that is; the others may the contrary.
const MODES: usize = 8 * 3;
/// Combinations that share a file system, each in a directory of its own.
const TOGETHER: usize = 24;
/// How far apart those are that are tried where not all are: coprime to the size of either table.
const STRIDE: usize = 104_729;

fn mode(number: usize) -> u32 {
    let (rights, class) = (number as u32 % 8, number as u32 / 8);
    (0..3).map(|other| (if other == class { rights } else { 7 - rights }) << (other * 3)).sum()
}

/// Digits of a number, each with its own base.
struct Digits(usize);

impl Digits {
    fn next(&mut self, base: usize) -> usize {
        let digit = self.0 % base;
        self.0 /= base;
        digit
    }
}

/// What a combination does, in the directory `base`: what is made for it, and what its caller calls.
struct Case {
    set_up: Vec<Operation>,
    caller: usize,
    calls: Vec<Operation>,
    /// What is looked at in the end.
    looks: Vec<String>,
}

/// One of the two tables: how many combinations, and the one with a number.
type Table = (usize, fn(usize, &str) -> Case);

/// What rights of a directory say of the names in it.
const NAMES: Table = (3 * 3 * MODES * SPECIAL.len() * 3 * 3 * 3 * NAME_CALLS, case_of_names);
const NAME_CALLS: usize = 18;
/// What rights of an object say of itself.
const OBJECTS: Table = (3 * 3 * MODES * SPECIAL.len() * 2 * 3 * OBJECT_CALLS, case_of_objects);
const OBJECT_CALLS: usize = 50;

const WRITE_NEW: OpenFlags = OpenFlags::WRITE.union(OpenFlags::CREATE);

fn make(kind: usize, path: &str) -> Operation {
    match kind {
        0 => Operation::Open(path.into(), WRITE_NEW, 0o666),
        1 => Operation::MakeDirectory(path.into(), 0o777),
        _ => Operation::Symlink("target".into(), path.into()),
    }
}

/// Owner and group first: they take set-id bits away.
fn give(path: &str, user: u32, group: u32, mode: Option<u32>) -> Vec<Operation> {
    let mut operations = vec![Operation::ChangeOwner(path.into(), false, Some(user), Some(group))];
    operations.extend(mode.map(|mode| Operation::ChangeMode(path.into(), mode)));
    operations
}

fn case_of_names(number: usize, base: &str) -> Case {
    let mut digits = Digits(number);
    let call = digits.next(NAME_CALLS);
    let (caller, kind, owner) = (digits.next(3), digits.next(3), USERS[digits.next(3)]);
    let (user, group) = (USERS[digits.next(3)], GROUPS_OF_OBJECTS[digits.next(3)]);
    let mode = mode(digits.next(MODES)) | SPECIAL[digits.next(SPECIAL.len())];
    let [directory, victim, new, elsewhere, own, beside] =
        ["d", "d/v", "d/n", "o/n", "own", "o/w"].map(|name| format!("{base}/{name}"));
    let mut set_up = vec![
        make(1, &directory),
        make(1, &format!("{base}/o")),
        Operation::ChangeMode(format!("{base}/o"), 0o777),
        make(kind, &victim),
        make(usize::from(kind == 1), &beside),
        make(0, &own),
    ];
    set_up.extend(give(&victim, owner, 0, None));
    for path in [&beside, &own] {
        set_up.extend(give(path, USERS[caller], USERS[caller], None));
    }
    set_up.extend(give(&directory, user, group, Some(mode)));
    let looks = [&directory, &victim, &new, &elsewhere, &beside].map(String::clone).into();
    let rename = |old: &String, new: &String, mode| Operation::Rename(old.clone(), new.clone(), mode);
    let call = match call {
        0 => Operation::Open(new, WRITE_NEW, 0o6775),
        1 => Operation::Open(new, WRITE_NEW | OpenFlags::EXCLUSIVE, 0o2707),
        2 => Operation::Open(victim, WRITE_NEW, 0o666),
        3 => Operation::Open(victim, WRITE_NEW | OpenFlags::NO_FOLLOW, 0o666),
        4 => Operation::MakeDirectory(new, 0o777),
        5 => Operation::Symlink("target".into(), new),
        // Of a file of the caller's own: of others' it depends on a setting of the host.
        6 => Operation::Link(own, new, false),
        7 => Operation::Unlink(victim),
        8 => Operation::RemoveDirectory(victim),
        9 => rename(&victim, &new, RenameMode::Replace),
        10 => rename(&victim, &elsewhere, RenameMode::NoReplace),
        11 => rename(&victim, &beside, RenameMode::Replace),
        12 => rename(&beside, &victim, RenameMode::Replace),
        13 => rename(&beside, &new, RenameMode::Replace),
        14 => rename(&beside, &victim, RenameMode::Exchange),
        15 => Operation::Stat(victim, false),
        16 => Operation::List(directory),
        _ => Operation::ChangeDirectory(directory),
    };
    Case { set_up, caller, calls: vec![call], looks }
}

fn case_of_objects(number: usize, base: &str) -> Case {
    let mut digits = Digits(number);
    let call = digits.next(OBJECT_CALLS);
    let (caller, kind) = (digits.next(3), digits.next(2));
    let (user, group) = (USERS[digits.next(3)], GROUPS_OF_OBJECTS[digits.next(3)]);
    let mode = mode(digits.next(MODES)) | SPECIAL[digits.next(SPECIAL.len())];
    let [object, elsewhere] = ["v", "n"].map(|name| format!("{base}/{name}"));
    let moved = format!("{base}/o/v");
    let mut set_up =
        vec![make(kind, &object), make(1, &format!("{base}/o")), Operation::ChangeMode(format!("{base}/o"), 0o777)];
    set_up.extend(give(&object, user, group, Some(mode)));
    let looks = [&object, &elsewhere, &moved].map(String::clone).into();
    let data = |operations: Vec<DataOperation>| operations.into_iter().map(Operation::Data).collect();
    let opened = |flags| DataOperation::Open(object.clone(), flags, 0, false);
    let calls = match call {
        0..8 => vec![Operation::Access(object, call as u32)],
        8..33 => {
            let number = call - 8;
            let user = [None, Some(0), Some(1001), Some(1002), Some(1)][number % 5];
            let group = [None, Some(0), Some(1001), Some(1002), Some(SHARED_GROUP)][number / 5];
            vec![Operation::ChangeOwner(object, false, user, group)]
        }
        33..39 => {
            vec![Operation::ChangeMode(object, [0o6777, 0o2755, 0o2707, 0o1777, 0o4711, 0][call - 33])]
        }
        39 => vec![Operation::Open(object, OpenFlags::READ, 0)],
        40 => vec![Operation::Open(object, OpenFlags::WRITE, 0)],
        41 => vec![Operation::Open(object, OpenFlags::READ | OpenFlags::WRITE, 0)],
        42 => vec![Operation::Open(object, OpenFlags::READ | OpenFlags::TRUNCATE, 0)],
        43 => data(vec![DataOperation::ResizePath(object, 5)]),
        44 => data(vec![opened(OpenFlags::WRITE), DataOperation::Write(0, 3, 1), DataOperation::Close(0)]),
        45 => data(vec![opened(OpenFlags::WRITE), DataOperation::Resize(0, 7), DataOperation::Close(0)]),
        46 => data(vec![opened(OpenFlags::READ), DataOperation::ChangeMode(0, 0o6755), DataOperation::Close(0)]),
        47 => vec![Operation::List(object)],
        48 => vec![Operation::ChangeDirectory(object)],
        _ => vec![Operation::Rename(object, moved, RenameMode::Replace)],
    };
    Case { set_up, caller, calls, looks }
}

/// The calls of some combinations, one after the other.
fn calls_of(table: Table, numbers: &[usize]) -> Vec<Call> {
    let by = |user| move |operation| Call { user, operation };
    let mut calls = Vec::new();
    for (place, number) in numbers.iter().enumerate() {
        let base = format!("/c{place}");
        let Case { set_up, caller, calls: called, looks } = (table.1)(*number, &base);
        calls.extend([make(1, &base), Operation::ChangeMode(base, 0o777)].map(by(0)));
        calls.extend(set_up.into_iter().map(by(0)));
        let enters = matches!(called[..], [Operation::ChangeDirectory(_)]);
        calls.extend(called.into_iter().map(by(caller)));
        if enters {
            calls.extend([Operation::List(".".into()), Operation::ChangeDirectory("/".into())].map(by(0)));
        }
        calls.extend(looks.into_iter().map(|path| Operation::Stat(path, false)).map(by(0)));
    }
    calls
}

fn difference<S: Systems>(host: &Host, systems: &mut S, calls: &[Call]) -> Option<String> {
    host.clear();
    systems.with_empty(None, host.first_user(), |ours| {
        let both = |index: usize, call: &Call| [ours.call(index, call), host.call(call)];
        Comparison::new([S::NAME, "tmpfs"]).different_outcome(calls, &both)
    })
}

/// Tries the combinations of a table that are wanted; what differs first.
fn first_difference<S: Systems>(host: &Host, systems: &mut S, table: Table, wanted: Wanted) -> Option<String> {
    wanted.of(table.0).chunks(TOGETHER).find_map(|numbers| {
        let calls = calls_of(table, numbers);
        difference(host, systems, &calls)?;
        Some(report(calls, |calls| difference(host, systems, calls)))
    })
}

/// Which combinations of each table are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// So many, from all over the table.
    Some(usize),
    /// Those of a part, counted from 1, of so many parts.
    Part(usize, usize),
}

impl Wanted {
    /// What RIGHTS says: `5000`, `all`, or `3/10`, which is the third of ten parts of all.
    fn read(text: &str) -> Result<Wanted, String> {
        let part = |text: &str| {
            let (part, parts) = text.split_once('/')?;
            let (part, parts) = (part.parse().ok()?, parts.parse().ok()?);
            (1..=parts).contains(&part).then_some(Wanted::Part(part, parts))
        };
        match text {
            "all" => Some(Wanted::Part(1, 1)),
            text => text.parse().map(Wanted::Some).ok().or_else(|| part(text)),
        }
        .ok_or_else(|| format!("RIGHTS: expected `all`, a number, or a part as `3/10`, got {text:?}"))
    }

    /// The numbers of these combinations in a table of so many.
    fn of(self, size: usize) -> Vec<usize> {
        match self {
            Wanted::Some(count) if count < size => (0..count).map(|index| index * STRIDE % size).collect(),
            Wanted::Some(_) => (0..size).collect(),
            Wanted::Part(part, parts) => (part - 1..size).step_by(parts).collect(),
        }
    }
}

fn wanted() -> Wanted {
    let text = std::env::var("RIGHTS").unwrap_or_else(|_| "3000".to_owned());
    Wanted::read(&text).unwrap_or_else(|why| panic!("{why}"))
}

fn compare<S: Systems>(systems: impl Fn() -> S + Sync, table: Table) {
    let wanted = wanted();
    let difference = with_host(None, |host| {
        if !host.can_use_root() {
            eprintln!("not compared: only the superuser can be several users");
            return None;
        }
        first_difference(host, &mut systems(), table, wanted)
    });
    let difference = difference.expect("any user can compare without a limit");
    assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    println!("{} combinations of rights", wanted.of(table.0).len());
}

#[test]
fn rights_to_names_are_those_of_tmpfs() {
    compare(Memory::new, NAMES);
}

#[test]
fn rights_to_objects_are_those_of_tmpfs() {
    compare(Memory::new, OBJECTS);
}

#[test]
fn rights_to_names_are_the_same_on_plain() {
    compare(|| Maps, NAMES);
}

#[test]
fn rights_to_objects_are_the_same_on_plain() {
    compare(|| Maps, OBJECTS);
}

/// Of the tables' calls, those that find a fault that is planted.
#[cfg(fuzzing)]
pub fn finds(host: &Host) -> Option<String> {
    [("names", NAMES), ("objects", OBJECTS)].into_iter().find_map(|(name, table)| {
        first_difference(host, &mut Memory::new(), table, wanted()).map(|_| format!("rights to {name}"))
    })
}

#[test]
fn tables_are_whole_and_strides_reach_all_of_them() {
    for (size, _) in [NAMES, OBJECTS] {
        let (mut larger, mut smaller) = (size, STRIDE);
        while smaller > 0 {
            (larger, smaller) = (smaller, larger % smaller);
        }
        assert_eq!(larger, 1, "{STRIDE} and {size} have a common factor");
    }
    let modes: std::collections::BTreeSet<u32> = (0..MODES).map(mode).collect();
    assert_eq!(modes.len(), MODES);
    assert!(modes.contains(&0o077) && modes.contains(&0o525) && !modes.contains(&0o755));
}

#[test]
fn parts_of_a_table_are_all_of_it() {
    let size = 1_001;
    let mut parts: Vec<usize> =
        (1..=10).flat_map(|part| Wanted::read(&format!("{part}/10")).unwrap().of(size)).collect();
    parts.sort_unstable();
    assert_eq!(parts, Wanted::read("all").unwrap().of(size));
    assert_eq!(parts, (0..size).collect::<Vec<_>>());
    assert_eq!(Wanted::read("5").unwrap().of(size).len(), 5);
    for text in ["", "some", "0/10", "11/10", "1/0", "1/2/3", "-1"] {
        assert!(Wanted::read(text).unwrap_err().contains("expected `all`, a number, or a part"), "{text}");
    }
}
