//! The directory itself: where its table is, whether it lives, and lookups.

use core::mem::offset_of;
use core::ptr::{self, NonNull};

use commit::{Anyone, Decisions, Viewer};
use epoch::Guard;
use percpu::{CacheLine, Core, CoreLock, Layout, OutOfMemory};
use sync::OwnWord;
use sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::entry::Entry;
use crate::key::Key;
use crate::table::{self, Bucket, MAX_BUCKETS, SEGMENT_BUCKETS, Table};

pub(crate) const ALIVE: u32 = 0;
pub(crate) const KILLING: u32 = 1;
pub(crate) const DEAD: u32 = 2;

/// A directory; see the crate's head. It lives in the arena, inside whatever the caller makes of it.
#[repr(C, align(64))]
pub struct HashDir {
    /// Atomic: changes when growth ends.
    pub(crate) table: AtomicPtr<Table>,
    /// Immutable.
    decisions: NonNull<Decisions>,
    /// Atomic: changes when the directory is killed.
    pub(crate) status: AtomicU32,
    pub(crate) upkeep: CacheLine<Upkeep>,
}

/// What growth and kill need; on a line of its own.
pub(crate) struct Upkeep {
    pub(crate) lock: CoreLock,
    /// Atomic: an insertion met a long chain.
    pub(crate) crowded: AtomicU32,
    /// Guarded by `lock`: buckets of the table that have moved to the next one.
    pub(crate) moved: OwnWord<usize>,
    /// Guarded by `lock`: stamp of the epoch in which the last growth ended, or [`NOT_SETTLED`] while it ends.
    pub(crate) settled_in: OwnWord<u64>,
}

/// No stamp: an epoch that is never reached.
pub(crate) const NOT_SETTLED: u64 = u64::MAX >> 1;

impl HashDir {
    /// Where it says whether it lives, in bytes from its start: before that it says where its table is.
    pub const STATUS: usize = offset_of!(HashDir, status);
    /// Where what growth and kill need begins.
    pub const UPKEEP: usize = offset_of!(HashDir, upkeep);
}

// SAFETY: pointers lead to objects of the arena that are `Sync`.
unsafe impl Sync for HashDir {}
// SAFETY: nothing that it leads to belongs to a thread.
unsafe impl Send for HashDir {}

/// A name that a lookup found, with its value at that moment. Valid while the guard is.
#[derive(Clone, Copy)]
pub struct Found<'g> {
    pub(crate) entry: &'g Entry,
    decisions: &'g Decisions,
    value: u64,
    version: u64,
}

/// A name that was seen to exist; its value has not been read. Valid while the guard is.
#[derive(Clone, Copy)]
pub struct Present<'g> {
    entry: &'g Entry,
    decisions: &'g Decisions,
}

impl Present<'_> {
    /// Whether its value may have the [`MARK`](crate::MARK). If not, it had none at a moment at which the name existed.
    #[inline]
    pub fn may_be_marked(&self) -> bool {
        self.entry.is_marked()
    }

    /// Whether the name has existed ever since.
    #[inline]
    pub fn still_present(&self) -> bool {
        self.still_present_for(Anyone)
    }

    /// [`Present::still_present`] for a viewer.
    #[inline]
    pub fn still_present_for(&self, viewer: impl Viewer) -> bool {
        self.entry.exists_for(self.decisions, viewer)
    }
}

/// Where everything is in a directory.
pub const LAYOUT: Layout = table::LAYOUT.and_type::<HashDir>();

impl HashDir {
    /// An empty directory with at least `bucket_count` buckets (rounded up to a power of two).
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold the first table.
    ///
    /// # Safety
    /// `decisions` lies in the arena of `core`. The directory is used with cores of that arena and with one `Epochs` and its
    /// guards only, whose maintenance frees with `free_retired`. A locked bucket is asked for nothing but names that lie in
    /// it. Room for many names is neither exchanged nor looked at in another way while they are locked.
    pub unsafe fn new(core: &Core<'_>, decisions: &Decisions, bucket_count: usize) -> Result<HashDir, OutOfMemory> {
        let bucket_count = bucket_count.clamp(1, MAX_BUCKETS).next_power_of_two();
        let table = Table::allocate(core, bucket_count, 0)?;
        for index in (0..bucket_count).step_by(SEGMENT_BUCKETS) {
            // SAFETY: no one has seen the table.
            unsafe {
                if let Err(error) = Table::ensure_segment(table, core, index) {
                    Table::free(core, table);
                    return Err(error);
                }
            }
        }
        Ok(HashDir {
            table: AtomicPtr::new(table.as_ptr()),
            decisions: NonNull::from(decisions),
            status: AtomicU32::new(ALIVE),
            upkeep: CacheLine(Upkeep {
                lock: CoreLock::new(),
                crowded: AtomicU32::new(0),
                moved: OwnWord::new(0),
                settled_in: OwnWord::new(0),
            }),
        })
    }

    /// Frees the table and all entries, each of which is passed to `each` first (with its value).
    ///
    /// # Safety
    /// No one uses the directory any more, or will.
    pub unsafe fn destroy(&self, core: &Core<'_>, mut each: impl FnMut(u64)) {
        let mut table = NonNull::new(self.table.load(Ordering::Acquire));
        while let Some(current) = table {
            // SAFETY: no one else uses tables or entries, by the caller's promise. Each entry is in one chain that has
            // not moved, so it is freed once, and its link is read before that.
            unsafe {
                for bucket in current.as_ref().made_buckets() {
                    let (mut head, moved) = bucket.head();
                    while let Some(entry) = NonNull::new(head).filter(|_| !moved) {
                        head = entry.as_ref().next(current.as_ref().parity).load(Ordering::Relaxed);
                        each(entry.as_ref().value(self.decisions()).0);
                        Entry::free(core, entry);
                    }
                }
                table = NonNull::new(current.as_ref().next.load(Ordering::Relaxed));
                Table::free(core, current);
            }
        }
    }

    #[inline]
    pub(crate) fn decisions(&self) -> &Decisions {
        // SAFETY: lives in the arena, by the contract of `new`.
        unsafe { self.decisions.as_ref() }
    }

    /// The table in use and the bucket in which a hash is, moved chains followed.
    #[inline]
    pub(crate) fn locate<'g>(&'g self, _guard: &'g Guard<'_>, hash: u64) -> (&'g Table, &'g Bucket) {
        let mut table = self.table.load(Ordering::Acquire);
        loop {
            // SAFETY: tables are retired, so they live as long as the guard.
            let current = unsafe { &*table };
            let bucket = current.bucket(hash as usize);
            if !bucket.head().1 {
                return (current, bucket);
            }
            table = current.next.load(Ordering::Acquire);
        }
    }

    /// The entry of a name, whatever its state.
    #[inline]
    fn find<'g>(&'g self, _guard: &'g Guard<'_>, key: &Key<'_>) -> Option<&'g Entry> {
        let mut table = self.table.load(Ordering::Acquire);
        loop {
            // SAFETY: tables and entries are retired, so they live as long as the guard.
            let current = unsafe { &*table };
            let bucket = current.bucket(key.hash as usize);
            let (head, moved) = bucket.head();
            if !moved {
                // Also if the chain is empty, of which a processor could not tell beforehand whether it is.
                if !bucket.may_hold(key.hash) {
                    return None;
                }
                // SAFETY: the head of a chain of this table, linked with its parity, whose entries live as long as the guard.
                return unsafe { find_in_chain(head, current.parity, key) };
            }
            table = current.next.load(Ordering::Acquire);
        }
    }

    /// Whether a name exists. Reads nothing of the value, so it does not conflict with its replacement.
    #[inline]
    pub fn exists(&self, guard: &Guard<'_>, key: &Key<'_>) -> bool {
        self.find(guard, key).is_some_and(|entry| entry.exists(self.decisions()))
    }

    /// A name without its value, if it exists: for checks that may have to be made again.
    #[inline]
    pub fn present<'g>(&'g self, guard: &'g Guard<'_>, key: &Key<'_>) -> Option<Present<'g>> {
        self.present_for(guard, key, Anyone)
    }

    /// [`HashDir::present`] for a viewer that may have marked the name itself.
    #[inline]
    pub fn present_for<'g>(&'g self, guard: &'g Guard<'g>, key: &Key<'_>, viewer: impl Viewer) -> Option<Present<'g>> {
        let entry = self.find(guard, key)?;
        let decisions = self.decisions();
        entry.exists_for(decisions, viewer).then_some(Present { entry, decisions })
    }

    /// A name and its value, if it exists.
    #[inline]
    pub fn lookup<'g>(&'g self, guard: &'g Guard<'_>, key: &Key<'_>) -> Option<Found<'g>> {
        self.lookup_for(guard, key, Anyone)
    }

    /// [`HashDir::lookup`] for a viewer that may have marked the name itself.
    #[inline]
    pub fn lookup_for<'g>(&'g self, guard: &'g Guard<'g>, key: &Key<'_>, viewer: impl Viewer) -> Option<Found<'g>> {
        let entry = self.find(guard, key)?;
        let found = Found::of(entry, self.decisions(), viewer);
        // In this order: a value that was read while the entry existed later was its value all the time in between,
        // or a value that it had before.
        entry.exists_for(self.decisions(), viewer).then_some(found)
    }

    /// A number for two looks at a name that returned the same, of which one was made after a first call of this, and
    /// the other before a second one: if both calls gave the same, the looks would have returned that all the time in
    /// between. So no one is misled by what changes and changes back. The looks are [`HashDir::exists`] or
    /// [`HashDir::present`].
    #[inline]
    pub fn version(&self, guard: &Guard<'_>, key: &Key<'_>) -> u64 {
        let (table, bucket) = self.locate(guard, key.hash);
        // A directory has each number of buckets once.
        bucket.changes() << 8 | u64::from(table.bucket_count().ilog2())
    }

    /// [`HashDir::version`] for looks that tell the value, too.
    #[inline]
    pub fn value_version(&self, guard: &Guard<'_>, key: &Key<'_>) -> u64 {
        let version = self.version(guard, key);
        let values = self.find(guard, key).map_or(0, Entry::value_version);
        version.wrapping_add(values.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Whether the guard's core keeps others from changing a name.
    pub fn is_locked(&self, guard: &Guard<'_>, key: &Key<'_>) -> bool {
        self.locate(guard, key.hash).1.lock.holder() == Some(guard.core().index())
    }

    /// Whether the directory was killed.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.status.load(Ordering::Acquire) == DEAD
    }
}

impl<'g> Found<'g> {
    #[inline]
    pub(crate) fn of(entry: &'g Entry, decisions: &'g Decisions, viewer: impl Viewer) -> Found<'g> {
        let (value, version) = entry.value_for(decisions, viewer);
        Found { entry, decisions, value, version }
    }

    /// The value when it was looked up.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Whether the name has existed ever since.
    #[inline]
    pub fn still_present(&self) -> bool {
        self.still_present_for(Anyone)
    }

    /// [`Found::still_present`] for a viewer.
    #[inline]
    pub fn still_present_for(&self, viewer: impl Viewer) -> bool {
        // An entry that has ceased to exist never comes back.
        self.entry.exists_for(self.decisions, viewer)
    }

    /// Whether the name has existed with this value ever since.
    #[inline]
    pub fn still_same(&self) -> bool {
        self.still_same_for(Anyone)
    }

    /// [`Found::still_same`] for a viewer.
    #[inline]
    pub fn still_same_for(&self, viewer: impl Viewer) -> bool {
        self.entry.value_for(self.decisions, viewer) == (self.value, self.version) && self.still_present_for(viewer)
    }

    /// A number that two look-ups of a name give alike if it has led to the same value from the first to the second, and else
    /// (but for a chance of one in 2^64) different ones.
    #[inline]
    pub fn trace(&self) -> u64 {
        let mix = |trace: u64, word: u64| (trace ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        [self.value, self.version].into_iter().fold(ptr::from_ref(self.entry) as usize as u64, mix)
    }

    /// Whether both are the same entry of one directory.
    #[inline]
    pub fn is_same_entry(&self, other: &Found<'_>) -> bool {
        ptr::eq(self.entry, other.entry)
    }
}

/// # Safety
/// `head` is the head of a chain of live entries linked with this parity, and they live for all of `'g`.
#[inline]
pub(crate) unsafe fn find_in_chain<'g>(mut head: *mut Entry, parity: usize, key: &Key<'_>) -> Option<&'g Entry> {
    // SAFETY: the caller's promise; an unlinked entry keeps its link, so a walk never leaves the live ones.
    while let Some(entry) = unsafe { head.as_ref() } {
        if entry.matches(key) {
            return Some(entry);
        }
        head = entry.next(parity).load(Ordering::Acquire);
    }
    None
}
