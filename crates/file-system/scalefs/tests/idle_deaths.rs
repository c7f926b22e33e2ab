//! Deaths in the service of idle cores: a process that maintains a core which nobody claims is ended before each of its accesses
//! to shared memory in turn. Its heir takes over the core that it served too, and repairs it: all names are there, every core
//! can be claimed, and what is removed afterwards can be used again.
#![cfg(all(shuttle, target_os = "linux"))]

use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::testing::{World, die, die_everywhere, owner};
use percpu::{Arena, ArenaConfig, ClaimError, Core, CoreIndex, HeapRegion};
use scalefs::data::{self, DescriptorOptions};
use scalefs::names::{self, RenameMode};
use scalefs::{
    Credentials, DataOperations as _, Errno, Fields, Follow, Host, InProcess, ObjectOperations as _, OpenFlags,
    Process, ScaleFs, ScaleFsConfig, Start, attributes, directories,
};
use sync::{Wait, WaitReason};

const PAGE_COUNT: u32 = 64;
/// Whose core nobody claims any more, but the service of which is due.
const IDLE: usize = 2;
/// Who serves it, and dies.
const SERVER: usize = 1;
/// So many names make a directory of two buckets grow.
const NAMES: usize = 24;
/// So often is a name removed and made again: far more often than there is memory for inodes.
const REPLACEMENTS: usize = 6_000;
/// So often is a file made, filled and removed after a death: far more often than there is room for.
const CYCLES: usize = 60;

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

type Calls<'c> = InProcess<'c, Patience>;
const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;

fn name(number: usize) -> String {
    format!("d/n{number}")
}

fn make_file(calls: &Calls, path: &str, bytes: &[u8]) -> Result<(), Errno> {
    let flags = OpenFlags::CREATE | OpenFlags::WRITE;
    let file = data::open(calls, AT, path.as_bytes(), flags, 0o644, DescriptorOptions::PLAIN)?;
    let written = data::write(calls, file, bytes);
    data::close(calls, file)?;
    written.map(drop)
}

/// What a core leaves behind: a directory that grows, names that are gone, counts, sizes and times of its own, pages of files
/// that were cut and removed, and a pipe that was closed.
fn leave_much_behind(calls: &Calls) {
    let objects = calls.objects();
    directories::make_directory(objects, AT, b"d", 0o755).unwrap();
    for number in 0..NAMES + 4 {
        make_file(calls, &name(number), &[number as u8; 100][..10 * (number % 3)]).unwrap();
    }
    for number in 0..4 {
        names::link(objects, (AT, name(number).as_bytes()), (AT, format!("l{number}").as_bytes()), Follow::Nothing)
            .unwrap();
        names::unlink(objects, AT, name(NAMES + number).as_bytes()).unwrap();
    }
    make_file(calls, "long", &[7; 2 * PAGE_BYTES]).unwrap();
    let flags = OpenFlags::WRITE | OpenFlags::TRUNCATE;
    let long = data::open(calls, AT, b"long", flags, 0, DescriptorOptions::PLAIN).unwrap();
    data::close(calls, long).unwrap();
    let (reading, writing) = data::pipe(calls, DescriptorOptions::PLAIN).unwrap();
    data::write(calls, writing, &[1; 10]).unwrap();
    data::close(calls, reading).unwrap();
    data::close(calls, writing).unwrap();
    names::rename(objects, (AT, b"l3"), (AT, b"long"), RenameMode::Replace).unwrap();
}

/// What names of the root and of its directory lead to, how many names that has, and how large it is.
fn names_of(calls: &Calls) -> Vec<(String, u64, u32, u64)> {
    let objects = calls.objects();
    let mut told = Vec::new();
    for path in ["/", "/d"] {
        let directory =
            names::open(objects, AT, path.as_bytes(), OpenFlags::READ | OpenFlags::DIRECTORY, 0).unwrap().handle;
        directories::read_directory(objects, objects.held(&directory), 0, |entry| {
            let inner = format!("{path}/{}", str::from_utf8(entry.name).unwrap());
            let status = attributes::stat(objects, AT, inner.as_bytes(), Follow::Nothing, Fields::ALL).unwrap();
            told.push((inner, status.number.0, status.link_count, status.size_bytes));
            true
        })
        .unwrap();
        names::close(objects, directory);
    }
    told.sort();
    told
}

/// Runs a test on an instance in memory that is shared with processes made meanwhile; core 0 is the test's.
fn with_instance<R>(test: impl FnOnce(&Arena, &ScaleFs, &Core) -> R) -> R {
    let small = ScaleFsConfig { root_bucket_count: 2, directory_bucket_count: 2, ..ScaleFsConfig::default() };
    let config = ScaleFsConfig { count_slots_per_core: 2, ..small };
    let world = World::with(2 << 20, ArenaConfig { core_count: 3, chunk_bytes: 4096 });
    let mut pages = HeapRegion::new((PAGE_COUNT as usize + 1) * PAGE_BYTES).unwrap();
    let core = world.core(0);
    let pages = NonNull::new(pages.as_mut_ptr()).unwrap();
    // SAFETY: the pages are the pool's alone, and outlive the instance.
    let pool = unsafe { PagePool::create(world.arena(), pages, PAGE_COUNT) }.unwrap();
    let fs = ScaleFs::create_with_pages(&core, pool, config).unwrap();
    test(world.arena(), fs, &core)
}

/// Lets a server die before its access of this number; false if it came to its end.
fn survive(access: u64) -> bool {
    with_instance(|arena, fs, core| {
        let process = Process::new(fs, core, Credentials::SUPERUSER).unwrap();
        leave_much_behind(&fs.enter(&arena.claim(IDLE, owner(1)).unwrap(), &process, &Patience));
        let expected = names_of(&fs.enter(core, &process, &Patience));
        let died = die(arena, SERVER, access, |server| {
            (0..3).for_each(|_| fs.maintain_with_idle_cores(server, &Patience));
        });
        let Some(heir) = died else { return false };
        // SAFETY: the server has gone, and each of its cores is repaired once.
        unsafe { fs.repair_taken_over(&heir, &Patience) };
        let left = match arena.claim(IDLE, owner(1)) {
            Err(ClaimError::Served { by }) => {
                // SAFETY: as above.
                let left = unsafe { arena.take_over(IDLE, by, owner(1)) }.expect("the core that it served");
                // SAFETY: as above.
                unsafe { fs.repair_taken_over(&left, &Patience) };
                left
            }
            claimed => claimed.expect("a core at which nobody is"),
        };
        // SAFETY: no process was the server's: there is nothing to end.
        unsafe { fs.end_processes_of(core, owner(2), &[&heir, &left], &Patience) };
        assert_eq!(names_of(&fs.enter(core, &process, &Patience)), expected);
        drop((heir, left));
        assert!(arena.for_each_idle_core(owner(1), |idle| fs.maintain(idle, &Patience)), "nobody serves");
        for cycle in 0..CYCLES {
            let calls = fs.enter(core, &process, &Patience);
            let made = make_file(&calls, "d/cycle", &[1; 5 * PAGE_BYTES]);
            assert_eq!(made, Ok(()), "round {cycle}: what was removed is free again");
            names::unlink(calls.objects(), AT, b"d/cycle").unwrap();
            drop(calls);
            (0..8).for_each(|_| fs.maintain_with_idle_cores(core, &Patience));
        }
        for number in 0..NAMES {
            names::unlink(fs.enter(core, &process, &Patience).objects(), AT, name(number).as_bytes()).unwrap();
        }
        directories::remove_directory(fs.enter(core, &process, &Patience).objects(), AT, b"d").unwrap();
        process.exit(fs, core, &Patience);
        true
    })
}

/// What becomes of a directory whose names a worker removes and makes again, one by one, once a server has died: how many are
/// left, and whether it had died in the service of the idle core. `None` if it came to its end.
fn names_after_replacing_all(access: u64) -> Option<(usize, bool)> {
    with_instance(|arena, fs, core| {
        let process = Process::new(fs, core, Credentials::SUPERUSER).unwrap();
        leave_much_behind(&fs.enter(&arena.claim(IDLE, owner(1)).unwrap(), &process, &Patience));
        let heir = die(arena, SERVER, access, |server| {
            fs.maintain_with_idle_cores(server, &Patience);
        })?;
        let is_served = arena.actor_of(CoreIndex::new(IDLE).unwrap()).is_some();
        let mut taken_over = vec![heir];
        // SAFETY: the server has gone, and each of its cores is repaired once.
        unsafe {
            taken_over.extend(arena.take_over(IDLE, owner(2), owner(1)));
            taken_over.iter().for_each(|heir| fs.repair_taken_over(heir, &Patience));
        }
        drop(taken_over);
        if !is_served {
            process.exit(fs, core, &Patience);
            return Some((0, false));
        }
        directories::make_directory(fs.enter(core, &process, &Patience).objects(), AT, b"own", 0o755).unwrap();
        let names: Vec<String> = (0..NAMES).map(|number| format!("own/{number}")).collect();
        // More often than there is memory for.
        for name in names.iter().cycle().take(REPLACEMENTS) {
            let calls = fs.enter(core, &process, &Patience);
            let _ = names::unlink(calls.objects(), AT, name.as_bytes());
            let _ = make_file(&calls, name, b"");
            drop(calls);
            fs.maintain_with_idle_cores(core, &Patience);
        }
        let calls = fs.enter(core, &process, &Patience);
        let is_there = |name: &&String| {
            attributes::stat(calls.objects(), AT, name.as_bytes(), Follow::Nothing, Fields::IDENTITY).is_ok()
        };
        let left = names.iter().filter(is_there).count();
        drop(calls);
        // Without an heir there may be locks that nobody frees.
        std::mem::forget(process);
        Some((left, is_served))
    })
}

/// A kill had left an empty directory where names belonged: nothing had removed them for good. While a core that had been served
/// had no heir, no count was reviewed and nothing was freed, so in the end each name that was removed to be made again could
/// only be removed. See `nothing_is_lost_wherever_the_server_of_an_idle_core_dies` for the cause.
#[test]
fn what_is_removed_to_be_made_again_is_made_again() {
    let first_death = || {
        let served = (0..).step_by(16).filter_map(names_after_replacing_all).find(|(_, is_served)| *is_served);
        let (left, _) = served.expect("a death in the service");
        assert_eq!(left, NAMES, "names that were made again");
    };
    first_death();
    sync::mutant::must_be_caught("percpu: who is served has no heir", first_death);
}

#[test]
fn nothing_is_lost_wherever_the_server_of_an_idle_core_dies() {
    die_everywhere(survive);
    sync::mutant::must_be_caught("percpu: who is served has no heir", || die_everywhere(survive));
}
