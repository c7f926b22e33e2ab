//! Calls: operations on objects that are here or with another domain.

mod cache;
mod call;
mod coordinate;
mod creation;
mod data_operations;
mod domain;
mod lines;
mod listing;
mod names;
mod object_changes;
mod object_operations;
mod open_files;
mod process;
mod refusals;
mod transfers;

pub use call::{Call, Fault, Found, Handle, Key, Node};
pub use data_operations::{Description, OffsetLock};
pub use domain::{Domain, Techniques};
pub use process::Process;
