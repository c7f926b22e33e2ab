//! Records whose values come into being when they are first asked for; see `commutant.lang.types.Record`.

use std::sync::OnceLock;

use pyo3::exceptions::PyAttributeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple, PyType};

use super::context::{Undo, undo_with};
use super::values::{BoolValue, IntValue, SortValue};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(clone, module)?)?;
    module.add_class::<LazyRecord>()
}

/// A view of the value if it is a map, None if it is not.
type CopyIfMap = for<'py> fn(&Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>>;

/// Set by the maps, which hold records in their turn.
pub static COPY_IF_MAP: OnceLock<CopyIfMap> = OnceLock::new();

/// Where the values of a record come from that it does not hold.
enum Origin {
    /// It holds all that it has.
    None,
    /// A function of the record and a value's name.
    Function(Py<PyAny>),
    /// A record that it is a copy of.
    Source(Py<LazyRecord>),
}

/// A record whose values come into being when they are first asked for. Its own are in `__dict__`, which a subclass has.
#[pyclass(subclass, module = "commutant._native")]
pub struct LazyRecord {
    origin: Origin,
    /// Values that do not wait until somebody asks: those for which the class itself would answer.
    eager: Option<Py<PyTuple>>,
    /// Whether a state holds the record.
    #[pyo3(get, set, name = "_held")]
    held: bool,
}

pub fn values<'py>(record: &Bound<'py, LazyRecord>) -> PyResult<Bound<'py, PyDict>> {
    Ok(record.getattr(intern!(record.py(), "__dict__"))?.downcast_into()?)
}

/// A record of a class, whatever its author's `__new__` and `__init__` take.
fn bare<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, LazyRecord>> {
    static NEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = class.py();
    let new = NEW.get_or_try_init(py, || py.get_type::<LazyRecord>().getattr("__new__").map(Bound::unbind))?;
    Ok(new.bind(py).call1((class,))?.downcast_into()?)
}

#[pymethods]
impl LazyRecord {
    /// A record without an origin, whatever its author's `__init__` takes.
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self { origin: Origin::None, eager: None, held: false }
    }

    /// A record whose values are `origin(record, name)`, some of them at once.
    #[classmethod]
    #[pyo3(signature = (origin, eager = None))]
    fn from_origin<'py>(
        class: &Bound<'py, PyType>,
        origin: Py<PyAny>,
        eager: Option<Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, Self>> {
        let record = bare(class)?;
        {
            let mut own = record.borrow_mut();
            own.origin = Origin::Function(origin);
            own.eager = eager.clone().filter(|eager| !eager.is_empty()).map(Bound::unbind);
            own.held = true;
        }
        for name in eager.iter().flatten() {
            Self::make(&record, name.downcast()?)?;
        }
        Ok(record)
    }

    /// Asked for what neither the record nor its class holds.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        Self::make(slf, name)
    }

    /// The record that this one is a copy of, if any.
    #[getter(_source)]
    pub fn source<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Self>> {
        match &self.origin {
            Origin::Source(source) => Some(source.bind(py).clone()),
            _ => None,
        }
    }

    /// Whether two records hold equal values under all of these names. What both have from one record is not looked at.
    fn _equals_in<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, Self>,
        names: &Bound<'py, PyTuple>,
    ) -> PyResult<bool> {
        for name in names {
            let name = name.downcast()?;
            if !Self::holder(slf, name)?.is(Self::holder(other, name)?)
                && !slf.getattr(name)?.eq(other.getattr(name)?)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A value as it is, without a copy of it.
    fn _seen<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        Self::seen(slf, name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.origin {
            Origin::None => Ok(()),
            Origin::Function(function) => visit.call(function),
            Origin::Source(source) => visit.call(source),
        }
    }

    fn __clear__(&mut self) {
        self.origin = Origin::None;
    }
}

impl LazyRecord {
    /// The record that a value would be copied from: this one, if it holds the value itself.
    fn holder<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, Self>> {
        let mut holder = slf.clone();
        while !values(&holder)?.contains(name)? {
            let Some(source) = holder.borrow().source(slf.py()) else { break };
            holder = source;
        }
        Ok(holder)
    }

    /// A value as it is, without a copy of it.
    pub fn seen<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let mut holder = slf.clone();
        loop {
            if let Some(value) = values(&holder)?.get_item(name)? {
                return Ok(value);
            }
            let source = holder.borrow().source(slf.py());
            match source {
                Some(source) => holder = source,
                None => return holder.getattr(name),
            }
        }
    }

    /// A copy that can change without this record, which must not change any more.
    fn copy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        let record = bare(&slf.get_type())?;
        let eager = slf.borrow().eager.as_ref().map(|eager| eager.clone_ref(py));
        {
            let mut own = record.borrow_mut();
            own.origin = Origin::Source(slf.clone().unbind());
            own.eager = eager.as_ref().map(|eager| eager.clone_ref(py));
            own.held = true;
        }
        for name in eager.iter().flat_map(|eager| eager.bind(py)) {
            Self::make(&record, name.downcast()?)?;
        }
        Ok(record)
    }

    /// Makes a value that the record does not hold yet.
    fn make<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let origin = match &slf.borrow().origin {
            Origin::None => {
                let message = format!("{} has no field {}", slf.get_type().name()?, name.repr()?);
                return Err(PyAttributeError::new_err(message));
            }
            Origin::Function(function) => Ok(function.clone_ref(py)),
            Origin::Source(source) => Err(source.clone_ref(py)),
        };
        let value = match origin {
            Ok(function) => function.bind(py).call1((slf, name))?,
            Err(source) => {
                // The record may belong to a step that outlives this one, and the value to this one.
                undo_with(py, || Ok(Undo::Remove(values(slf)?.unbind(), name.clone().into_any().unbind())))?;
                clone(&Self::seen(source.bind(py), name)?)?
            }
        };
        values(slf)?.set_item(name, &value)?;
        Ok(value)
    }
}

/// A copy of a part of a state that can change without the original, which must not change any more; what cannot change
/// itself is shared.
#[pyfunction]
pub fn clone<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_scalar(value) {
        return Ok(value.clone());
    }
    let py = value.py();
    if let Ok(record) = value.downcast::<LazyRecord>() {
        return Ok(LazyRecord::copy(record)?.into_any());
    }
    if let Some(copy_if_map) = COPY_IF_MAP.get()
        && let Some(map) = copy_if_map(value)?
    {
        return Ok(map);
    }
    static SEQ: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let sequence = SEQ.import(py, "commutant.lang.types", "Seq")?;
    if !value.is_instance(sequence)? {
        return Ok(value.clone());
    }
    let items: Vec<Bound<'py, PyAny>> = value.try_iter()?.map(|item| clone(&item?)).collect::<PyResult<_>>()?;
    sequence.call1((items,))
}

/// Whether a value cannot be changed, only replaced.
pub fn is_scalar(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<SortValue>()
        || value.is_exact_instance_of::<IntValue>()
        || value.is_exact_instance_of::<BoolValue>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyTuple>()
        || value.is_none()
}
