//! A full arena at every allocation: a script with each kind of call is made again and again, and each time a later
//! allocation fails, alone or with all that follow. A call that is refused has done nothing, or what POSIX's steps before
//! it are (a new file that gets no descriptor); every other call does what it does on the reference; nothing is lost.
#![cfg(not(any(loom, shuttle)))]

use std::collections::{BTreeMap, BTreeSet};

use call_language::{Answer, Call, DataOperation, Operation, Random, WINDOWS, perform};
use percpu::Core;
use plain::Plain;
use scalefs::{Credentials, DataOperations, Errno, OpenFlags, Process};
use sync::Spin;

use instance::{Instance, with_instance};

mod instance;

const PAGES: u32 = 512;
const DRAWN_CALLS: usize = 70;
const DESCRIPTORS: u32 = 12;

/// Calls of every kind.
fn script() -> Vec<Operation> {
    let path = str::to_string;
    let (create, both) = (OpenFlags::WRITE | OpenFlags::CREATE, OpenFlags::READ | OpenFlags::WRITE);
    let mut calls = vec![
        Operation::MakeDirectory(path("n0"), 0o777),
        Operation::Open(path("n0/n1"), create, 0o644),
        Operation::Link(path("n0/n1"), path("n2"), false),
        Operation::Symlink("t".repeat(300), path("n0/n3")),
        Operation::ReadLink(path("n0/n3")),
        Operation::Rename(path("n0/n3"), path("n3"), scalefs::names::RenameMode::NoReplace),
        Operation::MakeDirectory(path("n0/d"), 0o755),
        Operation::Rename(path("n0/d"), path("d"), scalefs::names::RenameMode::Replace),
        Operation::ChangeDirectory(path("d")),
        Operation::WorkingDirectory,
        Operation::ChangeDirectory(path("..")),
        Operation::Access(path("n2"), 6),
        Operation::ChangeMode(path("n2"), 0o600),
        Operation::ChangeOwner(path("n2"), true, Some(5), None),
        Operation::Stat(path("n2"), true),
        Operation::List(path("n0")),
        Operation::RemoveDirectory(path("d")),
        Operation::Data(DataOperation::Pipe),
        Operation::Data(DataOperation::Write(1, 5000, 3)),
        Operation::Data(DataOperation::Read(0, 4000)),
        Operation::Data(DataOperation::Open(path("n2"), both, 0, false)),
        Operation::Data(DataOperation::Write(2, 9000, 2)),
        Operation::Data(DataOperation::WriteAt(2, 100, 1, 300 * 4096)),
        Operation::Data(DataOperation::Resize(2, 100)),
        Operation::Data(DataOperation::Duplicate(2, 900)),
        Operation::Data(DataOperation::DuplicateTo(2, 3)),
        Operation::Data(DataOperation::Contents(path("n2"), 0)),
        Operation::Data(DataOperation::ResizePath(path("n2"), 9000)),
        Operation::Data(DataOperation::Flags(2)),
        Operation::Data(DataOperation::Stat(2)),
        Operation::Data(DataOperation::ChangeMode(2, 0o644)),
    ];
    let random = &mut Random::new(11);
    calls.extend((0..DRAWN_CALLS).map(|_| Call::of_names_and_data(random, false, 0, true).operation));
    calls
}

/// The name of a call's kind.
fn kind(operation: &Operation) -> String {
    let told = format!("{operation:?}");
    told.split_inclusive('(')
        .take(2)
        .filter(|part| *part != "Data(")
        .take(1)
        .map(|part| part.trim_matches(['(', ')']))
        .collect()
}

/// All that can be seen: of paths and of descriptors. Files are numbered as they are met.
fn seen<D: DataOperations>(call: &D) -> Vec<String> {
    let (mut told, mut numbers, mut todo) = (Vec::new(), BTreeMap::new(), vec![String::from("/")]);
    let mut tell = |numbers: &mut BTreeMap<u64, usize>, operation: Operation| {
        let mut outcome = perform(call, &operation);
        if let Ok(Answer::Status { file, .. }) = &mut outcome {
            let count = numbers.len();
            *file = *numbers.entry(*file).or_insert(count) as u64;
        }
        told.push(format!("{operation:?}: {outcome:?}"));
        outcome
    };
    while let Some(path) = todo.pop() {
        if let Ok(Answer::Names(names)) = tell(&mut numbers, Operation::List(path.clone())) {
            todo.extend(names.iter().map(|(name, _)| format!("{}/{name}", path.trim_end_matches('/'))));
        }
        tell(&mut numbers, Operation::Stat(path.clone(), false)).unwrap();
        if let Ok(Answer::Text(_)) = tell(&mut numbers, Operation::ReadLink(path.clone())) {
            continue;
        }
        for offset in &WINDOWS[..2] {
            let contents = Operation::Data(DataOperation::Contents(path.clone(), *offset));
            let _ = tell(&mut numbers, contents);
        }
    }
    for fd in 0..DESCRIPTORS {
        for operation in [
            DataOperation::Stat(fd),
            DataOperation::Flags(fd),
            DataOperation::Seek(fd, 0, scalefs::data::Whence::Current),
        ] {
            let _ = tell(&mut numbers, Operation::Data(operation));
        }
    }
    told
}

/// What a call of which only a part was done is the whole of.
fn shortened(operation: &Operation, outcome: &Result<Answer, Errno>) -> Operation {
    let (Operation::Data(call), Ok(Answer::Number(count))) = (operation, outcome) else { return operation.clone() };
    let count = *count as usize;
    Operation::Data(match call {
        DataOperation::Write(fd, length, fill) => DataOperation::Write(*fd, count.min(*length), *fill),
        DataOperation::WriteAt(fd, length, fill, offset) => {
            DataOperation::WriteAt(*fd, count.min(*length), *fill, *offset)
        }
        other => other.clone(),
    })
}

/// The reference after these calls.
fn reference(calls: &[Operation]) -> (Plain, plain::Process) {
    let file_system = Plain::default();
    let process = plain::Process::new(&file_system, Credentials::SUPERUSER);
    for call in calls {
        let _ = perform(&file_system.begin(&process), call);
    }
    (file_system, process)
}

/// How long memory is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// For one call.
    Once,
    /// From then on.
    ForGood,
}

struct Trial<'t> {
    instance: &'t Instance<'t>,
    core: &'t Core<'t>,
    process: &'t Process,
    missing: Missing,
    /// What has happened.
    happened: Vec<Operation>,
    /// Kinds of calls that were refused.
    refused: BTreeSet<String>,
    /// Kinds of calls that were refused, and had done something.
    half_done: BTreeSet<String>,
}

impl Trial<'_> {
    fn ours(&self, operation: &Operation) -> Result<Answer, Errno> {
        perform(&self.instance.fs.enter(self.core, self.process, &Spin), operation)
    }

    /// All that can be seen, with memory.
    fn seen(&self) -> Vec<String> {
        let left = self.core.allocations_left();
        self.core.fail_allocations_after(None);
        let seen = seen(&self.instance.fs.enter(self.core, self.process, &Spin));
        self.core.fail_allocations_after(left);
        seen
    }

    fn step(&mut self, operation: &Operation, state: &mut (Plain, plain::Process)) {
        let outcome = self.ours(operation);
        let expected_without_memory = self.core.allocations_left() == Some(0);
        if expected_without_memory && matches!(outcome, Err(Errno::ENOSPC | Errno::ENOMEM)) {
            self.refused.insert(kind(operation));
            let now = self.seen();
            if now != seen(&state.0.begin(&state.1)) {
                self.happened.push(operation.clone());
                *state = reference(&self.happened);
                // A descriptor is what is missing.
                if let (Operation::Data(DataOperation::Open(..)), Some(fd)) = (operation, self.new_descriptor(state)) {
                    let close = Operation::Data(DataOperation::Close(fd));
                    perform(&state.0.begin(&state.1), &close).unwrap();
                    self.happened.push(close);
                }
                assert_eq!(now, seen(&state.0.begin(&state.1)), "{operation:?} has done something else");
                self.half_done.insert(kind(operation));
            }
            if self.missing == Missing::Once {
                self.core.fail_allocations_after(None);
            }
            return;
        }
        let whole = shortened(operation, &outcome);
        let expected = perform(&state.0.begin(&state.1), &whole);
        let is_same = match (&outcome, &expected) {
            (Ok(Answer::Status { .. }), Ok(Answer::Status { .. })) => true,
            (ours, theirs) => ours == theirs,
        };
        assert!(is_same, "{operation:?} gives {outcome:?}, expected {expected:?}");
        self.happened.push(whole);
    }

    /// The descriptor that the reference has and we have not.
    fn new_descriptor(&self, (file_system, process): &(Plain, plain::Process)) -> Option<u32> {
        let _ = file_system;
        let is_ours = |fd: u32| self.ours(&Operation::Data(DataOperation::Flags(fd))).is_ok();
        process.descriptors().into_iter().find(|fd| !is_ours(*fd))
    }

    fn remove_all(&self, path: &str) {
        let Ok(Answer::Names(names)) = self.ours(&Operation::List(path.into())) else { return };
        for (name, kind) in names {
            let below = format!("{}/{name}", path.trim_end_matches('/'));
            if kind == scalefs::Kind::Directory as u8 {
                self.remove_all(&below);
                self.ours(&Operation::RemoveDirectory(below)).unwrap();
            } else {
                self.ours(&Operation::Unlink(below)).unwrap();
            }
        }
    }
}

/// Makes the script with an allocation that fails; what was refused and what was half done, and whether it came to its end
/// before that.
fn attempt(script: &[Operation], missing: Missing, allowed: u32) -> (BTreeSet<String>, BTreeSet<String>, bool) {
    let mut result = None;
    with_instance(PAGES, |instance| {
        let core = instance.core(1);
        let process = instance.process(&core);
        let mut state = reference(&[]);
        core.fail_allocations_after(Some(allowed));
        let (happened, refused, half_done) = Default::default();
        let mut trial = Trial { instance, core: &core, process: &process, missing, happened, refused, half_done };
        for (index, operation) in script.iter().enumerate() {
            trial.step(operation, &mut state);
            if index % 5 == 4 {
                instance.fs.maintain(&core, &Spin);
            }
        }
        let has_ended = core.allocations_left().is_some_and(|left| left > 0);
        core.fail_allocations_after(None);
        assert_eq!(trial.seen(), seen(&state.0.begin(&state.1)), "in the end");
        trial.ours(&Operation::ChangeDirectory("/".into())).unwrap();
        trial.remove_all("/");
        let Trial { refused, half_done, .. } = trial;
        process.exit(instance.fs, &core, &Spin);
        result = Some((refused, half_done, has_ended));
    });
    result.expect("the test has run")
}

#[test]
fn each_allocation_may_fail() {
    let script = script();
    let kinds: BTreeSet<_> = script.iter().map(kind).collect();
    assert!(kinds.len() == 29, "{kinds:?}");
    for missing in [Missing::Once, Missing::ForGood] {
        let (mut refused, mut half_done) = (BTreeSet::new(), BTreeSet::new());
        let mut trials = 0;
        for allowed in 0.. {
            let (of_this, half_of_this, has_ended) = std::panic::catch_unwind(|| attempt(&script, missing, allowed))
                .unwrap_or_else(|_| panic!("with {allowed} allocations, {missing:?}"));
            refused.extend(of_this);
            half_done.extend(half_of_this);
            trials += 1;
            if has_ended {
                break;
            }
        }
        println!("{missing:?}: {trials} trials; refused: {refused:?}; half done: {half_done:?}");
        let allocating =
            ["MakeDirectory", "Open", "Symlink", "Link", "Rename", "Pipe", "Write", "WriteAt", "Duplicate"];
        assert!(allocating.iter().all(|kind| refused.contains(*kind)), "{refused:?}");
        assert!(half_done.is_subset(&BTreeSet::from(["Open".to_owned()])), "{half_done:?}");
    }
}
