//! Unknown values that a model computes with. Comparing them decides (see `context`).

use ::symbolic::{Comparison, Linear, Literal, TooLarge};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyInt, PyString, PyTuple};

use super::context::decide;
use super::integers::{FromTuple, Number, to_tuple, too_large};
use super::problem::{Problem, UsageError};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SortValue>()?;
    module.add_class::<BoolValue>()?;
    module.add_class::<IntValue>()
}

fn no_key<T>() -> PyResult<T> {
    Err(UsageError::new_err(
        "an unknown value was used as a key of a Python dict or set: use a Map of the model's state, or a list",
    ))
}

/// The answer to `==` or `!=`, which is asked of `equals`; Python's own answer to other comparisons.
pub fn equality<'py>(
    py: Python<'py>,
    operator: CompareOp,
    equals: impl FnOnce() -> Result<bool, Problem>,
) -> PyResult<Bound<'py, PyAny>> {
    let wanted = match operator {
        CompareOp::Eq => true,
        CompareOp::Ne => false,
        _ => return Ok(py.NotImplemented().into_bound(py)),
    };
    Ok(PyBool::new(py, equals()? == wanted).to_owned().into_any())
}

/// A value of an uninterpreted sort; only `==` and `!=` make sense.
#[pyclass(frozen, module = "commutant._native")]
pub struct SortValue {
    #[pyo3(get)]
    pub index: u32,
    #[pyo3(get)]
    sort: Py<PyString>,
}

impl SortValue {
    /// The name of its sort.
    pub fn sort<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        self.sort.bind(py)
    }
}

#[pymethods]
impl SortValue {
    #[new]
    fn new(index: u32, sort: Py<PyString>) -> Self {
        Self { index, sort }
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !matches!(operator, CompareOp::Eq | CompareOp::Ne) {
            let sort = slf.get().sort.bind(py);
            return Err(UsageError::new_err(format!(
                "a {sort} was compared by order: expected == or !=, or a sort with an order: class {sort}(Sort, ordered=True)"
            )));
        }
        equality(py, operator, || {
            if slf.is(other) {
                return Ok(true);
            }
            let Ok(right) = other.downcast_exact::<Self>() else { return Ok(false) };
            let (left, right) = (slf.get(), right.get());
            let (mine, theirs) = (left.sort.bind(py), right.sort.bind(py));
            if !mine.is(theirs) && !mine.as_any().eq(theirs)? {
                let message = format!("a {mine} was compared with a {theirs}: values of different sorts never meet");
                return Err(UsageError::new_err(message).into());
            }
            decide(py, Literal::Same(left.index.min(right.index), left.index.max(right.index)))
        })
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let sort = self.sort.bind(py);
        Err(UsageError::new_err(format!("a {sort} was used as a truth value: compare it instead")))
    }

    fn __hash__(&self) -> PyResult<isize> {
        no_key()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<{} {}>", self.sort.bind(py), self.index)
    }
}

/// An unknown truth value.
#[pyclass(frozen, module = "commutant._native")]
pub struct BoolValue {
    #[pyo3(get)]
    pub index: u32,
}

impl BoolValue {
    fn truth(&self, py: Python<'_>) -> Result<bool, Problem> {
        decide(py, Literal::Bool(self.index))
    }
}

#[pymethods]
impl BoolValue {
    #[new]
    fn new(index: u32) -> Self {
        Self { index }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.truth(py)?)
    }

    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        equality(py, operator, || {
            if let Ok(right) = other.downcast_exact::<Self>() {
                let right = right.get();
                return Ok(right.index == self.index || self.truth(py)? == right.truth(py)?);
            }
            if other.is_instance_of::<PyInt>() || other.is_exact_instance_of::<IntValue>() {
                // As for Python, True is 1.
                let number = PyInt::new(py, i64::from(self.truth(py)?));
                return Ok(number.as_any().eq(other)?);
            }
            Ok(false)
        })
    }

    fn __hash__(&self) -> PyResult<isize> {
        no_key()
    }

    fn __repr__(&self) -> String {
        format!("<bool {}>", self.index)
    }
}

/// A linear expression over unknown integers.
#[pyclass(frozen, module = "commutant._native")]
pub struct IntValue {
    pub linear: Linear,
}

/// The expression that a number or an unknown integer is; None for anything else.
fn linear_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Linear>> {
    if let Ok(value) = value.downcast_exact::<IntValue>() {
        return Ok(Some(value.get().linear.clone()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Some(Linear::number(value.extract::<Number>()?.0)));
    }
    Ok(None)
}

/// An expression as a model sees it: a plain number if it is one.
pub fn simplified<'py>(py: Python<'py>, linear: Result<Linear, TooLarge>) -> PyResult<Bound<'py, PyAny>> {
    let linear = linear.map_err(too_large)?;
    match linear.as_number() {
        Some(number) => Ok(number.into_pyobject(py)?.into_any()),
        None => Ok(Bound::new(py, IntValue { linear })?.into_any()),
    }
}

/// Whether `linear <= 0`. Both polarities share one literal: the leading coefficient is made positive.
pub fn is_at_most_zero(py: Python<'_>, linear: Linear) -> Result<bool, Problem> {
    match linear.terms().first() {
        None => Ok(linear.constant() <= 0),
        Some(&(_, 1..)) => decide(py, Literal::Compare(Comparison::AtMost, linear)),
        Some(_) => {
            let above = linear.above_zero().map_err(too_large)?;
            Ok(!decide(py, Literal::Compare(Comparison::AtMost, above))?)
        }
    }
}

pub fn is_zero(py: Python<'_>, linear: Linear) -> Result<bool, Problem> {
    let linear = match linear.terms().first() {
        None => return Ok(linear.constant() == 0),
        Some(&(_, 1..)) => linear,
        Some(_) => linear.times(-1).map_err(too_large)?,
    };
    decide(py, Literal::Compare(Comparison::Equal, linear))
}

impl IntValue {
    fn combined<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        combine: impl FnOnce(&Linear, &Linear) -> Result<Linear, TooLarge>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match linear_of(other)? {
            Some(other) => simplified(py, combine(&self.linear, &other)),
            None => Ok(py.NotImplemented().into_bound(py)),
        }
    }
}

/// Quotient and remainder of a division, rounded down.
fn divided<'py>(value: &Bound<'py, IntValue>, by: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static DIVIDED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    DIVIDED.import(value.py(), "commutant.symbolic.division", "divided")?.call1((value, by))
}

#[pymethods]
impl IntValue {
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "Python hands over values of its own")]
    fn new(linear: FromTuple) -> Self {
        Self { linear: linear.0 }
    }

    /// The unknown of this index.
    #[staticmethod]
    fn variable(index: u32) -> Self {
        Self { linear: Linear::unknown(index, 1, 0) }
    }

    #[getter]
    fn linear<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        to_tuple(py, &self.linear)
    }

    fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.combined(other, |mine, theirs| mine.plus(theirs, 1))
    }

    fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.__add__(other)
    }

    fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.combined(other, |mine, theirs| mine.plus(theirs, -1))
    }

    fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.combined(other, |mine, theirs| theirs.plus(mine, -1))
    }

    fn __mul__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        if other.is_exact_instance_of::<Self>() {
            return Err(UsageError::new_err(
                "two unknown integers were multiplied: only sums and constant factors can be analysed",
            ));
        }
        if !other.is_instance_of::<PyInt>() {
            return Ok(py.NotImplemented().into_bound(py));
        }
        simplified(py, self.linear.times(other.extract::<Number>()?.0))
    }

    fn __rmul__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.__mul__(other)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        divided(slf, other)?.get_item(1)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        divided(slf, other)?.get_item(0)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        static MASKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        MASKED.import(slf.py(), "commutant.symbolic.division", "masked")?.call1((slf, other))
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::__and__(slf, other)
    }

    fn __neg__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        simplified(py, self.linear.times(-1))
    }

    fn __pos__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<bool> {
        let py = other.py();
        let right = match (linear_of(other)?, operator) {
            (Some(right), _) => right,
            (None, CompareOp::Eq) => return Ok(false),
            (None, CompareOp::Ne) => return Ok(true),
            (None, _) => {
                let shown = other.repr()?;
                let message = format!("an unknown integer was compared with {shown}: expected an integer");
                return Err(UsageError::new_err(message));
            }
        };
        let left = &self.linear;
        let less = |left: &Linear, right: &Linear, constant: i64| {
            left.plus(right, -1).and_then(|difference| difference.plus_number(constant)).map_err(too_large)
        };
        Ok(match operator {
            CompareOp::Eq => is_zero(py, less(left, &right, 0)?)?,
            CompareOp::Ne => !is_zero(py, less(left, &right, 0)?)?,
            CompareOp::Le => is_at_most_zero(py, less(left, &right, 0)?)?,
            CompareOp::Lt => is_at_most_zero(py, less(left, &right, 1)?)?,
            CompareOp::Ge => is_at_most_zero(py, less(&right, left, 0)?)?,
            CompareOp::Gt => is_at_most_zero(py, less(&right, left, 1)?)?,
        })
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(!is_zero(py, self.linear.clone())?)
    }

    fn __index__(&self) -> PyResult<i64> {
        Err(UsageError::new_err(
            "an unknown integer was used where Python needs a number (an index, range() or a bit operation)",
        ))
    }

    fn __hash__(&self) -> PyResult<isize> {
        no_key()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<int {}>", self.linear(py)?.repr()?))
    }
}
