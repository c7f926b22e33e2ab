//! Calls on an object by what is held of it, without a name: a descriptor that only stands for an object (Linux O_PATH), files
//! that no name leads to yet (O_TMPFILE), and names that are made for either (linkat with AT_EMPTY_PATH).
//!
//! A descriptor that only stands for an object asks for no right to it, and lets nobody read, write or change it: EBADF. It is for
//! `fstat`, `fchdir`, `openat` and its like, `dup` and `close`; it may stand for a symbolic link, or for what lies outside.
//! `lseek` on one moves an offset that nobody uses, where Linux says EBADF.

use crate::data::{DescriptorOptions, description, is_handle};
use crate::data_operations::{DataOperations, NodeOf};
use crate::descriptors::{AccessMode, StatusFlags};
use crate::errno::Errno;
use crate::fault::{OperationError, start_again};
use crate::kind::Kind;
use crate::name_changes::{Decision, Moment, NameChange, NameChanges, Touched};
use crate::names::{OpenFlags, initial_permissions, new_link};
use crate::object_operations::{NewObject, ObjectOperations};
use crate::rights::Need;
use crate::walk::{Follow, Start, check_permission, resolve};

/// A descriptor that only stands for what a path leads to. Of the flags, DIRECTORY and NO_FOLLOW say something.
///
/// Linux `open` with O_PATH.
///
/// # Errors
/// ENOTDIR if it is to be a directory; EMFILE, ENOMEM; those of walking a path.
pub fn open_handle<'v, D: DataOperations>(
    process: &'v D,
    start: Start<NodeOf<'v, D>>,
    path: &[u8],
    flags: OpenFlags,
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    let objects = process.objects();
    let follow = if flags.contains(OpenFlags::NO_FOLLOW) { Follow::Nothing } else { Follow::Symlinks };
    let node = resolve(objects, start, path, follow)?.node;
    if flags.contains(OpenFlags::DIRECTORY) && objects.kind(node) != Kind::Directory {
        return Err(Errno::ENOTDIR);
    }
    let mode = AccessMode { read: false, write: false };
    process.install(objects.retain(node)?, mode, StatusFlags::HANDLE, (options.number, options.on_exec))
}

/// A descriptor of what is to be executed: it is read by it, whoever may read the file else.
///
/// Linux `do_open_execat`, `may_open`.
///
/// # Errors
/// EACCES unless it is a regular file that the caller may execute; EMFILE, ENOMEM; those of walking a path.
pub fn open_program<'v, D: DataOperations>(
    process: &'v D,
    start: Start<NodeOf<'v, D>>,
    path: &[u8],
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    open_program_at(process, resolve(process.objects(), start, path, Follow::Symlinks)?.node, options)
}

/// As [`open_program`], of what a descriptor leads to, for whatever it was opened (Linux `execveat` with AT_EMPTY_PATH).
///
/// # Errors
/// EBADF if it is not open; as [`open_program`].
pub fn open_program_of<D: DataOperations>(process: &D, fd: u32, options: DescriptorOptions) -> Result<u32, Errno> {
    open_program_at(process, process.node(description(process, fd)?), options)
}

fn open_program_at<'v, D: DataOperations>(
    process: &'v D,
    node: NodeOf<'v, D>,
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    let objects = process.objects();
    if objects.kind(node) != Kind::Regular {
        return Err(Errno::EACCES);
    }
    check_permission(objects, node, Need::SEARCH)?;
    let mode = AccessMode { read: true, write: false };
    process.install(objects.retain(node)?, mode, options.status, (options.number, options.on_exec))
}

/// The object behind a descriptor, for calls that change it (`fchmod`, `fchown`, `futimens`).
///
/// # Errors
/// EBADF if the descriptor is not open, or only stands for the object.
pub fn node_to_change<'v, D: DataOperations>(process: &'v D, fd: u32) -> Result<NodeOf<'v, D>, Errno> {
    let description = description(process, fd)?;
    if is_handle(process, description)? { Err(Errno::EBADF) } else { Ok(process.node(description)) }
}

/// What the symbolic link leads to that a descriptor stands for.
///
/// Linux `readlinkat` of no path: ENOENT for what is no symbolic link.
///
/// # Errors
/// EBADF if the descriptor is not open, ENOENT.
pub fn read_link_of<D: DataOperations>(
    process: &D,
    fd: u32,
) -> Result<<D::Objects as ObjectOperations>::LinkTarget<'_>, Errno> {
    let (objects, node) = (process.objects(), process.node(description(process, fd)?));
    if objects.kind(node) == Kind::Symlink { Ok(objects.link_target(node)?) } else { Err(Errno::ENOENT) }
}

/// A new file that no name leads to, open for writing, in the directory to which a path leads: its bytes go with its last
/// descriptor, unless [`link_object`] gives it a name.
///
/// Linux `open` with O_TMPFILE, `do_tmpfile`, `vfs_tmpfile`.
///
/// # Errors
/// EINVAL unless it is opened for writing, or with other flags; ENOTDIR, EACCES without the right to make names there, ENOENT in a
/// removed directory; EMFILE, ENOMEM, ENOSPC; those of walking a path.
pub fn open_temporary<'v, D: DataOperations<Objects: NameChanges>>(
    process: &'v D,
    start: Start<NodeOf<'v, D>>,
    path: &[u8],
    flags: OpenFlags,
    permissions: u32,
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    let objects = process.objects();
    let allowed = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::DIRECTORY | OpenFlags::NO_FOLLOW;
    if !flags.contains(OpenFlags::WRITE) || !allowed.contains(flags) {
        return Err(Errno::EINVAL);
    }
    let follow = if flags.contains(OpenFlags::NO_FOLLOW) { Follow::Nothing } else { Follow::Symlinks };
    let directory = resolve(objects, start, path, follow)?.node;
    if objects.kind(directory) != Kind::Directory {
        return Err(Errno::ENOTDIR);
    }
    check_permission(objects, directory, Need::CHANGE_NAMES)?;
    if objects.is_removed(directory)? {
        return Err(Errno::ENOENT);
    }
    let mode = permissions & 0o7777 & !objects.umask();
    let permissions = initial_permissions(objects, directory, Kind::Regular, mode)?;
    let made = objects.make(directory, NewObject::File, permissions);
    let made = match made {
        Ok(made) => made,
        Err(refusal) => return Err(start_again(refusal).err().unwrap_or(Errno::ENOSPC)),
    };
    let mode = AccessMode { read: flags.contains(OpenFlags::READ), write: true };
    process.install(made, mode, options.status, (options.number, options.on_exec))
}

/// Makes a further name of something that was found, for who has not found it by a name.
///
/// Linux `vfs_link`: EPERM for a directory.
///
/// # Errors
/// EEXIST, EPERM, ENOENT, EACCES, ENOSPC; those of walking a path.
pub fn link_found<'v, V: ObjectOperations>(
    objects: &'v V,
    found: &V::Found<'v>,
    new: (Start<V::Node<'v>>, &[u8]),
) -> Result<(), Errno> {
    loop {
        let (directory, key) = new_link(objects, new)?;
        if objects.kind(objects.node(found)) == Kind::Directory {
            return Err(Errno::EPERM);
        }
        match objects.add_link(directory, &key, found) {
            Ok(()) => return Ok(()),
            Err(refusal) => start_again(refusal)?,
        }
    }
}

/// Makes a name of an object that the caller holds: one that has names, or never had one.
///
/// Linux `linkat` with AT_EMPTY_PATH, `vfs_link`, whose right to do so is that the caller has the descriptor: EPERM for a
/// directory; ENOENT for what has lost its last name.
///
/// # Errors
/// EEXIST, EPERM, EXDEV for a pipe or socket without a name, ENOENT, EACCES, ENOSPC; those of walking a path.
pub fn link_object<'v, V: NameChanges>(
    objects: &'v V,
    node: V::Node<'v>,
    new: (Start<V::Node<'v>>, &[u8]),
) -> Result<(), Errno> {
    loop {
        let (directory, key) = new_link(objects, new)?;
        match objects.kind(node) {
            Kind::Directory => return Err(Errno::EPERM),
            // They are of no directory, as if of another file system.
            Kind::Pipe | Kind::Socket => return Err(Errno::EXDEV),
            _ => {}
        }
        let changes = [NameChange { directory, key: &key, before: None, after: Some(node) }];
        let touched = [(directory, Touched::Data), (node, Touched::Status)];
        let mut room = [V::Room::default()];
        match objects.prepare(&changes, Moment { now_ns: objects.now_ns(), touched: &touched }, &mut room) {
            Ok(prepared) => return Ok(objects.finish(prepared, Decision::Commit)?),
            // It waits for nothing else that could have changed.
            Err(OperationError::Changed) => return Err(Errno::ENOENT),
            Err(refusal) => start_again(refusal)?,
        }
    }
}
