//! Paths over unknown values (crate `symbolic`): contexts, literals, and the values that a model computes with.

mod context;
mod effects;
mod facts;
mod integers;
mod literals;
mod maps;
mod problem;
mod records;
mod values;

use ::symbolic::path::MAX_DECISIONS_PER_PATH;
use pyo3::prelude::*;

use self::problem::{Infeasible, NOT_DETERMINISTIC, OF_ANOTHER_RUN};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Infeasible", module.py().get_type::<Infeasible>())?;
    module.add("MAX_DECISIONS_PER_PATH", MAX_DECISIONS_PER_PATH)?;
    module.add("NOT_DETERMINISTIC", NOT_DETERMINISTIC)?;
    module.add("OF_ANOTHER_RUN", OF_ANOTHER_RUN)?;
    context::register(module)?;
    effects::register(module)?;
    facts::register(module)?;
    integers::register(module)?;
    literals::register(module)?;
    maps::register(module)?;
    records::register(module)?;
    values::register(module)
}
