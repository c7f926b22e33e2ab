//! A touched key of a map.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use super::super::values::BoolValue;
use super::content::MapContent;
use super::keys::Key;
use super::{Change, log, of_state};

/// A touched key of a map's initial content. Its value comes into being when first asked for.
#[pyclass(module = "commutant._native")]
pub struct Entry {
    pub(super) content: Py<MapContent>,
    #[pyo3(get)]
    pub(super) key: Py<PyAny>,
    /// The same for the engine.
    pub(super) identity: Key,
    /// The unknown that the presence depends on; None if it is absent in every initial state.
    pub(super) presence: Option<u32>,
    /// Whether the entry is present; None: open.
    pub(super) present: Option<bool>,
    pub(super) value: Option<Py<PyAny>>,
    pub(super) arguments: Option<Py<PyTuple>>,
}

#[pymethods]
impl Entry {
    /// What its presence depends on.
    #[getter]
    fn presence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.presence {
            Some(index) => Ok(Bound::new(py, BoolValue { index })?.into_any()),
            None => Ok(PyBool::new(py, false).to_owned().into_any()),
        }
    }

    /// Whether its value has been asked for.
    #[getter]
    fn known(&self) -> bool {
        self.value.is_some()
    }

    /// The keys that lead to this entry's value, outermost map first.
    #[getter]
    fn arguments(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let py = slf.py();
        if let Some(arguments) = &slf.borrow().arguments {
            return Ok(arguments.clone_ref(py));
        }
        let (place, key) = {
            let entry = slf.borrow();
            let content = entry.content.borrow(py);
            (content.place.as_ref().map(|place| place.clone_ref(py)), entry.key.clone_ref(py))
        };
        let arguments = of_state!(py, "arguments_of")?.call1((place, key))?.downcast_into::<PyTuple>()?.unbind();
        slf.borrow_mut().arguments = Some(arguments.clone_ref(py));
        Ok(arguments)
    }

    /// The initial value; meaningful where the entry is present.
    #[getter]
    pub fn value(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if let Some(value) = &slf.borrow().value {
            return Ok(value.clone_ref(py));
        }
        log(py, Change::Valued(slf.clone().unbind()))?;
        let (type_, name) = {
            let entry = slf.borrow();
            let content = entry.content.borrow(py);
            (content.layout.types()[2].clone_ref(py), content.layout.value_name(&content.name(py)?))
        };
        let value = of_state!(py, "unknown")?.call1((type_, name, slf))?.unbind();
        slf.borrow_mut().value = Some(value.clone_ref(py));
        Ok(value)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.content)?;
        visit.call(&self.key)?;
        visit.call(&self.arguments)?;
        visit.call(&self.value)
    }

    fn __clear__(&mut self) {
        self.value = None;
    }
}
