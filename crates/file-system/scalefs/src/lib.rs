//! A POSIX file system core in memory that shares no cache line where POSIX commutes.
//!
//! **Two layers.** The call layer ([`names`], [`directories`], [`attributes`]) holds POSIX's rules: which checks, in which
//! order, with which errno. It reaches objects only through the verbs of [`Verbs`], each on one object (or a compound one
//! that a technique of the paper needs, with its decomposition written beside it). [`Direct`] is the way to run the verbs
//! in memory shared by all cores: lock-free where they read, one bucket's lock where they write.
//!
//! ```text
//! open link unlink rename ...   names.rs       ┐
//! mkdir rmdir readdir chdir ... directories.rs │ rules, errno, order of checks, paths (walk.rs); safe code
//! stat access chmod chown ...   attributes.rs  ┘
//!        │ Verbs                               verbs.rs
//! Direct                                       direct.rs, direct_names.rs, moves.rs   hashdir + refcache + commit, pinned by epoch
//!        │
//! Inode │ HashDir │ Counted                    inode.rs, in the caller's arena
//! ```
//!
//! **No global state.** Everything lies in the caller's [`percpu::Arena`]; each call gets the caller's [`percpu::Core`]
//! and a way to wait. Reclamation, count reconciliation and growth happen in [`ScaleFs::maintain`] only.
//!
//! **Lock order**: marks of directories that move; then as in `hashdir`; last an inode's sequence, and under it the
//! words of its times. A call holds at most two bucket locks, and nothing while it waits for a removal.
//!
//! See `docs/scalefs.md` for definitions, invariants, assumptions, and the techniques of section 6.3 of the paper.
#![cfg_attr(not(loom), no_std)]
#![deny(unsafe_code)]

pub mod attributes;
mod budget;
mod context;
pub mod data;
mod data_verbs;
mod description;
mod direct;
mod direct_data;
mod direct_memory;
mod direct_names;
pub mod directories;
mod errno;
mod fields;
mod file;
mod host;
mod inode;
mod instance;
pub mod memory;
mod memory_verbs;
mod moves;
pub mod names;
mod owned;
pub mod parts;
mod pipe;
mod process;
mod verbs;
mod walk;

pub use address_space::{Fault, Place, ProtectError, Protection, Sharing};
pub use context::{Context, Credentials, MAX_GROUPS};
pub use data_verbs::{DataVerbs, NodeOf, PipeState, WriteAt, Written};
pub use description::{AccessMode, DescriptionRef, Offset, StatusFlags, Use};
pub use direct::{Direct, Node};
pub use direct_data::InProcess;
pub use errno::Errno;
pub use fields::{Attributes, Fields};
pub use host::{Clocked, Host};
pub use inode::{InodeNumber, Kind, Permissions};
pub use instance::{ScaleFs, ScaleFsConfig};
pub use memory_verbs::{MemoryVerbs, Source};
pub use names::OpenFlags;
pub use owned::{OwnedConfig, OwnedError, OwnedScaleFs};
pub use pipe::PipeEnd;
pub use process::{DESCRIPTOR_LIMIT, NumberChoice, OnExec, Process};
pub use verbs::{Existence, Expected, Item, NewObject, Refusal, Space, Standing, Verbs};
pub use walk::{Follow, MAX_PATH_BYTES, Start};
