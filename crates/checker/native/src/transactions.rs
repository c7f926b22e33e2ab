//! Transactions on an instance of ScaleFS for one caller at a time (crate `transact`).

use std::sync::{Mutex, PoisonError};

use ::scalefs::names::{self, RenameMode};
use ::scalefs::{
    Direct, Errno, Fields, Follow, ObjectOperations, OpenFlags, OpenNode, Outside, Start, attributes, directories,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use transact::{Call, Fault, Sharing};

use crate::scalefs::{ScaleFs, Status, status};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Transaction>()
}

const HERE: Start<transact::Node<'static>> = Start::WorkingDirectory;

/// One transaction, from its beginning to its end. Paths are bytes.
#[pyclass(frozen)]
pub struct Transaction {
    files: Py<ScaleFs>,
    /// Nothing once it has ended.
    open: Mutex<Option<transact::Transaction<OpenNode>>>,
}

const ENDED: &str = "the transaction has ended: begin another one";

impl Transaction {
    fn call<T>(
        &self,
        py: Python<'_>,
        paths: &[&[u8]],
        body: impl FnOnce(&Call<'_, Direct<'_, Outside>>) -> Result<T, Errno>,
    ) -> PyResult<T> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = open.as_ref().ok_or_else(|| PyValueError::new_err(ENDED))?;
        self.files.get().act(py, paths, |lease| body(&Call::new(lease.objects(), transaction)))
    }
}

#[pymethods]
impl Transaction {
    /// Begins a transaction.
    #[new]
    fn new(py: Python<'_>, files: Py<ScaleFs>) -> PyResult<Self> {
        // One caller at a time makes each call, and each commit: nobody comes in between.
        let begun = files.get().act(py, &[], |lease| {
            transact::Transaction::begin(&lease.objects(), Sharing::Alone).map_err(Errno::from)
        })?;
        Ok(Transaction { files, open: Mutex::new(Some(begun)) })
    }

    /// Ends the transaction, so that all of it happens, or nothing. False if what it has seen is not so any more: then
    /// nothing has happened. ValueError if it has ended.
    fn end(&self, py: Python<'_>, commit: bool) -> PyResult<bool> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let transaction = open.ok_or_else(|| PyValueError::new_err(ENDED))?;
        self.files.get().act(py, &[], |lease| {
            let base = lease.objects();
            match if commit { transaction.commit(&base) } else { transaction.abort(&base) } {
                Ok(()) => Ok(true),
                Err(Fault::Stale) => Ok(false),
                Err(fault) => Err(fault.into()),
            }
        })
    }

    /// The names in a directory.
    fn list<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut listed = Vec::new();
        self.call(py, &[path], |objects| {
            let opened = names::open(objects, HERE, path, OpenFlags::READ | OpenFlags::DIRECTORY, 0)?.handle;
            objects
                .list(objects.held(&opened), 0, &mut |item| {
                    listed.push(PyBytes::new(py, item.name));
                    true
                })
                .map_err(Errno::from)?;
            names::close(objects, opened);
            Ok(())
        })?;
        Ok(listed)
    }

    /// Makes an empty file, which must not exist.
    fn create(&self, py: Python<'_>, path: &[u8]) -> PyResult<()> {
        let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE;
        self.call(py, &[path], |objects| {
            let opened = names::open(objects, HERE, path, flags, 0o666)?;
            names::close(objects, opened.handle);
            Ok(())
        })
    }

    /// Makes a directory.
    fn make_directory(&self, py: Python<'_>, path: &[u8], mode: u32) -> PyResult<()> {
        self.call(py, &[path], |objects| directories::make_directory(objects, HERE, path, mode))
    }

    /// Removes a name, or an empty directory.
    fn remove(&self, py: Python<'_>, path: &[u8]) -> PyResult<()> {
        self.call(py, &[path], |objects| match names::unlink(objects, HERE, path) {
            Err(Errno::EISDIR) => directories::remove_directory(objects, HERE, path),
            outcome => outcome,
        })
    }

    /// Gives something another name; what had it before is replaced.
    fn rename(&self, py: Python<'_>, old: &[u8], new: &[u8]) -> PyResult<()> {
        self.call(py, &[old, new], |objects| names::rename(objects, (HERE, old), (HERE, new), RenameMode::Replace))
    }

    /// Gives a file a further name.
    fn link(&self, py: Python<'_>, old: &[u8], new: &[u8]) -> PyResult<()> {
        self.call(py, &[old, new], |objects| names::link(objects, (HERE, old), (HERE, new), Follow::Nothing))
    }

    /// What is known of something, symbolic links not followed.
    fn status(&self, py: Python<'_>, path: &[u8]) -> PyResult<Status> {
        let look = |objects: &Call<'_, Direct<'_, Outside>>| {
            attributes::stat(objects, HERE, path, Follow::Nothing, Fields::ALL)
        };
        self.call(py, &[path], look).map(status)
    }
}
