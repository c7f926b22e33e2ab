//! A process dies before each of its accesses in fork, posix_spawn, exit and wait: the processes that it ran have ended then, as
//! their parents are told, what they had is given up, and all go on. Two threads wait for one child in chosen schedules. And what posix_spawn touches, counted.
#![cfg(all(shuttle, target_os = "linux"))]

use std::mem::forget;
use std::ptr::NonNull;

use history::threads;
use pages::{PAGE_BYTES, PagePool};
use percpu::testing::{World, die, die_everywhere, owner};
use percpu::{ArenaConfig, Core, HeapRegion};
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::processes;
use scalefs::{
    AccessError, Credentials, Ended, Errno, FileAction, Host, MemoryOperations, NumberChoice, OnExec, OpenFlags,
    Process, Protection, ScaleFs, ScaleFsConfig, SpawnOptions, Start, StatusFlags, Which,
};
use sync::mutant::must_be_caught;
use sync::{Spin, Wait, WaitReason};

/// Waits for a while, and then takes it that nobody will come.
struct Patience;

impl Wait for Patience {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert!(round < 10_000, "waits for ever: {reason:?}");
    }
}

impl Host for Patience {
    fn now_ns(&self) -> u64 {
        0
    }
}

/// Where memory is mapped.
const MEMORY: u64 = 16 << 20;
const PAGE: u64 = 4096;
const FLAGS: OpenFlags = OpenFlags::READ.union(OpenFlags::CREATE);
const ACTIONS: [FileAction<'static>; 2] = [
    FileAction::Duplicate { number: 0, target: 5 },
    FileAction::Open { number: 6, path: b"g", flags: FLAGS, status: StatusFlags::NONE, permissions: 0o600 },
];

fn world(bytes: usize) -> World {
    World::with(bytes, ArenaConfig { core_count: 2, chunk_bytes: 4096 })
}

/// A pipe of the process that survives, and of those that another process runs.
const PIPE: (u32, u32) = (3, 4);
const PAGES: u32 = 64;

/// An instance, and a process with three descriptors that survive `exec`, and so many that do not.
fn begin<'w>(core: &Core<'w>, closed: u32) -> (&'w ScaleFs, Process) {
    // SAFETY: the pool has no page, so nothing is read or written there; an arena is aligned to pages.
    let pool = unsafe { PagePool::create(core.arena(), NonNull::from(core.arena()).cast(), 0) }.unwrap();
    begin_with(core, pool, closed)
}

/// The same with these pages.
fn begin_with<'w>(core: &Core<'w>, pool: &'w PagePool, closed: u32) -> (&'w ScaleFs, Process) {
    let config = ScaleFsConfig {
        root_bucket_count: 2,
        directory_bucket_count: 2,
        count_slots_per_core: 64,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create_with_pages(core, pool, config).unwrap();
    let process = Process::new(fs, core, Credentials::SUPERUSER).unwrap();
    let call = || fs.enter(core, &process, &Patience);
    let first = data::open(&call(), Start::WorkingDirectory, b"f", FLAGS, 0o600, DescriptorOptions::PLAIN).unwrap();
    for _ in 0..2 {
        data::duplicate(&call(), first, NumberChoice::LowestFrom(0), OnExec::Keep).unwrap();
    }
    for number in 0..closed {
        data::duplicate_to(&call(), first, 10 + number, OnExec::Close).unwrap();
        if number % 64 == 0 {
            fs.maintain(core, &Patience);
        }
    }
    (fs, process)
}

fn spawn(fs: &ScaleFs, core: &Core<'_>, process: &Process, actions: &[FileAction<'_>]) -> Result<Process, Errno> {
    processes::spawn(&fs.enter(core, process, &Patience), actions, SpawnOptions::default())
}

const KILLED: Ended = Ended::Killed(9);

/// What a process does when it dies, with the child that it has; and whether that child ends in it.
type Act = (&'static str, bool, fn(&ScaleFs, &Core<'_>, &Process, Process));

const ACTS: [Act; 4] = [
    ("posix_spawn", false, |fs, core, process, child| {
        forget(child);
        forget(spawn(fs, core, process, &ACTIONS));
    }),
    ("fork", false, |fs, core, process, child| {
        forget(child);
        forget(process.fork(fs, core, &Patience));
    }),
    ("exit", true, |fs, core, _, child| child.exit_with(fs, core, Ended::Exited(5), &Patience)),
    ("wait", true, |fs, core, process, child| {
        child.exit_with(fs, core, Ended::Exited(5), &Patience);
        processes::wait(&fs.enter(core, process, &Patience), Which::Any).unwrap();
    }),
];

/// What a death has cost: references to the pipe's end, and pages; and the arena's bytes that are in use at the end.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    ends: u64,
    pages: u64,
    left_bytes: i64,
}

/// Lets a process die in what it does; `None` if it came to its end, else what is lost.
fn survive((_, ends, act): Act, access: u64) -> Option<Lost> {
    let world = world(2 << 20);
    let mut pages = HeapRegion::new((PAGES as usize + 1) * PAGE_BYTES).unwrap();
    let core = world.core(0);
    let base = NonNull::new(pages.as_mut_ptr()).unwrap();
    // SAFETY: the pages are the pool's alone, and outlive the instance.
    let pool = unsafe { PagePool::create(world.arena(), base, PAGES) }.unwrap();
    let (fs, process) = begin_with(&core, pool, 2);
    let call = || fs.enter(&core, &process, &Patience);
    assert_eq!(data::pipe(&call(), DescriptorOptions::PLAIN), Ok(PIPE));
    map(fs, &core, &process, 2);
    call().store(MEMORY, &[1]).unwrap();
    // All that is shared lies in the arena from now on: the parent has had a child on the core that will die.
    let child = {
        let other = world.arena().claim(1, owner(2)).unwrap();
        let first = spawn(fs, &other, &process, &[]).unwrap();
        first.exit(fs, &other, &Patience);
        processes::wait(&fs.enter(&other, &process, &Patience), Which::Any).unwrap();
        let child = process.fork(fs, &other, &Patience).unwrap();
        fs.enter(&other, &child, &Patience).store(MEMORY, &[2]).unwrap();
        child
    };
    let number = child.number();
    let mut child = Some(child);
    let heir = die(world.arena(), 1, access, |other| act(fs, other, &process, child.take().unwrap()));
    forget(child);
    let Some(heir) = heir else {
        forget(process);
        return None;
    };
    // SAFETY: the process has gone, and its core, which it alone had, is repaired.
    unsafe {
        fs.repair_taken_over(&heir, &Patience);
        process.repair_taken_over(fs, &heir, &Patience);
        fs.end_processes_of(&core, owner(2), &[&heir], &Patience);
    }
    loop {
        match processes::wait(&call(), Which::Any) {
            Ok(Some((child, ended))) => {
                let told = if child == number && ends { &[Ended::Exited(5), KILLED][..] } else { &[KILLED] };
                assert!(told.contains(&ended), "{ended:?}");
            }
            other => {
                assert_eq!(other, Err(Errno::ECHILD), "a child that nobody runs is said to run");
                break;
            }
        }
    }
    data::close(&call(), PIPE.1).unwrap();
    let ends = u64::from(!data::poll(&call(), PIPE.0).unwrap().other_end_gone);
    for core in [&core, &heir] {
        for actions in [&ACTIONS[..], &[]] {
            let child = spawn(fs, core, &process, actions).unwrap();
            let made = child.number();
            child.exit_with(fs, core, Ended::Exited(1), &Patience);
            let waited = processes::wait(&fs.enter(core, &process, &Patience), Which::Child(made));
            assert_eq!(waited, Ok(Some((made, Ended::Exited(1)))));
            fs.maintain(core, &Patience);
        }
    }
    process.exit(fs, &core, &Patience);
    (0..24).for_each(|_| [&core, &heir].into_iter().for_each(|core| fs.maintain(core, &Patience)));
    Some(Lost { ends, pages: pool.total() - pool.free_pages(), left_bytes: world.arena().live_bytes() })
}

/// Lets a process die everywhere in what it does: few deaths cost the end of a pipe, and none more pages than a call on memory
/// (address-space, `repair.rs`).
fn survive_all(act: Act) -> u64 {
    let mut lost = Vec::new();
    let deaths = die_everywhere(|access| {
        let survived = survive(act, access);
        lost.extend(survived);
        survived.is_some()
    });
    let ends: u64 = lost.iter().map(|lost| lost.ends).sum();
    let pages = lost.iter().map(|lost| lost.pages).max().unwrap_or_default();
    // Who dies before its first access loses nothing. With less than is left then, something was freed twice.
    let left = |lost: &Lost| lost.left_bytes;
    assert_eq!(lost.iter().map(left).min(), lost.first().map(left), "memory was freed twice");
    println!("{}: {deaths} deaths, {ends} of which cost the end of a pipe; {pages} pages at most", act.0);
    assert!(ends * 50 <= deaths && pages <= 3, "{ends} ends of pipes, {pages} pages");
    deaths
}

#[test]
fn parents_wait_for_nobody_for_ever_wherever_a_process_dies() {
    for act in ACTS {
        survive_all(act);
    }
}

#[test]
fn a_child_that_nobody_runs_is_found() {
    must_be_caught("scalefs: an heir does not say that a child was killed", || survive_all(ACTS[0]));
    must_be_caught("scalefs: an heir closes nothing", || survive_all(ACTS[0]));
    must_be_caught("scalefs: what a core has in its hand dies with it", || survive_all(ACTS[1]));
    must_be_caught("scalefs: an heir ends a process from the beginning", || survive_all(ACTS[2]));
}

/// Maps a page of memory of the process's own at each second page, which none is folded with.
fn map(fs: &ScaleFs, core: &Core<'_>, process: &Process, pages: u64) {
    for page in 0..pages {
        let call = fs.enter(core, process, &Patience);
        let address = Address::Fixed(MEMORY + 2 * page * PAGE);
        memory::map(&call, address, PAGE, Protection::ReadWrite, MappedObject::Anonymous).unwrap();
        drop(call);
        if page % 64 == 0 {
            fs.maintain(core, &Patience);
        }
    }
}

fn exec_gives_up_memory() {
    let world = world(2 << 20);
    let core = world.core(0);
    let (fs, process) = begin(&core, 1);
    map(fs, &core, &process, 5);
    process.exec(fs, &core, &Patience);
    let mut mapped = Vec::new();
    process.for_each_mapped(fs, &core, |pages| mapped.push(pages));
    assert_eq!(mapped, []);
    let loaded = fs.enter(&core, &process, &Patience).load(MEMORY, &mut [0]);
    assert_eq!(loaded, Err(AccessError::Segment));
    process.exit(fs, &core, &Patience);
}

#[test]
fn a_program_does_not_see_memory_of_the_one_before() {
    exec_gives_up_memory();
    must_be_caught("scalefs: exec keeps memory", exec_gives_up_memory);
}

/// How many accesses a process that is made takes, with so many descriptors that `exec` closes, and pages that are mapped.
fn accesses((closed, pages): (u32, u64), make: fn(&ScaleFs, &Core<'_>, &Process) -> Process) -> u64 {
    let world = world(192 << 20);
    let core = world.core(0);
    let (fs, process) = begin(&core, closed);
    map(fs, &core, &process, pages);
    let mut counted = 0;
    // The first one makes what later ones have.
    for _ in 0..3 {
        let before = sync::scheduled::accesses();
        let child = make(fs, &core, &process);
        counted = sync::scheduled::accesses() - before;
        child.exit(fs, &core, &Patience);
        processes::wait(&fs.enter(&core, &process, &Patience), Which::Any).unwrap();
        fs.maintain(&core, &Patience);
    }
    process.exit(fs, &core, &Patience);
    counted
}

fn spawn_takes_the_same_with(many: (u32, u64)) {
    let make = |fs: &ScaleFs, core: &Core<'_>, process: &Process| spawn(fs, core, process, &ACTIONS).unwrap();
    let [few, many] = [(3, 3), many].map(|parent| accesses(parent, make));
    println!("posix_spawn: {few} accesses with few descriptors that exec closes and pages, {many} with many");
    assert!(many * 10 <= few * 11, "{few} accesses with few, {many} with many");
}

#[test]
fn spawn_does_not_look_at_descriptors_that_exec_closes_nor_at_memory() {
    spawn_takes_the_same_with((100_000, 3));
    spawn_takes_the_same_with((3, 100_000));
    let fork = |fs: &ScaleFs, core: &Core<'_>, process: &Process| process.fork(fs, core, &Patience).unwrap();
    for (what, few, many) in [("descriptors", (3, 0), (1_000, 0)), ("pages", (0, 3), (0, 1_000))] {
        println!("fork: {} accesses with few {what}, {} with 1,000", accesses(few, fork), accesses(many, fork));
    }
    must_be_caught("scalefs: posix_spawn looks at every descriptor", || spawn_takes_the_same_with((1_000, 3)));
    must_be_caught("scalefs: posix_spawn looks at memory", || spawn_takes_the_same_with((3, 1_000)));
}

/// Two threads wait for one child, which has ended, while a third makes and ends another in its place: one of them gets it,
/// and the other finds no such child.
fn two_wait_for_one(seed: u64) {
    threads::run(std::iter::once(seed), || {
        let world = World::with(2 << 20, ArenaConfig { core_count: 4, chunk_bytes: 4096 });
        let core = world.core(3);
        let (fs, process) = begin(&core, 0);
        let child = spawn(fs, &core, &process, &[]).unwrap();
        let number = child.number();
        child.exit_with(fs, &core, Ended::Exited(3), &Spin);
        // The third thread makes children as the core that made this one, so in its place.
        drop(core);
        let waited = threads::scope(|scope| {
            let (world, process) = (&world, &process);
            let waiting = [0, 1].map(|place| {
                scope.spawn(move || {
                    let core = world.core(place);
                    processes::wait(&fs.enter(&core, process, &Spin), Which::Child(number))
                })
            });
            scope.spawn(move || {
                let core = world.core(3);
                for _ in 0..2 {
                    forget(processes::spawn(&fs.enter(&core, process, &Spin), &[], SpawnOptions::default()));
                }
            });
            waiting.map(|thread| thread.join().unwrap())
        });
        let got = waited.iter().filter(|waited| **waited == Ok(Some((number, Ended::Exited(3))))).count();
        let nobody = waited.iter().filter(|waited| **waited == Err(Errno::ECHILD)).count();
        assert_eq!((got, nobody), (1, 1), "{waited:?}");
        forget(process);
    });
}

#[test]
fn of_two_threads_one_gets_the_child() {
    (0..100).for_each(two_wait_for_one);
    for mutant in
        ["scalefs: two threads wait for one child", "scalefs: a child that was waited for in between is said to run"]
    {
        must_be_caught(mutant, || (0..3_000).for_each(two_wait_for_one));
    }
}
