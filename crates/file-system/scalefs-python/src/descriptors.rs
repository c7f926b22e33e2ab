//! Calls on descriptors, which are numbers of the instance's process and no descriptors of the system.

use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use scalefs::attributes;
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::{DataOperations, Errno, Fields, Kind, ObjectOperations, OpenFlags, Start, StatusFlags};

use crate::arguments::{Data, Path};
use crate::door::{Door, calls, moving};
use crate::errors::Refusal;
use crate::extended::{self, Target};
use crate::locks;
use crate::status::{new_times, stat_result};
use crate::whole::{self, Unread};

/// The most bytes that one read makes room for before it knows the file's size (a caller may ask for any number).
const MOST_AT_ONCE_BYTES: usize = 1 << 20;

/// So many bytes, all zero. MemoryError where there is no room: a file with holes may be larger than all memory.
fn room(size_bytes: usize) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let reserved = bytes.try_reserve_exact(size_bytes);
    reserved.map_err(|_| PyMemoryError::new_err(format!("no memory for {size_bytes} bytes at once")))?;
    bytes.resize(size_bytes, 0);
    Ok(bytes)
}

/// Calls on descriptors of a file system, or in a transaction.
#[pyclass(frozen)]
pub struct Descriptors(Arc<Door>);

impl Descriptors {
    pub fn new(door: Arc<Door>) -> Descriptors {
        Descriptors(door)
    }

    /// How many bytes lie behind an offset, of those that are wanted.
    fn at_most(&self, fd: u32, offset: u64, wanted: usize) -> Result<usize, Refusal> {
        if wanted <= MOST_AT_ONCE_BYTES {
            return Ok(wanted);
        }
        let size = calls!(&self.0, |calls| data::stat(calls, fd, Fields::SIZE))?.size_bytes;
        Ok(wanted.min(usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX)))
    }
}

#[pymethods]
impl Descriptors {
    /// Opens a file under the lowest free number. Flags are those of `OpenFlags`; a directory is refused, if it is to be.
    fn open(
        &self,
        py: Python<'_>,
        path: Path<'_>,
        flags: u32,
        mode: u32,
        appends: bool,
        refuses_directories: bool,
    ) -> PyResult<u32> {
        let flags = OpenFlags::from_bits(flags).ok_or_else(|| PyValueError::new_err("no such flags"))?;
        let status = if appends { StatusFlags::APPEND } else { StatusFlags::NONE };
        let options = DescriptorOptions { status, ..DescriptorOptions::PLAIN };
        let outcome = calls!(&self.0, |calls| {
            let fd = data::open(calls, Start::WorkingDirectory, &path.bytes, flags, mode, options)?;
            if refuses_directories && calls.objects().kind(data::node(calls, fd)?) == Kind::Directory {
                data::close(calls, fd)?;
                return Err(Errno::EISDIR);
            }
            Ok(fd)
        });
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Closes a descriptor.
    fn close(&self, py: Python<'_>, fd: u32) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| data::close(calls, fd));
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Whether calls are taken; see `Files.is_open`.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Up to so many bytes at the descriptor's offset.
    fn read<'py>(&self, py: Python<'py>, fd: u32, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let raised = |refusal: Refusal| refusal.raised(py, &[]);
        let offset = if size <= MOST_AT_ONCE_BYTES { 0 } else { self.seek(py, fd, 0, 1)? };
        let mut bytes = room(self.at_most(fd, offset, size).map_err(raised)?)?;
        let count = moving(py, bytes.len(), || calls!(&self.0, |calls| data::read(calls, fd, &mut bytes)));
        Ok(PyBytes::new(py, &bytes[..count.map_err(raised)?]))
    }

    /// All bytes from the descriptor's offset on; it then is at the end of them.
    fn read_all<'py>(&self, py: Python<'py>, fd: u32) -> PyResult<Bound<'py, PyBytes>> {
        let raised = |refusal: Refusal| refusal.raised(py, &[]);
        let mut small = [0; whole::SMALL_BYTES];
        let read = calls!(&self.0, |calls| data::read(calls, fd, &mut small));
        let count = read.map_err(raised)?;
        if count < small.len() {
            return Ok(PyBytes::new(py, &small[..count]));
        }
        let offset = self.seek(py, fd, 0, 1)?;
        let rest = whole::read_from(py, &self.0, fd, offset, &small).map_err(|unread| match unread {
            Unread::Refused(refusal) => raised(refusal),
            Unread::Raised(error) => error,
        })?;
        self.seek(py, fd, (offset + (rest.as_bytes().len() - count) as u64) as i64, 0)?;
        Ok(rest)
    }

    /// Reads at the descriptor's offset into an object that can be written; returns how many bytes.
    fn read_into(&self, py: Python<'_>, fd: u32, into: PyBuffer<u8>) -> PyResult<usize> {
        let cells = into.as_mut_slice(py).ok_or_else(|| PyValueError::new_err("the buffer cannot be written"))?;
        let mut bytes = room(cells.len())?;
        let outcome = moving(py, bytes.len(), || calls!(&self.0, |calls| data::read(calls, fd, &mut bytes)));
        let count = outcome.map_err(|refusal| refusal.raised(py, &[]))?;
        // The object's bytes may be written by others while they are: they are cells.
        for (cell, byte) in cells.iter().zip(&bytes[..count]) {
            cell.set(*byte);
        }
        Ok(count)
    }

    /// Up to so many bytes at an offset; the descriptor's own stays.
    fn read_at<'py>(&self, py: Python<'py>, fd: u32, size: usize, offset: i64) -> PyResult<Bound<'py, PyBytes>> {
        let raised = |refusal: Refusal| refusal.raised(py, &[]);
        let from = u64::try_from(offset).unwrap_or(0);
        let mut bytes = room(self.at_most(fd, from, size).map_err(raised)?)?;
        let read = || calls!(&self.0, |calls| data::read_at(calls, fd, &mut bytes, offset));
        let count = moving(py, size, read);
        Ok(PyBytes::new(py, &bytes[..count.map_err(raised)?]))
    }

    /// Writes at the descriptor's offset, or at the end with O_APPEND; returns how many bytes.
    fn write(&self, py: Python<'_>, fd: u32, bytes: Data<'_>) -> PyResult<usize> {
        let given = bytes.bytes();
        let outcome = moving(py, given.len(), || calls!(&self.0, |calls| data::write(calls, fd, given)));
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Writes at an offset; the descriptor's own stays.
    fn write_at(&self, py: Python<'_>, fd: u32, bytes: Data<'_>, offset: i64) -> PyResult<usize> {
        let given = bytes.bytes();
        let outcome = moving(py, given.len(), || calls!(&self.0, |calls| data::write_at(calls, fd, given, offset)));
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Moves the descriptor's offset: `whence` is 0 from the start, 1 from the offset, 2 from the end.
    fn seek(&self, py: Python<'_>, fd: u32, offset: i64, whence: u8) -> PyResult<u64> {
        let outcome = calls!(&self.0, |calls| {
            let whence = match whence {
                0 => Whence::Start,
                1 => Whence::Current,
                2 => Whence::End,
                _ => return Err(Errno::EINVAL),
            };
            data::seek(calls, fd, offset, whence)
        });
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Makes the file longer by a hole, or shorter.
    fn truncate(&self, py: Python<'_>, fd: u32, size_bytes: i64) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| data::truncate(calls, fd, size_bytes));
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// The value of an extended attribute.
    fn get_attribute<'py>(&self, py: Python<'py>, fd: u32, name: Path<'_>) -> PyResult<Bound<'py, PyBytes>> {
        let value = extended::get(&self.0, Target::Descriptor(fd), &name.bytes);
        Ok(PyBytes::new(py, &value.map_err(|refusal| refusal.raised(py, &[]))?))
    }

    /// Sets an extended attribute: `flags` is 1 if it must be new, 2 if it must exist.
    fn set_attribute(&self, py: Python<'_>, fd: u32, name: Path<'_>, value: Data<'_>, flags: u32) -> PyResult<()> {
        let set = extended::set(&self.0, Target::Descriptor(fd), (&name.bytes, value.bytes()), flags);
        set.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Removes an extended attribute.
    fn remove_attribute(&self, py: Python<'_>, fd: u32, name: Path<'_>) -> PyResult<()> {
        let removed = extended::remove(&self.0, Target::Descriptor(fd), &name.bytes);
        removed.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// The names of all extended attributes.
    fn list_attributes<'py>(&self, py: Python<'py>, fd: u32) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let names = extended::list(&self.0, Target::Descriptor(fd));
        let names = names.map_err(|refusal| refusal.raised(py, &[]))?;
        Ok(names.iter().map(|name| PyBytes::new(py, name)).collect())
    }

    /// Takes room for bytes of a file, or gives it back, as `mode` says (`fallocate`).
    fn allocate(&self, py: Python<'_>, fd: u32, mode: u32, offset: i64, length: i64) -> PyResult<()> {
        let allocated = extended::allocate(&self.0, fd, mode, (offset, length));
        allocated.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// What is known of an open file.
    fn stat<'py>(&self, py: Python<'py>, fd: u32) -> PyResult<Bound<'py, PyAny>> {
        let outcome = calls!(&self.0, |calls| data::stat(calls, fd, Fields::ALL));
        let attributes = outcome.map_err(|refusal| refusal.raised(py, &[]))?;
        stat_result(py, self.0.device, &attributes)
    }

    /// Another descriptor with the same offset: the lowest free one, or this one.
    fn duplicate(&self, py: Python<'_>, fd: u32, target: Option<u32>) -> PyResult<u32> {
        let DescriptorOptions { number, on_exec, .. } = DescriptorOptions::PLAIN;
        let outcome = calls!(&self.0, |calls| match target {
            None => data::duplicate(calls, fd, number, on_exec),
            Some(target) => data::duplicate_to(calls, fd, target, on_exec),
        });
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Locks or unlocks a range, or all of a file; waits, if that is asked for, while other threads run. `asked` is 0 for a lock of the
    /// process, 1 for one of the description, 2 for all of the file, and 0 for none, 1 for a shared one, 2 for an exclusive
    /// one; `bytes` is start, whence, length.
    fn set_lock(&self, py: Python<'_>, fd: u32, asked: (u8, u8), bytes: (i64, u8, i64), waits: bool) -> PyResult<()> {
        py.detach(|| locks::set(&self.0, fd, asked, bytes, waits)).map_err(|refusal| refusal.raised(py, &[]))
    }

    /// What is in the way of a lock: whether it is of a process, its mode, start and length; or nothing.
    fn lock_in_the_way(
        &self,
        py: Python<'_>,
        fd: u32,
        asked: (u8, u8),
        bytes: (i64, u8, i64),
    ) -> PyResult<Option<(bool, u8, u64, u64)>> {
        locks::in_the_way(&self.0, fd, asked, bytes).map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Sets the permission bits of an open file.
    fn change_mode(&self, py: Python<'_>, fd: u32, mode: u32) -> PyResult<()> {
        let outcome =
            calls!(&self.0, |calls| attributes::change_mode_of(calls.objects(), data::node(calls, fd)?, mode));
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Sets owner and group of an open file, each unless it is `None`.
    fn change_owner(&self, py: Python<'_>, fd: u32, user: Option<u32>, group: Option<u32>) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| {
            attributes::change_owner_of(calls.objects(), data::node(calls, fd)?, (user, group))
        });
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Sets the times of access and modification of an open file, in nanoseconds; `None` for the present.
    fn set_times(&self, py: Python<'_>, fd: u32, times: Option<(i64, i64)>) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| {
            attributes::set_times_of(calls.objects(), data::node(calls, fd)?, new_times(times))
        });
        outcome.map_err(|refusal| refusal.raised(py, &[]))
    }
}
