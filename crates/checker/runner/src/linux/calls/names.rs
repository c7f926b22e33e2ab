//! Calls that take file names.

use super::super::leftovers::Leftovers;
use super::super::operation::Operation;
use super::{After, CWD, LinuxCall, Names, access_mode, flag, number, status, success};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    // Reports success only; the descriptor is closed after the window.
    LinuxCall::new("open", &["name", "creat", "excl"], open_to_read_and_write, success)
        .by(Names::Relative)
        .then(After::Close),
    LinuxCall::new("open", &["name", "creat", "excl", "trunc", "readable", "writable"], open, number)
        .by(Names::Relative),
    LinuxCall::new("link", &["old", "new"], link, success).by(Names::Relative),
    LinuxCall::new("unlink", &["name"], unlink, success).by(Names::Relative),
    LinuxCall::new("rename", &["src", "dst"], rename, success).by(Names::Relative),
    LinuxCall::new("stat", &["name"], stat, status).by(Names::Relative),
    LinuxCall::new("access", &["name"], access, success).by(Names::Relative),
];

/// `open(name, creat, excl)` with O_RDWR.
fn open_to_read_and_write(
    operation: &mut Operation,
    arguments: &Arguments<'_>,
    leftovers: &mut Leftovers,
) -> Result<(), String> {
    open_with(operation, arguments, leftovers, libc::O_RDWR)
}

fn open(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    leftovers.picks_descriptors(1);
    let mode = access_mode(arguments.flag(4)?, arguments.flag(5)?);
    open_with(operation, arguments, leftovers, mode | flag(arguments, 3, libc::O_TRUNC)?)
}

fn open_with(
    operation: &mut Operation,
    arguments: &Arguments<'_>,
    leftovers: &mut Leftovers,
    flags: libc::c_int,
) -> Result<(), String> {
    let path = name(operation, arguments)?;
    if arguments.flag(1)? {
        leftovers.name(arguments.text(0)?);
    }
    let flags = flags | flag(arguments, 1, libc::O_CREAT)? | flag(arguments, 2, libc::O_EXCL)?;
    operation.call(libc::SYS_openat, [CWD, path, flags as u64, 0o644]);
    Ok(())
}

fn link(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let (old, new) = two_names(operation, arguments, leftovers)?;
    operation.call(libc::SYS_linkat, [CWD, old, CWD, new, 0]);
    Ok(())
}

fn unlink(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = name(operation, arguments)?;
    operation.call(libc::SYS_unlinkat, [CWD, path, 0]);
    Ok(())
}

fn rename(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let (source, destination) = two_names(operation, arguments, leftovers)?;
    operation.call(libc::SYS_renameat2, [CWD, source, CWD, destination, 0]);
    Ok(())
}

fn stat(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = name(operation, arguments)?;
    operation.call(libc::SYS_newfstatat, [CWD, path, operation.stat_address(), 0]);
    Ok(())
}

fn access(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = name(operation, arguments)?;
    operation.call(libc::SYS_faccessat, [CWD, path, libc::F_OK as u64]);
    Ok(())
}

fn name(operation: &mut Operation, arguments: &Arguments<'_>) -> Result<u64, String> {
    operation.paths[0].set_name(arguments.text(0)?)?;
    Ok(operation.paths[0].address())
}

/// Two names, of which the second may be created.
fn two_names(
    operation: &mut Operation,
    arguments: &Arguments<'_>,
    leftovers: &mut Leftovers,
) -> Result<(u64, u64), String> {
    let first = name(operation, arguments)?;
    operation.paths[1].set_name(arguments.text(1)?)?;
    leftovers.name(arguments.text(1)?);
    Ok((first, operation.paths[1].address()))
}
