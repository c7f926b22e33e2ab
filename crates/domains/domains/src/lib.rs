//! One POSIX file system over domains that share no coherent memory.
//!
//! **Idea.** A domain is what is coherent in itself: a core, a socket, a host. Each owns objects, and alone touches their
//! memory; others ask it by messages (crate [`messages`]). A call runs where its process is, through the same call layer
//! as any other implementation (crate [`posix_calls`]): [`Call`] is an implementation of the operations on objects, each of
//! which is done here if the object is the domain's own, and is a message if it is not.
//!
//! ```text
//! domain 0: names.rs, data.rs ─► Call ─ own object ────► server ─ objects, names, data of domain 0
//!                                  └─── another's ─ message ─► domain 1: server ─ objects, names, data of domain 1
//! pool: a line for each operation on several owners, which decides it (decisions)
//! ```
//!
//! **Names** of a directory lie at its home, and when there are many, with all domains, by their hashes. What was looked up is
//! kept, also that a name is absent; who keeps it is informed before it changes.
//!
//! **Changes of several owners** (rename, link, unlink, rmdir, exchange) are prepared at all of them at once, and are
//! committed when the coordinator has written a line of the pool. One that meets what was prepared looks at that line.
//!
//! The page docs/reference/domains.md has definitions, invariants and formats.
//!
//! ```
//! use std::rc::Rc;
//!
//! use domains::{Limits, OneThread, Process};
//! use posix_calls::data::{self, DescriptorOptions};
//! use posix_calls::{Credentials, OpenFlags, Start};
//!
//! let file_system = OneThread::new(2, Limits::default(), || 0);
//! let [writer, reader] = [0, 1].map(|number| (file_system.domain(number), Process::new(Credentials::SUPERUSER)));
//! let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
//! let open = |(domain, process): &(Rc<domains::OfOneThread>, Process)| {
//!     domain.call(process, |call| {
//!         data::open(call, Start::WorkingDirectory, b"letter", flags, 0o600, DescriptorOptions::PLAIN)
//!     })
//! };
//! let fd = open(&writer)?;
//! assert_eq!(writer.0.call(&writer.1, |call| data::write(call, fd, b"Dear Bob")), Ok(8));
//! let fd = open(&reader)?;
//! let mut bytes = [0; 16];
//! assert_eq!(reader.0.call(&reader.1, |call| data::read(call, fd, &mut bytes)), Ok(8));
//! # Ok::<(), posix_calls::Errno>(())
//! ```
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod client;
mod decisions;
mod identity;
mod level;
mod one_thread;
mod pool_lines;
mod server;
mod shared_pages;
pub mod simulated;
mod wire;

pub use client::{
    Awaited, Call, Description, Domain, Fault, Found, Handle, Key, Node, OffsetLock, Process, Techniques, Waiting,
};
pub use decisions::{Decisions, LINES, OwnLines};
pub use identity::{ObjectNumber, Target};
pub use level::Level;
pub use one_thread::{OfOneThread, OneThread};
pub use pool_lines::PoolLines;
pub use server::Limits;
pub use shared_pages::{LineCounts, OwnPages, PoolPages, SharedPage, SharedPages};
pub use wire::{Obstacle, OperationNumber};
