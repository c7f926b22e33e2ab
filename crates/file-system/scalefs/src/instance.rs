//! An instance of the file system: where everything is, and what each core keeps for itself.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use commit::{Decisions, Tag};
use epoch::Epochs;
use maxima::Maxima;
use pages::PagePool;
use percpu::{CacheLine, Core, ObjectKind, PerCore, table_kind};
use posix_calls::Kind;
use radix::RadixArray;
use refcache::RefCache;
use sockets::Sockets;
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::{OwnWord, Wait};

use crate::budget::Budget;
use crate::claims::Claims;
use crate::directory::Directory;
use crate::file_locks::LockNote;
use crate::hand::Hand;
use crate::identity::Identity;
use crate::inode::stamp_of;
use crate::inode_ref::InodeRef;
use crate::lock_waits::LockWaits;
use crate::noted::Noted;

/// Directories that a core remembers for growth; others are remembered when their next name comes.
const GROWING_DIRECTORIES: usize = 4;
/// Objects that one call can leave in the middle of a change.
pub(crate) const WORKING_OBJECTS: usize = 4;

/// What of an object changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Its data or names, and so its status.
    Data,
    /// Its status only.
    Status,
}

/// How an instance is laid out.
#[derive(Clone, Copy, Debug)]
pub struct ScaleFsConfig {
    /// Moves hash collisions: of names in buckets and of inodes in count slots.
    pub hash_seed: u64,
    /// Buckets of the root directory at the start, 128 bytes each.
    pub root_bucket_count: usize,
    /// Buckets of every other directory at the start.
    pub directory_bucket_count: usize,
    /// Most files, directories and symbolic links that there can be beside the root.
    pub inode_limit: u64,
    /// Slots of each core in each of its three caches (counts, times, sizes), 64 bytes each.
    pub count_slots_per_core: usize,
}

impl Default for ScaleFsConfig {
    fn default() -> ScaleFsConfig {
        ScaleFsConfig {
            hash_seed: 1,
            root_bucket_count: 4096,
            directory_bucket_count: 16,
            inode_limit: u64::from(u32::MAX),
            count_slots_per_core: 1024,
        }
    }
}

/// A file system in an arena. Read-only after creation but for what its parts guard themselves.
pub struct ScaleFs {
    pub(crate) identity: Identity,
    pub(crate) decisions: NonNull<Decisions>,
    pub(crate) epochs: NonNull<Epochs>,
    pub(crate) counts: NonNull<RefCache>,
    pub(crate) stamps: NonNull<Maxima<2>>,
    pub(crate) directory_stamps: NonNull<Maxima<2>>,
    pub(crate) sizes: NonNull<Maxima<1>>,
    pub(crate) pages: NonNull<PagePool>,
    pub(crate) root: NonNull<Directory>,
    pub(crate) hash_seed: u64,
    pub(crate) directory_bucket_count: usize,
    pub(crate) inodes: Budget,
    pub(crate) sockets: Sockets,
    pub(crate) claims: Claims,
    pub(crate) lock_waits: NonNull<LockWaits>,
    /// See `lives.rs`.
    pub(crate) processes: CacheLine<RadixArray>,
    pub(crate) own: PerCore<Own>,
}

/// What each core keeps for itself.
pub(crate) struct Own {
    /// Where it looks first for a free descriptor's number of its own.
    pub(crate) number_hint: OwnWord<u32>,
    /// How many inodes it has made.
    pub(crate) made: OwnWord<u64>,
    /// How many processes it has made.
    pub(crate) processes: OwnWord<u64>,
    /// Where it looks first for a free place in a family, and in the table of processes.
    pub(crate) child_hint: OwnWord<u32>,
    pub(crate) process_hint: OwnWord<u32>,
    /// Bits of nodes of directories that want to grow, each with a reference; or zero.
    pub(crate) growing: [OwnWord<u64>; GROWING_DIRECTORIES],
    /// For whoever takes the core over: bits of nodes that a call is changing, and its operation; or zero.
    pub(crate) working_on: [AtomicU64; WORKING_OBJECTS],
    pub(crate) operation: AtomicU64,
    /// As `working_on`, if they are many.
    pub(crate) noted: Noted,
    /// As above: pipes that a transaction has locked, each until it is unlocked.
    pub(crate) locked_pipes: Noted,
    /// As above: address of the description whose offset a call moves; or zero.
    pub(crate) moving_offset: AtomicU64,
    /// As above: address of the family that a call works on; or zero.
    pub(crate) family: AtomicU64,
    /// As above.
    pub(crate) hand: Hand,
    /// As above.
    pub(crate) locks: LockNote,
}

/// What tools call the parts of an instance, and of what each core keeps.
pub(crate) const FILE_SYSTEM: ObjectKind = table_kind!(ScaleFs as "file system" { "description" = identity, "free inodes" = inodes, "claims" = claims, "root of the table of processes" = processes, "cores" = own });
pub(crate) const OWN: ObjectKind = table_kind!(Own as "core's notes" {
    "hint of a free descriptor" = number_hint,
    "inodes made" = made,
    "processes made" = processes,
    "hint of a free child" = child_hint,
    "hint of a free process" = process_hint,
    "growing directories" = growing,
    "nodes that a call changes" = working_on,
    "operation" = operation,
    "noted nodes" = noted,
    "locked pipes" = locked_pipes,
    "offset that moves" = moving_offset,
    "family" = family,
    "hand" = hand,
    "locks that change" = locks,
});

/// While it lives, the core has noted that a call works on a family.
pub(crate) struct FamilyNote<'n>(&'n AtomicU64);

impl Drop for FamilyNote<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

// SAFETY: all pointers lead to `Sync` parts in the same arena.
unsafe impl Sync for ScaleFs {}
// SAFETY: as above.
unsafe impl Send for ScaleFs {}

impl ScaleFs {
    pub(crate) fn epochs(&self) -> &Epochs {
        // SAFETY: placed in the arena, as `self` is, for good; the same for all below but the pages.
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

    pub(crate) fn stamps(&self) -> &Maxima<2> {
        // SAFETY: see `epochs`.
        unsafe { self.stamps.as_ref() }
    }

    /// Where the times of directories are cached: apart, for all cores may change one directory, and what a core does with other
    /// objects must not move its times to the directory's line.
    pub(crate) fn directory_stamps(&self) -> &Maxima<2> {
        // SAFETY: see `epochs`.
        unsafe { self.directory_stamps.as_ref() }
    }

    /// Where the times of an object are cached.
    #[inline]
    pub(crate) fn stamps_of(&self, node: InodeRef) -> &Maxima<2> {
        if node.kind() == Kind::Directory { self.directory_stamps() } else { self.stamps() }
    }

    pub(crate) fn sizes(&self) -> &Maxima<1> {
        // SAFETY: see `epochs`.
        unsafe { self.sizes.as_ref() }
    }

    pub(crate) fn pages(&self) -> &PagePool {
        // SAFETY: the pool lies in the arena, as `self` does: `create_with_pages` has asserted it.
        unsafe { self.pages.as_ref() }
    }

    /// Notes the description whose offset a call is about to lock, for the case that its process dies in it; zero ends that.
    #[inline]
    pub(crate) fn moving_offset(&self, core: &Core<'_>, address: u64) {
        self.own.get(core).moving_offset.store(address, Ordering::Relaxed);
        // Before the lock that follows, for the heir.
        fence(Ordering::Release);
    }

    pub(crate) fn is_core_of(&self, core: &Core<'_>) -> bool {
        self.own.is_of(core)
    }

    pub(crate) fn noted<'s>(&'s self, core: &'s Core<'_>) -> &'s Noted {
        &self.own.get(core).noted
    }

    pub(crate) fn locked_pipes<'s>(&'s self, core: &'s Core<'_>) -> &'s Noted {
        &self.own.get(core).locked_pipes
    }

    #[inline]
    pub(crate) fn hand<'s>(&'s self, core: &'s Core<'_>) -> &'s Hand {
        &self.own.get(core).hand
    }

    pub(crate) fn lock_note<'s>(&'s self, core: &'s Core<'_>) -> &'s LockNote {
        &self.own.get(core).locks
    }

    pub(crate) fn lock_waits(&self) -> &LockWaits {
        // SAFETY: see `epochs`.
        unsafe { self.lock_waits.as_ref() }
    }

    pub(crate) fn number_hint<'s>(&'s self, core: &'s Core<'_>) -> &'s OwnWord<u32> {
        &self.own.get(core).number_hint
    }

    pub(crate) fn child_hint<'s>(&'s self, core: &'s Core<'_>) -> &'s OwnWord<u32> {
        &self.own.get(core).child_hint
    }

    pub(crate) fn process_hint<'s>(&'s self, core: &'s Core<'_>) -> &'s OwnWord<u32> {
        &self.own.get(core).process_hint
    }

    /// Which of the core's processes the next one is, from 1 on.
    pub(crate) fn count_process(&self, core: &Core<'_>) -> u64 {
        let processes = &self.own.get(core).processes;
        processes.set(processes.get() + 1);
        processes.get()
    }

    /// Notes the family that a call is about to change, for the case that its process dies in it, until the note is dropped.
    pub(crate) fn work_on_family<'s>(&'s self, core: &'s Core<'_>, address: u64) -> FamilyNote<'s> {
        let note = FamilyNote(&self.own.get(core).family);
        note.0.store(address, Ordering::Relaxed);
        // Before what the call changes then, for the heir.
        fence(Ordering::Release);
        note
    }

    /// Marks that an object changes now. Objects that two cores mark share nothing by it.
    #[inline]
    pub(crate) fn stamp(&self, core: &Core<'_>, node: InodeRef, stamp: Stamp, now_ns: u64, wait: &impl Wait) {
        let now = stamp_of(now_ns as i64);
        let modified = if stamp == Stamp::Data { now } else { 0 };
        // SAFETY: the caller has found the object in this call; it is not freed before all cores have maintained.
        unsafe { self.stamps_of(node).raise(core, &node.inode().stamps, [modified, now], wait) };
    }

    pub(crate) fn root_node(&self) -> InodeRef {
        InodeRef::new(self.root.cast(), Kind::Directory)
    }

    /// Notes what a call is about to change, for the case that its process dies in it.
    #[inline]
    pub(crate) fn working_on(&self, core: &Core<'_>, nodes: &[InodeRef]) {
        let own = self.own.get(core);
        own.operation.store(0, Ordering::Relaxed);
        for (place, node) in own.working_on.iter().zip(nodes) {
            place.store(node.to_bits(), Ordering::Relaxed);
        }
        // Before the locks that follow, for the heir.
        fence(Ordering::Release);
    }

    /// Notes the operation on which the changes depend.
    #[inline]
    pub(crate) fn working_under(&self, core: &Core<'_>, tag: Tag) {
        self.own.get(core).operation.store(tag.to_bits(), Ordering::Release);
    }

    /// Forgets what the call that ends had noted, which may be freed from now on.
    #[inline]
    pub(crate) fn working_ended(&self, core: &Core<'_>) {
        for place in &self.own.get(core).working_on {
            place.store(0, Ordering::Release);
        }
    }
}
