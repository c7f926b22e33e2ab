//! An instance for tests of data: with a pool of pages, and a look at the end whether anything was lost.

use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::{Credentials, Process, ScaleFs, ScaleFsConfig};
use sync::Spin;

/// More than a test makes at once on one core.
const PROCESSES: usize = 128;

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

/// An instance of four cores.
pub struct Instance<'a> {
    arena: &'a Arena,
    /// The file system.
    pub fs: &'a ScaleFs,
}

/// Runs a test on an instance with so many pages; checks in the end that nothing is left of what it made.
pub fn with_instance(page_count: u32, test: impl FnOnce(&Instance)) {
    with_instance_for(PROCESSES, page_count, test);
}

/// As [`with_instance`], where a test makes at most so many processes at once on one core.
pub fn with_instance_for(process_count: usize, page_count: u32, test: impl FnOnce(&Instance)) {
    let mut region = HeapRegion::new(4 << 20).unwrap();
    let mut pages = HeapRegion::new((page_count as usize + 1) * PAGE_BYTES).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 4, chunk_bytes: 4096 }).unwrap();
    let core = arena.claim(0, owner()).unwrap();
    let base = NonNull::new(pages.as_mut_ptr()).unwrap();
    // SAFETY: the pages are ours alone until the test ends.
    let pool = unsafe { PagePool::create(arena, base, page_count) }.unwrap();
    let config = ScaleFsConfig { root_bucket_count: 4, count_slots_per_core: 2, ..ScaleFsConfig::default() };
    let fs = ScaleFs::create_with_pages(&core, pool, config).unwrap();
    drop(core);
    let instance = Instance { arena, fs };
    instance.grow_table_of_processes(process_count);
    let before = arena.live_bytes();
    test(&instance);
    let core = arena.claim(0, owner()).unwrap();
    let is_left = || pool.free_pages() != u64::from(page_count) || arena.live_bytes() != before;
    (0..20).take_while(|_| is_left()).for_each(|_| fs.maintain_with_idle_cores(&core, &Spin));
    assert_eq!(pool.free_pages(), u64::from(page_count), "pages were lost");
    assert_eq!(arena.live_bytes(), before, "objects were lost");
}

impl Instance<'_> {
    /// The table of processes keeps its memory: it has room from now on for as many as a test makes at once.
    fn grow_table_of_processes(&self, process_count: usize) {
        for number in 0..4 {
            let core = self.core(number);
            let processes: Vec<Process> = (0..process_count).map(|_| self.process(&core)).collect();
            processes.into_iter().for_each(|process| process.exit(self.fs, &core, &Spin));
        }
    }

    /// Becomes a core.
    pub fn core(&self, number: usize) -> Core<'_> {
        self.arena.claim_waiting(number, owner(), &sync::Spin).unwrap()
    }

    /// A process of user 0.
    pub fn process(&self, core: &Core) -> Process {
        Process::new(self.fs, core, Credentials::SUPERUSER).unwrap()
    }
}
