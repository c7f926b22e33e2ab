//! A file system in memory of its own, for a process that shares it with no other: what the libraries for other languages
//! hold. Its cores are claimed as those of its arena.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, AttachError, ClaimError, Core, CreateError, HeapRegion, OutOfMemory, OwnerId};

use sync::Wait;

use crate::fork::Maker;
use crate::instance::{ScaleFs, ScaleFsConfig};
#[cfg(all(feature = "std", target_os = "linux"))]
use crate::window::MemoryFile;

/// How large an [`OwnedScaleFs`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedConfig {
    /// Memory for names, inodes, and what each core keeps.
    pub metadata_bytes: usize,
    /// Pages of 4 KiB for data.
    pub page_count: u32,
    /// Cores, 1 to 256.
    pub core_count: usize,
    /// See [`ScaleFsConfig::hash_seed`].
    pub hash_seed: u64,
}

impl Default for OwnedConfig {
    /// 64 MiB of metadata, 64 MiB of data, and 64 cores: more threads than that call one after the other.
    fn default() -> OwnedConfig {
        OwnedConfig { metadata_bytes: 64 << 20, page_count: 16 << 10, core_count: 64, hash_seed: 1 }
    }
}

/// Why an [`OwnedScaleFs`] was not made.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedError {
    /// The arena cannot be laid out so.
    Arena(CreateError),
    /// The system has not so much memory.
    System,
    /// The tables of an empty file system do not fit in so many bytes.
    MetadataBytes(usize),
}

impl fmt::Display for OwnedError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnedError::Arena(error) => error.fmt(formatter),
            OwnedError::System => formatter.write_str("the system has not so much memory; ask for less"),
            OwnedError::MetadataBytes(bytes) => {
                write!(formatter, "{bytes} bytes of metadata do not hold an empty file system; give it more")
            }
        }
    }
}

impl core::error::Error for OwnedError {}

fn page_bytes(config: OwnedConfig) -> Result<usize, OwnedError> {
    (config.page_count as usize + 1).checked_mul(PAGE_BYTES).ok_or(OwnedError::System)
}

fn region(bytes: usize) -> Result<HeapRegion, OwnedError> {
    HeapRegion::new(bytes).map_err(|OutOfMemory| OwnedError::System)
}

/// A file system with its memory, which is freed with it.
pub struct OwnedScaleFs {
    // They lie in the memory below: nothing of theirs is given out for longer than this value is borrowed.
    arena: NonNull<Arena>,
    file_system: NonNull<ScaleFs>,
    maker: Maker,
    _metadata: Metadata,
    #[cfg_attr(
        not(all(feature = "std", target_os = "linux")),
        allow(dead_code, reason = "kept for as long as the value")
    )]
    pages: Pages,
}

/// Memory of the caller's for a file system ([`OwnedScaleFs::create_in`]).
#[derive(Clone, Copy, Debug)]
pub struct GivenMemory {
    /// Room for names, inodes, and what each core keeps, at a multiple of 4 KiB.
    pub metadata: NonNull<u8>,
    /// Room for one page more than there are to be, at a multiple of 4 KiB.
    pub pages: NonNull<u8>,
}

/// Where names and inodes lie.
enum Metadata {
    Heap(#[allow(dead_code, reason = "kept for as long as the value")] HeapRegion),
    Given,
}

/// Where the pages lie.
enum Pages {
    Given,
    Heap(#[allow(dead_code, reason = "kept for as long as the value")] HeapRegion),
    #[cfg(all(feature = "std", target_os = "linux"))]
    File(std::sync::Arc<MemoryFile>),
}

impl OwnedScaleFs {
    /// An empty file system, whose root belongs to user 0.
    ///
    /// # Errors
    /// [`OwnedError`] says which size cannot be.
    pub fn create(config: OwnedConfig) -> Result<OwnedScaleFs, OwnedError> {
        let mut pages = region(page_bytes(config)?)?;
        let base = NonNull::new(pages.as_mut_ptr()).ok_or(OwnedError::System)?;
        // SAFETY: the block belongs to the new value alone.
        unsafe { OwnedScaleFs::with_pages(config, base, Pages::Heap(pages)) }
    }

    /// As [`OwnedScaleFs::create`], in memory of the caller's, which other processes may map at the same address
    /// ([`ScaleFs::attach`]).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// The memory holds as much as the configuration says, in zeros, stays as long as the value, and no one else uses it but who
    /// attaches to the arena in it.
    pub unsafe fn create_in(config: OwnedConfig, memory: GivenMemory) -> Result<OwnedScaleFs, OwnedError> {
        // SAFETY: the caller's promise.
        unsafe {
            OwnedScaleFs::lay_out(
                config,
                (memory.metadata, config.metadata_bytes),
                memory.pages,
                (Metadata::Given, Pages::Given),
            )
        }
    }

    /// The file system that another process has made in memory that this one has mapped, too, at the same addresses.
    ///
    /// # Errors
    /// [`AttachError`]: no one has, or a program that lays it out in another way.
    ///
    /// # Safety
    /// `metadata` leads to where [`GivenMemory::metadata`] lies, which stays as long as the value, as do the pages.
    pub unsafe fn attach_in(metadata: NonNull<u8>) -> Result<OwnedScaleFs, AttachError> {
        // SAFETY: the caller's promise.
        let arena: &Arena = unsafe { Arena::attach_at(metadata) }?;
        let file_system = NonNull::from(ScaleFs::attach(arena)?);
        let arena = NonNull::from(arena);
        Ok(OwnedScaleFs { arena, file_system, maker: Maker::this(), _metadata: Metadata::Given, pages: Pages::Given })
    }

    /// As [`OwnedScaleFs::create`], with pages that a program can reach by its own loads and stores ([`OwnedScaleFs::open_window`]).
    ///
    /// # Errors
    /// As there.
    #[cfg(all(feature = "std", target_os = "linux"))]
    pub fn create_mappable(config: OwnedConfig) -> Result<OwnedScaleFs, OwnedError> {
        let pages = MemoryFile::new(page_bytes(config)?).map_err(|OutOfMemory| OwnedError::System)?;
        // SAFETY: the mapping belongs to the new value alone, and to windows of its processes.
        unsafe { OwnedScaleFs::with_pages(config, pages.base(), Pages::File(std::sync::Arc::new(pages))) }
    }

    /// Reserves addresses for so many pages of a process's memory; returns the first address. Where something is mapped there, a program
    /// reaches it by its own loads and stores once it was touched ([`InProcess::touch`](crate::InProcess::touch)). The addresses are given back
    /// when the process exits. Not for a child of the host's `fork`.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the host has not so many addresses, the process has a window already, or the file system was not made by
    /// [`OwnedScaleFs::create_mappable`].
    ///
    /// # Panics
    /// If the process is of another instance.
    #[cfg(all(feature = "std", target_os = "linux"))]
    pub fn open_window(&self, process: &crate::Process, page_count: u64) -> Result<u64, OutOfMemory> {
        process.context().assert_of(self.file_system());
        match &self.pages {
            Pages::File(pages) => {
                process.object().memory.mmu().open(pages, page_count).map(|page| page * PAGE_BYTES as u64)
            }
            Pages::Heap(_) | Pages::Given => Err(OutOfMemory),
        }
    }

    /// # Safety
    /// `base` leads to memory for all pages that `pages` keeps and nobody else uses.
    unsafe fn with_pages(config: OwnedConfig, base: NonNull<u8>, pages: Pages) -> Result<OwnedScaleFs, OwnedError> {
        let mut metadata = region(config.metadata_bytes)?;
        let size_bytes = metadata.size_bytes();
        let address = NonNull::new(metadata.as_mut_ptr()).ok_or(OwnedError::System)?;
        // SAFETY: the caller's promise, and a block of the new value's own.
        unsafe { OwnedScaleFs::lay_out(config, (address, size_bytes), base, (Metadata::Heap(metadata), pages)) }
    }

    /// # Safety
    /// `metadata` and `base` lead to memory that `kept` keeps or the caller does, that no one else uses, and that has room for what
    /// the configuration says.
    unsafe fn lay_out(
        config: OwnedConfig,
        (metadata, size_bytes): (NonNull<u8>, usize),
        base: NonNull<u8>,
        kept: (Metadata, Pages),
    ) -> Result<OwnedScaleFs, OwnedError> {
        let full = |OutOfMemory| OwnedError::MetadataBytes(config.metadata_bytes);
        // SAFETY: both blocks belong to the new value alone, which outlives all borrows of it.
        let (arena, pool) = unsafe {
            let arena: &Arena = Arena::create_at(metadata, size_bytes, ArenaConfig::new(config.core_count))
                .map_err(OwnedError::Arena)?;
            (arena, PagePool::create(arena, base, config.page_count).map_err(full)?)
        };
        let owner = OwnerId::new(1).expect("1 is a valid owner");
        let core = arena.claim(0, owner).expect("no one else knows the arena");
        let fs_config = ScaleFsConfig { hash_seed: config.hash_seed, ..ScaleFsConfig::default() };
        let file_system = NonNull::from(ScaleFs::create_with_pages(&core, pool, fs_config).map_err(full)?);
        drop(core);
        let arena = NonNull::from(arena);
        let (metadata, pages) = kept;
        Ok(OwnedScaleFs { arena, file_system, maker: Maker::this(), _metadata: metadata, pages })
    }

    /// The file system.
    #[inline]
    pub fn file_system(&self) -> &ScaleFs {
        // SAFETY: it lies in memory that this value keeps.
        unsafe { self.file_system.as_ref() }
    }

    #[inline]
    fn arena(&self) -> &Arena {
        // SAFETY: as above.
        unsafe { self.arena.as_ref() }
    }

    /// Whether this is the process that made the file system, and no child of it. A child has a copy in which what other
    /// threads were doing at the `fork` stays half done, so it must not use it.
    #[inline]
    pub fn is_of_this_process(&self) -> bool {
        self.maker.is_here()
    }

    /// How many cores there are.
    pub fn core_count(&self) -> usize {
        self.arena().core_count()
    }

    /// How many cores were ever claimed, or have a smaller number than one that was.
    pub fn used_cores(&self) -> usize {
        self.arena().core_limit_seen()
    }

    /// Becomes the core with this number; see [`Arena::claim`].
    ///
    /// # Errors
    /// As there; [`ClaimError::OtherProcess`] in a child of the process that made the file system.
    #[inline]
    pub fn claim(&self, number: usize, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        self.arena_here()?.claim(number, owner)
    }

    /// As [`OwnedScaleFs::claim`], but that it waits while another thread serves the core; see [`Arena::claim_waiting`].
    ///
    /// # Errors
    /// As there.
    pub fn claim_waiting(&self, number: usize, owner: OwnerId, wait: &impl Wait) -> Result<Core<'_>, ClaimError> {
        self.arena_here()?.claim_waiting(number, owner, wait)
    }

    /// Becomes the first core that nobody claims; see [`Arena::claim_any`].
    ///
    /// # Errors
    /// As there, and as [`OwnedScaleFs::claim`].
    pub fn claim_any(&self, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        self.arena_here()?.claim_any(owner)
    }

    /// Becomes the core of a processor's number, or another that was used; see [`Arena::lease`].
    ///
    /// # Errors
    /// As there, and as [`OwnedScaleFs::claim`].
    pub fn lease(&self, processor: usize, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        self.arena_here()?.lease(processor, owner)
    }

    /// The arena, in the process that made it.
    #[inline]
    fn arena_here(&self) -> Result<&Arena, ClaimError> {
        if self.is_of_this_process() { Ok(self.arena()) } else { Err(ClaimError::OtherProcess) }
    }
}

// SAFETY: what the pointers lead to may be used by several threads, and lies in memory of the value's own.
unsafe impl Send for OwnedScaleFs {}
// SAFETY: as above.
unsafe impl Sync for OwnedScaleFs {}

impl fmt::Debug for OwnedScaleFs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OwnedScaleFs").field("cores", &self.core_count()).finish_non_exhaustive()
    }
}
