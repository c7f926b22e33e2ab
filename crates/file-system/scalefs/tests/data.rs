//! Descriptors, data and pipes on one core, with what fails; several threads; nothing lost in the end.
#![cfg(not(loom))]

mod instance;

use instance::{Instance, with_instance};
use pages::PAGE_BYTES;
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::names::{self};
use scalefs::{
    Clocked, DESCRIPTOR_LIMIT, DataOperations, Errno, Fields, InProcess, NumberChoice, OnExec, OpenFlags, Start,
    StatusFlags,
};
use sync::Spin;

const PAGE: i64 = PAGE_BYTES as i64;
const PLAIN: DescriptorOptions = DescriptorOptions::PLAIN;

fn open<D: DataOperations>(verbs: &D, name: &[u8], flags: OpenFlags) -> Result<u32, Errno> {
    data::open(verbs, Start::WorkingDirectory, name, flags, 0o600, PLAIN)
}

fn create<D: DataOperations>(verbs: &D, name: &[u8]) -> u32 {
    open(verbs, name, OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE).unwrap()
}

fn contents<D: DataOperations>(verbs: &D, fd: u32) -> Vec<u8> {
    let mut bytes = vec![0xee; 1 << 17];
    let length = data::read_at(verbs, fd, &mut bytes, 0).unwrap();
    bytes.truncate(length);
    bytes
}

fn size<D: DataOperations>(verbs: &D, fd: u32) -> u64 {
    data::stat(verbs, fd, Fields::SIZE).unwrap().size_bytes
}

/// Runs a test in one process on one core.
fn alone(page_count: u32, test: impl FnOnce(&InProcess<Spin>)) {
    with_instance(page_count, |instance| {
        let core = instance.core(1);
        let process = instance.process(&core);
        test(&instance.fs.enter(&core, &process, &Spin));
        process.exit(instance.fs, &core, &Spin);
        let root = instance.process(&core);
        let verbs = instance.fs.enter(&core, &root, &Spin);
        for name in [b"a", b"b"] {
            let _ = names::unlink(verbs.objects(), Start::WorkingDirectory, name);
        }
        drop(verbs);
        root.exit(instance.fs, &core, &Spin);
    });
}

/// `lseek` looks at the reach alone where it can, and whoever reads many bytes may have to tell of them first.
#[test]
fn the_reach_of_an_offset_falls_if_it_has_not_moved_so_far() {
    alone(64, |verbs| {
        let fd = create(verbs, b"a");
        let may_reach = |bytes| verbs.may_reach(verbs.description(fd).unwrap().expect("open"), bytes).unwrap();
        data::write(verbs, fd, &[1; 10]).unwrap();
        assert!(may_reach(10) && !may_reach(2 * PAGE as u64));
        data::seek(verbs, fd, 0, Whence::Start).unwrap();
        assert_eq!(data::read(verbs, fd, &mut [0; 16 * PAGE_BYTES]), Ok(10));
        assert!(may_reach(10) && !may_reach(2 * PAGE as u64), "it has not come to 16 pages");
    });
}

#[test]
fn data_comes_back_whatever_its_place() {
    alone(64, |verbs| {
        let fd = create(verbs, b"a");
        let mut model = vec![0; 0];
        for (round, (offset, length)) in
            [(0, 5), (3, 4096), (4090, 12), (20_000, 1), (8192, 4096), (8191, 4098), (100, 20_000)]
                .into_iter()
                .enumerate()
        {
            let bytes = vec![round as u8 + 1; length];
            assert_eq!(data::write_at(verbs, fd, &bytes, offset as i64), Ok(length));
            model.resize(model.len().max(offset + length), 0);
            model[offset..offset + length].copy_from_slice(&bytes);
            assert_eq!(contents(verbs, fd), model, "round {round}");
            assert_eq!(size(verbs, fd), model.len() as u64);
        }
        for size_bytes in [20_099, 20_000, 12_288, 12_289, 4097, 4096, 30_000, 4095, 1, 5, 0, 4096, 0] {
            data::truncate(verbs, fd, size_bytes).unwrap();
            model.resize(size_bytes as usize, 0);
            assert_eq!(contents(verbs, fd), model, "{size_bytes}");
            assert_eq!(size(verbs, fd), model.len() as u64);
        }
    });
}

#[test]
fn the_offset_moves_with_reads_and_writes() {
    alone(64, |verbs| {
        let fd = create(verbs, b"a");
        assert_eq!(data::write(verbs, fd, b"hello"), Ok(5));
        assert_eq!(data::read(verbs, fd, &mut [0; 9]), Ok(0));
        assert_eq!(data::seek(verbs, fd, 1, Whence::Start), Ok(1));
        let mut bytes = [0; 9];
        assert_eq!(data::read(verbs, fd, &mut bytes[..2]), Ok(2));
        assert_eq!(&bytes[..2], b"el");
        assert_eq!(data::seek(verbs, fd, 0, Whence::Current), Ok(3));
        assert_eq!(data::seek(verbs, fd, -1, Whence::End), Ok(4));
        assert_eq!(data::seek(verbs, fd, -5, Whence::Current), Err(Errno::EINVAL));
        assert_eq!(data::seek(verbs, fd, i64::MAX, Whence::Current), Err(Errno::EINVAL));
        assert_eq!(data::seek(verbs, fd, 3 * PAGE, Whence::Start), Ok(3 * PAGE as u64));
        assert_eq!(size(verbs, fd), 5, "lseek extends nothing");
        assert_eq!(data::write(verbs, fd, b"x"), Ok(1));
        assert_eq!(contents(verbs, fd).len(), 3 * PAGE_BYTES + 1);
        data::set_status(verbs, fd, StatusFlags::APPEND).unwrap();
        assert_eq!(data::seek(verbs, fd, 0, Whence::Start), Ok(0));
        assert_eq!(data::write(verbs, fd, b"yz"), Ok(2));
        assert_eq!(data::seek(verbs, fd, 0, Whence::Current), Ok(3 * PAGE as u64 + 3));
    });
}

#[test]
fn numbers_are_the_lowest_or_the_cores_own() {
    alone(8, |verbs| {
        let any = DescriptorOptions { number: NumberChoice::Any, ..PLAIN };
        assert_eq!([create(verbs, b"a"), create(verbs, b"a"), create(verbs, b"a")], [0, 1, 2]);
        data::close(verbs, 1).unwrap();
        assert_eq!(data::close(verbs, 1), Err(Errno::EBADF));
        assert_eq!(create(verbs, b"a"), 1);
        assert_eq!(data::duplicate(verbs, 0, NumberChoice::LowestFrom(7), OnExec::Keep), Ok(7));
        assert_eq!(data::duplicate_to(verbs, 0, 3, OnExec::Close), Ok(3));
        assert_eq!(data::duplicate_to(verbs, 9, 3, OnExec::Close), Err(Errno::EBADF));
        assert_eq!(data::duplicate_to(verbs, 0, DESCRIPTOR_LIMIT, OnExec::Close), Err(Errno::EBADF));
        assert_eq!(verbs.duplicate_over(0, 4, OnExec::Close), Ok(false));
        assert_eq!(data::close(verbs, 4), Err(Errno::EBADF), "what is free stays so");
        assert_eq!(verbs.duplicate_over(9, 3, OnExec::Close), Err(Errno::EBADF));
        assert_eq!(verbs.duplicate_over(1, 3, OnExec::Keep), Ok(true));
        assert_eq!(data::on_exec(verbs, 3), Ok(OnExec::Keep));
        let flags = OpenFlags::READ;
        let numbers = [0, 1].map(|_| data::open(verbs, Start::WorkingDirectory, b"a", flags, 0, any).unwrap());
        assert_eq!(numbers, [2 * DESCRIPTOR_LIMIT, 2 * DESCRIPTOR_LIMIT + 1], "core 1's own");
        data::close(verbs, numbers[0]).unwrap();
        assert_eq!(data::open(verbs, Start::WorkingDirectory, b"a", flags, 0, any), Ok(numbers[0]));
        // Shared by descriptors of one description.
        assert_eq!(data::write(verbs, 0, b"12"), Ok(2));
        assert_eq!(data::seek(verbs, 7, 0, Whence::Current), Ok(2));
        assert_eq!(data::seek(verbs, 1, 0, Whence::Current), Ok(0));
    });
}

#[test]
fn fork_and_exec_copy_and_close_descriptors() {
    with_instance(8, |instance| {
        let (core, other) = (instance.core(1), instance.core(2));
        let process = instance.process(&core);
        {
            let verbs = instance.fs.enter(&core, &process, &Spin);
            assert_eq!(create(&verbs, b"a"), 0);
            assert_eq!(data::pipe(&verbs, PLAIN), Ok((1, 2)));
            data::set_on_exec(&verbs, 0, OnExec::Close).unwrap();
            names::unlink(verbs.objects(), Start::WorkingDirectory, b"a").unwrap();
        }
        let child = process.fork(instance.fs, &core, &Spin).unwrap();
        {
            let verbs = instance.fs.enter(&core, &process, &Spin);
            assert_eq!(data::write(&verbs, 0, b"unlinked"), Ok(8));
            for fd in 0..3 {
                data::close(&verbs, fd).unwrap();
            }
        }
        {
            let verbs = instance.fs.enter(&other, &child, &Spin);
            assert_eq!(contents(&verbs, 0), b"unlinked");
            assert_eq!(data::write(&verbs, 2, b"x"), Ok(1), "the child reads the pipe");
            data::close(&verbs, 1).unwrap();
            assert_eq!(data::write(&verbs, 2, b"x"), Err(Errno::EPIPE));
        }
        child.exec(instance.fs, &other, &Spin);
        let mut open = Vec::new();
        child.for_each_descriptor(instance.fs, &other, |fd| open.push(fd));
        assert_eq!(open, [2]);
        child.exit(instance.fs, &other, &Spin);
        process.exit(instance.fs, &core, &Spin);
    });
}

#[test]
fn pipes_hold_sixteen_pages_and_tell_when_an_end_has_gone() {
    alone(64, |verbs| {
        let (read, write) = data::pipe(verbs, PLAIN).unwrap();
        let mut bytes = vec![0; 1 << 17];
        assert_eq!(data::read(verbs, read, &mut bytes), Err(Errno::EAGAIN));
        assert_eq!(data::write(verbs, read, b"x"), Err(Errno::EBADF));
        assert_eq!(data::read(verbs, write, &mut bytes), Err(Errno::EBADF));
        assert_eq!(data::read_at(verbs, write, &mut bytes, 0), Err(Errno::ESPIPE));
        assert_eq!(data::seek(verbs, read, 0, Whence::Start), Err(Errno::ESPIPE));
        for part in [&b"abc"[..], b"defg", &[7; 5000], &[8; 4096]] {
            assert_eq!(data::write(verbs, write, part), Ok(part.len()));
        }
        assert_eq!(data::read(verbs, read, &mut bytes[..4]), Ok(4));
        assert_eq!(&bytes[..4], b"abcd");
        assert_eq!(data::read(verbs, read, &mut bytes), Ok(3 + 5000 + 4096));
        assert_eq!((&bytes[..3], bytes[3], bytes[5003]), (&b"efg"[..], 7, 8));
        assert_eq!(data::write(verbs, write, &bytes), Ok(16 * PAGE_BYTES), "as much as fits");
        assert_eq!(data::write(verbs, write, b"x"), Err(Errno::EAGAIN));
        assert_eq!(data::read(verbs, read, &mut bytes[..PAGE_BYTES]), Ok(PAGE_BYTES));
        assert_eq!(data::write(verbs, write, &[0; PAGE_BYTES]), Ok(PAGE_BYTES));
        let second = data::duplicate(verbs, write, NumberChoice::LowestFrom(0), OnExec::Keep).unwrap();
        data::close(verbs, write).unwrap();
        assert_eq!(data::read(verbs, read, &mut bytes), Ok(16 * PAGE_BYTES));
        assert_eq!(data::read(verbs, read, &mut bytes), Err(Errno::EAGAIN), "a writer is left");
        data::close(verbs, second).unwrap();
        assert_eq!(data::read(verbs, read, &mut bytes), Ok(0));
    });
}

#[test]
fn a_full_file_system_says_so_and_loses_nothing() {
    alone(5, |verbs| {
        let fd = create(verbs, b"a");
        assert_eq!(data::write(verbs, fd, &[1; 6 * PAGE_BYTES]), Ok(5 * PAGE_BYTES), "as much as there is room for");
        assert_eq!(data::write(verbs, fd, &[1]), Err(Errno::ENOSPC));
        assert_eq!(data::write_at(verbs, fd, &[2; 10], 4000), Ok(10), "what is there can be written");
        assert_eq!(size(verbs, fd), 5 * PAGE as u64);
        assert_eq!(data::truncate(verbs, fd, 100 * PAGE), Ok(()), "a hole needs no page");
        assert_eq!(data::write_at(verbs, fd, &[2; 10], 50 * PAGE), Err(Errno::ENOSPC));
        assert_eq!(data::truncate(verbs, fd, 4001), Ok(()));
        assert_eq!(contents(verbs, fd)[3999..], [1, 2]);
    });
}

#[test]
fn bad_offsets_and_descriptors_are_refused() {
    alone(8, |verbs| {
        let fd = create(verbs, b"a");
        let read_only = open(verbs, b"a", OpenFlags::READ).unwrap();
        let directory = open(verbs, b".", OpenFlags::READ).unwrap();
        for (outcome, errno) in [
            (data::write_at(verbs, fd, b"x", -1), Errno::EINVAL),
            (data::write_at(verbs, fd, b"x", i64::MAX), Errno::EINVAL),
            (data::read_at(verbs, fd, &mut [0], i64::MIN), Errno::EINVAL),
            (data::read_at(verbs, 77, &mut [0], 0), Errno::EBADF),
            (data::write(verbs, read_only, b"x"), Errno::EBADF),
            (data::read(verbs, directory, &mut [0]), Errno::EISDIR),
            (data::read_at(verbs, u32::MAX, &mut [0], 0), Errno::EBADF),
        ] {
            assert_eq!(outcome, Err(errno));
        }
        assert_eq!(data::truncate(verbs, fd, -1), Err(Errno::EINVAL));
        assert_eq!(data::truncate(verbs, read_only, 0), Err(Errno::EINVAL));
        assert_eq!(data::read_at(verbs, fd, &mut [0], i64::MAX - 1), Ok(0));
        // The last page that there can be.
        assert_eq!(data::write_at(verbs, fd, b"x", i64::MAX - 1), Ok(1));
        assert_eq!(size(verbs, fd), i64::MAX as u64);
        assert_eq!(data::write_at(verbs, fd, b"x", i64::MAX - PAGE), Ok(1));
        assert_eq!(data::seek(verbs, fd, 1, Whence::End), Err(Errno::EINVAL));
    });
}

/// Marks say in one word what a number may be open for. While `dup2` exchanges the end of a pipe for a file, a call must
/// meet the one or the other, never "not open for this": that would be the mark of the one with the table of the other.
#[test]
fn a_number_that_is_exchanged_is_always_open_for_something() {
    const ROUNDS: usize = 3_000;
    with_instance(8, |instance| {
        let core = instance.core(1);
        let owned = instance.process(&core);
        let process = &owned;
        let verbs = instance.fs.enter(&core, process, &Spin);
        let file = create(&verbs, b"a");
        data::write_at(&verbs, file, b"x", 0).unwrap();
        let (pipe, number) = data::pipe(&verbs, PLAIN).unwrap();
        let writer = data::duplicate(&verbs, number, NumberChoice::LowestFrom(10), OnExec::Keep).unwrap();
        drop(verbs);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let core = instance.core(2);
                let (mut files, mut pipes) = (0, 0);
                for round in 0..ROUNDS {
                    let verbs = instance.fs.enter(&core, process, &Spin);
                    match data::read_at(&verbs, number, &mut [0], 0) {
                        Ok(1) => files += 1,
                        Err(Errno::ESPIPE) => pipes += 1,
                        other => panic!("round {round}: {other:?}"),
                    }
                    assert_eq!(data::read(&verbs, writer, &mut [0]), Err(Errno::EBADF));
                }
                (files, pipes)
            });
            for round in 0.. {
                if reader.is_finished() {
                    break;
                }
                let verbs = instance.fs.enter(&core, process, &Spin);
                let leader = if round % 2 == 0 { file } else { writer };
                data::duplicate_to(&verbs, leader, number, OnExec::Keep).unwrap();
                drop(verbs);
                instance.fs.maintain(&core, &Spin);
            }
            let (files, pipes) = reader.join().unwrap();
            assert_eq!(files + pipes, ROUNDS);
        });
        let verbs = instance.fs.enter(&core, process, &Spin);
        data::duplicate_to(&verbs, pipe, number, OnExec::Keep).unwrap();
        assert_eq!(data::write(&verbs, number, b"x"), Err(Errno::EBADF), "the mark of the end that was here has gone");
        names::unlink(verbs.objects(), Start::WorkingDirectory, b"a").unwrap();
        drop(verbs);
        owned.exit(instance.fs, &core, &Spin);
    });
}

#[test]
fn seeking_from_the_end_asks_where_the_file_ends() {
    alone(8, |verbs| {
        let fd = create(verbs, b"a");
        for length in [0, 1, 4095, 4096, 4097, 9000] {
            data::truncate(verbs, fd, length).unwrap();
            for back in [0, 1, 4095, 4096, 4097, 8999, 9000, 9001, i64::MAX] {
                let expected = u64::try_from(length - back).map_err(|_| Errno::EINVAL);
                assert_eq!(data::seek(verbs, fd, -back, Whence::End), expected, "{back} before the end of {length}");
            }
            assert_eq!(data::seek(verbs, fd, i64::MIN, Whence::End), Err(Errno::EINVAL));
        }
        data::truncate(verbs, fd, 0).unwrap();
        data::write_at(verbs, fd, b"behind a hole", 9000).unwrap();
        assert_eq!(data::seek(verbs, fd, -9013, Whence::End), Ok(0));
        assert_eq!(data::seek(verbs, fd, -9014, Whence::End), Err(Errno::EINVAL));
    });
}

/// Memory runs out at each allocation of each call in turn: the call says so, and `with_instance` finds nothing lost.
#[test]
fn a_call_without_memory_leaves_nothing_behind() {
    type Call = fn(&Instance, &percpu::Core, &scalefs::Process) -> Result<(), Errno>;
    let calls: [(&str, Call); 6] = [
        ("open", |instance, core, process| {
            let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
            open(&instance.fs.enter(core, process, &Spin), b"new", flags).map(drop)
        }),
        ("dup to a far number", |instance, core, process| {
            let verbs = instance.fs.enter(core, process, &Spin);
            data::duplicate(&verbs, 0, NumberChoice::LowestFrom(5000), OnExec::Keep).map(drop)
        }),
        ("dup2", |instance, core, process| {
            data::duplicate_to(&instance.fs.enter(core, process, &Spin), 0, 7000, OnExec::Keep).map(drop)
        }),
        ("pipe", |instance, core, process| data::pipe(&instance.fs.enter(core, process, &Spin), PLAIN).map(drop)),
        ("write", |instance, core, process| {
            data::write_at(&instance.fs.enter(core, process, &Spin), 0, b"x", 100 * PAGE).map(drop)
        }),
        ("fork", |instance, core, process| {
            process.fork(instance.fs, core, &Spin).map(|child| child.exit(instance.fs, core, &Spin))
        }),
    ];
    for (name, call) in calls {
        let mut failures = 0;
        for allowed in 0.. {
            let mut ended = false;
            with_instance(8, |instance| {
                let core = instance.core(1);
                let process = instance.process(&core);
                create(&instance.fs.enter(&core, &process, &Spin), b"a");
                core.fail_allocations_after(Some(allowed));
                let outcome = call(instance, &core, &process);
                core.fail_allocations_after(None);
                match outcome {
                    Ok(()) => ended = true,
                    Err(Errno::ENOMEM | Errno::ENOSPC) => failures += 1,
                    Err(errno) => panic!("{name} with {allowed} allocations: {errno:?}"),
                }
                process.exit(instance.fs, &core, &Spin);
                let root = instance.process(&core);
                let verbs = instance.fs.enter(&core, &root, &Spin);
                for file in [&b"a"[..], b"new"] {
                    let _ = names::unlink(verbs.objects(), Start::WorkingDirectory, file);
                }
                drop(verbs);
                root.exit(instance.fs, &core, &Spin);
            });
            if ended {
                break;
            }
        }
        assert!(failures > 0, "{name} allocates");
    }
}

/// Limits as Linux has them: a pipe's last slot takes bytes up to its last one; offsets go back as far as they went; a range may
/// end at the largest size; nothing is written to a pipe that nobody reads.
#[test]
fn what_just_fits_is_not_refused() {
    alone(64, |verbs| {
        let nonblocking = DescriptorOptions { status: StatusFlags::NONBLOCK, ..PLAIN };
        let (reader, writer) = data::pipe(verbs, nonblocking).unwrap();
        for (length, written) in [(15 * PAGE_BYTES, Ok(15 * PAGE_BYTES)), (PAGE_BYTES - 1, Ok(PAGE_BYTES - 1))] {
            assert_eq!(data::write(verbs, writer, &vec![1; length]), written);
        }
        assert_eq!(data::write(verbs, writer, &[1]), Ok(1), "the last byte of 65,536");
        assert_eq!(data::write(verbs, writer, &[1]), Err(Errno::EAGAIN));
        data::close(verbs, reader).unwrap();
        assert_eq!(data::write(verbs, writer, &[]), Ok(0), "Linux: pipe_write, a null write succeeds");
        assert_eq!(data::write(verbs, writer, &[1]), Err(Errno::EPIPE));
        data::close(verbs, writer).unwrap();

        let fd = create(verbs, b"a");
        for power in 0..40 {
            assert_eq!(data::seek(verbs, fd, 1 << power, Whence::Start), Ok(1 << power));
            assert_eq!(data::seek(verbs, fd, -(1 << power), Whence::Current), Ok(0), "2 to the {power}");
        }
        assert_eq!(data::read_at(verbs, fd, &mut [0], i64::MAX - 1), Ok(0));
        assert_eq!(data::write_at(verbs, fd, &[7], i64::MAX - 1), Ok(1));
        assert_eq!(size(verbs, fd), i64::MAX as u64);
        data::truncate(verbs, fd, 0).unwrap();
    });
}

/// A page that nobody has written is zeros, whatever the reader's buffer held.
#[test]
fn a_page_that_was_never_written_is_zeros() {
    alone(64, |verbs| {
        let fd = create(verbs, b"a");
        data::write_at(verbs, fd, &[7], 2 * PAGE).unwrap();
        let mut bytes = vec![0xee; 2 * PAGE_BYTES + 1];
        assert_eq!(data::read_at(verbs, fd, &mut bytes, 0), Ok(2 * PAGE_BYTES + 1));
        assert!(bytes[..2 * PAGE_BYTES].iter().all(|byte| *byte == 0) && bytes[2 * PAGE_BYTES] == 7);
        data::truncate(verbs, fd, 0).unwrap();
    });
}

/// Who finds no number keeps nothing: the other end of a pipe is told that the last writer has gone.
#[test]
fn a_copy_that_finds_no_number_is_not_counted() {
    alone(64, |verbs| {
        let nonblocking = DescriptorOptions { status: StatusFlags::NONBLOCK, ..PLAIN };
        let (reader, writer) = data::pipe(verbs, nonblocking).unwrap();
        let last = || data::duplicate(verbs, writer, NumberChoice::LowestFrom(DESCRIPTOR_LIMIT - 1), OnExec::Keep);
        let copy = last().unwrap();
        assert_eq!(last(), Err(Errno::EMFILE));
        data::close(verbs, copy).unwrap();
        data::close(verbs, writer).unwrap();
        assert_eq!(data::read(verbs, reader, &mut [0]), Ok(0));
    });
}

/// POSIX: what changes data marks the times of modification and of change; what changes none, or fails, leaves both.
#[test]
fn changes_of_data_mark_times() {
    with_instance(64, |instance| {
        let clock = std::cell::Cell::new(100);
        let host = Clocked { wait: Spin, clock: || clock.replace(clock.get() + 100) };
        let core = instance.core(1);
        let process = instance.process(&core);
        let verbs = instance.fs.enter(&core, &process, &host);
        let status = |status| DescriptorOptions { status, ..PLAIN };
        let open = |flags, options| data::open(&verbs, Start::WorkingDirectory, b"a", flags, 0o644, options).unwrap();
        let fd = open(OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE, PLAIN);
        let appender = open(OpenFlags::WRITE, status(StatusFlags::APPEND));
        let (reader, writer) = data::pipe(&verbs, status(StatusFlags::NONBLOCK)).unwrap();
        let times = |fd| data::stat(&verbs, fd, Fields::TIMES).map(|seen| [seen.modified_ns, seen.changed_ns]).unwrap();
        let marks = |fd, change: &dyn Fn()| {
            let before = times(fd);
            change();
            times(fd).iter().zip(before).all(|(now, before)| *now > before)
        };
        let leaves = |fd, call: &dyn Fn()| {
            let before = times(fd);
            call();
            times(fd) == before
        };
        assert!(marks(fd, &|| assert_eq!(data::write(&verbs, fd, b"abc"), Ok(3))), "write");
        assert!(marks(fd, &|| assert_eq!(data::write_at(&verbs, fd, b"d", 1), Ok(1))), "pwrite");
        assert!(marks(fd, &|| assert_eq!(data::write(&verbs, appender, b"e"), Ok(1))), "append");
        assert!(marks(fd, &|| assert_eq!(data::truncate(&verbs, fd, 9), Ok(()))), "extend");
        assert!(marks(fd, &|| assert_eq!(data::truncate(&verbs, fd, 2), Ok(()))), "cut");
        let emptied = || data::close(&verbs, open(OpenFlags::WRITE | OpenFlags::TRUNCATE, PLAIN)).unwrap();
        assert!(marks(fd, &emptied), "O_TRUNC");
        assert!(marks(writer, &|| assert_eq!(data::write(&verbs, writer, b"p"), Ok(1))), "write to a pipe");
        assert!(leaves(fd, &|| assert_eq!(data::write(&verbs, fd, b""), Ok(0))), "no byte");
        assert!(leaves(fd, &|| assert_eq!(data::write(&verbs, appender, b""), Ok(0))), "no byte behind the end");
        assert!(leaves(fd, &|| assert_eq!(data::write_at(&verbs, fd, b"x", -1), Err(Errno::EINVAL))), "a failure");
        assert!(leaves(fd, &|| assert_eq!(data::read_at(&verbs, fd, &mut [0], 0), Ok(0))), "a read");
        [fd, appender, reader, writer].into_iter().for_each(|fd| data::close(&verbs, fd).unwrap());
        names::unlink(verbs.objects(), Start::WorkingDirectory, b"a").unwrap();
        drop(verbs);
        process.exit(instance.fs, &core, &host);
    });
}

/// What finds no page changes nothing, nor the times.
#[test]
fn a_write_without_room_leaves_the_times() {
    with_instance(1, |instance| {
        let clock = std::cell::Cell::new(100);
        let host = Clocked { wait: Spin, clock: || clock.replace(clock.get() + 100) };
        let core = instance.core(1);
        let process = instance.process(&core);
        let verbs = instance.fs.enter(&core, &process, &host);
        let fd = create(&verbs, b"a");
        let options = DescriptorOptions { status: StatusFlags::APPEND, ..PLAIN };
        let appender = data::open(&verbs, Start::WorkingDirectory, b"a", OpenFlags::WRITE, 0, options).unwrap();
        assert_eq!(data::write_at(&verbs, fd, &[1; PAGE_BYTES], 0), Ok(PAGE_BYTES));
        let times = || data::stat(&verbs, fd, Fields::TIMES).map(|seen| [seen.modified_ns, seen.changed_ns]).unwrap();
        let before = times();
        assert_eq!(data::write_at(&verbs, fd, b"x", PAGE), Err(Errno::ENOSPC));
        assert_eq!(data::write(&verbs, appender, b"x"), Err(Errno::ENOSPC));
        assert_eq!(times(), before);
        [fd, appender].into_iter().for_each(|fd| data::close(&verbs, fd).unwrap());
        names::unlink(verbs.objects(), Start::WorkingDirectory, b"a").unwrap();
        drop(verbs);
        process.exit(instance.fs, &core, &host);
    });
}

/// What the host says of both ends of a pipe that holds so many bytes, and of which one end may be gone: whether `select` calls
/// it ready for its use, and whether `poll` says that the other is gone.
#[cfg(target_os = "linux")]
fn ends_on_host(held_bytes: usize, gone: Option<usize>) -> [Option<(bool, bool)>; 2] {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, bytes that are there, and sets that live during the calls.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC), 0);
        let bytes = vec![1_u8; held_bytes];
        assert_eq!(libc::write(ends[1], bytes.as_ptr().cast(), held_bytes), held_bytes as isize);
        if let Some(gone) = gone {
            libc::close(ends[gone]);
        }
        let seen = [0, 1].map(|end| {
            if gone == Some(end) {
                return None;
            }
            let mut set: libc::fd_set = std::mem::zeroed();
            libc::FD_SET(ends[end], &raw mut set);
            let (mut read, mut write) = (std::ptr::null_mut(), std::ptr::null_mut());
            *(if end == 0 { &mut read } else { &mut write }) = &raw mut set;
            let mut at_once: libc::timeval = std::mem::zeroed();
            let count = libc::select(ends[end] + 1, read, write, std::ptr::null_mut(), &raw mut at_once);
            let mut entry = libc::pollfd { fd: ends[end], events: 0, revents: 0 };
            libc::poll(&raw mut entry, 1, 0);
            Some((count == 1, entry.revents & (libc::POLLHUP | libc::POLLERR) != 0))
        });
        for end in [0, 1].into_iter().filter(|end| gone != Some(*end)) {
            libc::close(ends[end]);
        }
        seen
    }
}

/// An end whose other one is gone is ready, as on Linux: a read finds the end there, and a write EPIPE (`POLLIN_SET` and
/// `POLLOUT_SET` in fs/select.c).
#[cfg(target_os = "linux")]
#[test]
fn ends_of_pipes_are_ready_when_select_says_so() {
    for held_bytes in [0, 1, 16 * PAGE_BYTES] {
        for gone in [None, Some(0), Some(1)] {
            alone(64, |verbs| {
                let (read, write) = data::pipe(verbs, PLAIN).unwrap();
                let bytes = vec![1; held_bytes];
                assert_eq!(data::write(verbs, write, &bytes), Ok(held_bytes));
                let ends = [read, write];
                if let Some(gone) = gone {
                    data::close(verbs, ends[gone]).unwrap();
                }
                let seen = ends.map(|end| data::poll(verbs, end).ok().map(|end| (end.is_ready, end.other_end_gone)));
                assert_eq!(seen, ends_on_host(held_bytes, gone), "{held_bytes} bytes, {gone:?} gone");
            });
        }
    }
}
