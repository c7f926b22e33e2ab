//! Several processes on one instance: an arena in memory that all map at one address, and no pointer out of it.
#![cfg(all(not(loom), target_os = "linux"))]

use std::ptr::NonNull;

use pages::PagePool;
use percpu::{Arena, ArenaConfig, AttachError, Core, OwnerId};
use scalefs::attributes::{self, Access};
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::names::{self, RenameMode};
use scalefs::{
    Attributes, Context, Credentials, Errno, Fields, Follow, MemoryOperations, OnExec, OpenFlags, PipeState, Process,
    Protection, ScaleFs, ScaleFsConfig, SpawnOptions, Start, Which, directories, processes,
};
use sync::Spin;

const SIZE_BYTES: usize = 8 << 20;
const FILES: u64 = 300;
const CHILDREN: u64 = 3;
const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const CREATE_NEW: [OpenFlags; 2] = [OpenFlags::CREATE, OpenFlags::EXCLUSIVE];

fn create(fs: &ScaleFs, core: &Core, context: &Context, path: &[u8]) -> Result<(), Errno> {
    let verbs = fs.begin(core, context, &Spin);
    let flags = CREATE_NEW[0] | CREATE_NEW[1];
    names::open(&verbs, AT, path, flags, 0o600).map(|opened| names::close(&verbs, opened.handle))
}

fn link(fs: &ScaleFs, core: &Core, context: &Context, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    names::link(&fs.begin(core, context, &Spin), (AT, old), (AT, new), Follow::Nothing)
}

fn stat(fs: &ScaleFs, core: &Core, context: &Context, path: &[u8]) -> Result<Attributes, Errno> {
    attributes::stat(&fs.begin(core, context, &Spin), AT, path, Follow::Nothing, Fields::LINK_COUNT)
}

fn access(fs: &ScaleFs, core: &Core, context: &Context, path: &[u8]) -> Result<(), Errno> {
    attributes::access(&fs.begin(core, context, &Spin), AT, path, Follow::Nothing, Access::EXISTS)
}

fn shared_memory() -> NonNull<u8> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, which nothing else uses.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), SIZE_BYTES, protection, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    NonNull::new(base.cast()).unwrap()
}

/// What a child does: no allocation from its own heap, no panic machinery, only calls and an exit code.
fn child(base: NonNull<u8>, number: u64) -> i32 {
    // SAFETY: the parent created an arena there before it made us.
    let Ok(arena) = (unsafe { Arena::attach_at(base) }) else { return 1 };
    let Ok(fs) = ScaleFs::attach(arena) else { return 5 };
    let owner = OwnerId::new(100 + number).unwrap();
    let Ok(core) = arena.claim(number as usize, owner) else { return 2 };
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    for file in 0..FILES {
        let name = [b'c', number as u8 + b'0', (file / 26) as u8 + b'a', (file % 26) as u8 + b'a'];
        if create(fs, &core, &context, &name).is_err() {
            return 3;
        }
        if link(fs, &core, &context, b"common", &[name.as_slice(), b"-link"].concat()).is_err() {
            return 4;
        }
        if file % 16 == 0 {
            fs.maintain(&core, &Spin);
        }
    }
    if number == 1 {
        // Dies without going off-line: its core stays claimed.
        std::mem::forget(core);
    }
    0
}

fn link_count(fs: &ScaleFs, core: &Core, context: &Context) -> u32 {
    stat(fs, core, context, b"common").unwrap().link_count
}

#[test]
fn processes_share_an_instance_and_outlive_each_other() {
    let base = shared_memory();
    // SAFETY: the mapping is this test's own; nothing is there yet.
    assert_eq!(unsafe { Arena::attach_at(base) }.err(), Some(AttachError::NotAnArena));
    let config = ArenaConfig { core_count: 5, chunk_bytes: 4096 };
    // SAFETY: the mapping is valid to the end of the process.
    let arena = unsafe { Arena::create_at(base, SIZE_BYTES, config) }.unwrap();
    let core = arena.claim(4, OwnerId::new(1).unwrap()).unwrap();
    let fs = ScaleFs::create(&core, ScaleFsConfig { root_bucket_count: 64, ..ScaleFsConfig::default() }).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    create(fs, &core, &context, b"common").unwrap();
    let children: Vec<libc::pid_t> = (0..CHILDREN)
        .map(|number| {
            // SAFETY: the child makes calls on the arena, and ends without running anything of its parent's.
            unsafe {
                match libc::fork() {
                    0 => libc::_exit(child(base, number)),
                    process => process,
                }
            }
        })
        .collect();
    for process in children {
        assert!(process > 0, "fork failed");
        let mut status = 0;
        // SAFETY: waits for a child of ours.
        assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
        assert_eq!(status, 0, "a child failed with {}", libc::WEXITSTATUS(status));
    }
    let expected = 1 + (CHILDREN * FILES) as u32;
    assert_eq!(link_count(fs, &core, &context), expected, "counts cached by processes that are gone are still there");
    // SAFETY: the child has been waited for.
    let heir = unsafe { arena.take_over(1, OwnerId::new(101).unwrap(), OwnerId::new(1).unwrap()) }.unwrap();
    for _ in 0..4 {
        fs.maintain(&heir, &Spin);
        fs.maintain_with_idle_cores(&core, &Spin);
    }
    assert_eq!(link_count(fs, &core, &context), expected);
    names::unlink(&fs.begin(&core, &context, &Spin), AT, b"common").unwrap();
    assert_eq!(access(fs, &heir, &context, b"common"), Err(Errno::ENOENT));
    assert_eq!(stat(fs, &heir, &context, b"c0aa-link").unwrap().link_count, expected - 1);
}

const NAMES: [&[u8]; 8] = [b"n0", b"n1", b"n2", b"n3", b"d/n0", b"d/n1", b"e/n0", b"e/n1"];

/// What a child of the next test does: changes of eight names, half of them in a directory, for ever, until killed; after
/// a while, a mark that the parent waits for.
fn restless_child(fs: &ScaleFs, core: &Core, seed: u64) -> ! {
    let context = Context::new(fs, core, Credentials::SUPERUSER);
    let mut state = seed;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut is_marked = false;
    for round in 0_u64.. {
        let (old, new) = (NAMES[next(8) as usize], NAMES[next(8) as usize]);
        let verbs = fs.begin(core, &context, &Spin);
        let mode = if next(4) == 0 { RenameMode::Exchange } else { RenameMode::Replace };
        let _ = match next(7) {
            0 => names::open(&verbs, AT, old, OpenFlags::CREATE, 0).map(|opened| names::close(&verbs, opened.handle)),
            1 => names::link(&verbs, (AT, old), (AT, new), Follow::Nothing),
            2 | 3 => names::rename(&verbs, (AT, old), (AT, new), mode),
            4 => directories::make_directory(&verbs, AT, old, 0o755),
            5 => directories::remove_directory(&verbs, AT, old),
            _ => names::unlink(&verbs, AT, old),
        };
        drop(verbs);
        if round >= 500 && !is_marked {
            is_marked = create(fs, core, &context, b"mark").is_ok(); // ENOSPC while the parent is stopped in a call
        }
        if round.is_multiple_of(32) {
            fs.maintain(core, &Spin);
        }
    }
    unreachable!("counts up for ever")
}

/// Frees all that nobody can see any more, of these cores, none of which is in a call: of a file the count of its names is
/// reviewed first, then that of its users, and then its memory waits for readers, two epochs each.
fn maintain_all(fs: &ScaleFs, cores: [&Core; 2]) {
    for _ in 0..10 {
        cores.iter().for_each(|core| fs.maintain(core, &Spin));
    }
}

#[test]
fn a_process_killed_at_any_moment_leaves_names_that_work() {
    let base = shared_memory();
    let config = ArenaConfig { core_count: 2, chunk_bytes: 4096 };
    // SAFETY: the mapping is valid to the end of the process.
    let arena = unsafe { Arena::create_at(base, SIZE_BYTES, config) }.unwrap();
    let owner = OwnerId::new(1).unwrap();
    let core = arena.claim(0, owner).unwrap();
    let config = ScaleFsConfig {
        root_bucket_count: 2,
        directory_bucket_count: 2,
        count_slots_per_core: 2,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create(&core, config).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    for directory in [b"d", b"e"] {
        directories::make_directory(&fs.begin(&core, &context, &Spin), AT, directory, 0o755).unwrap();
    }
    for round in 0..40 {
        let victim = OwnerId::new(100 + round).unwrap();
        // SAFETY: the child makes calls on the arena, and ends by a signal.
        let process = unsafe { libc::fork() };
        assert!(process >= 0, "fork failed");
        if process == 0 {
            let Ok(core) = arena.claim(1, victim) else {
                // SAFETY: ends the child without running anything of its parent's.
                unsafe { libc::_exit(1) }
            };
            restless_child(fs, &core, round)
        }
        while access(fs, &core, &context, b"mark").is_err() {
            // SAFETY: looks at a child of ours without waiting.
            let ended = unsafe { libc::waitpid(process, std::ptr::null_mut(), libc::WNOHANG) };
            assert_eq!(ended, 0, "the child ended by itself");
            std::thread::yield_now();
        }
        let mut status = 0;
        // SAFETY: kills and waits for our own child, which has stopped for good afterwards; its handle is gone.
        let heir = unsafe {
            assert_eq!(libc::kill(process, libc::SIGKILL), 0);
            assert_eq!(libc::waitpid(process, &raw mut status, 0), process);
            let heir = arena.take_over(1, victim, owner).unwrap();
            fs.repair_taken_over(&heir, &Spin);
            heir
        };
        assert!(libc::WIFSIGNALED(status));
        let mut counts = std::collections::BTreeMap::new();
        for name in NAMES {
            if let Ok(file) = stat(fs, &core, &context, name) {
                counts.entry(file.number).or_insert((0, file.link_count)).0 += 1;
            }
        }
        // A death while a delta moves leaves a count too high by it, never too low: see `refcache`.
        let whole = counts.values().all(|(names, count)| names <= count);
        assert!(whole, "round {round}: names and counts {counts:?}");
        // All that the child removed while this process was in a call is still there: if that was long, memory is full.
        maintain_all(fs, [&heir, &core]);
        // All buckets can be changed, by both cores, and directories can be moved and removed.
        names::unlink(&fs.begin(&heir, &context, &Spin), AT, b"mark").unwrap();
        for (core, other) in [(&core, &heir), (&heir, &core)] {
            for name in NAMES {
                let _ = directories::remove_directory(&fs.begin(core, &context, &Spin), AT, name);
                let _ = names::unlink(&fs.begin(other, &context, &Spin), AT, name);
                create(fs, core, &context, name).unwrap();
            }
            for (from, to) in [(&b"e"[..], &b"d/e"[..]), (b"d/e", b"e")] {
                names::rename(&fs.begin(core, &context, &Spin), (AT, from), (AT, to), RenameMode::Replace).unwrap();
                assert!(stat(fs, other, &context, &[to, b"/.."].concat()).is_ok());
            }
        }
        maintain_all(fs, [&heir, &core]);
    }
}

/// What a child of the next test does until it is killed, as the process that was handed over to it: calls on descriptors and
/// memory, and children of its own.
fn handed_over_child(fs: &ScaleFs, core: &Core, process: &Process, pipe_end: u32) -> ! {
    let call = || fs.enter(core, process, &Spin);
    for round in 0_u64.. {
        if round == 50 && data::write(&call(), pipe_end, b"hello") != Ok(5) {
            // SAFETY: ends the child without running anything of its parent's.
            unsafe { libc::_exit(2) }
        }
        let _ = data::duplicate_to(&call(), pipe_end, 20 + (round % 8) as u32, OnExec::Keep);
        let address = Address::Fixed((16 << 20) + round % 4 * 4096);
        if memory::map(&call(), address, 4096, Protection::ReadWrite, MappedObject::Anonymous).is_ok() {
            let _ = call().store((16 << 20) + round % 4 * 4096, &[1]);
        }
        if let Ok(grandchild) = process.fork(fs, core, &Spin) {
            // The others are there when it is killed.
            if round % 4 != 0 || round > 200 {
                grandchild.exit(fs, core, &Spin);
            }
        }
        let _ = data::close(&call(), 20 + (round * 5 % 8) as u32);
        fs.maintain(core, &Spin);
    }
    unreachable!("counts up for ever")
}

/// How the host's process ends that has a pipe's end, said something and was killed: its status, and whether its parent then
/// finds the pipe without writers.
fn killed_on_the_host() -> (i32, bool) {
    let mut ends = [0; 2];
    let mut byte = [0_u8];
    // SAFETY: a pipe and a child of this test's own; the child makes calls of the system alone.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let child = libc::fork();
        if child == 0 {
            libc::write(ends[1], b"h".as_ptr().cast(), 1);
            loop {
                libc::pause();
            }
        }
        assert!(child > 0, "fork failed");
        libc::close(ends[1]);
        assert_eq!(libc::read(ends[0], byte.as_mut_ptr().cast(), 1), 1);
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, libc::WNOHANG), 0, "it goes on");
        assert_eq!(libc::kill(child, libc::SIGKILL), 0);
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        let is_over = libc::read(ends[0], byte.as_mut_ptr().cast(), 1) == 0;
        libc::close(ends[0]);
        (status, is_over)
    }
}

/// Kills the host's process that runs a process of ours, at a moment of its own; its parent then sees what the host's sees.
fn a_killed_child_is_waited_for(rounds: u64) {
    let expected = killed_on_the_host();
    let base = shared_memory();
    let config = ArenaConfig { core_count: 2, chunk_bytes: 4096 };
    // SAFETY: the mapping is valid to the end of the process.
    let arena = unsafe { Arena::create_at(base, SIZE_BYTES, config) }.unwrap();
    let owner = OwnerId::new(1).unwrap();
    let core = arena.claim(0, owner).unwrap();
    // SAFETY: another such mapping, for pages alone.
    let pool = unsafe { PagePool::create(arena, shared_memory(), 512) }.unwrap();
    let config = ScaleFsConfig { root_bucket_count: 2, ..ScaleFsConfig::default() };
    let fs = ScaleFs::create_with_pages(&core, pool, config).unwrap();
    let process = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    let call = || fs.enter(&core, &process, &Spin);
    let mut lost = 0;
    for round in 0..rounds {
        let (reads, writes) = data::pipe(&call(), DescriptorOptions::PLAIN).unwrap();
        let spawned = processes::spawn(&call(), &[], SpawnOptions::default()).unwrap();
        let number = spawned.number();
        let runner = OwnerId::new(100 + round).unwrap();
        let handed_over = spawned.hand_over(fs, runner);
        assert!(fs.receive(&core, handed_over, &Spin).is_none(), "it is another's");
        // SAFETY: the child makes calls on the arena, and ends by a signal.
        let host_process = unsafe { libc::fork() };
        assert!(host_process >= 0, "fork failed");
        if host_process == 0 {
            let received = arena.claim(1, runner).ok().and_then(|core| {
                let received = fs.receive(&core, handed_over, &Spin)?;
                fs.receive(&core, handed_over, &Spin).is_none().then_some((core, received))
            });
            match received {
                Some((core, received)) => handed_over_child(fs, &core, &received, writes),
                // SAFETY: ends the child without running anything of its parent's.
                None => unsafe { libc::_exit(1) },
            }
        }
        data::close(&call(), writes).unwrap();
        let mut bytes = [0; 8];
        let mut status = 0;
        while data::poll(&call(), reads).unwrap() == (PipeState { is_ready: false, other_end_gone: false }) {
            // SAFETY: looks at a child of ours without waiting.
            let ended = unsafe { libc::waitpid(host_process, &raw mut status, libc::WNOHANG) };
            assert_eq!(ended, 0, "the child ended by itself, with status {status:#x}");
            std::thread::yield_now();
        }
        assert_eq!(data::read(&call(), reads, &mut bytes), Ok(5));
        // Some other moment of its work each time.
        (0..round * 37 % 101).for_each(|_| std::thread::yield_now());
        // SAFETY: kills and waits for our own child, which has stopped for good afterwards, with its one core.
        let heir = unsafe {
            assert_eq!(libc::kill(host_process, libc::SIGKILL), 0);
            assert_eq!(libc::waitpid(host_process, &raw mut status, 0), host_process);
            let heir = arena.take_over(1, runner, owner).unwrap();
            fs.repair_taken_over(&heir, &Spin);
            assert_eq!(processes::wait(&call(), Which::Child(number)), Ok(None), "nobody has ended it yet");
            fs.end_processes_of(&core, runner, &[&heir], &Spin);
            heir
        };
        let waited = processes::wait(&call(), Which::Any).unwrap();
        let (child, ended) = waited.expect("the parent of a child that was killed waits for ever");
        assert_eq!(child, number);
        let is_over = data::poll(&call(), reads).unwrap().other_end_gone;
        assert_eq!(ended.wait_status(), expected.0, "round {round}");
        lost += u64::from(is_over != expected.1);
        assert!(fs.receive(&heir, handed_over, &Spin).is_none(), "it has ended");
        data::close(&call(), reads).unwrap();
        maintain_all(fs, [&heir, &core]);
    }
    // A death between two stores costs the end of a pipe that it was passing (see `family_deaths.rs`): 2 of 600 measured.
    assert!(lost * 5 <= rounds, "{lost} pipes have a writer");
    process.exit(fs, &core, &Spin);
}

#[test]
fn a_child_whose_host_process_was_killed_has_ended_as_on_the_host() {
    a_killed_child_is_waited_for(20);
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("scalefs: who made a process runs it forever", || a_killed_child_is_waited_for(1));
}

/// Threads of the system wait in this program, built for a scheduler too. Such a wait ended the program there.
#[test]
fn who_waits_outside_an_execution_goes_on() {
    sync::Wait::wait(&Spin, sync::WaitReason::Operation, 0);
}
