//! Calls: operations on objects that are here or with another domain.

mod cache;
mod call;
mod close_to_open;
mod coordinate;
mod copies;
mod creation;
mod data_operations;
mod descriptions;
mod domain;
mod ends;
mod lines;
mod listing;
mod memory;
mod names;
mod object_changes;
mod object_operations;
mod open_files;
mod pipes;
mod process;
mod processes;
mod refusals;
mod transfers;
mod travel;
mod waits;

pub use call::{Call, Fault, Found, Handle, Key, Node};
pub use data_operations::{Description, OffsetLock};
pub use domain::{Domain, Techniques};
pub use process::Process;
pub use waits::{Awaited, Waiting};
