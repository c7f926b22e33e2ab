//! Names of addresses in programs and libraries.
//!
//! [`ProgramFile`] reads one file by itself, [`RelocatableFile`] one that was loaded piece by piece, as a kernel's module. [`Loaded`] knows all that is loaded in a running program, and what its blocks
//! of memory consist of.
#![forbid(unsafe_code)]

mod allocation;
mod debug;
mod face;
mod file;
mod function_names;
mod loaded;
mod module;
mod receive;
mod relocatable;
mod separate;

pub use allocation::{Block, BlockAccess, Rule, WrappedName};
pub use file::{CodeName, ProgramFile, ProgramNamingError};
pub use loaded::{DataName, Loaded};
pub use relocatable::RelocatableFile;
