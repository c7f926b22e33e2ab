//! How often calls wait for other domains, with warm caches.

use std::rc::Rc;

use domains::{Limits, OfOneThread, OneThread, Process};
use posix_calls::attributes;
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, Fields, Follow, OpenFlags, Start, directories};

const READ_WRITE: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);
const CREATE: OpenFlags = READ_WRITE.union(OpenFlags::CREATE);

type Call<'c> = domains::Call<'c, messages::simulated::Simulated<'static>>;

/// A call, what it does, and how often it waits.
type Row = (&'static str, fn(&Call<'_>) -> Result<(), Errno>, u64);

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn open(call: &Call<'_>, path: &[u8], flags: OpenFlags) -> Result<u32, Errno> {
    data::open(call, at(), path, flags, 0o666, DescriptorOptions::PLAIN)
}

fn make(call: &Call<'_>, path: &[u8]) -> Result<(), Errno> {
    data::close(call, open(call, path, CREATE)?)
}

fn stat(call: &Call<'_>, path: &[u8]) -> Result<(), Errno> {
    attributes::stat(call, at(), path, Follow::Nothing, Fields::ALL).map(drop)
}

fn list_split(call: &Call<'_>) -> Result<(), Errno> {
    let fd = open(call, b"split", OpenFlags::READ)?;
    data::read_directory(call, fd, |_| true)?;
    data::close(call, fd)
}

/// Of domain 1. Directory `a` is at domain 0, `b` at domain 2, `split` over all; a file's name says whose it is.
const ROWS: &[Row] = &[
    ("create", |call| make(call, b"a/new"), 1),
    ("open, own", |call| open(call, b"a/mine", OpenFlags::READ).map(drop), 0),
    ("open, another's", |call| open(call, b"a/of-0", OpenFlags::READ).map(drop), 1),
    ("stat, own", |call| stat(call, b"a/mine"), 0),
    ("stat, another's", |call| stat(call, b"a/of-0"), 1),
    ("stat, absent", |call| stat(call, b"a/absent").or(Ok(())), 0),
    (
        "access by name alone",
        |call| attributes::access(call, at(), b"a/", Follow::Symlinks, attributes::Access::EXISTS),
        0,
    ),
    ("link", |call| names::link(call, (at(), b"a/of-2"), (at(), b"b/link"), Follow::Nothing), 1),
    ("unlink", |call| names::unlink(call, at(), b"a/of-2"), 1),
    ("unlink, own", |call| names::unlink(call, at(), b"a/new"), 1),
    ("rename", |call| names::rename(call, (at(), b"a/of-0"), (at(), b"b/renamed"), RenameMode::Replace), 1),
    ("rename over", |call| names::rename(call, (at(), b"a/mine"), (at(), b"b/of-0"), RenameMode::Replace), 1),
    ("exchange", |call| names::rename(call, (at(), b"a/x"), (at(), b"b/of-2"), RenameMode::Exchange), 1),
    ("mkdir", |call| directories::make_directory(call, at(), b"a/made", 0o777), 1),
    ("rmdir, own", |call| directories::remove_directory(call, at(), b"a/made"), 1),
    ("rmdir, another's", |call| directories::remove_directory(call, at(), b"a/directory-of-2"), 1),
    ("listing of a split directory", list_split, 2),
    ("rmdir of a split directory", |call| directories::remove_directory(call, at(), b"split"), 2),
    ("write of an own file", |call| data::write(call, 0, &[7; 10_000]).map(drop), 0),
    ("read of an own file", |call| data::read_at(call, 0, &mut [0; 10_000], 0).map(drop), 0),
    ("write of another's file", |call| data::write(call, 1, &[7; 10_000]).map(drop), 1),
    ("lseek, another's", |call| data::seek(call, 1, 0, Whence::Start).map(drop), 0),
    ("read of another's file", |call| data::read(call, 1, &mut [0; 10_000]).map(drop), 1),
];

/// Names that the caller has looked at before.
const WARM: &[&[u8]] = &[
    b"a",
    b"a/new",
    b"a/mine",
    b"a/of-0",
    b"a/absent",
    b"a/of-2",
    b"b",
    b"b/link",
    b"b/renamed",
    b"b/of-0",
    b"a/x",
    b"b/of-2",
    b"a/made",
    b"a/directory-of-2",
    b"split",
];

#[test]
fn calls_wait_as_often_as_is_said() {
    let limits = Limits { split_above: 8, split_after: u64::MAX, ..Limits::default() };
    let file_system = OneThread::new(3, limits, || 0);
    let user = || Process::new(Credentials::new(1000, 1000, &[]).unwrap());
    let domains: Vec<(Rc<OfOneThread>, Process)> = (0..3).map(|number| (file_system.domain(number), user())).collect();
    let root = Process::new(Credentials::SUPERUSER);
    let by = |number: usize, act: &dyn Fn(&Call<'_>) -> Result<(), Errno>| {
        domains[number].0.call(&domains[number].1, act).unwrap();
    };
    file_system.domain(0).call(&root, |call| attributes::change_mode(call, at(), b"/", 0o777)).unwrap();
    by(1, &|call| open(call, b"private", CREATE).map(|fd| assert_eq!(fd, 0)));
    by(0, &|call| directories::make_directory(call, at(), b"a", 0o777));
    by(2, &|call| directories::make_directory(call, at(), b"b", 0o777));
    by(0, &|call| [&b"a/of-0"[..], b"b/of-0"].iter().try_for_each(|path| make(call, path)));
    by(0, &|call| make(call, b"a/far").and_then(|()| attributes::change_mode(call, at(), b"a/far", 0o666)));
    by(1, &|call| open(call, b"a/far", READ_WRITE).map(|fd| assert_eq!(fd, 1)));
    by(1, &|call| make(call, b"a/mine").and_then(|()| make(call, b"a/x")));
    by(2, &|call| make(call, b"b/of-2").and_then(|()| make(call, b"a/of-2")));
    by(2, &|call| directories::make_directory(call, at(), b"a/directory-of-2", 0o777));
    by(0, &|call| directories::make_directory(call, at(), b"split", 0o777));
    let names: Vec<String> = (0..20).map(|number| format!("split/n{number}")).collect();
    by(2, &|call| names.iter().try_for_each(|path| make(call, path.as_bytes())));
    by(1, &|call| names.iter().try_for_each(|path| names::unlink(call, at(), path.as_bytes())));
    // Rights are kept, too, and where directories stand.
    by(1, &list_split);
    by(1, &|call| WARM.iter().try_for_each(|path| stat(call, path).or(Ok(()))));
    let (domain, process) = &domains[1];
    let mut told = Vec::new();
    for (name, act, expected) in ROWS {
        let before = domain.counts();
        domain.call(process, act).unwrap_or_else(|errno| panic!("{name}: {errno:?}"));
        let counts = domain.counts().since(&before);
        println!("{name}: {} round trips, {:?} messages, {} bytes", counts.round_trips, counts.messages, counts.bytes);
        if counts.round_trips != *expected {
            told.push(format!("{name}: {} round trips, expected {expected}", counts.round_trips));
        }
        file_system.settle();
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}
