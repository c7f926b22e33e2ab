//! Descriptors and open file descriptions (POSIX.1-2017, 3.166 and 3.258), as calls speak of them.

/// Descriptors that one process can have under the lowest free numbers (Linux: `NR_OPEN`).
pub const DESCRIPTOR_LIMIT: u32 = 1 << 20;

/// Which number a new descriptor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberChoice {
    /// The lowest free one that is not below this.
    LowestFrom(u32),
    /// Any free one (`O_ANYFD`, section 4 of the paper).
    Any,
}

/// Whether a descriptor survives `exec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnExec {
    /// It does.
    Keep,
    /// It is closed (`O_CLOEXEC`).
    Close,
}

/// What a description is open for; never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessMode {
    /// Reading.
    pub read: bool,
    /// Writing.
    pub write: bool,
}

/// For what a call looks a descriptor up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// To read at its offset or out of a pipe: it must be open for reading.
    Read,
    /// To read at an offset: it must be open for reading, or be a pipe, which is refused with another error.
    ReadAt,
    /// To write at its offset or into a pipe.
    Write,
    /// To write at an offset.
    WriteAt,
}

bitflags::bitflags! {
    /// Flags of a description that `fcntl(F_SETFL)` can change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct StatusFlags: u32 {
        /// `O_APPEND`: every write goes to the end.
        const APPEND = 1;
        /// `O_NONBLOCK`: calls on pipes fail with EAGAIN instead of waiting.
        const NONBLOCK = 2;
        /// It only stands for its object ([`crate::handles`]); `fcntl(F_SETFL)` does not change that.
        const HANDLE = 4;
    }
}

impl StatusFlags {
    /// None.
    pub const NONE: StatusFlags = StatusFlags::empty();
}

/// An offset at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The offset in bytes.
    pub bytes: u64,
    /// How often it has changed: an offset that has come back is another one.
    pub moves: u64,
}

/// From where `lseek` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The beginning (`SEEK_SET`).
    Start,
    /// The present offset (`SEEK_CUR`).
    Current,
    /// The end of the file (`SEEK_END`).
    End,
}

/// What `lseek` looks for in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The next bytes that were written (`SEEK_DATA`).
    Data,
    /// The next hole; there is one at the end (`SEEK_HOLE`).
    Hole,
}

/// Bytes of a file that are alike: all written, or all a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// What they are.
    pub kind: Sought,
    /// The first offset behind them; what lies behind the file's end is a hole.
    pub end: u64,
}

/// One of the two ends of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PipeEnd {
    /// Where bytes come out.
    Read = 0,
    /// Where they go in.
    Write = 1,
}

impl PipeEnd {
    /// The end opposite.
    #[inline]
    pub fn other(self) -> PipeEnd {
        match self {
            PipeEnd::Read => PipeEnd::Write,
            PipeEnd::Write => PipeEnd::Read,
        }
    }
}
