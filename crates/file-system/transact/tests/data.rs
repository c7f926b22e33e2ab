//! Data in transactions over ordinary maps: the calls give what they give outside, whatever parts a program is cut into;
//! and who touches other bytes does not abort.
#![cfg(not(loom))]

#[cfg(not(shuttle))]
use percpu::OwnerId;
use plain::{Limits, Plain, Process};
use posix_calls::attributes::{self};
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::names::{self, RenameMode};
use posix_calls::{
    Credentials, DataOperations, Errno, Fields, Follow, NumberChoice, ObjectOperations as _, OnExec, OpenFlags, Start,
    StatusFlags,
};
use proptest::collection::vec;
use proptest::prelude::*;
#[cfg(not(shuttle))]
use scalefs::{OwnedConfig, OwnedScaleFs};
#[cfg(not(shuttle))]
use sync::Spin;
use transact::{Sharing, Transactional, WithData};

const PATHS: [&str; 3] = ["f", "g", "n"];

#[derive(Clone, Debug)]
enum Call {
    Open(&'static str, OpenFlags, StatusFlags, NumberChoice),
    Close(u32),
    Read(u32, usize),
    Write(u32, usize, u8),
    ReadAt(u32, usize, i64),
    WriteAt(u32, usize, u8, i64),
    Seek(u32, i64, Whence),
    Truncate(u32, i64),
    Duplicate(u32, u32),
    DuplicateTo(u32, u32),
    Size(&'static str),
    Rename(&'static str, &'static str),
    Unlink(&'static str),
}

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

/// Runs of equal bytes.
fn told(bytes: &[u8]) -> String {
    bytes.chunk_by(|one, next| one == next).map(|run| format!("{}x{} ", run.len(), run[0])).collect()
}

fn perform<D: DataOperations>(process: &D, call: &Call) -> Result<String, Errno> {
    let objects = process.objects();
    let number = |number: Result<usize, Errno>| number.map(|number| number.to_string());
    match *call {
        Call::Open(path, flags, status, number) => {
            let options = DescriptorOptions { status, number, on_exec: OnExec::Keep };
            data::open(process, at(), path.as_bytes(), flags, 0o644, options).map(|fd| fd.to_string())
        }
        Call::Close(fd) => data::close(process, fd).map(|()| String::new()),
        Call::Read(fd, length) => {
            let mut bytes = vec![0; length];
            data::read(process, fd, &mut bytes).map(|read| told(&bytes[..read]))
        }
        Call::Write(fd, length, byte) => number(data::write(process, fd, &vec![byte; length])),
        Call::ReadAt(fd, length, offset) => {
            let mut bytes = vec![0; length];
            data::read_at(process, fd, &mut bytes, offset).map(|read| told(&bytes[..read]))
        }
        Call::WriteAt(fd, length, byte, offset) => number(data::write_at(process, fd, &vec![byte; length], offset)),
        Call::Seek(fd, offset, whence) => data::seek(process, fd, offset, whence).map(|offset| offset.to_string()),
        Call::Truncate(fd, size) => data::truncate(process, fd, size).map(|()| String::new()),
        Call::Duplicate(fd, lowest) => {
            data::duplicate(process, fd, NumberChoice::LowestFrom(lowest), OnExec::Keep).map(|fd| fd.to_string())
        }
        Call::DuplicateTo(fd, target) => data::duplicate_to(process, fd, target, OnExec::Keep).map(|fd| fd.to_string()),
        Call::Size(path) => {
            let fields = Fields::SIZE | Fields::LINK_COUNT;
            let told = attributes::stat(objects, at(), path.as_bytes(), Follow::Nothing, fields)?;
            Ok(format!("{} {}", told.size_bytes, told.link_count))
        }
        Call::Rename(old, new) => {
            let (old, new) = ((at(), old.as_bytes()), (at(), new.as_bytes()));
            names::rename(objects, old, new, RenameMode::Replace).map(|()| String::new())
        }
        Call::Unlink(path) => names::unlink(objects, at(), path.as_bytes()).map(|()| String::new()),
    }
}

fn call() -> impl Strategy<Value = Call> {
    let path = || prop::sample::select(&PATHS[..]);
    let fd = || 0..6_u32;
    let length = || prop::sample::select(&[0, 1, 10, 100, 4096, 5000][..]);
    let offset = || prop::sample::select(&[0, 1, 5, 90, 4090, 4096, 9000][..]);
    let flags = prop::sample::select(vec![
        OpenFlags::READ,
        OpenFlags::READ | OpenFlags::WRITE,
        OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE,
        OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE,
    ]);
    let status = prop::sample::select(vec![StatusFlags::NONE, StatusFlags::NONE, StatusFlags::APPEND]);
    let number = prop::sample::select(vec![NumberChoice::LowestFrom(0), NumberChoice::LowestFrom(3)]);
    prop_oneof![
        3 => (path(), flags, status, number).prop_map(|(path, flags, status, number)| Call::Open(path, flags, status, number)),
        1 => fd().prop_map(Call::Close),
        3 => (fd(), length()).prop_map(|(fd, length)| Call::Read(fd, length)),
        4 => (fd(), length(), 1..9_u8).prop_map(|(fd, length, byte)| Call::Write(fd, length, byte)),
        3 => (fd(), length(), offset()).prop_map(|(fd, length, offset)| Call::ReadAt(fd, length, offset)),
        4 => (fd(), length(), 1..9_u8, offset())
            .prop_map(|(fd, length, byte, offset)| Call::WriteAt(fd, length, byte, offset)),
        2 => (fd(), offset(), prop::sample::select(&[Whence::Start, Whence::Current, Whence::End][..]))
            .prop_map(|(fd, offset, whence)| Call::Seek(fd, offset, whence)),
        2 => (fd(), offset()).prop_map(|(fd, size)| Call::Truncate(fd, size)),
        1 => (fd(), fd()).prop_map(|(fd, lowest)| Call::Duplicate(fd, lowest)),
        1 => (fd(), fd()).prop_map(|(fd, target)| Call::DuplicateTo(fd, target)),
        2 => path().prop_map(Call::Size),
        1 => (path(), path()).prop_map(|(old, new)| Call::Rename(old, new)),
        1 => path().prop_map(Call::Unlink),
    ]
}

/// `f` with 6,000 bytes, open for both under 0 and, to append, under 1; `g` empty, open under 2.
fn world() -> (Plain, Process) {
    let file_system = Plain::new(Limits { pages: 200, ..Limits::default() }, || 0);
    let process = Process::new(&file_system, Credentials::SUPERUSER);
    let both = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    for (path, status) in [("f", StatusFlags::NONE), ("f", StatusFlags::APPEND), ("g", StatusFlags::NONE)] {
        let lowest = NumberChoice::LowestFrom(0);
        perform(&file_system.begin(&process), &Call::Open(path, both, status, lowest)).unwrap();
    }
    perform(&file_system.begin(&process), &Call::WriteAt(0, 6_000, 9, 0)).unwrap();
    (file_system, process)
}

/// What is open and what files hold.
fn seen(file_system: &Plain, process: &Process) -> String {
    let mut told = String::new();
    for fd in 0..9 {
        for call in [Call::Seek(fd, 0, Whence::Current), Call::ReadAt(fd, 20_000, 0)] {
            told += &format!("{fd} {:?}\n", perform(&file_system.begin(process), &call));
        }
    }
    for path in PATHS {
        let read = Call::Open(path, OpenFlags::READ, StatusFlags::NONE, NumberChoice::LowestFrom(100));
        let opened = perform(&file_system.begin(process), &read);
        let bytes = opened.map(|_| perform(&file_system.begin(process), &Call::ReadAt(100, 20_000, 0)));
        let _ = perform(&file_system.begin(process), &Call::Close(100));
        told += &format!("{path} {bytes:?} {:?}\n", perform(&file_system.begin(process), &Call::Size(path)));
    }
    told + &format!("{:?}", file_system.begin(process).space())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_transactions_give_what_they_give_outside(groups in vec((vec(call(), 1..8), any::<bool>(), vec(call(), 0..3)), 1..5)) {
        let (together, one_by_one) = (world(), world());
        let fs = Transactional::new(Sharing::Alone, || WithData(together.0.begin(&together.1)));
        for (calls, happens, undone) in groups {
            let expected: Vec<_> = match happens {
                true => calls.iter().map(|call| perform(&one_by_one.0.begin(&one_by_one.1), call)).collect(),
                false => Vec::new(),
            };
            let told = fs.transaction(|t| {
                let half = calls.len() / 2;
                let mut told: Vec<_> = calls[..half].iter().map(|call| perform(&t.begin(), call)).collect();
                let _ = t.part(|| {
                    undone.iter().for_each(|call| drop(perform(&t.begin(), call)));
                    Err::<(), _>(Errno::EIO)
                });
                told.extend(calls[half..].iter().map(|call| perform(&t.begin(), call)));
                if happens { Ok(told) } else { Err(Errno::EIO) }
            });
            if happens {
                prop_assert_eq!(told, Ok(expected));
            }
            prop_assert_eq!(seen(&together.0, &together.1), seen(&one_by_one.0, &one_by_one.1));
        }
    }
}

/// Whether a transaction of `mine` commits at its first attempt if others do `theirs` before its end; and what is left.
fn beside(mine: &[Call], theirs: &[Call]) -> (bool, String) {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || WithData(file_system.begin(&process)));
    let mut attempts = 0;
    fs.transaction(|t| {
        attempts += 1;
        mine.iter().for_each(|call| drop(perform(&t.begin(), call)));
        if attempts == 1 {
            theirs.iter().for_each(|call| drop(perform(&file_system.begin(&process), call)));
        }
        Ok(())
    })
    .unwrap();
    (attempts == 1, seen(&file_system, &process))
}

/// What the calls leave one after the other.
fn in_order(calls: &[&[Call]]) -> String {
    let (file_system, process) = world();
    calls.iter().copied().flatten().for_each(|call| drop(perform(&file_system.begin(&process), call)));
    seen(&file_system, &process)
}

fn who_touches_other_bytes_does_not_abort() {
    let free = [
        (vec![Call::WriteAt(0, 10, 1, 0)], vec![Call::WriteAt(0, 10, 2, 10)]),
        (vec![Call::ReadAt(0, 10, 0), Call::WriteAt(0, 5, 1, 20)], vec![Call::WriteAt(0, 10, 2, 10)]),
        (vec![Call::ReadAt(0, 10, 0)], vec![Call::WriteAt(0, 10, 2, 9_000)]),
        // It writes what is there.
        (vec![Call::ReadAt(0, 10, 0)], vec![Call::WriteAt(0, 10, 9, 0)]),
        (vec![Call::ReadAt(0, 10, 0)], vec![Call::Read(0, 10)]),
        (vec![Call::WriteAt(0, 10, 1, 8_000)], vec![Call::ReadAt(0, 10, 0), Call::Size("g")]),
        (vec![Call::WriteAt(2, 10, 1, 0)], vec![Call::Truncate(0, 5)]),
        // A hole is made at either end.
        (vec![Call::WriteAt(0, 10, 1, 8_000)], vec![Call::WriteAt(0, 10, 2, 9_000)]),
    ];
    for (mine, theirs) in &free {
        let (at_once, left) = beside(mine, theirs);
        assert!(at_once, "{mine:?} beside {theirs:?}");
        assert_eq!(left, in_order(&[theirs, mine]), "{mine:?} after {theirs:?}");
    }
}

fn who_touches_the_same_aborts() {
    let bound = [
        (vec![Call::ReadAt(0, 10, 0), Call::WriteAt(0, 10, 1, 100)], vec![Call::WriteAt(0, 1, 2, 9)]),
        (vec![Call::Size("f")], vec![Call::WriteAt(0, 10, 2, 9_000)]),
        (vec![Call::Seek(0, 0, Whence::End)], vec![Call::Truncate(0, 100)]),
        (vec![Call::Read(0, 10)], vec![Call::Read(0, 10)]),
        (vec![Call::Write(1, 10, 1)], vec![Call::Write(1, 10, 2)]),
        (vec![Call::ReadAt(2, 10, 0)], vec![Call::WriteAt(2, 1, 2, 5)]),
        (vec![Call::Seek(2, 0, Whence::Current)], vec![Call::Close(2)]),
    ];
    for (mine, theirs) in &bound {
        let (at_once, left) = beside(mine, theirs);
        assert!(!at_once, "{mine:?} beside {theirs:?}");
        assert_eq!(left, in_order(&[theirs, mine]), "{mine:?} after {theirs:?}");
    }
}

#[test]
fn bytes_are_what_transactions_meet_by() {
    who_touches_other_bytes_does_not_abort();
    who_touches_the_same_aborts();
}

#[cfg(shuttle)]
#[test]
fn faults_are_found() {
    sync::mutant::must_be_caught("transact: bytes that were read are not kept", who_touches_the_same_aborts);
    sync::mutant::must_be_caught("transact: a read keeps the whole size", who_touches_other_bytes_does_not_abort);
}

#[test]
fn what_cannot_be_is_refused_in_the_call() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || WithData(file_system.begin(&process)));
    let before = seen(&file_system, &process);
    let outcome = fs.transaction(|t| {
        // Only the transaction has an end of it.
        let (read, write) = data::pipe(&t.begin(), DescriptorOptions::PLAIN)?;
        assert_eq!(data::read(&t.begin(), read, &mut [0; 10]), Err(Errno::EDEADLK));
        assert_eq!(data::write(&t.begin(), write, &[1; 10]), Ok(10));
        assert_eq!(data::read(&t.begin(), read, &mut [0; 10]), Ok(10));
        let free = t.begin().space()?.free_blocks;
        for page in 0..=free as i64 {
            data::write_at(&t.begin(), 0, &[1; 10], 100_000 + 4096 * page)?;
        }
        unreachable!("there is no end of space")
    });
    assert_eq!(outcome, Err::<(), _>(Errno::ENOSPC));
    assert_eq!(seen(&file_system, &process), before);
}

#[cfg(not(shuttle))]
#[test]
fn new_files_and_reads_of_others_are_one_step_on_scalefs() {
    let instance = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let fs = instance.file_system();
    let (core, other) =
        (instance.claim(0, OwnerId::new(1).unwrap()).unwrap(), instance.claim(1, OwnerId::new(1).unwrap()).unwrap());
    let process = scalefs::Process::new(fs, &core, Credentials::SUPERUSER);
    let stranger = scalefs::Process::new(fs, &other, Credentials::SUPERUSER);
    let both = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let open = |path| Call::Open(path, both, StatusFlags::NONE, NumberChoice::LowestFrom(0));
    let outside = |call: &Call| perform(&fs.enter(&other, &stranger, &Spin), call);
    outside(&open("f")).unwrap();
    outside(&Call::WriteAt(0, 5_000, 7, 0)).unwrap();
    let transactional = Transactional::new(Sharing::Shared, || WithData(fs.enter(&core, &process, &Spin)));
    let mut attempts = 0;
    let copied = transactional.transaction(|t| {
        attempts += 1;
        let make = |call: &Call| perform(&t.begin(), call);
        make(&open("f"))?;
        assert_eq!(make(&Call::WriteAt(0, 10, 1, 0)), Err(Errno::EOPNOTSUPP), "others find it");
        let seen = make(&Call::Read(0, 9_000))?;
        make(&open("n"))?;
        make(&Call::Write(1, 5_000, attempts))?;
        make(&Call::Rename("n", "g"))?;
        if attempts == 1 {
            outside(&Call::WriteAt(0, 1, 8, 4_999)).unwrap();
        }
        assert_eq!(outside(&Call::Size("g")), Err(Errno::ENOENT));
        Ok(seen)
    });
    assert_eq!((copied.as_deref(), attempts), (Ok("4999x7 1x8 "), 2));
    let make = |call: &Call| perform(&fs.enter(&core, &process, &Spin), call);
    assert_eq!(make(&Call::Seek(0, 0, Whence::Current)).as_deref(), Ok("5000"), "the offset has moved");
    assert_eq!(make(&Call::ReadAt(1, 9_000, 0)).as_deref(), Ok("5000x2 "), "the descriptor stays open");
    assert_eq!(outside(&Call::Size("g")).as_deref(), Ok("5000 1"));
    let failed = transactional.transaction(|t| {
        perform(&t.begin(), &open("h"))?;
        perform(&t.begin(), &Call::Write(2, 5_000, 1))?;
        perform(&t.begin(), &Call::Close(0))?;
        Err::<(), _>(Errno::EIO)
    });
    assert_eq!(failed, Err(Errno::EIO));
    assert_eq!(make(&Call::Read(2, 1)), Err(Errno::EBADF));
    assert_eq!(make(&Call::Seek(0, 0, Whence::Current)).as_deref(), Ok("5000"));
}
