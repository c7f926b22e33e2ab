//! The arena: one region of memory that holds every structure, and may be mapped by several processes at one address.

use core::alloc::Layout;
use core::fmt;
use core::mem::offset_of;
use core::ops::Range;
use core::ptr::{self, NonNull};
// Set once when a chunk is taken; no part of the protocol, so that models need not interleave it.
use core::sync::atomic::AtomicU8;

use sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::class::KIND_MAP_BYTES;
use crate::core_index::CoreIndex;
use crate::free_pages::{FreePages, Shortage, words_for};
use crate::magazine::CoreSlabs;
use crate::object::{ArenaRoot, Layout as Fingerprint, ObjectKind, Part};
use crate::region::HeapRegion;
use crate::{LINE_BYTES, MAX_CORES, OutOfMemory, table_kind};

const MAGIC: u64 = 0x0061_6e65_7261_5f31;
/// Where everything is in the arena's own parts; what users keep there has an [`ArenaRoot::LAYOUT`].
const LAYOUT: Fingerprint = Fingerprint::BUILD
    .and_type::<Arena>()
    .and(offset_of!(Arena, records) as u64)
    .and(offset_of!(Arena, kinds) as u64)
    .and(offset_of!(Arena, root) as u64)
    .and(offset_of!(Arena, next_offset) as u64)
    .and(offset_of!(Arena, core_limit) as u64)
    .and(offset_of!(Arena, free_map) as u64)
    .and(offset_of!(Arena, shortage) as u64)
    .and(offset_of!(Arena, service) as u64)
    .and_type::<CoreRecord>()
    .and_layout(CoreSlabs::LAYOUT);

/// How an arena is laid out.
#[derive(Clone, Copy, Debug)]
pub struct ArenaConfig {
    /// Number of cores, 1 to 256.
    pub core_count: usize,
    /// Bytes that a core takes from the arena at once for small objects: a power of two, at least 4 KiB.
    pub chunk_bytes: usize,
}

impl ArenaConfig {
    /// The configuration for `core_count` cores with chunks of 64 KiB.
    pub fn new(core_count: usize) -> ArenaConfig {
        ArenaConfig { core_count, chunk_bytes: 64 << 10 }
    }
}

/// Why an arena could not be created.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// The number of cores is not between 1 and 256.
    CoreCount(usize),
    /// The chunk size is not a power of two of at least 4 KiB.
    ChunkBytes(usize),
    /// The base is not aligned to 4 KiB.
    Misaligned,
    /// The region cannot even hold the header and the records of all cores.
    TooSmall {
        /// Bytes that were given.
        size_bytes: usize,
    },
}

/// Why an arena of another process, or what lies in it, cannot be used.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// The base is not aligned to 4 KiB.
    Misaligned,
    /// There is no arena at the base.
    NotAnArena,
    /// The arena was created at another address, where its pointers lead to.
    OtherAddress {
        /// That address.
        created_at: usize,
    },
    /// Another build of the program created the arena, or what was asked for in it: it lies there in another way.
    OtherBuild {
        /// The fingerprint of this build's layout.
        expected: u64,
        /// That of what is there.
        found: u64,
    },
    /// Nothing was put into the arena yet.
    Empty,
}

impl fmt::Display for AttachError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::Misaligned => formatter.write_str("expected memory aligned to 4096 bytes"),
            AttachError::NotAnArena => formatter.write_str("expected an arena at this address, found none"),
            AttachError::OtherAddress { created_at } => {
                write!(
                    formatter,
                    "the arena was created at {created_at:#x}; map it there, since its pointers lead there"
                )
            }
            AttachError::OtherBuild { expected, found } => write!(
                formatter,
                "expected layout {expected:016x}, found {found:016x}: another build made this; run the same one in all processes"
            ),
            AttachError::Empty => formatter.write_str("nothing was put into the arena yet"),
        }
    }
}

impl core::error::Error for AttachError {}

impl fmt::Display for CreateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::CoreCount(count) => write!(formatter, "expected 1 to {MAX_CORES} cores, got {count}"),
            CreateError::ChunkBytes(bytes) => {
                write!(formatter, "expected a chunk size that is a power of two of at least 4096 bytes, got {bytes}")
            }
            CreateError::Misaligned => formatter.write_str("expected memory aligned to 4096 bytes"),
            CreateError::TooSmall { size_bytes } => {
                write!(formatter, "{size_bytes} bytes do not hold the records of the cores; give the arena more")
            }
        }
    }
}

impl core::error::Error for CreateError {}

/// The header of an arena, at the start of its region.
#[repr(C, align(64))]
pub struct Arena {
    // Immutable after creation.
    magic: u64,
    layout: u64,
    base: *mut u8,
    size_bytes: usize,
    chunk_bytes: usize,
    core_count: usize,
    records: *mut CoreRecord,
    /// Atomic bytes, zero where no chunk of a kind lies; see `slab`.
    kinds: *const AtomicU8,
    /// Atomic words with a bit for each 4 KiB: whether they are free again; see `free_pages`.
    free_map: *const AtomicU64,
    // Atomic, set once, and read by who attaches: what users find first, and how that is laid out.
    root: AtomicPtr<u8>,
    root_layout: AtomicU64,
    // Atomic, on lines of their own.
    next_offset: OwnLine<AtomicUsize>,
    core_limit: OwnLine<AtomicU32>,
    shortage: OwnLine<Shortage>,
    /// Who serves idle cores, as a core's state says it.
    service: OwnLine<AtomicU64>,
}

#[repr(align(64))]
struct OwnLine<T>(T);

/// What the arena keeps for one core.
#[repr(C, align(64))]
pub(crate) struct CoreRecord {
    /// Atomic: free, claimed by an owner, or served by one while no one claims it.
    pub(crate) state: AtomicU64,
    /// Mostly owned by the one that is the core; see there.
    pub(crate) slabs: CoreSlabs,
}

/// What tools call the parts of an arena's head, and of what it keeps for each core.
const HEAD: ObjectKind = table_kind!(Arena as "arena" {
    "description" = magic,
    "memory never used" = next_offset,
    "limit of the cores" = core_limit,
    "memory that is missing" = shortage,
    "service of idle cores" = service,
});
const RECORD: ObjectKind = table_kind!(CoreRecord as "record of a core" {
    "state" = state,
    "magazines" = slabs.magazines,
    "depots" = slabs.depots,
});

// SAFETY: `state` and the depots are atomic; everything else in a record is touched through the core's one `&Core`.
unsafe impl Sync for CoreRecord {}

// SAFETY: the header is immutable but for atomics; records are reached through `&Core`, which one thread at a time has.
unsafe impl Sync for Arena {}
// SAFETY: what makes it `Sync` makes it `Send`: nothing in an arena belongs to a particular thread.
unsafe impl Send for Arena {}

impl Arena {
    /// Lays out an arena in memory of the global allocator.
    ///
    /// # Errors
    /// [`CreateError`] says what cannot be.
    pub fn create(region: &mut HeapRegion, config: ArenaConfig) -> Result<&Arena, CreateError> {
        let size_bytes = region.size_bytes();
        // SAFETY: the region is zeroed or was an arena whose borrow ended, is aligned, and stays borrowed.
        unsafe { Arena::create_at(region.base(), size_bytes, config) }
    }

    /// Lays out an arena at `base`.
    ///
    /// # Errors
    /// [`CreateError`] says what cannot be.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `size_bytes` bytes for all of `'a`, and nothing else uses them in that
    /// time but arenas attached to the same mapping.
    pub unsafe fn create_at<'a>(
        base: NonNull<u8>,
        size_bytes: usize,
        config: ArenaConfig,
    ) -> Result<&'a Arena, CreateError> {
        let ArenaConfig { core_count, chunk_bytes } = config;
        if !(1..=MAX_CORES).contains(&core_count) {
            return Err(CreateError::CoreCount(core_count));
        }
        if !chunk_bytes.is_power_of_two() || chunk_bytes < 4096 {
            return Err(CreateError::ChunkBytes(chunk_bytes));
        }
        if !(base.as_ptr() as usize).is_multiple_of(4096) {
            return Err(CreateError::Misaligned);
        }
        let records_offset = size_of::<Arena>();
        let kinds_offset = records_offset + core_count * size_of::<CoreRecord>();
        let kind_count = size_bytes.div_ceil(KIND_MAP_BYTES);
        let free_map_offset = (kinds_offset + kind_count).next_multiple_of(align_of::<AtomicU64>());
        let word_count = words_for(kind_count);
        let first_free = free_map_offset + word_count * size_of::<AtomicU64>();
        if first_free > size_bytes {
            return Err(CreateError::TooSmall { size_bytes });
        }
        // For what is freed: see `Core::free`.
        base.as_ptr().expose_provenance();
        // SAFETY: 0..first_free lies in the region, which the caller lends for writing: the header, the records, the bytes
        // of kinds and the words of free pages, one after the other, these where they are aligned. The base is aligned to 4 KiB, and each type to 64 bytes at most, as is the size of
        // those before it.
        unsafe {
            let records = base.as_ptr().add(records_offset).cast::<CoreRecord>();
            for number in 0..core_count {
                records.add(number).write(CoreRecord { state: AtomicU64::new(0), slabs: CoreSlabs::new() });
            }
            let kinds = base.as_ptr().add(kinds_offset).cast::<AtomicU8>();
            for index in 0..kind_count {
                kinds.add(index).write(AtomicU8::new(0));
            }
            let free_map = base.as_ptr().add(free_map_offset).cast::<AtomicU64>();
            for index in 0..word_count {
                free_map.add(index).write(AtomicU64::new(0));
            }
            let header = base.as_ptr().cast::<Arena>();
            header.write(Arena {
                magic: MAGIC,
                layout: LAYOUT.to_bits(),
                base: base.as_ptr(),
                size_bytes,
                chunk_bytes,
                core_count,
                records,
                kinds,
                free_map,
                root: AtomicPtr::new(ptr::null_mut()),
                root_layout: AtomicU64::new(0),
                next_offset: OwnLine(AtomicUsize::new(first_free)),
                core_limit: OwnLine(AtomicU32::new(0)),
                shortage: OwnLine(Shortage::new()),
                service: OwnLine(AtomicU64::new(0)),
            });
            Ok(&*header)
        }
    }

    /// Uses an arena that another process created in memory that both map at one address.
    ///
    /// # Errors
    /// [`AttachError`] says what is there instead.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of the arena's whole size for all of `'a`, and a creation there, if any,
    /// has finished.
    pub unsafe fn attach_at<'a>(base: NonNull<u8>) -> Result<&'a Arena, AttachError> {
        if !(base.as_ptr() as usize).is_multiple_of(4096) {
            return Err(AttachError::Misaligned);
        }
        let header = base.cast::<Arena>().as_ptr();
        // SAFETY: readable and aligned by the caller's promise; the first fields are plain words in every build.
        let (magic, layout, created_at) = unsafe { ((*header).magic, (*header).layout, (*header).base) };
        if magic != MAGIC {
            return Err(AttachError::NotAnArena);
        }
        if layout != LAYOUT.to_bits() {
            return Err(AttachError::OtherBuild { expected: LAYOUT.to_bits(), found: layout });
        }
        if created_at != base.as_ptr() {
            return Err(AttachError::OtherAddress { created_at: created_at as usize });
        }
        // SAFETY: an arena of this build, created at this address, whose creation has finished; valid for all of `'a`, as
        // the caller promises.
        Ok(unsafe { &*header })
    }

    /// Makes a value what other processes find first in the arena, unless there is one.
    ///
    /// # Panics
    /// If the value does not lie in the arena.
    pub fn set_root<R: ArenaRoot>(&self, root: &R) {
        let address = ptr::from_ref(root).cast::<u8>().cast_mut();
        let offset = (address as usize).wrapping_sub(self.base as usize);
        assert!(offset < self.size_bytes, "what others find lies in the arena");
        let layout = R::LAYOUT.to_bits();
        if self.root_layout.compare_exchange(0, layout, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            // Release pairs with the acquire in `root`.
            self.root.store(address, Ordering::Release);
        }
    }

    /// What [`Arena::set_root`] was given, by whichever process.
    ///
    /// # Errors
    /// [`AttachError::Empty`], or [`AttachError::OtherBuild`] if it is something else, or laid out in another way.
    pub fn root<R: ArenaRoot>(&self) -> Result<&R, AttachError> {
        let root = NonNull::new(self.root.load(Ordering::Acquire)).ok_or(AttachError::Empty)?;
        let (expected, found) = (R::LAYOUT.to_bits(), self.root_layout.load(Ordering::Relaxed));
        if expected != found {
            return Err(AttachError::OtherBuild { expected, found });
        }
        // SAFETY: a value of this type was put there, as the layouts say, and may be shared. It stays as long as the arena
        // is used: `ArenaRoot` asks for all three.
        Ok(unsafe { root.cast::<R>().as_ref() })
    }

    /// Number of cores that the arena was created for.
    #[inline]
    pub fn core_count(&self) -> usize {
        self.core_count
    }

    /// All core indices of the arena.
    pub fn cores(&self) -> impl Iterator<Item = CoreIndex> + use<> {
        (0..self.core_count as u16).map(CoreIndex)
    }

    /// Bytes that no chunk and no permanent allocation has taken yet.
    pub fn untouched_bytes(&self) -> usize {
        self.size_bytes.saturating_sub(self.next_offset.0.load(Ordering::Relaxed))
    }

    /// Bytes of the whole arena.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Memory that is never given back, aligned to lines at least: for tables made when a structure is created.
    ///
    /// # Errors
    /// [`OutOfMemory`] if no chunk of this size is left.
    ///
    /// # Panics
    /// If it is to be aligned to more than 4 KiB.
    pub fn allocate_permanent(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        let align = layout.align().max(LINE_BYTES);
        // Offsets are aligned as addresses are up to 4 KiB, the alignment of the base.
        assert!(align <= KIND_MAP_BYTES, "memory of an arena is aligned to 4096 bytes at most");
        let mut current = self.next_offset.0.load(Ordering::Relaxed);
        loop {
            let start = current.checked_next_multiple_of(align).ok_or(OutOfMemory)?;
            let end = start.checked_add(layout.size()).ok_or(OutOfMemory)?;
            if end > self.size_bytes {
                return Err(OutOfMemory);
            }
            // Relaxed: the word only divides memory; who publishes an object there orders its contents.
            match self.next_offset.0.compare_exchange_weak(current, end, Ordering::Relaxed, Ordering::Relaxed) {
                // SAFETY: start..end lies in the region and now belongs to the caller.
                Ok(_) => return Ok(unsafe { NonNull::new_unchecked(self.base.add(start)) }),
                Err(seen) => current = seen,
            }
        }
    }

    /// Writes `value` to memory that is never given back.
    ///
    /// # Errors
    /// As [`Arena::allocate_permanent`].
    pub fn place<T>(&self, value: T) -> Result<&T, OutOfMemory> {
        let place = self.allocate_permanent(Layout::new::<T>())?.cast::<T>();
        // SAFETY: fresh memory of the right layout, which is never given back, so that it lives as long as `self` is lent.
        unsafe {
            place.write(value);
            Ok(place.as_ref())
        }
    }

    /// Notes that objects of a kind lie in a chunk that was just taken.
    pub(crate) fn note_kind(&self, chunk: NonNull<u8>, chunk_bytes: usize, kind: u8) {
        let address = chunk.as_ptr() as usize;
        // A chunk smaller than a byte's part shares it with others: what lies there is not known.
        if (address - self.base as usize).is_multiple_of(KIND_MAP_BYTES) && chunk_bytes.is_multiple_of(KIND_MAP_BYTES) {
            self.note_kind_of(address, chunk_bytes / KIND_MAP_BYTES, kind);
        }
    }

    /// Notes what lies in pages.
    pub(crate) fn note_kind_of(&self, address: usize, count: usize, kind: u8) {
        let first = self.page_at(address);
        for index in first..first + count {
            // SAFETY: the pages lie in the arena, whose every part has a byte.
            unsafe { &*self.kinds.add(index) }.store(kind, Ordering::Relaxed);
        }
    }

    /// The number of the page at an address in the arena.
    pub(crate) fn page_at(&self, address: usize) -> usize {
        (address - self.base as usize) / KIND_MAP_BYTES
    }

    /// The start of a page that the caller owns.
    pub(crate) fn page(&self, number: usize) -> NonNull<u8> {
        assert!((number + 1) * KIND_MAP_BYTES <= self.size_bytes);
        // SAFETY: within the arena, as asserted.
        unsafe { NonNull::new_unchecked(self.base.add(number * KIND_MAP_BYTES)) }
    }

    /// The pages that are free again.
    pub(crate) fn free_pages(&self) -> FreePages<'_> {
        let count = words_for(self.size_bytes.div_ceil(KIND_MAP_BYTES));
        // SAFETY: this many words were written at creation, and are only shared from then on.
        let map = unsafe { core::slice::from_raw_parts(self.free_map, count) };
        FreePages { map, shortage: self.shortage() }
    }

    /// How many pages of 4 KiB were used and are free for any class.
    pub fn free_page_count(&self) -> usize {
        self.free_pages().count()
    }

    pub(crate) fn shortage(&self) -> &Shortage {
        &self.shortage.0
    }

    /// The parts of the arena in which objects of a kind lie: addresses, and the kind's number.
    pub fn kinds(&self) -> impl Iterator<Item = (Range<usize>, u8)> {
        let used = self.next_offset.0.load(Ordering::Relaxed).min(self.size_bytes);
        // SAFETY: the index is below the number of whole parts in use, and each part of the arena has a byte.
        let kind_of = |index| unsafe { &*self.kinds.add(index) }.load(Ordering::Relaxed);
        let base = self.base as usize;
        let mut index = 0;
        core::iter::from_fn(move || {
            let end = used / KIND_MAP_BYTES;
            let start = (index..end).find(|index| kind_of(*index) != 0)?;
            let kind = kind_of(start);
            index = (start..end).find(|index| kind_of(*index) != kind).unwrap_or(end);
            Some((base + start * KIND_MAP_BYTES..base + index * KIND_MAP_BYTES, kind))
        })
    }

    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    pub(crate) fn service_word(&self) -> &AtomicU64 {
        &self.service.0
    }

    #[inline]
    pub(crate) fn limit_word(&self) -> &AtomicU32 {
        &self.core_limit.0
    }

    /// The arena's head, and what it keeps for each core.
    pub fn tables(&self) -> [Part; 2] {
        let start = self.records as usize;
        let records = start..start + self.core_count * size_of::<CoreRecord>();
        [Part::of(self, &HEAD), Part { memory: records, kind: &RECORD }]
    }

    #[inline]
    pub(crate) fn record(&self, index: CoreIndex) -> &CoreRecord {
        assert!(index.get() < self.core_count);
        // SAFETY: in bounds, as asserted; records are written at creation, are `Sync`, and are only shared from then on.
        unsafe { &*self.records.add(index.get()) }
    }
}
