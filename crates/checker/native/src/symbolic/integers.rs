//! Linear expressions and constraints as Python writes them: `(((variable, coefficient), ...), constant)`.

use std::cell::RefCell;

use ::symbolic::{Constraint, Fault, Linear, Relation, Solution, Solve, Solver, System, TooLarge};
use pyo3::exceptions::{PyKeyError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::problem::Problem;

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(add, module)?)?;
    module.add_function(wrap_pyfunction!(scale, module)?)?;
    module.add_function(wrap_pyfunction!(value_of, module)?)?;
    module.add_function(wrap_pyfunction!(solve, module)?)?;
    module.add_function(wrap_pyfunction!(solver_statistics, module)?)
}

/// A number of the model.
#[derive(Clone, Copy)]
pub struct Number(pub i64);

impl FromPyObject<'_> for Number {
    fn extract_bound(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract().map(Self).map_err(|error| {
            if error.is_instance_of::<PyOverflowError>(value.py()) { too_large(TooLarge) } else { error }
        })
    }
}

pub fn too_large(problem: TooLarge) -> PyErr {
    Problem::from(Fault::from(problem)).into()
}

/// A linear expression that comes from Python.
pub struct FromTuple(pub Linear);

impl FromPyObject<'_> for FromTuple {
    fn extract_bound(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (terms, constant): (Vec<(u32, Number)>, Number) = value.extract()?;
        let terms = terms.into_iter().map(|(variable, coefficient)| (variable, coefficient.0));
        Linear::sum(terms, constant.0).map(Self).map_err(too_large)
    }
}

/// A linear expression on its way to Python.
pub fn to_tuple<'py>(py: Python<'py>, linear: &Linear) -> PyResult<Bound<'py, PyTuple>> {
    (PyTuple::new(py, linear.terms())?, linear.constant()).into_pyobject(py)
}

/// `left + factor * right`.
#[pyfunction]
#[pyo3(signature = (left, right, factor = Number(1)))]
#[allow(clippy::needless_pass_by_value, reason = "Python hands over values of its own")]
fn add<'py>(py: Python<'py>, left: FromTuple, right: FromTuple, factor: Number) -> PyResult<Bound<'py, PyTuple>> {
    to_tuple(py, &left.0.plus(&right.0, factor.0).map_err(too_large)?)
}

/// `factor * linear`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands over values of its own")]
fn scale<'py>(py: Python<'py>, linear: FromTuple, factor: Number) -> PyResult<Bound<'py, PyTuple>> {
    to_tuple(py, &linear.0.times(factor.0).map_err(too_large)?)
}

/// The value of a linear expression; every variable must have one.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands over values of its own")]
fn value_of(linear: FromTuple, values: &Bound<'_, PyDict>) -> PyResult<i64> {
    let mut known = Vec::with_capacity(linear.0.terms().len());
    for &(variable, _) in linear.0.terms() {
        let value = values.get_item(variable)?.ok_or_else(|| PyKeyError::new_err(variable))?;
        known.push((variable, value.extract::<Number>()?.0));
    }
    let at = |variable| known.iter().find(|one| one.0 == variable).map_or(0, |one| one.1);
    linear.0.value(at).map_err(too_large)
}

/// Values for all variables of the constraints that satisfy them, or None if there are none. Values are small.
#[pyfunction]
fn solve<'py>(py: Python<'py>, constraints: Vec<(String, FromTuple)>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let constraints = constraints.into_iter().map(|(kind, linear)| {
        let relation = match kind.as_str() {
            "<=" => Relation::AtMost,
            "==" => Relation::Equal,
            "!=" => Relation::NotEqual,
            _ => return Err(PyValueError::new_err("expected <=, == or !=")),
        };
        Ok(Constraint { relation, linear: linear.0 })
    });
    let found = ThreadSolver(py).solve(constraints.collect::<PyResult<_>>()?)?;
    found.map(|found| solution_dict(py, found.iter())).transpose()
}

pub fn solution_dict(py: Python<'_>, values: impl Iterator<Item = (u32, i64)>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (variable, value) in values {
        dict.set_item(variable, value)?;
    }
    Ok(dict)
}

/// How often this thread has asked for a solution, and how many of the questions had not been asked before.
#[pyfunction]
fn solver_statistics() -> (u64, u64) {
    SOLVER.with_borrow(Solver::statistics)
}

thread_local! {
    static SOLVER: RefCell<Solver> = RefCell::default();
}

/// The thread's solver; where elimination is not exact, `commutant.symbolic.integers` answers by way of Z3.
pub struct ThreadSolver<'py>(pub Python<'py>);

impl Solve for ThreadSolver<'_> {
    type Error = Problem;

    fn solve(&mut self, constraints: Vec<Constraint>) -> Result<Option<Solution>, Problem> {
        SOLVER.with_borrow_mut(|solver| solver.solve(constraints, &mut |system| self.solve_with_z3(system)))
    }
}

impl ThreadSolver<'_> {
    fn solve_with_z3(&self, system: &System) -> Result<Option<Vec<i64>>, Problem> {
        let py = self.0;
        let tuples =
            |linears: &[Linear]| linears.iter().map(|linear| to_tuple(py, linear)).collect::<PyResult<Vec<_>>>();
        let parts = (tuples(&system.inequalities)?, tuples(&system.equations)?, tuples(&system.different)?);
        let solve = py.import("commutant.symbolic.integers")?.getattr("solve_with_z3")?;
        let found = solve.call1((parts.0, parts.1, parts.2, system.variable_count))?;
        let values: Option<Vec<Number>> = found.extract()?;
        Ok(values.map(|values| values.into_iter().map(|value| value.0).collect()))
    }
}
