//! Calls on paths of one or two components, below the directory in which the processes of a window start: `posix`.
//!
//! That directory stands for the root. Symbolic links lead to a name in it by its whole path.

use super::super::leftovers::Leftovers;
use super::super::operation::{Operation, PAGE_BYTES, check_name};
use super::{After, CWD, LinuxCall, Names, flag, success};
use crate::arguments::Arguments;
use wire::results::ResultsWriter;

const ONE: &[&str] = &["deep", "parent", "name"];

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("mkdir", ONE, mkdir, success).by(Names::Relative),
    LinuxCall::new("rmdir", ONE, rmdir, success).by(Names::Relative),
    // Reports success only; the descriptor is closed after the window.
    LinuxCall::new("open", &["deep", "parent", "name", "creat", "excl"], open, success)
        .by(Names::Relative)
        .then(After::Close),
    LinuxCall::new("symlink", &["target", "deep", "parent", "name"], symlink, success).by(Names::Relative),
    LinuxCall::new("readlink", ONE, readlink, leads).by(Names::Relative),
    LinuxCall::new("link", &["old_deep", "old_parent", "old", "new_deep", "new_parent", "new"], link, success)
        .by(Names::Relative),
    LinuxCall::new("unlink", ONE, unlink, success).by(Names::Relative),
    LinuxCall::new("rename", &["src_deep", "src_parent", "src", "dst_deep", "dst_parent", "dst"], rename, success)
        .by(Names::Relative),
    LinuxCall::new("stat", ONE, stat, status).by(Names::Relative),
    LinuxCall::new("lstat", ONE, lstat, status).by(Names::Relative),
    LinuxCall::new("access", ONE, access, success).by(Names::Relative),
];

/// The path that the parameters from this one on give, as an argument.
fn path(operation: &mut Operation, arguments: &Arguments<'_>, number: usize, from: usize) -> Result<u64, String> {
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
    operation.call(libc::SYS_mkdirat, [CWD, path, 0o755]);
    Ok(())
}

fn rmdir(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_unlinkat, [CWD, path, libc::AT_REMOVEDIR as u64]);
    Ok(())
}

fn open(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    let flags = libc::O_RDWR | flag(arguments, 3, libc::O_CREAT)? | flag(arguments, 4, libc::O_EXCL)?;
    operation.call(libc::SYS_openat, [CWD, path, flags as u64, 0o644]);
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

fn access(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_faccessat, [CWD, path, libc::F_OK as u64]);
    Ok(())
}

/// The last component of where a link leads.
fn leads(operation: &Operation, length: i64, results: &mut ResultsWriter) {
    let bytes = &operation.page.bytes()[..usize::try_from(length).unwrap_or(0).min(PAGE_BYTES)];
    let name = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes);
    results.text(&String::from_utf8_lossy(name));
}

/// The kind, which file or directory it is, and how many names it has; of a directory, no number.
fn status(operation: &Operation, _: i64, results: &mut ResultsWriter) {
    let stat = operation.stat();
    let is_directory = stat.st_mode & libc::S_IFMT == libc::S_IFDIR;
    let is_symlink = stat.st_mode & libc::S_IFMT == libc::S_IFLNK;
    results.structure(4);
    results.field("kind");
    results.number(if is_directory {
        2
    } else if is_symlink {
        3
    } else {
        1
    });
    results.field("ino");
    if is_directory {
        results.null()
    } else {
        results.opaque("Inum", stat.st_ino)
    }
    results.field("directory");
    if is_directory {
        results.opaque("Directory", stat.st_ino)
    } else {
        results.null()
    }
    results.field("nlink");
    if is_directory { results.null() } else { results.number(stat.st_nlink.cast_signed()) }
}
