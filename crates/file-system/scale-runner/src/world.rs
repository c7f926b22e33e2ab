//! The instance of ScaleFS that benchmarks run on: one process, whose threads the virtual cores are.

use std::io::{self, Write};
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, OwnerId};
use scalefs::{Clocked, Credentials, InProcess, Process, ScaleFs, ScaleFsConfig, parts};
use sync::Spin;

/// Where the arena lies: the same in every run.
const ARENA_BASE: usize = 0x6000_0000_0000;
/// Room for 256 cores; memory is taken as it is touched.
const ARENA_BYTES: usize = 3 << 30;
const PAGES_BASE: usize = ARENA_BASE + ARENA_BYTES;
/// Enough for pages that 256 cores have given back, and that wait until all have been seen.
const PAGE_COUNT: u32 = 128 << 10;
/// Names of 256 cores seldom meet in one bucket. Where they do, cores share it: that is the seed's doing, not the calls'.
const BUCKETS: usize = 1 << 17;

/// The clock of all cores: it goes on by a microsecond whenever it is read. Not measured, as a processor's is not memory.
#[repr(align(64))]
struct Ticks(AtomicU64);

static TICKS: Ticks = Ticks(AtomicU64::new(1_000_000_000));

fn now_ns() -> u64 {
    TICKS.0.fetch_add(1_000, Ordering::Relaxed)
}

/// Waits by handing over, and has a clock.
pub type Host = Clocked<Spin, fn() -> u64>;

/// The instance and its cores.
pub struct World {
    arena: &'static Arena,
    /// The file system.
    pub file_system: &'static ScaleFs,
    /// All cores' process.
    pub process: Process,
    cores: Vec<Core<'static>>,
    host: Host,
}

impl World {
    /// An empty instance of so many cores, once per program.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn create(cores: usize, hash_seed: u64) -> Result<World, String> {
        let base = map(ARENA_BASE, ARENA_BYTES)?;
        let pages_base = map(PAGES_BASE, PAGE_COUNT as usize * PAGE_BYTES)?;
        // SAFETY: the mapping is zeroed, ours alone, and never unmapped.
        let arena = unsafe { Arena::create_at(base, ARENA_BYTES, ArenaConfig::new(cores)) };
        let arena: &'static Arena = arena.map_err(|error| error.to_string())?;
        let owner = OwnerId::new(1).ok_or("no owner")?;
        let claim = |number| arena.claim(number, owner).map_err(|error| format!("core {number}: {error}"));
        let claimed = (0..cores).map(claim).collect::<Result<Vec<_>, String>>()?;
        let config = ScaleFsConfig {
            hash_seed,
            root_bucket_count: BUCKETS,
            directory_bucket_count: BUCKETS / 4,
            ..ScaleFsConfig::default()
        };
        let too_small = |_| "the arena is too small for an instance".to_owned();
        // SAFETY: the mapping is ours alone, and never unmapped.
        let pages = unsafe { PagePool::create(arena, pages_base, PAGE_COUNT) }.map_err(too_small)?;
        let file_system = ScaleFs::create_with_pages(&claimed[0], pages, config).map_err(too_small)?;
        let process = Process::new(file_system, &claimed[0], Credentials::SUPERUSER);
        let process = process.map_err(|errno| format!("the process: {errno}"))?;
        let host = Clocked { wait: Spin, clock: now_ns as fn() -> u64 };
        Ok(World { arena, file_system, process, cores: claimed, host })
    }

    /// How many cores there are.
    pub fn core_count(&self) -> usize {
        self.cores.len()
    }

    /// The calls of a core.
    pub fn enter(&self, core: usize) -> InProcess<'_, Host> {
        self.file_system.enter(&self.cores[core], &self.process, &self.host)
    }

    /// A core.
    pub fn core(&self, core: usize) -> &Core<'static> {
        &self.cores[core]
    }

    /// How cores wait.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What a core does between its calls.
    pub fn maintain(&self, core: usize) {
        self.file_system.maintain(&self.cores[core], &self.host);
    }

    /// What is not part of what is measured.
    pub fn own_memory() -> Range<usize> {
        let start = ptr::from_ref(&TICKS).addr();
        start..start + size_of::<Ticks>()
    }

    /// Writes the list of what lies where, see `scalefs::parts::listing`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn list(&self, mut output: impl Write) -> io::Result<()> {
        let tables = self.arena.tables().into_iter().chain(self.file_system.tables());
        output.write_all(parts::listing(tables.chain(parts::chunks(self.arena))).as_bytes())
    }
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
