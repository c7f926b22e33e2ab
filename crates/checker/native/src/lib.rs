//! The native module `commutant._native`: what is done once per window, or many times per explored path, and so not
//! in Python.
#![forbid(unsafe_code)]

mod programs;
mod symbolic;
mod traces;
mod transfers;
mod wire;

use pyo3::prelude::*;

/// The module's functions and classes, by the part of the project that they belong to.
#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    programs::register(module)?;
    symbolic::register(module)?;
    traces::register(module)?;
    transfers::register(module)?;
    wire::register(module)
}
