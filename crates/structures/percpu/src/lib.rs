//! Cores as values, an arena for metadata, per-core values, and slab allocation that never shares a line.
//!
//! **Idea.** Code that wants to be conflict-free must know which core it runs on, and must own memory there. Asking a
//! thread-local would tie the structures to one process and one runtime, so the caller passes a [`Core`]: a handle that
//! at most one thread uses at a time. All memory comes from an [`Arena`] that the caller supplies. It may be a mapping
//! shared by several processes at one address: every pointer kept in it points into it.
//!
//! ```text
//! region ─► Arena header │ one CoreRecord per core (own lines) │ chunks, handed out by one word; free pages, by a map
//!                           └ per size class: two magazines (owner only), one depot (owner pushes, anybody takes all)
//! ```
//!
//! **Where sharing is left, and how often.** Claiming a core, taking a fresh chunk (once per 64 KiB of objects of one
//! class), and stealing when the arena is exhausted. [`Arena::maintain`] fills magazines outside the calls, so that the
//! calls themselves meet none of the three.
//!
//! **Lock order.** [`CoreLock`]s are taken in the order of ([`LockRank`], address); debug builds check it.
//!
//! **Assumption**, made by all structures above: stores become visible to all other cores at once (x86-64, ARMv8,
//! RISC-V), so that acquire loads of two words cannot disagree between two readers about the order of two writers.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(any(loom, shuttle)), no_std)]

extern crate alloc;

mod arena;
mod cache_line;
mod class;
mod collect;
mod core_handle;
mod core_index;
#[cfg(any(loom, shuttle))]
mod fixed;
mod free_pages;
#[cfg(debug_assertions)]
mod held_locks;
mod holders;
mod lock;
mod lock_rank;
mod magazine;
#[cfg(any(loom, shuttle))]
pub mod model;
mod object;
mod per_core;
mod prefetch;
mod region;
mod slab;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use arena::{Arena, ArenaConfig, AttachError, CreateError};
pub use cache_line::CacheLine;
pub use class::{MAX_KIND, SizeClass};
pub use core_handle::{ClaimError, Core, OwnerId};
pub use core_index::CoreIndex;
pub use holders::{Holders, Holding};
pub use lock::{CoreLock, CoreLockGuard};
pub use lock_rank::LockRank;
pub use object::{ArenaObject, ArenaRoot, Layout, ObjectKind, Part};
pub use per_core::PerCore;
pub use prefetch::prefetch_for_writing;
pub use region::HeapRegion;

/// Bytes of a cache line: the unit in which conflicts are counted.
pub const LINE_BYTES: usize = 64;

/// The largest number of cores that an arena can be created for.
pub const MAX_CORES: usize = 256;

/// The arena has no memory left for an allocation; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl core::fmt::Display for OutOfMemory {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("the arena has no memory left")
    }
}

impl core::error::Error for OutOfMemory {}
