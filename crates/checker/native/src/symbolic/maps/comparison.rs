//! Whether two views of a map hold the same, and whether two runs that started from one view have anything to do with
//! each other. Untouched keys cannot differ, so only what views hold apart is compared.

use std::collections::BTreeSet;

use pyo3::prelude::*;

use super::super::context::current;
use super::super::effects::{is_changed, parts_meet};
use super::super::problem::UsageError;
use super::keys::may_be_equal;
use super::view::{Held, SymbolicMap};

impl SymbolicMap {
    /// Whether both hold the same under every relevant key, an absent key holding `default`; `same` compares values.
    ///
    /// Untouched keys hold the same in both unless one was cleared; of those the caller knows that none is relevant.
    pub(super) fn hold_the_same(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, Self>,
        relevant: &Bound<'_, PyAny>,
        default: Option<&Bound<'_, PyAny>>,
        same: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let py = slf.py();
        let content = Self::content_of(slf);
        if !content.is(Self::content_of(other)) {
            return Self::equal_where_new(slf, other, Some(relevant), default, same);
        }
        let none = py.None().into_bound(py);
        let default = default.unwrap_or(&none);
        let everywhere = slf.borrow().cleared != other.borrow().cleared;
        let held_apart = Self::held_apart(slf, other);
        let mut number = 0;
        while number < content.borrow().count() {
            if (everywhere || held_apart.contains(&number)) && !Self::shares(slf, number, other) {
                let entry = content.borrow().entry(py, number);
                let key = entry.borrow().key.clone_ref(py);
                if relevant.call1((key,))?.is_truthy()? {
                    let value_in = |view| -> PyResult<Bound<'_, PyAny>> {
                        if Self::has(view, number)? {
                            Ok(Self::value(view, number)?.into_bound(py))
                        } else {
                            Ok(default.clone())
                        }
                    };
                    if !same_or_absent(&value_in(slf)?, &value_in(other)?, same)? {
                        return Ok(false);
                    }
                }
            }
            number += 1;
        }
        slf.borrow_mut().counted = Some(number);
        other.borrow_mut().counted = Some(number);
        Ok(true)
    }

    /// Whether one of two views that started from one changed what the other looked at.
    pub fn meets(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let py = slf.py();
        let common: Vec<usize> = {
            let (mine, theirs) = (slf.borrow(), other.borrow());
            if mine.emptied || theirs.emptied {
                return Ok(true);
            }
            mine.looked.common(&theirs.looked).collect()
        };
        for number in common {
            let own = |view: &Bound<'_, Self>| view.borrow().own(number).map(|cell| cell.clone_ref(py));
            let (mine, theirs) = (own(slf), own(other));
            if [&mine, &theirs].into_iter().flatten().any(|cell| cell.get().assigned) {
                return Ok(true);
            }
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                let (mine, theirs) = (mine.get().value.bind(py), theirs.get().value.bind(py));
                if parts_meet(mine, theirs)? {
                    return Ok(true);
                }
            }
        }
        Ok(Self::scan_meets(slf, other)? || Self::scan_meets(other, slf)?)
    }

    /// This view and those that it is a copy of, the initial content last.
    fn sources<'py>(slf: &Bound<'py, Self>) -> Vec<Bound<'py, Self>> {
        let mut views = vec![slf.clone()];
        loop {
            let source = {
                let last = views.last().expect("a first one").borrow();
                last.source.as_ref().map(|source| source.bind(slf.py()).clone())
            };
            match source {
                Some(source) => views.push(source),
                None => return views,
            }
        }
    }

    /// The entries of which one of two views holds something that the other has not from a common source.
    fn held_apart(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> BTreeSet<usize> {
        let (mut mine, mut theirs) = (Self::sources(slf), Self::sources(other));
        while let (Some(left), Some(right)) = (mine.last(), theirs.last()) {
            if !left.is(right) {
                break;
            }
            mine.pop();
            theirs.pop();
        }
        let mut numbers = BTreeSet::new();
        for view in mine.iter().chain(&theirs) {
            numbers.extend(view.borrow().cells.iter().map(|(number, _)| *number));
        }
        numbers
    }

    pub(super) fn equals(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let py = slf.py();
        let content = Self::content_of(slf);
        if !content.is(Self::content_of(other)) {
            return Self::equal_where_new(slf, other, None, None, None);
        }
        {
            let (mine, theirs) = (slf.borrow(), other.borrow());
            if let (Some(left), Some(right)) = (&mine.source, &theirs.source) {
                let untouched = |view: &Self| view.cells.is_empty() && !view.emptied;
                if left.is(right) && untouched(&mine) && untouched(&theirs) {
                    return Ok(true);
                }
            }
            if mine.cleared != theirs.cleared {
                let name = content.borrow().name(py)?;
                return Err(UsageError::new_err(format!(
                    "{name} was cleared in one order and not in the other: compare with equal_where() in the struct's \
                     relevant() or the model's equivalent()"
                )));
            }
        }
        for number in Self::held_apart(slf, other) {
            let (mine, theirs) = (Self::has(slf, number)?, Self::has(other, number)?);
            if mine != theirs {
                return Ok(false);
            }
            if mine
                && !Self::shares(slf, number, other)
                && !Self::value(slf, number)?.bind(py).eq(Self::value(other, number)?)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether two maps that calls have made hold the same: all that they hold was written.
    fn equal_where_new(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, Self>,
        relevant: Option<&Bound<'_, PyAny>>,
        default: Option<&Bound<'_, PyAny>>,
        same: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let py = slf.py();
        let contents = [Self::content_of(slf), Self::content_of(other)];
        let is_new = |view: &Bound<'_, Self>| view.borrow().cleared || view.borrow().content.borrow(py).empty;
        if !(is_new(slf) && is_new(other)) {
            let (mine, theirs) = (contents[0].borrow().name(py)?, contents[1].borrow().name(py)?);
            return Err(UsageError::new_err(format!(
                "two different maps were compared ({mine} and {theirs}): a map can only be compared with another \
                 state's view of itself"
            )));
        }
        let mut keys = vec![];
        for (view, content) in [slf, other].into_iter().zip(&contents) {
            for (number, _) in Self::all_held(view) {
                let entry = content.borrow().entry(py, number);
                let key = entry.borrow().key.clone_ref(py);
                keys.push(key.into_bound(py));
            }
        }
        let none = py.None();
        let default = default.map_or_else(|| none.clone_ref(py), |default| default.clone().unbind());
        for key in keys {
            if let Some(relevant) = relevant
                && !relevant.call1((&key,))?.is_truthy()?
            {
                continue;
            }
            let mine = Self::get(slf, &key, Some(default.clone_ref(py)))?;
            let theirs = Self::get(other, &key, Some(default.clone_ref(py)))?;
            if !same_or_absent(mine.bind(py), theirs.bind(py), same)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether two views that have an entry hold the very same value.
    fn shares(slf: &Bound<'_, Self>, number: usize, other: &Bound<'_, Self>) -> bool {
        match (Self::held_in(slf, number), Self::held_in(other, number)) {
            (Held::Initial, Held::Initial) => true,
            (Held::Cell(mine), Held::Cell(theirs)) => mine.get().value.is(&theirs.get().value),
            (Held::Cell(cell), Held::Cleared) | (Held::Cleared, Held::Cell(cell)) => cell.get().value.is_none(slf.py()),
            (Held::Cleared, Held::Cleared) => true,
            _ => false,
        }
    }

    /// Whether the right side changed or made known what the left side asked about several keys at once.
    fn scan_meets(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let py = slf.py();
        let (mine, theirs) = (slf.borrow(), other.borrow());
        if mine.copied && (theirs.emptied || is_changed(other.as_any())?) {
            return Ok(true);
        }
        if mine.scans.is_empty() && mine.counted.is_none() && !mine.sized {
            return Ok(false);
        }
        let assigned: Vec<usize> =
            theirs.cells.iter().filter(|(_, cell)| cell.get().assigned).map(|(number, _)| *number).collect();
        if mine.sized && !assigned.is_empty() {
            return Ok(true);
        }
        if mine.counted.is_some_and(|counted| !assigned.is_empty() || theirs.looked.reaches(counted)) {
            return Ok(true);
        }
        let content = mine.content.borrow(py);
        let context = current(py)?;
        let context = context.borrow(py);
        Ok(assigned.iter().any(|number| {
            let key = content.key(py, *number);
            mine.scans.iter().any(|prefix| may_be_equal(&context, prefix, key.split().0))
        }))
    }
}

/// Whether two values of a map are the same; None stands for an absent one.
fn same_or_absent(
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
    same: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    if left.is(right) {
        return Ok(true);
    }
    if left.is_none() || right.is_none() {
        return Ok(false);
    }
    match same {
        Some(same) => same.call1((left, right))?.is_truthy(),
        None => left.eq(right),
    }
}
