//! Flags of what opens files and makes descriptors, and opening by them.

use scalefs::data::{self, DescriptorOptions};
use scalefs::{Errno, InProcess, NodeOf, NumberChoice, OnExec, OpenFlags, Outside, Start, StatusFlags, handles};

use crate::border::known;
use crate::reason;

/// Open for reading.
pub const SCALEFS_READ: u32 = 1;
/// Open for writing.
pub const SCALEFS_WRITE: u32 = 2;
/// Create the file if the name does not exist (O_CREAT).
pub const SCALEFS_CREATE: u32 = 4;
/// With SCALEFS_CREATE: the name must not exist (O_EXCL).
pub const SCALEFS_EXCLUSIVE: u32 = 8;
/// Make an existing file empty (O_TRUNC).
pub const SCALEFS_TRUNCATE: u32 = 16;
/// It must be a directory (O_DIRECTORY).
pub const SCALEFS_DIRECTORY: u32 = 32;
/// It must not be a symbolic link (O_NOFOLLOW).
pub const SCALEFS_NO_FOLLOW: u32 = 64;
/// A flag of scalefs_open and scalefs_fcntl: each write goes to the end (O_APPEND).
pub const SCALEFS_APPEND: u32 = 128;
/// Calls on pipes fail with -EAGAIN instead of waiting (O_NONBLOCK).
pub const SCALEFS_NONBLOCK: u32 = 256;
/// A flag of what makes descriptors: exec closes them (O_CLOEXEC).
pub const SCALEFS_CLOSE_ON_EXEC: u32 = 512;
/// A flag of what makes descriptors: any free number will do, so that threads share nothing in taking one (O_ANYFD).
pub const SCALEFS_ANY_NUMBER: u32 = 1024;
/// A flag of scalefs_open: the descriptor only stands for what the path leads to, with SCALEFS_NO_FOLLOW for a symbolic link itself
/// (O_PATH). No right to it is asked for, and it lets nobody read, write or change it.
pub const SCALEFS_HANDLE: u32 = 4096;
/// A flag of scalefs_open with SCALEFS_WRITE: a new file without a name, in the directory to which the path leads (O_TMPFILE).
/// scalefs_linkat gives it one.
pub const SCALEFS_TEMPORARY: u32 = 8192;

/// Flags that say how a descriptor is made.
const OF_DESCRIPTORS: u32 = SCALEFS_APPEND | SCALEFS_NONBLOCK | SCALEFS_CLOSE_ON_EXEC | SCALEFS_ANY_NUMBER;

/// How descriptors are made; refused if there are flags but those that are allowed.
pub(crate) fn descriptor_options(flags: u32, allowed: u32) -> Result<DescriptorOptions, Errno> {
    known((flags & !(allowed & OF_DESCRIPTORS) == 0).then_some(()))?;
    Ok(DescriptorOptions {
        status: status_flags(flags & (SCALEFS_APPEND | SCALEFS_NONBLOCK))?,
        number: if flags & SCALEFS_ANY_NUMBER == 0 { NumberChoice::LowestFrom(0) } else { NumberChoice::Any },
        on_exec: closing(flags & SCALEFS_CLOSE_ON_EXEC != 0),
    })
}

pub(crate) fn closing(closes: bool) -> OnExec {
    if closes { OnExec::Close } else { OnExec::Keep }
}

/// Opens a file by the flags of scalefs_open.
pub(crate) fn open<'v, 'c>(
    call: &'v InProcess<'c, Outside>,
    start: Start<NodeOf<'v, InProcess<'c, Outside>>>,
    path: &[u8],
    flags: u32,
    mode: u32,
) -> Result<i64, Errno> {
    let (how, options) = opening(flags & !(SCALEFS_HANDLE | SCALEFS_TEMPORARY))?;
    let opened = match flags & (SCALEFS_HANDLE | SCALEFS_TEMPORARY) {
        0 => data::open(call, start, path, how, mode, options),
        SCALEFS_HANDLE => handles::open_handle(call, start, path, how, options),
        SCALEFS_TEMPORARY => handles::open_temporary(call, start, path, how, mode, options),
        _ => return reason::invalid("SCALEFS_HANDLE and SCALEFS_TEMPORARY together"),
    };
    opened.map(i64::from)
}

/// The flags of scalefs_open: how the file is opened, and how its descriptor is made.
pub(crate) fn opening(flags: u32) -> Result<(OpenFlags, DescriptorOptions), Errno> {
    let of_file = known(OpenFlags::from_bits(flags & !OF_DESCRIPTORS))?;
    Ok((of_file, descriptor_options(flags & OF_DESCRIPTORS, OF_DESCRIPTORS)?))
}

/// The flags of a description; refused if there are others.
pub(crate) fn status_flags(flags: u32) -> Result<StatusFlags, Errno> {
    known((flags & !(SCALEFS_APPEND | SCALEFS_NONBLOCK) == 0).then_some(()))?;
    let append = if flags & SCALEFS_APPEND == 0 { StatusFlags::NONE } else { StatusFlags::APPEND };
    let nonblock = if flags & SCALEFS_NONBLOCK == 0 { StatusFlags::NONE } else { StatusFlags::NONBLOCK };
    Ok(append | nonblock)
}
