//! The calls on descriptors and data, with Linux's semantics: read, write, pread, pwrite, lseek, ftruncate, fstat, close,
//! dup, pipe, and open with a descriptor. A read or write of a socket is a `recv` or `send` ([`crate::sockets`]).
//!
//! **Check before lock**, as in [`crate::names`]: a read at the end of a file, and an lseek to where the offset is, write
//! nothing.
//!
//! **Waiting.** A call that would wait fails with EAGAIN, and the core is free for maintenance before it is made again:
//! [`read_waiting`] and [`write_waiting`] do so as the caller's host likes to wait, unless the description is
//! O_NONBLOCK. SIGPIPE is the caller's matter.

use sync::mutant::planted;

use crate::attributes::drop_set_ids;
use crate::data_operations::{Calls, DataOperations, HandleOf, NodeOf, PipeState, WriteAt, Written};
pub use crate::descriptors::Whence;
use crate::descriptors::{AccessMode, DESCRIPTOR_LIMIT, NumberChoice, OnExec, PipeEnd, Sought, StatusFlags, Use};
use crate::directories::{self, DirectoryEntry};
use crate::errno::Errno;
use crate::fault::{OperationError, start_again};
use crate::fields::{Attributes, Fields};
use crate::kind::Kind;
use crate::names::{self, OpenFlags};
use crate::object_operations::ObjectOperations;
use crate::rights::Need;
use crate::socket::SocketState;
use crate::walk::{Follow, Start, check_permission, resolve};

/// No file is larger (Linux: `MAX_LFS_FILESIZE`).
pub const MAX_FILE_BYTES: u64 = i64::MAX as u64;
/// The most bytes that one call moves (Linux: `MAX_RW_COUNT`).
const MAX_CALL_BYTES: usize = 0x7fff_f000;

/// How `open` makes a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorOptions {
    /// Flags of the description.
    pub status: StatusFlags,
    /// Which number.
    pub number: NumberChoice,
    /// Whether it survives `exec`.
    pub on_exec: OnExec,
}

impl DescriptorOptions {
    /// The lowest free number, kept over `exec`, no flags.
    pub const PLAIN: DescriptorOptions =
        DescriptorOptions { status: StatusFlags::NONE, number: NumberChoice::LowestFrom(0), on_exec: OnExec::Keep };
}

pub(crate) fn description<'v, D: DataOperations>(process: &'v D, fd: u32) -> Result<D::Description<'v>, Errno> {
    process.description(fd)?.ok_or(Errno::EBADF)
}

/// Whether a description only stands for its object.
pub(crate) fn is_handle<'v, D: DataOperations>(process: &'v D, description: D::Description<'v>) -> Result<bool, Errno> {
    Ok(process.status(description)?.contains(StatusFlags::HANDLE))
}

/// What a descriptor leads to, for this use; whoever has found it still checks what it is open for.
fn description_for<'v, D: DataOperations>(process: &'v D, fd: u32, usage: Use) -> Result<D::Description<'v>, Errno> {
    if process.may_serve(fd, usage)? { description(process, fd) } else { Err(Errno::EBADF) }
}

/// Opens a file under a new descriptor.
///
/// POSIX `open`; Linux `do_sys_openat2`, `do_open`: truncation comes last, whatever the access mode.
///
/// # Errors
/// As [`names::open`]; EMFILE without a number, ENOMEM without memory for a description, ENOSPC without room for a new
/// file.
pub fn open<'v, D: DataOperations>(
    process: &'v D,
    start: Start<NodeOf<'v, D>>,
    path: &[u8],
    flags: OpenFlags,
    permissions: u32,
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    let objects = process.objects();
    let opened = names::open(objects, start, path, flags, permissions)?;
    if flags.contains(OpenFlags::TRUNCATE) && !opened.is_new {
        let truncated = truncate_opened(process, &opened.handle);
        if let Err(errno) = truncated {
            objects.release(opened.handle);
            return Err(errno);
        }
    }
    let mode = AccessMode { read: flags.contains(OpenFlags::READ), write: flags.contains(OpenFlags::WRITE) };
    process.install(opened.handle, mode, options.status, (options.number, options.on_exec))
}

pub(crate) fn truncate_opened<D: DataOperations>(process: &D, opened: &HandleOf<D>) -> Result<(), Errno> {
    let node = process.objects().held(opened);
    if process.objects().kind(node) == Kind::Regular { truncate_node(process, node, 0) } else { Ok(()) }
}

/// Makes a pipe: descriptors to read from and to write to.
///
/// POSIX `pipe`; Linux `do_pipe2`.
///
/// # Errors
/// EMFILE without two numbers, ENOMEM.
pub fn pipe<D: DataOperations>(process: &D, options: DescriptorOptions) -> Result<(u32, u32), Errno> {
    process.install_pipe(options.status, (options.number, options.on_exec))
}

/// Another description of what a descriptor leads to, with its mode, in this process or, if the descriptor is another
/// process's, from there (Linux: open of `/proc/PID/fd/N`). The descriptor stays open meanwhile.
///
/// # Errors
/// EBADF if the descriptor is not open, ENXIO if it is a socket, EMFILE, ENOMEM.
pub fn reopen<'v, D: DataOperations>(
    process: &'v D,
    (owner, fd): (&'v D, u32),
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    let description = description(owner, fd)?;
    if owner.objects().kind(owner.node(description)) == Kind::Socket && !planted("calls: a socket can be opened again")
    {
        return Err(Errno::ENXIO);
    }
    let handle = owner.objects().retain(owner.node(description))?;
    process.install(handle, owner.mode(description), options.status, (options.number, options.on_exec))
}

/// What a pipe's or a socket's descriptor sees; other objects are always ready (POSIX `poll`). An end of a pipe whose other one has
/// gone is ready, as by `select` on Linux. Of a socket: whether a message waits, and whether its peer has gone.
///
/// # Errors
/// EBADF if the descriptor is not open.
pub fn poll<D: DataOperations>(process: &D, fd: u32) -> Result<PipeState, Errno> {
    let description = description(process, fd)?;
    let node = process.node(description);
    match process.objects().kind(node) {
        Kind::Pipe => {
            let PipeState { is_ready, other_end_gone } = process.pipe_state(node, process.pipe_end(description))?;
            Ok(PipeState { is_ready: is_ready || other_end_gone, other_end_gone })
        }
        Kind::Socket => {
            let SocketState { has_message, peer_gone } = process.socket_state(node)?;
            Ok(PipeState { is_ready: has_message, other_end_gone: peer_gone })
        }
        _ => Ok(PipeState { is_ready: true, other_end_gone: false }),
    }
}

/// What a descriptor is ready for (POSIX `poll`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// There is something to read (POLLIN).
    pub input: bool,
    /// There is room to write (POLLOUT).
    pub output: bool,
    /// All writers of the pipe have gone (POLLHUP).
    pub hang_up: bool,
    /// All readers of the pipe have gone (POLLERR).
    pub error: bool,
}

/// What a descriptor is ready for, each by itself; [`poll`] says whether a call would wait.
///
/// POSIX `poll`; Linux `pipe_poll`, `unix_dgram_poll`: a file is always ready, whatever it is open for, and a socket always
/// seems to have room.
///
/// # Errors
/// EBADF if the descriptor is not open (POLLNVAL).
pub fn ready<D: DataOperations>(process: &D, fd: u32) -> Result<Ready, Errno> {
    let description = description(process, fd)?;
    if is_handle(process, description)? {
        return Err(Errno::EBADF);
    }
    let node = process.node(description);
    Ok(match process.objects().kind(node) {
        Kind::Pipe => {
            let end = process.pipe_end(description);
            let PipeState { is_ready, other_end_gone } = process.pipe_state(node, end)?;
            match end {
                PipeEnd::Read => Ready { input: is_ready, hang_up: other_end_gone, ..Ready::default() },
                PipeEnd::Write => Ready { output: is_ready, error: other_end_gone, ..Ready::default() },
            }
        }
        Kind::Socket => {
            let SocketState { has_message, peer_gone } = process.socket_state(node)?;
            Ready { input: has_message || peer_gone, output: true, ..Ready::default() }
        }
        _ => Ready { input: true, output: true, ..Ready::default() },
    })
}

/// Brings what was written to where it lasts: it is there (POSIX `fsync`; Linux `noop_fsync`).
///
/// # Errors
/// EBADF if the descriptor is not open, EINVAL for a pipe or socket.
pub fn synchronize<D: DataOperations>(process: &D, fd: u32) -> Result<(), Errno> {
    let description = description(process, fd)?;
    if is_handle(process, description)? {
        return Err(Errno::EBADF);
    }
    match process.objects().kind(process.node(description)) {
        Kind::Pipe | Kind::Socket => Err(Errno::EINVAL),
        _ => Ok(()),
    }
}

/// Copies bytes that wait in a pipe, without taking them (Linux `tee`).
///
/// # Errors
/// EBADF if the descriptor is not open, EINVAL if it is no pipe, EAGAIN where a read would wait.
pub fn peek<D: DataOperations>(process: &D, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
    let node = node(process, fd)?;
    if process.objects().kind(node) != Kind::Pipe {
        return Err(Errno::EINVAL);
    }
    Ok(process.peek_pipe(node, bytes)?)
}

/// POSIX `close`.
///
/// # Errors
/// EBADF if the descriptor is not open.
pub fn close<D: DataOperations>(process: &D, fd: u32) -> Result<(), Errno> {
    if process.uninstall(fd)? { Ok(()) } else { Err(Errno::EBADF) }
}

/// Another descriptor for the same description (POSIX `dup`, and `fcntl` with `F_DUPFD`).
///
/// # Errors
/// EBADF if the descriptor is not open, EINVAL for a number that cannot be, EMFILE without one, ENOMEM.
pub fn duplicate<D: DataOperations>(process: &D, fd: u32, number: NumberChoice, on_exec: OnExec) -> Result<u32, Errno> {
    if !planted("calls: dup looks at the number first") {
        description(process, fd)?;
    }
    if matches!(number, NumberChoice::LowestFrom(lowest) if lowest >= DESCRIPTOR_LIMIT) {
        return Err(Errno::EINVAL);
    }
    process.duplicate(fd, (number, on_exec))
}

/// Lets a number lead to the same description as another (POSIX `dup2`).
///
/// # Errors
/// EBADF if the descriptor is not open, or for a number that cannot be; ENOMEM.
pub fn duplicate_to<D: DataOperations>(process: &D, fd: u32, target: u32, on_exec: OnExec) -> Result<u32, Errno> {
    description(process, fd)?;
    if target >= DESCRIPTOR_LIMIT {
        return Err(Errno::EBADF);
    }
    if fd != target {
        process.duplicate_to(fd, target, on_exec)?;
    }
    Ok(target)
}

/// Sets whether a descriptor survives `exec` (POSIX `fcntl` with `F_SETFD`).
///
/// # Errors
/// EBADF if the descriptor is not open, ENOMEM.
pub fn set_on_exec<D: DataOperations>(process: &D, fd: u32, on_exec: OnExec) -> Result<(), Errno> {
    process.set_on_exec(fd, on_exec).map(drop)
}

/// Whether a descriptor survives `exec` (POSIX `fcntl` with `F_GETFD`).
///
/// # Errors
/// EBADF if the descriptor is not open.
pub fn on_exec<D: DataOperations>(process: &D, fd: u32) -> Result<OnExec, Errno> {
    process.on_exec(fd)
}

/// The flags of a description (POSIX `fcntl` with `F_GETFL`).
///
/// # Errors
/// EBADF if the descriptor is not open.
pub fn status<D: DataOperations>(process: &D, fd: u32) -> Result<(AccessMode, StatusFlags), Errno> {
    let description = description(process, fd)?;
    Ok((process.mode(description), process.status(description)?))
}

/// Sets the flags of a description (POSIX `fcntl` with `F_SETFL`).
///
/// # Errors
/// EBADF if the descriptor is not open.
pub fn set_status<D: DataOperations>(process: &D, fd: u32, status: StatusFlags) -> Result<(), Errno> {
    let description = description(process, fd)?;
    if is_handle(process, description)? {
        return Err(Errno::EBADF);
    }
    Ok(process.set_status(description, status)?)
}

/// The object behind a descriptor, for calls that start at one or change one (`openat`, `fchmod`, `fchdir`).
///
/// # Errors
/// EBADF if the descriptor is not open.
pub fn node<'v, D: DataOperations>(process: &'v D, fd: u32) -> Result<NodeOf<'v, D>, Errno> {
    description(process, fd).map(|description| process.node(description))
}

/// The attributes of an object; with fewer than all fields, the paper's `fstatx` (section 4).
///
/// POSIX `fstat`.
///
/// # Errors
/// EBADF if the descriptor is not open.
pub fn stat<D: DataOperations>(process: &D, fd: u32, fields: Fields) -> Result<Attributes, Errno> {
    Ok(process.objects().attributes(node(process, fd)?, fields)?)
}

/// What is read, if it is open for reading.
fn check_read<'v, D: DataOperations>(process: &'v D, description: D::Description<'v>) -> Result<Kind, Errno> {
    if !process.mode(description).read {
        return Err(Errno::EBADF);
    }
    Ok(process.objects().kind(process.node(description)))
}

/// The range that is read of what has an offset (Linux: `rw_verify_area`, and then `generic_read_dir`).
fn check_read_range(kind: Kind, offset: i64, length: usize) -> Result<(u64, usize), Errno> {
    let range = check_range(offset, length)?;
    if kind == Kind::Directory { Err(Errno::EISDIR) } else { Ok(range) }
}

/// Why a call at an offset fails on what has none: of what lies outside there are only descriptors that stand for it.
#[cold]
fn not_seekable<'v, D: DataOperations>(process: &'v D, description: D::Description<'v>) -> Errno {
    let is_outside = process.objects().kind(process.node(description)).is_outside();
    if is_outside { Errno::EBADF } else { Errno::ESPIPE }
}

/// Where a call starts that moves bytes from this offset on, and how many it moves (Linux: `rw_verify_area`).
///
/// # Errors
/// EINVAL for an offset that cannot be, and for bytes that no file can have.
pub fn check_range(offset: i64, length: usize) -> Result<(u64, usize), Errno> {
    let start = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    if start.checked_add(length as u64).is_none_or(|end| end > MAX_FILE_BYTES) {
        return Err(Errno::EINVAL);
    }
    Ok((start, length.min(MAX_CALL_BYTES)))
}

/// Reads at an offset (POSIX `pread`; Linux `ksys_pread64`: a pipe is told before the mode).
///
/// # Errors
/// EINVAL for a negative offset, ESPIPE for a pipe or socket, EBADF if the descriptor is not open for reading, EISDIR.
pub fn read_at<D: DataOperations>(process: &D, fd: u32, bytes: &mut [u8], offset: i64) -> Result<usize, Errno> {
    if offset < 0 {
        return Err(Errno::EINVAL);
    }
    let description = description_for(process, fd, Use::ReadAt)?;
    let node = process.node(description);
    if !process.objects().kind(node).is_seekable() {
        return Err(not_seekable(process, description));
    }
    let kind = check_read(process, description)?;
    let (offset, length) = check_read_range(kind, offset, bytes.len())?;
    Ok(process.read_range(node, offset, &mut bytes[..length])?)
}

/// Reads at the descriptor's offset, or out of a pipe; EAGAIN where it would wait.
///
/// POSIX `read`; Linux `ksys_read`.
///
/// # Errors
/// EBADF if the descriptor is not open for reading, EISDIR, EAGAIN; of a socket those of
/// [`receive`](crate::sockets::receive).
pub fn read<D: DataOperations>(process: &D, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
    let description = description_for(process, fd, Use::Read)?;
    let node = process.node(description);
    let kind = check_read(process, description)?;
    match kind {
        Kind::Pipe => return process.read_pipe(node, bytes),
        // Linux: `sock_read_iter` takes no message for no bytes.
        Kind::Socket if bytes.is_empty() && !planted("calls: a read of no bytes takes a message") => return Ok(0),
        Kind::Socket => return process.receive(node, bytes).map(|received| received.length_bytes.min(bytes.len())),
        _ => {}
    }
    if let Some(read) = process.read_next(description, bytes) {
        return read;
    }
    let offset = process.offset(description)?;
    check_read_range(kind, offset.bytes as i64, bytes.len())?;
    // At the end, if the offset was still there when the end was seen: nothing is written.
    if bytes.is_empty() || process.ends_at(node, offset.bytes)? && process.offset_stays(description, offset)? {
        return Ok(0);
    }
    let lock = process.lock_offset(description)?;
    let (start, length) = check_range(process.locked_offset(&lock) as i64, bytes.len())?;
    process.will_reach(&lock, start + length as u64)?;
    let read = process.read_range(node, start, &mut bytes[..length])?;
    process.unlock_offset(lock, start + read as u64)?;
    Ok(read)
}

/// Whether writes go to the end.
fn appends<D: DataOperations>(process: &D, description: D::Description<'_>) -> Result<bool, Errno> {
    Ok(process.status(description)?.contains(StatusFlags::APPEND))
}

/// Writes to a file at an offset, or at the end if the description [`appends`].
fn write_file<'v, D: DataOperations>(
    process: &'v D,
    description: D::Description<'v>,
    bytes: &[u8],
    (offset, appends): (i64, bool),
) -> Result<Written, Errno> {
    let (offset, length) = check_range(offset, bytes.len())?;
    if length == 0 && !planted("calls: a write of no bytes appends") {
        // Linux: `generic_write_checks` ends before O_APPEND moves the offset.
        return Ok(Written { offset, length });
    }
    let at = match appends && !planted("calls: O_APPEND says nothing to pwrite") {
        true => WriteAt::End,
        false => WriteAt::Offset(offset),
    };
    let node = process.node(description);
    if appends && !process.is_shorter_than(node, MAX_FILE_BYTES)? {
        // Linux: `generic_write_checks` comes before the set-id bits go.
        return Err(Errno::EFBIG);
    }
    check_written(without_set_ids(process, node, || Ok(process.write_range(node, at, &bytes[..length])?))?)
}

/// What became of a write of more than no bytes.
///
/// # Errors
/// EFBIG or ENOSPC if none was written.
pub fn check_written(written: Written) -> Result<Written, Errno> {
    match written.length {
        // Only an append can start there: other offsets were checked.
        0 if written.offset == MAX_FILE_BYTES && !planted("calls: a file that is too large is no space") => {
            Err(Errno::EFBIG)
        }
        0 => Err(Errno::ENOSPC),
        _ => Ok(written),
    }
}

/// Writes at an offset; on a description with O_APPEND at the end, as Linux does (POSIX `pwrite`).
///
/// # Errors
/// EINVAL for a negative offset, ESPIPE for a pipe or socket, EBADF if the descriptor is not open for writing, EFBIG, ENOSPC.
pub fn write_at<D: DataOperations>(process: &D, fd: u32, bytes: &[u8], offset: i64) -> Result<usize, Errno> {
    if offset < 0 {
        return Err(Errno::EINVAL);
    }
    let description = description_for(process, fd, Use::WriteAt)?;
    if !process.objects().kind(process.node(description)).is_seekable() {
        return Err(not_seekable(process, description));
    }
    if !process.mode(description).write {
        return Err(Errno::EBADF);
    }
    write_file(process, description, bytes, (offset, appends(process, description)?)).map(|written| written.length)
}

/// Writes at the descriptor's offset, or into a pipe; EAGAIN where it would wait.
///
/// POSIX `write`; Linux `ksys_write`.
///
/// # Errors
/// EBADF if the descriptor is not open for writing, EFBIG, ENOSPC if nothing fits; of a pipe EPIPE, EAGAIN, ENOMEM; of a
/// socket those of [`send`](crate::sockets::send).
pub fn write<D: DataOperations>(process: &D, fd: u32, bytes: &[u8]) -> Result<usize, Errno> {
    let description = description_for(process, fd, Use::Write)?;
    if !process.mode(description).write {
        return Err(Errno::EBADF);
    }
    let node = process.node(description);
    match process.objects().kind(node) {
        Kind::Pipe => return process.write_pipe(node, bytes),
        Kind::Socket => return process.send(node, None, bytes).map(|()| bytes.len()),
        _ => {}
    }
    if let Some(written) = process.write_next(description, bytes) {
        return written;
    }
    let appends = appends(process, description)?;
    let lock = process.lock_offset(description)?;
    let start = process.locked_offset(&lock);
    process.will_reach(&lock, if appends { u64::MAX } else { start.saturating_add(bytes.len() as u64) })?;
    let written = write_file(process, description, bytes, (start as i64, appends))?;
    process.unlock_offset(lock, written.offset + written.length as u64)?;
    Ok(written.length)
}

/// Where an offset comes to that is moved so; `size` is asked for where that is counted from.
///
/// # Errors
/// EINVAL where no offset can be; those of `size`.
pub fn sought(
    present: u64,
    (offset, whence): (i64, Whence),
    size: impl FnOnce() -> Result<u64, Errno>,
) -> Result<u64, Errno> {
    let base = match whence {
        Whence::Start => 0,
        Whence::Current => present as i64,
        Whence::End => size()? as i64,
    };
    let target = base.checked_add(offset).ok_or(Errno::EINVAL);
    let target = if planted("calls: an lseek too far overflows") { Ok(base.saturating_add(offset)) } else { target }?;
    u64::try_from(target).map_err(|_| Errno::EINVAL)
}

/// Moves the descriptor's offset; writes nothing if it is there already (section 6.3: "precede pessimism with
/// optimism").
///
/// POSIX `lseek`; Linux `generic_file_llseek`: EINVAL also where the sum is too large; `offset_dir_llseek` (fs/libfs.c):
/// nobody counts from the end of a directory.
///
/// # Errors
/// EBADF if the descriptor is not open, ESPIPE for a pipe or socket, EINVAL where the new offset cannot be.
pub fn seek<D: DataOperations>(process: &D, fd: u32, offset: i64, whence: Whence) -> Result<u64, Errno> {
    let description = description(process, fd)?;
    let node = process.node(description);
    if !process.objects().kind(node).is_seekable() {
        return Err(not_seekable(process, description));
    }
    let size = || match process.objects().kind(node) {
        Kind::Regular => Ok(process.size(node)?),
        _ => Err(Errno::EINVAL),
    };
    let target = |present: u64| sought(present, (offset, whence), size);
    // Before the beginning, wherever the offset is: it is not looked at, but how far it may be at most. From the end, no size is
    // asked for.
    if offset < 0 {
        let is_before = match whence {
            Whence::Start => true,
            Whence::Current => !process.may_reach(description, offset.unsigned_abs())?,
            Whence::End => {
                process.objects().kind(node) != Kind::Regular || process.is_shorter_than(node, offset.unsigned_abs())?
            }
        };
        if is_before {
            return Err(Errno::EINVAL);
        }
    }
    if let Some(sought) = process.seek(description, offset, whence) {
        return sought;
    }
    let present = process.offset(description)?;
    let seen = target(present.bytes);
    let is_change = seen.is_ok_and(|target| target != present.bytes);
    // If it still is there when the end was seen.
    if !is_change && process.offset_stays(description, present)? {
        return seen;
    }
    let lock = process.lock_offset(description)?;
    let target = target(process.locked_offset(&lock))?;
    process.unlock_offset(lock, target)?;
    Ok(target)
}

/// Where in a file the next data are, or the next hole, from an offset on.
///
/// # Errors
/// ENXIO for an offset that is negative or not below the end, and without data from there on.
pub fn next<'v, D: DataOperations>(
    process: &'v D,
    file: NodeOf<'v, D>,
    offset: i64,
    sought: Sought,
) -> Result<u64, Errno> {
    let mut at = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
    let size = process.size(file)?;
    if at >= size {
        return Err(Errno::ENXIO);
    }
    while at < size {
        let extent = process.extent(file, at)?;
        if extent.kind == sought {
            break;
        }
        at = extent.end;
    }
    if at >= size {
        if sought == Sought::Data {
            return Err(Errno::ENXIO);
        }
        at = size;
    }
    Ok(at)
}

/// Moves the descriptor's offset to the next data, or the next hole, from an offset on. What others write or cut meanwhile is
/// found or not.
///
/// POSIX.1-2024 `lseek` with SEEK_DATA, SEEK_HOLE; Linux `shmem_file_llseek`.
///
/// # Errors
/// EBADF if the descriptor is not open, ESPIPE for a pipe or socket, EINVAL for what else is no file, ENXIO for an offset that is
/// negative or not below the end, and without data from there on.
pub fn seek_for<D: DataOperations>(process: &D, fd: u32, offset: i64, sought: Sought) -> Result<u64, Errno> {
    let description = description(process, fd)?;
    let node = process.node(description);
    match process.objects().kind(node) {
        Kind::Regular => {}
        kind if kind.is_seekable() => return Err(Errno::EINVAL),
        _ => return Err(not_seekable(process, description)),
    }
    let at = next(process, node, offset, sought)?;
    let lock = process.lock_offset(description)?;
    process.will_reach(&lock, at)?;
    process.unlock_offset(lock, at)?;
    Ok(at)
}

fn truncate_node<'v, D: DataOperations>(process: &'v D, node: NodeOf<'v, D>, size_bytes: u64) -> Result<(), Errno> {
    without_set_ids(process, node, || {
        loop {
            match process.resize(node, size_bytes) {
                Ok(()) => return Ok(()),
                Err(OperationError::NoSpace) => return Err(Errno::ENOSPC),
                Err(refusal) => start_again(refusal)?,
            }
        }
    })
}

/// Changes a file's data. Set-id bits go before, so that nobody has them together with data of a user, and after: those that
/// came meanwhile were given to the data of before.
pub(crate) fn without_set_ids<'v, D: DataOperations, T>(
    process: &'v D,
    node: NodeOf<'v, D>,
    change: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let objects = process.objects();
    drop_set_ids(objects, node, || objects.permissions(node))?;
    let changed = change()?;
    if !planted("scalefs: set-id bits that come during a write stay") {
        drop_set_ids(objects, node, || objects.permissions_after_change(node))?;
    }
    Ok(changed)
}

/// Makes a file longer by a hole, or shorter.
///
/// POSIX `ftruncate`; Linux `do_sys_ftruncate`: EINVAL for what is no file open for writing.
///
/// # Errors
/// EBADF if the descriptor is not open, EINVAL for a size that cannot be and for what is no file open for writing, ENOSPC.
pub fn truncate<D: DataOperations>(process: &D, fd: u32, size_bytes: i64) -> Result<(), Errno> {
    let size_bytes = u64::try_from(size_bytes).map_err(|_| Errno::EINVAL)?;
    let description = description(process, fd)?;
    let node = process.node(description);
    if process.objects().kind(node) != Kind::Regular || !process.mode(description).write {
        return Err(if is_handle(process, description)? { Errno::EBADF } else { Errno::EINVAL });
    }
    truncate_node(process, node, size_bytes)
}

/// Makes the file that a path leads to longer by a hole, or shorter.
///
/// POSIX `truncate`; Linux `do_sys_truncate`, `vfs_truncate`: EISDIR for a directory, EINVAL for what else is no file,
/// before permissions. Where the size stays, the times do, too (`shmem_setattr`); [`truncate`] marks them.
///
/// # Errors
/// EINVAL, EISDIR, EACCES, ENOSPC; those of walking a path, as [`attributes::stat`](crate::attributes::stat).
pub fn truncate_path<'v, D: DataOperations>(
    process: &'v D,
    start: Start<NodeOf<'v, D>>,
    path: &[u8],
    size_bytes: i64,
) -> Result<(), Errno> {
    let size_bytes = u64::try_from(size_bytes).map_err(|_| Errno::EINVAL)?;
    let objects = process.objects();
    let node = resolve(objects, start, path, Follow::Symlinks)?.node;
    match objects.kind(node) {
        Kind::Regular => {}
        Kind::Directory => return Err(Errno::EISDIR),
        _ => return Err(Errno::EINVAL),
    }
    if !planted("calls: truncate asks for no right") {
        check_permission(objects, node, Need::WRITE)?;
    }
    if process.size(node)? == size_bytes {
        return drop_set_ids(objects, node, || objects.permissions(node));
    }
    truncate_node(process, node, size_bytes)
}

/// The offset of a directory whose listing has come to its end: a description that is there tells no more names.
pub const END_OF_LISTING: u64 = i64::MAX as u64;

/// Tells `each` the names of an open directory from the descriptor's offset on, until it returns false, which then has not
/// taken the name that it was told; the offset moves behind the last one that was taken. `each` makes no calls. Returns how many
/// were taken: none at the end.
///
/// Linux `getdents64`, `iterate_dir`; POSIX.1-2024 `posix_getdents`. Each descriptor of the description goes on where another
/// has come to (`dup`, `fork`), and `lseek` to a cookie goes there.
///
/// # Errors
/// EBADF if the descriptor is not open, ENOTDIR if it leads to no directory, ENOENT if that was removed.
pub fn read_directory<D: DataOperations>(
    process: &D,
    fd: u32,
    mut each: impl FnMut(DirectoryEntry<'_>) -> bool,
) -> Result<usize, Errno> {
    let description = description(process, fd)?;
    let (objects, node) = (process.objects(), process.node(description));
    if is_handle(process, description)? {
        return Err(Errno::EBADF);
    }
    if objects.kind(node) != Kind::Directory {
        return Err(Errno::ENOTDIR);
    }
    if objects.is_removed(node)? {
        return Err(Errno::ENOENT);
    }
    let lock = process.lock_offset(description)?;
    let start = process.locked_offset(&lock);
    let (mut count, mut reached) = (0, start);
    if start < END_OF_LISTING {
        let next = directories::read_directory(objects, node, start, |entry| {
            let is_taken = each(entry);
            if is_taken {
                count += 1;
                reached = entry.next_cookie;
            }
            is_taken
        })?;
        if next.is_none() {
            reached = END_OF_LISTING;
        }
    }
    process.will_reach(&lock, reached)?;
    process.unlock_offset(lock, reached)?;
    Ok(count)
}

/// Whether EAGAIN means that the caller wants to wait.
fn wants_to_wait<D: DataOperations>(process: &D, fd: u32, error: Errno) -> bool {
    error == Errno::EAGAIN && status(process, fd).is_ok_and(|(_, status)| !status.contains(StatusFlags::NONBLOCK))
}

/// [`read`] that waits until there is something, or the end.
///
/// # Errors
/// As [`read`], but for EAGAIN.
pub fn read_waiting<C: Calls>(calls: &C, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
    for round in 0_u32.. {
        {
            let process = calls.begin();
            match read(&process, fd, bytes) {
                Err(error) if wants_to_wait(&process, fd, error) => {}
                outcome => return outcome,
            }
        }
        calls.wait(round);
    }
    Err(Errno::EAGAIN)
}

/// [`write`] that waits until all is written.
///
/// # Errors
/// As [`write`], but for EAGAIN; what was written before an error counts.
pub fn write_waiting<C: Calls>(calls: &C, fd: u32, bytes: &[u8]) -> Result<usize, Errno> {
    let mut done = 0;
    for round in 0_u32.. {
        {
            let process = calls.begin();
            match write(&process, fd, &bytes[done..]) {
                Ok(written) if done + written < bytes.len() && is_pipe(&process, fd) => {
                    done += written;
                    if status(&process, fd).is_ok_and(|(_, status)| status.contains(StatusFlags::NONBLOCK)) {
                        return Ok(done);
                    }
                }
                Ok(written) => return Ok(done + written),
                Err(error) if wants_to_wait(&process, fd, error) => {}
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        calls.wait(round);
    }
    Ok(done)
}

fn is_pipe<D: DataOperations>(process: &D, fd: u32) -> bool {
    node(process, fd).is_ok_and(|node| process.objects().kind(node) == Kind::Pipe)
}
