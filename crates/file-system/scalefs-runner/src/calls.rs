//! The calls under test, each a function of its own, so that stacks name it.

use posix_calls::attributes::{self, Access};
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::directories;
use posix_calls::memory;
use posix_calls::names::{self, RenameMode};
use posix_calls::{
    AccessError, AccessMode, Attributes, DataOperations, Errno, Fields, Follow, MemoryOperations, NumberChoice,
    ObjectOperations, OnExec, OpenFlags, ProcessNumber, Protection, Start, StatusFlags,
};

use posix_calls::memory::{Address, MappedObject};

use crate::subject::Subject;
use crate::values::PAGE_BYTES;

/// What the mask of a process leaves of it is 0644, but where users share files.
const MODE: u32 = 0o666;

/// What `mmap` is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Map {
    pub address: Address,
    pub protection: Protection,
    pub object: MappedObject,
}

/// See [`data::open`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn open<D: DataOperations>(
    process: &D,
    path: &[u8],
    flags: OpenFlags,
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    data::open(process, Start::WorkingDirectory, path, flags, MODE, options)
}

/// See [`names::open`]: what is opened gets no descriptor.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn open_node<V: ObjectOperations>(objects: &V, path: &[u8], flags: OpenFlags) -> Result<V::Handle, Errno> {
    names::open(objects, Start::WorkingDirectory, path, flags, MODE).map(|opened| opened.handle)
}

/// Gives up what [`open_node`] returned.
pub fn close_node<V: ObjectOperations>(objects: &V, opened: V::Handle) {
    names::close(objects, opened);
}

/// See [`data::close`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn close<D: DataOperations>(process: &D, fd: u32) -> Result<(), Errno> {
    data::close(process, fd)
}

/// See [`names::link`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn link<V: ObjectOperations>(objects: &V, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    names::link(objects, (Start::WorkingDirectory, old), (Start::WorkingDirectory, new), Follow::Nothing)
}

/// See [`names::unlink`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn unlink<V: ObjectOperations>(objects: &V, path: &[u8]) -> Result<(), Errno> {
    names::unlink(objects, Start::WorkingDirectory, path)
}

/// See [`names::rename`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn rename<V: ObjectOperations>(objects: &V, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    names::rename(objects, (Start::WorkingDirectory, old), (Start::WorkingDirectory, new), RenameMode::Replace)
}

/// See [`attributes::stat`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn stat<V: ObjectOperations>(objects: &V, path: &[u8], fields: Fields) -> Result<Attributes, Errno> {
    attributes::stat(objects, Start::WorkingDirectory, path, Follow::Symlinks, fields)
}

/// See [`attributes::stat`]; a symbolic link is not followed.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn lstat<V: ObjectOperations>(objects: &V, path: &[u8], fields: Fields) -> Result<Attributes, Errno> {
    attributes::stat(objects, Start::WorkingDirectory, path, Follow::Nothing, fields)
}

/// See [`directories::make_directory`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn mkdir<V: ObjectOperations>(objects: &V, path: &[u8]) -> Result<(), Errno> {
    directories::make_directory(objects, Start::WorkingDirectory, path, 0o777)
}

/// See [`directories::remove_directory`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn rmdir<V: ObjectOperations>(objects: &V, path: &[u8]) -> Result<(), Errno> {
    directories::remove_directory(objects, Start::WorkingDirectory, path)
}

/// See [`names::symlink`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn symlink<V: ObjectOperations>(objects: &V, target: &[u8], path: &[u8]) -> Result<(), Errno> {
    names::symlink(objects, target, Start::WorkingDirectory, path)
}

/// See [`names::read_link`]; returns how many bytes of the page the target has.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn readlink<V: ObjectOperations>(objects: &V, path: &[u8], page: &mut [u8; PAGE_BYTES]) -> Result<usize, Errno> {
    let target = names::read_link(objects, Start::WorkingDirectory, path)?;
    let target = target.as_ref();
    let length = target.len().min(PAGE_BYTES);
    page[..length].copy_from_slice(&target[..length]);
    Ok(length)
}

/// See [`attributes::access`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn access<V: ObjectOperations>(objects: &V, path: &[u8]) -> Result<(), Errno> {
    attributes::access(objects, Start::WorkingDirectory, path, Follow::Symlinks, Access::EXISTS)
}

/// See [`attributes::access`]: whether the caller may write.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn may_write<V: ObjectOperations>(objects: &V, path: &[u8]) -> Result<(), Errno> {
    let write = Access { write: true, ..Access::EXISTS };
    attributes::access(objects, Start::WorkingDirectory, path, Follow::Symlinks, write)
}

/// See [`attributes::change_mode`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn chmod<V: ObjectOperations>(objects: &V, path: &[u8], mode: u32) -> Result<(), Errno> {
    attributes::change_mode(objects, Start::WorkingDirectory, path, mode)
}

/// See [`attributes::change_owner`]: of the user alone.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn chown<V: ObjectOperations>(objects: &V, path: &[u8], user: u32) -> Result<(), Errno> {
    attributes::change_owner(objects, Start::WorkingDirectory, path, Follow::Symlinks, (Some(user), None))
}

/// See [`attributes::set_times`]: both to the present.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn utimensat<V: ObjectOperations>(objects: &V, path: &[u8]) -> Result<(), Errno> {
    let now = attributes::NewTime::Now;
    attributes::set_times(objects, Start::WorkingDirectory, path, Follow::Symlinks, (now, now))
}

/// See [`data::truncate_path`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn truncate<D: DataOperations>(process: &D, path: &[u8], size_bytes: i64) -> Result<(), Errno> {
    data::truncate_path(process, Start::WorkingDirectory, path, size_bytes)
}

/// See [`data::truncate`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn ftruncate<D: DataOperations>(process: &D, fd: u32, size_bytes: i64) -> Result<(), Errno> {
    data::truncate(process, fd, size_bytes)
}

/// See [`data::duplicate`]: the lowest free number.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn dup<D: DataOperations>(process: &D, fd: u32) -> Result<u32, Errno> {
    data::duplicate(process, fd, NumberChoice::LowestFrom(0), OnExec::Keep)
}

/// See [`data::duplicate_to`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn dup2<D: DataOperations>(process: &D, fd: u32, target: u32) -> Result<u32, Errno> {
    data::duplicate_to(process, fd, target, OnExec::Keep)
}

/// See [`data::on_exec`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn getfd<D: DataOperations>(process: &D, fd: u32) -> Result<OnExec, Errno> {
    data::on_exec(process, fd)
}

/// See [`data::set_on_exec`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn setfd<D: DataOperations>(process: &D, fd: u32, on_exec: OnExec) -> Result<(), Errno> {
    data::set_on_exec(process, fd, on_exec)
}

/// See [`data::status`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn getfl<D: DataOperations>(process: &D, fd: u32) -> Result<(AccessMode, StatusFlags), Errno> {
    data::status(process, fd)
}

/// See [`data::set_status`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn setfl<D: DataOperations>(process: &D, fd: u32, status: StatusFlags) -> Result<(), Errno> {
    data::set_status(process, fd, status)
}

/// See [`data::ready`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn poll<D: DataOperations>(process: &D, fd: u32) -> Result<data::Ready, Errno> {
    data::ready(process, fd)
}

/// See [`data::synchronize`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn fsync<D: DataOperations>(process: &D, fd: u32) -> Result<(), Errno> {
    data::synchronize(process, fd)
}

/// A [`data::read`] into two buffers of a page each, which lie one after the other: so it is a read of two pages.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn readv<D: DataOperations>(process: &D, fd: u32, pages: &mut [[u8; PAGE_BYTES]; 2]) -> Result<usize, Errno> {
    data::read(process, fd, pages.as_flattened_mut())
}

/// A [`data::write`] of two buffers, as [`readv`] has them.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn writev<D: DataOperations>(process: &D, fd: u32, pages: &[[u8; PAGE_BYTES]; 2]) -> Result<usize, Errno> {
    data::write(process, fd, pages.as_flattened())
}

/// The number of a process.
#[inline(never)]
pub fn getpid<S: Subject>(actor: &S, process: usize) -> ProcessNumber {
    actor.number_of(process)
}

/// See [`memory::synchronize`]: one page.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn msync<S: Subject>(actor: &S, process: usize, address: u64) -> Result<(), Errno> {
    memory::synchronize(&actor.enter(process), address, PAGE_BYTES as u64)
}

/// See [`memory::discard`]: one page.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn madvise<S: Subject>(actor: &S, process: usize, address: u64) -> Result<(), Errno> {
    memory::discard(&actor.enter(process), address, PAGE_BYTES as u64)
}

/// See [`data::stat`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn fstat<D: DataOperations>(process: &D, fd: u32, fields: Fields) -> Result<Attributes, Errno> {
    data::stat(process, fd, fields)
}

/// See [`data::seek`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn lseek<D: DataOperations>(process: &D, fd: u32, offset: i64, whence: Whence) -> Result<u64, Errno> {
    data::seek(process, fd, offset, whence)
}

/// See [`data::pipe`]; the pipe does not make its callers wait.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn pipe<D: DataOperations>(process: &D, options: DescriptorOptions) -> Result<(u32, u32), Errno> {
    data::pipe(process, DescriptorOptions { status: StatusFlags::NONBLOCK, ..options })
}

/// See [`data::read`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn read<D: DataOperations>(process: &D, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
    data::read(process, fd, bytes)
}

/// See [`data::write`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn write<D: DataOperations>(process: &D, fd: u32, bytes: &[u8]) -> Result<usize, Errno> {
    data::write(process, fd, bytes)
}

/// See [`data::read_at`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn pread<D: DataOperations>(process: &D, fd: u32, bytes: &mut [u8], offset: i64) -> Result<usize, Errno> {
    data::read_at(process, fd, bytes, offset)
}

/// See [`data::write_at`].
///
/// # Errors
/// As there.
#[inline(never)]
pub fn pwrite<D: DataOperations>(process: &D, fd: u32, bytes: &[u8], offset: i64) -> Result<usize, Errno> {
    data::write_at(process, fd, bytes, offset)
}

/// See [`memory::map`]: one page.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn mmap<S: Subject>(actor: &S, process: usize, map: Map) -> Result<u64, Errno> {
    memory::map(&actor.enter(process), map.address, PAGE_BYTES as u64, map.protection, map.object)
}

/// See [`memory::unmap`]: one page.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn munmap<S: Subject>(actor: &S, process: usize, address: u64) -> Result<(), Errno> {
    memory::unmap(&actor.enter(process), address, PAGE_BYTES as u64)
}

/// See [`memory::protect`]: one page.
///
/// # Errors
/// As there.
#[inline(never)]
pub fn mprotect<S: Subject>(actor: &S, process: usize, address: u64, protection: Protection) -> Result<(), Errno> {
    memory::protect(&actor.enter(process), address, PAGE_BYTES as u64, protection)
}

/// The byte at an address of the process.
///
/// # Errors
/// [`AccessError`] where it cannot be loaded from.
#[inline(never)]
pub fn memread<S: Subject>(actor: &S, process: usize, address: u64) -> Result<u8, AccessError<S::Fault>> {
    let mut byte = [0];
    actor.enter(process).load(address, &mut byte)?;
    Ok(byte[0])
}

/// Stores bytes at an address of the process.
///
/// # Errors
/// [`AccessError`] where it cannot be stored to.
#[inline(never)]
pub fn memwrite<S: Subject>(
    actor: &S,
    process: usize,
    address: u64,
    bytes: &[u8],
) -> Result<(), AccessError<S::Fault>> {
    actor.enter(process).store(address, bytes)
}
