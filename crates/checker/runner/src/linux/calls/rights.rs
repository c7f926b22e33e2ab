//! Calls on paths that ask who makes them: access, truncate, and those that change rights and times. All files can be read
//! by all; where a right to write is denied to others, it is denied to the group as well, which the model does not have.

use super::super::leftovers::Leftovers;
use super::super::operation::Operation;
use super::trees::{USERS, path};
use super::{CWD, LinuxCall, Names, offset, success};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("access", &["deep", "parent", "name", "write"], access, success).by(Names::Relative),
    LinuxCall::new("truncate", &["deep", "parent", "name", "length"], truncate, success).by(Names::Relative),
    LinuxCall::new("chmod", &["deep", "parent", "name", "owner_writes", "others_write"], chmod, success)
        .by(Names::Relative),
    LinuxCall::new("chown", &["deep", "parent", "name", "owner"], chown, success).by(Names::Relative),
    LinuxCall::new("utimensat", &["deep", "parent", "name"], utimensat, success).by(Names::Relative),
];

/// The bits of a mode for who may write; all may read, and search directories.
pub(super) fn mode(arguments: &Arguments<'_>, first: usize) -> Result<u64, String> {
    let owner = if arguments.flag(first)? { 0o200 } else { 0 };
    let others = if arguments.flag(first + 1)? { 0o022 } else { 0 };
    Ok(0o555 | owner | others)
}

/// The number that Linux knows a user of the test by.
pub(super) fn user(arguments: &Arguments<'_>, parameter: usize) -> Result<u64, String> {
    match arguments.number(parameter)? {
        0 => Ok(0),
        number @ 1..=99 => Ok((USERS + number).cast_unsigned()),
        number => Err(format!("user {number}: expected 0 to 99")),
    }
}

fn access(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    let mode = if arguments.flag(3)? { libc::W_OK } else { libc::F_OK };
    operation.call(libc::SYS_faccessat, [CWD, path, mode as u64]);
    operation.user = leftovers.user();
    Ok(())
}

fn truncate(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_truncate, [path, offset(arguments, 3)?]);
    operation.user = leftovers.user();
    Ok(())
}

fn chmod(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_fchmodat, [CWD, path, mode(arguments, 3)?]);
    operation.user = leftovers.user();
    Ok(())
}

fn chown(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    const SAME_GROUP: u64 = u64::MAX;
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_fchownat, [CWD, path, user(arguments, 3)?, SAME_GROUP, 0]);
    operation.user = leftovers.user();
    Ok(())
}

fn utimensat(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    const NOW: u64 = 0; // no times are given
    let path = path(operation, arguments, 0, 0)?;
    operation.call(libc::SYS_utimensat, [CWD, path, NOW, 0]);
    operation.user = leftovers.user();
    Ok(())
}
