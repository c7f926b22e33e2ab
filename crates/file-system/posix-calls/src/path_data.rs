//! Data of files by path: what `open`, one call on data and `close` do together, for callers that want no descriptor.

use crate::data::{MAX_FILE_BYTES, truncate_opened, without_set_ids};
use crate::data_operations::{DataOperations, HandleOf, NodeOf, WriteAt};
use crate::errno::Errno;
use crate::kind::Kind;
use crate::names::{self, OpenFlags};
use crate::object_operations::ObjectOperations;
use crate::walk::Start;

/// Only files have data that stay.
fn check_file<D: DataOperations>(process: &D, opened: &HandleOf<D>) -> Result<(), Errno> {
    let objects = process.objects();
    match objects.kind(objects.held(opened)) {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(Errno::EISDIR),
        _ => Err(Errno::EINVAL),
    }
}

/// Reads from an offset of what a path leads to; fewer bytes than there is room for at the end alone.
///
/// POSIX `open`, `pread`, `close`.
///
/// # Errors
/// As [`names::open`]; EISDIR, EINVAL for what else is no file.
pub fn read_path<'v, D: DataOperations>(
    process: &'v D,
    start: Start<NodeOf<'v, D>>,
    path: &[u8],
    offset: u64,
    bytes: &mut [u8],
) -> Result<usize, Errno> {
    let objects = process.objects();
    let opened = names::open(objects, start, path, OpenFlags::READ, 0)?.handle;
    let read = check_file(process, &opened)
        .and_then(|()| process.read_range(objects.held(&opened), offset, bytes).map_err(Errno::from));
    objects.release(opened);
    read
}

/// Writes to what a path leads to, made and cut as the flags say; at least one byte of those given, if there are any.
///
/// POSIX `open`, `pwrite`, `close`.
///
/// # Errors
/// As [`names::open`]; EISDIR, EINVAL for what else is no file, EFBIG, ENOSPC.
pub fn write_path<'v, D: DataOperations>(
    process: &'v D,
    start: Start<NodeOf<'v, D>>,
    path: &[u8],
    (flags, permissions): (OpenFlags, u32),
    at: WriteAt,
    bytes: &[u8],
) -> Result<usize, Errno> {
    let objects = process.objects();
    let opened = names::open(objects, start, path, flags | OpenFlags::WRITE, permissions)?;
    let written =
        write_opened(process, &opened.handle, flags.contains(OpenFlags::TRUNCATE) && !opened.is_new, at, bytes);
    objects.release(opened.handle);
    written
}

fn write_opened<D: DataOperations>(
    process: &D,
    opened: &HandleOf<D>,
    truncates: bool,
    at: WriteAt,
    bytes: &[u8],
) -> Result<usize, Errno> {
    check_file(process, opened)?;
    if truncates {
        truncate_opened(process, opened)?;
    }
    if bytes.is_empty() {
        return Ok(0);
    }
    let file = process.objects().held(opened);
    let is_full = match at {
        WriteAt::Offset(offset) => offset >= MAX_FILE_BYTES,
        WriteAt::End => !process.is_shorter_than(file, MAX_FILE_BYTES)?,
    };
    if is_full {
        return Err(Errno::EFBIG);
    }
    match without_set_ids(process, file, || Ok(process.write_range(file, at, bytes)?))?.length {
        0 => Err(Errno::ENOSPC),
        written => Ok(written),
    }
}
