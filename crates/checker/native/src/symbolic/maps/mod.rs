//! Maps of unknown content, natively: they take most of the time of an exploration. See `commutant.symbolic.state`.
//!
//! [`content`] is what a map holds in the initial state, as far as it has been touched; [`view`] is what one order of the
//! calls has made of it; [`comparison`] says whether two views hold the same, and whether two runs have anything to do
//! with each other.

/// The function of `commutant.symbolic.state` with this name.
macro_rules! of_state {
    ($py:expr, $name:literal) => {{
        static FUNCTION: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
        FUNCTION.import($py, "commutant.symbolic.state", $name)
    }};
}

mod comparison;
mod content;
mod holes;
mod keys;
mod layout;
mod view;

use pyo3::prelude::*;

use self::content::{Entry, MapContent};
use self::view::Cell;
pub use self::view::SymbolicMap;
use super::records::COPY_IF_MAP;

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    COPY_IF_MAP.get_or_init(|| copy_if_map);
    module.add_class::<Cell>()?;
    module.add_class::<Entry>()?;
    module.add_class::<MapContent>()?;
    module.add_class::<SymbolicMap>()?;
    module.add_function(wrap_pyfunction!(length, module)?)
}

fn copy_if_map<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Ok(map) = value.downcast_exact::<SymbolicMap>() else { return Ok(None) };
    Ok(Some(Bound::new(value.py(), SymbolicMap::copy(map))?.into_any()))
}

/// `len` as models see it: of a map of unknown content, too.
#[pyfunction]
#[pyo3(name = "len")]
fn length<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match value.downcast_exact::<SymbolicMap>() {
        Ok(map) => map.call_method0("length"),
        Err(_) => Ok(value.len()?.into_pyobject(value.py())?.into_any()),
    }
}
