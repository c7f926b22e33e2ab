//! The calls on descriptors and data as values, and how they are drawn: offsets and lengths around the borders of pages,
//! few numbers of descriptors.

use posix_calls::OpenFlags;
use posix_calls::data::Whence;

/// A number that no table has.
pub const NO_DESCRIPTOR: u32 = i32::MAX as u32 - 16;
/// Offsets at which the files of the final trees are looked at, [`WINDOW_BYTES`] from each.
pub const WINDOWS: [i64; 5] = [0, 1 << 20, (1 << 40) - 8192, i64::MAX - 8191, i64::MAX - WINDOW_BYTES as i64];
/// More than the calls that start at small offsets can reach, up to the end of some.
pub const WINDOW_BYTES: usize = 96 << 10;

/// One call on descriptors or data. Descriptors are O_NONBLOCK on the host: no call waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataOperation {
    /// With O_APPEND if the last says so.
    Open(String, OpenFlags, u32, bool),
    /// Both ends.
    Pipe,
    /// A descriptor.
    Close(u32),
    /// To the lowest number from the second on.
    Duplicate(u32, u32),
    /// To the second number.
    DuplicateTo(u32, u32),
    /// So many bytes.
    Read(u32, usize),
    /// So many bytes, from an offset on.
    ReadAt(u32, usize, i64),
    /// So many bytes, made from the second number.
    Write(u32, usize, u8),
    /// The same, at an offset.
    WriteAt(u32, usize, u8, i64),
    /// Moves the offset.
    Seek(u32, i64, Whence),
    /// To so many bytes.
    Resize(u32, i64),
    /// A file by name.
    ResizePath(String, i64),
    /// Whether it is open for reading and writing, and O_APPEND.
    Flags(u32),
    /// Sets O_APPEND or takes it away.
    SetAppend(u32, bool),
    /// Of a descriptor.
    Stat(u32),
    /// Permissions of what a descriptor leads to.
    ChangeMode(u32, u32),
    /// The bytes from an offset on, of a file by name: read in the end.
    Contents(String, i64),
}

/// What the host writes as something else: never drawn.
pub const PLANTED: u8 = 255;

/// What is written: no byte is zero unless all are.
pub fn bytes(length: usize, fill: u8) -> Vec<u8> {
    if fill == 0 {
        return vec![0; length];
    }
    (0..length).map(|index| (index as u8).wrapping_mul(3).wrapping_add(fill) | 1).collect()
}
