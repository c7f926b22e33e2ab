//! The calls on descriptors and data as values, and how they are drawn: offsets and lengths around the borders of pages,
//! few numbers of descriptors.

use scalefs::OpenFlags;
use scalefs::data::Whence;

use crate::calls::{MODES, Random};

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
    Pipe,
    Close(u32),
    Duplicate(u32, u32),
    DuplicateTo(u32, u32),
    Read(u32, usize),
    ReadAt(u32, usize, i64),
    /// So many bytes, made from the second number.
    Write(u32, usize, u8),
    WriteAt(u32, usize, u8, i64),
    Seek(u32, i64, Whence),
    Resize(u32, i64),
    ResizePath(String, i64),
    /// Whether it is open for reading and writing, and O_APPEND.
    Flags(u32),
    SetAppend(u32, bool),
    Stat(u32),
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

impl DataOperation {
    /// A call; with `bounded`, what it asks for costs a small file system as much as a large one: no bytes are zero, and
    /// no offset is out of the way.
    pub fn any(random: &mut Random, up: bool, bounded: bool) -> DataOperation {
        let fd = |random: &mut Random| match random.below(40) {
            0 => NO_DESCRIPTOR,
            number => [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7][number % 12],
        };
        let offset = |random: &mut Random| -> i64 {
            let near = [-1, 0, 0, 0, 1, 7, 100][random.below(7)];
            match random.below(if bounded { 24 } else { 30 }) {
                page @ 0..=23 => page as i64 % 6 * 4096 + near,
                24 => 1 << 20,
                25 => (1 << 40) + near,
                26 => i64::MAX - near,
                27 => i64::MAX - 4096 - near,
                28 => -4096 + near,
                _ => i64::MIN + near.max(0),
            }
        };
        let length = |random: &mut Random| match random.below(12) {
            0 => random.below(5000),
            1 => 65_536,
            2 => 70_001,
            number => [0, 1, 5, 64, 100, 4095, 4096, 4097, 8192][number - 3],
        };
        let fill = |random: &mut Random| if bounded { 1 } else { [0, 1, 1, 2, 3, 4, 5][random.below(7)] };
        match random.below(34) {
            0..=6 => {
                let mut flags = random.pick(&[
                    OpenFlags::READ,
                    OpenFlags::WRITE | OpenFlags::CREATE,
                    OpenFlags::READ | OpenFlags::WRITE,
                    OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE,
                    OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE,
                ]);
                for (one_in, flag) in [(6, OpenFlags::TRUNCATE), (9, OpenFlags::NO_FOLLOW), (9, OpenFlags::EXCLUSIVE)] {
                    if random.below(one_in) == 0 {
                        flags = flags | flag;
                    }
                }
                DataOperation::Open(random.path(up), flags, random.pick(&MODES), random.below(4) == 0)
            }
            // A pipe's pages are not the file system's on the host.
            7 if !bounded => DataOperation::Pipe,
            7..=9 => DataOperation::Close(fd(random)),
            10 => DataOperation::Duplicate(fd(random), fd(random)),
            11 => DataOperation::DuplicateTo(fd(random), fd(random)),
            12..=14 => DataOperation::Read(fd(random), length(random)),
            15..=17 => DataOperation::ReadAt(fd(random), length(random), offset(random)),
            18..=21 => DataOperation::Write(fd(random), length(random), fill(random)),
            22..=24 => DataOperation::WriteAt(fd(random), length(random), fill(random), offset(random)),
            25 | 26 => {
                let whence = random.pick(&[Whence::Start, Whence::Current, Whence::End]);
                DataOperation::Seek(fd(random), offset(random), whence)
            }
            27 | 28 => DataOperation::Resize(fd(random), offset(random)),
            29 => DataOperation::ResizePath(random.path(up), offset(random)),
            30 => DataOperation::Flags(fd(random)),
            31 => DataOperation::SetAppend(fd(random), random.below(2) == 0),
            32 => DataOperation::ChangeMode(fd(random), random.pick(&MODES)),
            _ => DataOperation::Stat(fd(random)),
        }
    }
}
