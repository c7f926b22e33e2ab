//! Names for addresses of an ELF program or library: the function, and where debug information is given, file and line
//! and the calls that the compiler inlined; for data the global variable.
//!
//! Addresses are the file's own (those of its program headers); [`ProgramFile::address_at`] leads there from a mapping.
#![forbid(unsafe_code)]

mod file;

pub use file::{CodeName, ProgramFile, ProgramNamingError};
