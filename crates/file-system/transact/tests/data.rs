//! Data in transactions over ordinary maps: the calls give what they give outside, whatever parts a program is cut into;
//! and who touches other bytes does not abort.
#![cfg(not(loom))]

mod data_calls;

use plain::{Limits, Plain, Process};
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::{
    Credentials, DataOperations as _, Errno, Fields, Follow, Kind, ObjectOperations as _, OnExec, SocketOrder, Start,
    StatusFlags,
};
use posix_calls::{attributes, names, sockets};
use proptest::prelude::*;
use transact::{Sharing, Transactional, WithData};

use data_calls::{Call, groups, make_both, perform};

/// `f` with 6,000 bytes, open for both under 0 and, to append, under 1; `g` empty, open under 2.
fn world() -> (Plain, Process) {
    let file_system = Plain::new(Limits { pages: 200, ..Limits::default() }, || 0);
    let process = Process::new(&file_system, Credentials::SUPERUSER);
    data_calls::prepare(|call| perform(&file_system.begin(&process), call));
    (file_system, process)
}

/// What is open and what files hold.
fn seen(file_system: &Plain, process: &Process) -> String {
    data_calls::seen(|call| perform(&file_system.begin(process), call))
}

fn free_pages((file_system, process): &(Plain, Process)) -> u64 {
    file_system.begin(process).space().unwrap().free_blocks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_transactions_give_what_they_give_outside(groups in groups()) {
        let (together, one_by_one) = (world(), world());
        let fs = Transactional::new(Sharing::Alone, || WithData(together.0.begin(&together.1)));
        for group in groups {
            let [told, expected] = make_both(&fs, &group, |call| perform(&one_by_one.0.begin(&one_by_one.1), call));
            prop_assert_eq!(told, expected);
            prop_assert_eq!(seen(&together.0, &together.1), seen(&one_by_one.0, &one_by_one.1));
            // What was written and cut off again has taken no page.
            prop_assert!(free_pages(&together) >= free_pages(&one_by_one));
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
        // It would lead to before the beginning from either offset.
        (vec![Call::Seek(0, -20, Whence::Current)], vec![Call::Read(0, 10)]),
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
        (vec![Call::Seek(0, -10, Whence::Current)], vec![Call::Read(0, 10)]),
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
    for fault in
        ["transact: a read keeps the whole size", "transact: an offset that is not reached is kept as what it is"]
    {
        sync::mutant::must_be_caught(fault, who_touches_other_bytes_does_not_abort);
    }
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
        while let Ok(written) = data::write(&t.begin(), write, &[1; 4096]) {
            assert_eq!(written, 4096);
        }
        assert_eq!(data::write(&t.begin(), write, &[1; 4096]), Err(Errno::EDEADLK));
        // What others have received cannot be taken back, and flags of a descriptor from before are not the transaction's.
        let socket = sockets::socket(&t.begin(), SocketOrder::Ordered, DescriptorOptions::PLAIN);
        let pair = sockets::pair(&t.begin(), SocketOrder::Ordered, DescriptorOptions::PLAIN);
        assert_eq!((socket, pair), (Err(Errno::EOPNOTSUPP), Err(Errno::EOPNOTSUPP)));
        assert_eq!(t.begin().set_on_exec(0, OnExec::Close), Err(Errno::EOPNOTSUPP));
        assert_eq!(t.begin().on_exec(0), Err(Errno::EOPNOTSUPP));
        t.begin().set_on_exec(write, OnExec::Close)?;
        assert_eq!((t.begin().on_exec(read), t.begin().on_exec(write)), (Ok(OnExec::Keep), Ok(OnExec::Close)));
        data::close(&t.begin(), write)?;
        assert_eq!(t.begin().on_exec(write), Err(Errno::EBADF));
        // Who does not want to wait is told as outside.
        let options = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
        let (read, write) = data::pipe(&t.begin(), options)?;
        assert_eq!(data::read(&t.begin(), read, &mut [0; 10]), Err(Errno::EAGAIN));
        // What it has closed is closed.
        data::close(&t.begin(), write)?;
        assert_eq!(data::read(&t.begin(), read, &mut [0; 10]), Ok(0));
        assert!(data::poll(&t.begin(), read)?.other_end_gone);
        let (read, write) = data::pipe(&t.begin(), options)?;
        data::close(&t.begin(), read)?;
        assert_eq!(data::write(&t.begin(), write, &[1; 10]), Err(Errno::EPIPE));
        let free = t.begin().space()?.free_blocks;
        for page in 0..=free as i64 {
            data::write_at(&t.begin(), 0, &[1; 10], 100_000 + 4096 * page)?;
        }
        unreachable!("there is no end of space")
    });
    assert_eq!(outcome, Err::<(), _>(Errno::ENOSPC));
    assert_eq!(seen(&file_system, &process), before);
}

#[test]
fn names_for_what_lies_outside_are_made_in_transactions() {
    let (file_system, process) = world();
    let device = |told: Result<(posix_calls::Attributes, u64), Errno>| told.map(|(found, device)| (found.kind, device));
    let fs = Transactional::new(Sharing::Alone, || WithData(file_system.begin(&process)));
    let outcome = fs.transaction(|t| {
        names::make_node(&t.begin(), Start::WorkingDirectory, b"disk", (Kind::BlockDevice, 7), 0o600)?;
        names::make_node(&t.begin(), Start::WorkingDirectory, b"fifo", (Kind::NamedPipe, 7), 0o600)?;
        let told = attributes::stat_with_device(
            &t.begin(),
            Start::WorkingDirectory,
            b"disk",
            Follow::Nothing,
            Fields::IDENTITY,
        );
        assert_eq!(device(told), Ok((Kind::BlockDevice, 7)));
        Ok(())
    });
    outcome.unwrap();
    let call = file_system.begin(&process);
    let told =
        |path| attributes::stat_with_device(&call, Start::WorkingDirectory, path, Follow::Nothing, Fields::IDENTITY);
    assert_eq!(device(told(b"disk")), Ok((Kind::BlockDevice, 7)));
    assert_eq!(device(told(b"fifo")), Ok((Kind::NamedPipe, 0)));
}
