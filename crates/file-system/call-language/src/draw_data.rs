//! How calls on descriptors and data are drawn.

use posix_calls::OpenFlags;
use posix_calls::data::Whence;

use crate::data::{DataOperation, NO_DESCRIPTOR};
use crate::draw::MODES;
use crate::random::Random;

impl DataOperation {
    /// A call; with `bounded`, what it asks for costs a small file system as much as a large one: no bytes are zero, and
    /// no offset is out of the way.
    pub fn any(random: &mut Random, up: bool, bounded: bool) -> DataOperation {
        let fd = |random: &mut Random| match random.below(20) {
            0 => NO_DESCRIPTOR,
            number => [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7][number % 12],
        };
        let offset = |random: &mut Random| -> i64 {
            let near = [-1, 0, 0, 0, 1, 7, 100][random.below(7)];
            match random.below(if bounded { 24 } else { 30 }) {
                page @ 0..=23 => page as i64 % 6 * 4096 + near,
                24 => 1 << 20,
                25 => (1 << 40) + near,
                26 => i64::MAX - near.max(0),
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
                        flags |= flag;
                    }
                }
                DataOperation::Open(random.path_to_make(up), flags, random.pick(&MODES), random.below(4) == 0)
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
