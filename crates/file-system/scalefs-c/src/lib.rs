//! ScaleFS for C. `include/scalefs.h` is made from its calls by `tests/header.rs`, which fails if they differ.
//!
//! An instance lives in memory of its own. Threads attach to it, each as one core; processes own descriptors, a working
//! directory and credentials, and any thread may call on behalf of any process. A call returns what it would return in
//! POSIX, or a negative error number of Linux. Every 64th call of a thread maintains its core.
#![warn(clippy::missing_errors_doc)]
#![allow(non_camel_case_types)]

mod at;
mod border;
mod calls;
mod descriptors;
mod extended;
mod flags;
mod instance;
mod listing;
mod locks;
mod memory;
mod open_files;
mod polling;
mod processes;
mod reason;
mod sockets;
mod transactions;

pub use at::*;
pub use calls::*;
pub use descriptors::*;
pub use extended::*;
pub use flags::*;
pub use instance::{scalefs_instance, scalefs_process, scalefs_thread};
pub use listing::*;
pub use locks::*;
pub use memory::*;
pub use open_files::*;
pub use polling::*;
pub use processes::*;
pub use sockets::*;
pub use transactions::*;
