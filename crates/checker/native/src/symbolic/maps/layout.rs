//! What the engine needs to know of a map's type, worked out once per type.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString, PyTuple};

use super::super::integers::Number;
use super::super::values::{BoolValue, IntValue, SortValue};

/// A type of values that cannot be changed, as far as a map looks at it.
enum Shape {
    Sort(Py<PyString>),
    Bool,
    Integer { is_never_negative: bool },
    Tuple(Vec<Shape>),
    Other,
}

impl Shape {
    fn of(type_: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = type_.py();
        Ok(match type_.get_type().name()?.to_str()? {
            "SortType" => Self::Sort(type_.getattr(intern!(py, "sort"))?.getattr(intern!(py, "__name__"))?.extract()?),
            "BoolType" => Self::Bool,
            "IntType" => {
                let low: Option<Number> = type_.getattr(intern!(py, "low"))?.extract()?;
                Self::Integer { is_never_negative: low.is_some_and(|Number(low)| low >= 0) }
            }
            "TupleType" => {
                let items: Vec<Bound<'_, PyAny>> = type_.getattr(intern!(py, "items"))?.extract()?;
                Self::Tuple(items.iter().map(Self::of).collect::<PyResult<_>>()?)
            }
            _ => Self::Other,
        })
    }

    /// Whether a value is one of this type; None where that is not known here.
    fn fits(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        Ok(match self {
            Self::Sort(name) => Some(match value.downcast_exact::<SortValue>() {
                Ok(value) => {
                    let sort = value.get().sort(value.py());
                    sort.is(name) || sort.as_any().eq(name)?
                }
                Err(_) => false,
            }),
            Self::Bool => Some(value.is_exact_instance_of::<BoolValue>() || value.is_exact_instance_of::<PyBool>()),
            Self::Integer { .. } => Some(
                value.is_exact_instance_of::<IntValue>()
                    || (value.is_instance_of::<PyInt>() && !value.is_exact_instance_of::<PyBool>()),
            ),
            Self::Tuple(items) => {
                let Ok(parts) = value.downcast::<PyTuple>() else { return Ok(Some(false)) };
                if parts.len() != items.len() {
                    return Ok(Some(false));
                }
                for (item, part) in items.iter().zip(parts.iter()) {
                    match item.fits(&part)? {
                        Some(true) => {}
                        other => return Ok(other),
                    }
                }
                Some(true)
            }
            Self::Other => None,
        })
    }
}

/// A type of maps.
pub struct Layout {
    type_: Py<PyAny>,
    key_type: Py<PyAny>,
    key: Shape,
    value_type: Py<PyAny>,
    value: Shape,
    /// Whether parts of a value have names of their own.
    names_parts: bool,
}

thread_local! {
    static KNOWN: RefCell<HashMap<usize, Arc<Layout>>> = RefCell::default();
}

impl Layout {
    /// The layout of a `MapType`.
    pub fn of(type_: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let place = type_.as_ptr() as usize;
        if let Some(known) = KNOWN.with_borrow(|known| known.get(&place).map(Arc::clone)) {
            return Ok(known);
        }
        let py = type_.py();
        let (key, value) = (type_.getattr(intern!(py, "key"))?, type_.getattr(intern!(py, "value"))?);
        let layout = Arc::new(Self {
            key: Shape::of(&key)?,
            value: Shape::of(&value)?,
            names_parts: of_state!(py, "names_parts")?.call1((&value,))?.is_truthy()?,
            key_type: key.unbind(),
            value_type: value.unbind(),
            type_: type_.clone().unbind(), // keeps the place taken
        });
        KNOWN.with_borrow_mut(|known| known.insert(place, Arc::clone(&layout)));
        Ok(layout)
    }

    /// The type itself, and those of keys and values.
    pub fn types(&self) -> [&Py<PyAny>; 3] {
        [&self.type_, &self.key_type, &self.value_type]
    }

    /// Whether a value is a key of such a map.
    pub fn takes_key(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.key.fits(key)?.unwrap_or(false))
    }

    /// Whether a value is one of such a map's that cannot be changed, only replaced.
    pub fn takes_scalar(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(!matches!(self.value, Shape::Tuple(_)) && self.value.fits(value)? == Some(true))
    }

    /// Whether the last part of a key is a number that is not below 0.
    pub fn is_never_negative(&self) -> bool {
        let last = if let Shape::Tuple(items) = &self.key { items.last() } else { Some(&self.key) };
        matches!(last, Some(Shape::Integer { is_never_negative: true }))
    }

    /// What an unknown value of a map of this name is called.
    pub fn value_name(&self, map: &str) -> String {
        if self.names_parts { map.to_owned() } else { format!("{map}_value") }
    }
}
