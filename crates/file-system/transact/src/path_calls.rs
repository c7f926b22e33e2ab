//! The calls of a transaction by paths, in the manner of `std::fs`, whoever makes them: the closure that runs in it, threads
//! that it has started, members that have joined it. One at a time makes one.

use core::borrow::Borrow;
use core::cell::Cell;
use core::convert::Infallible;
use core::fmt;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec;
use std::vec::Vec;

use posix_calls::attributes::{self, Access, NewTime};
use posix_calls::data::truncate_path;
use posix_calls::directories;
use posix_calls::names::{self, RenameMode};
use posix_calls::path_data::{read_path, write_path};
use posix_calls::{Attributes, Claimed, Errno, Fields, Follow, Kind, ObjectOperations, OpenFlags, Start, WriteAt};
use scalefs::{FileSystem, InProcess, OpenNode, Outside};
use sync::mutant::planted;

use crate::attempts::{Attempts, Claims};
use crate::base::WithData;
use crate::call::{Call, Node};
use crate::changes::Changes;
use crate::hooks::Hooks;
use crate::loss::Loss;
use crate::transaction::{Fault, Sharing, Spare, Transaction};
use crate::undo::Savepoint;

/// A call of a transaction of the front door.
type InTransaction<'t, 'c> = Call<'t, WithData<InProcess<'c, Outside>>>;

/// So many bytes of a file are read at a time.
const READ_BYTES: usize = 16 << 10;
std::thread_local! {
    /// The memory of the last transaction that has ended in this thread.
    static SPARE: Cell<Spare<OpenNode>> = Cell::default();
}
const AT: Start<Node<'static>> = Start::WorkingDirectory;

/// The calls of a transaction that is running, for several threads, too: one at a time makes one. Paths begin at the root.
/// Each call fails with ECANCELED once the transaction cannot happen any more.
pub struct PathCalls<F> {
    files: F,
    /// There until the end.
    transaction: Mutex<Option<Transaction<OpenNode>>>,
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    /// By this, as far as it is known.
    Stale(Loss),
}

impl<F> fmt::Debug for PathCalls<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = self.lock().as_ref().map(Transaction::answers);
        formatter.debug_struct("PathCalls").field("answers", &answers).finish_non_exhaustive()
    }
}

impl<F> PathCalls<F> {
    /// A call that panics leaves a transaction that is ended as after any other panic.
    fn lock(&self) -> MutexGuard<'_, Option<Transaction<OpenNode>>> {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    pub(crate) fn savepoint(&self) -> Savepoint {
        self.lock().as_ref().expect("it is there until the end").savepoint()
    }

    pub(crate) fn go_back(&self, savepoint: Savepoint) {
        let open = self.lock();
        let transaction = open.as_ref().expect("it is there until the end");
        transaction.go_back(savepoint).expect("parts stand within each other");
    }
}

impl<F: Borrow<FileSystem>> PathCalls<F> {
    /// Begins the next attempt of a transaction.
    pub(crate) fn begin(files: F, attempts: &mut Attempts<impl FnMut(Claimed)>) -> io::Result<PathCalls<F>> {
        let begun = begin_with(files.borrow(), attempts)?;
        Ok(PathCalls { files, transaction: Mutex::new(Some(begun)) })
    }

    fn call<T>(&self, mut body: impl FnMut(&InTransaction<'_, '_>) -> Result<T, Errno>) -> io::Result<T> {
        let open = self.lock();
        let transaction = open.as_ref().ok_or(Errno::ECANCELED)?;
        self.files.borrow().act(|base| body(&Call::new(WithData(base), transaction)))
    }

    /// Ends the transaction; what it has done is shown to `keep`. It stays open where a participant panics.
    pub(crate) fn end(&self, commits: bool, hooks: &Hooks<'_>, keep: &mut dyn FnMut(&Changes<'_>)) -> io::Result<End> {
        end_open(self.files.borrow(), &mut self.lock(), commits, hooks, keep)
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
    /// Those of POSIX `mkdir`; ECANCELED as in [`PathCalls::create`].
    pub fn create_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| directories::make_directory(call, AT, bytes(&path), 0o777))
    }

    /// Whether a name exists, whatever it leads to.
    ///
    /// # Errors
    /// Those of POSIX `faccessat` but ENOENT; ECANCELED as in [`PathCalls::create`].
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
    /// Those of POSIX `fstatat`; EOPNOTSUPP for fields that are not offered; ECANCELED as in [`PathCalls::create`].
    pub fn metadata(&self, path: impl AsRef<Path>, fields: Fields) -> io::Result<Attributes> {
        self.call(|call| attributes::stat(call, AT, bytes(&path), Follow::Nothing, fields))
    }

    /// Removes the name of something that is no directory.
    ///
    /// # Errors
    /// Those of POSIX `unlink`; ECANCELED as in [`PathCalls::create`].
    pub fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| names::unlink(call, AT, bytes(&path)))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// Those of POSIX `rmdir`; ECANCELED as in [`PathCalls::create`].
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| directories::remove_directory(call, AT, bytes(&path)))
    }

    /// Gives something another name; what had it is replaced.
    ///
    /// # Errors
    /// Those of POSIX `rename`; ECANCELED as in [`PathCalls::create`].
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| names::rename(call, (AT, bytes(&from)), (AT, bytes(&to)), RenameMode::Replace))
    }

    /// Gives a file a further name.
    ///
    /// # Errors
    /// Those of POSIX `link`; ECANCELED as in [`PathCalls::create`].
    pub fn hard_link(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| names::link(call, (AT, bytes(&original)), (AT, bytes(&link)), Follow::Nothing))
    }

    /// Makes a symbolic link to a path.
    ///
    /// # Errors
    /// Those of POSIX `symlink`; ECANCELED as in [`PathCalls::create`].
    pub fn symlink(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        self.call(|call| names::symlink(call, bytes(&original), AT, bytes(&link)))
    }

    /// The path that a symbolic link holds.
    ///
    /// # Errors
    /// Those of POSIX `readlink`; ECANCELED as in [`PathCalls::create`].
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        self.call(|call| Ok(OsStr::from_bytes(&names::read_link(call, AT, bytes(&path))?).into()))
    }

    /// The names in a directory, without `.` and `..`.
    ///
    /// # Errors
    /// Those of POSIX `open` and `readdir`; EOPNOTSUPP where listings are not offered; ECANCELED as in [`PathCalls::create`].
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

    /// All bytes of a file.
    ///
    /// # Errors
    /// Those of POSIX `open`, EISDIR; ECANCELED as in [`PathCalls::create`].
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        self.call(|call| {
            let mut whole = Vec::new();
            let mut part = vec![0; READ_BYTES];
            loop {
                let read = read_path(call, AT, bytes(&path), whole.len() as u64, &mut part)?;
                whole.extend_from_slice(&part[..read]);
                if read < part.len() {
                    return Ok(whole);
                }
            }
        })
    }

    /// Lets a file have these bytes and no others; it is made if it does not exist.
    ///
    /// # Errors
    /// Those of POSIX `open`, EISDIR, ENOSPC; EOPNOTSUPP where files that were there before cannot be written; ECANCELED as in
    /// [`PathCalls::create`].
    pub fn write(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE;
        self.put(path.as_ref(), flags, contents.as_ref(), WriteAt::Offset)
    }

    /// Lets a file that exists have these bytes behind all others.
    ///
    /// # Errors
    /// As [`PathCalls::write`]; ENOENT.
    pub fn append(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
        self.put(path.as_ref(), OpenFlags::NONE, contents.as_ref(), |_| WriteAt::End)
    }

    /// Lets a file that exists have these bytes from an offset on.
    ///
    /// # Errors
    /// As [`PathCalls::write`]; ENOENT.
    pub fn write_at(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>, offset: u64) -> io::Result<()> {
        self.put(path.as_ref(), OpenFlags::NONE, contents.as_ref(), |done| WriteAt::Offset(offset + done))
    }

    /// Sets permission bits of what a path leads to.
    ///
    /// # Errors
    /// Those of POSIX `chmod`; ECANCELED as in [`PathCalls::create`].
    pub fn set_mode(&self, path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
        self.call(|call| attributes::change_mode(call, AT, bytes(&path), mode))
    }

    /// Sets owner and group of what a path leads to, each if given.
    ///
    /// # Errors
    /// Those of POSIX `chown`; ECANCELED as in [`PathCalls::create`].
    pub fn set_owner(&self, path: impl AsRef<Path>, owner: (Option<u32>, Option<u32>)) -> io::Result<()> {
        self.call(|call| attributes::change_owner(call, AT, bytes(&path), Follow::Symlinks, owner))
    }

    /// Sets the times of access and modification of what a path leads to.
    ///
    /// # Errors
    /// Those of POSIX `utimensat`; ECANCELED as in [`PathCalls::create`].
    pub fn set_times(&self, path: impl AsRef<Path>, times: (NewTime, NewTime)) -> io::Result<()> {
        self.call(|call| attributes::set_times(call, AT, bytes(&path), Follow::Symlinks, times))
    }

    /// Makes a file longer by a hole, or shorter.
    ///
    /// # Errors
    /// Those of POSIX `truncate`; ECANCELED as in [`PathCalls::create`].
    pub fn set_len(&self, path: impl AsRef<Path>, size_bytes: u64) -> io::Result<()> {
        let size = i64::try_from(size_bytes).map_err(|_| Errno::EINVAL)?;
        self.call(|call| truncate_path(call, AT, bytes(&path), size))
    }

    /// Makes a name for something outside: a pipe, a socket or a device, with its number.
    ///
    /// # Errors
    /// Those of POSIX `mknod`; ECANCELED as in [`PathCalls::create`].
    pub fn make_node(&self, path: impl AsRef<Path>, kind: Kind, device: u64) -> io::Result<()> {
        self.call(|call| names::make_node(call, AT, bytes(&path), (kind, device), 0o666))
    }

    /// Writes all bytes; what it is told how many are written says where the next ones go. What a call has written stays so where
    /// space is looked for and the next part tried again.
    fn put(&self, path: &Path, mut flags: OpenFlags, contents: &[u8], at: impl Fn(u64) -> WriteAt) -> io::Result<()> {
        let mut done = 0;
        self.call(|call| {
            if planted("transact: what finds space later is written from its start") {
                done = 0;
            }
            loop {
                done += write_path(call, AT, bytes(&path), (flags, 0o666), at(done as u64), &contents[done..])?;
                flags = OpenFlags::NONE;
                if done == contents.len() {
                    return Ok(());
                }
            }
        })
    }
}

/// Ends a transaction of a file system, for who begins it by [`Transaction::begin`] and makes its calls by [`Call`]: all of it
/// happens, or, if it is not to, nothing. False if what it has seen is not so any more: then nothing has happened. There is none
/// any more, whatever comes of it.
///
/// # Errors
/// ECANCELED if there is none, ENOSPC without memory for the changes; in a child of the process that made the file system.
pub fn end(files: &FileSystem, open: &mut Option<Transaction<OpenNode>>, commits: bool) -> io::Result<bool> {
    Ok(matches!(end_open(files, open, commits, &Hooks::default(), &mut |_| ())?, End::Done))
}

fn end_open(
    files: &FileSystem,
    open: &mut Option<Transaction<OpenNode>>,
    commits: bool,
    hooks: &Hooks<'_>,
    keep: &mut dyn FnMut(&Changes<'_>),
) -> io::Result<End> {
    let ended = files.act(|base| {
        let base = WithData(base);
        let running = open.as_mut().filter(|_| commits);
        let committed = running.map(|transaction| {
            let committed = transaction.try_commit(&base, hooks);
            committed.inspect(|()| transaction.changes(&mut *keep))
        });
        if committed == Some(Err(Fault::NoSpace)) && !planted("transact: a commit looks for space once") {
            // Some becomes free before the next try.
            return Err(Errno::ENOSPC);
        }
        leave(open, &base, committed)
    });
    if ended.is_err() && open.is_some() {
        // There was none; or the transaction is another process's.
        let _ = files.act(|base| leave(open, &WithData(base), None));
    }
    ended
}

/// Takes the transaction out after a commit, or to abort it.
fn leave(
    open: &mut Option<Transaction<OpenNode>>,
    base: &WithData<InProcess<'_, Outside>>,
    committed: Option<Result<(), Fault<Infallible>>>,
) -> Result<End, Errno> {
    let Some(transaction) = open.take() else { return Err(Errno::ECANCELED) };
    let (end, lost_by, spare) = match committed {
        None => transaction.abort_with(base),
        Some(outcome) => {
            let (lost_by, spare) = transaction.end(base, outcome.is_ok());
            (outcome, lost_by, spare)
        }
    };
    // A thread that ends has no place for it.
    let _ = SPARE.try_with(|place| place.set(spare));
    match end {
        Ok(()) => Ok(End::Done),
        Err(Fault::Stale) => Ok(End::Stale(lost_by)),
        Err(fault) => Err(fault.into()),
    }
}

/// Begins a transaction of a file system, for [`end`].
///
/// # Errors
/// In a child of the process that made the file system.
pub fn begin(files: &FileSystem) -> io::Result<Transaction<OpenNode>> {
    begin_with(files, &mut Attempts::new(Claims::default(), |_| ()))
}

fn begin_with(files: &FileSystem, attempts: &mut Attempts<impl FnMut(Claimed)>) -> io::Result<Transaction<OpenNode>> {
    let spare = Cell::new(SPARE.try_with(Cell::take).unwrap_or_default());
    files.act(|base| {
        let base = WithData(base);
        let mut begun = Transaction::begin_in(spare.take(), &base, Sharing::Shared).map_err(Errno::from)?;
        attempts.begin(&base, &mut begun, |first| first);
        Ok(begun)
    })
}

fn bytes(path: &impl AsRef<Path>) -> &[u8] {
    path.as_ref().as_os_str().as_bytes()
}
