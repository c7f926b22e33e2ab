//! Instances of ScaleFS that last: a transaction that has returned is there after the death of the process, and after a
//! power cut; one that has not is there as a whole, or not at all.
//!
//! ```text
//! transaction ── commit in memory ── place in the order ── group ── pages, sync ── records, sync ── answer
//!                crate transact      log.rs                store.rs page_file.rs   redb
//! ```
//! **The decision comes first.** Others see a transaction's changes as soon as it is decided, and wait for no disk. Answers
//! wait: that of the transaction, and those of others that may rest on it. They wait in groups, so that many commits are one
//! sync.
//!
//! **Opening** reads all records, looks at all checksums, and makes the instance in memory again.
//!
//! ```
//! use durable::Durable;
//!
//! # let folder = std::env::temp_dir().join(format!("durable-doc-{}", std::process::id()));
//! let instance = Durable::open(&folder)?;
//! instance.transaction(|t| {
//!     t.create_dir("etc")?;
//!     t.write("etc/passwd", "root")
//! })?;
//! drop(instance);
//!
//! let again = Durable::open(&folder)?;
//! assert_eq!(again.transaction(|t| t.read("etc/passwd"))?, b"root");
//! # drop(again);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! What survives what, and the format: `docs/reference/durable.md`.
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod error;
mod folder;
mod image;
mod instance;
mod log;
mod object;
mod page_file;
mod rebuild;
mod record;
mod storage;
mod store;

pub use error::OpenError;
pub use instance::{Durable, Options};
pub use storage::Storage;

/// The format that this version reads and writes.
pub const FORMAT: u32 = 1;
