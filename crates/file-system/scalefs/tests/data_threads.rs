//! Data, pipes and descriptors under threads: pages are whole, nothing is lost, closing in the middle of a call is safe; and
//! a file against a plain one with allocations that fail.
#![cfg(not(loom))]

mod instance;

use std::sync::Arc;

use instance::with_instance;
use pages::PAGE_BYTES;
use proptest::prelude::*;
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::{Errno, Fields, NumberChoice, OnExec, OpenFlags, ProcessCalls, Start, StatusFlags, names};
use sync::{Spin, Wait, WaitReason};

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const PLAIN: DescriptorOptions = DescriptorOptions::PLAIN;
const CREATE: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE).union(OpenFlags::CREATE);
const PAGE: i64 = PAGE_BYTES as i64;

/// Waits as a program would.
struct Yield;

impl Wait for Yield {
    fn wait(&self, _: WaitReason, _: u32) {
        std::thread::yield_now();
    }
}

impl scalefs::Host for Yield {
    fn now_ns(&self) -> u64 {
        0
    }
}

#[test]
fn pages_are_whole_while_others_write_and_cut_them() {
    const ROUNDS: usize = 800;
    with_instance(256, |instance| {
        let core = instance.core(3);
        let process = instance.process(&core);
        let fd = data::open(&instance.fs.enter(&core, &process, &Spin), AT, b"a", CREATE, 0o600, PLAIN).unwrap();
        let owned = process;
        let process = &owned;
        std::thread::scope(|scope| {
            for number in 0..3 {
                scope.spawn(move || {
                    let core = instance.core(number);
                    let mut page = [0; PAGE_BYTES];
                    for round in 0..ROUNDS {
                        {
                            let verbs = instance.fs.enter(&core, process, &Yield);
                            let offset = ((round * 7 + number * 3) % 20) as i64 * PAGE;
                            match (number, round % 8) {
                                (0, 7) => data::truncate(&verbs, fd, offset).unwrap(),
                                (0 | 1, 0..=4) => {
                                    let bytes = [(round % 251) as u8 + 1; PAGE_BYTES];
                                    let written = data::write_at(&verbs, fd, &bytes, offset);
                                    // Pages of a cut come back once no reader is left.
                                    assert!(matches!(written, Ok(PAGE_BYTES) | Err(Errno::ENOSPC)), "{written:?}");
                                }
                                _ => {
                                    let length = data::read_at(&verbs, fd, &mut page, offset).unwrap();
                                    let size = data::stat(&verbs, fd, Fields::SIZE).unwrap().size_bytes;
                                    assert!(length == 0 || length == PAGE_BYTES, "{length}");
                                    assert!(page[..length].iter().all(|byte| *byte == page[0]), "a torn page");
                                    assert_eq!(size % PAGE_BYTES as u64, 0);
                                }
                            }
                        }
                        if round % 16 == 0 {
                            instance.fs.maintain(&core, &Yield);
                        }
                    }
                });
            }
        });
        let verbs = instance.fs.enter(&core, process, &Spin);
        let size = data::stat(&verbs, fd, Fields::SIZE).unwrap().size_bytes;
        let length = data::read_at(&verbs, fd, &mut vec![0; 40 * PAGE_BYTES], 0).unwrap();
        assert_eq!(length as u64, size, "the array ends where the size says");
        names::unlink(&*verbs, AT, b"a").unwrap();
        drop(verbs);
        owned.exit(instance.fs, &core, &Spin);
    });
}

#[test]
fn appends_keep_out_of_each_other() {
    const ROUNDS: u8 = 120;
    with_instance(64, |instance| {
        let core = instance.core(3);
        let process = instance.process(&core);
        let append = DescriptorOptions { status: StatusFlags::APPEND, ..PLAIN };
        let fd = data::open(&instance.fs.enter(&core, &process, &Spin), AT, b"a", CREATE, 0o600, append).unwrap();
        let owned = process;
        let process = &owned;
        std::thread::scope(|scope| {
            for number in 0..2_u8 {
                scope.spawn(move || {
                    let core = instance.core(number.into());
                    for round in 0..ROUNDS {
                        let verbs = instance.fs.enter(&core, process, &Yield);
                        assert_eq!(data::write_at(&verbs, fd, &[number, round, 7], 0), Ok(3));
                    }
                });
            }
        });
        let verbs = instance.fs.enter(&core, process, &Spin);
        let mut bytes = [0; 1000];
        assert_eq!(data::read_at(&verbs, fd, &mut bytes, 0), Ok(6 * usize::from(ROUNDS)));
        let mut next = [0; 2];
        for record in bytes[..6 * usize::from(ROUNDS)].chunks(3) {
            assert_eq!((record[1], record[2]), (next[usize::from(record[0])], 7), "a record was overwritten");
            next[usize::from(record[0])] += 1;
        }
        names::unlink(&*verbs, AT, b"a").unwrap();
        drop(verbs);
        owned.exit(instance.fs, &core, &Spin);
    });
}

#[test]
fn pipes_lose_no_byte_and_end_when_the_last_writer_closes() {
    const RECORDS: u32 = 1_000;
    with_instance(64, |instance| {
        let core = instance.core(3);
        let process = instance.process(&core);
        let (read_end, first) = data::pipe(&instance.fs.enter(&core, &process, &Spin), PLAIN).unwrap();
        let second =
            data::duplicate(&instance.fs.enter(&core, &process, &Spin), first, NumberChoice::Any, OnExec::Keep)
                .unwrap();
        let owned = process;
        let process = &owned;
        std::thread::scope(|scope| {
            for (number, fd) in [first, second].into_iter().enumerate() {
                scope.spawn(move || {
                    let core = instance.core(number);
                    let calls = ProcessCalls { file_system: instance.fs, core: &core, process, host: &Yield };
                    for record in 0..RECORDS {
                        // Of odd lengths, so that records share pages and begin new ones.
                        let length = 9 + record as usize * 37 % 90;
                        let mut bytes = vec![number as u8; length];
                        bytes[..4].copy_from_slice(&record.to_le_bytes());
                        bytes[4] = length as u8;
                        let written = data::write_waiting(&calls, fd, &bytes);
                        assert_eq!(written, Ok(length));
                    }
                    data::close(&instance.fs.enter(&core, process, &Yield), fd).unwrap();
                });
            }
            scope.spawn(move || {
                let core = instance.core(2);
                let calls = ProcessCalls { file_system: instance.fs, core: &core, process, host: &Yield };
                let (mut stream, mut next) = (Vec::new(), [0_u32; 2]);
                loop {
                    let mut bytes = [0; 700];
                    let read = data::read_waiting(&calls, read_end, &mut bytes).unwrap();
                    if read == 0 {
                        break;
                    }
                    stream.extend_from_slice(&bytes[..read]);
                    while stream.len() >= 5 && stream.len() >= usize::from(stream[4]) {
                        let record: Vec<u8> = stream.drain(..usize::from(stream[4])).collect();
                        let writer = usize::from(record[5]);
                        assert_eq!(record[..4], next[writer].to_le_bytes(), "writer {writer}");
                        assert!(record[5..].iter().all(|byte| usize::from(*byte) == writer), "records are mixed");
                        next[writer] += 1;
                    }
                }
                assert_eq!((next, stream.len()), ([RECORDS; 2], 0));
            });
        });
        owned.exit(instance.fs, &core, &Spin);
    });
}

#[test]
fn descriptors_may_be_closed_in_the_middle_of_calls() {
    const ROUNDS: usize = 600;
    with_instance(64, |instance| {
        let core = instance.core(3);
        let process = instance.process(&core);
        let owned = process;
        let process = &owned;
        std::thread::scope(|scope| {
            let closer = Arc::new(scope.spawn(move || {
                let core = instance.core(0);
                for round in 0..ROUNDS {
                    {
                        let verbs = instance.fs.enter(&core, process, &Yield);
                        let fd = data::open(&verbs, AT, b"a", CREATE, 0o600, PLAIN).unwrap();
                        let copy = data::duplicate(&verbs, fd, NumberChoice::LowestFrom(0), OnExec::Keep).unwrap();
                        let _ = names::unlink(&*verbs, AT, b"a");
                        data::close(&verbs, fd).unwrap();
                        data::close(&verbs, copy).unwrap();
                    }
                    if round % 8 == 0 {
                        instance.fs.maintain(&core, &Yield);
                    }
                }
            }));
            for number in 1..3 {
                let closer = Arc::clone(&closer);
                scope.spawn(move || {
                    let core = instance.core(number);
                    let mut round = 0;
                    while !closer.is_finished() {
                        round += 1;
                        {
                            let verbs = instance.fs.enter(&core, process, &Yield);
                            let outcomes = [
                                data::write(&verbs, round % 2, b"bytes").map(|_| 0),
                                data::stat(&verbs, round % 2, Fields::ALL).map(|stat| stat.link_count),
                                data::seek(&verbs, round % 2, 0, Whence::Start).map(|_| 0),
                            ];
                            for outcome in outcomes {
                                assert!(
                                    matches!(outcome, Ok(0 | 1) | Err(Errno::EBADF | Errno::ENOSPC)),
                                    "{outcome:?}"
                                );
                            }
                        }
                        if round % 8 == 0 {
                            instance.fs.maintain(&core, &Yield);
                        }
                    }
                });
            }
        });
        owned.exit(instance.fs, &core, &Spin);
    });
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize, u8, usize),
    Read(usize, usize),
    Truncate(usize),
    Maintain,
}

fn step() -> impl Strategy<Value = Step> {
    let offset = || prop_oneof![0..9_000_usize, Just(4096), Just(8192), 60_000..80_000_usize];
    let length = || prop_oneof![0..9_000_usize, Just(4096)];
    prop_oneof![
        4 => (offset(), 1..255_u8, length()).prop_map(|(offset, byte, length)| Step::Write(offset, byte, length)),
        3 => (offset(), length()).prop_map(|(offset, length)| Step::Read(offset, length)),
        2 => offset().prop_map(Step::Truncate),
        1 => Just(Step::Maintain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// A file against a plain sequence of bytes; every third step has only so many allocations.
    #[test]
    fn a_file_follows_the_model(steps in proptest::collection::vec((step(), 0..4_u32), 0..40)) {
        with_instance(200, |instance| {
            let core = instance.core(1);
            let process = instance.process(&core);
            let fd = data::open(&instance.fs.enter(&core, &process, &Spin), AT, b"a", CREATE, 0o600, PLAIN).unwrap();
            let mut model: Vec<u8> = Vec::new();
            for (number, (step, allowed)) in steps.into_iter().enumerate() {
                if let Step::Maintain = step {
                    instance.fs.maintain(&core, &Spin);
                    continue;
                }
                let verbs = instance.fs.enter(&core, &process, &Spin);
                core.fail_allocations_after((number % 3 == 2).then_some(allowed));
                match step {
                    Step::Write(offset, byte, length) => {
                        let written = data::write_at(&verbs, fd, &vec![byte; length], offset as i64);
                        let count = written.unwrap_or_else(|error| {
                            assert_eq!(error, Errno::ENOSPC);
                            0
                        });
                        assert!(count == length || number % 3 == 2, "{count} of {length}");
                        if count > 0 {
                            model.resize(model.len().max(offset + count), 0);
                            model[offset..offset + count].fill(byte);
                        }
                    }
                    Step::Read(offset, length) => {
                        let mut bytes = vec![0xee; length];
                        let read = data::read_at(&verbs, fd, &mut bytes, offset as i64).unwrap();
                        let expected = model.get(offset..).unwrap_or_default();
                        assert_eq!(bytes[..read], expected[..length.min(expected.len())]);
                    }
                    Step::Truncate(size) => match data::truncate(&verbs, fd, size as i64) {
                        Ok(()) => model.resize(size, 0),
                        Err(error) => assert_eq!((error, number % 3), (Errno::ENOSPC, 2)),
                    },
                    Step::Maintain => {}
                }
                core.fail_allocations_after(None);
                assert_eq!(data::stat(&verbs, fd, Fields::SIZE).unwrap().size_bytes, model.len() as u64);
            }
            let verbs = instance.fs.enter(&core, &process, &Spin);
            let mut bytes = vec![0; 100_000];
            let length = data::read_at(&verbs, fd, &mut bytes, 0).unwrap();
            assert_eq!(bytes[..length], model);
            names::unlink(&*verbs, AT, b"a").unwrap();
            drop(verbs);
            process.exit(instance.fs, &core, &Spin);
        });
    }
}
