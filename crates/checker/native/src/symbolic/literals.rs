//! Literals and decisions as Python reads them.

use ::symbolic::{Comparison, Decision as Taken, Literal as Statement};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::integers::{FromTuple, to_tuple};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Literal>()?;
    module.add_class::<Decision>()
}

/// An atomic statement.
#[pyclass(frozen, eq, hash, module = "commutant._native")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Literal(pub Statement);

#[pymethods]
impl Literal {
    #[new]
    #[pyo3(signature = (kind, left, right = None))]
    fn new(kind: &str, left: &Bound<'_, PyAny>, right: Option<u32>) -> PyResult<Self> {
        Ok(Self(match (kind, right) {
            ("bool", None) => Statement::Bool(left.extract()?),
            ("same", Some(right)) => Statement::Same(left.extract()?, right),
            ("<=", None) => Statement::Compare(Comparison::AtMost, left.extract::<FromTuple>()?.0),
            ("==", None) => Statement::Compare(Comparison::Equal, left.extract::<FromTuple>()?.0),
            _ => return Err(PyValueError::new_err("expected bool, same, <= or == and its operands")),
        }))
    }

    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.0 {
            Statement::Bool(_) => intern!(py, "bool"),
            Statement::Same(..) => intern!(py, "same"),
            Statement::Compare(Comparison::AtMost, _) => intern!(py, "<="),
            Statement::Compare(Comparison::Equal, _) => intern!(py, "=="),
        }
    }

    #[getter]
    fn left<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            Statement::Bool(index) | Statement::Same(index, _) => Ok(index.into_pyobject(py)?.into_any()),
            Statement::Compare(_, linear) => Ok(to_tuple(py, linear)?.into_any()),
        }
    }

    #[getter]
    fn right(&self) -> Option<u32> {
        if let Statement::Same(_, right) = self.0 { Some(right) } else { None }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let right = self.right().map_or("None".to_owned(), |right| right.to_string());
        Ok(format!("Literal({}, {}, {right})", self.kind(py).repr()?, self.left(py)?.repr()?))
    }
}

/// A literal and the side taken; unpacks into both.
#[pyclass(frozen, eq, hash, module = "commutant._native")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Decision(pub Taken);

#[pymethods]
impl Decision {
    #[new]
    fn new(literal: &Literal, holds: bool) -> Self {
        Self(Taken { literal: literal.0.clone(), holds })
    }

    #[getter]
    fn literal(&self) -> Literal {
        Literal(self.0.literal.clone())
    }

    #[getter]
    fn holds(&self) -> bool {
        self.0.holds
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        let both: Bound<'py, PyTuple> = (self.literal(), self.0.holds).into_pyobject(py)?;
        both.try_iter()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Decision({}, {})", self.literal().__repr__(py)?, if self.0.holds { "True" } else { "False" }))
    }
}

/// Decisions as Python reads them.
pub fn shown(decisions: &[Taken]) -> Vec<Decision> {
    decisions.iter().cloned().map(Decision).collect()
}
