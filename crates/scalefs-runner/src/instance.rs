//! The instance under test, in an arena at a fixed address, and each thread's right to act as one of its cores.

use std::cell::Cell;
use std::io;
use std::ptr::{self, NonNull};

use percpu::{Arena, ArenaConfig, Core, OwnerId};
use scalefs::{Context, Credentials, ScaleFs, ScaleFsConfig};

/// Where the arena lies: the same in every run, so that findings can be compared.
pub const ARENA_BASE: usize = 0x6000_0000_0000;
/// Its size; pages are taken as they are touched. Files that one core makes and another removes take fresh memory each
/// time until the arena is used up, and are recycled from then on (see `percpu::slab`): no larger than needed.
pub const ARENA_BYTES: usize = 128 << 20;

/// An instance of ScaleFS.
pub struct Instance {
    arena: &'static Arena,
    /// Where the tables that `ScaleFs::create` makes begin and end; objects follow.
    tables: (usize, usize),
    file_system: &'static ScaleFs,
    context: &'static Context,
}

/// What a thread acts through.
pub struct Actor {
    /// The instance's file system.
    pub file_system: &'static ScaleFs,
    /// On whose behalf it calls.
    pub context: &'static Context,
    /// The thread's core.
    pub core: Core<'static>,
}

thread_local! {
    static ACTOR: Cell<Option<&'static Actor>> = const { Cell::new(None) };
}

impl Instance {
    /// Makes an empty instance of `cores` cores for tests and one for the coordinator. Once per process.
    ///
    /// # Errors
    /// There is not enough memory, or the address is taken.
    pub fn create(cores: usize, hash_seed: u64) -> Result<&'static Instance, String> {
        // SAFETY: a new mapping that replaces none (MAP_FIXED_NOREPLACE).
        let mapped = unsafe {
            libc::mmap(
                ptr::without_provenance_mut(ARENA_BASE),
                ARENA_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        let base = NonNull::new(mapped.cast::<u8>()).filter(|base| base.as_ptr() as usize == ARENA_BASE);
        let base = base.ok_or_else(|| {
            format!("mapping {} MiB at {ARENA_BASE:#x}: {}", ARENA_BYTES >> 20, io::Error::last_os_error())
        })?;
        // SAFETY: the mapping is zeroed, ours alone, and never unmapped.
        let arena = unsafe { Arena::create_at(base, ARENA_BYTES, ArenaConfig::new(cores + 1)) };
        let arena = arena.map_err(|error| error.to_string())?;
        let end_of_used = || ARENA_BASE + ARENA_BYTES - arena.untouched_bytes();
        let tables_start = end_of_used();
        let core = claim(arena, cores)?;
        let config = ScaleFsConfig { hash_seed, ..ScaleFsConfig::default() };
        // `create` wants the core only while it runs; the instance lives in the arena.
        let core: &'static Core<'static> = Box::leak(Box::new(core));
        let file_system =
            ScaleFs::create(core, config).map_err(|_| "the arena is too small for an instance".to_owned())?;
        let context = Box::leak(Box::new(Context::new(file_system, core, Credentials::SUPERUSER)));
        // SAFETY: leaked just now, and `create` has returned: the core is given up, for its thread to claim it.
        unsafe { ptr::drop_in_place(ptr::from_ref(core).cast_mut()) };
        Ok(Box::leak(Box::new(Instance { arena, tables: (tables_start, end_of_used()), file_system, context })))
    }

    /// The parts of the arena, in the form of symbols: first address, first address behind it, name.
    pub fn regions(&self) -> String {
        let header_end = ARENA_BASE + size_of::<Arena>();
        let ends = [
            (header_end, "arena header"),
            (self.tables.0, "records of cores"),
            (self.tables.1, "tables of the instance"),
            (ARENA_BASE + ARENA_BYTES, "entries, inodes and other objects"),
        ];
        let mut start = ARENA_BASE;
        ends.iter().map(|&(end, name)| format!("{:x} {end:x} {name}\n", std::mem::replace(&mut start, end))).collect()
    }

    /// The calling thread acts as core `number` from now on.
    ///
    /// # Errors
    /// The core is taken.
    pub fn enter(&'static self, number: usize) -> Result<(), String> {
        let actor = Actor { file_system: self.file_system, context: self.context, core: claim(self.arena, number)? };
        ACTOR.set(Some(Box::leak(Box::new(actor))));
        Ok(())
    }
}

fn claim(arena: &'static Arena, number: usize) -> Result<Core<'static>, String> {
    let owner = OwnerId::new(1).ok_or("no owner")?;
    arena.claim(number, owner).map_err(|error| format!("core {number}: {error}"))
}

/// What the calling thread acts through.
///
/// # Panics
/// If it has not entered an instance: an error of this program.
pub fn actor() -> &'static Actor {
    ACTOR.get().expect("threads enter the instance before they serve")
}
