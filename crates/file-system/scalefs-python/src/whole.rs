//! A file is read as a whole: a small one in one call, a larger one into an object of its size.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use scalefs::data::{self, DescriptorOptions};
use scalefs::path_data::read_path;
use scalefs::{Fields, OpenFlags, Start};

use crate::arguments::Path;
use crate::door::{Door, calls, moving};
use crate::errors::Refusal;

/// A file below this is read in one call. It is cleared before, so that it is no larger than it needs to be.
pub const SMALL_BYTES: usize = 4096;
/// What a file that grows meanwhile is read by.
const STEP_BYTES: usize = 1 << 20;

/// All that a file holds.
pub fn read<'py>(py: Python<'py>, door: &Door, path: &Path<'_>) -> PyResult<Bound<'py, PyBytes>> {
    let raised = |refusal: Refusal| refusal.raised(py, &[path]);
    let mut small = [0; SMALL_BYTES];
    let read = calls!(door, |calls| read_path(calls, Start::WorkingDirectory, &path.bytes, 0, &mut small));
    let count = read.map_err(raised)?;
    if count < SMALL_BYTES {
        return Ok(PyBytes::new(py, &small[..count]));
    }
    // From here on by a descriptor: the name may lead to another file meanwhile.
    let opened = calls!(door, |calls| {
        let options = DescriptorOptions::PLAIN;
        data::open(calls, Start::WorkingDirectory, &path.bytes, OpenFlags::READ, 0, options)
    });
    let fd = opened.map_err(raised)?;
    let bytes = read_from(py, door, fd, 0, &[]);
    // It was open until now.
    let _ = calls!(door, |calls| data::close(calls, fd));
    bytes.map_err(|error| match error {
        Unread::Refused(refusal) => raised(refusal),
        Unread::Raised(error) => error,
    })
}

/// Why there are no bytes.
pub enum Unread {
    Refused(Refusal),
    Raised(PyErr),
}

/// All bytes of an open file from an offset on, behind these that were read before; its own offset stays.
pub fn read_from<'py>(
    py: Python<'py>,
    door: &Door,
    fd: u32,
    offset: u64,
    before: &[u8],
) -> Result<Bound<'py, PyBytes>, Unread> {
    let size = calls!(door, |calls| data::stat(calls, fd, Fields::SIZE)).map_err(Unread::Refused)?.size_bytes;
    let wanted = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut outcome = Ok(0);
    let whole = PyBytes::new_with(py, before.len().saturating_add(wanted), |into| {
        into[..before.len()].copy_from_slice(before);
        outcome = read_into(py, door, fd, offset, &mut into[before.len()..]);
        Ok(())
    });
    let whole = whole.map_err(Unread::Raised)?;
    let count = outcome.map_err(Unread::Refused)?;
    // Cut meanwhile: what was there is told.
    if count < wanted {
        return Ok(PyBytes::new(py, &whole.as_bytes()[..before.len() + count]));
    }
    let mut grown = Vec::new();
    loop {
        let end = grown.len();
        grown.resize(end + if end == 0 { SMALL_BYTES } else { STEP_BYTES }, 0);
        let more = read_into(py, door, fd, offset + (wanted + end) as u64, &mut grown[end..]);
        let more = more.map_err(Unread::Refused)?;
        grown.truncate(end + more);
        if more == 0 {
            break;
        }
    }
    Ok(if grown.is_empty() { whole } else { PyBytes::new(py, &[whole.as_bytes(), &grown].concat()) })
}

/// Reads at an offset until the buffer is full or the file ends; returns how many bytes.
pub fn read_into(py: Python<'_>, door: &Door, fd: u32, offset: u64, into: &mut [u8]) -> Result<usize, Refusal> {
    let mut done = 0;
    moving(py, into.len(), || {
        calls!(door, |calls| {
            loop {
                let count = data::read_at(calls, fd, &mut into[done..], (offset + done as u64) as i64)?;
                done += count;
                if count == 0 || done == into.len() {
                    return Ok(done);
                }
            }
        })
    })
}
