//! POSIX's calls over ordinary maps, one call at a time.
//!
//! The second implementation of the operations of crate [`posix_calls`]: objects by number in a map, names in a map for each
//! directory, pages in a map for each file. It shares the call layer with ScaleFS and nothing else, so that it is a reference
//! for everything below that layer; what the layer itself says is held against Linux.
//!
//! A state is a value: it can be cloned, compared and hashed, which is what searches for an order of concurrent calls want.
//! For tests of the call layer, an instance can be told to fail from an operation on ([`Plain::fail_after`]), and to take
//! the shortcuts that only far implementations need ([`Plain::take_shortcuts`]).
//!
//! ```
//! use plain::{Plain, Process};
//! use posix_calls::data::{self, DescriptorOptions};
//! use posix_calls::{Credentials, OpenFlags, Start};
//!
//! let file_system = Plain::default();
//! let process = Process::new(&file_system, Credentials::SUPERUSER);
//! let call = file_system.begin(&process);
//! let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
//! let fd = data::open(&call, Start::WorkingDirectory, b"letter", flags, 0o600, DescriptorOptions::PLAIN)?;
//! assert_eq!(data::write(&call, fd, b"Dear Bob"), Ok(8));
//! # Ok::<(), posix_calls::Errno>(())
//! ```
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod allocation;
mod call;
mod changes;
mod data;
mod extended;
mod lock_state;
mod locks;
mod memory;
mod names;
mod object;
mod process;
mod process_state;
mod processes;
mod socket;
mod state;

pub use call::{Call, Node, Unreachable};
pub use changes::PreparedChanges;
pub use data::{Description, OffsetLock};
pub use object::OpenNode;
pub use process::Process;
pub use state::{Limits, Plain};
