//! What is known of a file, as `os.stat` returns it.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use scalefs::Attributes;
use scalefs::attributes::NewTime;

/// Data takes space in such pieces.
const BLOCK_BYTES: u64 = 4096;
/// What `st_blocks` counts.
const UNIT_BYTES: u64 = 512;
/// Of an `os.stat_result` on Linux.
const FIELDS: usize = 19;
const SECOND_NS: i64 = 1_000_000_000;

/// An `os.stat_result`; `st_blocks` counts holes, too.
pub fn stat_result<'py>(py: Python<'py>, device: u64, attributes: &Attributes) -> PyResult<Bound<'py, PyAny>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let times = [attributes.accessed_ns, attributes.modified_ns, attributes.changed_ns];
    let whole = times.map(|time| time.div_euclid(SECOND_NS));
    let seconds = times.map(|time| time.div_euclid(SECOND_NS) as f64 + 1e-9 * time.rem_euclid(SECOND_NS) as f64);
    let size = attributes.size_bytes;
    let numbers = [
        u64::from(attributes.kind.mode_bits() | attributes.mode),
        attributes.number.0,
        device,
        u64::from(attributes.link_count),
        u64::from(attributes.user),
        u64::from(attributes.group),
        size,
    ];
    let rest = [BLOCK_BYTES, size.div_ceil(BLOCK_BYTES) * (BLOCK_BYTES / UNIT_BYTES), 0];
    let mut items: Vec<Bound<'py, PyAny>> = Vec::with_capacity(FIELDS);
    for number in numbers {
        items.push(number.into_pyobject(py)?.into_any());
    }
    for time in whole {
        items.push(time.into_pyobject(py)?.into_any());
    }
    for time in seconds {
        items.push(time.into_pyobject(py)?.into_any());
    }
    for time in times {
        items.push(time.into_pyobject(py)?.into_any());
    }
    for number in rest {
        items.push(number.into_pyobject(py)?.into_any());
    }
    TYPE.import(py, "os", "stat_result")?.call1((PyTuple::new(py, items)?,))
}

/// `None` for a time that is set to now.
pub fn new_times(times: Option<(i64, i64)>) -> (NewTime, NewTime) {
    times.map_or((NewTime::Now, NewTime::Now), |(accessed, modified)| (NewTime::At(accessed), NewTime::At(modified)))
}
