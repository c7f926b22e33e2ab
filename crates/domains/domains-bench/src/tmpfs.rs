//! The host's tmpfs by plain system calls, each relative to a directory that is held open.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use posix_calls::Errno;

use crate::system::{How, System};

/// A directory of tmpfs, which goes with this value.
pub struct Tmpfs {
    path: PathBuf,
    root: File,
}

/// What the calls of the benchmarks may find.
const EXPECTED: [Errno; 7] =
    [Errno::ENOENT, Errno::EEXIST, Errno::ENOTEMPTY, Errno::EISDIR, Errno::ENOTDIR, Errno::EINVAL, Errno::EAGAIN];

/// What a system call has returned; -1 is an error.
fn outcome(returned: i64) -> Result<usize, Errno> {
    if returned >= 0 {
        return Ok(returned as usize);
    }
    let number = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Err(EXPECTED.into_iter().find(|errno| errno.number() == number).unwrap_or(Errno::EIO))
}

fn text(path: &str) -> CString {
    CString::new(path).expect("paths of the benchmarks have no zero bytes")
}

impl Tmpfs {
    /// A new directory.
    pub fn new() -> Result<Tmpfs, String> {
        let path = PathBuf::from(format!("/dev/shm/domains-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let root = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Tmpfs { path, root })
    }

    fn root(&self) -> i32 {
        self.root.as_raw_fd()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl System for Tmpfs {
    fn open(&self, path: &str, how: How) -> Result<u32, Errno> {
        let flags = match how {
            How::Read => libc::O_RDONLY,
            How::Create => libc::O_RDWR | libc::O_CREAT,
            How::CreateNew => libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL,
        };
        let path = text(path);
        // SAFETY: the path ends with a zero byte.
        outcome(i64::from(unsafe { libc::openat(self.root(), path.as_ptr(), flags, 0o777) })).map(|fd| fd as u32)
    }

    fn close(&self, fd: u32) -> Result<(), Errno> {
        // SAFETY: the descriptor is the caller's, from `open` or `pipe`.
        outcome(i64::from(unsafe { libc::close(fd as i32) })).map(drop)
    }

    fn read(&self, fd: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
        // SAFETY: the bytes are the caller's to write.
        outcome(unsafe { libc::read(fd as i32, bytes.as_mut_ptr().cast(), bytes.len()) } as i64)
    }

    fn write(&self, fd: u32, bytes: &[u8]) -> Result<usize, Errno> {
        // SAFETY: the bytes are the caller's.
        outcome(unsafe { libc::write(fd as i32, bytes.as_ptr().cast(), bytes.len()) } as i64)
    }

    fn unlink(&self, path: &str) -> Result<(), Errno> {
        let path = text(path);
        // SAFETY: the path ends with a zero byte.
        outcome(i64::from(unsafe { libc::unlinkat(self.root(), path.as_ptr(), 0) })).map(drop)
    }

    fn rename(&self, old: &str, new: &str) -> Result<(), Errno> {
        let (old, new) = (text(old), text(new));
        // SAFETY: both paths end with a zero byte.
        outcome(i64::from(unsafe { libc::renameat(self.root(), old.as_ptr(), self.root(), new.as_ptr()) })).map(drop)
    }

    fn make_directory(&self, path: &str) -> Result<(), Errno> {
        let path = text(path);
        // SAFETY: the path ends with a zero byte.
        outcome(i64::from(unsafe { libc::mkdirat(self.root(), path.as_ptr(), 0o777) })).map(drop)
    }

    fn remove_directory(&self, path: &str) -> Result<(), Errno> {
        let path = text(path);
        // SAFETY: the path ends with a zero byte.
        outcome(i64::from(unsafe { libc::unlinkat(self.root(), path.as_ptr(), libc::AT_REMOVEDIR) })).map(drop)
    }

    fn stat(&self, path: &str) -> Result<u64, Errno> {
        let path = text(path);
        // SAFETY: the path ends with a zero byte; plain bytes are a status, and it is ours to write.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            outcome(i64::from(libc::fstatat(self.root(), path.as_ptr(), &raw mut status, 0))).map(|_| status.st_ino)
        }
    }

    fn stat_open(&self, fd: u32) -> Result<u64, Errno> {
        // SAFETY: plain bytes are a status, and it is ours to write.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            outcome(i64::from(libc::fstat(fd as i32, &raw mut status))).map(|_| status.st_ino)
        }
    }

    fn change_mode(&self, path: &str, mode: u32) -> Result<(), Errno> {
        let path = text(path);
        // SAFETY: the path ends with a zero byte.
        outcome(i64::from(unsafe { libc::fchmodat(self.root(), path.as_ptr(), mode, 0) })).map(drop)
    }

    fn symlink(&self, target: &str, path: &str) -> Result<(), Errno> {
        let (target, path) = (text(target), text(path));
        // SAFETY: both paths end with a zero byte.
        outcome(i64::from(unsafe { libc::symlinkat(target.as_ptr(), self.root(), path.as_ptr()) })).map(drop)
    }

    fn read_link(&self, path: &str) -> Result<(), Errno> {
        let (path, mut target) = (text(path), [0_u8; 4096]);
        // SAFETY: the path ends with a zero byte; the bytes are ours to write.
        let length = unsafe { libc::readlinkat(self.root(), path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
        outcome(length as i64).map(drop)
    }

    fn list(&self, fd: u32, names: &mut Vec<(String, bool)>) -> Result<bool, Errno> {
        let mut entries = [0_u8; 32 * 1024];
        // SAFETY: the bytes are ours to write.
        let length =
            unsafe { libc::syscall(libc::SYS_getdents64, fd as libc::c_long, entries.as_mut_ptr(), entries.len()) };
        let mut rest = &entries[..outcome(length)?];
        let is_over = rest.is_empty();
        // Of each entry: inode 8, place 8, length 2, kind 1, name with a zero byte.
        while let [_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, low, high, kind, name @ ..] = rest {
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            if !matches!(name, b"." | b"..") {
                names.push((String::from_utf8_lossy(name).into_owned(), *kind == libc::DT_DIR));
            }
            rest = &rest[usize::from(u16::from_le_bytes([*low, *high]))..];
        }
        Ok(!is_over)
    }

    fn pipe(&self) -> Result<(u32, u32), Errno> {
        let mut ends = [0; 2];
        // SAFETY: there is room for both.
        outcome(i64::from(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK) }))?;
        Ok((ends[0] as u32, ends[1] as u32))
    }
}
