//! Numbers of Linux on x86-64 that calls speak in.
#![allow(missing_docs)]

pub(crate) const O_ACCMODE: u64 = 3;
pub(crate) const O_RDONLY: u64 = 0;
pub(crate) const O_WRONLY: u64 = 1;
pub(crate) const O_RDWR: u64 = 2;
pub(crate) const O_CREAT: u64 = 0o100;
pub(crate) const O_EXCL: u64 = 0o200;
pub(crate) const O_TRUNC: u64 = 0o1000;
pub(crate) const O_APPEND: u64 = 0o2000;
pub(crate) const O_NONBLOCK: u64 = 0o4000;
pub(crate) const O_LARGEFILE: u64 = 0o100_000;
pub(crate) const O_DIRECTORY: u64 = 0o200_000;
pub(crate) const O_NOFOLLOW: u64 = 0o400_000;
pub(crate) const O_CLOEXEC: u64 = 0o2_000_000;
pub(crate) const O_PATH: u64 = 0o10_000_000;
pub(crate) const O_TMPFILE: u64 = 0o20_200_000;

pub(crate) const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
pub(crate) const AT_REMOVEDIR: u64 = 0x200;
pub(crate) const AT_EACCESS: u64 = 0x200;
pub(crate) const AT_SYMLINK_FOLLOW: u64 = 0x400;
pub(crate) const AT_NO_AUTOMOUNT: u64 = 0x800;
pub(crate) const AT_EMPTY_PATH: u64 = 0x1000;
pub(crate) const AT_STATX_SYNC_TYPE: u64 = 0x6000;

pub(crate) const S_IFMT: u64 = 0o170_000;
pub(crate) const S_IFSOCK: u64 = 0o140_000;
pub(crate) const S_IFREG: u64 = 0o100_000;
pub(crate) const S_IFBLK: u64 = 0o060_000;
pub(crate) const S_IFDIR: u64 = 0o040_000;
pub(crate) const S_IFCHR: u64 = 0o020_000;
pub(crate) const S_IFIFO: u64 = 0o010_000;

pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOSYS: i32 = 38;
pub(crate) const ENOTTY: i32 = 25;
pub(crate) const ENOEXEC: i32 = 8;
pub(crate) const E2BIG: i32 = 7;
