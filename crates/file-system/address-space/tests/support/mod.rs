//! An instance for tests: an arena with pages and counts, and files that are vectors of bytes.
#![allow(dead_code)]

use std::ptr::NonNull;

use std::sync::Mutex;

use address_space::{AddressSpace, FileId, Files, KIND_MAPPING, KIND_SHARED_PAGE, Mapping, Memory, SharedPage};
use commit::Decisions;
use epoch::{Epochs, Guard};
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OutOfMemory, OwnerId};
use refcache::{Counted, RefCache, RefCacheConfig};
use sync::Spin;

/// Everything that an address space lives in.
pub struct Instance<'a> {
    pub arena: &'a Arena,
    pub epochs: &'a Epochs,
    pub counts: &'a RefCache,
    pub pages: &'a PagePool,
    pub files: TestFiles,
}

/// Runs a test over an instance with so many cores and pages.
pub fn with_instance(core_count: usize, page_count: u32, test: impl FnOnce(&Instance<'_>, &AddressSpace)) {
    let mut region = HeapRegion::new(16 << 20).unwrap();
    let mut pool = HeapRegion::new((page_count as usize + 1) * PAGE_BYTES).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count, chunk_bytes: 16 << 10 }).unwrap();
    let decisions = Decisions::create(arena).unwrap();
    let config = RefCacheConfig { slots_per_core: 16, seed: 1 };
    let base = pool.as_mut_ptr();
    let aligned = base.wrapping_add(base.align_offset(PAGE_BYTES));
    // SAFETY: the region outlives the instance and is used by nobody else.
    let pages = unsafe { PagePool::create(arena, std::ptr::NonNull::new(aligned).unwrap(), page_count) }.unwrap();
    let instance = Instance {
        arena,
        epochs: Epochs::create(arena).unwrap(),
        counts: RefCache::create(arena, decisions, config).unwrap(),
        pages,
        files: TestFiles(Mutex::new(Vec::new())),
    };
    // SAFETY: used with this instance only.
    let space = arena.place(unsafe { AddressSpace::new() }).unwrap();
    test(&instance, space);
}

pub fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

impl Instance<'_> {
    /// Lets `act` have what calls of a core need.
    pub fn call<R>(&self, core: &Core<'_>, act: impl FnOnce(&Memory<'_, TestFiles, Spin>) -> R) -> R {
        let guard: Guard<'_> = self.epochs.pin(core);
        act(&Memory { guard: &guard, pages: self.pages, counts: self.counts, files: &self.files, wait: &Spin })
    }

    /// What a core does between its calls.
    pub fn maintain(&self, core: &Core<'_>) {
        self.pages.maintain(core);
        self.epochs.maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`.
            let is_ours =
                unsafe { radix::free_retired(core, kind, object) || self.pages.free_retired(core, kind, object) };
            assert!(is_ours);
        });
        let free = |core: &Core<'_>, count: NonNull<Counted>| {
            // SAFETY: dead objects are given once; mappings and shared pages are counted.
            unsafe {
                match count.as_ref().kind() {
                    KIND_SHARED_PAGE => SharedPage::free_counted(core, self.pages, count),
                    kind => {
                        assert_eq!(kind, KIND_MAPPING);
                        let mapping = Mapping::of_count(count);
                        self.files.change_references(mapping.as_ref().file(), -1);
                        core.free_object(mapping);
                    }
                }
            }
        };
        // SAFETY: a test's core holds no pointers between its calls.
        unsafe { self.counts.maintain(core, free) };
    }
}

/// A file: bytes, with how many references mappings have, and the first page of each cut.
#[derive(Clone, Debug, Default)]
pub struct TestFile {
    pub bytes: Vec<u8>,
    pub references: i64,
    pub cuts: Vec<u64>,
}

/// Files by number.
pub struct TestFiles(pub Mutex<Vec<TestFile>>);

impl TestFiles {
    pub fn change_references(&self, file: FileId, by: i64) {
        self.0.lock().unwrap()[file.0 as usize].references += by;
    }

    /// Makes a file this long.
    pub fn resize(&self, file: usize, length: usize) {
        let file = &mut self.0.lock().unwrap()[file];
        if length < file.bytes.len() {
            file.cuts.push(length.div_ceil(PAGE_BYTES) as u64);
        }
        file.bytes.resize(length, 0);
    }
}

/// The part of a file's bytes that an access within a page meets; none behind the page of the end.
pub fn part_of(length: usize, page: u64, start: usize, count: usize) -> Option<std::ops::Range<usize>> {
    let first = usize::try_from(page).ok()?.checked_mul(PAGE_BYTES)?;
    (first < length).then(|| (first + start).min(length)..(first + start + count).min(length))
}

impl Files for TestFiles {
    fn hold(&self, file: FileId) {
        self.change_references(file, 1);
    }

    fn load(&self, file: FileId, page: u64, start: usize, bytes: &mut [u8]) -> bool {
        let files = self.0.lock().unwrap();
        let data = &files[file.0 as usize].bytes;
        let Some(part) = part_of(data.len(), page, start, bytes.len()) else { return false };
        let there = part.len();
        bytes[..there].copy_from_slice(&data[part]);
        bytes[there..].fill(0);
        true
    }

    fn store(&self, file: FileId, page: u64, start: usize, bytes: &[u8]) -> Result<bool, OutOfMemory> {
        let mut files = self.0.lock().unwrap();
        let data = &mut files[file.0 as usize].bytes;
        let Some(part) = part_of(data.len(), page, start, bytes.len()) else { return Ok(false) };
        let there = part.len();
        data[part].copy_from_slice(&bytes[..there]);
        Ok(true)
    }

    fn cuts(&self, file: FileId) -> u64 {
        self.0.lock().unwrap()[file.0 as usize].cuts.len() as u64
    }

    fn is_cut_since(&self, file: FileId, page: u64, cuts: u64) -> bool {
        self.0.lock().unwrap()[file.0 as usize].cuts[cuts as usize..].iter().any(|first| *first <= page)
    }
}
