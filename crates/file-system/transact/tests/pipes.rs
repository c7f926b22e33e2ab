//! Pipes that were there before, in transactions: bytes are taken and put together with everything else, or not at all.
#![cfg(not(loom))]

use std::cell::Cell;

#[cfg(not(shuttle))]
use percpu::OwnerId;
use plain::{Plain, Process};
#[cfg(not(shuttle))]
use posix_calls::PipeState;
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::{Credentials, DataChanges, DataOperations, Errno, StatusFlags};
#[cfg(not(shuttle))]
use proptest::prelude::*;
#[cfg(not(shuttle))]
use scalefs::{OwnedConfig, OwnedScaleFs};
#[cfg(not(shuttle))]
use sync::Spin;
use transact::{Decided, Sharing, Transactional, WithData};

const PAGE: usize = 4096;
const READ: u32 = 0;
const WRITE: u32 = 1;

/// What calls gave.
type Results = Vec<Result<String, Errno>>;

#[derive(Clone, Copy, Debug)]
enum Call {
    Read(usize),
    Write(usize, u8),
    Peek(usize),
    #[cfg(not(shuttle))]
    States,
    Close(u32),
}

/// Runs of equal bytes.
fn told(bytes: &[u8]) -> String {
    bytes.chunk_by(|one, next| one == next).map(|run| format!("{}x{} ", run.len(), run[0])).collect()
}

fn perform<D: DataOperations>(process: &D, call: Call) -> Result<String, Errno> {
    match call {
        Call::Read(length) => {
            let mut bytes = vec![0; length];
            data::read(process, READ, &mut bytes).map(|read| told(&bytes[..read]))
        }
        Call::Write(length, byte) => {
            data::write(process, WRITE, &vec![byte; length]).map(|written| written.to_string())
        }
        Call::Peek(length) => {
            let mut bytes = vec![0; length];
            data::peek(process, READ, &mut bytes).map(|seen| told(&bytes[..seen]))
        }
        #[cfg(not(shuttle))]
        Call::States => Ok(format!("{:?} {:?}", data::poll(process, READ)?, data::poll(process, WRITE)?)),
        Call::Close(end) => data::close(process, end).map(|()| String::new()),
    }
}

/// What [`Call::States`] tells of a pipe with both ends.
#[cfg(not(shuttle))]
fn of_both_ends(has_bytes: bool, has_room: bool) -> String {
    let state = |is_ready| PipeState { is_ready, other_end_gone: false };
    format!("{:?} {:?}", state(has_bytes), state(has_room))
}

fn make_pipe<D: DataOperations>(process: &D) {
    let options = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
    assert_eq!(data::pipe(process, options), Ok((READ, WRITE)));
}

#[cfg(not(shuttle))]
fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (0..4_usize).prop_map(|pages| Call::Read(pages * PAGE)),
        5 => (0..6_usize, 1..9_u8).prop_map(|(pages, byte)| Call::Write(pages * PAGE, byte)),
        1 => (1..3_usize).prop_map(|pages| Call::Peek(pages * PAGE)),
        1 => Just(Call::States),
    ]
}

#[cfg(not(shuttle))]
/// Calls, a part behind them that is undone, and whether the rest happens.
type Group = (Vec<Call>, Vec<Call>, bool);

#[cfg(not(shuttle))]
fn groups() -> impl Strategy<Value = Vec<Group>> {
    let calls = |most| prop::collection::vec(call(), 0..most);
    prop::collection::vec((calls(5), calls(3), prop::bool::weighted(0.8)), 1..9)
}

#[cfg(not(shuttle))]
/// Makes all groups in transactions, and alone what of them happens, which gives the same.
fn compare<D: DataChanges<Objects: Decided>, E: DataOperations>(
    sharing: Sharing,
    begin: impl Fn() -> D,
    alone: impl Fn() -> E,
    groups: &[Group],
) {
    make_pipe(&begin());
    make_pipe(&alone());
    let fs = Transactional::new(sharing, || WithData(begin()));
    for (calls, undone, happens) in groups {
        let came = fs.transaction(|t| {
            let came: Vec<_> = calls.iter().map(|call| perform(&t.begin(), *call)).collect();
            let _ = t.part(|| {
                undone.iter().for_each(|call| drop(perform(&t.begin(), *call)));
                Err::<(), _>(Errno::EIO)
            });
            if came.contains(&Err(Errno::EOPNOTSUPP)) {
                return Err(Errno::EOPNOTSUPP);
            }
            if *happens { Ok(came) } else { Err(Errno::EIO) }
        });
        let expected = match came {
            // Room that the transaction makes itself.
            Err(Errno::EOPNOTSUPP) => continue,
            _ if *happens => Ok(calls.iter().map(|call| perform(&alone(), *call)).collect()),
            _ => Err(Errno::EIO),
        };
        assert_eq!(came, expected);
        for call in [Call::Peek(20 * PAGE), Call::States] {
            assert_eq!(perform(&begin(), call), perform(&alone(), call));
        }
    }
}

fn plain() -> (Plain, Process) {
    let file_system = Plain::default();
    let process = Process::new(&file_system, Credentials::SUPERUSER);
    (file_system, process)
}

#[cfg(not(shuttle))]
fn instance() -> OwnedScaleFs {
    let small = OwnedConfig { metadata_bytes: 8 << 20, page_count: 256, core_count: 2, ..OwnedConfig::default() };
    OwnedScaleFs::create(small).unwrap()
}

#[cfg(not(shuttle))]
proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_transactions_give_what_they_give_outside(groups in groups()) {
        let (ours, alone) = (plain(), plain());
        compare(Sharing::Alone, || ours.0.begin(&ours.1), || alone.0.begin(&alone.1), &groups);
        let instance = instance();
        let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
        let process = scalefs::Process::new(instance.file_system(), &core, Credentials::SUPERUSER).unwrap();
        let (alone, fs) = (plain(), instance.file_system());
        compare(Sharing::Shared, || fs.enter(&core, &process, &Spin), || alone.0.begin(&alone.1), &groups);
    }
}

/// It was told that a pipe is full of which it had taken a page: the base's room was all that it asked for.
#[cfg(not(shuttle))]
#[test]
fn whether_there_is_room_where_the_transaction_has_taken_bytes_only_the_base_knows() {
    let (file_system, process) = plain();
    let begin = || file_system.begin(&process);
    make_pipe(&begin());
    perform(&begin(), Call::Write(16 * PAGE, 1)).unwrap();
    let came = Transactional::new(Sharing::Alone, || WithData(begin())).transaction(|t| {
        let full = perform(&t.begin(), Call::States)?;
        perform(&t.begin(), Call::Read(PAGE))?;
        Ok((full, perform(&t.begin(), Call::States), perform(&t.begin(), Call::Read(15 * PAGE))))
    });
    let (full, taken, read) = came.unwrap();
    assert_eq!(full, of_both_ends(true, false));
    assert_eq!((taken, read), (Err(Errno::EOPNOTSUPP), Ok(told(&[1; 15 * PAGE]))));
    assert_eq!(perform(&begin(), Call::States), Ok(of_both_ends(false, true)));
}

/// `poll` asks for a page that is free: the rest of the last one that the transaction has put is none.
#[cfg(not(shuttle))]
#[test]
fn a_pipe_without_a_free_page_is_full_in_a_transaction_too() {
    let puts: [(&[usize], Option<bool>); 4] = [
        (&[15 * PAGE], Some(true)),
        (&[16 * PAGE], Some(false)),
        (&[15 * PAGE, 1], None),
        (&[14 * PAGE, 1], Some(true)),
    ];
    for (lengths, has_room) in puts {
        let (file_system, process) = plain();
        let begin = || file_system.begin(&process);
        make_pipe(&begin());
        let came = Transactional::new(Sharing::Alone, || WithData(begin())).transaction(|t| {
            lengths.iter().for_each(|length| drop(perform(&t.begin(), Call::Write(*length, 1)).unwrap()));
            Ok(perform(&t.begin(), Call::States))
        });
        let expected = has_room.map(|has_room| of_both_ends(true, has_room)).ok_or(Errno::EOPNOTSUPP);
        assert_eq!(came, Ok(expected), "{lengths:?}");
    }
}

/// How often a transaction of `mine` begins if others do `theirs` before its end the first time; and what came of both.
fn beside<D: DataChanges<Objects: Decided>>(
    (sharing, begin): (Sharing, impl Fn() -> D),
    before: &[Call],
    mine: &[Call],
    theirs: &[Call],
) -> (u32, Results, Results) {
    make_pipe(&begin());
    before.iter().for_each(|call| drop(perform(&begin(), *call)));
    let (attempts, others) = (Cell::new(0), Cell::new(Vec::new()));
    let fs = Transactional::new(sharing, || WithData(begin()));
    let came = fs.transaction(|t| {
        attempts.set(attempts.get() + 1);
        let came = mine.iter().map(|call| perform(&t.begin(), *call)).collect();
        if attempts.get() == 1 {
            others.set(theirs.iter().map(|call| perform(&begin(), *call)).collect());
        }
        Ok(came)
    });
    (attempts.get(), came.unwrap(), others.take())
}

fn who_meets_aborts_and_who_commutes_does_not() {
    let ok = |text: &str| Ok(text.to_owned());
    let two = [Call::Write(2 * PAGE, 1)];
    type Row<'r> = (&'r [Call], &'r [Call], &'r [Call], u32, Results, Results);
    let rows: Vec<Row<'_>> = vec![
        // Who takes and who puts do not meet in a pipe that has bytes and room.
        (&two, &[Call::Read(PAGE)], &[Call::Write(PAGE, 2)], 1, vec![ok("4096x1 ")], vec![ok("4096")]),
        (&two, &[Call::Write(PAGE, 2)], &[Call::Read(PAGE)], 1, vec![ok("4096")], vec![ok("4096x1 ")]),
        // Two who take do, if what they take differs; and who finds nothing, and who puts.
        (
            &[Call::Write(PAGE, 1), Call::Write(PAGE, 2)],
            &[Call::Read(PAGE)],
            &[Call::Read(PAGE)],
            2,
            vec![ok("4096x2 ")],
            vec![ok("4096x1 ")],
        ),
        (&[], &[Call::Read(PAGE)], &[Call::Write(PAGE, 3)], 2, vec![ok("4096x3 ")], vec![ok("4096")]),
        (
            &[Call::Write(16 * PAGE, 1)],
            &[Call::Write(PAGE, 2)],
            &[Call::Read(PAGE)],
            2,
            vec![ok("4096")],
            vec![ok("4096x1 ")],
        ),
        (&[Call::Write(16 * PAGE, 1)], &[Call::Write(PAGE, 2)], &[], 1, vec![Err(Errno::EAGAIN)], vec![]),
        // The end, and nobody who reads.
        (
            &two,
            &[Call::Read(3 * PAGE), Call::Read(1)],
            &[Call::Close(WRITE)],
            2,
            vec![ok("8192x1 "), ok("")],
            vec![ok("")],
        ),
        (&two, &[Call::Write(PAGE, 2)], &[Call::Close(READ)], 2, vec![Err(Errno::EPIPE)], vec![ok("")]),
        // Whether that was the last descriptor only the base knows.
        (&two, &[Call::Close(READ), Call::Write(PAGE, 2)], &[], 1, vec![ok(""), Err(Errno::EOPNOTSUPP)], vec![]),
        // Bytes that are no whole pages.
        (&[Call::Write(10, 1)], &[Call::Write(5, 2), Call::Read(12)], &[], 1, vec![ok("5"), ok("10x1 2x2 ")], vec![]),
    ];
    for (before, mine, theirs, attempts, came, others) in rows {
        let (file_system, process) = plain();
        let expected = (attempts, came, others);
        assert_eq!(
            beside((Sharing::Alone, || file_system.begin(&process)), before, mine, theirs),
            expected,
            "{mine:?}"
        );
        #[cfg(not(shuttle))]
        {
            let instance = instance();
            let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
            let process = scalefs::Process::new(instance.file_system(), &core, Credentials::SUPERUSER).unwrap();
            let begin = || instance.file_system().enter(&core, &process, &Spin);
            assert_eq!(beside((Sharing::Shared, begin), before, mine, theirs), expected, "{mine:?}");
        }
    }
}

/// A pipe of the transaction's own, used in parts that are undone: as if they had never been.
fn use_own_pipe<D: DataChanges<Objects: Decided>>(sharing: Sharing, begin: impl Fn() -> D) {
    let fs = Transactional::new(sharing, || WithData(begin()));
    let came = fs.transaction(|t| {
        make_pipe(&t.begin());
        let perform = |call| perform(&t.begin(), call);
        let undo = |calls: &[Call]| {
            let undone = t.part(|| {
                calls.iter().for_each(|call| assert!(perform(*call).is_ok(), "{call:?}"));
                Err::<(), _>(Errno::EIO)
            });
            assert_eq!(undone, Err(Errno::EIO));
            perform(Call::Peek(20 * PAGE)).unwrap()
        };
        let mut seen = vec![undo(&[Call::Write(100, 7)])];
        perform(Call::Write(PAGE + 10, 1))?;
        perform(Call::Write(PAGE, 2))?;
        seen.push(undo(&[Call::Read(PAGE + 10), Call::Write(10 * PAGE, 3), Call::Close(WRITE)]));
        seen.push(undo(&[Call::Read(3 * PAGE)]));
        t.part(|| perform(Call::Read(PAGE)).map(drop))?;
        // A page for each, behind what is there.
        perform(Call::Write(14 * PAGE, 4))?;
        seen.push(perform(Call::Peek(20 * PAGE))?);
        Ok(seen)
    });
    let all = "4106x1 4096x2 ";
    assert_eq!(came.unwrap(), ["", all, all, "10x1 4096x2 57344x4 "]);
    assert_eq!(perform(&begin(), Call::Read(20 * PAGE)).unwrap(), "10x1 4096x2 57344x4 ");
}

fn parts_of_own_pipes_are_undone() {
    let (file_system, process) = plain();
    use_own_pipe(Sharing::Alone, || file_system.begin(&process));
    #[cfg(not(shuttle))]
    {
        let instance = instance();
        let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
        let process = scalefs::Process::new(instance.file_system(), &core, Credentials::SUPERUSER).unwrap();
        use_own_pipe(Sharing::Shared, || instance.file_system().enter(&core, &process, &Spin));
    }
}

/// Pages for what a transaction puts into a pipe are there before anything is decided.
#[cfg(not(shuttle))]
#[test]
fn bytes_for_which_there_is_no_page_are_put_nowhere() {
    let instance = instance();
    let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let process = scalefs::Process::new(instance.file_system(), &core, Credentials::SUPERUSER).unwrap();
    let begin = || instance.file_system().enter(&core, &process, &Spin);
    make_pipe(&begin());
    let flags = posix_calls::OpenFlags::CREATE.union(posix_calls::OpenFlags::WRITE);
    let start = posix_calls::Start::WorkingDirectory;
    let fd = data::open(&begin(), start, b"f", flags, 0o644, DescriptorOptions::PLAIN).unwrap();
    while data::write(&begin(), fd, &[7; PAGE]).is_ok() {}
    let fs = Transactional::new(Sharing::Shared, || WithData(begin()));
    let came = fs.transaction(|t| {
        perform(&t.begin(), Call::Write(PAGE, 1))?;
        data::seek(&t.begin(), fd, 0, data::Whence::Start).map(|_| ())
    });
    assert_eq!(came, Err(Errno::ENOSPC));
    assert_eq!(perform(&begin(), Call::Peek(PAGE)), Ok(String::new()));
    assert_ne!(data::seek(&begin(), fd, 0, data::Whence::Current), Ok(0), "nothing else has happened");
}

#[cfg(not(shuttle))]
#[test]
fn an_undone_part_leaves_nothing_in_own_pipes() {
    parts_of_own_pipes_are_undone();
}

#[cfg(not(shuttle))]
#[test]
fn two_sides_of_a_pipe_do_not_meet() {
    who_meets_aborts_and_who_commutes_does_not();
}

#[cfg(shuttle)]
#[test]
fn faults_are_found() {
    parts_of_own_pipes_are_undone();
    sync::mutant::must_be_caught(
        "transact: what an undone part did to an own pipe stays",
        parts_of_own_pipes_are_undone,
    );
    who_meets_aborts_and_who_commutes_does_not();
    sync::mutant::must_be_caught(
        "transact: what waits in a pipe is not kept",
        who_meets_aborts_and_who_commutes_does_not,
    );
}
