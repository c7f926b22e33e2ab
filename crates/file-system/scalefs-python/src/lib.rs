//! The native module `scalefs._native`: an instance of ScaleFS in this process, by paths and by descriptors, and the same calls
//! in a transaction.
//!
//! ```text
//! Files, Descriptors      files.rs, descriptors.rs: one method a call, generic over whether it is in a transaction
//!        │ calls!
//! Door                    door.rs: an instance, perhaps with a transaction; begins each call
//! FileSystem, transact    Rust's front door
//! ```
#![forbid(unsafe_code)]

mod arguments;
mod descriptors;
mod door;
mod errors;
mod extended;
mod files;
mod locks;
mod status;
mod whole;

use pyo3::prelude::*;

/// The module's classes.
#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<files::Files>()?;
    module.add_class::<descriptors::Descriptors>()?;
    module.add("Stale", module.py().get_type::<errors::Stale>())
}
