//! An instance of ScaleFS (crate `scalefs`) in this process, for one caller at a time: it stands on the front door.

use ::scalefs::data::{self, DescriptorOptions};
use ::scalefs::names::{self, RenameMode};
use ::scalefs::{
    Attributes, DataOperations, Errno, Fields, FileSystem, Follow, InProcess, Lease, ObjectOperations, OpenFlags,
    Outside, OwnedConfig, Start, StatusFlags, attributes, directories,
};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ScaleFs>()
}

const AT: Start<::scalefs::Node<'static>> = Start::WorkingDirectory;
/// What a read asks for at once.
const READ_BYTES: usize = 1 << 20;
const FIRST_READ_BYTES: usize = 4096;

/// Number, kind, permission bits, user, group, number of names, size in bytes, times of access, modification and change.
pub(crate) type Status = (u64, u8, u32, u32, u32, u32, u64, i64, i64, i64);

pub(crate) fn status(attributes: Attributes) -> Status {
    let Attributes { number, kind, mode, user, group, link_count, size_bytes, accessed_ns, modified_ns, changed_ns } =
        attributes;
    (number.0, kind as u8, mode, user, group, link_count, size_bytes, accessed_ns, modified_ns, changed_ns)
}

/// A file system in memory, and one process of user 0 in it. Paths are bytes.
#[pyclass(frozen)]
pub struct ScaleFs(FileSystem);

impl ScaleFs {
    fn call<T>(
        &self,
        py: Python<'_>,
        paths: &[&[u8]],
        body: impl FnOnce(&InProcess<'_, Outside>) -> Result<T, Errno>,
    ) -> PyResult<T> {
        self.act(py, paths, |lease| body(&lease.calls()))
    }

    /// Makes a call, and then does what it has deferred.
    pub(crate) fn act<T>(
        &self,
        py: Python<'_>,
        paths: &[&[u8]],
        body: impl FnOnce(&Lease<'_>) -> Result<T, Errno>,
    ) -> PyResult<T> {
        if paths.iter().any(|path| path.contains(&0)) {
            return Err(PyValueError::new_err("embedded null byte"));
        }
        let result = {
            let mut lease = self.0.begin().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            let result = body(&lease);
            lease.maintain();
            result
        };
        // Without a core: making the exception may run any Python code, which may call this file system.
        result.map_err(|errno| error_of(py, errno, paths))
    }
}

/// The OSError of an error number, with the paths as Python's own calls name them.
fn error_of(py: Python<'_>, errno: Errno, paths: &[&[u8]]) -> PyErr {
    let number = errno.number();
    let make = || -> PyResult<PyErr> {
        let os = py.import("os")?;
        let text: String = os.call_method1("strerror", (number,))?.extract()?;
        let name = |path: &[u8]| os.call_method1("fsdecode", (PyBytes::new(py, path),)).map(Bound::unbind);
        Ok(match paths {
            [old, new] => PyOSError::new_err((number, text, name(old)?, py.None(), name(new)?)),
            [path, ..] => PyOSError::new_err((number, text, name(path)?)),
            [] => PyOSError::new_err((number, text)),
        })
    };
    make().unwrap_or_else(|error| error)
}

/// Opens a file, lets `body` use the descriptor, and closes it.
fn with_file<D: DataOperations, T>(
    verbs: &D,
    path: &[u8],
    (flags, status): (OpenFlags, StatusFlags),
    body: impl FnOnce(u32) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let options = DescriptorOptions { status, ..DescriptorOptions::PLAIN };
    let fd = data::open(verbs, Start::WorkingDirectory, path, flags, 0o666, options)?;
    let result = body(fd);
    data::close(verbs, fd)?;
    result
}

#[pymethods]
impl ScaleFs {
    /// An empty file system. ValueError says in one line what is wrong with the sizes.
    #[new]
    fn new(metadata_bytes: usize, page_count: u32) -> PyResult<Self> {
        let config = OwnedConfig { metadata_bytes, page_count, core_count: 1, hash_seed: 1 };
        FileSystem::create(config).map(ScaleFs).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The names in a directory, without `.` and `..`, in the order of a listing.
    fn list<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut listed = Vec::new();
        self.call(py, &[path], |verbs| {
            let objects = verbs.objects();
            let opened = names::open(objects, AT, path, OpenFlags::READ | OpenFlags::DIRECTORY, 0)?.handle;
            let outcome = directories::read_directory(objects, objects.held(&opened), 0, |entry| {
                if entry.name != b"." && entry.name != b".." {
                    listed.push(PyBytes::new(py, entry.name));
                }
                true
            });
            names::close(objects, opened);
            outcome.map(drop)
        })?;
        Ok(listed)
    }

    /// All that a file holds.
    fn read<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.call(py, &[path], |verbs| {
            with_file(verbs, path, (OpenFlags::READ, StatusFlags::NONE), |fd| {
                let (mut bytes, mut end) = (Vec::new(), 0);
                loop {
                    // What is made room for is cleared first: as much again as was read, so that a small file costs little.
                    let room = end.clamp(FIRST_READ_BYTES, READ_BYTES);
                    bytes.try_reserve(room).map_err(|_| Errno::ENOMEM)?;
                    bytes.resize(end + room, 0);
                    let count = data::read(verbs, fd, &mut bytes[end..])?;
                    end += count;
                    bytes.truncate(end);
                    if count == 0 {
                        return Ok(bytes);
                    }
                }
            })
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Makes a file hold these bytes, or adds them to it; what fits stays if space runs out.
    fn write(&self, py: Python<'_>, path: &[u8], bytes: &[u8], append: bool) -> PyResult<()> {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE;
        let how = match append {
            true => (flags, StatusFlags::APPEND),
            false => (flags | OpenFlags::TRUNCATE, StatusFlags::NONE),
        };
        self.call(py, &[path], |verbs| {
            with_file(verbs, path, how, |fd| {
                let mut rest = bytes;
                while !rest.is_empty() {
                    rest = &rest[data::write(verbs, fd, rest)?..];
                }
                Ok(())
            })
        })
    }

    /// Makes a directory.
    fn make_directory(&self, py: Python<'_>, path: &[u8], mode: u32) -> PyResult<()> {
        self.call(py, &[path], |verbs| directories::make_directory(verbs.objects(), AT, path, mode))
    }

    /// Removes a name, or an empty directory.
    fn remove(&self, py: Python<'_>, path: &[u8]) -> PyResult<()> {
        self.call(py, &[path], |verbs| match names::unlink(verbs.objects(), AT, path) {
            Err(Errno::EISDIR) => directories::remove_directory(verbs.objects(), AT, path),
            outcome => outcome,
        })
    }

    /// Gives something another name; what had it before is replaced.
    fn rename(&self, py: Python<'_>, old: &[u8], new: &[u8]) -> PyResult<()> {
        self.call(py, &[old, new], |verbs| names::rename(verbs.objects(), (AT, old), (AT, new), RenameMode::Replace))
    }

    /// What is known of something, symbolic links not followed.
    fn status(&self, py: Python<'_>, path: &[u8]) -> PyResult<Status> {
        let look =
            |verbs: &InProcess<'_, Outside>| attributes::stat(verbs.objects(), AT, path, Follow::Nothing, Fields::ALL);
        self.call(py, &[path], look).map(status)
    }

    /// Pages for data that are free.
    fn free_pages(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, &[], |verbs| Ok(attributes::space(verbs.objects())?.free_blocks))
    }
}
