//! Transactions in the manner of `std::fs`: `files.transaction(|t| ...)` on a [`FileSystem`].
//!
//! ```
//! use transact::Transactions;
//!
//! let files = scalefs::FileSystem::create(Default::default())?;
//! files.root()?.create_dir("etc")?;
//! files.transaction(|t| {
//!     for name in ["passwd", "shadow", "group"] {
//!         t.create(format!("etc/{name}"))?;
//!     }
//!     t.on_commit(|| println!("all three are there"));
//!     Ok(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::vec::Vec;

use core::{fmt, mem};

use posix_calls::attributes::{self, Access};
use posix_calls::directories;
use posix_calls::names::{self, RenameMode};
use posix_calls::{Attributes, Errno, Fields, Follow, ObjectOperations, OpenFlags, Start};
use scalefs::{Direct, FileSystem, OpenNode, Outside};

use crate::call::Call;
use crate::hooks::Hooks;
use crate::transaction::{Fault, Sharing, Transaction};

/// So often a closure runs at most.
const ATTEMPTS: u32 = 100;

/// Groups of calls that happen at once or not at all.
pub trait Transactions {
    /// Runs a closure whose calls by [`Scope`] happen at one moment; if it returns an error, or panics, nothing happens. It
    /// runs again if what it has seen is not so any more: so it does nothing else that could not be done twice. Other
    /// calls of the file system in the closure are none of the transaction's, nor is a transaction that it begins.
    ///
    /// # Errors
    /// What the closure returns; ECANCELED if others came in between a hundred times; ENOSPC without memory for the changes.
    fn transaction<'f, T>(&'f self, body: impl FnMut(&Scope<'f>) -> io::Result<T>) -> io::Result<T>;
}

/// The calls of a transaction that is running. Paths begin at the root.
pub struct Scope<'f> {
    files: &'f FileSystem,
    /// There until the end.
    transaction: Option<Transaction<OpenNode>>,
    hooks: Hooks<'f>,
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = self.transaction.as_ref().map(Transaction::answers);
        formatter.debug_struct("Scope").field("answers", &answers).field("hooks", &self.hooks).finish_non_exhaustive()
    }
}

/// How a transaction has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Stale,
}

impl Transactions for FileSystem {
    fn transaction<'f, T>(&'f self, mut body: impl FnMut(&Scope<'f>) -> io::Result<T>) -> io::Result<T> {
        let mut first = None;
        for _ in 0..ATTEMPTS {
            let begun = self.act(|base| Transaction::begin(&base, Sharing::Shared).map_err(Errno::from))?;
            // Who has tried before is older than who begins now.
            let age = *first.get_or_insert(begun.precedence());
            let begun = begun.with_precedence(age);
            let mut scope = Scope { files: self, transaction: Some(begun), hooks: Hooks::default() };
            let outcome = body(&scope);
            let ended = scope.end(outcome.is_ok());
            mem::take(&mut scope.hooks).run(outcome.is_ok() && matches!(ended, Ok(End::Done)));
            if ended? == End::Done {
                return outcome;
            }
        }
        Err(Errno::ECANCELED.into())
    }
}

const AT: Start<crate::call::Node<'static>> = Start::WorkingDirectory;

impl<'f> Scope<'f> {
    fn call<T>(&self, mut body: impl FnMut(&Call<'_, Direct<'_, Outside>>) -> Result<T, Errno>) -> io::Result<T> {
        let transaction = self.transaction.as_ref().expect("it is there until the end");
        self.files.act(|base| body(&Call::new(base, transaction)))
    }

    fn end(&mut self, commits: bool) -> io::Result<End> {
        self.files.act(|base| {
            let ended = match self.transaction.take() {
                Some(transaction) if commits => transaction.commit(&base),
                Some(transaction) => transaction.abort(&base),
                // Space is only looked for again where the first try has taken it.
                None => Err(Fault::NoSpace),
            };
            match ended {
                Ok(()) => Ok(End::Done),
                Err(Fault::Stale) => Ok(End::Stale),
                Err(fault) => Err(fault.into()),
            }
        })
    }

    /// Makes an empty file, which must not exist.
    ///
    /// # Errors
    /// EEXIST, ENOENT, and others of POSIX `open`; ECANCELED if the transaction is to run again.
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE;
        self.call(|call| {
            let opened = names::open(call, AT, bytes(&path), flags, 0o666)?;
            names::close(call, opened.handle);
            Ok(())
        })
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// Those of POSIX `mkdir`; ECANCELED as in [`Scope::create`].
    pub fn create_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| directories::make_directory(call, AT, bytes(&path), 0o777))
    }

    /// Whether a name exists, whatever it leads to.
    ///
    /// # Errors
    /// Those of POSIX `faccessat` but ENOENT; ECANCELED as in [`Scope::create`].
    pub fn exists(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        self.call(|call| match attributes::access(call, AT, bytes(&path), Follow::Nothing, Access::EXISTS) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(other) => Err(other),
        })
    }

    /// What is known of a file, as far as it is asked for; of a symbolic link itself.
    ///
    /// # Errors
    /// Those of POSIX `fstatat`; EOPNOTSUPP for fields that are not offered; ECANCELED as in [`Scope::create`].
    pub fn metadata(&self, path: impl AsRef<Path>, fields: Fields) -> io::Result<Attributes> {
        self.call(|call| attributes::stat(call, AT, bytes(&path), Follow::Nothing, fields))
    }

    /// Removes the name of something that is no directory.
    ///
    /// # Errors
    /// Those of POSIX `unlink`; ECANCELED as in [`Scope::create`].
    pub fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| names::unlink(call, AT, bytes(&path)))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// Those of POSIX `rmdir`; ECANCELED as in [`Scope::create`].
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| directories::remove_directory(call, AT, bytes(&path)))
    }

    /// Gives something another name; what had it is replaced.
    ///
    /// # Errors
    /// Those of POSIX `rename`; ECANCELED as in [`Scope::create`].
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| names::rename(call, (AT, bytes(&from)), (AT, bytes(&to)), RenameMode::Replace))
    }

    /// Gives a file a further name.
    ///
    /// # Errors
    /// Those of POSIX `link`; ECANCELED as in [`Scope::create`].
    pub fn hard_link(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| names::link(call, (AT, bytes(&original)), (AT, bytes(&link)), Follow::Nothing))
    }

    /// Makes a symbolic link to a path.
    ///
    /// # Errors
    /// Those of POSIX `symlink`; ECANCELED as in [`Scope::create`].
    pub fn symlink(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| names::symlink(call, bytes(&original), AT, bytes(&link)))
    }

    /// The path that a symbolic link holds.
    ///
    /// # Errors
    /// Those of POSIX `readlink`; ECANCELED as in [`Scope::create`].
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        self.call(|call| Ok(OsStr::from_bytes(&names::read_link(call, AT, bytes(&path))?).into()))
    }

    /// The names in a directory, without `.` and `..`.
    ///
    /// # Errors
    /// Those of POSIX `open` and `readdir`; EOPNOTSUPP where listings are not offered; ECANCELED as in [`Scope::create`].
    pub fn names(&self, path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
        self.call(|call| {
            let mut listed = Vec::new();
            let opened = names::open(call, AT, bytes(&path), OpenFlags::READ | OpenFlags::DIRECTORY, 0)?.handle;
            // Not by `readdir`, which asks for `..`, too.
            let outcome = call.list(call.held(&opened), 0, &mut |item| {
                listed.push(OsStr::from_bytes(item.name).into());
                true
            });
            names::close(call, opened);
            outcome.map_err(Errno::from)?;
            Ok(listed)
        })
    }

    /// Runs a part of the transaction. If it returns an error, nothing of the part has happened, and the transaction goes on.
    ///
    /// # Errors
    /// What the part returns.
    pub fn part<T>(&self, body: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let transaction = self.transaction.as_ref().expect("it is there until the end");
        let savepoint = transaction.savepoint();
        body().inspect_err(|_| transaction.go_back(savepoint))
    }

    /// Runs a closure once the transaction has happened; see [`Running::on_commit`](crate::Running::on_commit).
    pub fn on_commit(&self, hook: impl FnOnce() + 'f) {
        self.hooks.on_commit(hook);
    }

    /// Runs a closure if the transaction does not happen; see [`Running::on_abort`](crate::Running::on_abort).
    pub fn on_abort(&self, hook: impl FnOnce() + 'f) {
        self.hooks.on_abort(hook);
    }
}

impl Drop for Scope<'_> {
    /// After a panic of the closure: nothing happens, and nothing stays kept.
    fn drop(&mut self) {
        if self.transaction.is_some() {
            let _ = self.end(false);
            mem::take(&mut self.hooks).run(false);
        }
    }
}

fn bytes(path: &impl AsRef<Path>) -> &[u8] {
    path.as_ref().as_os_str().as_bytes()
}
