//! The initial content of a map, as far as it has been touched; all views of the map share it.
//!
//! The first access to a key decides whether it equals a key touched before; if not, an entry with an unknown presence
//! comes into being, and its value when somebody asks for it. See `commutant.symbolic.state`.

use std::collections::HashMap;
use std::sync::Arc;

use ::symbolic::{Linear, Literal};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};

use super::super::context::{current, decide, log, logged, restrict};
use super::super::integers::Number;
use super::super::problem::{Infeasible, UsageError};
use super::super::values::BoolValue;
use super::keys::{Key, require};
use super::layout::Layout;

/// The initial content of a map, as far as it has been touched; shared by all views. `empty`: there is none.
#[pyclass(module = "commutant._native")]
pub struct MapContent {
    pub(super) layout: Arc<Layout>,
    #[pyo3(get)]
    name: Py<PyString>,
    pub(super) place: Option<Py<Entry>>,
    #[pyo3(get, set)]
    hook: Option<Py<PyAny>>,
    pub(super) empty: bool,
    pub(super) entries: Vec<Py<Entry>>,
    pub(super) holes: Vec<(Vec<Key>, Vec<usize>)>,
    pub(super) numbers: HashMap<Key, usize>,
    /// The keys of `numbers` in the order in which they were noted.
    noted: Vec<Key>,
    /// The unknown that says how many entries there are, once somebody has asked.
    #[pyo3(get)]
    pub(super) size: Option<u32>,
}

#[pymethods]
impl MapContent {
    #[new]
    #[pyo3(signature = (type_, name, place, hook, *, empty = false))]
    fn new(
        type_: &Bound<'_, PyAny>,
        name: Bound<'_, PyString>,
        place: Option<Py<Entry>>,
        hook: Option<Py<PyAny>>,
        empty: bool,
    ) -> PyResult<Self> {
        Ok(Self {
            layout: Layout::of(type_)?,
            name: name.unbind(),
            place,
            hook,
            empty,
            entries: vec![],
            holes: vec![],
            numbers: HashMap::new(),
            noted: Vec::new(),
            size: None,
        })
    }

    #[getter(r#type)]
    fn type_of(&self, py: Python<'_>) -> Py<PyAny> {
        self.layout.types()[0].clone_ref(py)
    }

    /// The touched keys, in the order in which they were.
    #[getter]
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.entries)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.place)?;
        visit.call(&self.hook)?;
        self.entries.iter().try_for_each(|entry| visit.call(entry))
    }

    fn __clear__(&mut self) {
        self.entries.clear();
        self.hook = None;
    }
}

impl MapContent {
    /// How many keys have been touched.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The entry of this number.
    pub fn entry<'py>(&self, py: Python<'py>, number: usize) -> Bound<'py, Entry> {
        self.entries[number].bind(py).clone()
    }

    /// The key of the entry of this number, as the engine knows it.
    pub fn key(&self, py: Python<'_>, number: usize) -> Key {
        self.entries[number].borrow(py).identity.clone()
    }

    /// What the map is called.
    pub fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.name.extract(py)
    }

    /// The number of the entry with this key, which is made if there is none.
    pub fn find(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        let Some(identity) = Key::of(key)? else { return Err(Self::unfit(slf, key)?) };
        if let Some(number) = slf.borrow().numbers.get(&identity) {
            return Ok(*number);
        }
        let number = Self::search(slf, key, &identity)?;
        Self::note(slf, identity, number)?;
        Ok(number)
    }

    fn search(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, identity: &Key) -> PyResult<usize> {
        let py = slf.py();
        if !slf.borrow().layout.takes_key(key)? {
            return Err(Self::unfit(slf, key)?);
        }
        let count = slf.borrow().count();
        for number in 0..count {
            if slf.borrow().key(py, number).equals(py, identity)? {
                return Ok(number);
            }
        }
        let has_presence = !slf.borrow().empty && !identity.is_fresh(&current(py)?.borrow(py));
        let entry = Self::make(slf, key, identity)?;
        if has_presence {
            let term = (intern!(py, "apply"), format!("{}_has", slf.borrow().name(py)?), &entry).into_pyobject(py)?;
            let index = current(py)?.borrow_mut(py).new_bool(py, &term)?;
            let mut entry = entry.borrow_mut();
            entry.presence = Some(index);
            entry.present = None;
        }
        Self::add(slf, entry)
    }

    fn unfit(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<PyErr> {
        let py = slf.py();
        let content = slf.borrow();
        let shown = of_state!(py, "shown")?.call1((content.layout.types()[1],))?;
        Ok(UsageError::new_err(format!("{} has keys of type {shown}, got {}", content.name(py)?, key.repr()?)))
    }

    pub(super) fn make<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        identity: &Key,
    ) -> PyResult<Bound<'py, Entry>> {
        let entry = Entry {
            content: slf.clone().unbind(),
            key: key.clone().unbind(),
            identity: identity.clone(),
            presence: None,
            present: Some(false),
            value: None,
            arguments: None,
        };
        Bound::new(slf.py(), entry)
    }

    /// Notes which entry a key is.
    pub(super) fn note(slf: &Bound<'_, Self>, key: Key, number: usize) -> PyResult<()> {
        {
            let mut content = slf.borrow_mut();
            content.numbers.insert(key.clone(), number);
            content.noted.push(key);
        }
        log(slf, 0, |content, _| {
            let mut content = logged::<Self>(content);
            if let Some(key) = content.noted.pop() {
                content.numbers.remove(&key);
            }
        })
    }

    pub(super) fn add(slf: &Bound<'_, Self>, entry: Bound<'_, Entry>) -> PyResult<usize> {
        log(slf, 0, |content, _| drop(logged::<Self>(content).entries.pop()))?;
        let mut content = slf.borrow_mut();
        content.entries.push(entry.unbind());
        Ok(content.entries.len() - 1)
    }

    /// Whether the entry is present in the initial state (decided now if open).
    pub fn initially_has(slf: &Bound<'_, Self>, number: usize) -> PyResult<bool> {
        let py = slf.py();
        let entry = slf.borrow().entry(py, number);
        let (present, presence) = {
            let entry = entry.borrow();
            (entry.present, entry.presence)
        };
        let (None, Some(index)) = (present, presence) else { return Ok(present.unwrap_or(false)) };
        let present = decide(py, Literal::Bool(index))?;
        Self::found(&entry, present)?;
        if present {
            Self::became_present(slf, &entry)?;
        } else {
            Self::became_absent(slf, &entry)?;
        }
        Ok(present)
    }

    fn found(entry: &Bound<'_, Entry>, present: bool) -> PyResult<()> {
        entry.borrow_mut().present = Some(present);
        log(entry, 0, |entry, _| logged::<Entry>(entry).present = None)
    }

    /// Excludes initial states in which the entry is absent.
    pub fn initially_requires(slf: &Bound<'_, Self>, number: usize) -> PyResult<()> {
        let py = slf.py();
        let entry = slf.borrow().entry(py, number);
        let (present, presence) = {
            let entry = entry.borrow();
            (entry.present, entry.presence)
        };
        match (present, presence) {
            (Some(true), _) => Ok(()),
            (None, Some(index)) => {
                restrict(py, Literal::Bool(index))?;
                Self::found(&entry, true)?;
                Self::became_present(slf, &entry)
            }
            _ => Err(Infeasible::new_err(())),
        }
    }

    /// The unknown that says how many entries there are: at least those that are known to be there.
    pub(super) fn size(slf: &Bound<'_, Self>) -> PyResult<u32> {
        let py = slf.py();
        if let Some(size) = slf.borrow().size {
            return Ok(size);
        }
        let (place, name) = {
            let content = slf.borrow();
            (content.place.as_ref().map(|place| place.clone_ref(py)), format!("{}_count", content.name(py)?))
        };
        let term = match place {
            Some(place) => (intern!(py, "apply"), name, place).into_pyobject(py)?,
            None => (intern!(py, "constant"), name).into_pyobject(py)?,
        };
        let size = current(py)?.borrow_mut(py).new_int(py, &term, Some(Number(0)), None)?;
        slf.borrow_mut().size = Some(size);
        log(slf, 0, |content, _| logged::<Self>(content).size = None)?;
        Self::require_room(slf)?;
        Ok(size)
    }

    /// Excludes initial states with fewer entries than are known to be there.
    fn require_room(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let Some(size) = slf.borrow().size else { return Ok(()) };
        let present = slf.borrow().entries.iter().filter(|entry| entry.borrow(py).present == Some(true)).count();
        let present = i64::try_from(present).expect("fewer entries than 2^63");
        require(py, Linear::unknown(size, -1, present))
    }

    fn became_present(slf: &Bound<'_, Self>, entry: &Bound<'_, Entry>) -> PyResult<()> {
        let py = slf.py();
        Self::require_room(slf)?;
        let Some(hook) = slf.borrow().hook.as_ref().map(|hook| hook.clone_ref(py)) else { return Ok(()) };
        let context = current(py)?;
        let outer = std::mem::replace(&mut context.borrow_mut(py).path.in_restriction, true);
        let key = entry.borrow().key.clone_ref(py);
        let holds =
            Entry::value(entry).and_then(|value| hook.bind(py).call1((key, value))).and_then(|holds| holds.is_truthy());
        context.borrow_mut(py).path.in_restriction = outer;
        if holds? { Ok(()) } else { Err(Infeasible::new_err(())) }
    }
}

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
        log(slf, 0, |entry, _| logged::<Self>(entry).value = None)?;
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
