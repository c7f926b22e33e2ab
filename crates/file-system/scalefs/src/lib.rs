//! A POSIX file system core in memory that shares no cache line where POSIX commutes.
//!
//! ```
//! use std::io::{Read, Seek, Write};
//!
//! use scalefs::{FileSystem, OpenOptions};
//!
//! let files = FileSystem::create(Default::default())?;
//! let root = files.root()?;
//! root.create_dir("people")?;
//! let people = root.open_dir("people")?;
//! let mut letter = people.open_with("letter", OpenOptions::new().read(true).write(true).create(true))?;
//! letter.write_all(b"Dear Bob")?;
//! letter.rewind()?;
//! let mut text = String::new();
//! letter.read_to_string(&mut text)?;
//! assert_eq!(text, "Dear Bob");
//! root.hard_link("people/letter", "copy")?;
//! assert_eq!(root.metadata("copy")?.link_count, 2);
//! std::thread::scope(|scope| {
//!     // Threads share nothing but what they name.
//!     scope.spawn(|| people.create("from-here"));
//!     scope.spawn(|| root.create("from-there"));
//! });
//! assert_eq!(people.entries()?.len(), 2);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`FileSystem`] is for programs. Below it is what a library, a loader or a kernel builds on: no global state, no thread,
//! no clock, no allocator.
//!
//! **Two layers.** The call layer, crate [`posix_calls`], holds POSIX's rules: which checks, in which order, with which
//! errno. It reaches objects only through [`ObjectOperations`] and [`DataOperations`], each operation on one object (or a
//! compound one that a technique of the paper needs, with its steps beside it). [`Direct`] and [`InProcess`] are the way to
//! run them in memory shared by all cores: lock-free where they read, one bucket's lock where they write.
//!
//! ```text
//! open link unlink rename mkdir stat chmod read write ...   posix-calls: names, directories, attributes, data
//!        │ ObjectOperations, DataOperations
//! Direct, InProcess                            direct.rs, direct_names.rs, direct_data.rs, moves.rs
//!        │                                     hashdir + refcache + commit + radix + maxima, pinned by epoch
//! Inode │ HashDir │ Counted │ File │ Pipe │ Socket   inode.rs, file.rs, pipe.rs, socket.rs, in the caller's arena
//! ```
//!
//! **No global state.** Everything lies in the caller's [`percpu::Arena`]; each call gets the caller's [`percpu::Core`]
//! and a way to wait. Reclamation, count reconciliation and growth happen in [`ScaleFs::maintain`] only.
//!
//! **Lock order**: marks of directories that move; then as in `hashdir`; last an inode's sequence, and under it the
//! words of its times. A call holds at most two bucket locks, and nothing while it waits for a removal.
//!
//! See `docs/reference/scalefs.md` for definitions, invariants, assumptions, and the techniques of section 6.3 of the paper.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]
#![deny(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

/// The program of the guide.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../../../../docs/guides/files.md")]
struct Guide;

mod annex;
mod attribute_block;
mod budget;
mod calls;
mod cast;
mod claims;
mod context;
mod creation;
mod description;
mod direct;
mod direct_changes;
mod direct_data;
mod direct_data_changes;
mod direct_extended;
mod direct_locks;
mod direct_memory;
mod direct_names;
mod direct_processes;
mod directory;
mod ends;
mod family;
mod file;
mod file_locks;
mod fork;
#[cfg(feature = "std")]
mod front;
mod growth;
mod hand;
mod host;
mod identity;
mod inode;
mod inode_ref;
#[cfg(feature = "std")]
mod inspection;
mod instance;
#[cfg(feature = "std")]
mod lease;
mod life;
mod lives;
mod lock_list;
mod lock_waits;
mod maintenance;
mod make;
mod moves;
mod node;
mod noted;
mod other_instance;
#[cfg(feature = "std")]
mod outside;
mod owned;
mod parents;
pub mod parts;
mod pipe;
mod place;
mod places;
#[cfg(feature = "planted-causes")]
pub mod planted_causes;
mod process;
mod relatives;
mod repair;
mod shown;
mod socket;
mod space;
#[cfg(all(feature = "std", target_os = "linux"))]
mod touch;
#[cfg(all(feature = "std", target_os = "linux"))]
mod window;
#[cfg(not(all(feature = "std", target_os = "linux")))]
#[path = "no_window.rs"]
mod window;

pub use address_space::FileId;
#[cfg(all(feature = "std", target_os = "linux"))]
pub use address_space::TouchError;
pub use calls::ProcessCalls;
pub use context::Context;
pub use description::DescriptionRef;
pub use direct::Direct;
pub use direct_changes::{AttributeRoom, ChangeRoom, PreparedChanges};
pub use direct_data::InProcess;
pub use file::{FileRoom, PageRoom};
#[cfg(feature = "std")]
pub use front::{Dir, Entry, File, FileSystem, Lease, OpenOptions};
pub use host::{Clocked, Host, Owning};
#[cfg(feature = "std")]
pub use inspection::{Counts, Damage, Inspection};
pub use instance::{ScaleFs, ScaleFsConfig};
pub use lives::{HandedOver, Process};
pub use node::{Node, OpenNode};
pub use other_instance::OtherInstance;
#[cfg(feature = "std")]
pub use outside::Outside;
pub use owned::{GivenMemory, OwnedConfig, OwnedError, OwnedScaleFs};
pub use posix_calls::*;
#[cfg(all(feature = "std", target_os = "linux"))]
pub use window::MemoryAccess;
#[cfg(not(all(feature = "std", target_os = "linux")))]
pub use window::{TakeAway, hear_of_cuts};
