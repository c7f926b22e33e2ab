//! Calls on data of a process, drawn at random, and all that a process sees.
#![allow(dead_code)] // Each test uses some of it.

use posix_calls::attributes::{self};
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::names::{self, RenameMode};
use posix_calls::{
    DataChanges, DataOperations, Errno, Fields, Follow, NumberChoice, ObjectOperations, OnExec, OpenFlags, Start,
    StatusFlags,
};
use proptest::prelude::*;
use transact::{Decided, Transactional, WithData};

/// The paths that calls know.
pub const PATHS: [&str; 3] = ["f", "g", "n"];

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
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

/// Makes a call; tells what came back.
pub fn perform<D: DataOperations>(process: &D, call: &Call) -> Result<String, Errno> {
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

/// A call that may be refused.
pub fn call() -> impl Strategy<Value = Call> {
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
pub fn prepare(make: impl Fn(&Call) -> Result<String, Errno>) {
    let both = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    for (path, status) in [("f", StatusFlags::NONE), ("f", StatusFlags::APPEND), ("g", StatusFlags::NONE)] {
        make(&Call::Open(path, both, status, NumberChoice::LowestFrom(0))).unwrap();
    }
    make(&Call::WriteAt(0, 6_000, 9, 0)).unwrap();
}

/// What is open and what files hold.
pub fn seen(make: impl Fn(&Call) -> Result<String, Errno>) -> String {
    let mut told = String::new();
    for fd in 0..9 {
        for call in [Call::Seek(fd, 0, Whence::Current), Call::ReadAt(fd, 20_000, 0)] {
            told += &format!("{fd} {:?}\n", make(&call));
        }
    }
    for path in PATHS {
        let read = Call::Open(path, OpenFlags::READ, StatusFlags::NONE, NumberChoice::LowestFrom(100));
        let bytes = make(&read).map(|_| make(&Call::ReadAt(100, 20_000, 0)));
        let _ = make(&Call::Close(100));
        told += &format!("{path} {bytes:?} {:?}\n", make(&Call::Size(path)));
    }
    told
}

/// Calls, whether they are to happen, and a part in their middle that is undone.
pub type Group = (Vec<Call>, bool, Vec<Call>);

/// Groups of calls.
pub fn groups() -> impl Strategy<Value = Vec<Group>> {
    prop::collection::vec(
        (prop::collection::vec(call(), 1..8), any::<bool>(), prop::collection::vec(call(), 0..3)),
        1..5,
    )
}

/// Makes a group in a transaction, and alone by `outside` what is to happen; returns what each gave.
pub fn make_both<D: DataChanges<Objects: Decided>, F: Fn() -> WithData<D>>(
    transactional: &Transactional<F, <D::Objects as ObjectOperations>::Handle>,
    (calls, happens, undone): &Group,
    outside: impl Fn(&Call) -> Result<String, Errno>,
) -> [Result<Vec<Result<String, Errno>>, Errno>; 2] {
    let expected = if *happens { Ok(calls.iter().map(outside).collect()) } else { Err(Errno::EIO) };
    let told = transactional.transaction(|t| {
        let half = calls.len() / 2;
        let mut told: Vec<_> = calls[..half].iter().map(|call| perform(&t.begin(), call)).collect();
        let _ = t.part(|| {
            undone.iter().for_each(|call| drop(perform(&t.begin(), call)));
            Err::<(), _>(Errno::EIO)
        });
        told.extend(calls[half..].iter().map(|call| perform(&t.begin(), call)));
        if *happens { Ok(told) } else { Err(Errno::EIO) }
    });
    [told, expected]
}
