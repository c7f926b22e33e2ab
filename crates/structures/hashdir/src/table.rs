//! Buckets, and the tables that lead to them. A table is immutable but for the pointer to its successor.

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::{self, NonNull};
use core::slice;
// Calls find a bucket's segment by an acquire load of another word; models need not interleave this one.
use core::sync::atomic::AtomicPtr as Segment;

use epoch::{Retired, RetiredKind};
use percpu::{
    ArenaObject, CacheLine, Core, CoreLock, Layout as Fingerprint, LockRank, ObjectKind, OutOfMemory, SizeClass,
    object_kind,
};
use sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::entry::{Entry, LongName};

/// Kind of a retired entry, for the callback of `Epochs::maintain`.
pub const KIND_ENTRY: RetiredKind = RetiredKind(1);
/// Kind of a retired table.
pub const KIND_TABLE: RetiredKind = RetiredKind(2);
/// Rank of a directory's growth lock.
pub const RANK_GROW: LockRank = LockRank(10);
/// Rank of bucket locks; among themselves they are taken by address.
pub const RANK_BUCKET: LockRank = LockRank(20);

/// Buckets of a segment: 32 KiB of memory.
pub(crate) const SEGMENT_BUCKETS: usize = if cfg!(loom) { 4 } else { 256 };
/// Segments whose pointers fit in one table of 64 KiB.
const MAX_SEGMENTS: usize = ((64 << 10) - size_of::<Table>()) / size_of::<*mut Bucket>();
/// Most buckets that a table can have: the largest power of two of segments.
pub(crate) const MAX_BUCKETS: usize = (1 << MAX_SEGMENTS.ilog2()) * SEGMENT_BUCKETS;

/// A chain and its lock, on two lines.
#[repr(C)]
pub(crate) struct Bucket {
    head: CacheLine<Head>,
    pub(crate) lock: CacheLine<CoreLock>,
}

/// A bucket's first line. Guarded by the bucket's lock, read by anybody.
struct Head {
    /// Bit 0: the chain has moved to the next table.
    first: AtomicPtr<Entry>,
    /// A bit for each entry that the chain has had since it was last empty, chosen by its hash: a name whose bit is not
    /// set is not in the chain, and none of its entries has to be fetched from memory to know that.
    filter: AtomicU64,
    /// How often an entry has come into the chain.
    changes: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 128);

/// What tools call the parts of a bucket.
pub const BUCKET: ObjectKind = object_kind!(2, Bucket as "directory bucket" { "first" = head.0.first, "filter" = head.0.filter, "changes" = head.0.changes, "lock" = lock });

/// The buckets of a whole segment.
#[repr(C)]
struct WholeSegment([Bucket; SEGMENT_BUCKETS]);

// SAFETY: a kind of its own; buckets have no destructor.
unsafe impl ArenaObject for WholeSegment {
    const KIND: ObjectKind = BUCKET;
}

/// Where everything is in tables and entries.
pub(crate) const LAYOUT: Fingerprint = WholeSegment::LAYOUT
    .and_layout(Entry::LAYOUT)
    .and_layout(LongName::LAYOUT)
    .and_type::<Table>()
    .and(offset_of!(Table, retired) as u64)
    .and(offset_of!(Table, bucket_count) as u64)
    .and(offset_of!(Table, parity) as u64)
    .and(offset_of!(Table, next) as u64);

/// A hash's bit in the filter: of bits that choose no bucket, and that are part of the hash's position in listings.
#[inline]
fn filter_bit(hash: u64) -> u64 {
    1 << (hash >> 48 & 63)
}

const MOVED: usize = 1;

impl Bucket {
    fn new() -> Bucket {
        let head =
            Head { first: AtomicPtr::new(ptr::null_mut()), filter: AtomicU64::new(0), changes: AtomicU64::new(0) };
        Bucket { head: CacheLine(head), lock: CacheLine(CoreLock::new()) }
    }

    /// The first entry, and whether the chain has moved (then nothing is said by its being empty).
    #[inline]
    pub(crate) fn head(&self) -> (*mut Entry, bool) {
        // Acquire pairs with the release in `set_head` and `mark_moved`.
        let head = self.head.first.load(Ordering::Acquire);
        (head.map_addr(|address| address & !MOVED), head.addr() & MOVED != 0)
    }

    /// With the lock held.
    #[inline]
    pub(crate) fn set_head(&self, head: *mut Entry) {
        self.head.first.store(head, Ordering::Release);
    }

    /// Whether an entry with this hash may be in the chain whose head was loaded just before. If not, none was at a moment
    /// since then: bits go only when the chain is empty.
    #[inline]
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        self.head.filter.load(Ordering::Acquire) & filter_bit(hash) != 0
    }

    /// How many different bits the chain's entries have had: about its length, if names do not come and go.
    #[inline]
    pub(crate) fn filter_bits(&self) -> usize {
        self.head.filter.load(Ordering::Relaxed).count_ones() as usize
    }

    /// With the lock held, before an entry with this hash becomes the head.
    #[inline]
    pub(crate) fn will_hold(&self, hash: u64) {
        let (filter, bit) = (&self.head.filter, filter_bit(hash));
        let held = match sync::mutant::planted("hashdir: a name that comes back goes from the filter") {
            false => filter.load(Ordering::Relaxed) | bit,
            true => filter.load(Ordering::Relaxed) ^ bit,
        };
        filter.store(held, Ordering::Release);
        self.note_change();
    }

    /// With the lock held, before an entry is seen that was not in the chain.
    #[inline]
    fn note_change(&self) {
        if sync::mutant::planted("hashdir: changes are not counted") {
            return;
        }
        let changes = &self.head.changes;
        changes.store(changes.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// See [`HashDir::version`](crate::HashDir::version).
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.head.changes.load(Ordering::Acquire)
    }

    /// With the lock held and the chain empty.
    #[inline]
    pub(crate) fn holds_nothing(&self) {
        self.head.filter.store(0, Ordering::Release);
    }

    /// With the lock held, when the chain is complete in the next table.
    pub(crate) fn mark_moved(&self) {
        let (head, _) = self.head();
        self.head.first.store(head.map_addr(|address| address | MOVED), Ordering::Release);
    }
}

/// A table of a power of two of buckets. The pointers to its segments follow it in memory.
#[repr(C)]
pub(crate) struct Table {
    retired: Retired,
    bucket_count: usize,
    /// Which of an entry's two next pointers the chains use.
    pub(crate) parity: usize,
    /// Where chains move that are marked so; null while the directory does not grow.
    pub(crate) next: AtomicPtr<Table>,
}

impl Table {
    fn layout(segment_count: usize) -> Option<SizeClass> {
        let pointers = Layout::array::<*mut Bucket>(segment_count).ok()?;
        SizeClass::of(Layout::new::<Table>().extend(pointers).ok()?.0)
    }

    fn segment_layout(bucket_count: usize) -> SizeClass {
        let buckets = bucket_count.min(SEGMENT_BUCKETS);
        if buckets == SEGMENT_BUCKETS {
            return WholeSegment::CLASS;
        }
        // Objects of a kind have one size: small directories' buckets are of none.
        Layout::array::<Bucket>(buckets).ok().and_then(SizeClass::of).expect("a segment fits in 64 KiB")
    }

    /// Atomic: where each segment's buckets are, null until they are made.
    fn segments(table: NonNull<Table>) -> NonNull<Segment<Bucket>> {
        // SAFETY: tables are made by `allocate` alone, which takes memory for the table and the pointers after it; the
        // table is aligned at least as they are.
        unsafe { table.add(1).cast() }
    }

    /// Allocates a table without buckets: [`Table::ensure_segment`] makes them before they are used, so that a large
    /// table costs no long pause.
    pub(crate) fn allocate(core: &Core<'_>, bucket_count: usize, parity: usize) -> Result<NonNull<Table>, OutOfMemory> {
        debug_assert!(bucket_count.is_power_of_two() && bucket_count <= MAX_BUCKETS);
        let segment_count = bucket_count.div_ceil(SEGMENT_BUCKETS);
        let class = Table::layout(segment_count).ok_or(OutOfMemory)?;
        let table = core.allocate(class)?.cast::<Table>();
        let next = AtomicPtr::new(ptr::null_mut());
        // SAFETY: fresh memory for the table and the pointers after it.
        unsafe {
            for index in 0..segment_count {
                Table::segments(table).add(index).write(Segment::new(ptr::null_mut()));
            }
            table.write(Table { retired: Retired::new(), bucket_count, parity, next });
        }
        Ok(table)
    }

    /// Makes the buckets of the segment in which this index is, if they are not there.
    ///
    /// # Safety
    /// The table lives, the index is below its number of buckets, and only one core at a time does this.
    pub(crate) unsafe fn ensure_segment(
        table: NonNull<Table>,
        core: &Core<'_>,
        bucket_index: usize,
    ) -> Result<(), OutOfMemory> {
        // SAFETY: in bounds by the caller's promise; the buckets are written to fresh memory that holds as many.
        unsafe {
            let place = Table::segments(table).add(bucket_index / SEGMENT_BUCKETS).as_ref();
            if place.load(Ordering::Relaxed).is_null() {
                let bucket_count = table.as_ref().bucket_count;
                let buckets = core.allocate(Table::segment_layout(bucket_count))?.cast::<Bucket>();
                for bucket in 0..bucket_count.min(SEGMENT_BUCKETS) {
                    buckets.add(bucket).write(Bucket::new());
                }
                // Release pairs with the acquire in `made_buckets`.
                place.store(buckets.as_ptr(), Ordering::Release);
            }
        }
        Ok(())
    }

    /// Gives a table and its segments back; entries are not touched.
    ///
    /// # Safety
    /// The table came from `allocate`, and no one uses it any more.
    pub(crate) unsafe fn free(core: &Core<'_>, table: NonNull<Table>) {
        // SAFETY: the caller's promise; counts and classes are those of the allocation.
        unsafe {
            let bucket_count = table.as_ref().bucket_count;
            let segment_count = bucket_count.div_ceil(SEGMENT_BUCKETS);
            for index in 0..segment_count {
                if let Some(segment) = NonNull::new(Table::segments(table).add(index).as_ref().load(Ordering::Acquire))
                {
                    core.free(segment.cast(), Table::segment_layout(bucket_count));
                }
            }
            core.free(table.cast(), Table::layout(segment_count).expect("as when it was allocated"));
        }
    }

    pub(crate) fn link(table: NonNull<Table>) -> NonNull<Retired> {
        // SAFETY: the field lies in the table.
        unsafe { table.byte_add(offset_of!(Table, retired)).cast() }
    }

    #[inline]
    pub(crate) fn bucket_count(&self) -> usize {
        self.bucket_count
    }

    /// The bucket of an index (its low bits), which must have been made.
    #[inline]
    pub(crate) fn bucket(&self, index: usize) -> &Bucket {
        let index = index & (self.bucket_count - 1);
        // SAFETY: the masked index is in bounds; segments live as long as their table. The segment was made: each bucket of a
        // directory's first table before that was published, and those of a next table before their old bucket was
        // marked as moved (or before the mover, who asks too, goes on).
        unsafe {
            // Relaxed: one that asks learned of the buckets by an acquire load (of a moved bucket's head, or of the
            // table).
            let segment =
                Table::segments(NonNull::from(self)).add(index / SEGMENT_BUCKETS).as_ref().load(Ordering::Relaxed);
            debug_assert!(!segment.is_null(), "buckets are made before they are announced");
            &*segment.add(index % SEGMENT_BUCKETS)
        }
    }

    /// All buckets that have been made. More may come in the meantime, unless growth is kept away.
    pub(crate) fn made_buckets(&self) -> impl Iterator<Item = &Bucket> {
        let (segments, buckets) = (self.bucket_count.div_ceil(SEGMENT_BUCKETS), self.bucket_count.min(SEGMENT_BUCKETS));
        let made = (0..segments).filter_map(move |index| {
            // SAFETY: in bounds; a segment that is seen was made whole, and lives as long as its table.
            unsafe {
                let segment = Table::segments(NonNull::from(self)).add(index).as_ref();
                // Acquire pairs with the release in `ensure_segment`: buckets are seen as they were made.
                NonNull::new(segment.load(Ordering::Acquire))
                    .map(|first| slice::from_raw_parts(first.as_ptr(), buckets))
            }
        });
        made.flatten()
    }
}

/// Frees a retired entry or table: for the callback of `Epochs::maintain`. False if the kind is not one of ours.
///
/// # Safety
/// Called once per retired object, by that callback.
pub unsafe fn free_retired(core: &Core<'_>, kind: RetiredKind, object: NonNull<Retired>) -> bool {
    // SAFETY: objects of our kinds are retired with the links of entries and tables, respectively, and once (the promise to
    // `retire`); those who could still find them were pinned, and are no more.
    unsafe {
        match kind {
            KIND_ENTRY => Entry::free(core, Entry::of_link(object)),
            KIND_TABLE => Table::free(core, object.byte_sub(offset_of!(Table, retired)).cast()),
            _ => return false,
        }
    }
    true
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_filter_lets_through_what_came_since_the_bucket_was_empty() {
        let bucket = Bucket::new();
        let hash = |bit: u64| 0xffc0_0000_0000_0000 | bit << 48 | bit;
        for bit in 0..64 {
            assert!(!bucket.may_hold(hash(bit)), "bit {bit}");
            assert_eq!(bucket.filter_bits() as u64, bit);
            bucket.will_hold(hash(bit));
            assert!((0..64).all(|other| bucket.may_hold(hash(other)) == (other <= bit)));
        }
        bucket.holds_nothing();
        assert_eq!((bucket.filter_bits(), bucket.changes()), (0, 64));
        assert!((0..64).all(|bit| !bucket.may_hold(hash(bit))));
    }
}
