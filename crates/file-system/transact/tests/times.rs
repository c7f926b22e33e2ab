//! A transaction happens at one moment, and all times say which: inside and afterwards, of what it has made and of what was
//! there. The clock moves at each look.
#![cfg(not(loom))]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use plain::{Limits, Plain, Process};
use posix_calls::attributes::{self, NewTime};
use posix_calls::directories;
use posix_calls::names;
use posix_calls::{Credentials, Errno, Fields, Follow, ObjectOperations, OpenFlags, Start};
use transact::{Decided, Sharing, Transactional, Transactions as _};

static CLOCK: AtomicU64 = AtomicU64::new(1);

fn tick() -> u64 {
    CLOCK.fetch_add(1, Ordering::Relaxed)
}

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn create<V: ObjectOperations>(call: &V, path: &[u8]) -> Result<(), Errno> {
    let opened = names::open(call, at(), path, OpenFlags::CREATE | OpenFlags::WRITE, 0o644)?;
    names::close(call, opened.handle);
    Ok(())
}

/// Times of access, modification and change.
fn times<V: ObjectOperations>(call: &V, path: &[u8]) -> [i64; 3] {
    let seen = attributes::stat(call, at(), path, Follow::Nothing, Fields::ALL).unwrap();
    [seen.accessed_ns, seen.modified_ns, seen.changed_ns]
}

/// Calls `check` with how a call begins, over ordinary maps.
macro_rules! over_plain {
    ($check:ident) => {{
        let file_system = Plain::new(Limits::default(), tick);
        let process = Process::new(&file_system, Credentials::SUPERUSER);
        $check(Sharing::Alone, || file_system.begin(&process));
    }};
}

/// And over ScaleFS.
#[cfg(not(shuttle))]
macro_rules! over_both {
    ($check:ident) => {{
        over_plain!($check);
        let host = scalefs::Clocked { wait: sync::Spin, clock: tick };
        let instance = scalefs::OwnedScaleFs::create(scalefs::OwnedConfig::default()).unwrap();
        let core = instance.claim(0, percpu::OwnerId::new(1).unwrap()).unwrap();
        let context = scalefs::Context::new(instance.file_system(), &core, Credentials::SUPERUSER);
        $check(Sharing::Shared, || instance.file_system().begin(&core, &context, &host));
    }};
}

fn changes_together<B: Decided>(sharing: Sharing, begin: impl Fn() -> B) {
    create(&begin(), b"old").unwrap();
    for looks in [false, true] {
        let before = tick() as i64;
        let (seen, last) = (Cell::new(None), Cell::new(0));
        Transactional::new(sharing, &begin)
            .transaction(|t| {
                create(&t.begin(), b"file")?;
                directories::make_directory(&t.begin(), at(), b"directory", 0o755)?;
                names::link(&t.begin(), (at(), b"old"), (at(), b"directory/old"), Follow::Nothing)?;
                if looks {
                    seen.set(Some(times(&t.begin(), b"directory")));
                    assert_eq!(times(&t.begin(), b"old")[2], times(&t.begin(), b"directory")[2]);
                }
                attributes::set_times(&t.begin(), at(), b"file", Follow::Nothing, (NewTime::At(-7), NewTime::Same))?;
                // Made and gone again: it has changed all the same.
                names::link(&t.begin(), (at(), b"old"), (at(), b"other"), Follow::Nothing)?;
                names::unlink(&t.begin(), at(), b"other")?;
                last.set(tick() as i64);
                Ok(())
            })
            .unwrap();
        let [.., moment] = times(&begin(), b"file");
        assert!(moment > before && (moment > last.get()) != looks, "it is that of the commit, unless it was told");
        assert_eq!(times(&begin(), b"file"), [-7, moment, moment]);
        assert_eq!(times(&begin(), b"directory"), [moment; 3]);
        assert_eq!(times(&begin(), b"old")[2], moment);
        assert_eq!(times(&begin(), b".")[1..], [moment; 2]);
        assert!(seen.get().is_none_or(|seen| seen == [moment; 3]), "what was told stays true");
        names::unlink(&begin(), at(), b"directory/old").unwrap();
        directories::remove_directory(&begin(), at(), b"directory").unwrap();
        names::unlink(&begin(), at(), b"file").unwrap();
    }
}

fn others_come_later<B: Decided>(sharing: Sharing, begin: impl Fn() -> B) {
    let attempts = Cell::new(0);
    let fs = Transactional::new(sharing, &begin);
    let told = fs.transaction(|t| {
        attempts.set(attempts.get() + 1);
        create(&t.begin(), b"mine")?;
        let told = times(&t.begin(), b"mine");
        create(&begin(), b"theirs")?;
        Ok(told)
    });
    assert_eq!(attempts.get(), 1, "two names that are made do not meet");
    assert_eq!(told, Ok(times(&begin(), b"mine")));
    assert!(times(&begin(), b".")[1] > times(&begin(), b"mine")[1], "a later time stays");
}

fn what_changes_nothing<B: Decided>(sharing: Sharing, begin: impl Fn() -> B) {
    create(&begin(), b"old").unwrap();
    let before = times(&begin(), b"old")[2];
    let fs = Transactional::new(sharing, &begin);
    fs.transaction(|t| {
        names::link(&t.begin(), (at(), b"old"), (at(), b"other"), Follow::Nothing)?;
        names::unlink(&t.begin(), at(), b"other")
    })
    .unwrap();
    assert!(times(&begin(), b"old")[2] > before, "calls that cancel each other have changed it");
}

/// The memory of one transaction serves the next one.
#[cfg(not(shuttle))]
fn each_has_a_moment_of_its_own<B: Decided>(sharing: Sharing, begin: impl Fn() -> B) {
    let fs = Transactional::new(sharing, &begin);
    for happens in [true, false, true] {
        let began = tick() as i64;
        let told = Cell::new(0);
        let ended = fs.transaction(|t| {
            create(&t.begin(), b"file")?;
            told.set(times(&t.begin(), b"file")[1]);
            if happens { Ok(()) } else { Err(Errno::EIO) }
        });
        assert_eq!(ended.is_ok(), happens);
        assert!(told.get() > began, "{} in a transaction that began at {began}", told.get());
        if happens {
            assert_eq!(times(&begin(), b"file")[1], told.get());
            names::unlink(&begin(), at(), b"file").unwrap();
        }
    }
}

#[cfg(not(shuttle))]
#[test]
fn a_transaction_has_no_moment_of_one_before() {
    over_both!(each_has_a_moment_of_its_own);
}

#[cfg(not(shuttle))]
#[test]
fn all_changes_have_one_time() {
    over_both!(changes_together);
}

#[cfg(not(shuttle))]
#[test]
fn a_later_time_stays() {
    over_both!(others_come_later);
}

#[cfg(not(shuttle))]
#[test]
fn calls_that_cancel_each_other_leave_a_time() {
    over_both!(what_changes_nothing);
}

#[cfg(shuttle)]
#[test]
fn faults_are_found() {
    for check in [|| over_plain!(others_come_later), || over_plain!(what_changes_nothing)] {
        check();
    }
    sync::mutant::must_be_caught("transact: what was made keeps the time of its call", || {
        over_plain!(changes_together)
    });
}

/// Sizes are locked before times, wherever the two files lie.
#[test]
fn times_of_one_file_are_set_together_with_data_of_another() {
    let files = scalefs::FileSystem::create(Default::default()).unwrap();
    files.transaction(|t| t.create("a").and_then(|()| t.create("b"))).unwrap();
    for (set, longer) in [("a", "b"), ("b", "a")] {
        let at = NewTime::At(1);
        files.transaction(|t| t.set_times(set, (at, at)).and_then(|()| t.append(longer, "1"))).unwrap();
        assert_eq!(files.root().unwrap().metadata(longer).unwrap().size_bytes, 1);
    }
}
