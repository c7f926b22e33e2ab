//! ScaleFS in this process, on one core.

use std::cell::Cell;
use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use posix_calls::{Credentials, Errno};
use scalefs::{Clocked, InProcess, Process, ScaleFs, ScaleFsConfig};
use sync::Spin;

use crate::clock::now_ns;
use crate::system::Enter;

const ARENA_BYTES: usize = 512 << 20;
/// Pages of data: 128 MiB.
const PAGES: usize = 1 << 15;
/// Calls after which a core maintains its part, as the other benchmarks of ScaleFS do.
const CALLS_BETWEEN: u64 = 64;

type Clock = Clocked<Spin, fn() -> u64>;

/// One core with one process.
pub struct OverScaleFs<'a> {
    file_system: &'a ScaleFs,
    core: Core<'a>,
    process: Process,
    clock: Clock,
    calls: Cell<u64>,
}

impl Enter for OverScaleFs<'_> {
    type Call<'c>
        = InProcess<'c, Clock>
    where
        Self: 'c;

    fn call<'s, R>(&'s self, mut make: impl FnMut(&Self::Call<'s>) -> Result<R, Errno>) -> Result<R, Errno> {
        let outcome = make(&self.file_system.enter(&self.core, &self.process, &self.clock));
        self.calls.set(self.calls.get() + 1);
        if self.calls.get().is_multiple_of(CALLS_BETWEEN) {
            self.file_system.maintain(&self.core, &Spin);
        }
        outcome
    }
}

/// Lends an empty instance.
pub fn with_scalefs<R>(act: impl FnOnce(&OverScaleFs<'_>) -> R) -> Result<R, String> {
    let failed = |what: &str| format!("ScaleFS: {what} cannot be made");
    let mut region = HeapRegion::new(ARENA_BYTES).map_err(|_| failed("an arena"))?;
    let arena = Arena::create(&mut region, ArenaConfig::new(1)).map_err(|_| failed("an arena"))?;
    let owner = OwnerId::new(1).ok_or_else(|| failed("an owner"))?;
    let core = arena.claim(0, owner).map_err(|_| failed("a core"))?;
    let mut data = vec![0_u8; (PAGES + 1) * PAGE_BYTES];
    let base = data.as_mut_ptr();
    // SAFETY: a page is left over for the alignment.
    let base = NonNull::new(unsafe { base.add(base.align_offset(PAGE_BYTES)) }).ok_or_else(|| failed("a pool"))?;
    // SAFETY: the memory is the pool's alone until the end.
    let pool = unsafe { PagePool::create(arena, base, PAGES as u32) }.map_err(|_| failed("a pool"))?;
    let file_system = ScaleFs::create_with_pages(&core, pool, ScaleFsConfig::default());
    let file_system = file_system.map_err(|_| failed("an instance"))?;
    let process = Process::new(file_system, &core, Credentials::SUPERUSER).map_err(|_| failed("a process"))?;
    let clock = Clocked { wait: Spin, clock: now_ns as fn() -> u64 };
    let outcome = act(&OverScaleFs { file_system, core, process, clock, calls: Cell::new(0) });
    drop(data);
    Ok(outcome)
}
