//! Keys of maps: values of sorts, integers, truth values, and tuples of these.

use ::symbolic::{Comparison, Linear, Literal};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyTuple};

use super::super::context::{Context, decide, restrict};
use super::super::integers::{Number, too_large};
use super::super::problem::{Infeasible, Problem};
use super::super::values::{BoolValue, IntValue, SortValue, is_at_most_zero, is_zero};

/// A key as far as the engine knows it: two that are equal are the same without any decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The value of a sort with this index.
    Sort(u32),
    /// A number, known or not.
    Integer(Linear),
    /// The boolean unknown with this index.
    Unknown(u32),
    /// A truth value.
    Truth(bool),
    /// Several.
    Tuple(Vec<Key>),
}

impl Key {
    /// The key that a value of Python's is; None for what no key is.
    pub fn of(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Ok(Some(if let Ok(value) = value.downcast_exact::<SortValue>() {
            Self::Sort(value.get().index)
        } else if let Ok(items) = value.downcast_exact::<PyTuple>() {
            let mut keys = Vec::with_capacity(items.len());
            for item in items.iter_borrowed() {
                let Some(key) = Self::of(&item)? else { return Ok(None) };
                keys.push(key);
            }
            Self::Tuple(keys)
        } else if let Ok(value) = value.downcast_exact::<IntValue>() {
            Self::Integer(value.get().linear.clone())
        } else if let Ok(value) = value.downcast_exact::<BoolValue>() {
            Self::Unknown(value.get().index)
        } else if let Ok(value) = value.downcast_exact::<PyBool>() {
            Self::Truth(value.is_true())
        } else if value.is_instance_of::<PyInt>() {
            Self::Integer(Linear::number(value.extract::<Number>()?.0))
        } else {
            return Ok(None);
        }))
    }

    /// Whether two keys are equal; what is open is decided, part by part until two differ.
    pub fn equals(&self, py: Python<'_>, other: &Self) -> Result<bool, Problem> {
        match (self, other) {
            (Self::Sort(left), Self::Sort(right)) => {
                Ok(left == right || decide(py, Literal::Same(*left.min(right), *left.max(right)))?)
            }
            (Self::Integer(left), Self::Integer(right)) => is_zero(py, left.plus(right, -1).map_err(too_large)?),
            (Self::Tuple(left), Self::Tuple(right)) => all_equal(py, left, right),
            _ if self == other => Ok(true),
            _ => Ok(self.truth(py)? == other.truth(py)?),
        }
    }

    fn truth(&self, py: Python<'_>) -> Result<Option<bool>, Problem> {
        match self {
            Self::Truth(side) => Ok(Some(*side)),
            Self::Unknown(index) => decide(py, Literal::Bool(*index)).map(Some),
            _ => Ok(None),
        }
    }

    /// The key without its last part, and that part.
    pub fn split(&self) -> (&[Self], &Self) {
        match self {
            Self::Tuple(parts) => parts.split_last().map_or((&[], self), |(last, prefix)| (prefix, last)),
            _ => (&[], self),
        }
    }

    /// The number that the last part is.
    pub fn last_number(&self) -> Option<&Linear> {
        if let Self::Integer(number) = self.split().1 { Some(number) } else { None }
    }

    /// Whether a part is a value that differs from every one in the initial state.
    pub fn is_fresh(&self, context: &Context) -> bool {
        match self {
            Self::Sort(index) => context.path.sorts().is_fresh(*index),
            Self::Tuple(parts) => parts.iter().any(|part| part.is_fresh(context)),
            _ => false,
        }
    }
}

/// Whether two sequences of keys are equal, part by part until two differ.
pub fn all_equal(py: Python<'_>, left: &[Key], right: &[Key]) -> Result<bool, Problem> {
    for (mine, theirs) in left.iter().zip(right) {
        if !mine.equals(py, theirs)? {
            return Ok(false);
        }
    }
    Ok(left.len() == right.len())
}

/// Whether it is not known that two prefixes of keys differ.
pub fn may_be_equal(context: &Context, left: &[Key], right: &[Key]) -> bool {
    left.iter().zip(right).all(|parts| match parts {
        (Key::Sort(mine), Key::Sort(theirs)) => context.path.sorts().same(*mine, *theirs) != Some(false),
        _ => true,
    })
}

/// Excludes states in which `linear <= 0` does not hold.
pub fn require(py: Python<'_>, linear: Linear) -> PyResult<()> {
    match linear.as_number() {
        Some(..=0) => Ok(()),
        Some(_) => Err(Infeasible::new_err(())),
        None => restrict(py, Literal::Compare(Comparison::AtMost, linear)),
    }
}

/// Whether `left < right`.
pub fn is_less(py: Python<'_>, left: &Linear, right: &Linear) -> PyResult<bool> {
    let difference = left.plus(right, -1).and_then(|difference| difference.plus_number(1)).map_err(too_large)?;
    Ok(is_at_most_zero(py, difference)?)
}
