//! The instance under test, in an arena at a fixed address, and each thread's right to act as one of its cores.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, OwnerId};
use scalefs::{Clocked, Direct, Ended, Errno, InProcess, OpenNode, Process, ProcessNumber, ScaleFs, ScaleFsConfig};
use sync::Spin;

use runner::place::CORE_LIMIT;

use crate::children::Children;
use crate::options::Options;
use crate::subject::Subject;

/// Where the arena lies: the same in every run, so that findings can be compared.
pub const ARENA_BASE: usize = 0x6000_0000_0000;
/// Its size; pages are taken as they are touched. Files that one core makes and another removes take fresh memory each
/// time until the arena is used up, and are recycled from then on (see `percpu::slab`): no larger than needed.
pub const ARENA_BYTES: usize = 128 << 20;

/// Where the pages of files and pipes lie, and how many there are.
pub const PAGES_BASE: usize = ARENA_BASE + ARENA_BYTES;
const PAGE_COUNT: u32 = 16 << 10;

/// Waits by spinning, and asks the system for the time.
pub type Clock = Clocked<Spin, fn() -> u64>;

fn clock() -> Clock {
    Clocked { wait: Spin, clock: now_ns }
}

fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

fn map(base: usize, size_bytes: usize) -> Result<NonNull<u8>, String> {
    // SAFETY: a new mapping that replaces none (MAP_FIXED_NOREPLACE).
    let mapped = unsafe {
        libc::mmap(
            ptr::without_provenance_mut(base),
            size_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    NonNull::new(mapped.cast::<u8>())
        .filter(|mapped| mapped.as_ptr() as usize == base)
        .ok_or_else(|| format!("mapping {} MiB at {base:#x}: {}", size_bytes >> 20, io::Error::last_os_error()))
}

/// An instance of ScaleFS.
pub struct Instance {
    arena: &'static Arena,
    /// Where the tables that `ScaleFs::create` makes begin and end; objects follow.
    tables: (usize, usize),
    file_system: &'static ScaleFs,
    processes: &'static [Process],
    children: &'static Children<Process>,
    seats: &'static Seats,
}

/// By worker: what its thread entered with, or null. An actor is never freed.
type Seats = [AtomicPtr<Actor>; CORE_LIMIT];

/// What a thread acts through.
pub struct Actor {
    /// The instance's file system.
    pub file_system: &'static ScaleFs,
    /// The processes of tests, that of the set-up, and those of users.
    pub processes: &'static [Process],
    /// The children of process 0.
    pub children: &'static Children<Process>,
    /// How it waits, and what time it is.
    pub clock: Clock,
    /// The thread's core.
    pub core: Core<'static>,
    seats: &'static Seats,
}

thread_local! {
    static ACTOR: Cell<Option<&'static Actor>> = const { Cell::new(None) };
}

impl Instance {
    /// Makes an empty instance of the cores for tests and one for the coordinator. Once per process.
    ///
    /// # Errors
    /// There is not enough memory, or the address is taken.
    pub fn create(options: &Options) -> Result<&'static Instance, String> {
        let Options { cores, hash_seed, surroundings, .. } = *options;
        let base = map(ARENA_BASE, ARENA_BYTES)?;
        let pages_base = map(PAGES_BASE, PAGE_COUNT as usize * PAGE_BYTES)?;
        // SAFETY: the mapping is zeroed, ours alone, and never unmapped.
        let arena = unsafe { Arena::create_at(base, ARENA_BYTES, ArenaConfig::new(cores + 1)) };
        let arena = arena.map_err(|error| error.to_string())?;
        let end_of_used = || ARENA_BASE + ARENA_BYTES - arena.untouched_bytes();
        let tables_start = end_of_used();
        let core = claim(arena, cores)?;
        let config = ScaleFsConfig { hash_seed, directory_bucket_count: 1024, ..ScaleFsConfig::default() };
        let too_small = |_| "the arena is too small for an instance".to_owned();
        // SAFETY: the mapping is ours alone, and never unmapped.
        let pages = unsafe { PagePool::create(arena, pages_base, PAGE_COUNT) }.map_err(too_small)?;
        let file_system = ScaleFs::create_with_pages(&core, pages, config).map_err(too_small)?;
        let process = |credentials| -> Result<Process, Errno> {
            let process = Process::new(file_system, &core, credentials)?;
            process.context().set_umask(0);
            Ok(process)
        };
        let processes: Result<Vec<_>, _> = surroundings.credentials().into_iter().map(process).collect();
        let processes = processes.map_err(|errno| format!("the processes of tests: {errno}"))?;
        // Given up, for its thread to claim it.
        drop(core);
        Ok(Box::leak(Box::new(Instance {
            arena,
            tables: (tables_start, end_of_used()),
            file_system,
            processes: Box::leak(processes.into()),
            children: Box::leak(Box::new(Children::none())),
            seats: Box::leak(Box::default()),
        })))
    }

    /// The arena.
    pub fn arena(&self) -> &'static Arena {
        self.arena
    }

    /// The file system.
    pub fn file_system(&self) -> &'static ScaleFs {
        self.file_system
    }

    /// The parts of the arena, in the form of symbols: first address, first address behind it, name.
    pub fn regions(&self) -> String {
        let header_end = ARENA_BASE + size_of::<Arena>();
        let ends = [
            (header_end, "arena header"),
            (self.tables.0, "records of cores"),
            (self.tables.1, "tables of the instance"),
            (ARENA_BASE + ARENA_BYTES, "entries, inodes and other objects"),
            (PAGES_BASE + PAGE_COUNT as usize * PAGE_BYTES, "pages of files and pipes"),
        ];
        let mut start = ARENA_BASE;
        ends.iter().map(|&(end, name)| format!("{:x} {end:x} {name}\n", std::mem::replace(&mut start, end))).collect()
    }

    /// The calling thread acts as core `number` from now on; if it is a worker's, others can take its seat.
    ///
    /// # Errors
    /// The core is taken.
    pub fn enter(&'static self, number: usize, worker: Option<usize>) -> Result<(), String> {
        let actor = Actor {
            file_system: self.file_system,
            processes: self.processes,
            children: self.children,
            clock: clock(),
            core: claim(self.arena, number)?,
            seats: self.seats,
        };
        let actor = Box::into_raw(Box::new(actor));
        if let Some(worker) = worker {
            // Release: who takes the seat sees what lies there.
            self.seats[worker].store(actor, Ordering::Release);
        }
        // SAFETY: made just now, and never freed.
        ACTOR.set(Some(unsafe { &*actor }));
        Ok(())
    }
}

fn claim(arena: &'static Arena, number: usize) -> Result<Core<'static>, String> {
    let owner = OwnerId::new(1).ok_or("no owner")?;
    arena.claim_waiting(number, owner, &Spin).map_err(|error| format!("core {number}: {error}"))
}

impl Subject for Actor {
    type Handle = OpenNode;
    type Fault = Infallible;
    type Call<'a> = InProcess<'a, Clock>;
    type Objects<'a> = Direct<'a, Clock>;
    type Process = Process;

    fn actor() -> &'static Actor {
        ACTOR.get().expect("threads enter the instance before they serve")
    }

    fn take_seat(worker: usize) {
        let seat = Self::actor().seats[worker].load(Ordering::Acquire);
        // SAFETY: null, or an actor, which is never freed. A core is one thread's at a time: the coordinator lets one
        // thread run at a time, and gives each worker another seat before one of them does anything else.
        if let Some(actor) = unsafe { seat.as_ref() } {
            ACTOR.set(Some(actor));
        }
    }

    #[inline]
    fn enter(&self, process: usize) -> InProcess<'_, Clock> {
        self.file_system.enter(&self.core, &self.processes[process], &self.clock)
    }

    fn core(&self) -> usize {
        self.core.index().get()
    }

    fn descriptors(&self, process: usize) -> Vec<u32> {
        let mut open = Vec::new();
        self.processes[process].for_each_descriptor(self.file_system, &self.core, |fd| open.push(fd));
        open
    }

    fn mapped_pages(&self, process: usize) -> Vec<u64> {
        let mut mapped = Vec::new();
        self.processes[process].for_each_mapped(self.file_system, &self.core, |range| mapped.extend(range));
        mapped
    }

    fn children(&self) -> &Children<Process> {
        self.children
    }

    fn enter_child<'a>(&'a self, child: &'a Process) -> InProcess<'a, Clock> {
        self.file_system.enter(&self.core, child, &self.clock)
    }

    fn number(child: &Process) -> ProcessNumber {
        child.number()
    }

    fn number_of(&self, process: usize) -> ProcessNumber {
        self.processes[process].number()
    }

    fn fork(&self, process: usize) -> Result<Process, Errno> {
        self.processes[process].fork(self.file_system, &self.core, &self.clock)
    }

    fn exec(&self, child: &Process) {
        child.exec(self.file_system, &self.core, &self.clock);
    }

    fn exit(&self, child: Process, ended: Ended) {
        child.exit_with(self.file_system, &self.core, ended, &self.clock);
    }

    fn maintain(&self, idle_cores_too: bool) {
        if idle_cores_too {
            self.file_system.maintain_with_idle_cores(&self.core, &self.clock);
        } else {
            self.file_system.maintain(&self.core, &self.clock);
        }
    }
}
