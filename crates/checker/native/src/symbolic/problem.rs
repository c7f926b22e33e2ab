//! Why a question has no answer, as Python's errors.

use ::symbolic::Fault;
use ::symbolic::path::MAX_DECISIONS_PER_PATH;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::{create_exception, import_exception};

import_exception!(commutant.support.errors, UsageError);
create_exception!(
    _native,
    Infeasible,
    PyException,
    "The path contradicts a restriction that the model puts on its states: it says nothing about commutativity."
);

pub const OF_ANOTHER_RUN: &str =
    "the model uses a value of another run: expected calls that keep nothing outside of the state";

pub const NOT_DETERMINISTIC: &str = "the model is not deterministic: run again with the same values, it asked something else; \
                                 use choose() for what the specification leaves open";

/// Why a question has no answer: what the engine found, or what Python raised on the way.
pub struct Problem(PyErr);

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self(match fault {
            Fault::Infeasible => Infeasible::new_err(()),
            Fault::NotDeterministic => UsageError::new_err(NOT_DETERMINISTIC),
            Fault::TooManyDecisions => UsageError::new_err(format!(
                "the model took more than {MAX_DECISIONS_PER_PATH} decisions on one path: expected calls that end; is a \
                 loop without bound?"
            )),
            Fault::NoSuchUnknown => UsageError::new_err(OF_ANOTHER_RUN),
            Fault::TooLarge => UsageError::new_err(
                "the model computes with a number beyond 2^63: expected smaller ones, of 64 bits with sign",
            ),
        })
    }
}

impl From<PyErr> for Problem {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Problem> for PyErr {
    fn from(problem: Problem) -> Self {
        problem.0
    }
}
