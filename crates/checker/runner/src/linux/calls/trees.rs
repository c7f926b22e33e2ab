//! Calls on paths of one or two components, below the directory in which the processes of a window start: `posix`.
//!
//! That directory stands for the root. Symbolic links lead to a name in it by its whole path.

use super::super::leftovers::Leftovers;
use super::super::operation::{Operation, PAGE_BYTES, check_name};
use super::{CWD, LinuxCall, Names, flag, number, pages, success};
use crate::arguments::Arguments;
use wire::results::ResultsWriter;

const ONE: &[&str] = &["deep", "parent", "name"];

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("mkdir", ONE, mkdir, success).by(Names::Relative),
    LinuxCall::new("rmdir", ONE, rmdir, success).by(Names::Relative),
    LinuxCall::new(
        "open",
        &["deep", "parent", "name", "creat", "excl", "trunc", "at_offset", "readable"],
        open,
        number,
    )
    .by(Names::Relative),
    LinuxCall::new("symlink", &["target", "deep", "parent", "name"], symlink, success).by(Names::Relative),
    LinuxCall::new("readlink", ONE, readlink, leads).by(Names::Relative),
    LinuxCall::new("link", &["old_deep", "old_parent", "old", "new_deep", "new_parent", "new"], link, success)
        .by(Names::Relative),
    LinuxCall::new("unlink", ONE, unlink, success).by(Names::Relative),
    LinuxCall::new("rename", &["src_deep", "src_parent", "src", "dst_deep", "dst_parent", "dst"], rename, success)
        .by(Names::Relative),
    LinuxCall::new("stat", ONE, stat, status).by(Names::Relative),
    LinuxCall::new("lstat", ONE, lstat, status).by(Names::Relative),
    LinuxCall::new(
        "statx",
        &["deep", "parent", "name", "nlink", "size", "times", "rights"],
        statx,
        |operation, _, results| {
            TreeStatus::of_statx(operation.list.bytes()).write(Asked::of_mask(operation.arguments[3]), results);
        },
    )
    .by(Names::Relative),
];

/// The mode of files that calls make, and of directories: all may do all. The rights of the model are to write.
pub(super) const FILE_MODE: u64 = 0o666;
const DIRECTORY_MODE: u64 = 0o777;

/// The path that the parameters from this one on give, as an argument.
pub(super) fn path(
    operation: &mut Operation,
    arguments: &Arguments<'_>,
    number: usize,
    from: usize,
) -> Result<u64, String> {
    let name = arguments.text(from + 2)?;
    check_name(name)?;
    if arguments.flag(from)? {
        let parent = arguments.text(from + 1)?;
        check_name(parent)?;
        operation.paths[number].set(&[parent, "/", name])?;
    } else {
        operation.paths[number].set(&[name])?;
    }
    Ok(operation.paths[number].address())
}

fn mkdir(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_mkdirat, [CWD, path, DIRECTORY_MODE]);
    Ok(())
}

fn rmdir(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_unlinkat, [CWD, path, libc::AT_REMOVEDIR as u64]);
    Ok(())
}

fn open(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    leftovers.picks_descriptors(1);
    let path = path(operation, arguments, 0, 0)?;
    let mode = if arguments.flag(7)? { libc::O_RDWR } else { libc::O_WRONLY };
    let append = if arguments.flag(6)? { 0 } else { libc::O_APPEND };
    let flags = mode
        | append
        | flag(arguments, 3, libc::O_CREAT)?
        | flag(arguments, 4, libc::O_EXCL)?
        | flag(arguments, 5, libc::O_TRUNC)?;
    operation.call(libc::SYS_openat, [CWD, path, flags as u64, FILE_MODE]);
    operation.user = leftovers.user();
    Ok(())
}

fn symlink(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let target = arguments.text(0)?;
    check_name(target)?;
    operation.paths[0].set(&[leftovers.prefix(), "/", target])?;
    let path = path(operation, arguments, 1, 1)?;
    operation.call(libc::SYS_symlinkat, [operation.paths[0].address(), CWD, path]);
    Ok(())
}

fn readlink(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_readlinkat, [CWD, path, operation.page.address(), PAGE_BYTES as u64]);
    Ok(())
}

fn link(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let (old, new) = (path(operation, arguments, 0, 0)?, path(operation, arguments, 1, 3)?);
    operation.call(libc::SYS_linkat, [CWD, old, CWD, new, 0]);
    Ok(())
}

fn unlink(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_unlinkat, [CWD, path, 0]);
    Ok(())
}

fn rename(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let (source, destination) = (path(operation, arguments, 0, 0)?, path(operation, arguments, 1, 3)?);
    operation.call(libc::SYS_renameat2, [CWD, source, CWD, destination, 0]);
    Ok(())
}

fn stat(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_newfstatat, [CWD, path, operation.stat_address(), 0]);
    Ok(())
}

fn lstat(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    let flags = libc::AT_SYMLINK_NOFOLLOW as u64;
    operation.call(libc::SYS_newfstatat, [CWD, path, operation.stat_address(), flags]);
    Ok(())
}

fn statx(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    let mut mask = libc::STATX_TYPE | libc::STATX_INO;
    for (parameter, fields) in [(3, NLINK), (4, SIZE), (5, TIMES), (6, RIGHTS)] {
        if arguments.flag(parameter)? {
            mask |= fields;
        }
    }
    operation.call(libc::SYS_statx, [CWD, path, 0, mask.into(), operation.list.address()]);
    Ok(())
}

const NLINK: u32 = libc::STATX_NLINK;
const SIZE: u32 = libc::STATX_SIZE;
const TIMES: u32 = libc::STATX_MTIME | libc::STATX_CTIME;
const RIGHTS: u32 = libc::STATX_MODE | libc::STATX_UID;

/// The last component of where a link leads.
pub(super) fn leads(operation: &Operation, length: i64, results: &mut ResultsWriter) {
    let bytes = &operation.page.bytes()[..usize::try_from(length).unwrap_or(0).min(PAGE_BYTES)];
    let name = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes);
    results.text(&String::from_utf8_lossy(name));
}

/// What `stat` and its kin tell.
fn status(operation: &Operation, _: i64, results: &mut ResultsWriter) {
    TreeStatus::of(operation.stat()).write(Asked::ALL, results);
}

/// Which parts of a status a test asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    nlink: bool,
    size: bool,
    times: bool,
    rights: bool,
}

impl Asked {
    const ALL: Self = Self { nlink: true, size: true, times: true, rights: true };

    /// All, or all but times.
    pub(super) fn all_but_times(times: bool) -> Self {
        Self { times, ..Self::ALL }
    }

    fn of_mask(mask: u64) -> Self {
        let has = |fields: u32| mask & u64::from(fields) == u64::from(fields);
        Self { nlink: has(NLINK), size: has(SIZE), times: has(TIMES), rights: has(RIGHTS) }
    }
}

/// Numbers of users in tests that are not the superuser's begin above this one.
pub(super) const USERS: i64 = 1000;

/// What `posix` knows of what a path leads to.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeStatus {
    pub(super) mode: i64,
    inode: i64,
    link_count: i64,
    pub(super) size_bytes: i64,
    owner: i64,
    mtime_ns: i64,
    ctime_ns: i64,
}

impl TreeStatus {
    pub(super) fn of(stat: &libc::stat) -> Self {
        Self {
            mode: stat.st_mode.into(),
            inode: stat.st_ino.cast_signed(),
            link_count: stat.st_nlink.cast_signed(),
            size_bytes: stat.st_size,
            owner: stat.st_uid.into(),
            mtime_ns: stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec,
            ctime_ns: stat.st_ctime * 1_000_000_000 + stat.st_ctime_nsec,
        }
    }

    /// From what `statx` has written: numbers at the offsets of `struct statx` (include/uapi/linux/stat.h).
    fn of_statx(bytes: &[u8; PAGE_BYTES]) -> Self {
        let number = |start: usize, size: usize| -> i64 {
            let mut whole = [0; 8];
            whole[..size].copy_from_slice(&bytes[start..start + size]);
            i64::from_le_bytes(whole)
        };
        let time = |start| number(start, 8) * 1_000_000_000 + number(start + 8, 4);
        Self {
            mode: number(28, 2),
            inode: number(32, 8),
            link_count: number(16, 4),
            size_bytes: number(40, 8),
            owner: number(20, 4),
            mtime_ns: time(112),
            ctime_ns: time(96),
        }
    }

    pub(super) fn numbers(self) -> [i64; 7] {
        [self.mode, self.inode, self.link_count, self.size_bytes, self.owner, self.mtime_ns, self.ctime_ns]
    }

    pub(super) fn of_numbers([mode, inode, link_count, size_bytes, owner, mtime_ns, ctime_ns]: [i64; 7]) -> Self {
        Self { mode, inode, link_count, size_bytes, owner, mtime_ns, ctime_ns }
    }

    fn kind(self) -> u32 {
        self.mode as u32 & libc::S_IFMT
    }

    pub(super) fn is_link(self) -> bool {
        self.kind() == libc::S_IFLNK
    }

    pub(super) fn is_regular(self) -> bool {
        self.kind() == libc::S_IFREG
    }

    /// Writes what is asked for: the kind and which file, link or directory it is; how many names it has, its size and its
    /// times; its rights. Of a directory neither of those in the middle, of a link neither size nor rights.
    pub(super) fn write(self, asked: Asked, results: &mut ResultsWriter) {
        let [of_file, of_directory, of_link] =
            [libc::S_IFREG, libc::S_IFDIR, libc::S_IFLNK].map(|kind| self.kind() == kind);
        let owner = if self.owner == 0 { 0 } else { self.owner - USERS };
        results.structure(11);
        results.field("kind");
        results.number(if of_directory {
            2
        } else if of_link {
            3
        } else {
            1
        });
        for (name, sort, is_it) in
            [("ino", "Inum", of_file), ("link", "LinkNumber", of_link), ("directory", "Directory", of_directory)]
        {
            results.field(name);
            if is_it { results.opaque(sort, self.inode.cast_unsigned()) } else { results.null() }
        }
        results.field("nlink");
        if asked.nlink && !of_directory {
            results.number(self.link_count)
        } else {
            results.null()
        }
        results.field("size");
        if asked.size && of_file {
            pages(self.size_bytes, results)
        } else {
            results.null()
        }
        for (name, time_ns) in [("mtime", self.mtime_ns), ("ctime", self.ctime_ns)] {
            results.field(name);
            if asked.times && !of_directory { results.time(time_ns) } else { results.null() }
        }
        let has_rights = asked.rights && !of_link;
        results.field("owner");
        if has_rights {
            results.number(owner)
        } else {
            results.null()
        }
        for (name, bit) in [("owner_writes", 0o200), ("others_write", 0o002)] {
            results.field(name);
            if has_rights { results.flag(self.mode & bit != 0) } else { results.null() }
        }
    }
}
