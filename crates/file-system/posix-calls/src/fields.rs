//! What `stat` tells, and which of it a caller wants (`fstatx`, section 4 of the paper).

use crate::kind::{InodeNumber, Kind};

bitflags::bitflags! {
    /// Which attributes a caller wants. What is not wanted is not read, so that it cannot conflict with its changes: the
    /// link count and the times cost a look at every core.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Fields: u32 {
        /// Permission bits, owner, group, and time of last access.
        const PERMISSIONS = 1;
        /// Number of names.
        const LINK_COUNT = 2;
        /// Size.
        const SIZE = 4;
        /// Times of the last modification and the last change of status.
        const TIMES = 8;
    }
}

impl Fields {
    /// Number and kind, which never change and are always told.
    pub const IDENTITY: Fields = Fields::empty();
    /// All of them (POSIX `stat`).
    pub const ALL: Fields = Fields::all();
}

/// What `stat` tells; zero where it was not asked for. Times are nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Number of the inode.
    pub number: InodeNumber,
    /// What it is.
    pub kind: Kind,
    /// Permission bits, without the kind.
    pub mode: u32,
    /// The owner.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// Number of names. Directories have one, whatever directories are in them (as on btrfs), so that making one shares
    /// nothing with others.
    pub link_count: u32,
    /// Size in bytes: of a file's data, of a symbolic link's target.
    pub size_bytes: u64,
    /// Time of the last access, as set by `utimensat` or at creation: reading does not change it (`noatime`).
    pub accessed_ns: i64,
    /// Time of the last modification of data or names.
    pub modified_ns: i64,
    /// Time of the last change of data or status.
    pub changed_ns: i64,
}

impl Attributes {
    /// What is told of an object if nothing is asked for ([`Fields::IDENTITY`]).
    #[inline]
    pub fn identity(number: InodeNumber, kind: Kind) -> Attributes {
        Attributes {
            number,
            kind,
            mode: 0,
            user: 0,
            group: 0,
            link_count: 0,
            size_bytes: 0,
            accessed_ns: 0,
            modified_ns: 0,
            changed_ns: 0,
        }
    }
}
