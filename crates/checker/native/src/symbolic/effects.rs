//! What a run changes in a state, and whether two runs from one state have anything to do with each other; see
//! `commutant.symbolic.engine`.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::maps::SymbolicMap;
use super::records::{LazyRecord, clone, values};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(changed, module)?)?;
    module.add_function(wrap_pyfunction!(independent, module)?)?;
    module.add_function(wrap_pyfunction!(transfer, module)?)
}

/// Whether neither of two runs, which left these states, changed what the other looked at. Decides nothing; False may also
/// mean that this is not known.
#[pyfunction]
fn independent(left: &Bound<'_, LazyRecord>, right: &Bound<'_, LazyRecord>) -> PyResult<bool> {
    Ok(!records_meet(left, right)?)
}

/// Whether a copy of a part of a state has been changed since. Decides nothing; what was replaced by its equal counts, too.
#[pyfunction]
fn changed(copy: &Bound<'_, PyAny>, original: &Bound<'_, PyAny>) -> PyResult<bool> {
    if is_part(copy) { is_changed(copy) } else { differs(copy, Some(original)) }
}

/// Changes a state as a run changed the copy that it left: one that is independent of what led to the state.
#[pyfunction]
fn transfer(run: &Bound<'_, LazyRecord>, state: &Bound<'_, LazyRecord>) -> PyResult<()> {
    for (name, value) in values(run)? {
        let name = name.downcast::<PyString>()?;
        let before = before(run, name)?;
        if is_copy_of(&value, before.as_ref()) {
            if is_changed(&value)? {
                transfer_part(&value, &state.getattr(name)?)?;
            }
        } else if !is_same(&value, before.as_ref()) {
            state.setattr(name, clone(&value)?)?;
        }
    }
    Ok(())
}

fn transfer_part(part: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(record) = part.downcast::<LazyRecord>() {
        return transfer(record, target.downcast()?);
    }
    let (part, target) = (part.downcast::<SymbolicMap>()?, target.downcast::<SymbolicMap>()?);
    let py = part.py();
    if part.borrow().emptied {
        target.borrow_mut().clear();
    }
    for (number, cell) in part.borrow().cells(py) {
        let (cell, value) = (cell.get(), cell.get().value.bind(py));
        let is_part = is_part(value);
        if cell.assigned || (!is_part && differs(value, part.borrow().before(py, number)?.as_ref())?) {
            SymbolicMap::assign(target, number, cell.present, clone(value)?.unbind())?;
        } else if is_part && is_changed(value)? {
            transfer_part(value, SymbolicMap::value(target, number)?.bind(py))?;
        }
    }
    Ok(())
}

/// The value that a record had when it was copied.
fn before<'py>(record: &Bound<'py, LazyRecord>, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let source = record.borrow().source(record.py());
    source.map(|source| LazyRecord::seen(&source, name)).transpose()
}

fn is_same(value: &Bound<'_, PyAny>, before: Option<&Bound<'_, PyAny>>) -> bool {
    before.is_some_and(|before| before.is(value))
}

/// Whether a value is a copy of what stood there before, perhaps changed inside.
fn is_copy_of(value: &Bound<'_, PyAny>, before: Option<&Bound<'_, PyAny>>) -> bool {
    let Some(before) = before else { return false };
    let py = value.py();
    if let Ok(map) = value.downcast_exact::<SymbolicMap>() {
        return map.borrow().source.as_ref().is_some_and(|source| source.bind(py).is(before));
    }
    value
        .downcast::<LazyRecord>()
        .is_ok_and(|record| record.borrow().source(py).is_some_and(|source| source.is(before)))
}

/// Whether a value is neither what stood there before nor a copy of it that is as it was.
fn differs(value: &Bound<'_, PyAny>, before: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    if is_same(value, before) {
        return Ok(false);
    }
    if is_copy_of(value, before) {
        return is_changed(value);
    }
    let (Ok(items), Some(Ok(before))) = (value.downcast::<PyList>(), before.map(|before| before.downcast::<PyList>()))
    else {
        return Ok(true);
    };
    if items.len() != before.len() {
        return Ok(true);
    }
    for (item, before) in items.iter().zip(before) {
        if differs(&item, Some(&before))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a value knows what it is a copy of.
fn is_part(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<SymbolicMap>() || value.is_instance_of::<LazyRecord>()
}

/// Whether a copy of a map or record has been changed.
pub fn is_changed(part: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = part.py();
    if let Ok(map) = part.downcast_exact::<SymbolicMap>() {
        let map = map.borrow();
        if map.emptied {
            return Ok(true);
        }
        for (number, cell) in map.cells(py) {
            let (cell, value) = (cell.get(), cell.get().value.bind(py));
            if cell.assigned
                || if is_part(value) { is_changed(value)? } else { differs(value, map.before(py, number)?.as_ref())? }
            {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let Ok(record) = part.downcast::<LazyRecord>() else { return Ok(true) };
    for (name, value) in values(record)? {
        let before = match before(record, name.downcast()?) {
            // What was assigned and is no part of the state.
            Err(error) if error.is_instance_of::<PyAttributeError>(py) => return Ok(true),
            before => before?,
        };
        if differs(&value, before.as_ref())? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn records_meet(left: &Bound<'_, LazyRecord>, right: &Bound<'_, LazyRecord>) -> PyResult<bool> {
    let theirs = values(right)?;
    for (name, mine) in values(left)? {
        let name = name.downcast::<PyString>()?;
        let Some(other) = theirs.get_item(name)? else { continue };
        let (before, before_other) = (before(left, name)?, before(right, name)?);
        let (before, before_other) = (before.as_ref(), before_other.as_ref());
        let meet = if is_copy_of(&mine, before) && is_copy_of(&other, before_other) {
            parts_meet(&mine, &other)?
        } else {
            !(is_same(&mine, before) && is_same(&other, before_other))
        };
        if meet {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether one of two parts that are copies of one changed what the other looked at.
pub fn parts_meet(left: &Bound<'_, PyAny>, right: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let (Ok(left), Ok(right)) = (left.downcast_exact::<SymbolicMap>(), right.downcast_exact::<SymbolicMap>()) {
        return SymbolicMap::meets(left, right);
    }
    match (left.downcast::<LazyRecord>(), right.downcast::<LazyRecord>()) {
        (Ok(left), Ok(right)) => records_meet(left, right),
        _ => Ok(true),
    }
}
