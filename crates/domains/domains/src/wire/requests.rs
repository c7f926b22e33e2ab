//! What is asked of an owner.

use messages::DomainNumber;
use posix_calls::{Credentials, Ended, Kind, PermissionChange, Permissions, PipeEnd, TimesRight, Whence};

use super::fields::{Bytes, Field, Reader, message};
use crate::identity::{ObjectNumber, Target};

/// An operation on several owners: its coordinator, the line that decides it, and the number that stands there then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationNumber {
    /// Whose line it is.
    pub coordinator: DomainNumber,
    /// Which of its lines.
    pub line: u16,
    /// Which of the operations that the line decides, one after the other.
    pub number: u64,
}

impl Field for OperationNumber {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.coordinator.put(bytes);
        self.line.put(bytes);
        self.number.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<OperationNumber> {
        Some(OperationNumber {
            coordinator: Field::take(reader)?,
            line: Field::take(reader)?,
            number: Field::take(reader)?,
        })
    }
}

/// Who calls, for checks at the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller(pub Credentials);

impl Field for Caller {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.user.put(bytes);
        self.0.group.put(bytes);
        self.0.supplementary().to_vec().put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Caller> {
        let (user, group) = (u32::take(reader)?, u32::take(reader)?);
        let groups: Vec<u32> = Field::take(reader)?;
        Credentials::new(user, group, &groups).map(Caller)
    }
}

impl Field for PermissionChange {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            PermissionChange::Mode(mode) => {
                bytes.push(0);
                mode.put(bytes);
            }
            PermissionChange::Owner { user, group } => {
                bytes.push(1);
                user.put(bytes);
                group.put(bytes);
            }
            PermissionChange::DropSetIds => bytes.push(2),
        }
    }

    fn take(reader: &mut Reader<'_>) -> Option<PermissionChange> {
        match u8::take(reader)? {
            0 => Some(PermissionChange::Mode(u32::take(reader)?)),
            1 => Some(PermissionChange::Owner { user: Field::take(reader)?, group: Field::take(reader)? }),
            2 => Some(PermissionChange::DropSetIds),
            _ => None,
        }
    }
}

impl Field for TimesRight {
    fn put(&self, bytes: &mut Vec<u8>) {
        (*self == TimesRight::Writer).put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<TimesRight> {
        Some(if bool::take(reader)? { TimesRight::Writer } else { TimesRight::Owner })
    }
}

/// Offset and flags of an open file description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescriptionState {
    /// In bytes.
    pub offset: u64,
    /// How often it has moved.
    pub moves: u64,
    /// Bits of `posix_calls::StatusFlags`.
    pub status: u32,
}

impl Field for DescriptionState {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.offset.put(bytes);
        self.moves.put(bytes);
        self.status.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<DescriptionState> {
        Some(DescriptionState {
            offset: Field::take(reader)?,
            moves: Field::take(reader)?,
            status: Field::take(reader)?,
        })
    }
}

message! {
    /// What an operation does at one owner.
    pub enum Part {
        /// The name leads to nothing, and is to lead to an object.
        Insert = 0 { directory: ObjectNumber, name: Bytes, target: Target },
        /// The name leads to an object, and is to lead to nothing.
        Remove = 1 { directory: ObjectNumber, name: Bytes, expected: ObjectNumber },
        /// The name leads to an object, and is to lead to another.
        Replace = 2 { directory: ObjectNumber, name: Bytes, expected: ObjectNumber, target: Target },
        /// The name has led to an object since it had this stamp, and stays so until the operation is decided.
        Hold = 3 { directory: ObjectNumber, name: Bytes, stamp: u64 },
        /// An object gets one name more.
        AddLink = 4 { object: ObjectNumber },
        /// A file loses a name.
        DropLink = 5 { object: ObjectNumber },
        /// An object's name has changed.
        Touch = 6 { object: ObjectNumber },
        /// A directory, or its part here, has no names and takes none from now on. At its home its name goes, too. Whether it
        /// is split is what the asker believes.
        Close = 7 { directory: ObjectNumber, is_split: bool },
        /// A directory comes to another parent.
        Move = 8 { directory: ObjectNumber, parent: ObjectNumber },
        /// A directory is kept by one that loses its name in it.
        Keep = 9 { directory: ObjectNumber },
    }
}

message! {
    /// What lines of a page hold.
    pub enum Content {
        /// These bytes, line after line.
        Bytes = 0 { bytes: Bytes },
        /// What lies in a page of the sender's part of shared memory.
        Shared = 1 { number: u32 },
    }
}

/// Lines of a page that were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// Which page of the file.
    pub index: u64,
    /// Which lines, a bit each.
    pub lines: u64,
    /// What they hold.
    pub content: Content,
}

impl Field for Released {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.index.put(bytes);
        self.lines.put(bytes);
        self.content.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Released> {
        Some(Released { index: Field::take(reader)?, lines: Field::take(reader)?, content: Field::take(reader)? })
    }
}

message! {
    /// What is asked of an owner.
    pub enum Request {
        /// What a name leads to; the asker keeps the answer if it may, or comes to decide on the name of an object of its own.
        LookUp = 0 { directory: ObjectNumber, name: Bytes, keeps: bool, borrows: bool },
        /// What `stat` tells; the numbers are bits of `posix_calls::Fields`.
        Attributes = 1 { object: ObjectNumber, fields: u32 },
        /// Owner and permission bits; the asker keeps them if it may.
        Permissions = 2 { object: ObjectNumber, keeps: bool },
        /// What a symbolic link leads to.
        LinkTarget = 3 { object: ObjectNumber },
        /// The number of the device that a name is for.
        Device = 4 { object: ObjectNumber },
        /// Where a directory stands, whether it was removed, and whether it is split; the asker keeps the answer if it may.
        State = 5 { directory: ObjectNumber, keeps: bool },
        /// Keeps an object, if the caller has these permissions.
        Retain = 7 { object: ObjectNumber, need: Option<(u32, Caller)> },
        /// Keeps it no longer; of a pipe, a description of this end has gone. Wants no reply.
        Release = 8 { object: ObjectNumber, end: Option<PipeEnd> },
        /// Changes owner and permission bits.
        ChangePermissions = 9 { object: ObjectNumber, change: PermissionChange, caller: Caller },
        /// Sets times.
        SetTimes = 10 { object: ObjectNumber, right: TimesRight, times: (Option<i64>, Option<i64>), caller: Caller },
        /// Makes an object at this owner, with a name that this owner has, and keeps it if that is wanted.
        Create = 11 { directory: ObjectNumber, name: Bytes, kind: Kind, target: Bytes, device: u64, permissions: Permissions, retain: bool },
        /// Names of the part of a directory that is here, from a cookie on. Whether it is split is what the asker believes.
        List = 12 { directory: ObjectNumber, from: u64, most_bytes: u32, is_split: bool },
        /// Does parts at once, all or none. Of a name that is made alone, the asker may come to decide.
        Apply = 13 { parts: Vec<Part>, borrows: bool },
        /// Prepares parts, all or none.
        Prepare = 14 { operation: OperationNumber, parts: Vec<Part> },
        /// An operation was decided: what was prepared for it is done, or left.
        Decide = 15 { operation: OperationNumber, commit: bool },
        /// From now on directories come to other parents by the asker alone.
        TakeMoves = 16 {},
        /// The asker moves no directory any more. Wants no reply.
        GiveMoves = 17 {},
        /// The part of a directory that is split from now on.
        TakePart = 18 { directory: ObjectNumber, names: Vec<(Bytes, Target)> , is_last: bool },
        /// Reads a file.
        Read = 19 { file: ObjectNumber, offset: u64, length: u32 },
        /// Writes a file at an offset, or at its end. With `more`, the bytes are kept until those that belong to them have come.
        /// Set-id bits go if the caller is a user.
        Write = 20 { file: ObjectNumber, offset: Option<u64>, bytes: Bytes, more: bool, caller: Caller },
        /// Makes a file so long.
        Resize = 21 { file: ObjectNumber, size_bytes: u64 },
        /// What lies at an offset of a file, and how far.
        Extent = 22 { file: ObjectNumber, offset: u64 },
        /// Free and used space of this owner.
        Space = 23 {},
        /// One description more leads to an end of a pipe.
        OpenEnd = 24 { pipe: ObjectNumber, end: PipeEnd },
        /// Takes bytes out of a pipe.
        ReadPipe = 25 { pipe: ObjectNumber, length: u32 },
        /// Copies bytes that wait in a pipe after this many others.
        PeekPipe = 26 { pipe: ObjectNumber, skip: u32, length: u32 },
        /// Puts bytes into a pipe; `more` as in `Write`.
        WritePipe = 27 { pipe: ObjectNumber, bytes: Bytes, more: bool },
        /// What an end of a pipe sees.
        PipeState = 28 { pipe: ObjectNumber, end: PipeEnd },
        /// An open file description of the asker is shared with another domain from now on; of a pipe, of this end.
        Share = 29 { file: ObjectNumber, end: Option<PipeEnd>, state: DescriptionState },
        /// One domain more shares it.
        Join = 30 { description: ObjectNumber },
        /// The asker shares it no more. Wants no reply.
        Leave = 31 { description: ObjectNumber },
        /// No one but the asker shares it: it is the asker's own from now on.
        TakeBack = 32 { description: ObjectNumber },
        /// Offset and flags of a description; no one else moves the offset afterwards if that is wanted.
        DescriptionState = 33 { description: ObjectNumber, locks: bool },
        /// The asker, who has locked the offset, moves it there, or leaves it. Wants no reply.
        Unlock = 34 { description: ObjectNumber, offset: Option<u64> },
        /// Sets flags of a description.
        SetStatus = 35 { description: ObjectNumber, status: u32 },
        /// Reads a file at a description's offset, which moves.
        ReadShared = 36 { description: ObjectNumber, length: u32 },
        /// Writes a file at a description's offset, which moves; `more` and set-id bits as in `Write`.
        WriteShared = 37 { description: ObjectNumber, bytes: Bytes, more: bool, caller: Caller },
        /// Moves a description's offset.
        SeekShared = 38 { description: ObjectNumber, offset: i64, whence: Whence },
        /// A process of this number has a new child.
        Adopt = 39 { parent: ObjectNumber },
        /// A process has ended. Wants no reply.
        End = 40 { process: ObjectNumber, ended: Ended },
        /// Whether a process has a child, and one that has ended.
        Children = 41 { parent: ObjectNumber },
        /// What became of a child; one that has ended is none afterwards.
        TakeEnded = 42 { parent: ObjectNumber, child: ObjectNumber },
        /// Who has borrowed this name is to give it back. Wants no reply.
        Recall = 43 { directory: ObjectNumber, name: Bytes },
        /// A name that was borrowed, with what it leads to since it had this stamp. Wants no reply.
        GiveBack = 44 { directory: ObjectNumber, name: Bytes, target: Option<Target>, stamp: u64 },
        /// The asker reads a file as it is now, and keeps it if that is wanted and the caller has these permissions. It needs no page
        /// that it was informed of before. With `direct`, it reads pages where they lie.
        Acquire = 45 { file: ObjectNumber, keep: Option<Option<(u32, Caller)>>, direct: bool },
        /// Where pages of a file from this one on lie, for one who reads it.
        Grant = 46 { file: ObjectNumber, first: u64 },
        /// The asker reads a file no more. Wants no reply.
        EndGrant = 47 { file: ObjectNumber },
        /// What the asker has written to a file, up to `end`, last at this time. Set-id bits go if the caller is a user.
        LetKnow = 48 { file: ObjectNumber, pages: Vec<Released>, end: u64, modified_ns: i64, caller: Caller },
        /// What was in the way of the asker's last request that was refused as busy.
        InTheWay = 49 {},
    }
}
