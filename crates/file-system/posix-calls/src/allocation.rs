//! Room for a file's bytes before they are written, and room that is given back: `fallocate`.
//!
//! ```text
//! mode 0                      pages are there, the file is as long as they reach    reserve
//! KEEP_SIZE                   pages are there, as far as the file goes              reserve
//! KEEP_SIZE | PUNCH_HOLE      zeros, and whole pages are free                       punch
//! ```
//! Other modes are EOPNOTSUPP, as on Linux's tmpfs. Behind the end of a file nothing is kept for it: where Linux takes pages for
//! KEEP_SIZE there, a later write looks for them.

use core::ops::Range;

use sync::mutant::planted;

use crate::attributes::drop_set_ids;
use crate::data::{description, is_handle, without_set_ids};
use crate::data_operations::{DataOperations, NodeOf};
use crate::descriptors::Sought;
use crate::errno::Errno;
use crate::fault::{OperationError, start_again};
use crate::kind::Kind;
use crate::object_operations::{ObjectOperations, Outcome};

/// A bit of [`change`]'s mode: the file stays as long as it is (FALLOC_FL_KEEP_SIZE).
pub const KEEP_SIZE: u32 = 1;
/// A bit of [`change`]'s mode: the bytes become zeros, and pages are given back (FALLOC_FL_PUNCH_HOLE).
pub const PUNCH_HOLE: u32 = 2;
const PUNCH: u32 = KEEP_SIZE | PUNCH_HOLE;
/// Modes that some file system of Linux has (`FALLOC_FL_MODE_MASK`): to collapse, zero, insert, unshare a range, and to write zeros.
const ELSEWHERE: [u32; 7] = [0x08, 0x10, 0x11, 0x20, 0x40, 0x41, 0x80];

/// What one call of a process does to the room of files.
pub trait AllocationOperations: DataOperations {
    /// Lets a file have a page for each byte of a range, as far as it goes; first it becomes as long as the range reaches, if it
    /// `grows`. Marks the time of modification.
    ///
    /// # Errors
    /// `NoSpace` where there are fewer pages than that takes, and nothing has changed, unless others take them at the same time; or
    /// the implementation's fault.
    fn reserve(&self, file: NodeOf<'_, Self>, bytes: Range<u64>, grows: bool) -> Outcome<(), Self::Objects>;

    /// Lets the bytes of a range be zeros, as far as the file goes, and gives pages of which it has all back. Atomic per page. Marks
    /// the time of modification.
    ///
    /// # Errors
    /// `NoSpace` without memory; or the implementation's fault.
    fn punch(&self, file: NodeOf<'_, Self>, bytes: Range<u64>) -> Outcome<(), Self::Objects>;
}

/// Makes an operation until it is done, or refused for good.
fn done<D: DataOperations>(mut operation: impl FnMut() -> Outcome<(), D::Objects>) -> Result<(), Errno> {
    loop {
        match operation() {
            Ok(()) => return Ok(()),
            Err(OperationError::NoSpace) => return Err(Errno::ENOSPC),
            Err(refusal) => start_again(refusal)?,
        }
    }
}

/// Takes room for `length` bytes of a file from `offset` on, or gives it back, as the bits of `mode` say.
///
/// Linux `fallocate`, `vfs_fallocate`, `shmem_fallocate`; with mode 0 POSIX `posix_fallocate`.
///
/// # Errors
/// EBADF if the descriptor is not open, or not for writing; EINVAL for a negative offset and for no bytes; EOPNOTSUPP for another mode;
/// ESPIPE for a pipe, ENODEV for what else is no file; EFBIG beyond the largest offset; ENOSPC.
pub fn change<D: AllocationOperations>(
    process: &D,
    fd: u32,
    mode: u32,
    (offset, length): (i64, i64),
) -> Result<(), Errno> {
    let found = description(process, fd)?;
    if is_handle(process, found)? {
        return Err(Errno::EBADF);
    }
    if offset < 0 || length <= 0 {
        return Err(Errno::EINVAL);
    }
    // What no file system has is told before the descriptor is looked at.
    if !matches!(mode, 0 | KEEP_SIZE | PUNCH) && !ELSEWHERE.contains(&mode) {
        return Err(Errno::EOPNOTSUPP);
    }
    if !process.mode(found).write && !planted("calls: any descriptor takes room") {
        return Err(Errno::EBADF);
    }
    let (objects, node) = (process.objects(), process.node(found));
    match objects.kind(node) {
        Kind::Regular => {}
        Kind::Pipe => return Err(Errno::ESPIPE),
        _ => return Err(Errno::ENODEV),
    }
    let end = offset.checked_add(length).ok_or(Errno::EFBIG)?;
    let bytes = || offset as u64..end as u64;
    match mode {
        0 | KEEP_SIZE => {
            done::<D>(|| process.reserve(node, bytes(), mode == 0))?;
            drop_set_ids(objects, node, || objects.permissions_after_change(node))
        }
        PUNCH => without_set_ids(process, node, || done::<D>(|| process.punch(node, bytes()))),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

/// How many bytes of room a file's data take: those of pages that are there. Zeros that were written into a hole take none. What
/// others write or cut meanwhile counts or not. Looks at each page, so it is for who asks.
///
/// POSIX.1-2024 `st_blocks`, which counts them by 512; Linux `shmem_inode_info`'s `alloced`.
///
/// # Errors
/// The implementation's fault alone. What is no file takes no room.
pub fn occupied_bytes<'v, D: DataOperations>(process: &'v D, file: NodeOf<'v, D>) -> Result<u64, Errno> {
    if process.objects().kind(file) != Kind::Regular {
        return Ok(0);
    }
    let size = process.size(file)?;
    let (mut at, mut occupied) = (0, 0);
    while at < size {
        let extent = process.extent(file, at)?;
        if extent.kind == Sought::Data {
            occupied += extent.end - at;
        }
        at = extent.end;
    }
    Ok(occupied)
}
