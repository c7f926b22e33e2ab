//! For tests of libraries for C: a header that is made from the source says what the source says, and programs over the library
//! show that it works.
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod header;
mod program;

pub use header::{Face, functions};
pub use program::Program;
