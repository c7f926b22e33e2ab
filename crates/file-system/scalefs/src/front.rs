//! Files and directories for programs, in the manner of `std::fs` and `cap-std`.
//!
//! Whoever has a [`Dir`] can reach what is below it and, by `..`, above. Handles close themselves. Each call acts as a core
//! of the instance for its duration: see `lease.rs`.

use core::ptr::NonNull;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec::Vec;

use percpu::OwnerId;
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::names::RenameMode;
use posix_calls::{
    Attributes, Credentials, DataOperations, Errno, Fields, Follow, ForeignLock, Kind, LockMode, LockRefusal,
    LockRequest, LockWait, OpenFlags, Start, StatusFlags, attributes, directories, locks, names,
};

use crate::direct::Direct;
use crate::direct_data::InProcess;
use crate::lease::{Seated, Seats};
use crate::lives::Process;
use crate::outside::Outside;
use crate::owned::{GivenMemory, OwnedConfig, OwnedScaleFs};

/// An instance with the process that its handles belong to.
struct Shared {
    seats: Seats,
    process: ManuallyDrop<Process>,
}

impl Shared {
    /// Makes a call of the process; again if it finds no space, and some may become free.
    fn call<T>(&self, mut call: impl FnMut(&InProcess<'_, Outside>) -> Result<T, Errno>) -> io::Result<T> {
        let mut lease = Lease { seated: self.seats.begin()?, process: &self.process };
        let mut result = call(&lease.calls());
        while matches!(result, Err(Errno::ENOSPC)) && lease.make_room() {
            result = call(&lease.calls());
        }
        drop(lease);
        result.map_err(io::Error::from)
    }
}

impl Shared {
    /// Waits until a lock may be free. The caller is in no call.
    fn wait_for_lock(&self, busy: LockWait, round: u32) {
        self.seats.file_system().wait_for_lock(busy, &Outside, round);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A child of `fork` cannot end what its parent has.
        let Ok(seated) = self.seats.begin() else { return };
        // SAFETY: nobody uses the value afterwards, and this is the only time.
        #[allow(unsafe_code)]
        let process = unsafe { ManuallyDrop::take(&mut self.process) };
        process.exit(seated.file_system(), seated.core(), &Outside);
    }
}

/// The right of a thread to call on behalf of the process of a [`FileSystem`], until this is dropped: meanwhile it acts as a
/// core of the instance. So it is for a call or a few: other threads wait if all cores are taken. A thread that has one gets
/// the same core again.
#[must_use = "its owner may call; dropped, it is over"]
pub struct Lease<'f> {
    seated: Seated<'f>,
    process: &'f Process,
}

impl Lease<'_> {
    /// The calls of the process, until this is dropped. What is found in it is not kept for the next one.
    #[inline]
    pub fn calls(&self) -> InProcess<'_, Outside> {
        self.seated.file_system().enter(self.seated.core(), self.process, &Outside)
    }

    /// As [`Lease::calls`], those that know no descriptors.
    #[inline]
    pub fn objects(&self) -> Direct<'_, Outside> {
        self.seated.file_system().begin(self.seated.core(), self.process.context(), &Outside)
    }

    /// Another process of the instance, with credentials of its own and no parent, for who calls on behalf of many: its calls are
    /// [`Lease::calls_of`]. [`Lease::end_process`] ends it.
    ///
    /// # Errors
    /// ENOMEM; EAGAIN if the core has made too many.
    pub fn begin_process(&self, credentials: Credentials) -> Result<Process, Errno> {
        Process::new(self.seated.file_system(), self.seated.core(), credentials)
    }

    /// The calls of another process of the instance, until this is dropped.
    ///
    /// # Panics
    /// If the process is of another instance.
    #[inline]
    pub fn calls_of<'l>(&'l self, process: &'l Process) -> InProcess<'l, Outside> {
        self.seated.file_system().enter(self.seated.core(), process, &Outside)
    }

    /// Ends a process that [`Lease::begin_process`] has begun.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn end_process(&self, process: Process) {
        process.exit(self.seated.file_system(), self.seated.core(), &Outside);
    }

    /// Does what is left to do between calls, as every 64th does by itself; nothing in the middle of another call.
    pub fn maintain(&mut self) {
        self.seated.maintain();
    }

    /// Whether a call that has found no space (ENOSPC) is worth another try: frees what was given up and waits for what others
    /// are about to give up. False if nothing is on its way, it was asked for often enough, or the thread is in the middle of
    /// another call.
    pub fn make_room(&mut self) -> bool {
        self.seated.make_room()
    }
}

impl fmt::Debug for Lease<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Lease").field(self.seated.core()).finish()
    }
}

/// A file system in memory of its own. Clones are the same one; its memory is freed with the last clone or handle.
#[derive(Clone)]
pub struct FileSystem(Arc<Shared>);

impl FileSystem {
    /// An empty file system, used as user 0, to whom its root belongs.
    ///
    /// # Errors
    /// The sizes cannot be laid out, or the system has not so much memory: [`crate::OwnedError`] is inside and says which.
    pub fn create(config: OwnedConfig) -> io::Result<FileSystem> {
        FileSystem::create_as(config, Credentials::SUPERUSER)
    }

    /// As [`FileSystem::create`], used by somebody else.
    ///
    /// # Errors
    /// As there.
    pub fn create_as(config: OwnedConfig, credentials: Credentials) -> io::Result<FileSystem> {
        FileSystem::of(OwnedScaleFs::create(config).map_err(io::Error::other)?, credentials)
    }

    /// As [`FileSystem::create`], in memory of the caller's: see [`OwnedScaleFs::create_in`].
    ///
    /// # Errors
    /// As [`FileSystem::create`].
    ///
    /// # Safety
    /// As for [`OwnedScaleFs::create_in`].
    #[allow(unsafe_code)]
    pub unsafe fn create_in(config: OwnedConfig, memory: GivenMemory) -> io::Result<FileSystem> {
        // SAFETY: the caller's promise.
        let owned = unsafe { OwnedScaleFs::create_in(config, memory) }.map_err(io::Error::other)?;
        FileSystem::of(owned, Credentials::SUPERUSER)
    }

    /// The file system that another process has made in memory that both have mapped, used as user 0 with a process of its own. This
    /// one claims cores as `owner`, whom no one else is.
    ///
    /// # Errors
    /// There is none, or a program has made it that lays it out in another way: [`percpu::AttachError`] is inside. EAGAIN and ENOMEM
    /// without room for the process.
    ///
    /// # Safety
    /// As for [`OwnedScaleFs::attach_in`].
    #[allow(unsafe_code)]
    pub unsafe fn attach_in(metadata: NonNull<u8>, owner: OwnerId) -> io::Result<FileSystem> {
        // SAFETY: the caller's promise.
        let owned = unsafe { OwnedScaleFs::attach_in(metadata) }.map_err(io::Error::other)?;
        FileSystem::of_owner(owned, Credentials::SUPERUSER, owner)
    }

    fn of(owned: OwnedScaleFs, credentials: Credentials) -> io::Result<FileSystem> {
        FileSystem::of_owner(owned, credentials, OwnerId::new(1).expect("1 is a valid owner"))
    }

    fn of_owner(owned: OwnedScaleFs, credentials: Credentials, owner: OwnerId) -> io::Result<FileSystem> {
        let seats = Seats::new(owned, owner);
        let process = {
            let seated = seats.begin()?;
            Process::new(seated.file_system(), seated.core(), credentials)?
        };
        Ok(FileSystem(Arc::new(Shared { seats, process: ManuallyDrop::new(process) })))
    }

    /// The root directory.
    ///
    /// # Errors
    /// EMFILE with 2^20 handles open, ENOMEM without memory.
    pub fn root(&self) -> io::Result<Dir> {
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        let fd =
            self.0.call(|call| data::open(call, Start::WorkingDirectory, b"/", flags, 0, DescriptorOptions::PLAIN))?;
        Ok(Dir(Handle { shared: self.0.clone(), fd }))
    }

    /// Begins a call, or a few, of the process by the operations on objects and data, for what stands on them, as transactions do.
    ///
    /// # Errors
    /// In a child of the process that made the file system; EDEADLK in the middle of a change of the thread's own that is not
    /// decided, as from a participant of a transaction that prepares.
    #[inline]
    pub fn begin(&self) -> io::Result<Lease<'_>> {
        Ok(Lease { seated: self.0.seats.begin()?, process: &self.0.process })
    }

    /// Makes a call of the process by the operations on objects and data. It is made again where it finds no space and some may
    /// become free: see [`FileSystem::begin`] for what must not be made twice.
    ///
    /// # Errors
    /// What the closure returns, and those of [`FileSystem::begin`].
    pub fn act<T>(&self, mut call: impl FnMut(InProcess<'_, Outside>) -> Result<T, Errno>) -> io::Result<T> {
        let mut lease = self.begin()?;
        let mut result = call(lease.calls());
        while matches!(result, Err(Errno::ENOSPC)) && lease.make_room() {
            result = call(lease.calls());
        }
        drop(lease);
        result.map_err(io::Error::from)
    }

    /// Keeps the decisions of the file system for another store, so that a transaction changes both: crate `olf` has lists for it.
    #[must_use]
    pub fn keeper(&self) -> std::boxed::Box<dyn commit::Keeper> {
        std::boxed::Box::new(KeptOpen(self.0.clone()))
    }

    /// Waits until a lock of a file may be free that was refused ([`LockRefusal::Busy`]). No call of the thread is to be under way.
    pub fn wait_for_lock(&self, busy: LockWait, round: u32) {
        self.0.wait_for_lock(busy, round);
    }

    /// Whether this is the process that made the file system, and no child of it, whose calls are refused.
    pub fn is_of_this_process(&self) -> bool {
        self.0.seats.is_of_this_process()
    }

    /// How many cores threads have called as. Exact answers (sizes, numbers of names, times) look at each, so few are good: as many
    /// as processors, and one more for each call that was begun while others had not ended for long.
    pub fn used_cores(&self) -> usize {
        self.0.seats.used_cores()
    }

    /// Free and used space.
    ///
    /// # Errors
    /// None today.
    pub fn space(&self) -> io::Result<posix_calls::Space> {
        self.0.call(|call| attributes::space(call.objects()))
    }
}

impl fmt::Debug for FileSystem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FileSystem").field(&self.0.seats).finish()
    }
}

/// An instance that another store decides with.
struct KeptOpen(Arc<Shared>);

// SAFETY: the decisions lie in memory that the instance keeps, which is there as long as this.
#[allow(unsafe_code)]
unsafe impl commit::Keeper for KeptOpen {
    fn decisions(&self) -> &commit::Decisions {
        self.0.seats.file_system().decisions()
    }

    fn wait(&self, round: u32) {
        sync::Wait::wait(&Outside, sync::WaitReason::Operation, round);
    }
}

/// An open descriptor, which is closed when this is dropped.
struct Handle {
    shared: Arc<Shared>,
    fd: u32,
}

impl Handle {
    fn call<T>(&self, call: impl FnMut(&InProcess<'_, Outside>) -> Result<T, Errno>) -> io::Result<T> {
        self.shared.call(call)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // It was open until now.
        let _ = self.call(|call| data::close(call, self.fd));
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "descriptor {}", self.fd)
    }
}

/// How a file is opened; see [`std::fs::OpenOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    flags: OpenFlags,
    status: StatusFlags,
    mode: u32,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// For nothing yet; a new file's mode is 0666, less the mask.
    pub fn new() -> OpenOptions {
        OpenOptions { flags: OpenFlags::NONE, status: StatusFlags::NONE, mode: 0o666 }
    }

    fn with(self, flag: OpenFlags, is_set: bool) -> OpenOptions {
        let flags = if is_set { self.flags | flag } else { self.flags.difference(flag) };
        OpenOptions { flags, ..self }
    }

    /// For reading.
    pub fn read(self, read: bool) -> OpenOptions {
        self.with(OpenFlags::READ, read)
    }

    /// For writing.
    pub fn write(self, write: bool) -> OpenOptions {
        self.with(OpenFlags::WRITE, write)
    }

    /// For writing at the end, wherever that is then.
    pub fn append(self, append: bool) -> OpenOptions {
        let status = if append { StatusFlags::APPEND } else { StatusFlags::NONE };
        OpenOptions { status, ..self }.write(append)
    }

    /// Made empty.
    pub fn truncate(self, truncate: bool) -> OpenOptions {
        self.with(OpenFlags::TRUNCATE, truncate)
    }

    /// Created if it does not exist.
    pub fn create(self, create: bool) -> OpenOptions {
        self.with(OpenFlags::CREATE, create)
    }

    /// Created; it must not exist.
    pub fn create_new(self, create_new: bool) -> OpenOptions {
        self.with(OpenFlags::CREATE | OpenFlags::EXCLUSIVE, create_new)
    }

    /// Permission bits of a new file, less the mask.
    pub fn mode(self, mode: u32) -> OpenOptions {
        OpenOptions { mode, ..self }
    }
}

/// The bytes of a path.
fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// An open directory. Paths are relative to it; they may lead elsewhere by `..`, `/` and symbolic links.
///
/// Errors are those of the calls of the same names on Linux, as [`std::io::Error::raw_os_error`] has them.
#[derive(Debug)]
pub struct Dir(Handle);

/// A name in a directory.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: PathBuf,
    /// What it leads to.
    pub kind: Kind,
    /// Number of what it leads to.
    pub number: posix_calls::InodeNumber,
}

impl Dir {
    /// Makes a call with a path that starts here.
    fn at<T>(
        &self,
        mut call: impl for<'v, 'c> FnMut(&'v InProcess<'c, Outside>, Start<crate::Node<'v>>) -> Result<T, Errno>,
    ) -> io::Result<T> {
        self.0.call(|process| {
            let node = data::node(process, self.0.fd)?;
            call(process, Start::Handle(node))
        })
    }

    fn handle(&self, fd: u32) -> Handle {
        Handle { shared: self.0.shared.clone(), fd }
    }

    /// Opens a file for reading (POSIX `openat`).
    ///
    /// # Errors
    /// ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG, EMFILE, ENOMEM.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.open_with(path, OpenOptions::new().read(true))
    }

    /// Opens a file for writing, empty and created if it does not exist (POSIX `creat`).
    ///
    /// # Errors
    /// As [`Dir::open_with`].
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.open_with(path, OpenOptions::new().write(true).create(true).truncate(true))
    }

    /// Opens a file (POSIX `openat`).
    ///
    /// # Errors
    /// As [`Dir::open`]; EEXIST if it must not exist, EISDIR if a directory is to be written, ENOSPC without room for a new
    /// one.
    pub fn open_with(&self, path: impl AsRef<Path>, options: OpenOptions) -> io::Result<File> {
        let path = bytes(path.as_ref());
        let descriptor = DescriptorOptions { status: options.status, ..DescriptorOptions::PLAIN };
        let fd = self.at(|call, start| data::open(call, start, path, options.flags, options.mode, descriptor))?;
        Ok(File(self.handle(fd)))
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// As [`Dir::open`]; ENOTDIR if it is none.
    pub fn open_dir(&self, path: impl AsRef<Path>) -> io::Result<Dir> {
        let path = bytes(path.as_ref());
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        let fd = self.at(|call, start| data::open(call, start, path, flags, 0, DescriptorOptions::PLAIN))?;
        Ok(Dir(self.handle(fd)))
    }

    /// Makes a directory with mode 0777, less the mask (POSIX `mkdirat`).
    ///
    /// # Errors
    /// EEXIST, ENOENT, ENOTDIR, EACCES, ENOSPC, ENAMETOOLONG.
    pub fn create_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = bytes(path.as_ref());
        self.at(|call, start| directories::make_directory(call.objects(), start, path, 0o777))
    }

    /// Removes an empty directory (POSIX `unlinkat` with AT_REMOVEDIR).
    ///
    /// # Errors
    /// ENOTEMPTY, ENOENT, ENOTDIR, EACCES, EPERM, EBUSY for the root.
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = bytes(path.as_ref());
        self.at(|call, start| directories::remove_directory(call.objects(), start, path))
    }

    /// Removes a name of a file (POSIX `unlinkat`).
    ///
    /// # Errors
    /// ENOENT, EISDIR, ENOTDIR, EACCES, EPERM.
    pub fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = bytes(path.as_ref());
        self.at(|call, start| names::unlink(call.objects(), start, path))
    }

    /// Gives an object another name, in place of what that led to (POSIX `renameat`). Both paths start here.
    ///
    /// # Errors
    /// ENOENT, EISDIR, ENOTDIR, ENOTEMPTY, EINVAL for a directory below itself, EACCES, EPERM, ENOSPC.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let (from, to) = (bytes(from.as_ref()), bytes(to.as_ref()));
        self.at(|call, start| names::rename(call.objects(), (start, from), (start, to), RenameMode::Replace))
    }

    /// Gives a file one name more (POSIX `linkat`). Both paths start here.
    ///
    /// # Errors
    /// ENOENT, EEXIST, EPERM for a directory, EACCES, ENOSPC.
    pub fn hard_link(&self, original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        let (original, link) = (bytes(original.as_ref()), bytes(link.as_ref()));
        self.at(|call, start| names::link(call.objects(), (start, original), (start, link), Follow::Nothing))
    }

    /// Makes a symbolic link (POSIX `symlinkat`).
    ///
    /// # Errors
    /// EEXIST, ENOENT, EACCES, ENOSPC, ENAMETOOLONG.
    pub fn symlink(&self, target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        let (target, link) = (bytes(target.as_ref()), bytes(link.as_ref()));
        self.at(|call, start| names::symlink(call.objects(), target, start, link))
    }

    /// What a symbolic link leads to (POSIX `readlinkat`).
    ///
    /// # Errors
    /// EINVAL if it is none; as [`Dir::open`].
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let path = bytes(path.as_ref());
        let target =
            self.at(|call, start| names::read_link(call.objects(), start, path).map(|target| target.to_vec()))?;
        path_of(target)
    }

    /// The attributes of what a path leads to (POSIX `fstatat`).
    ///
    /// # Errors
    /// ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG.
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Attributes> {
        let path = bytes(path.as_ref());
        self.at(|call, start| attributes::stat(call.objects(), start, path, Follow::Symlinks, Fields::ALL))
    }

    /// The attributes of what a path leads to, a symbolic link at its end not followed (POSIX `lstat`).
    ///
    /// # Errors
    /// As [`Dir::metadata`].
    pub fn symlink_metadata(&self, path: impl AsRef<Path>) -> io::Result<Attributes> {
        let path = bytes(path.as_ref());
        self.at(|call, start| attributes::stat(call.objects(), start, path, Follow::Nothing, Fields::ALL))
    }

    /// Sets the permission bits of what a path leads to (POSIX `fchmodat`).
    ///
    /// # Errors
    /// EPERM unless it is the caller's; as [`Dir::metadata`].
    pub fn set_mode(&self, path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
        let path = bytes(path.as_ref());
        self.at(|call, start| attributes::change_mode(call.objects(), start, path, mode))
    }

    /// The names here, but for `.` and `..`, in the order of a listing (POSIX `readdir`).
    ///
    /// # Errors
    /// None but those of names that are no paths on this system.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut listed = Vec::new();
        self.at(|call, start| {
            let Start::Handle(node) = start else { return Ok(()) };
            directories::read_directory(call.objects(), node, 0, |entry| {
                if entry.name != b"." && entry.name != b".." {
                    listed.push((entry.name.to_vec(), entry.kind, entry.number));
                }
                true
            })
            .map(drop)
        })?;
        let entry = |(name, kind, number)| Ok(Entry { name: path_of(name)?, kind, number });
        listed.into_iter().map(entry).collect()
    }
}

/// A path of these bytes.
fn path_of(bytes: Vec<u8>) -> io::Result<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        Ok(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
    }
    #[cfg(not(unix))]
    {
        std::string::String::from_utf8(bytes).map(PathBuf::from).map_err(io::Error::other)
    }
}

/// An open file, with an offset at which it is read and written.
#[derive(Debug)]
pub struct File(Handle);

impl File {
    /// The file's attributes (POSIX `fstat`).
    ///
    /// # Errors
    /// None today.
    pub fn metadata(&self) -> io::Result<Attributes> {
        self.0.call(|call| data::stat(call, self.0.fd, Fields::ALL))
    }

    /// Makes the file this long (POSIX `ftruncate`).
    ///
    /// # Errors
    /// EINVAL if it is not open for writing, or for more than 2^63 - 1 bytes; ENOSPC.
    pub fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        let size = i64::try_from(size_bytes).map_err(|_| Errno::EINVAL)?;
        self.0.call(|call| data::truncate(call, self.0.fd, size))
    }

    /// Reads at an offset, and leaves the file's own (POSIX `pread`).
    ///
    /// # Errors
    /// EBADF if it is not open for reading, EINVAL for an offset above 2^63 - 1.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let offset = i64::try_from(offset).map_err(|_| Errno::EINVAL)?;
        self.0.call(|call| data::read_at(call, self.0.fd, buffer, offset))
    }

    /// Writes at an offset, and leaves the file's own (POSIX `pwrite`).
    ///
    /// # Errors
    /// EBADF if it is not open for writing, EINVAL for an offset above 2^63 - 1, ENOSPC.
    pub fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        let offset = i64::try_from(offset).map_err(|_| Errno::EINVAL)?;
        self.0.call(|call| data::write_at(call, self.0.fd, buffer, offset))
    }

    /// Locks all of the file, once no other lock of it is in the way (BSD `flock`): as [`std::fs::File::lock`]. The lock is of
    /// the handle and its clones, and ends with the last of them. No call of the thread is to be under way, or it waits for itself.
    ///
    /// # Errors
    /// ENOLCK without memory.
    pub fn lock(&self) -> io::Result<()> {
        self.lock_waiting(&LockRequest::whole(LockMode::Exclusive))
    }

    /// As [`File::lock`], but that others may lock it so, too.
    ///
    /// # Errors
    /// As there.
    pub fn lock_shared(&self) -> io::Result<()> {
        self.lock_waiting(&LockRequest::whole(LockMode::Shared))
    }

    /// As [`File::lock`], at once.
    ///
    /// # Errors
    /// EAGAIN ([`io::ErrorKind::WouldBlock`]) if another lock is in the way; ENOLCK.
    pub fn try_lock(&self) -> io::Result<()> {
        self.set_lock(&LockRequest::whole(LockMode::Exclusive))
    }

    /// As [`File::lock_shared`], at once.
    ///
    /// # Errors
    /// As [`File::try_lock`].
    pub fn try_lock_shared(&self) -> io::Result<()> {
        self.set_lock(&LockRequest::whole(LockMode::Shared))
    }

    /// Gives the lock of the handle up, if it has one.
    ///
    /// # Errors
    /// None today.
    pub fn unlock(&self) -> io::Result<()> {
        self.set_lock(&LockRequest { mode: None, ..LockRequest::whole(LockMode::Shared) })
    }

    /// Locks or unlocks a range of the file, on behalf of the file system's process or of the handle and its clones (POSIX `fcntl`
    /// with F_SETLK and F_OFD_SETLK).
    ///
    /// # Errors
    /// As [`locks::ask`].
    pub fn set_lock(&self, request: &LockRequest) -> io::Result<()> {
        self.0.call(|call| locks::set(call, self.0.fd, request))
    }

    /// As [`File::set_lock`], once no other lock is in the way.
    ///
    /// # Errors
    /// As there, but for EAGAIN.
    pub fn lock_waiting(&self, request: &LockRequest) -> io::Result<()> {
        let shared = &self.0.shared;
        let ask = |waited| {
            let asked = shared.call(|call| Ok(locks::ask_again(call, self.0.fd, request, waited)));
            // In a child of `fork`.
            asked.unwrap_or(Err(LockRefusal::Failed(Errno::EIO)))
        };
        let wait = |busy, round| shared.wait_for_lock(busy, round);
        Ok(locks::until_locked(ask, wait)?)
    }

    /// The lock that is in the way of a request, if one is (POSIX `fcntl` with F_GETLK).
    ///
    /// # Errors
    /// None today.
    pub fn lock_in_the_way(&self, request: &LockRequest) -> io::Result<Option<ForeignLock>> {
        self.0.call(|call| locks::in_the_way(call, self.0.fd, request))
    }

    /// Another handle with the same offset (POSIX `dup`).
    ///
    /// # Errors
    /// EMFILE, ENOMEM.
    pub fn try_clone(&self) -> io::Result<File> {
        let DescriptorOptions { number, on_exec, .. } = DescriptorOptions::PLAIN;
        let fd = self.0.call(|call| data::duplicate(call, self.0.fd, number, on_exec))?;
        Ok(File(Handle { shared: self.0.shared.clone(), fd }))
    }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.call(|call| data::read(call, self.0.fd, buffer))
    }
}

impl Write for &File {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.call(|call| data::write(call, self.0.fd, buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        let (offset, whence) = match position {
            SeekFrom::Start(offset) => (i64::try_from(offset).map_err(|_| Errno::EINVAL)?, Whence::Start),
            SeekFrom::Current(offset) => (offset, Whence::Current),
            SeekFrom::End(offset) => (offset, Whence::End),
        };
        self.0.call(|call| data::seek(call, self.0.fd, offset, whence))
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for File {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        (&*self).seek(position)
    }
}
