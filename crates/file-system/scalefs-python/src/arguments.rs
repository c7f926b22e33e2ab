//! What Python hands over: paths, and bytes in any object that holds some.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};

/// A path: `str`, `bytes` or what `os.fspath` makes one of, encoded as Python encodes names of files.
pub struct Path<'py> {
    /// As errors name it.
    pub object: Bound<'py, PyAny>,
    pub bytes: Vec<u8>,
}

impl<'py> FromPyObject<'py> for Path<'py> {
    fn extract_bound(given: &Bound<'py, PyAny>) -> PyResult<Path<'py>> {
        let object = match given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
            true => given.clone(),
            // Says in one line what was expected, and what came.
            false => given.py().import("os")?.call_method1("fspath", (given,))?,
        };
        let bytes = match (object.downcast::<PyBytes>(), object.downcast::<PyString>()) {
            (Ok(bytes), _) => bytes.as_bytes().to_vec(),
            (_, Ok(text)) => match text.to_str() {
                Ok(text) => text.as_bytes().to_vec(),
                // Bytes that are no text were decoded to lone surrogates.
                Err(_) => text.extract::<OsString>()?.into_vec(),
            },
            (_, Err(refused)) => return Err(refused.into()),
        };
        if bytes.contains(&0) {
            return Err(PyValueError::new_err("embedded null byte"));
        }
        Ok(Path { object, bytes })
    }
}

/// The bytes of a `bytes`, or a copy of those of a `bytearray`, a `memoryview`, an array.
pub struct Data<'py>(Bound<'py, PyBytes>);

impl<'py> FromPyObject<'py> for Data<'py> {
    fn extract_bound(given: &Bound<'py, PyAny>) -> PyResult<Data<'py>> {
        match given.downcast::<PyBytes>() {
            Ok(bytes) => Ok(Data(bytes.clone())),
            // What can change is copied: other threads run while bytes are written.
            Err(_) => Ok(Data(PyMemoryView::from(given)?.call_method0("tobytes")?.downcast_into::<PyBytes>()?)),
        }
    }
}

impl Data<'_> {
    pub fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
