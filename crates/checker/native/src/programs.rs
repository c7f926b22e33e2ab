//! Names of programs' addresses (crate `program-naming`).

use std::collections::HashMap;
use std::path::PathBuf;

use program_naming::{CodeName as Name, ProgramFile as Names, RelocatableFile as Relocated};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RelocatableFile>()?;
    module.add_class::<ProgramFile>()
}

/// Function, and source file and line if they are known.
type CodeName = (String, Option<(String, u32)>);

/// An ELF program or library with its symbols and debug information. Belongs to the thread that made it.
#[pyclass(unsendable)]
pub struct ProgramFile(Names);

#[pymethods]
impl ProgramFile {
    /// Reads a file; ValueError says in one line what is wrong with it.
    #[new]
    #[pyo3(signature = (path, *, with_debug_file = true))]
    fn new(path: PathBuf, with_debug_file: bool) -> PyResult<Self> {
        Names::open(&path, with_debug_file).map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// What there was for the file, but was not used, and why; None if there was nothing.
    fn passed_over(&self) -> Option<&str> {
        self.0.passed_over()
    }

    /// The file's own address of what stands at an offset; None if nothing there is mapped.
    fn address_at(&self, offset: u64) -> Option<u64> {
        self.0.address_at(offset)
    }

    /// The functions that an instruction belongs to, the innermost first.
    fn code(&self, address: u64) -> Vec<CodeName> {
        plain(self.0.code(address))
    }

    /// The variable that an address lies in, and how many bytes after its start.
    fn variable(&self, address: u64) -> Option<(String, u64)> {
        self.0.variable(address).map(|(name, offset)| (name.to_owned(), offset))
    }
}

/// A kernel's module, or another relocatable file, as it was loaded. Belongs to the thread that made it.
#[pyclass(unsendable)]
pub struct RelocatableFile(Relocated);

#[pymethods]
impl RelocatableFile {
    /// Reads a file whose functions were loaded at these addresses; ValueError says in one line what is wrong with it.
    #[new]
    fn new(path: PathBuf, functions: HashMap<String, u64>) -> PyResult<Self> {
        Relocated::open(&path, &functions).map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The functions that an instruction belongs to, the innermost first.
    fn code(&self, address: u64) -> Vec<CodeName> {
        plain(self.0.code(address))
    }
}

fn plain(names: Vec<Name>) -> Vec<CodeName> {
    names.into_iter().map(|name| (name.function, name.line)).collect()
}
