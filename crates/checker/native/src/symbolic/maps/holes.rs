//! The lowest numbers that are no keys of a map: unknowns L0 < L1 < ..., made on demand.

use ::symbolic::Linear;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::super::context::{current, log, logged};
use super::super::integers::{Number, too_large};
use super::super::problem::Infeasible;
use super::super::values::{IntValue, is_zero};
use super::content::{Entry, MapContent};
use super::keys::{Key, all_equal, is_less, require};

impl MapContent {
    /// Holes are the lowest absent numbers, so an absent key that is none of them lies above.
    pub(super) fn became_absent(slf: &Bound<'_, Self>, entry: &Bound<'_, Entry>) -> PyResult<()> {
        let py = slf.py();
        let count = slf.borrow().holes.len();
        for position in 0..count {
            let (known, last) = {
                let content = slf.borrow();
                let (known, numbers) = &content.holes[position];
                let Some(last) = numbers.last() else { continue };
                (known.clone(), content.key(py, *last))
            };
            let key = entry.borrow().identity.clone();
            if all_equal(py, key.split().0, &known)? && !Self::is_negative(slf, &key)? {
                let (Some(last), Some(number)) = (last.last_number(), key.last_number()) else { continue };
                require(py, last.plus_number(1).and_then(|above| above.plus(number, -1)).map_err(too_large)?)?;
            }
        }
        Ok(())
    }

    /// Whether the last part of a key is below 0, where no hole is; not asked where the key's type excludes it.
    pub fn is_negative(slf: &Bound<'_, Self>, key: &Key) -> PyResult<bool> {
        let py = slf.py();
        let known = slf.borrow().layout.is_never_negative();
        let Some(number) = key.last_number() else { return Ok(false) };
        Ok(!known && is_less(py, number, &Linear::number(0))?)
    }

    /// The entry of the number that, of those absent in the initial state, is the lowest but `position`.
    pub fn hole(slf: &Bound<'_, Self>, prefix: &Bound<'_, PyTuple>, keys: &[Key], position: usize) -> PyResult<usize> {
        let py = slf.py();
        let count = slf.borrow().holes.len();
        let mut place = count;
        for other in 0..count {
            let known = slf.borrow().holes[other].0.clone();
            if all_equal(py, &known, keys)? {
                place = other;
                break;
            }
        }
        if place == count {
            slf.borrow_mut().holes.push((keys.to_vec(), vec![]));
            log(slf, 0, |content, _| drop(logged::<Self>(content).holes.pop()))?;
        }
        loop {
            let before = slf.borrow().holes[place].1.clone();
            if let Some(number) = before.get(position) {
                return Ok(*number);
            }
            let number = Self::new_hole(slf, prefix, keys, &before)?;
            slf.borrow_mut().holes[place].1.push(number);
            log(slf, place, |content, place| {
                logged::<Self>(content).holes[place].1.pop();
            })?;
        }
    }

    fn new_hole(slf: &Bound<'_, Self>, prefix: &Bound<'_, PyTuple>, keys: &[Key], before: &[usize]) -> PyResult<usize> {
        let py = slf.py();
        let variable = {
            let (place, name) = {
                let content = slf.borrow();
                (content.place.as_ref().map(|place| place.clone_ref(py)), content.name(py)?)
            };
            let arguments = of_state!(py, "arguments_of")?.call1((place, prefix.add((before.len(),))?))?;
            let term = (intern!(py, "apply"), format!("{name}_free"), arguments).into_pyobject(py)?;
            current(py)?.borrow_mut(py).new_int(py, &term, Some(Number(0)), None)?
        };
        let lowest = Linear::unknown(variable, 1, 0);
        let below = |lower: &Linear, upper: &Linear| -> PyResult<()> {
            require(py, lower.plus_number(1).and_then(|above| above.plus(upper, -1)).map_err(too_large)?)
        };
        if let Some(last) = before.last() {
            let last = slf.borrow().key(py, *last);
            if let Some(last) = last.last_number() {
                below(last, &lowest)?;
            }
        }
        let mut number = 0;
        while number < slf.borrow().count() {
            let this = number;
            number += 1;
            let key = slf.borrow().key(py, this);
            if before.contains(&this) || key.is_fresh(&current(py)?.borrow(py)) {
                continue;
            }
            if !all_equal(py, key.split().0, keys)? {
                continue;
            }
            let Some(last) = key.last_number() else { continue };
            let is_present = Self::initially_has(slf, this)?;
            if !is_present && Self::is_negative(slf, &key)? {
                continue;
            }
            if is_zero(py, last.plus(&lowest, -1).map_err(too_large)?)? {
                return if is_present { Err(Infeasible::new_err(())) } else { Ok(this) };
            }
            if !is_present {
                below(&lowest, last)?;
            }
        }
        let last = Bound::new(py, IntValue { linear: lowest.clone() })?;
        let (key, identity) = if keys.is_empty() {
            (last.into_any(), Key::Integer(lowest))
        } else {
            let mut parts = keys.to_vec();
            parts.push(Key::Integer(lowest));
            (prefix.add((last,))?, Key::Tuple(parts))
        };
        let entry = Self::make(slf, &key, &identity)?;
        let number = Self::add(slf, entry)?;
        Self::note(slf, identity, number)?;
        Ok(number)
    }
}
