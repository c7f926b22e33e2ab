//! Memory without coherence for C, so that protocols of others run on it. `include/pool.h` is made from the calls by
//! `tests/header.rs`, which fails if they differ.
#![warn(clippy::missing_errors_doc)]
#![allow(non_camel_case_types)]

mod emulated;
mod files;
mod memory;
mod reason;
mod views;

pub use emulated::*;
pub use files::*;
pub use memory::*;
pub use views::{pool_emulated, pool_memory};
