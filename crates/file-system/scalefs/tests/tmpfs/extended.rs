//! Random calls on extended attributes and on the room of files by several users, on ScaleFS, crate `plain` and the host's tmpfs:
//! every result must be the same.
//!
//! `SCALEFS_FUZZ_CALLS` and `SCALEFS_FUZZ_SEED` as for the other sequences. A user of the host is this thread with that user as the
//! effective one, since rights to attributes are capabilities.

use call_language::{GROUPS, Random, USERS, bytes, shrunk};
use pages::PAGE_BYTES;
use percpu::OwnerId;
use plain::{Limits, Plain};
use scalefs::data::{self, DescriptorOptions};
use scalefs::extended::{self, ExtendedOperations};
use scalefs::{
    Credentials, DataOperations, Errno, Fields, Follow, Kind, NodeOf, OnExec, OpenFlags, OwnedConfig, OwnedScaleFs,
    Process, ScaleFs, Start, StatusFlags, allocation, attributes, directories, handles, names,
};
use sync::Spin;

use crate::host::{self, Host, c_path};

const CALLS_PER_SEQUENCE: usize = 80;
/// Pages of the small file systems.
const FEW_PAGES: usize = 16;
const PATHS: [&str; 8] = ["f", "g", "d", "s", "l", "d/f", "p", "none"];
const MODES: [u32; 7] = [0o666, 0o600, 0o6755, 0o444, 0o1777, 0o2644, 0];
const NAMES: [&str; 14] = [
    "user.a",
    "user.b",
    "user.long",
    "trusted.a",
    "security.a",
    "security.capability",
    "system.a",
    "user.",
    "trusted.",
    "security.",
    "user",
    "other.a",
    "",
    "no",
];
/// Descriptors have these numbers and up: for both, for reading, with O_APPEND, a handle, a directory, an end of a pipe.
const FIRST_NUMBER: u32 = 600;
const SLOTS: u32 = 7;
const DIRECTORY: u32 = 4;
const PIPE: u32 = 5;

/// What an attribute is of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Path(usize, bool),
    Slot(u32),
}

#[derive(Clone, Debug, PartialEq)]
enum Operation {
    /// Name, value's bytes, flags.
    Set(Target, usize, usize, u32),
    /// Name, room.
    Get(Target, usize, usize),
    Remove(Target, usize),
    /// Room.
    List(Target, usize),
    /// Mode, offset, length.
    Allocate(u32, u32, i64, i64),
    Write(u32, i64, usize),
    Read(u32, i64, usize),
    Resize(u32, i64),
    Stat(u32),
    ChangeMode(usize, u32),
}

#[derive(Clone, Debug, PartialEq)]
struct Call {
    user: usize,
    operation: Operation,
}

/// What is seen.
type Outcome = Result<Vec<u8>, i32>;

fn offset(random: &mut Random) -> i64 {
    let page = PAGE_BYTES as i64;
    match random.below(30) {
        0 => i64::MAX - random.below(3) as i64,
        1 => -1,
        2 => 1 << 40,
        _ => random.below(6) as i64 * page + random.pick(&[0, 0, 1, 100, page - 1]),
    }
}

impl Call {
    fn any(random: &mut Random, is_small: bool) -> Call {
        let target = match random.below(5) {
            0 => Target::Slot(random.below(SLOTS as usize) as u32),
            1 => Target::Path(random.below(PATHS.len()), random.below(2) == 0),
            // A file and a directory, in which calls meet.
            _ => Target::Path(random.pick(&[0, 2]), true),
        };
        let name = match random.below(3) {
            0 => random.below(NAMES.len()),
            1 => random.below(3),
            _ => 0,
        };
        let slot = if random.below(4) > 0 { 0 } else { random.below(SLOTS as usize) as u32 };
        let operation = match random.below(20) {
            0..=3 => {
                let value = if is_small { random.pick(&[0, 5]) } else { random.pick(&[0, 1, 5, 100, 5000, 65_537]) };
                // What that says is refused here; Linux looks into it.
                let name = if NAMES[name] == "security.capability" { 0 } else { name };
                Operation::Set(target, name, value, random.pick(&[0, 0, 0, 1, 2, 3, 4]))
            }
            4 | 5 => Operation::Get(target, name, random.pick(&[0, 1, 5, 5000, 5000])),
            6 => Operation::Remove(target, name),
            7 => Operation::List(target, random.pick(&[0, 1, 10, 1000, 1000])),
            8..=11 => {
                // Behind the end tmpfs takes pages that are nobody's here: so not where they run out.
                let modes: &[u32] = if is_small { &[0, 0, 3] } else { &[0, 0, 1, 3, 3, 2, 4, 0x10, 0x11, 8, 0x100] };
                let length = match random.below(20) {
                    0 => -1,
                    1 => 0,
                    2 => i64::MAX,
                    3 => 1 << 45,
                    _ => offset(random).clamp(0, 1 << 16) + 1,
                };
                let mode = random.pick(modes);
                let from = offset(random);
                // Linux makes a page for each byte up to there; ours would not have as many.
                let from = if mode & 2 == 0 && from > 1 << 30 && length > 1 << 30 { 0 } else { from };
                Operation::Allocate(slot, mode, from, length)
            }
            12 | 13 => Operation::Write(slot, offset(random).min(1 << 20), random.pick(&[1, 10, 4096, 5000])),
            14 | 15 => Operation::Read(slot, offset(random), random.pick(&[1, 4096, 9000])),
            16 => Operation::Resize(slot, offset(random)),
            17 | 18 => Operation::Stat(slot),
            _ => Operation::ChangeMode(random.below(PATHS.len()), random.pick(&MODES)),
        };
        // The host's pipe is the superuser's; each process of ours has one of its own.
        let user = if target == Target::Slot(PIPE) { 0 } else { random.below(3) };
        Call { user, operation }
    }
}

fn text_of(size: u64, mode: u32) -> Vec<u8> {
    format!("{size} {mode:o}").into_bytes()
}

/// Names that end with zeros, sorted: their order is each system's own.
fn sorted(names: &[u8]) -> Vec<u8> {
    let mut names: Vec<&[u8]> = names.split_inclusive(|byte| *byte == 0).collect();
    names.sort();
    names.concat()
}

fn find<'v, D: DataOperations>(calls: &'v D, target: Target) -> Result<NodeOf<'v, D>, Errno> {
    match target {
        Target::Slot(slot) => extended::of(calls, FIRST_NUMBER + slot),
        Target::Path(path, follows) => {
            let follow = if follows { Follow::Symlinks } else { Follow::Nothing };
            extended::at(calls.objects(), Start::WorkingDirectory, PATHS[path].as_bytes(), follow)
        }
    }
}

/// A call on an implementation of the operations.
fn make<D>(calls: &D, operation: &Operation) -> Outcome
where
    D: allocation::AllocationOperations<Objects: ExtendedOperations>,
{
    let objects = calls.objects();
    let number = |slot: u32| FIRST_NUMBER + slot;
    let made = || -> Result<Vec<u8>, Errno> {
        match *operation {
            Operation::Set(target, name, size, flags) => {
                let value = bytes(size, 7);
                extended::set(objects, || find(calls, target), (NAMES[name].as_bytes(), &value), flags)?;
            }
            Operation::Get(target, name, room) => {
                let mut value = vec![0; room];
                let count = extended::get(objects, || find(calls, target), NAMES[name].as_bytes(), &mut value)?;
                if room == 0 {
                    return Ok(count.to_string().into_bytes());
                }
                value.truncate(count);
                return Ok(value);
            }
            Operation::Remove(target, name) => {
                extended::remove(objects, || find(calls, target), NAMES[name].as_bytes())?;
            }
            Operation::List(target, room) => {
                let mut names = vec![0; room];
                let count = extended::list(objects, || find(calls, target), &mut names)?;
                return Ok(if room == 0 { count.to_string().into_bytes() } else { sorted(&names[..count]) });
            }
            Operation::Allocate(slot, mode, offset, length) => {
                allocation::change(calls, number(slot), mode, (offset, length))?;
            }
            Operation::Write(slot, offset, length) => {
                let count = data::write_at(calls, number(slot), &bytes(length, 9), offset)?;
                return Ok(count.to_string().into_bytes());
            }
            Operation::Read(slot, offset, length) => {
                let mut read = vec![0; length];
                let count = data::read_at(calls, number(slot), &mut read, offset)?;
                read.truncate(count);
                return Ok(read);
            }
            Operation::Resize(slot, size) => data::truncate(calls, number(slot), size)?,
            Operation::Stat(slot) => {
                let seen = data::stat(calls, number(slot), Fields::ALL)?;
                let size = if slot < DIRECTORY { seen.size_bytes } else { 0 };
                return Ok(text_of(size, seen.mode & 0o7777));
            }
            Operation::ChangeMode(path, mode) => {
                attributes::change_mode(objects, Start::WorkingDirectory, PATHS[path].as_bytes(), mode)?;
            }
        }
        Ok(Vec::new())
    };
    made().map_err(Errno::number)
}

/// Makes the objects, as the superuser.
fn prepare<D: DataOperations>(calls: &D) {
    let objects = calls.objects();
    let here = Start::WorkingDirectory;
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    attributes::change_mode(objects, here, b"/", 0o777).unwrap();
    directories::make_directory(objects, here, b"d", 0o777).unwrap();
    directories::make_directory(objects, here, b"s", 0o777).unwrap();
    for (path, owner) in [("f", 1), ("g", 0), ("d/f", 2)] {
        let fd = data::open(calls, here, path.as_bytes(), flags, 0o666, DescriptorOptions::PLAIN).unwrap();
        let owner = (Some(USERS[owner]), Some(USERS[owner]));
        attributes::change_owner(objects, here, path.as_bytes(), Follow::Symlinks, owner).unwrap();
        attributes::change_mode(objects, here, path.as_bytes(), 0o666).unwrap();
        data::close(calls, fd).unwrap();
    }
    names::symlink(objects, b"f", here, b"l").unwrap();
    names::make_node(objects, here, b"p", (Kind::NamedPipe, 0), 0o666).unwrap();
    for (path, mode) in [("p", 0o666), ("d", 0o777), ("s", 0o1777)] {
        attributes::change_mode(objects, here, path.as_bytes(), mode).unwrap();
    }
}

/// Opens the descriptors of the slots, as any user.
fn open_slots<D: DataOperations>(calls: &D) {
    let here = Start::WorkingDirectory;
    let both = OpenFlags::READ | OpenFlags::WRITE;
    let appends = DescriptorOptions { status: StatusFlags::APPEND, ..DescriptorOptions::PLAIN };
    let plain = DescriptorOptions::PLAIN;
    let opened = [
        data::open(calls, here, b"f", both, 0, plain),
        data::open(calls, here, b"f", OpenFlags::READ, 0, plain),
        data::open(calls, here, b"f", both, 0, appends),
        handles::open_handle(calls, here, b"f", OpenFlags::NONE, plain),
        data::open(calls, here, b"d", OpenFlags::READ, 0, plain),
        data::pipe(calls, plain).map(|(read, write)| {
            data::close(calls, read).unwrap();
            write
        }),
    ];
    for (slot, fd) in opened.into_iter().enumerate() {
        let fd = fd.unwrap();
        data::duplicate_to(calls, fd, FIRST_NUMBER + slot as u32, OnExec::Keep).unwrap();
        data::close(calls, fd).unwrap();
    }
}

fn users() -> [Credentials; 3] {
    [0, 1, 2].map(|user| Credentials::new(USERS[user], USERS[user], GROUPS[user]).unwrap())
}

fn on_scalefs(calls: &[Call], page_limit: Option<usize>) -> Vec<Outcome> {
    let page_count = page_limit.unwrap_or(4096) as u32;
    let config = OwnedConfig { core_count: 2, page_count, ..OwnedConfig::default() };
    let instance = OwnedScaleFs::create(config).unwrap();
    let cores = [0, 1].map(|core| instance.claim(core, OwnerId::new(1).unwrap()).unwrap());
    let fs: &ScaleFs = instance.file_system();
    let processes = users().map(|user| Process::new(fs, &cores[0], user).unwrap());
    prepare(&fs.enter(&cores[0], &processes[0], &Spin));
    processes.iter().for_each(|process| open_slots(&fs.enter(&cores[0], process, &Spin)));
    let settle = |times: usize| (0..times).for_each(|_| cores.iter().for_each(|core| fs.maintain(core, &Spin)));
    let outcomes = calls.iter().enumerate().map(|(index, call)| {
        let outcome = make(&fs.enter(&cores[index / 3 % 2], &processes[call.user], &Spin), &call.operation);
        settle(if page_limit.is_some() { 6 } else { usize::from(index % 8 == 0) });
        outcome
    });
    let outcomes = outcomes.collect();
    for path in ["f", "g", "d/f", "l", "p"] {
        names::unlink(&fs.begin(&cores[0], processes[0].context(), &Spin), Start::WorkingDirectory, path.as_bytes())
            .unwrap();
    }
    for path in ["d", "s"] {
        let call = fs.begin(&cores[0], processes[0].context(), &Spin);
        directories::remove_directory(&call, Start::WorkingDirectory, path.as_bytes()).unwrap();
    }
    processes.into_iter().for_each(|process| process.exit(fs, &cores[0], &Spin));
    settle(60);
    let last = Process::new(fs, &cores[0], Credentials::SUPERUSER).unwrap();
    let space = attributes::space(&fs.begin(&cores[0], last.context(), &Spin)).unwrap();
    assert_eq!((space.free_blocks, space.free_inodes), (space.blocks, space.inodes), "something is left");
    last.exit(fs, &cores[0], &Spin);
    outcomes
}

fn on_plain(calls: &[Call], page_limit: Option<usize>) -> Vec<Outcome> {
    let pages = page_limit.unwrap_or(4096) as u64;
    let plain = Plain::new(Limits { pages, ..Limits::default() }, || 0);
    let processes = users().map(|user| plain::Process::new(&plain, user));
    prepare(&plain.begin(&processes[0]));
    processes.iter().for_each(|process| open_slots(&plain.begin(process)));
    calls.iter().map(|call| make(&plain.begin(&processes[call.user]), &call.operation)).collect()
}

fn counted(result: impl Into<i64>) -> Result<usize, i32> {
    let result = result.into();
    if result < 0 { Err(std::io::Error::last_os_error().raw_os_error().unwrap()) } else { Ok(result as usize) }
}

/// As [`make`], by the host's thread.
fn make_on_host(operation: &Operation) -> Outcome {
    let number = |slot: u32| (FIRST_NUMBER + slot) as libc::c_int;
    let done = |count: Result<usize, i32>| count.map(|_| Vec::new());
    // SAFETY: paths and names end with NUL, buffers have the lengths that are given with them, and the numbers are the thread's own.
    unsafe {
        match *operation {
            Operation::Set(target, name, size, flags) => {
                let (name, value) = (c_path(NAMES[name]), bytes(size, 7));
                let (name, value, flags) = (name.as_ptr(), value.as_ptr().cast(), flags as libc::c_int);
                done(counted(match target {
                    Target::Slot(slot) => libc::fsetxattr(number(slot), name, value, size, flags),
                    Target::Path(path, true) => libc::setxattr(c_path(PATHS[path]).as_ptr(), name, value, size, flags),
                    Target::Path(path, false) => {
                        libc::lsetxattr(c_path(PATHS[path]).as_ptr(), name, value, size, flags)
                    }
                }))
            }
            Operation::Get(target, name, room) => {
                let (name, mut value) = (c_path(NAMES[name]), vec![0_u8; room]);
                let (name, start) = (name.as_ptr(), value.as_mut_ptr().cast());
                let count = counted(match target {
                    Target::Slot(slot) => libc::fgetxattr(number(slot), name, start, room),
                    Target::Path(path, true) => libc::getxattr(c_path(PATHS[path]).as_ptr(), name, start, room),
                    Target::Path(path, false) => libc::lgetxattr(c_path(PATHS[path]).as_ptr(), name, start, room),
                } as i64)?;
                if room == 0 {
                    return Ok(count.to_string().into_bytes());
                }
                value.truncate(count);
                Ok(value)
            }
            Operation::Remove(target, name) => {
                let name = c_path(NAMES[name]);
                let name = name.as_ptr();
                done(counted(match target {
                    Target::Slot(slot) => libc::fremovexattr(number(slot), name),
                    Target::Path(path, true) => libc::removexattr(c_path(PATHS[path]).as_ptr(), name),
                    Target::Path(path, false) => libc::lremovexattr(c_path(PATHS[path]).as_ptr(), name),
                }))
            }
            Operation::List(target, room) => {
                let mut names = vec![0_u8; room];
                let start = names.as_mut_ptr().cast();
                let count = counted(match target {
                    Target::Slot(slot) => libc::flistxattr(number(slot), start, room),
                    Target::Path(path, true) => libc::listxattr(c_path(PATHS[path]).as_ptr(), start, room),
                    Target::Path(path, false) => libc::llistxattr(c_path(PATHS[path]).as_ptr(), start, room),
                } as i64)?;
                Ok(if room == 0 { count.to_string().into_bytes() } else { sorted(&names[..count]) })
            }
            Operation::Allocate(slot, mode, offset, length) => {
                done(counted(libc::fallocate(number(slot), mode as libc::c_int, offset, length)))
            }
            Operation::Write(slot, offset, length) => {
                let count = libc::pwrite(number(slot), bytes(length, 9).as_ptr().cast(), length, offset);
                counted(count as i64).map(|count| count.to_string().into_bytes())
            }
            Operation::Read(slot, offset, length) => {
                let mut read = vec![0_u8; length];
                let count = counted(libc::pread(number(slot), read.as_mut_ptr().cast(), length, offset) as i64)?;
                read.truncate(count);
                Ok(read)
            }
            Operation::Resize(slot, size) => done(counted(libc::ftruncate(number(slot), size))),
            Operation::Stat(slot) => {
                let mut seen: libc::stat = std::mem::zeroed();
                counted(libc::fstat(number(slot), &raw mut seen))?;
                let size = if slot < DIRECTORY { seen.st_size as u64 } else { 0 };
                Ok(text_of(size, seen.st_mode & 0o7777))
            }
            Operation::ChangeMode(path, mode) => done(counted(libc::chmod(c_path(PATHS[path]).as_ptr(), mode))),
        }
    }
}

fn on_host(host: &Host, calls: &[Call]) -> Vec<Outcome> {
    host.clear();
    // SAFETY: paths that end with NUL; descriptors are the thread's own.
    unsafe {
        libc::chmod(c"/".as_ptr(), 0o777);
        for (path, mode) in [(c"d", 0o777), (c"s", 0o1777)] {
            assert_eq!(libc::mkdir(path.as_ptr(), 0o777), 0);
            assert_eq!(libc::chmod(path.as_ptr(), mode), 0);
        }
        for (path, owner) in [(c"f", 1), (c"g", 0), (c"d/f", 2)] {
            let fd = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CREAT, 0o666);
            assert_eq!(libc::fchown(fd, USERS[owner], USERS[owner]), 0);
            assert_eq!(libc::fchmod(fd, 0o666), 0);
            libc::close(fd);
        }
        assert_eq!(libc::symlink(c"f".as_ptr(), c"l".as_ptr()), 0);
        assert_eq!(libc::mkfifo(c"p".as_ptr(), 0o666), 0);
        assert_eq!(libc::chmod(c"p".as_ptr(), 0o666), 0);
        let mut ends = [0; 2];
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        libc::close(ends[0]);
        let open = |path: &std::ffi::CStr, flags| libc::open(path.as_ptr(), flags);
        let opened = [
            open(c"f", libc::O_RDWR),
            open(c"f", libc::O_RDONLY),
            open(c"f", libc::O_RDWR | libc::O_APPEND),
            open(c"f", libc::O_PATH),
            open(c"d", libc::O_RDONLY),
            ends[1],
        ];
        for (slot, fd) in opened.into_iter().enumerate() {
            assert!(libc::dup2(fd, (FIRST_NUMBER + slot as u32) as libc::c_int) >= 0);
            libc::close(fd);
        }
    }
    calls.iter().map(|call| host::on_behalf_of(call.user, || make_on_host(&call.operation))).collect()
}

fn difference(host: &Host, calls: &[Call], page_limit: Option<usize>) -> Option<String> {
    let expected = on_host(host, calls);
    for (name, outcomes) in [("scalefs", on_scalefs(calls, page_limit)), ("plain", on_plain(calls, page_limit))] {
        for ((call, outcome), expected) in calls.iter().zip(&outcomes).zip(&expected) {
            if outcome != expected {
                let told = |outcome: &Outcome| match outcome {
                    Ok(bytes) if bytes.len() > 40 => format!("{} bytes {:?}...", bytes.len(), &bytes[..8]),
                    other => format!("{other:?}"),
                };
                return Some(format!("{call:?}: {} on {name}, {} on tmpfs", told(outcome), told(expected)));
            }
        }
    }
    None
}

/// Whether the host's tmpfs keeps attributes of users: since Linux 6.6.
fn host_has_attributes() -> bool {
    // SAFETY: a path and a name that end with NUL, and a value of no bytes.
    unsafe {
        let set = libc::setxattr(c".".as_ptr(), c"user.a".as_ptr(), c"".as_ptr().cast(), 0, 0);
        libc::removexattr(c".".as_ptr(), c"user.a".as_ptr());
        set == 0
    }
}

/// Calls `begin` on the thread that makes all calls.
fn compare(page_limit: Option<usize>, begin: impl FnOnce() + Send) {
    let wanted = crate::number_from_environment("SCALEFS_FUZZ_CALLS").unwrap_or(8_000);
    let first = crate::number_from_environment("SCALEFS_FUZZ_SEED").unwrap_or(1);
    let compared = host::with_host(page_limit.map(|pages| pages * PAGE_BYTES), |host| {
        if !host.can_use_root() || !host_has_attributes() {
            return false;
        }
        begin();
        let mut kinds = [0_u64; 4];
        for seed in first..first + wanted.div_ceil(CALLS_PER_SEQUENCE as u64) {
            let mut random = Random::new(seed);
            let calls: Vec<Call> =
                (0..CALLS_PER_SEQUENCE).map(|_| Call::any(&mut random, page_limit.is_some())).collect();
            if let Some(told) = difference(host, &calls, page_limit) {
                let few = shrunk(calls, |calls| difference(host, calls, page_limit).is_some());
                let told_few = difference(host, &few, page_limit);
                panic!("{told}\nshrunk to {few:#?}\n{told_few:?}\nrepeat with SCALEFS_FUZZ_SEED={seed}");
            }
            for (call, outcome) in calls.iter().zip(on_plain(&calls, page_limit)) {
                let is_done = outcome.is_ok();
                let is_punch = matches!(call.operation, Operation::Allocate(_, 3, ..));
                kinds[0] += u64::from(is_done && matches!(call.operation, Operation::Set(..)));
                kinds[1] += u64::from(
                    outcome.is_ok_and(|seen| !seen.is_empty()) && matches!(call.operation, Operation::Get(..)),
                );
                kinds[2] += u64::from(is_done && matches!(call.operation, Operation::Allocate(..)) && !is_punch);
                kinds[3] += u64::from(is_done && is_punch);
            }
        }
        assert!(
            kinds.iter().all(|count| count * 200 > wanted),
            "{kinds:?} of {wanted} calls: the sequences do not meet"
        );
        true
    });
    if compared != Some(true) {
        eprintln!("not compared: only the superuser can be several users, and tmpfs has attributes since Linux 6.6");
    }
}

#[test]
fn random_calls_on_attributes_and_room_give_the_same_as_on_tmpfs() {
    compare(None, || ());
}

#[test]
fn random_calls_on_attributes_and_room_of_full_file_systems_give_the_same_as_on_tmpfs() {
    compare(Some(FEW_PAGES), || ());
}

#[cfg(any(fuzzing, shuttle))]
#[test]
fn planted_faults_of_attributes_and_room_are_found() {
    for fault in [
        "calls: any descriptor takes room",
        "calls: anyone has trusted attributes",
        "calls: attributes ask for no right",
    ] {
        let is_found = |pages| std::panic::catch_unwind(|| compare(pages, || sync::mutant::plant(fault))).is_err();
        assert!([None, Some(FEW_PAGES)].into_iter().any(is_found), "{fault}: missed");
    }
}
