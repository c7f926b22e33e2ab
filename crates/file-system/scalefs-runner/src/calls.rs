//! The calls under test, each a function of its own, so that stacks name it.

use std::convert::Infallible;

use scalefs::attributes::{self, Access};
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::memory;
use scalefs::names::{self, RenameMode};
use scalefs::{
    AccessError, Attributes, Errno, Fields, Follow, InProcess, MemoryOperations, Node, OpenFlags, OpenNode, Protection,
    Start, StatusFlags,
};

use crate::instance::{Actor, Clock};
use crate::memory::Map;

/// Bytes of a page, in which the interfaces count.
pub const PAGE_BYTES: usize = 4096;
const MODE: u32 = 0o644;
/// Relative paths start in the working directory.
pub const AT: Start<Node<'static>> = Start::WorkingDirectory;

/// Begins a call of a process.
#[inline]
pub fn enter(actor: &Actor, process: usize) -> InProcess<'_, Clock> {
    actor.file_system.enter(&actor.core, &actor.processes[process], &actor.clock)
}

/// See [`data::open`].
#[inline(never)]
pub fn open(
    actor: &Actor,
    process: usize,
    path: &[u8],
    flags: OpenFlags,
    options: DescriptorOptions,
) -> Result<u32, Errno> {
    data::open(&enter(actor, process), AT, path, flags, MODE, options)
}

/// See [`names::open`]: what is opened gets no descriptor.
#[inline(never)]
pub fn open_node(actor: &Actor, process: usize, path: &[u8], flags: OpenFlags) -> Result<OpenNode, Errno> {
    names::open(&*enter(actor, process), AT, path, flags, MODE).map(|opened| opened.handle)
}

/// Gives up what [`open_node`] returned.
pub fn close_node(actor: &Actor, process: usize, opened: OpenNode) {
    names::close(&*enter(actor, process), opened);
}

/// See [`data::close`].
#[inline(never)]
pub fn close(actor: &Actor, process: usize, fd: u32) -> Result<(), Errno> {
    data::close(&enter(actor, process), fd)
}

/// See [`names::link`].
#[inline(never)]
pub fn link(actor: &Actor, process: usize, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    names::link(&*enter(actor, process), (AT, old), (AT, new), Follow::Nothing)
}

/// See [`names::unlink`].
#[inline(never)]
pub fn unlink(actor: &Actor, process: usize, path: &[u8]) -> Result<(), Errno> {
    names::unlink(&*enter(actor, process), AT, path)
}

/// See [`names::rename`].
#[inline(never)]
pub fn rename(actor: &Actor, process: usize, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    names::rename(&*enter(actor, process), (AT, old), (AT, new), RenameMode::Replace)
}

/// See [`attributes::stat`].
#[inline(never)]
pub fn stat(actor: &Actor, process: usize, path: &[u8], fields: Fields) -> Result<Attributes, Errno> {
    attributes::stat(&*enter(actor, process), AT, path, Follow::Symlinks, fields)
}

/// See [`attributes::access`].
#[inline(never)]
pub fn access(actor: &Actor, process: usize, path: &[u8]) -> Result<(), Errno> {
    attributes::access(&*enter(actor, process), AT, path, Follow::Symlinks, Access::EXISTS)
}

/// See [`data::stat`].
#[inline(never)]
pub fn fstat(actor: &Actor, process: usize, fd: u32, fields: Fields) -> Result<Attributes, Errno> {
    data::stat(&enter(actor, process), fd, fields)
}

/// See [`data::seek`].
#[inline(never)]
pub fn lseek(actor: &Actor, process: usize, fd: u32, offset: i64, whence: Whence) -> Result<u64, Errno> {
    data::seek(&enter(actor, process), fd, offset, whence)
}

/// See [`data::pipe`]; the pipe does not make its callers wait.
#[inline(never)]
pub fn pipe(actor: &Actor, process: usize, options: DescriptorOptions) -> Result<(u32, u32), Errno> {
    data::pipe(&enter(actor, process), DescriptorOptions { status: StatusFlags::NONBLOCK, ..options })
}

/// See [`data::read`].
#[inline(never)]
pub fn read(actor: &Actor, process: usize, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
    data::read(&enter(actor, process), fd, bytes)
}

/// See [`data::write`].
#[inline(never)]
pub fn write(actor: &Actor, process: usize, fd: u32, bytes: &[u8]) -> Result<usize, Errno> {
    data::write(&enter(actor, process), fd, bytes)
}

/// See [`data::read_at`].
#[inline(never)]
pub fn pread(actor: &Actor, process: usize, fd: u32, bytes: &mut [u8], offset: i64) -> Result<usize, Errno> {
    data::read_at(&enter(actor, process), fd, bytes, offset)
}

/// See [`data::write_at`].
#[inline(never)]
pub fn pwrite(actor: &Actor, process: usize, fd: u32, bytes: &[u8], offset: i64) -> Result<usize, Errno> {
    data::write_at(&enter(actor, process), fd, bytes, offset)
}

/// See [`memory::map`]: one page.
#[inline(never)]
pub fn mmap(actor: &Actor, process: usize, map: Map) -> Result<u64, Errno> {
    memory::map(&enter(actor, process), map.address, PAGE_BYTES as u64, map.protection, map.object)
}

/// See [`memory::unmap`]: one page.
#[inline(never)]
pub fn munmap(actor: &Actor, process: usize, address: u64) -> Result<(), Errno> {
    memory::unmap(&enter(actor, process), address, PAGE_BYTES as u64)
}

/// See [`memory::protect`]: one page.
#[inline(never)]
pub fn mprotect(actor: &Actor, process: usize, address: u64, protection: Protection) -> Result<(), Errno> {
    memory::protect(&enter(actor, process), address, PAGE_BYTES as u64, protection)
}

/// The byte at an address of the process.
#[inline(never)]
pub fn memread(actor: &Actor, process: usize, address: u64) -> Result<u8, AccessError<Infallible>> {
    let mut byte = [0];
    enter(actor, process).load(address, &mut byte)?;
    Ok(byte[0])
}

/// Stores bytes at an address of the process.
#[inline(never)]
pub fn memwrite(actor: &Actor, process: usize, address: u64, bytes: &[u8]) -> Result<(), AccessError<Infallible>> {
    enter(actor, process).store(address, bytes)
}

/// What is done between windows.
pub fn maintain(actor: &Actor, idle_cores_too: bool) {
    if idle_cores_too {
        actor.file_system.maintain_with_idle_cores(&actor.core, &actor.clock);
    } else {
        actor.file_system.maintain(&actor.core, &actor.clock);
    }
}
