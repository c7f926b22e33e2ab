//! An instance is laid out in an arena.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use commit::Decisions;
use epoch::Epochs;
use hashdir::HashDir;
use maxima::{Maxima, MaximaConfig};
use pages::PagePool;
use percpu::{CacheLine, Core, OutOfMemory, PerCore};
use posix_calls::{InodeNumber, Kind, Permissions};
use radix::RadixArray;
use refcache::{RefCache, RefCacheConfig};
use rounds::Rounds;
use sockets::{Foundation, Sockets, SocketsConfig};
use sync::OwnWord;
use sync::atomic::{AtomicU64, Ordering};

use crate::budget::Budget;
use crate::claims::Claims;
use crate::directory::Directory;
use crate::file_locks::LockNote;
use crate::hand::Hand;
use crate::identity::Identity;
use crate::inode::{Inode, Named};
use crate::inode_ref::InodeRef;
use crate::instance::{Own, ScaleFs, ScaleFsConfig};
use crate::lock_waits::LockWaits;
use crate::noted::Noted;
use crate::place::Place;

/// The root has this number; inodes made later have a core in the low eight bits and a count from 1 above them.
const ROOT_NUMBER: InodeNumber = InodeNumber(1);

/// Buckets at least for names of sockets, 128 bytes each.
const SOCKET_BUCKETS: usize = 64;

impl ScaleFs {
    /// Makes an empty file system in the arena of `core`, whose root belongs to user 0. It has no pages: names, directories
    /// and links only.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold the tables of an empty file system.
    pub fn create<'a>(core: &Core<'a>, config: ScaleFsConfig) -> Result<&'a ScaleFs, OutOfMemory> {
        // SAFETY: the pool has no page, so nothing is read or written there; an arena is aligned to pages.
        let pool = unsafe { PagePool::create(core.arena(), NonNull::from(core.arena()).cast(), 0) }?;
        ScaleFs::create_with_pages(core, pool, config)
    }

    /// Makes an empty file system in the arena of `core`, whose root belongs to user 0, with data in these pages, which
    /// nobody else uses.
    ///
    /// # Errors
    /// As [`ScaleFs::create`].
    ///
    /// # Panics
    /// If the pages are of another arena.
    pub fn create_with_pages<'a>(
        core: &Core<'a>,
        pages: &'a PagePool,
        config: ScaleFsConfig,
    ) -> Result<&'a ScaleFs, OutOfMemory> {
        assert!(pages.is_of(core), "pages of another arena");
        let arena = core.arena();
        let decisions = Decisions::create(arena)?;
        let counts = RefCacheConfig {
            slots_per_core: config.count_slots_per_core,
            seed: config.hash_seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        let maxima = MaximaConfig { slots_per_core: counts.slots_per_core, seed: counts.seed };
        let of_directories = MaximaConfig { slots_per_core: maxima.slots_per_core.div_ceil(4), ..maxima };
        // SAFETY: the directory is used with this arena and this instance's epochs only.
        let names = unsafe { HashDir::new(core, decisions, config.root_bucket_count) }?;
        let permissions = Permissions { mode: 0o755, user: 0, group: 0 };
        let place = CacheLine(Place::under(0));
        let inode = Inode::new(ROOT_NUMBER, Kind::Directory, permissions, 0, Named::AtOnce);
        let root = arena.place(Directory { inode, names, place })?;
        let root = NonNull::from(root);
        let node = InodeRef::new(root.cast(), Kind::Directory);
        node.directory().place.parent.store(node.to_bits(), Ordering::Release);
        // SAFETY: they lie in the arena itself, with what keeps them.
        let [of_epochs, of_counts] = unsafe { Rounds::create(arena) }?;
        let epochs = Epochs::create_in(arena, of_epochs)?;
        let counts = RefCache::create_in(arena, decisions, counts, of_counts)?;
        let names =
            SocketsConfig { seed: config.hash_seed, bucket_count: config.directory_bucket_count.max(SOCKET_BUCKETS) };
        // SAFETY: all lies in the arena, for good, as the instance does; its epochs are used with it alone.
        let sockets = unsafe { Sockets::found(core, Foundation { pool: pages, epochs, counts, decisions }, names) }?;
        let instance = arena.place(ScaleFs {
            identity: Identity::new(arena),
            decisions: NonNull::from(decisions),
            epochs: NonNull::from(epochs),
            counts: NonNull::from(counts),
            stamps: NonNull::from(Maxima::create(arena, maxima)?),
            directory_stamps: NonNull::from(Maxima::create(arena, of_directories)?),
            sizes: NonNull::from(Maxima::create(arena, maxima)?),
            pages: NonNull::from(pages),
            root,
            hash_seed: config.hash_seed,
            directory_bucket_count: config.directory_bucket_count,
            inodes: Budget::create(arena, config.inode_limit)?,
            sockets,
            claims: Claims::create(arena)?,
            lock_waits: NonNull::from(LockWaits::create(arena)?),
            // SAFETY: used with cores of this arena and guards of these epochs, whose maintenance frees nodes.
            processes: CacheLine(unsafe { RadixArray::new() }),
            // SAFETY: what is made lies in the arena itself, with what keeps it.
            own: unsafe {
                PerCore::create(arena, |_| Own {
                    number_hint: OwnWord::new(0),
                    made: OwnWord::new(0),
                    processes: OwnWord::new(0),
                    child_hint: OwnWord::new(0),
                    process_hint: OwnWord::new(0),
                    growing: core::array::from_fn(|_| OwnWord::new(0)),
                    working_on: core::array::from_fn(|_| AtomicU64::new(0)),
                    operation: AtomicU64::new(0),
                    noted: Noted::new(),
                    locked_pipes: Noted::new(),
                    moving_offset: AtomicU64::new(0),
                    family: AtomicU64::new(0),
                    hand: Hand::new(),
                    locks: LockNote::new(),
                })
            }?,
        })?;
        arena.set_root(instance);
        Ok(instance)
    }
}
