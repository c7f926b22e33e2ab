//! Processes: random sequences of spawn, fork, exec, exit and wait with calls on descriptors and memory between, by up to six
//! processes on four cores, on ScaleFS and on the reference. All results, and all that a process sees of its descriptors and its
//! memory, must be the same; nothing may be left in the end.
#![cfg(not(any(loom, shuttle)))]

mod instance;

use std::collections::{BTreeMap, BTreeSet};

use call_language::Random;
use instance::{Instance, with_instance};
use percpu::Core;
use plain::Plain;
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::memory::{self, Address, MappedObject};
use posix_calls::{
    AccessError, Attributes, Credentials, DataOperations, Ended, Errno, Fields, FileAction, Inherited,
    MemoryOperations, OnExec, OpenFlags, PipeState, ProcessNumber, ProcessOperations, Protection, Sharing,
    SpawnOptions, Start, StatusFlags, Which, directories, processes,
};
use scalefs::Process;
use sync::Spin;

const NAMES: [&[u8]; 5] = [b"a", b"b", b"d/a", b"missing/a", b"d"];
/// Pages that processes map, from this address on.
const MEMORY: u64 = 16 << 20;
const MEMORY_PAGES: u64 = 4;
const PAGE: u64 = 4096;
const MOST_PROCESSES: usize = 6;
const DESCRIPTORS: u32 = 8;
const ROUNDS: u64 = 30;
const CALLS: usize = 120;

/// What a process does.
#[derive(Clone, Debug)]
enum Operation {
    Open(usize, OnExec),
    Pipe(OnExec),
    Close(u32),
    DuplicateTo(u32, u32, OnExec),
    SetOnExec(u32, OnExec),
    ChangeDirectory(usize),
    /// Maps pages from this one on: memory of its own, or a descriptor's.
    Map(u64, Option<u32>),
    Store(u64, u8),
    Spawn(Vec<FileAction<'static>>, Inherited, bool),
    Fork,
    Exec,
    Exit(Ended),
    /// For the process that was made as this one; for any if there is none.
    Wait(Option<usize>),
}

fn on_exec(random: &mut Random) -> OnExec {
    [OnExec::Keep, OnExec::Close][random.below(2)]
}

fn action(random: &mut Random) -> FileAction<'static> {
    let number = random.below(DESCRIPTORS as usize) as u32;
    match random.below(8) {
        0..3 => {
            let flags = [OpenFlags::READ, OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE][random.below(2)];
            let path = NAMES[random.below(4)];
            FileAction::Open { number, path, flags, status: StatusFlags::NONE, permissions: 0o644 }
        }
        3 => FileAction::Close(number),
        7 => FileAction::ChangeDirectory(NAMES[random.below(5)]),
        _ => FileAction::Duplicate { number, target: random.below(DESCRIPTORS as usize) as u32 },
    }
}

fn operation(random: &mut Random, made: usize) -> Operation {
    let number = random.below(DESCRIPTORS as usize) as u32;
    match random.below(23) {
        0..3 => Operation::Open(random.below(4), on_exec(random)),
        3 | 4 => Operation::Pipe(on_exec(random)),
        5 => Operation::Close(number),
        6 => Operation::DuplicateTo(number, random.below(DESCRIPTORS as usize) as u32, on_exec(random)),
        7 => Operation::SetOnExec(number, on_exec(random)),
        20 | 21 => {
            let file = (random.below(2) == 0).then_some(number);
            Operation::Map(random.below(MEMORY_PAGES as usize) as u64, file)
        }
        22 => Operation::Store(random.below(MEMORY_PAGES as usize) as u64, random.below(256) as u8),
        8 => Operation::ChangeDirectory(random.below(5)),
        9..12 => {
            let actions = (0..random.below(5)).map(|_| action(random)).collect();
            let inherited = [Inherited::Surviving, Inherited::Surviving, Inherited::Nothing][random.below(3)];
            Operation::Spawn(actions, inherited, random.below(6) == 0)
        }
        12 => Operation::Fork,
        13 => Operation::Exec,
        14 | 15 => {
            let ended = [Ended::Exited(random.below(256) as u8), Ended::Killed(9)];
            Operation::Exit(ended[usize::from(random.below(4) == 0)])
        }
        _ if random.below(2) == 0 => Operation::Wait(None),
        _ => Operation::Wait(Some(random.below(made + 1))),
    }
}

/// Another user, to whom `spawn` can give a process.
fn user() -> Credentials {
    Credentials::new(7, 7, &[]).unwrap()
}

/// Calls that end in a number, or in nothing; and what `spawn` made.
enum Done<P> {
    Answer(Result<u64, Errno>),
    Made(P),
}

fn call<P: ProcessOperations + MemoryOperations>(call: &P, operation: &Operation) -> Done<P::Process> {
    let plain = DescriptorOptions::PLAIN;
    Done::Answer(match operation {
        Operation::Open(name, on_exec) => {
            let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
            let options = DescriptorOptions { on_exec: *on_exec, ..plain };
            data::open(call, Start::WorkingDirectory, NAMES[*name], flags, 0o644, options).map(u64::from)
        }
        Operation::Pipe(on_exec) => data::pipe(call, DescriptorOptions { on_exec: *on_exec, ..plain })
            .map(|(read, write)| u64::from(read << 16 | write)),
        Operation::Close(number) => data::close(call, *number).map(|()| 0),
        Operation::DuplicateTo(number, target, on_exec) => {
            data::duplicate_to(call, *number, *target, *on_exec).map(u64::from)
        }
        Operation::SetOnExec(number, on_exec) => data::set_on_exec(call, *number, *on_exec).map(|()| 0),
        Operation::ChangeDirectory(name) => {
            directories::change_directory(call.objects(), Start::WorkingDirectory, NAMES[*name]).map(|()| 0)
        }
        Operation::Spawn(actions, inherited, as_user) => {
            let user = user();
            let options = SpawnOptions { inherited: *inherited, credentials: as_user.then_some(&user) };
            match processes::spawn(call, actions, options) {
                Ok(made) => return Done::Made(made),
                Err(errno) => Err(errno),
            }
        }
        Operation::Map(page, file) => {
            let object = match *file {
                None => MappedObject::Anonymous,
                Some(fd) => MappedObject::File { fd, offset: 0, sharing: Sharing::Private },
            };
            let address = Address::Fixed(MEMORY + page * PAGE);
            memory::map(call, address, 2 * PAGE, Protection::ReadWrite, object)
        }
        Operation::Store(page, byte) => match call.store(MEMORY + page * PAGE, &[*byte]) {
            Ok(()) => Ok(0),
            Err(AccessError::Segment) => Ok(11),
            Err(AccessError::Bus) => Ok(7),
            Err(_) => panic!("no memory, or no system"),
        },
        other => unreachable!("{other:?} is no call of one process alone"),
    })
}

/// What can be seen of a process's descriptors, by number.
fn seen<D: DataOperations>(call: &D) -> Vec<(u32, Attributes, PipeState, u64)> {
    (0..3 * DESCRIPTORS)
        .filter_map(|fd| {
            let attributes = data::stat(call, fd, Fields::IDENTITY).ok()?;
            let offset = data::seek(call, fd, 0, data::Whence::Current).unwrap_or(u64::MAX);
            Some((fd, attributes, data::poll(call, fd).unwrap(), offset))
        })
        .collect()
}

/// The processes of both systems, made in the same order; those that have ended are gone.
struct Pair {
    ours: Option<Process>,
    reference: Option<plain::Process>,
    numbers: (ProcessNumber, ProcessNumber),
}

/// The first byte of each page of memory, or why it cannot be loaded.
fn remembered<M: MemoryOperations>(call: &M) -> Vec<Option<u8>> {
    let load = |page| {
        let mut byte = [0];
        call.load(MEMORY + page * PAGE, &mut byte).ok().map(|()| byte[0])
    };
    (0..MEMORY_PAGES + 2).map(load).collect()
}

struct Comparison<'a> {
    instance: &'a Instance<'a>,
    cores: [Core<'a>; 4],
    reference: Plain,
    processes: Vec<Pair>,
    /// Inodes by number, ours and the reference's.
    inodes: BTreeMap<u64, u64>,
    used: BTreeSet<ProcessNumber>,
}

impl Comparison<'_> {
    fn add(&mut self, ours: Process, reference: plain::Process) {
        assert!(self.used.insert(ours.number()), "{:?} was another process's", ours.number());
        let numbers = (ours.number(), reference.number());
        self.processes.push(Pair { ours: Some(ours), reference: Some(reference), numbers });
    }

    fn compare(&mut self, core: usize) {
        for Pair { ours, reference, .. } in &self.processes {
            let (Some(ours), Some(reference)) = (ours, reference) else { continue };
            let mine = seen(&self.instance.fs.enter(&self.cores[core], ours, &Spin));
            let theirs = seen(&self.reference.begin(reference));
            assert_eq!(
                remembered(&self.instance.fs.enter(&self.cores[core], ours, &Spin)),
                remembered(&self.reference.begin(reference))
            );
            assert_eq!(mine.len(), theirs.len(), "{mine:?} {theirs:?}");
            for (mine, theirs) in mine.iter().zip(&theirs) {
                let same = self.inodes.entry(mine.1.number.0).or_insert(theirs.1.number.0);
                assert_eq!(
                    (mine.0, *same, mine.1.kind, mine.2, mine.3),
                    (theirs.0, theirs.1.number.0, theirs.1.kind, theirs.2, theirs.3)
                );
            }
            let parent = |number: Option<ProcessNumber>, which: fn(&Pair) -> ProcessNumber| {
                number.map(|number| self.processes.iter().position(|pair| which(pair) == number))
            };
            assert_eq!(
                parent(ours.parent(), |pair| pair.numbers.0),
                parent(reference.parent(&self.reference), |pair| pair.numbers.1)
            );
        }
    }

    /// Does it on both systems; what came, told so that both tell the same.
    fn step(&mut self, core: usize, process: usize, operation: &Operation) {
        let fs = self.instance.fs;
        let Comparison { cores, reference, processes, .. } = self;
        let core = &cores[core];
        match operation {
            Operation::Exit(ended) => {
                let Pair { ours, reference: other, .. } = &mut processes[process];
                ours.take().unwrap().exit_with(fs, core, *ended, &Spin);
                other.take().unwrap().exit_with(reference, *ended);
            }
            Operation::Fork => {
                let pair = &processes[process];
                let ours = pair.ours.as_ref().unwrap().fork(fs, core, &Spin).unwrap();
                let other = pair.reference.as_ref().unwrap().fork(reference);
                self.add(ours, other);
            }
            Operation::Exec => {
                let pair = &processes[process];
                pair.ours.as_ref().unwrap().exec(fs, core, &Spin);
                pair.reference.as_ref().unwrap().exec(reference);
            }
            Operation::Wait(which) => {
                let pair = &processes[process];
                let ours = fs.enter(core, pair.ours.as_ref().unwrap(), &Spin);
                let other = reference.begin(pair.reference.as_ref().unwrap());
                let numbers = which.and_then(|which| processes.get(which)).map(|pair| pair.numbers);
                let mine = processes::wait(&ours, numbers.map_or(Which::Any, |(ours, _)| Which::Child(ours)));
                // Of several children that have ended, the reference takes the one that we have got.
                let same = match mine {
                    Ok(Some((child, _))) => {
                        processes.iter().find(|pair| pair.numbers.0 == child).map(|pair| pair.numbers.1)
                    }
                    _ => numbers.map(|(_, reference)| reference),
                };
                let theirs = processes::wait(&other, same.map_or(Which::Any, Which::Child));
                let told = |waited: Result<Option<(ProcessNumber, Ended)>, Errno>| {
                    waited.map(|child| child.map(|(_, ended)| ended))
                };
                assert_eq!(told(mine), told(theirs));
            }
            _ => {
                let pair = &processes[process];
                let ours = call(&fs.enter(core, pair.ours.as_ref().unwrap(), &Spin), operation);
                let other = call(&reference.begin(pair.reference.as_ref().unwrap()), operation);
                match (ours, other) {
                    (Done::Answer(ours), Done::Answer(other)) => assert_eq!(ours, other),
                    (Done::Made(ours), Done::Made(other)) => self.add(ours, other),
                    (Done::Made(_), Done::Answer(other)) => panic!("made, where the reference says {other:?}"),
                    (Done::Answer(ours), Done::Made(_)) => panic!("{ours:?}, where the reference has made it"),
                }
            }
        }
    }
}

/// A sequence of calls that a seed stands for.
fn sequence(seed: u64) {
    with_instance(64, |instance| {
        let random = &mut Random::new(seed);
        let cores = [0, 1, 2, 3].map(|number| instance.core(number));
        let reference = Plain::default();
        let (first, other) = (instance.process(&cores[0]), plain::Process::new(&reference, Credentials::SUPERUSER));
        for objects in [b"d", b"e"] {
            let call = instance.fs.enter(&cores[0], &first, &Spin);
            directories::make_directory(call.objects(), Start::WorkingDirectory, objects, 0o777).unwrap();
            directories::make_directory(&reference.begin(&other), Start::WorkingDirectory, objects, 0o777).unwrap();
        }
        let mut comparison = Comparison {
            instance,
            cores,
            reference,
            processes: Vec::new(),
            inodes: BTreeMap::new(),
            used: BTreeSet::new(),
        };
        comparison.add(first, other);
        for _ in 0..CALLS {
            let running: Vec<usize> =
                (0..comparison.processes.len()).filter(|place| comparison.processes[*place].ours.is_some()).collect();
            let Some(&process) = running.get(random.below(running.len().max(1))) else { break };
            let operation = operation(random, comparison.processes.len());
            let makes = matches!(operation, Operation::Spawn(..) | Operation::Fork);
            if makes && running.len() >= MOST_PROCESSES || matches!(operation, Operation::Exit(_)) && running.len() == 1
            {
                continue;
            }
            let core = random.below(4);
            comparison.step(core, process, &operation);
            comparison.compare(random.below(4));
            if random.below(8) == 0 {
                comparison.cores.iter().for_each(|core| instance.fs.maintain(core, &Spin));
            }
        }
        for pair in &mut comparison.processes {
            if let Some(process) = pair.ours.take() {
                process.exit(instance.fs, &comparison.cores[0], &Spin);
            }
        }
        // Paths of any process, from where it has worked.
        for name in [&b"a"[..], b"b", b"d/a", b"d/b"] {
            let process = instance.process(&comparison.cores[0]);
            let call = instance.fs.enter(&comparison.cores[0], &process, &Spin);
            let _ = posix_calls::names::unlink(call.objects(), Start::WorkingDirectory, name);
            drop(call);
            process.exit(instance.fs, &comparison.cores[0], &Spin);
        }
        let process = instance.process(&comparison.cores[0]);
        for directory in [b"d", b"e"] {
            let call = instance.fs.enter(&comparison.cores[0], &process, &Spin);
            directories::remove_directory(call.objects(), Start::WorkingDirectory, directory).unwrap();
        }
        process.exit(instance.fs, &comparison.cores[0], &Spin);
    });
}

#[test]
fn processes_do_what_the_reference_does() {
    for seed in 0..ROUNDS {
        let ran = std::panic::catch_unwind(|| sequence(seed));
        assert!(ran.is_ok(), "with seed {seed}");
    }
}

/// A parent with a pipe and a directory open, and what it spawns.
#[test]
fn a_new_process_has_what_its_actions_say() {
    with_instance(64, |instance| {
        let fs = instance.fs;
        let (core, other) = (instance.core(0), instance.core(1));
        let process = instance.process(&core);
        let call = || fs.enter(&core, &process, &Spin);
        let close = DescriptorOptions { on_exec: OnExec::Close, ..DescriptorOptions::PLAIN };
        assert_eq!(data::pipe(&call(), close), Ok((0, 1)));
        assert_eq!(data::pipe(&call(), DescriptorOptions::PLAIN), Ok((2, 3)));
        let actions = [FileAction::Duplicate { number: 1, target: 5 }, FileAction::Close(3)];
        let child = processes::spawn(&call(), &actions, SpawnOptions::default()).unwrap();
        assert_eq!(child.parent(), Some(process.number()));
        let mut numbers = Vec::new();
        child.for_each_descriptor(fs, &other, |number| numbers.push(number));
        assert_eq!(numbers, [2, 5]);
        assert_eq!(data::write(&fs.enter(&other, &child, &Spin), 5, b"hello"), Ok(5));
        assert_eq!(processes::wait(&call(), Which::Child(child.number())), Ok(None));
        let number = child.number();
        child.exit_with(fs, &other, Ended::Exited(3), &Spin);
        let calls = scalefs::ProcessCalls { file_system: fs, core: &core, process: &process, host: &Spin };
        assert_eq!(processes::wait_until_ended(&calls, Which::Any), Ok((number, Ended::Exited(3))));
        assert_eq!(Ended::Exited(3).wait_status(), 0x300);
        assert_eq!(processes::wait(&call(), Which::Any), Err(Errno::ECHILD));
        assert_eq!(processes::wait(&call(), Which::Child(number)), Err(Errno::ECHILD));
        let mut bytes = [0; 9];
        assert_eq!(data::read(&call(), 0, &mut bytes), Ok(5));
        process.exit(fs, &core, &Spin);
    });
}

#[test]
fn actions_that_fail_in_the_middle_leave_nothing() {
    with_instance(64, |instance| {
        let fs = instance.fs;
        let core = instance.core(0);
        let process = instance.process(&core);
        let call = || fs.enter(&core, &process, &Spin);
        assert_eq!(data::pipe(&call(), DescriptorOptions::PLAIN), Ok((0, 1)));
        let open = |path| FileAction::Open {
            number: 7,
            path,
            flags: OpenFlags::READ,
            status: StatusFlags::NONE,
            permissions: 0,
        };
        let keep = FileAction::Duplicate { number: 1, target: 6 };
        for (actions, errno) in [
            ([keep, open(b"/"), open(b"missing")], Errno::ENOENT),
            ([keep, FileAction::Close(1), FileAction::Duplicate { number: 1, target: 2 }], Errno::EBADF),
            ([keep, open(b"/"), FileAction::Duplicate { number: 4, target: 2 }], Errno::EBADF),
            ([keep, open(b"/"), FileAction::Duplicate { number: 1, target: 1 << 20 }], Errno::EBADF),
            ([keep, open(b"/"), FileAction::ChangeDirectory(b"missing")], Errno::ENOENT),
        ] {
            let spawned = processes::spawn(&call(), &actions, SpawnOptions::default());
            assert_eq!(spawned.err(), Some(errno));
            // No end of the pipe was kept.
            assert_eq!(data::poll(&call(), 0), Ok(PipeState { is_ready: false, other_end_gone: false }));
            assert_eq!(processes::wait(&call(), Which::Any), Err(Errno::ECHILD));
        }
        data::close(&call(), 1).unwrap();
        assert_eq!(data::poll(&call(), 0), Ok(PipeState { is_ready: true, other_end_gone: true }));
        // Who is not user 0 makes nobody else's processes.
        let user = user();
        let options = SpawnOptions { credentials: Some(&user), ..SpawnOptions::default() };
        let child = processes::spawn(&call(), &[], options).unwrap();
        let superuser = SpawnOptions { credentials: Some(&Credentials::SUPERUSER), ..SpawnOptions::default() };
        let refused = processes::spawn(&fs.enter(&core, &child, &Spin), &[], superuser);
        assert_eq!(refused.err(), Some(Errno::EPERM));
        child.exit(fs, &core, &Spin);
        process.exit(fs, &core, &Spin);
    });
}

/// Threads of one process make, end and wait for children on all cores: each child is waited for once.
#[test]
fn threads_share_children() {
    with_instance(64, |instance| {
        let fs = instance.fs;
        let process = instance.process(&instance.core(0));
        let waited = std::sync::Mutex::new(BTreeSet::new());
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (process, waited) = (&process, &waited);
                scope.spawn(move || {
                    let core = instance.core(number);
                    let call = || fs.enter(&core, process, &Spin);
                    for round in 0..200_u64 {
                        let child = processes::spawn(&call(), &[], SpawnOptions::default()).unwrap();
                        child.exit_with(fs, &core, Ended::Exited(round as u8), &Spin);
                        // Whichever has ended: perhaps none any more.
                        match processes::wait(&call(), Which::Any) {
                            Ok(Some((child, _))) => assert!(waited.lock().unwrap().insert(child), "waited for twice"),
                            Ok(None) | Err(Errno::ECHILD) => {}
                            other => panic!("{other:?}"),
                        }
                        if round % 16 == 0 {
                            fs.maintain(&core, &Spin);
                        }
                    }
                });
            }
        });
        let core = instance.core(0);
        while let Ok(Some((child, _))) = processes::wait(&fs.enter(&core, &process, &Spin), Which::Any) {
            assert!(waited.lock().unwrap().insert(child), "waited for twice");
        }
        assert_eq!(waited.lock().unwrap().len(), 800);
        process.exit(fs, &core, &Spin);
    });
}

/// Each allocation of spawn and fork fails in turn: ENOMEM, and neither a process nor an end of a pipe is left.
#[test]
fn without_memory_no_process_is_made() {
    type Make = fn(&scalefs::ScaleFs, &Core<'_>, &Process) -> Result<Process, Errno>;
    let spawn: Make = |fs, core, process| {
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        let actions = [
            FileAction::Duplicate { number: 1, target: 40 },
            FileAction::Open { number: 80, path: b"/", flags, status: StatusFlags::NONE, permissions: 0 },
        ];
        processes::spawn(&fs.enter(core, process, &Spin), &actions, SpawnOptions::default())
    };
    let fork: Make = |fs, core, process| process.fork(fs, core, &Spin);
    for make in [spawn, fork] {
        let mut refusals = 0;
        for allowed in 0.. {
            let mut was_made = false;
            with_instance(16, |instance| {
                let fs = instance.fs;
                let core = instance.core(0);
                let process = instance.process(&core);
                let call = || fs.enter(&core, &process, &Spin);
                assert_eq!(data::pipe(&call(), DescriptorOptions::PLAIN), Ok((0, 1)));
                core.fail_allocations_after(Some(allowed));
                let made = make(fs, &core, &process);
                core.fail_allocations_after(None);
                was_made = made.is_ok();
                match made {
                    Ok(child) => child.exit(fs, &core, &Spin),
                    Err(errno) => {
                        assert_eq!(errno, Errno::ENOMEM);
                        assert_eq!(processes::wait(&call(), Which::Any), Err(Errno::ECHILD));
                    }
                }
                data::close(&call(), 1).unwrap();
                assert_eq!(data::poll(&call(), 0), Ok(PipeState { is_ready: true, other_end_gone: true }));
                process.exit(fs, &core, &Spin);
            });
            if was_made {
                break;
            }
            refusals += 1;
        }
        assert!(refusals >= 6, "{refusals} allocations alone");
    }
}

/// Places of children that were waited for are used again, also if it was another core that waited.
#[test]
fn a_family_grows_with_the_children_that_it_has() {
    with_instance(4, |instance| {
        let fs = instance.fs;
        let (core, other) = (instance.core(0), instance.core(1));
        let process = instance.process(&core);
        let spawn = || processes::spawn(&fs.enter(&core, &process, &Spin), &[], SpawnOptions::default()).unwrap();
        // 4 MiB do not hold a line for each of these.
        for round in 0..40_000 {
            spawn().exit(fs, &other, &Spin);
            assert!(processes::wait(&fs.enter(&other, &process, &Spin), Which::Any).unwrap().is_some());
            if round % 16 == 0 {
                [&core, &other].into_iter().for_each(|core| fs.maintain(core, &Spin));
            }
        }
        // Nor is there a limit below what there is memory for.
        let children: Vec<Process> = (0..100).map(|_| spawn()).collect();
        children.into_iter().for_each(|child| child.exit(fs, &core, &Spin));
        while processes::wait(&fs.enter(&other, &process, &Spin), Which::Any).is_ok() {}
        process.exit(fs, &core, &Spin);
    });
}

/// Orphans: a parent that ends before its children leaves nothing behind, and they have no parent.
#[test]
fn children_outlive_their_parent() {
    with_instance(64, |instance| {
        let fs = instance.fs;
        let (core, other) = (instance.core(0), instance.core(1));
        let process = instance.process(&core);
        let ended = process.fork(fs, &core, &Spin).unwrap();
        let child = process.fork(fs, &core, &Spin).unwrap();
        assert_eq!(child.parent(), Some(process.number()));
        ended.exit(fs, &other, &Spin);
        process.exit(fs, &core, &Spin);
        assert_eq!(child.parent(), None);
        let call = || fs.enter(&other, &child, &Spin);
        assert_eq!(processes::wait(&call(), Which::Any), Err(Errno::ECHILD));
        let grandchild = processes::spawn(&call(), &[], SpawnOptions::default()).unwrap();
        assert_eq!(grandchild.parent(), Some(child.number()));
        grandchild.exit(fs, &core, &Spin);
        child.exit(fs, &other, &Spin);
    });
}
