//! An instance of the file system: where everything is, and maintenance.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::NonNull;

use commit::Decisions;
use epoch::Epochs;
use hashdir::{ENTRY_CLASS, HashDir, free_retired};
use percpu::{Core, OutOfMemory, PerCore, SizeClass};
use refcache::{RefCache, RefCacheConfig};
use sync::Wait;

use crate::direct::Direct;
use crate::host::Host;
use crate::inode::{Directory, Inode, InodeNumber, KIND_LINKS, KIND_REFERENCES, Kind};

pub(crate) const INODE_CLASS: SizeClass = SizeClass::of_type::<Inode>();
/// The root has this number; inodes made later have a core in the low eight bits and a count from 1 above them.
const ROOT_NUMBER: InodeNumber = InodeNumber(1);
const CORE_BITS: u32 = 8;
/// Buckets that one maintenance moves when a directory grows: about 10 microseconds.
const GROWTH_BUDGET_BUCKETS: usize = 64;

/// How an instance is laid out.
#[derive(Clone, Copy, Debug)]
pub struct ScaleFsConfig {
    /// Moves hash collisions: of names in buckets and of inodes in count slots.
    pub hash_seed: u64,
    /// Buckets of the root directory at the start, 128 bytes each.
    pub root_bucket_count: usize,
    /// Count slots of each core, 64 bytes each.
    pub count_slots_per_core: usize,
}

impl Default for ScaleFsConfig {
    fn default() -> ScaleFsConfig {
        ScaleFsConfig { hash_seed: 1, root_bucket_count: 4096, count_slots_per_core: 1024 }
    }
}

/// A file system in an arena. Read-only after creation but for what its parts guard themselves.
pub struct ScaleFs {
    pub(crate) decisions: NonNull<Decisions>,
    pub(crate) epochs: NonNull<Epochs>,
    pub(crate) counts: NonNull<RefCache>,
    pub(crate) root: NonNull<Directory>,
    pub(crate) hash_seed: u64,
    /// How many inodes each core has made.
    made: PerCore<Cell<u64>>,
}

// SAFETY: all pointers lead to `Sync` parts in the same arena.
unsafe impl Sync for ScaleFs {}
// SAFETY: as above.
unsafe impl Send for ScaleFs {}

impl ScaleFs {
    /// Makes an empty file system in the arena of `core`.
    pub fn create<'a>(core: &Core<'a>, config: ScaleFsConfig) -> Result<&'a ScaleFs, OutOfMemory> {
        let arena = core.arena();
        let decisions = Decisions::create(arena)?;
        let counts = RefCacheConfig {
            slots_per_core: config.count_slots_per_core,
            seed: config.hash_seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        // SAFETY: the directory is used with this arena and this instance's epochs only.
        let names = unsafe { HashDir::new(core, decisions, config.root_bucket_count) }?;
        let root = arena.place(Directory { inode: Inode::new(ROOT_NUMBER, Kind::Directory, 0o755), names })?;
        arena.place(ScaleFs {
            decisions: NonNull::from(decisions),
            epochs: NonNull::from(Epochs::create(arena)?),
            counts: NonNull::from(RefCache::create(arena, decisions, counts)?),
            root: NonNull::from(root),
            hash_seed: config.hash_seed,
            made: PerCore::create(arena, |_| Cell::new(0))?,
        })
    }

    pub(crate) fn epochs(&self) -> &Epochs {
        // SAFETY: lives in the arena, as `self` does; the same in the next two.
        unsafe { self.epochs.as_ref() }
    }

    pub(crate) fn counts(&self) -> &RefCache {
        // SAFETY: see `epochs`.
        unsafe { self.counts.as_ref() }
    }

    pub(crate) fn decisions(&self) -> &Decisions {
        // SAFETY: see `epochs`.
        unsafe { self.decisions.as_ref() }
    }

    pub(crate) fn root(&self) -> &Directory {
        // SAFETY: see `epochs`.
        unsafe { self.root.as_ref() }
    }

    pub(crate) fn next_number(&self, core: &Core<'_>) -> InodeNumber {
        let made = self.made.get(core);
        made.set(made.get() + 1);
        InodeNumber(made.get() << CORE_BITS | core.index().get() as u64)
    }

    /// Begins a call of this core.
    #[inline]
    pub fn begin<'c, H: Host>(&'c self, core: &'c Core<'_>, host: &'c H) -> Direct<'c, H> {
        Direct::new(self, core, host)
    }

    /// What the core does between its calls, now and then: fills its magazines, frees what nobody can reach, applies
    /// counts, and moves some buckets of a directory that grows.
    pub fn maintain(&self, core: &Core<'_>, wait: &impl Wait) {
        for class in [INODE_CLASS, ENTRY_CLASS] {
            core.will_allocate(class);
        }
        core.arena().maintain(core);
        self.epochs().maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`; only `hashdir` retires here.
            let ours = unsafe { free_retired(core, kind, object) };
            debug_assert!(ours);
        });
        self.counts().maintain(core, |core, counted| {
            // SAFETY: dead objects are given to us once; kinds say in which field of an inode the count is.
            unsafe {
                match counted.as_ref().kind() {
                    KIND_LINKS => {
                        let inode = Inode::of_links(counted);
                        self.counts().change(core, &inode.as_ref().references, -1);
                    }
                    KIND_REFERENCES => core.free(Inode::of_references(counted).cast(), INODE_CLASS),
                    other => debug_assert!(false, "{other:?} is no kind of ours"),
                }
            }
        });
        let names = &self.root().names;
        if names.wants_growth() {
            names.grow(self.epochs(), &self.epochs().pin(core), wait, GROWTH_BUDGET_BUCKETS);
        }
    }

    /// Completes or undoes the call in whose middle a process died, and frees its locks. References that the process
    /// held stay.
    ///
    /// # Safety
    /// `heir` was taken over from a dead owner, and is repaired once before it is used.
    pub unsafe fn repair_taken_over(&self, heir: &Core<'_>) {
        // The decision first: an undecided operation is aborted, and then the rest follows it.
        let last = self.decisions().last(heir);
        // SAFETY: the caller's promise.
        unsafe {
            self.epochs().unpin_taken_over(heir);
            self.counts().repair_taken_over(heir);
            self.root().names.repair_taken_over(&self.epochs().pin(heir), last);
        }
    }

    /// Maintains this core and, in turn, all cores that nobody claims at the moment.
    pub fn maintain_with_idle_cores(&self, core: &Core<'_>, wait: &impl Wait) {
        self.maintain(core, wait);
        core.arena().for_each_idle_core(|idle| self.maintain(idle, wait));
    }
}
