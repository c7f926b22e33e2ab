//! What `stat` tells, and which of it a caller wants (`fstatx`, section 4 of the paper).

use core::ops::{BitOr, Sub};

use crate::kind::{InodeNumber, Kind};

/// Which attributes a caller wants. What is not wanted is not read, so that it cannot conflict with its changes: the
/// link count and the times cost a look at every core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields(u32);

impl Fields {
    /// Number and kind, which never change and are always told.
    pub const IDENTITY: Fields = Fields(0);
    /// Permission bits, owner, group, and time of last access.
    pub const PERMISSIONS: Fields = Fields(1);
    /// Number of names.
    pub const LINK_COUNT: Fields = Fields(2);
    /// Size.
    pub const SIZE: Fields = Fields(4);
    /// Times of the last modification and the last change of status.
    pub const TIMES: Fields = Fields(8);
    /// All of them (POSIX `stat`).
    pub const ALL: Fields = Fields(15);

    /// Whether all of `fields` are wanted.
    #[inline]
    pub const fn contains(self, fields: Fields) -> bool {
        self.0 & fields.0 == fields.0
    }

    /// These fields and others.
    pub const fn with(self, fields: Fields) -> Fields {
        Fields(self.0 | fields.0)
    }

    /// The fields as bits, for other languages.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The fields with these bits; `None` if there are others.
    pub const fn from_bits(bits: u32) -> Option<Fields> {
        if bits <= Fields::ALL.0 { Some(Fields(bits)) } else { None }
    }
}

impl BitOr for Fields {
    type Output = Fields;

    fn bitor(self, other: Fields) -> Fields {
        self.with(other)
    }
}

impl Sub for Fields {
    type Output = Fields;

    /// The fields of the first that are not in the second.
    fn sub(self, other: Fields) -> Fields {
        Fields(self.0 & !other.0)
    }
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
