//! Attributes, kinds, times and errors, as the kernel's protocol has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, Generation, INodeNo, TimeOrNow};
use scalefs::attributes::NewTime;
use scalefs::{Errno, Kind, ObjectOperations};

use super::view::{Look, NodeOf, View};

/// Objects have a number for good, so there is one generation of each.
pub(super) const GENERATION: Generation = Generation(0);
/// Bytes of the blocks that `stat` counts in.
const BLOCK_BYTES: u64 = 512;
/// Bytes of a page, the unit in which data take room.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The kernel's word for an error.
pub(super) fn errno(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.number())
}

/// The kernel's word for a kind, by the bits of `st_mode` that tell it.
pub(super) fn file_type(kind: Kind) -> FileType {
    match kind.mode_bits() {
        0o010_000 => FileType::NamedPipe,
        0o020_000 => FileType::CharDevice,
        0o040_000 => FileType::Directory,
        0o060_000 => FileType::BlockDevice,
        0o120_000 => FileType::Symlink,
        0o140_000 => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

/// What a mode of `mknod` makes: without bits of a kind, a file.
pub(super) fn kind_of(mode: u32) -> Option<Kind> {
    const KIND_BITS: u32 = 0o170_000;
    let kinds = [Kind::Regular, Kind::NamedPipe, Kind::NamedSocket, Kind::CharacterDevice, Kind::BlockDevice];
    match mode & KIND_BITS {
        0 => Some(Kind::Regular),
        bits => kinds.into_iter().find(|kind| kind.mode_bits() == bits),
    }
}

fn time(time_ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(time_ns.unsigned_abs());
    if time_ns < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

/// What becomes of a time by `setattr`.
pub(super) fn new_time(time: Option<TimeOrNow>) -> NewTime {
    let ns = |distance: Duration| i64::try_from(distance.as_nanos()).unwrap_or(i64::MAX);
    match time {
        None => NewTime::Same,
        Some(TimeOrNow::Now) => NewTime::Now,
        Some(TimeOrNow::SpecificTime(time)) => NewTime::At(match time.duration_since(UNIX_EPOCH) {
            Ok(since) => ns(since),
            // `fuser` 0.18.0 takes the nanoseconds off where the protocol adds them.
            Err(before) => {
                let distance = before.duration();
                let nanoseconds = i64::from(distance.subsec_nanos());
                nanoseconds.saturating_sub(ns(Duration::from_secs(distance.as_secs())))
            }
        }),
    }
}

/// What `stat` tells. The numbers of the root and of inodes are those of the instance: the root's is the kernel's, too.
pub(super) fn file_attributes<'v, 'c, V: View>(
    objects: &'v V::Objects<'c>,
    node: NodeOf<'v, 'c, V>,
    look: Look,
) -> Result<FileAttr, Errno> {
    let attributes = V::attributes(objects, node, look)?;
    let device = if attributes.kind.is_device() { objects.device(node)? } else { 0 };
    Ok(FileAttr {
        ino: INodeNo(attributes.number.0),
        size: attributes.size_bytes,
        blocks: attributes.size_bytes.div_ceil(PAGE_BYTES) * (PAGE_BYTES / BLOCK_BYTES),
        atime: time(attributes.accessed_ns),
        mtime: time(attributes.modified_ns),
        ctime: time(attributes.changed_ns),
        crtime: UNIX_EPOCH,
        kind: file_type(attributes.kind),
        perm: (attributes.mode & 0o7777) as u16,
        nlink: attributes.link_count,
        uid: attributes.user,
        gid: attributes.group,
        // The protocol's form, in which `make_node` has got it.
        rdev: device as u32,
        blksize: PAGE_BYTES as u32,
        flags: 0,
    })
}

/// What the kernel takes for a name that is not there, and may remember.
pub(super) fn absent() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}
