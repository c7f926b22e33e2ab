//! Lists and maps of crate `olf` for C. `include/olf.h` is made from its calls by `tests/header.rs`, which fails if they differ.
//!
//! A `struct olf_link` is a field of the caller's struct, which `OLF_CONTAINER_OF` leads back to. By one link an item stands in
//! one map or list in order, and in one doubly linked list. A call returns zero, or a negative error number of Linux, of which
//! `olf_reason` says a line.
#![warn(clippy::missing_errors_doc)]
#![allow(non_camel_case_types)]

mod border;
mod domain;
mod ends;
mod keyed;
mod link;
mod lists;
mod reason;
mod steps;

pub use domain::*;
pub use ends::*;
pub use keyed::*;
pub use link::{olf_free, olf_hold, olf_link, olf_link_init, olf_retire};
pub use lists::*;
pub use reason::*;
pub use steps::*;
