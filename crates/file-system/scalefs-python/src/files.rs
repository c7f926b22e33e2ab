//! Calls by paths, which begin at the root.

use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use scalefs::attributes::{self, Access};
use scalefs::data;
use scalefs::names::{self, RenameMode};
use scalefs::path_data::write_path;
use scalefs::{
    DataOperations, Errno, Fields, FileSystem, Follow, Kind, ObjectOperations, OpenFlags, OwnedConfig, Start, WriteAt,
    directories,
};

use crate::arguments::{Data, Path};
use crate::descriptors::Descriptors;
use crate::door::{Door, calls, locked, moving};
use crate::errors::Refusal;
use crate::extended::{self, Target};
use crate::status::{new_times, stat_result};
use crate::whole;

fn follow(follows: bool) -> Follow {
    if follows { Follow::Symlinks } else { Follow::Nothing }
}

/// A file system in memory, and one process of user 0 in it; or the same in a transaction.
#[pyclass(frozen)]
pub struct Files(Arc<Door>);

/// After so many maintenances that free nothing, nothing that was given up is on its way.
const ROUNDS_IN_VAIN: u32 = 8;
const MOST_ROUNDS: u32 = 200;

impl Files {
    /// Frees what was given up, so that free space is told as it is.
    fn maintain(&self) -> Result<(), Refusal> {
        let files = self.0.files()?;
        let (mut seen, mut in_vain) = (files.space()?, 0);
        for _ in 0..MOST_ROUNDS {
            files.begin()?.maintain();
            let now = files.space()?;
            in_vain = if now == seen { in_vain + 1 } else { 0 };
            seen = now;
            if in_vain == ROUNDS_IN_VAIN {
                break;
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Files {
    /// An empty file system. ValueError says in one line what is wrong with the sizes.
    #[new]
    fn new(metadata_bytes: usize, page_count: u32, core_count: usize) -> PyResult<Files> {
        let config = OwnedConfig { metadata_bytes, page_count, core_count, hash_seed: 1 };
        let files = FileSystem::create(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Files(Arc::new(Door::new(files))))
    }

    /// The same calls in a transaction that begins now. A transaction has none within it.
    fn begin(&self, py: Python<'_>) -> PyResult<Files> {
        if self.0.transaction.is_some() {
            return Err(PyRuntimeError::new_err("a transaction begins none within itself"));
        }
        let begin = || {
            let files = self.0.files()?;
            let transaction = transact::begin(&files)?;
            Ok(self.0.with(transaction))
        };
        begin().map(|door| Files(Arc::new(door))).map_err(|refusal: Refusal| refusal.raised(py, &[]))
    }

    /// Ends the transaction, so that all of it happens, or nothing. False if what it has seen is not so any more: then
    /// nothing has happened.
    fn end(&self, py: Python<'_>, commits: bool) -> PyResult<bool> {
        let end = || {
            self.0.check_process()?;
            let mut open = self.0.transaction.as_ref().map(locked).ok_or(Refusal::Ended)?;
            if open.is_none() {
                return Err(Refusal::Ended);
            }
            Ok(transact::end(&self.0.files()?, &mut open, commits)?)
        };
        end().map_err(|refusal| refusal.raised(py, &[]))
    }

    /// Refuses all further calls.
    fn close(&self) {
        self.0.close();
    }

    /// Whether calls are taken: it is not closed, its transaction has not ended, and this is the process that made it.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// What `st_dev` says of its files.
    #[getter]
    fn device(&self) -> u64 {
        self.0.device
    }

    /// Calls on descriptors.
    fn descriptors(&self) -> Descriptors {
        Descriptors::new(self.0.clone())
    }

    /// The names in a directory, without `.` and `..`, in the order of a listing, and the kind of each.
    fn list<'py>(&self, py: Python<'py>, path: Path<'_>) -> PyResult<Vec<(Bound<'py, PyBytes>, u8)>> {
        let mut listed: Vec<(Vec<u8>, Kind)> = Vec::new();
        let outcome = calls!(&self.0, |calls| {
            listed.clear();
            let objects = calls.objects();
            let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
            let opened = names::open(objects, Start::WorkingDirectory, &path.bytes, flags, 0)?.handle;
            // Not by `readdir`, which asks for `..`, too.
            let outcome = objects.list(objects.held(&opened), 0, &mut |item| {
                listed.push((item.name.to_vec(), objects.kind(item.node)));
                true
            });
            names::close(objects, opened);
            Ok(outcome.map(drop)?)
        });
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))?;
        Ok(listed.iter().map(|(name, kind)| (PyBytes::new(py, name), *kind as u8)).collect())
    }

    /// What is known of what a path leads to.
    fn stat<'py>(&self, py: Python<'py>, path: Path<'_>, follows: bool) -> PyResult<Bound<'py, PyAny>> {
        let outcome = calls!(&self.0, |calls| attributes::stat(
            calls.objects(),
            Start::WorkingDirectory,
            &path.bytes,
            follow(follows),
            Fields::ALL
        ));
        let attributes = outcome.map_err(|refusal| refusal.raised(py, &[&path]))?;
        stat_result(py, self.0.device, &attributes)
    }

    /// Whether a path leads to something that may be read (4), written (2), executed (1); 0 asks whether it exists. Other
    /// errors than that of a path that leads nowhere are raised.
    fn access(&self, py: Python<'_>, path: Path<'_>, wanted: u32, follows: bool) -> PyResult<bool> {
        let wanted = Access { read: wanted & 4 != 0, write: wanted & 2 != 0, execute: wanted & 1 != 0 };
        let outcome = calls!(&self.0, |calls| {
            let objects = calls.objects();
            let asked = attributes::access(objects, Start::WorkingDirectory, &path.bytes, follow(follows), wanted);
            match asked {
                Ok(()) => Ok(true),
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES | Errno::ENAMETOOLONG) => Ok(false),
                Err(other) => Err(other),
            }
        });
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Makes a directory.
    fn make_directory(&self, py: Python<'_>, path: Path<'_>, mode: u32) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| directories::make_directory(
            calls.objects(),
            Start::WorkingDirectory,
            &path.bytes,
            mode
        ));
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Removes an empty directory.
    fn remove_directory(&self, py: Python<'_>, path: Path<'_>) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| directories::remove_directory(
            calls.objects(),
            Start::WorkingDirectory,
            &path.bytes
        ));
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Removes a name of what is no directory.
    fn unlink(&self, py: Python<'_>, path: Path<'_>) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| names::unlink(calls.objects(), Start::WorkingDirectory, &path.bytes));
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Gives something another name; what had it before is replaced.
    fn rename(&self, py: Python<'_>, old: Path<'_>, new: Path<'_>) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| names::rename(
            calls.objects(),
            (Start::WorkingDirectory, &old.bytes),
            (Start::WorkingDirectory, &new.bytes),
            RenameMode::Replace
        ));
        outcome.map_err(|refusal| refusal.raised(py, &[&old, &new]))
    }

    /// Gives a file a further name.
    fn link(&self, py: Python<'_>, old: Path<'_>, new: Path<'_>, follows: bool) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| names::link(
            calls.objects(),
            (Start::WorkingDirectory, &old.bytes),
            (Start::WorkingDirectory, &new.bytes),
            follow(follows)
        ));
        outcome.map_err(|refusal| refusal.raised(py, &[&old, &new]))
    }

    /// Makes a symbolic link.
    fn symlink(&self, py: Python<'_>, target: Path<'_>, path: Path<'_>) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| names::symlink(
            calls.objects(),
            &target.bytes,
            Start::WorkingDirectory,
            &path.bytes
        ));
        outcome.map_err(|refusal| refusal.raised(py, &[&target, &path]))
    }

    /// What a symbolic link holds.
    fn read_link<'py>(&self, py: Python<'py>, path: Path<'_>) -> PyResult<Bound<'py, PyBytes>> {
        let outcome = calls!(&self.0, |calls| {
            let target = names::read_link(calls.objects(), Start::WorkingDirectory, &path.bytes)?;
            Ok(AsRef::<[u8]>::as_ref(&target).to_vec())
        });
        let target: Vec<u8> = outcome.map_err(|refusal| refusal.raised(py, &[&path]))?;
        Ok(PyBytes::new(py, &target))
    }

    /// Sets the permission bits of what a path leads to.
    fn change_mode(&self, py: Python<'_>, path: Path<'_>, mode: u32) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| attributes::change_mode(
            calls.objects(),
            Start::WorkingDirectory,
            &path.bytes,
            mode
        ));
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Sets owner and group, each unless it is `None`.
    fn change_owner(
        &self,
        py: Python<'_>,
        path: Path<'_>,
        user: Option<u32>,
        group: Option<u32>,
        follows: bool,
    ) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| attributes::change_owner(
            calls.objects(),
            Start::WorkingDirectory,
            &path.bytes,
            follow(follows),
            (user, group)
        ));
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Sets the times of access and modification, in nanoseconds; `None` for the present.
    fn set_times(&self, py: Python<'_>, path: Path<'_>, times: Option<(i64, i64)>, follows: bool) -> PyResult<()> {
        let outcome = calls!(&self.0, |calls| attributes::set_times(
            calls.objects(),
            Start::WorkingDirectory,
            &path.bytes,
            follow(follows),
            new_times(times)
        ));
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Makes a file longer by a hole, or shorter.
    fn truncate(&self, py: Python<'_>, path: Path<'_>, size_bytes: i64) -> PyResult<()> {
        let outcome =
            calls!(&self.0, |calls| data::truncate_path(calls, Start::WorkingDirectory, &path.bytes, size_bytes));
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// The value of an extended attribute.
    fn get_attribute<'py>(
        &self,
        py: Python<'py>,
        path: Path<'_>,
        follows: bool,
        name: Path<'_>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let value = extended::get(&self.0, Target::Path(&path.bytes, follows), &name.bytes);
        Ok(PyBytes::new(py, &value.map_err(|refusal| refusal.raised(py, &[&path]))?))
    }

    /// Sets an extended attribute: `flags` is 1 if it must be new, 2 if it must exist.
    fn set_attribute(
        &self,
        py: Python<'_>,
        path: Path<'_>,
        follows: bool,
        name: Path<'_>,
        value: Data<'_>,
        flags: u32,
    ) -> PyResult<()> {
        let set = extended::set(&self.0, Target::Path(&path.bytes, follows), (&name.bytes, value.bytes()), flags);
        set.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// Removes an extended attribute.
    fn remove_attribute(&self, py: Python<'_>, path: Path<'_>, follows: bool, name: Path<'_>) -> PyResult<()> {
        let removed = extended::remove(&self.0, Target::Path(&path.bytes, follows), &name.bytes);
        removed.map_err(|refusal| refusal.raised(py, &[&path]))
    }

    /// The names of all extended attributes.
    fn list_attributes<'py>(
        &self,
        py: Python<'py>,
        path: Path<'_>,
        follows: bool,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let names = extended::list(&self.0, Target::Path(&path.bytes, follows));
        let names = names.map_err(|refusal| refusal.raised(py, &[&path]))?;
        Ok(names.iter().map(|name| PyBytes::new(py, name)).collect())
    }

    /// Bytes of a block, blocks, those that are free, most inodes, those that can still be made.
    fn space(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64, u64)> {
        self.maintain().map_err(|refusal| refusal.raised(py, &[]))?;
        let outcome = calls!(&self.0, |calls| attributes::space(calls.objects()));
        let space = outcome.map_err(|refusal| refusal.raised(py, &[]))?;
        Ok((space.block_bytes, space.blocks, space.free_blocks, space.inodes, space.free_inodes))
    }

    /// All that a file holds.
    fn read<'py>(&self, py: Python<'py>, path: Path<'_>) -> PyResult<Bound<'py, PyBytes>> {
        whole::read(py, &self.0, &path)
    }

    /// Makes a file hold these bytes, or adds them at its end; what fits stays if space runs out.
    fn write(&self, py: Python<'_>, path: Path<'_>, bytes: Data<'_>, appends: bool) -> PyResult<()> {
        let (given, place) = (bytes.bytes(), &path.bytes);
        let mut done = 0;
        let mut flags = if appends { OpenFlags::CREATE } else { OpenFlags::CREATE | OpenFlags::TRUNCATE };
        let outcome = moving(py, given.len(), || {
            calls!(&self.0, |calls| {
                // What is written stays so where space is looked for, and the rest is tried again.
                loop {
                    let at = if appends { WriteAt::End } else { WriteAt::Offset(done as u64) };
                    done += write_path(calls, Start::WorkingDirectory, place, (flags, 0o666), at, &given[done..])?;
                    flags = OpenFlags::NONE;
                    if done == given.len() {
                        return Ok(());
                    }
                }
            })
        });
        outcome.map_err(|refusal| refusal.raised(py, &[&path]))
    }
}
