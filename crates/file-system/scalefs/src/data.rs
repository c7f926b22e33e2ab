//! The calls on descriptors and data, with Linux's semantics: read, write, pread, pwrite, lseek, ftruncate, fstat, close,
//! dup, pipe, and open with a descriptor.
//!
//! **Check before lock**, as in [`crate::names`]: a read at the end of a file, and an lseek to where the offset is, write
//! nothing.
//!
//! **Waiting.** A call that would wait fails with EAGAIN, and the core is free for maintenance before it is made again:
//! [`read_waiting`] and [`write_waiting`] do so as the caller's host likes to wait, unless the description is
//! O_NONBLOCK. SIGPIPE is the caller's matter.

use percpu::Core;
use sync::WaitReason;
use sync::atomic::{Ordering, fence};
use sync::mutant::planted;

use crate::attributes::clear_set_ids;
use crate::data_verbs::{DataVerbs, NodeOf, PipeState, WriteAt, Written};
use crate::description::{AccessMode, StatusFlags, Use};
use crate::errno::Errno;
use crate::fields::{Attributes, Fields};
use crate::file::MAX_FILE_BYTES;
use crate::host::Host;
use crate::inode::Kind;
use crate::instance::ScaleFs;
use crate::names::{self, OpenFlags, start_again};
use crate::process::{DESCRIPTOR_LIMIT, NumberChoice, OnExec, Process};
use crate::verbs::{Refusal, Verbs};
use crate::walk::{Follow, Need, Start, check_permission, resolve};

/// The most bytes that one call moves (Linux: `MAX_RW_COUNT`).
const MAX_CALL_BYTES: usize = 0x7fff_f000;

/// From where `lseek` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The beginning (`SEEK_SET`).
    Start,
    /// The present offset (`SEEK_CUR`).
    Current,
    /// The end of the file (`SEEK_END`).
    End,
}

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

fn description<D: DataVerbs>(verbs: &D, fd: u32) -> Result<D::Description, Errno> {
    verbs.description(fd).ok_or(Errno::EBADF)
}

/// What a descriptor leads to, for this use; whoever has found it still checks what it is open for.
fn description_for<D: DataVerbs>(verbs: &D, fd: u32, usage: Use) -> Result<D::Description, Errno> {
    if verbs.may_serve(fd, usage) { description(verbs, fd) } else { Err(Errno::EBADF) }
}

/// Opens a file under a new descriptor.
///
/// POSIX `open`; Linux `do_sys_openat2`, `do_open`: truncation comes last, whatever the access mode.
pub fn open<D: DataVerbs>(
    verbs: &D,
    start: Start<NodeOf<D>>,
    path: &[u8],
    flags: OpenFlags,
    permissions: u32,
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    let objects = verbs.objects();
    let opened = names::open(objects, start, path, flags, permissions)?;
    if flags.contains(OpenFlags::TRUNCATE) && !opened.is_new && objects.kind(opened.node) == Kind::Regular {
        truncate_node(verbs, opened.node, 0).inspect_err(|_| objects.give_up(opened.node))?;
    }
    let mode = AccessMode { read: flags.contains(OpenFlags::READ), write: flags.contains(OpenFlags::WRITE) };
    verbs.install(opened.node, mode, options.status, (options.number, options.on_exec))
}

/// Makes a pipe: descriptors to read from and to write to.
///
/// POSIX `pipe`; Linux `do_pipe2`.
pub fn pipe<D: DataVerbs>(verbs: &D, options: DescriptorOptions) -> Result<(u32, u32), Errno> {
    verbs.install_pipe(options.status, (options.number, options.on_exec))
}

/// Another description of what a descriptor leads to, with its mode, in this process or, if the descriptor is another
/// process's, from there (Linux: open of `/proc/PID/fd/N`). The descriptor stays open meanwhile.
pub fn reopen<D: DataVerbs>(verbs: &D, (owner, fd): (&D, u32), options: DescriptorOptions) -> Result<u32, Errno> {
    let description = description(owner, fd)?;
    let node = owner.node(description);
    verbs.objects().take(node);
    verbs.install(node, owner.mode(description), options.status, (options.number, options.on_exec))
}

/// What a pipe's descriptor sees; other objects are always ready (POSIX `poll`).
pub fn poll<D: DataVerbs>(verbs: &D, fd: u32) -> Result<PipeState, Errno> {
    let description = description(verbs, fd)?;
    let node = verbs.node(description);
    match verbs.objects().kind(node) {
        Kind::Pipe => Ok(verbs.pipe_state(node, verbs.pipe_end(description))),
        _ => Ok(PipeState { is_ready: true, other_end_gone: false }),
    }
}

/// Copies bytes that wait in a pipe, without taking them (Linux `tee`).
pub fn peek<D: DataVerbs>(verbs: &D, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
    let node = node(verbs, fd)?;
    if verbs.objects().kind(node) != Kind::Pipe {
        return Err(Errno::EINVAL);
    }
    Ok(verbs.peek_pipe(node, bytes))
}

/// POSIX `close`.
pub fn close<D: DataVerbs>(verbs: &D, fd: u32) -> Result<(), Errno> {
    if verbs.uninstall(fd) { Ok(()) } else { Err(Errno::EBADF) }
}

/// Another descriptor for the same description (POSIX `dup`, and `fcntl` with `F_DUPFD`).
pub fn duplicate<D: DataVerbs>(verbs: &D, fd: u32, number: NumberChoice, on_exec: OnExec) -> Result<u32, Errno> {
    description(verbs, fd)?;
    if matches!(number, NumberChoice::LowestFrom(lowest) if lowest >= DESCRIPTOR_LIMIT) {
        return Err(Errno::EINVAL);
    }
    verbs.duplicate(fd, (number, on_exec))
}

/// Lets a number lead to the same description as another (POSIX `dup2`).
pub fn duplicate_to<D: DataVerbs>(verbs: &D, fd: u32, target: u32, on_exec: OnExec) -> Result<u32, Errno> {
    description(verbs, fd)?;
    if target >= DESCRIPTOR_LIMIT {
        return Err(Errno::EBADF);
    }
    if fd != target {
        verbs.duplicate_to(fd, target, on_exec)?;
    }
    Ok(target)
}

/// Sets whether a descriptor survives `exec` (POSIX `fcntl` with `F_SETFD`).
pub fn set_on_exec<D: DataVerbs>(verbs: &D, fd: u32, on_exec: OnExec) -> Result<(), Errno> {
    verbs.set_on_exec(fd, on_exec).map(drop)
}

/// The flags of a description (POSIX `fcntl` with `F_GETFL`).
pub fn status<D: DataVerbs>(verbs: &D, fd: u32) -> Result<(AccessMode, StatusFlags), Errno> {
    description(verbs, fd).map(|description| (verbs.mode(description), verbs.status(description)))
}

/// Sets the flags of a description (POSIX `fcntl` with `F_SETFL`).
pub fn set_status<D: DataVerbs>(verbs: &D, fd: u32, status: StatusFlags) -> Result<(), Errno> {
    description(verbs, fd).map(|description| verbs.set_status(description, status))
}

/// The object behind a descriptor, for calls that start at one or change one (`openat`, `fchmod`, `fchdir`).
pub fn node<D: DataVerbs>(verbs: &D, fd: u32) -> Result<NodeOf<D>, Errno> {
    description(verbs, fd).map(|description| verbs.node(description))
}

/// The attributes of an object; with fewer than all fields, the paper's `fstatx` (section 4).
///
/// POSIX `fstat`.
pub fn stat<D: DataVerbs>(verbs: &D, fd: u32, fields: Fields) -> Result<Attributes, Errno> {
    Ok(verbs.objects().attributes(node(verbs, fd)?, fields))
}

/// What is read, if it is open for reading.
fn check_read<D: DataVerbs>(verbs: &D, description: D::Description) -> Result<Kind, Errno> {
    if !verbs.mode(description).read {
        return Err(Errno::EBADF);
    }
    Ok(verbs.objects().kind(verbs.node(description)))
}

/// The range that is read of what is no pipe (Linux: `rw_verify_area`, and then `generic_read_dir`).
fn check_read_range(kind: Kind, offset: i64, length: usize) -> Result<(u64, usize), Errno> {
    let range = check_range(offset, length)?;
    if kind == Kind::Directory { Err(Errno::EISDIR) } else { Ok(range) }
}

/// How many bytes a call moves that starts at this offset.
fn check_range(offset: i64, length: usize) -> Result<(u64, usize), Errno> {
    let start = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    if start.checked_add(length as u64).is_none_or(|end| end > MAX_FILE_BYTES) {
        return Err(Errno::EINVAL);
    }
    Ok((start, length.min(MAX_CALL_BYTES)))
}

/// Reads at an offset (POSIX `pread`; Linux `ksys_pread64`: a pipe is told before the mode).
pub fn read_at<D: DataVerbs>(verbs: &D, fd: u32, bytes: &mut [u8], offset: i64) -> Result<usize, Errno> {
    if offset < 0 {
        return Err(Errno::EINVAL);
    }
    let description = description_for(verbs, fd, Use::ReadAt)?;
    let node = verbs.node(description);
    if verbs.objects().kind(node) == Kind::Pipe {
        return Err(Errno::ESPIPE);
    }
    let kind = check_read(verbs, description)?;
    let (offset, length) = check_read_range(kind, offset, bytes.len())?;
    Ok(verbs.read_range(node, offset, &mut bytes[..length]))
}

/// Reads at the descriptor's offset, or out of a pipe; EAGAIN where it would wait.
///
/// POSIX `read`; Linux `ksys_read`.
pub fn read<D: DataVerbs>(verbs: &D, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
    let description = description_for(verbs, fd, Use::Read)?;
    let node = verbs.node(description);
    let kind = check_read(verbs, description)?;
    if kind == Kind::Pipe {
        return verbs.read_pipe(node, bytes);
    }
    let offset = verbs.offset(description);
    check_read_range(kind, offset.bytes as i64, bytes.len())?;
    // At the end, if the offset was still there when the end was seen: nothing is written.
    if bytes.is_empty() || verbs.ends_at(node, offset.bytes) && verbs.offset_stays(description, offset) {
        return Ok(0);
    }
    verbs.move_offset(description, |offset| match check_range(offset as i64, bytes.len()) {
        Err(error) => (offset, Err(error)),
        Ok((start, length)) => {
            let read = verbs.read_range(node, start, &mut bytes[..length]);
            (offset + read as u64, Ok(read))
        }
    })
}

/// Writes to a file at an offset, or at the end if the description says so.
fn write_file<D: DataVerbs>(
    verbs: &D,
    description: D::Description,
    bytes: &[u8],
    offset: i64,
) -> Result<Written, Errno> {
    let (offset, length) = check_range(offset, bytes.len())?;
    if length == 0 {
        // Linux: `generic_write_checks` ends before O_APPEND moves the offset.
        return Ok(Written { offset, length });
    }
    let at = match verbs.status(description).contains(StatusFlags::APPEND) {
        true => WriteAt::End,
        false => WriteAt::Offset(offset),
    };
    let node = verbs.node(description);
    let written = without_set_ids(verbs, node, || Ok(verbs.write_range(node, at, &bytes[..length])))?;
    match written.length {
        // Only an append can start there: other offsets were checked.
        0 if written.offset == MAX_FILE_BYTES => Err(Errno::EFBIG),
        0 => Err(Errno::ENOSPC),
        _ => Ok(written),
    }
}

/// Writes at an offset; on a description with O_APPEND at the end, as Linux does (POSIX `pwrite`).
pub fn write_at<D: DataVerbs>(verbs: &D, fd: u32, bytes: &[u8], offset: i64) -> Result<usize, Errno> {
    if offset < 0 {
        return Err(Errno::EINVAL);
    }
    let description = description_for(verbs, fd, Use::WriteAt)?;
    if verbs.objects().kind(verbs.node(description)) == Kind::Pipe {
        return Err(Errno::ESPIPE);
    }
    if !verbs.mode(description).write {
        return Err(Errno::EBADF);
    }
    write_file(verbs, description, bytes, offset).map(|written| written.length)
}

/// Writes at the descriptor's offset, or into a pipe; EAGAIN where it would wait.
///
/// POSIX `write`; Linux `ksys_write`.
pub fn write<D: DataVerbs>(verbs: &D, fd: u32, bytes: &[u8]) -> Result<usize, Errno> {
    let description = description_for(verbs, fd, Use::Write)?;
    if !verbs.mode(description).write {
        return Err(Errno::EBADF);
    }
    let node = verbs.node(description);
    if verbs.objects().kind(node) == Kind::Pipe {
        return verbs.write_pipe(node, bytes);
    }
    verbs.move_offset(description, |offset| match write_file(verbs, description, bytes, offset as i64) {
        Ok(written) => (written.offset + written.length as u64, Ok(written.length)),
        Err(error) => (offset, Err(error)),
    })
}

/// Moves the descriptor's offset; writes nothing if it is there already (section 6.3: "precede pessimism with
/// optimism").
///
/// POSIX `lseek`; Linux `generic_file_llseek`: EINVAL also where the sum is too large; `offset_dir_llseek` (fs/libfs.c):
/// nobody counts from the end of a directory.
pub fn seek<D: DataVerbs>(verbs: &D, fd: u32, offset: i64, whence: Whence) -> Result<u64, Errno> {
    let description = description(verbs, fd)?;
    let node = verbs.node(description);
    if verbs.objects().kind(node) == Kind::Pipe {
        return Err(Errno::ESPIPE);
    }
    let target = |present: u64| {
        let base = match whence {
            Whence::Start => 0,
            Whence::Current => present as i64,
            Whence::End if verbs.objects().kind(node) == Kind::Regular => verbs.size(node) as i64,
            Whence::End => return Err(Errno::EINVAL),
        };
        let target = base.checked_add(offset).ok_or(Errno::EINVAL)?;
        u64::try_from(target).map_err(|_| Errno::EINVAL)
    };
    // Before the beginning, wherever the offset is: it is not looked at. From the end, no size is asked for.
    if offset < 0 {
        let is_before = match whence {
            Whence::Start => true,
            Whence::Current => false,
            Whence::End => {
                verbs.objects().kind(node) != Kind::Regular || verbs.is_shorter_than(node, offset.unsigned_abs())
            }
        };
        if is_before {
            return Err(Errno::EINVAL);
        }
    }
    let present = verbs.offset(description);
    let seen = target(present.bytes);
    let is_change = seen.is_ok_and(|target| target != present.bytes);
    // If it still is there when the end was seen.
    if !is_change && verbs.offset_stays(description, present) {
        return seen;
    }
    verbs.move_offset(description, |present| match target(present) {
        Ok(target) => (target, Ok(target)),
        Err(error) => (present, Err(error)),
    })
}

fn truncate_node<D: DataVerbs>(verbs: &D, node: NodeOf<D>, size_bytes: u64) -> Result<(), Errno> {
    without_set_ids(verbs, node, || {
        loop {
            match verbs.resize(node, size_bytes) {
                Ok(()) => return Ok(()),
                Err(Refusal::NoSpace) => return Err(Errno::ENOSPC),
                Err(refusal) => start_again(refusal)?,
            }
        }
    })
}

/// Changes a file's data. Set-id bits go before, so that nobody has them together with data of a user, and after: those that
/// came meanwhile were given to the data of before.
fn without_set_ids<D: DataVerbs, T>(
    verbs: &D,
    node: NodeOf<D>,
    change: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    clear_set_ids(verbs.objects(), node)?;
    let changed = change()?;
    let keeps = verbs.objects().credentials().is_superuser();
    if !keeps && !planted("scalefs: set-id bits that come during a write stay") {
        // Pairs with the fence at the end of a change of permissions: one of the two sees what the other has done.
        fence(Ordering::SeqCst);
        clear_set_ids(verbs.objects(), node)?;
    }
    Ok(changed)
}

/// Makes a file longer by a hole, or shorter.
///
/// POSIX `ftruncate`; Linux `do_sys_ftruncate`: EINVAL for what is no file open for writing.
pub fn truncate<D: DataVerbs>(verbs: &D, fd: u32, size_bytes: i64) -> Result<(), Errno> {
    let size_bytes = u64::try_from(size_bytes).map_err(|_| Errno::EINVAL)?;
    let description = description(verbs, fd)?;
    let node = verbs.node(description);
    if verbs.objects().kind(node) != Kind::Regular || !verbs.mode(description).write {
        return Err(Errno::EINVAL);
    }
    truncate_node(verbs, node, size_bytes)
}

/// Makes the file that a path leads to longer by a hole, or shorter.
///
/// POSIX `truncate`; Linux `do_sys_truncate`, `vfs_truncate`: EISDIR for a directory, EINVAL for what else is no file,
/// before permissions.
pub fn truncate_path<D: DataVerbs>(
    verbs: &D,
    start: Start<NodeOf<D>>,
    path: &[u8],
    size_bytes: i64,
) -> Result<(), Errno> {
    let size_bytes = u64::try_from(size_bytes).map_err(|_| Errno::EINVAL)?;
    let objects = verbs.objects();
    let node = resolve(objects, start, path, Follow::Symlinks)?.node;
    match objects.kind(node) {
        Kind::Regular => {}
        Kind::Directory => return Err(Errno::EISDIR),
        _ => return Err(Errno::EINVAL),
    }
    check_permission(objects, node, Need::WRITE)?;
    truncate_node(verbs, node, size_bytes)
}

/// Whether EAGAIN means that the caller wants to wait.
fn wants_to_wait<D: DataVerbs>(verbs: &D, fd: u32, error: Errno) -> bool {
    error == Errno::EAGAIN && status(verbs, fd).is_ok_and(|(_, status)| !status.contains(StatusFlags::NONBLOCK))
}

/// [`read`] that waits until there is something, or the end.
pub fn read_waiting<H: Host>(
    (fs, core, process): (&ScaleFs, &Core<'_>, &Process),
    host: &H,
    fd: u32,
    bytes: &mut [u8],
) -> Result<usize, Errno> {
    for round in 0_u32.. {
        {
            let verbs = fs.enter(core, process, host);
            match read(&verbs, fd, bytes) {
                Err(error) if wants_to_wait(&verbs, fd, error) => {}
                outcome => return outcome,
            }
        }
        host.wait(WaitReason::Pipe, round);
    }
    Err(Errno::EAGAIN)
}

/// [`write`] that waits until all is written.
pub fn write_waiting<H: Host>(
    (fs, core, process): (&ScaleFs, &Core<'_>, &Process),
    host: &H,
    fd: u32,
    bytes: &[u8],
) -> Result<usize, Errno> {
    let mut done = 0;
    for round in 0_u32.. {
        {
            let verbs = fs.enter(core, process, host);
            match write(&verbs, fd, &bytes[done..]) {
                Ok(written) if done + written < bytes.len() && is_pipe(&verbs, fd) => {
                    done += written;
                    if status(&verbs, fd).is_ok_and(|(_, status)| status.contains(StatusFlags::NONBLOCK)) {
                        return Ok(done);
                    }
                }
                Ok(written) => return Ok(done + written),
                Err(error) if wants_to_wait(&verbs, fd, error) => {}
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        host.wait(WaitReason::Pipe, round);
    }
    Ok(done)
}

fn is_pipe<D: DataVerbs>(verbs: &D, fd: u32) -> bool {
    node(verbs, fd).is_ok_and(|node| verbs.objects().kind(node) == Kind::Pipe)
}
