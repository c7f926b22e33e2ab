//! One order's view of a map: what it holds on top of the view that it is a copy of, and what it was asked.

use ::symbolic::Linear;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::super::context::{log, logged};
use super::super::integers::too_large;
use super::super::problem::UsageError;
use super::super::records::{clone, is_scalar};
use super::super::values::{equality, is_at_most_zero, simplified};
use super::content::{Entry, MapContent};
use super::keys::{Key, all_equal, is_less};

/// What a view holds under a key by itself: a value that was `assigned`, or a copy of one, which may have been changed
/// since.
#[pyclass(frozen, module = "commutant._native")]
pub struct Cell {
    #[pyo3(get)]
    pub present: bool,
    #[pyo3(get)]
    pub value: Py<PyAny>,
    #[pyo3(get)]
    pub assigned: bool,
}

/// What a view holds under a key, by itself or through those that it is a copy of.
pub(super) enum Held {
    /// What the initial content holds.
    Initial,
    /// Nothing since all was removed.
    Cleared,
    /// This.
    Cell(Py<Cell>),
}

/// Numbers of entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(Vec<u64>);

impl Numbers {
    fn insert(&mut self, number: usize) {
        let word = number / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    pub(super) fn common(&self, other: &Self) -> impl Iterator<Item = usize> {
        let words: Vec<u64> = self.0.iter().zip(&other.0).map(|(mine, theirs)| mine & theirs).collect();
        words
            .into_iter()
            .enumerate()
            .flat_map(|(place, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| place * 64 + bit))
    }

    pub(super) fn reaches(&self, limit: usize) -> bool {
        self.0
            .iter()
            .enumerate()
            .any(|(place, word)| *word != 0 && place * 64 + 63 - word.leading_zeros() as usize >= limit)
    }
}

/// One order's view of a map: the view that it is a copy of (`source`; none for the initial content), and what was looked
/// at and written since; see `commutant.symbolic.state`.
#[pyclass(module = "commutant._native")]
pub struct SymbolicMap {
    #[pyo3(get)]
    pub(super) content: Py<MapContent>,
    #[pyo3(get)]
    pub source: Option<Py<SymbolicMap>>,
    /// What the view holds by itself, by the number of the entry.
    pub(super) cells: Vec<(usize, Py<Cell>)>,
    /// The entries that it was asked about.
    pub(super) looked: Numbers,
    /// Whether it ever was cleared.
    #[pyo3(get)]
    pub(super) cleared: bool,
    /// Whether it was cleared since it was copied.
    pub emptied: bool,
    /// The prefixes under which the lowest absent number was asked for.
    pub(super) scans: Vec<Vec<Key>>,
    /// How many entries there were when all were looked at, if they were.
    pub(super) counted: Option<usize>,
    /// Whether the number of entries was asked for.
    pub(super) sized: bool,
    /// Whether all that it held was copied.
    pub(super) copied: bool,
}

#[pymethods]
impl SymbolicMap {
    #[new]
    fn new(content: Py<MapContent>) -> Self {
        Self {
            content,
            source: None,
            cells: vec![],
            looked: Numbers::default(),
            cleared: false,
            emptied: false,
            scans: vec![],
            counted: None,
            sized: false,
            copied: false,
        }
    }

    /// A view of the initial content.
    fn initial(&self, py: Python<'_>) -> Self {
        Self::new(self.content.clone_ref(py))
    }

    /// A view that starts from this one and changes alone; this one must not change any more.
    #[pyo3(name = "_view")]
    pub fn copy(slf: &Bound<'_, Self>) -> Self {
        let view = slf.borrow();
        let source = Some(slf.clone().unbind());
        Self { source, cleared: view.cleared, ..Self::new(view.content.clone_ref(slf.py())) }
    }

    /// Removes every entry, touched or not.
    pub fn clear(&mut self) {
        self.cleared = true;
        self.emptied = true;
        self.cells.clear();
    }

    /// What this view or one before it holds under the key of this entry; None if that is what the initial content holds.
    fn held(slf: &Bound<'_, Self>, number: usize) -> PyResult<Option<Py<Cell>>> {
        let py = slf.py();
        match Self::held_in(slf, number) {
            Held::Initial => Ok(None),
            Held::Cell(cell) => Ok(Some(cell)),
            Held::Cleared => Ok(Some(Py::new(py, Cell { present: false, value: py.None(), assigned: true })?)),
        }
    }

    /// What the view holds by itself, with the number of the entry.
    #[getter]
    pub fn cells(&self, py: Python<'_>) -> Vec<(usize, Py<Cell>)> {
        self.cells.iter().map(|(number, cell)| (*number, cell.clone_ref(py))).collect()
    }

    /// The smallest number from 0 that is no key; with a prefix, no last part of a key `(*prefix, number)`.
    ///
    /// The numbers that are free in the initial state are unknowns L0 < L1 < ..., made on demand; the answer is the first
    /// that is still free, or a lower number that was removed since. Exact, without a bound on the numbers.
    #[pyo3(signature = (*prefix))]
    fn lowest_absent(slf: &Bound<'_, Self>, prefix: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let content = Self::content_of(slf);
        if slf.borrow().cleared {
            let name = content.borrow().name(py)?;
            return Err(UsageError::new_err(format!("{name}: lowest_absent() after clear() cannot be analysed")));
        }
        let mut keys = Vec::with_capacity(prefix.len());
        for part in prefix.iter() {
            keys.push(Key::of(&part)?.ok_or_else(|| UsageError::new_err(format!("no part of a key: {part}")))?);
        }
        slf.borrow_mut().scans.push(keys.clone());
        let mut position = 0;
        let mut lowest = loop {
            let number = MapContent::hole(&content, prefix, &keys, position)?;
            if !Self::has(slf, number)? {
                break number;
            }
            position += 1;
        };
        for (number, present) in Self::all_held(slf) {
            if present {
                continue;
            }
            let entry = content.borrow().entry(py, number);
            let key = entry.borrow().identity.clone();
            if entry.borrow().presence.is_some()
                && all_equal(py, key.split().0, &keys)?
                && MapContent::initially_has(&content, number)?
            {
                let least = content.borrow().key(py, lowest);
                if let (Some(left), Some(right)) = (key.last_number(), least.last_number())
                    && is_less(py, left, right)?
                    && !MapContent::is_negative(&content, &key)?
                {
                    lowest = number;
                }
            }
        }
        let entry = content.borrow().entry(py, lowest);
        let key = entry.borrow().key.clone_ref(py).into_bound(py);
        Ok(match key.downcast::<PyTuple>() {
            Ok(parts) => parts.get_item(parts.len() - 1)?.unbind(),
            Err(_) => key.unbind(),
        })
    }

    /// The entries that calls have touched and that are present.
    fn touched<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let content = Self::content_of(slf);
        let found = PyList::empty(py);
        let mut number = 0;
        while number < content.borrow().count() {
            if Self::has(slf, number)? {
                let entry = content.borrow().entry(py, number);
                let key = entry.borrow().key.clone_ref(py);
                found.append((key, Self::value(slf, number)?))?;
            }
            number += 1;
        }
        slf.borrow_mut().counted = Some(number);
        Ok(found)
    }

    /// The value of an entry, ready to be changed in this view; meaningful where it is present.
    pub fn value(slf: &Bound<'_, Self>, number: usize) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        slf.borrow_mut().looked.insert(number);
        let value = match Self::held_in(slf, number) {
            Held::Cell(cell) => cell.get().value.clone_ref(py),
            Held::Cleared => return Ok(py.None()),
            Held::Initial => {
                let entry = Self::content_of(slf).borrow().entry(py, number);
                Entry::value(&entry)?
            }
        };
        let bound = value.bind(py);
        if is_scalar(bound) || slf.borrow().own(number).is_some() {
            return Ok(value);
        }
        let copy = clone(bound)?.unbind();
        let cell = Py::new(py, Cell { present: true, value: copy.clone_ref(py), assigned: false })?;
        slf.borrow_mut().cells.push((number, cell));
        log(slf, number, |view, number| drop(logged::<Self>(view).release(number)))?;
        Ok(copy)
    }

    fn __contains__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let number = MapContent::find(&Self::content_of(slf), key)?;
        Self::has(slf, number)
    }

    /// The value; a key whose initial presence is still open is taken to be present (other states are excluded).
    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let number = MapContent::find(&Self::content_of(slf), key)?;
        Self::required(slf, number)
    }

    /// The value, or the default where the key is absent.
    #[pyo3(signature = (key, default = None))]
    pub(super) fn get(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let number = MapContent::find(&Self::content_of(slf), key)?;
        if Self::has(slf, number)? {
            return Self::value(slf, number);
        }
        Ok(default.unwrap_or_else(|| slf.py().None()))
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let content = Self::content_of(slf);
        let is_scalar = content.borrow().layout.takes_scalar(value)?;
        let adopted = if is_scalar { value.clone() } else { of_state!(py, "accepted")?.call1((value, &content))? };
        let number = MapContent::find(&content, key)?;
        slf.borrow_mut().put(number, Py::new(py, Cell { present: true, value: adopted.unbind(), assigned: true })?);
        Ok(())
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = MapContent::find(&Self::content_of(slf), key)?;
        Self::required(slf, number)?; // raises KeyError where the key is known to be absent
        Self::take_out(slf, number)
    }

    /// Removes the key and returns its value.
    #[pyo3(signature = (key, *default))]
    fn pop(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, default: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let number = MapContent::find(&Self::content_of(slf), key)?;
        if !default.is_empty() && !Self::has(slf, number)? {
            return Ok(default.get_item(0)?.unbind());
        }
        let value = Self::required(slf, number)?;
        Self::take_out(slf, number)?;
        Ok(value)
    }

    /// Puts a value in the place of an entry's, or (`present` is false) removes it.
    pub fn assign(slf: &Bound<'_, Self>, number: usize, present: bool, value: Py<PyAny>) -> PyResult<()> {
        slf.borrow_mut().put(number, Py::new(slf.py(), Cell { present, value, assigned: true })?);
        Ok(())
    }

    /// Whether both hold the same under every relevant key, an absent key holding `default`; `same` compares values.
    ///
    /// Untouched keys hold the same in both unless one was cleared; of those the caller knows that none is relevant.
    #[pyo3(signature = (other, relevant, default = None, same = None))]
    fn equal_where(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, Self>,
        relevant: &Bound<'_, PyAny>,
        default: Option<&Bound<'_, PyAny>>,
        same: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        Self::hold_the_same(slf, other, relevant, default, same)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        equality(slf.py(), operator, || {
            Ok(slf.is(other) || other.downcast_exact::<Self>().map_or(Ok(false), |other| Self::equals(slf, other))?)
        })
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("unhashable type: 'SymbolicMap'"))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.no_iteration(py)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.no_iteration(py)
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let entries = Self::size(slf)?;
        Ok(!is_at_most_zero(slf.py(), entries)?)
    }

    /// How many entries there are.
    fn length<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        simplified(slf.py(), Ok(Self::size(slf)?))
    }

    /// Adds a key to a set, which is a map to nothing.
    fn add(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::__setitem__(slf, key, PyTuple::empty(slf.py()).as_any())
    }

    /// Removes a key that is there.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::__delitem__(slf, key)
    }

    /// Removes a key if it is there.
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = MapContent::find(&Self::content_of(slf), key)?;
        if Self::has(slf, number)? { Self::take_out(slf, number) } else { Ok(()) }
    }

    /// A map of its own that holds what this one does now, whatever either becomes.
    #[pyo3(name = "copy")]
    fn snapshot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        slf.borrow_mut().copied = true;
        let mut cells = vec![];
        for (number, present) in Self::all_held(slf) {
            let value = if present {
                of_state!(py, "copied")?.call1((Self::value(slf, number)?,))?.unbind()
            } else {
                py.None()
            };
            cells.push((number, Py::new(py, Cell { present, value, assigned: true })?));
        }
        let (content, cleared) = {
            let view = slf.borrow();
            (view.content.clone_ref(py), view.cleared)
        };
        Bound::new(py, Self { cells, cleared, emptied: cleared, ..Self::new(content) })
    }

    fn keys(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.no_iteration(py)
    }

    fn values(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.no_iteration(py)
    }

    fn items(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.no_iteration(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.content)?;
        visit.call(&self.source)?;
        self.cells.iter().try_for_each(|(_, cell)| visit.call(&cell.get().value))
    }

    fn __clear__(&mut self) {
        self.cells.clear();
        self.source = None;
    }
}

impl SymbolicMap {
    pub(super) fn content_of<'py>(slf: &Bound<'py, Self>) -> Bound<'py, MapContent> {
        slf.borrow().content.bind(slf.py()).clone()
    }

    pub(super) fn own(&self, number: usize) -> Option<&Py<Cell>> {
        self.cells.iter().find(|(other, _)| *other == number).map(|(_, cell)| cell)
    }

    fn put(&mut self, number: usize, cell: Py<Cell>) {
        self.looked.insert(number);
        match self.cells.iter_mut().find(|(other, _)| *other == number) {
            Some(place) => place.1 = cell,
            None => self.cells.push((number, cell)),
        }
    }

    /// Forgets what the view holds under the key of this entry by itself.
    pub fn release(&mut self, number: usize) -> Option<Py<PyAny>> {
        let place = self.cells.iter().position(|(other, _)| *other == number)?;
        Some(self.cells.remove(place).1.into_any())
    }

    pub(super) fn held_in(slf: &Bound<'_, Self>, number: usize) -> Held {
        let py = slf.py();
        let mut view = slf.clone();
        loop {
            let source = {
                let this = view.borrow();
                if let Some(cell) = this.own(number) {
                    return Held::Cell(cell.clone_ref(py));
                }
                if this.emptied {
                    return Held::Cleared;
                }
                match &this.source {
                    Some(source) => source.bind(py).clone(),
                    None => return Held::Initial,
                }
            };
            view = source;
        }
    }

    /// What this view and those before it hold: the number of each entry, ascending, and whether it is present.
    pub(super) fn all_held(slf: &Bound<'_, Self>) -> Vec<(usize, bool)> {
        let mut found: Vec<(usize, bool)> = vec![];
        let mut view = Some(slf.clone());
        while let Some(this) = view {
            let this = this.borrow();
            for (number, cell) in &this.cells {
                if found.iter().all(|(other, _)| other != number) {
                    found.push((*number, cell.get().present));
                }
            }
            view = match &this.source {
                Some(source) if !this.emptied => Some(source.bind(slf.py()).clone()),
                _ => None,
            };
        }
        found.sort_unstable();
        found
    }

    /// The value that an entry had where this view was copied from; none if it had none, or if this is no copy.
    pub fn before<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(source) = &self.source else { return Ok(None) };
        match Self::held_in(source.bind(py), number) {
            Held::Initial => {
                let entry = self.content.borrow(py).entry(py, number);
                Ok(Some(Entry::value(&entry)?.into_bound(py)))
            }
            Held::Cell(cell) => Ok(Some(cell.get().value.bind(py).clone())),
            Held::Cleared => Ok(None),
        }
    }

    pub(super) fn has(slf: &Bound<'_, Self>, number: usize) -> PyResult<bool> {
        slf.borrow_mut().looked.insert(number);
        match Self::held_in(slf, number) {
            Held::Initial => MapContent::initially_has(&Self::content_of(slf), number),
            Held::Cleared => Ok(false),
            Held::Cell(cell) => Ok(cell.get().present),
        }
    }

    fn required(slf: &Bound<'_, Self>, number: usize) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let content = Self::content_of(slf);
        let missing = |what: &str| -> PyErr {
            match content.borrow().name(py) {
                Ok(name) => PyKeyError::new_err(format!("{name} {what}")),
                Err(error) => error,
            }
        };
        match Self::held_in(slf, number) {
            Held::Cleared => return Err(missing("was cleared")),
            Held::Cell(cell) if !cell.get().present => return Err(missing("has no such key")),
            Held::Cell(_) => {}
            Held::Initial => {
                let entry = content.borrow().entry(py, number);
                if entry.borrow().present == Some(false) {
                    return Err(missing("has no such key"));
                }
                MapContent::initially_requires(&content, number)?;
            }
        }
        Self::value(slf, number)
    }

    /// The number of entries: those of the initial content, and one more or less for each that came or went.
    fn size(slf: &Bound<'_, Self>) -> PyResult<Linear> {
        slf.borrow_mut().sized = true;
        let content = Self::content_of(slf);
        let cleared = slf.borrow().cleared;
        let mut size = if cleared || content.borrow().empty {
            Linear::number(0)
        } else {
            Linear::unknown(MapContent::size(&content)?, 1, 0)
        };
        for (number, is_present) in Self::all_held(slf) {
            let was_present = !cleared && MapContent::initially_has(&content, number)?;
            size = size.plus_number(i64::from(is_present) - i64::from(was_present)).map_err(too_large)?;
        }
        Ok(size)
    }

    fn take_out(slf: &Bound<'_, Self>, number: usize) -> PyResult<()> {
        let py = slf.py();
        slf.borrow_mut().put(number, Py::new(py, Cell { present: false, value: py.None(), assigned: true })?);
        Ok(())
    }

    fn no_iteration<T>(&self, py: Python<'_>) -> PyResult<T> {
        let name = self.content.borrow(py).name(py)?;
        Err(UsageError::new_err(format!(
            "{name}: a map of unknown size was iterated over (or its length asked for) in a call: expected access by key"
        )))
    }
}
