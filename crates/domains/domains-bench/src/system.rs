//! What runs the benchmarks: a file system with the calls that they make.

use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{
    DataOperations, Errno, Fields, Follow, Kind, OpenFlags, Start, StatusFlags, attributes, directories,
};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// To be read; a directory, too.
    Read,
    /// To be read and written; made if it is not there.
    Create,
    /// To be written; it must not be there.
    CreateNew,
}

/// A file system as one program sees it: paths lead from its root.
pub trait System {
    fn open(&self, path: &str, how: How) -> Result<u32, Errno>;
    fn close(&self, fd: u32) -> Result<(), Errno>;
    fn read(&self, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno>;
    fn write(&self, fd: u32, bytes: &[u8]) -> Result<usize, Errno>;
    fn unlink(&self, path: &str) -> Result<(), Errno>;
    fn rename(&self, old: &str, new: &str) -> Result<(), Errno>;
    fn make_directory(&self, path: &str) -> Result<(), Errno>;
    fn remove_directory(&self, path: &str) -> Result<(), Errno>;
    /// The number of the inode.
    fn stat(&self, path: &str) -> Result<u64, Errno>;
    /// The number of the inode.
    fn stat_open(&self, fd: u32) -> Result<u64, Errno>;
    fn change_mode(&self, path: &str, mode: u32) -> Result<(), Errno>;
    fn symlink(&self, target: &str, path: &str) -> Result<(), Errno>;
    fn read_link(&self, path: &str) -> Result<(), Errno>;
    /// Names of an open directory, as many as one call gives, but for `.` and `..`: each with whether it is a directory's. False at
    /// the end.
    fn list(&self, fd: u32, names: &mut Vec<(String, bool)>) -> Result<bool, Errno>;
    /// Both ends of a pipe: where it is read, where it is written.
    fn pipe(&self) -> Result<(u32, u32), Errno>;
}

/// Who makes calls on one of this project's file systems.
pub trait Enter {
    type Call<'c>: DataOperations
    where
        Self: 'c;

    fn call<'s, R>(&'s self, make: impl FnMut(&Self::Call<'s>) -> Result<R, Errno>) -> Result<R, Errno>;
}

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

/// Bytes that the names of one `getdents64` take, as the C library asks for; each has some 20 bytes in addition to its
/// name.
const LISTING_BYTES: usize = 32 * 1024;
const ENTRY_BYTES: usize = 20;

impl<E: Enter> System for E {
    fn open(&self, path: &str, how: How) -> Result<u32, Errno> {
        let flags = match how {
            How::Read => OpenFlags::READ,
            How::Create => OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE,
            How::CreateNew => OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
        };
        self.call(|call| data::open(call, at(), path.as_bytes(), flags, 0o777, DescriptorOptions::PLAIN))
    }

    fn close(&self, fd: u32) -> Result<(), Errno> {
        self.call(|call| data::close(call, fd))
    }

    fn read(&self, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
        self.call(|call| data::read(call, fd, bytes))
    }

    fn write(&self, fd: u32, bytes: &[u8]) -> Result<usize, Errno> {
        self.call(|call| data::write(call, fd, bytes))
    }

    fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.call(|call| names::unlink(call.objects(), at(), path.as_bytes()))
    }

    fn rename(&self, old: &str, new: &str) -> Result<(), Errno> {
        self.call(|call| {
            names::rename(call.objects(), (at(), old.as_bytes()), (at(), new.as_bytes()), RenameMode::Replace)
        })
    }

    fn make_directory(&self, path: &str) -> Result<(), Errno> {
        self.call(|call| directories::make_directory(call.objects(), at(), path.as_bytes(), 0o777))
    }

    fn remove_directory(&self, path: &str) -> Result<(), Errno> {
        self.call(|call| directories::remove_directory(call.objects(), at(), path.as_bytes()))
    }

    fn stat(&self, path: &str) -> Result<u64, Errno> {
        let stat =
            self.call(|call| attributes::stat(call.objects(), at(), path.as_bytes(), Follow::Symlinks, Fields::ALL));
        stat.map(|attributes| attributes.number.0)
    }

    fn stat_open(&self, fd: u32) -> Result<u64, Errno> {
        self.call(|call| data::stat(call, fd, Fields::ALL)).map(|attributes| attributes.number.0)
    }

    fn change_mode(&self, path: &str, mode: u32) -> Result<(), Errno> {
        self.call(|call| attributes::change_mode(call.objects(), at(), path.as_bytes(), mode))
    }

    fn symlink(&self, target: &str, path: &str) -> Result<(), Errno> {
        self.call(|call| names::symlink(call.objects(), target.as_bytes(), at(), path.as_bytes()))
    }

    fn read_link(&self, path: &str) -> Result<(), Errno> {
        self.call(|call| names::read_link(call.objects(), at(), path.as_bytes()).map(drop))
    }

    fn list(&self, fd: u32, names: &mut Vec<(String, bool)>) -> Result<bool, Errno> {
        let before = names.len();
        let count = self.call(|call| {
            names.truncate(before);
            let mut bytes = 0;
            data::read_directory(call, fd, |entry| {
                bytes += entry.name.len() + ENTRY_BYTES;
                if bytes > LISTING_BYTES {
                    return false;
                }
                if !matches!(entry.name, b"." | b"..") {
                    let name = String::from_utf8_lossy(entry.name).into_owned();
                    names.push((name, entry.kind == Kind::Directory));
                }
                true
            })
        })?;
        Ok(count > 0)
    }

    fn pipe(&self) -> Result<(u32, u32), Errno> {
        let options = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
        self.call(|call| data::pipe(call, options))
    }
}
