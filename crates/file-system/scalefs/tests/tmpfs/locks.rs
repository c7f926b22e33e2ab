//! Random calls on locks by several processes, on ScaleFS, crate `plain` and the host's tmpfs: every result must be the same.
//!
//! A process of the host is a thread with a descriptor table of its own: that is what Linux takes for the owner of a lock. All
//! begin with the descriptors of one that was forked, so descriptions are shared.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use call_language::{Random, shrunk};
use percpu::{Core, OwnerId};
use plain::Plain;
use scalefs::data::{self, DescriptorOptions};
use scalefs::{
    Credentials, Errno, LockKind, LockMode, LockOperations, LockRange, LockRequest, OnExec, OpenFlags, OwnedConfig,
    OwnedScaleFs, Process, ScaleFs, Start, Whence, locks,
};
use sync::Spin;

use crate::host::{self, c_path};

const PROCESSES: usize = 3;
const SLOTS: u32 = 5;
/// Descriptors of slots have these numbers and up.
const FIRST_NUMBER: u32 = 600;
const FILES: [&str; 2] = ["first", "second"];
const SIZE_BYTES: i64 = 7;
const CALLS_PER_SEQUENCE: usize = 60;
const LARGEST: i64 = i64::MAX;

#[derive(Clone, Debug, PartialEq)]
enum Operation {
    /// Slot, which file, whether for reading and for writing.
    Open(u32, usize, bool, bool),
    Close(u32),
    Duplicate(u32, u32),
    Seek(u32, i64),
    Set(u32, Bytes, LockKind, Option<LockMode>),
    Ask(u32, Bytes, LockKind, LockMode),
}

/// From where, and how many.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bytes {
    start: i64,
    whence: Whence,
    length: i64,
}

#[derive(Clone, Debug, PartialEq)]
struct Call {
    process: usize,
    operation: Operation,
}

/// What is seen: a lock in the way, if one was asked for.
type Outcome = Result<Option<(bool, LockMode, LockRange)>, i32>;

impl Call {
    fn any(random: &mut Random) -> Call {
        let slot = random.below(SLOTS as usize) as u32;
        let kind = [LockKind::Process, LockKind::Description, LockKind::WholeFile][random.below(3)];
        let mode = [LockMode::Shared, LockMode::Exclusive][random.below(2)];
        let operation = match random.below(20) {
            0 | 1 => Operation::Open(slot, random.below(2), random.below(4) > 0, random.below(4) > 0),
            2 => Operation::Close(slot),
            3 => Operation::Duplicate(slot, random.below(SLOTS as usize) as u32),
            4 => Operation::Seek(slot, random.below(12) as i64),
            5..=8 => {
                let kind = if kind == LockKind::WholeFile { LockKind::Process } else { kind };
                Operation::Ask(slot, Bytes::any(random), kind, mode)
            }
            _ => Operation::Set(slot, Bytes::any(random), kind, Some(mode).filter(|_| random.below(4) > 0)),
        };
        Call { process: random.below(PROCESSES), operation }
    }
}

impl Bytes {
    fn any(random: &mut Random) -> Bytes {
        let start = match random.below(24) {
            0 => LARGEST - random.below(3) as i64,
            1 => -(random.below(12) as i64),
            _ => random.below(12) as i64,
        };
        let length = match random.below(24) {
            0 => LARGEST - random.below(12) as i64,
            1 => -LARGEST,
            2..=4 => -(random.below(8) as i64),
            5..=7 => 0,
            _ => 1 + random.below(6) as i64,
        };
        let whence = [Whence::Start, Whence::Start, Whence::Current, Whence::End][random.below(4)];
        Bytes { start, whence, length }
    }

    fn of<D: LockOperations>(self, calls: &D, fd: u32) -> Result<LockRange, Errno> {
        locks::range(calls, fd, (self.start, self.whence), self.length)
    }
}

/// A call on an implementation of the operations.
fn make<D: LockOperations>(calls: &D, operation: &Operation) -> Outcome {
    let number = |slot: u32| FIRST_NUMBER + slot;
    let made = || -> Result<_, Errno> {
        let request = |slot, bytes: Bytes, kind, mode| {
            let whole = kind == LockKind::WholeFile;
            let range = if whole { LockRange::ALL } else { bytes.of(calls, number(slot))? };
            Ok::<_, Errno>(LockRequest { kind, range, mode, seen_as: 1 })
        };
        match *operation {
            Operation::Open(slot, file, reads, writes) => {
                let mut flags = OpenFlags::NONE;
                flags.set(OpenFlags::READ, reads || !writes);
                flags.set(OpenFlags::WRITE, writes);
                let path = FILES[file].as_bytes();
                let fd = data::open(calls, Start::WorkingDirectory, path, flags, 0, DescriptorOptions::PLAIN)?;
                data::duplicate_to(calls, fd, number(slot), OnExec::Keep)?;
                data::close(calls, fd)?;
            }
            Operation::Close(slot) => data::close(calls, number(slot))?,
            Operation::Duplicate(from, to) => {
                data::duplicate_to(calls, number(from), number(to), OnExec::Keep)?;
            }
            Operation::Seek(slot, offset) => {
                data::seek(calls, number(slot), offset, Whence::Start)?;
            }
            Operation::Set(slot, bytes, kind, mode) => {
                locks::set(calls, number(slot), &request(slot, bytes, kind, mode)?)?;
            }
            Operation::Ask(slot, bytes, kind, mode) => {
                let found = locks::in_the_way(calls, number(slot), &request(slot, bytes, kind, Some(mode))?)?;
                return Ok(found.map(|lock| (lock.seen_as.is_some(), lock.mode, lock.range)));
            }
        }
        Ok(None)
    };
    made().map_err(Errno::number)
}

fn prepare<D: LockOperations>(calls: &D) {
    for file in FILES {
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        let fd = data::open(calls, Start::WorkingDirectory, file.as_bytes(), flags, 0o600, DescriptorOptions::PLAIN)
            .unwrap();
        data::truncate(calls, fd, SIZE_BYTES).unwrap();
        data::close(calls, fd).unwrap();
    }
    for (slot, file) in [(0, 0), (1, 1)] {
        assert_eq!(make(calls, &Operation::Open(slot, file, true, true)), Ok(None));
    }
}

fn on_scalefs(calls: &[Call]) -> Vec<Outcome> {
    let instance =
        OwnedScaleFs::create(OwnedConfig { core_count: 2, page_count: 64, ..OwnedConfig::default() }).unwrap();
    let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs: &ScaleFs = instance.file_system();
    let first = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    prepare(&fs.enter(&core, &first, &Spin));
    let mut processes = vec![first];
    for _ in 1..PROCESSES {
        processes.push(processes[0].fork(fs, &core, &Spin).unwrap());
    }
    let outcomes = calls.iter().enumerate().map(|(index, call)| {
        if index % 8 == 0 {
            fs.maintain(&core, &Spin);
        }
        make(&fs.enter(&core, &processes[call.process], &Spin), &call.operation)
    });
    let outcomes = outcomes.collect();
    check_nothing_stays(fs, &core, processes);
    outcomes
}

/// When all processes have ended, no lock is left, nor anything else.
fn check_nothing_stays(fs: &ScaleFs, core: &Core<'_>, processes: Vec<Process>) {
    for process in processes {
        process.exit(fs, core, &Spin);
    }
    let last = Process::new(fs, core, Credentials::SUPERUSER).unwrap();
    for file in [0, 1] {
        assert_eq!(make(&fs.enter(core, &last, &Spin), &Operation::Open(0, file, true, true)), Ok(None));
        let all = Bytes { start: 0, whence: Whence::Start, length: 0 };
        for kind in [LockKind::Process, LockKind::WholeFile] {
            let set = Operation::Set(0, all, kind, Some(LockMode::Exclusive));
            assert_eq!(make(&fs.enter(core, &last, &Spin), &set), Ok(None), "a lock outlived its owner");
        }
    }
    last.exit(fs, core, &Spin);
}

fn on_plain(calls: &[Call]) -> Vec<Outcome> {
    let plain = Plain::default();
    let first = plain::Process::new(&plain, Credentials::SUPERUSER);
    prepare(&plain.begin(&first));
    let mut processes = vec![first];
    for _ in 1..PROCESSES {
        processes.push(processes[0].fork(&plain));
    }
    calls.iter().map(|call| make(&plain.begin(&processes[call.process]), &call.operation)).collect()
}

/// As [`make`], by the host's thread that calls.
fn make_on_host(operation: &Operation) -> Outcome {
    let number = |slot: u32| (FIRST_NUMBER + slot) as libc::c_int;
    let checked = |result: libc::c_int| {
        if result >= 0 { Ok(None) } else { Err(std::io::Error::last_os_error().raw_os_error().unwrap()) }
    };
    let kind = |mode| match mode {
        None => libc::F_UNLCK,
        Some(LockMode::Shared) => libc::F_RDLCK,
        Some(LockMode::Exclusive) => libc::F_WRLCK,
    };
    let described = |bytes: Bytes, mode| {
        // SAFETY: all-zero is a valid `flock`.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind(mode) as libc::c_short;
        lock.l_whence = (match bytes.whence {
            Whence::Start => libc::SEEK_SET,
            Whence::Current => libc::SEEK_CUR,
            Whence::End => libc::SEEK_END,
        }) as libc::c_short;
        (lock.l_start, lock.l_len) = (bytes.start, bytes.length);
        lock
    };
    // SAFETY: paths that end with NUL, and locks that live during the calls; the numbers are the thread's own.
    unsafe {
        match *operation {
            Operation::Open(slot, file, reads, writes) => {
                let access = match (reads, writes) {
                    (true, true) => libc::O_RDWR,
                    (false, true) => libc::O_WRONLY,
                    _ => libc::O_RDONLY,
                };
                let fd = libc::open(c_path(FILES[file]).as_ptr(), access);
                checked(fd)?;
                checked(libc::dup2(fd, number(slot)))?;
                checked(libc::close(fd))
            }
            Operation::Close(slot) => checked(libc::close(number(slot))),
            Operation::Duplicate(from, to) => checked(libc::dup2(number(from), number(to))),
            Operation::Seek(slot, offset) => {
                checked(libc::lseek(number(slot), offset, libc::SEEK_SET).clamp(-1, 1) as libc::c_int)
            }
            Operation::Set(slot, _, LockKind::WholeFile, mode) => {
                let how = match mode {
                    None => libc::LOCK_UN,
                    Some(LockMode::Shared) => libc::LOCK_SH,
                    Some(LockMode::Exclusive) => libc::LOCK_EX,
                };
                checked(libc::flock(number(slot), how | libc::LOCK_NB))
            }
            Operation::Set(slot, bytes, kind, mode) => {
                let lock = described(bytes, mode);
                let command = if kind == LockKind::Process { libc::F_SETLK } else { libc::F_OFD_SETLK };
                checked(libc::fcntl(number(slot), command, &raw const lock))
            }
            Operation::Ask(slot, bytes, kind, mode) => {
                let mut lock = described(bytes, Some(mode));
                let command = if kind == LockKind::Process { libc::F_GETLK } else { libc::F_OFD_GETLK };
                checked(libc::fcntl(number(slot), command, &raw mut lock))?;
                let mode = match i32::from(lock.l_type) {
                    libc::F_UNLCK => return Ok(None),
                    libc::F_RDLCK => LockMode::Shared,
                    _ => LockMode::Exclusive,
                };
                let first = lock.l_start as u64;
                let last = if lock.l_len == 0 { LockRange::END } else { first + lock.l_len as u64 - 1 };
                Ok(Some((lock.l_pid != -1, mode, LockRange { first, last })))
            }
        }
    }
}

/// A process of the host, which makes one call after the other.
struct HostProcess {
    asks: Sender<Operation>,
    answers: Receiver<Outcome>,
}

fn on_host(calls: &[Call]) -> Vec<Outcome> {
    for file in FILES {
        // Another file: a thread that has ended may give up its descriptors a little later.
        let _ = std::fs::remove_file(file);
        std::fs::write(file, [0; SIZE_BYTES as usize]).unwrap();
    }
    // The first process is not this thread, so that all descriptors go with the threads.
    let with_descriptors = || {
        // SAFETY: the thread's table is not others' any more.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
    };
    thread::scope(|scope| {
        let (result, outcomes) = channel();
        scope.spawn(move || {
            with_descriptors();
            for (slot, file) in [(0, 0), (1, 1)] {
                assert_eq!(make_on_host(&Operation::Open(slot, file, true, true)), Ok(None));
            }
            let processes: Vec<HostProcess> = (0..PROCESSES)
                .map(|_| {
                    let ((asks, asked), (answer, answers)) = (channel::<Operation>(), channel());
                    let (parted, is_parted) = channel();
                    scope.spawn(move || {
                        with_descriptors();
                        parted.send(()).unwrap();
                        for operation in asked {
                            answer.send(make_on_host(&operation)).unwrap();
                        }
                    });
                    is_parted.recv().unwrap();
                    HostProcess { asks, answers }
                })
                .collect();
            // Descriptions are the processes' alone.
            for slot in [0, 1] {
                assert_eq!(make_on_host(&Operation::Close(slot)), Ok(None));
            }
            for call in calls {
                processes[call.process].asks.send(call.operation.clone()).unwrap();
                result.send(processes[call.process].answers.recv().unwrap()).unwrap();
            }
        });
        outcomes.iter().collect()
    })
}

fn difference(calls: &[Call]) -> Option<String> {
    let expected = on_host(calls);
    for (name, outcomes) in [("scalefs", on_scalefs(calls)), ("plain", on_plain(calls))] {
        for ((call, outcome), expected) in calls.iter().zip(&outcomes).zip(&expected) {
            if outcome != expected {
                return Some(format!("{call:?}: {name} says {outcome:?}, tmpfs {expected:?}"));
            }
        }
    }
    None
}

#[test]
fn random_calls_on_locks_give_the_same_as_on_tmpfs() {
    compare_locks(|| ());
}

/// Calls `begin` on the thread that makes all calls.
fn compare_locks(begin: impl FnOnce() + Send) {
    let wanted = crate::number_from_environment("SCALEFS_FUZZ_CALLS").unwrap_or(6_000);
    let first = crate::number_from_environment("SCALEFS_FUZZ_SEED").unwrap_or(1);
    host::with_host(None, |_| {
        begin();
        let (mut locked, mut refused, mut seen) = (0, 0, 0);
        for seed in first..first + wanted.div_ceil(CALLS_PER_SEQUENCE as u64) {
            let mut random = Random::new(seed);
            let calls: Vec<Call> = (0..CALLS_PER_SEQUENCE).map(|_| Call::any(&mut random)).collect();
            if let Some(told) = difference(&calls) {
                let few = shrunk(calls, |calls| difference(calls).is_some());
                panic!("{told}\nshrunk to {few:#?}\n{:?}\nrepeat with SCALEFS_FUZZ_SEED={seed}", difference(&few));
            }
            for (call, outcome) in calls.iter().zip(on_plain(&calls)) {
                locked += u32::from(matches!(call.operation, Operation::Set(.., Some(_))) && outcome.is_ok());
                refused += u32::from(outcome == Err(Errno::EAGAIN.number()));
                seen += u32::from(matches!(outcome, Ok(Some(_))));
            }
        }
        assert!(
            locked * 8 > wanted as u32 && refused * 40 > wanted as u32 && seen * 60 > wanted as u32,
            "{locked} locked, {refused} refused, {seen} seen of {wanted}: the sequences do not meet"
        );
    });
}

#[cfg(any(fuzzing, shuttle))]
#[test]
fn planted_faults_of_locks_are_found() {
    let fault = "calls: any descriptor locks anything";
    let compared = std::panic::catch_unwind(|| compare_locks(|| sync::mutant::plant(fault)));
    assert!(compared.is_err(), "{fault}: missed");
}
