//! What an owner answers.

use messages::DomainNumber;
use posix_calls::{Attributes, Ended, Errno, InodeNumber, Kind, Permissions};

use super::fields::{Bytes, Field, Reader, message};
use super::requests::{DescriptionState, OperationNumber};
use crate::identity::{ObjectNumber, Target};

/// Why an owner has done nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Refusal {
    /// An operation that is not decided is in the way: later.
    Busy = 0,
    /// What the asker saw is not so any more.
    Changed = 1,
    /// The name exists.
    Exists = 2,
    /// The directory was removed.
    Dead = 3,
    /// The directory has names.
    NotEmpty = 4,
    /// No space, or no inode, is left.
    NoSpace = 5,
    /// This owner has not that part of the directory: its asker does not know who has.
    Elsewhere = 6,
    /// The object is gone.
    Stale = 7,
    /// The message was none.
    Garbled = 8,
    /// No one but the asker shares the description.
    Alone = 9,
    /// Data lie where this owner cannot read them: they must come in messages.
    Unreadable = 10,
}

const REFUSALS: [Refusal; 11] = [
    Refusal::Busy,
    Refusal::Changed,
    Refusal::Exists,
    Refusal::Dead,
    Refusal::NotEmpty,
    Refusal::NoSpace,
    Refusal::Elsewhere,
    Refusal::Stale,
    Refusal::Garbled,
    Refusal::Alone,
    Refusal::Unreadable,
];

impl Field for Refusal {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self as u8);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Refusal> {
        REFUSALS.get(usize::from(u8::take(reader)?)).copied()
    }
}

/// What calls can fail with at an owner.
const ERRNOS: [Errno; 5] = [Errno::EPERM, Errno::EACCES, Errno::EAGAIN, Errno::EINVAL, Errno::EPIPE];

impl Field for Errno {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.number() as u32).put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Errno> {
        let number = u32::take(reader)? as i32;
        ERRNOS.into_iter().find(|errno| errno.number() == number)
    }
}

impl Field for Attributes {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.number.0.put(bytes);
        self.kind.put(bytes);
        [self.mode, self.user, self.group, self.link_count].iter().for_each(|number| number.put(bytes));
        self.size_bytes.put(bytes);
        [self.accessed_ns, self.modified_ns, self.changed_ns].iter().for_each(|number| number.put(bytes));
    }

    fn take(reader: &mut Reader<'_>) -> Option<Attributes> {
        Some(Attributes {
            number: InodeNumber(u64::take(reader)?),
            kind: Kind::take(reader)?,
            mode: u32::take(reader)?,
            user: u32::take(reader)?,
            group: u32::take(reader)?,
            link_count: u32::take(reader)?,
            size_bytes: u64::take(reader)?,
            accessed_ns: i64::take(reader)?,
            modified_ns: i64::take(reader)?,
            changed_ns: i64::take(reader)?,
        })
    }
}

/// What lies at an offset of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    /// Pages.
    Data,
    /// None.
    Hole,
}

impl Field for StoredKind {
    fn put(&self, bytes: &mut Vec<u8>) {
        (*self == StoredKind::Hole).put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<StoredKind> {
        Some(if bool::take(reader)? { StoredKind::Hole } else { StoredKind::Data })
    }
}

message! {
    /// What an owner says of a name in a listing.
    pub enum ListedState {
        /// It leads to this.
        Leads = 0 { target: Target },
        /// Another domain decides on it, and says more.
        Lent = 1 {},
        /// It leads to nothing, no matter who has lent it.
        Absent = 2 {},
    }
}

/// A name in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: Bytes,
    /// What is known of it.
    pub state: ListedState,
    /// Its place.
    pub cookie: u64,
}

impl Field for Listed {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.name.put(bytes);
        self.state.put(bytes);
        self.cookie.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Listed> {
        Some(Listed { name: Field::take(reader)?, state: Field::take(reader)?, cookie: Field::take(reader)? })
    }
}

/// Where a page of a file lies in its owner's part of shared memory, until the asker needs it no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedPage {
    /// Which page of the file.
    pub index: u64,
    /// Which page of the part.
    pub number: u32,
    /// Tells what it holds from all that it has held.
    pub version: u64,
}

impl Field for GrantedPage {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.index.put(bytes);
        self.number.put(bytes);
        self.version.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<GrantedPage> {
        Some(GrantedPage { index: Field::take(reader)?, number: Field::take(reader)?, version: Field::take(reader)? })
    }
}

message! {
    /// What is in the way where an owner is busy.
    pub enum Obstacle {
        /// An operation that is not decided.
        Operation = 0 {
            /// Which.
            operation: OperationNumber,
        },
        /// Another domain moves directories.
        Moves = 1 {
            /// Which.
            by: DomainNumber,
        },
        /// Another domain has locked the offset.
        Offset = 2 {
            /// Which.
            by: DomainNumber,
        },
        /// The name is lent, and was asked for.
        Lent = 3 {
            /// To which domain.
            to: DomainNumber,
        },
        /// The directory is about to be split.
        Split = 4 {},
    }
}

message! {
    /// What an owner answers.
    pub enum Reply {
        /// It did nothing.
        Refused = 0 { why: Refusal },
        /// It is done, or prepared.
        Done = 1 {},
        /// Parts are done, or prepared: the stamps of the names that change, in their order; 0 for one that may not be kept.
        Stamps = 6 { stamps: Vec<u64> },
        /// What a name leads to, since it had this stamp; and whether the asker may keep that.
        Name = 2 { target: Option<Target>, stamp: u64, may_keep: bool },
        /// What `stat` tells.
        Attributes = 3 { attributes: Attributes },
        /// Owner and permission bits; and whether the asker may keep them.
        Permissions = 4 { permissions: Permissions, may_keep: bool },
        /// A symbolic link's target, or what was read.
        Bytes = 5 { bytes: Bytes },
        /// Of a directory; and whether the asker may keep it.
        State = 7 { parent: ObjectNumber, moves: u64, is_removed: bool, is_split: bool, may_keep: bool },
        /// A number.
        Number = 8 { number: u64 },
        /// The call fails with this.
        Failed = 9 { errno: Errno },
        /// Names, and whether there are more.
        Names = 10 { names: Vec<Listed>, has_more: bool },
        /// What was written.
        Written = 11 { offset: u64, length: u64 },
        /// What lies at an offset, and to where.
        Extent = 12 { kind: StoredKind, end: u64 },
        /// Of this owner.
        Space = 13 { pages: (u64, u64), inodes: (u64, u64) },
        /// What an end of a pipe sees.
        PipeState = 14 { is_ready: bool, other_end_gone: bool },
        /// Offset and flags of a description.
        Description = 15 { state: DescriptionState },
        /// Whether there is a child, and one that has ended.
        Children = 16 { has_one: bool, ended: Option<ObjectNumber> },
        /// Whether it is a child, and how it has ended, if it has.
        Child = 17 { is_one: bool, ended: Option<Ended> },
        /// What was made.
        Made = 18 { number: ObjectNumber },
        /// The name, which leads to this since it had this stamp, is lent to the asker: from now on it decides on it.
        Lent = 19 { target: Target, stamp: u64 },
        /// How long a file is, and where its pages lie from the one that was asked for to this one: those that are missing are holes.
        Granted = 20 { size_bytes: u64, until: u64, pages: Vec<GrantedPage> },
        /// What was in the way, if anything was.
        InTheWay = 21 { obstacle: Option<Obstacle> },
    }
}

message! {
    /// What is not so any more.
    pub enum NoticeKind {
        /// Where a name leads.
        Name = 0 { directory: ObjectNumber, name: Bytes },
        /// Owner and permission bits of a directory, where it stands, or that it is there.
        Directory = 1 { directory: ObjectNumber },
    }
}
