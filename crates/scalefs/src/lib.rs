//! A POSIX file system core in memory that shares no cache line where POSIX commutes.
//!
//! **Two layers.** The call layer ([`names`]) holds POSIX's rules: which checks, in which order, with which errno. It
//! reaches objects only through the verbs of [`Verbs`], each on one object (or a compound one that a technique of the
//! paper needs, with its decomposition written beside it). [`Direct`] is the way to run the verbs in memory shared by
//! all cores: lock-free where they read, one bucket's lock where they write.
//!
//! ```text
//! open link unlink rename stat access          names.rs      rules, errno, order of checks; safe code
//!        │ Verbs: exists, present, look_up, create_file, add_link, remove, rename, attributes, take, give_up
//! Direct                                       direct.rs     hashdir + refcache + commit, pinned by epoch
//!        │
//! Inode │ HashDir │ Counted                    inode.rs      in the caller's arena
//! ```
//!
//! **No global state.** Everything lies in the caller's [`percpu::Arena`]; each call gets the caller's [`percpu::Core`]
//! and a way to wait. Reclamation, count reconciliation and growth happen in [`ScaleFs::maintain`] only.
//!
//! **Lock order**: see `hashdir`; a call holds at most two bucket locks, and nothing while it waits for a removal.
//!
//! See `docs/scalefs.md` for definitions, invariants, assumptions, and the techniques of section 6.3 of the paper.
#![cfg_attr(not(loom), no_std)]
#![deny(unsafe_code)]

mod direct;
mod errno;
mod host;
mod inode;
mod instance;
pub mod names;
mod verbs;

pub use direct::Direct;
pub use errno::Errno;
pub use host::{Clocked, Host};
pub use inode::{Attributes, InodeNumber, Kind};
pub use instance::{ScaleFs, ScaleFsConfig};
pub use names::OpenFlags;
pub use verbs::{FieldChoice, Refusal, Verbs};
