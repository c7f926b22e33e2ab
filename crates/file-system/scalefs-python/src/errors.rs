//! Errors of calls, as `os` raises them.

use std::io;

use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use scalefs::Errno;

use crate::arguments::Path;

create_exception!(
    scalefs,
    Stale,
    PyOSError,
    "What a transaction has seen is not so any more, so that nothing of it has happened (ECANCELED)."
);

/// Why a call was not made, or failed.
pub enum Refusal {
    /// By the call.
    Failed(io::Error),
    /// The file system is closed.
    Closed,
    /// The transaction has ended.
    Ended,
    /// This is a child of the process that made the file system.
    OtherProcess,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Failed(error)
    }
}

impl Refusal {
    /// The exception, with the paths as Python's own calls name them. Making it may run any Python code, which may call this
    /// file system: so no call is under way.
    pub fn raised(self, py: Python<'_>, paths: &[&Path<'_>]) -> PyErr {
        match self {
            Refusal::Closed => PyValueError::new_err("the file system is closed: make another one"),
            Refusal::OtherProcess => PyRuntimeError::new_err(
                "the file system is in the memory of the process that made it: a child of fork has to make its own",
            ),
            Refusal::Ended => {
                PyValueError::new_err("the transaction is not open: its calls are made in its `with` block")
            }
            Refusal::Failed(error) => match error.raw_os_error() {
                None => PyRuntimeError::new_err(error.to_string()),
                Some(number) => of_number(py, number, paths).unwrap_or_else(|error| error),
            },
        }
    }
}

fn of_number(py: Python<'_>, number: i32, paths: &[&Path<'_>]) -> PyResult<PyErr> {
    if number == Errno::ECANCELED.number() {
        let text = "what the transaction has seen is not so any more: begin it again";
        return Ok(Stale::new_err((number, text)));
    }
    let text: String = py.import("os")?.call_method1("strerror", (number,))?.extract()?;
    let name = |path: &Path<'_>| path.object.clone().unbind();
    Ok(match paths {
        [old, new] => PyOSError::new_err((number, text, name(old), py.None(), name(new))),
        [path, ..] => PyOSError::new_err((number, text, name(path))),
        [] => PyOSError::new_err((number, text)),
    })
}
