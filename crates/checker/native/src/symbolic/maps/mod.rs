//! Maps of unknown content, natively: they take most of the time of an exploration. See `commutant.symbolic.state`.
//!
//! [`content`] is what a map holds in the initial state, as far as it has been touched; [`view`] is what one order of the
//! calls has made of it; [`comparison`] says whether two views hold the same, and whether two runs have anything to do
//! with each other.

mod comparison;
mod content;
mod entry;
mod holes;
mod keys;
mod layout;
mod view;

use pyo3::prelude::*;

use self::content::MapContent;
use self::entry::Entry;
use self::keys::Key;
use self::view::Cell;
pub use self::view::SymbolicMap;
use super::context::{Undo, current};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Cell>()?;
    module.add_class::<Entry>()?;
    module.add_class::<MapContent>()?;
    module.add_class::<SymbolicMap>()?;
    module.add_function(wrap_pyfunction!(length, module)?)
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

/// What takes a change of a map back.
pub enum Change {
    /// An entry was made.
    Added(Py<MapContent>),
    /// It became known which entry a key is.
    Numbered(Py<MapContent>, Key),
    /// A prefix was first asked for its holes.
    Prefix(Py<MapContent>),
    /// Another hole under a prefix, the one of this position, was made.
    Hole(Py<MapContent>, usize),
    /// It became known whether an entry is present.
    Found(Py<Entry>),
    /// An entry's value came into being.
    Valued(Py<Entry>),
    /// The number of entries was first asked for.
    Sized(Py<MapContent>),
    /// A view made a copy of an entry's value.
    Held(Py<SymbolicMap>, usize),
}

impl Change {
    /// Takes the change back.
    pub fn undo(self, py: Python<'_>) {
        match self {
            Self::Added(content) => drop(content.borrow_mut(py).entries.pop()),
            Self::Numbered(content, key) => drop(content.borrow_mut(py).numbers.remove(&key)),
            Self::Prefix(content) => drop(content.borrow_mut(py).holes.pop()),
            Self::Hole(content, position) => drop(content.borrow_mut(py).holes[position].1.pop()),
            Self::Found(entry) => entry.borrow_mut(py).present = None,
            Self::Valued(entry) => entry.borrow_mut(py).value = None,
            Self::Sized(content) => content.borrow_mut(py).size = None,
            Self::Held(view, number) => drop(view.borrow_mut(py).release(number)),
        }
    }
}

/// Notes what takes back a change that the step is about to make.
fn log(py: Python<'_>, change: Change) -> PyResult<()> {
    current(py)?.borrow_mut(py).path.log(Undo::Map(change));
    Ok(())
}

/// The function of `commutant.symbolic.state` with this name.
macro_rules! of_state {
    ($py:expr, $name:literal) => {{
        static FUNCTION: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
        FUNCTION.import($py, "commutant.symbolic.state", $name)
    }};
}
use of_state;
