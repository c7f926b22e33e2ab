//! Calls that only set-ups make: they build a state out of files, pipes, descriptors and mappings.
//!
//! Files and pipes are numbered by the set-up, and held by process 0 ([`held`]) until the set-up forgets them. A file has
//! no name at first (O_TMPFILE); `name_file` links it. Where the file system does not have that (overlay before Linux 6.3)
//! it has a name of the runner's until it is forgotten. Every descriptor gets an open file description of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::held;
use super::super::leftovers::Leftovers;
use super::super::operation::{Operation, PAGE_BYTES, Path, check_name};
use super::super::system_call::system_call;
use super::memory::{LENGTH, address, protection};
use super::{CWD, LinuxCall, Names, access_mode, byte, identity, nothing, offset};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("make_file", &["file", "length"], make_file, identity),
    LinuxCall::new("fill_page", &["file", "page", "data"], fill_page, nothing),
    LinuxCall::new("name_file", &["file", "directory", "name"], name_file, nothing),
    LinuxCall::new("enter_directory", &["directory"], enter_directory, nothing).by(Names::Enters),
    LinuxCall::new("open_file", &["fd", "file", "readable", "writable", "offset"], open_file, nothing),
    LinuxCall::new("make_pipe", &["pipe"], make_pipe, identity),
    LinuxCall::new("fill_pipe", &["pipe", "data"], fill_pipe, nothing),
    LinuxCall::new("open_pipe", &["fd", "pipe", "write_end"], open_pipe, nothing),
    LinuxCall::new("map_file", &["address", "file", "page", "shared", "writable", "may_write"], map_file, nothing)
        .of_memory(),
    LinuxCall::new("forget_file", &["file"], forget_file, nothing),
    LinuxCall::new("forget_pipe", &["pipe", "other_readers", "other_writers"], forget_pipe, nothing),
];

const FILE_MODE: u64 = 0o666;

/// Whether the file system has no files without a name. Atomic as a static must be: only process 0 makes and forgets files.
static NEEDS_NAMES: AtomicBool = AtomicBool::new(false);

/// The path of the name that a set-up's file has where it needs one.
fn name_of_held(path: &mut Path, leftovers: &Leftovers, file: u64) -> Result<(), String> {
    let digits = [b'0' + (file / 10 % 10) as u8, b'0' + (file % 10) as u8];
    path.set(&[leftovers.root(), "/held.", std::str::from_utf8(&digits).unwrap_or_default()])
}

/// Opens a new file, without a name if the file system has such.
fn open_new(operation: &Operation) -> i64 {
    let [directory, name] = [operation.paths[0].address(), operation.paths[1].address()];
    if !NEEDS_NAMES.load(Ordering::Relaxed) {
        let flags = (libc::O_TMPFILE | libc::O_RDWR) as u64;
        let opened = system_call(libc::SYS_openat, [CWD, directory, flags, FILE_MODE]);
        if opened != -i64::from(libc::EOPNOTSUPP) {
            return opened;
        }
        NEEDS_NAMES.store(true, Ordering::Relaxed);
    }
    system_call(libc::SYS_unlink, [name]); // of a window that came to no good end
    let flags = (libc::O_CREAT | libc::O_EXCL | libc::O_RDWR) as u64;
    system_call(libc::SYS_openat, [CWD, name, flags, FILE_MODE])
}

fn make_file(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let held = held::file(arguments.number(0)?)?;
    leftovers.holds(held);
    operation.paths[0].set(&[leftovers.root()])?;
    name_of_held(&mut operation.paths[1], leftovers, held)?;
    operation.steps(
        |operation| {
            let [held, length, ..] = operation.arguments;
            let opened = step!(open_new(operation));
            step!(held::move_to(opened.cast_unsigned(), held));
            if length > 0 {
                step!(system_call(libc::SYS_ftruncate, [held, length]));
            }
            system_call(libc::SYS_fstat, [held, operation.stat_address()])
        },
        [held, offset(arguments, 1)?],
    );
    Ok(())
}

fn fill_page(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.page.fill(byte(arguments, 2)?);
    let held = held::file(arguments.number(0)?)?;
    operation.steps(
        |operation| {
            let [held, start, ..] = operation.arguments;
            whole(system_call(libc::SYS_pwrite64, [held, operation.page.address(), PAGE_BYTES as u64, start]))
        },
        [held, offset(arguments, 1)?],
    );
    Ok(())
}

/// 0 if a whole page was written.
fn whole(written: i64) -> i64 {
    if written == PAGE_BYTES as i64 { 0 } else { written.min(-i64::from(libc::EIO)) }
}

fn name_file(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let (directory, name) = (arguments.text(1)?, arguments.text(2)?);
    let is_new = leftovers.directory(directory)?;
    leftovers.name(name);
    check_name(name)?;
    operation.paths[0].set(&[leftovers.prefix(), directory])?;
    operation.paths[1].set(&[leftovers.prefix(), directory, "/", name])?;
    operation.steps(
        |operation| {
            let [held, is_new, ..] = operation.arguments;
            let [directory, path] = [operation.paths[0].address(), operation.paths[1].address()];
            if is_new != 0 {
                step!(system_call(libc::SYS_mkdir, [directory, 0o755]));
            }
            let flags = libc::AT_EMPTY_PATH as u64;
            system_call(libc::SYS_linkat, [held, c"".as_ptr() as u64, CWD, path, flags])
        },
        [held::file(arguments.number(0)?)?, is_new.into()],
    );
    Ok(())
}

fn enter_directory(
    operation: &mut Operation,
    arguments: &Arguments<'_>,
    leftovers: &mut Leftovers,
) -> Result<(), String> {
    let directory = arguments.text(0)?;
    let is_new = leftovers.directory(directory)?;
    operation.paths[0].set(&[leftovers.prefix(), directory])?;
    operation.steps(
        |operation| {
            let path = operation.paths[0].address();
            if operation.arguments[0] != 0 {
                step!(system_call(libc::SYS_mkdir, [path, 0o755]));
            }
            system_call(libc::SYS_chdir, [path])
        },
        [is_new.into()],
    );
    Ok(())
}

/// Opens what process 0 holds again, under the number `wanted`.
fn open_held(operation: &Operation, wanted: u64, flags: u64) -> i64 {
    let path = operation.paths[0].address();
    let opened = step!(system_call(libc::SYS_openat, [held::OF_PROCESS_0, path, flags]));
    held::move_to(opened.cast_unsigned(), wanted)
}

fn open_file(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let descriptor = held::test_descriptor(arguments.number(0)?)?;
    leftovers.names_descriptor(descriptor);
    operation.paths[0].set_number(held::file(arguments.number(1)?)?);
    let mode = access_mode(arguments.flag(2)?, arguments.flag(3)?);
    operation.steps(
        |operation| {
            let [descriptor, mode, start, ..] = operation.arguments;
            step!(open_held(operation, descriptor, mode));
            if start > 0 {
                step!(system_call(libc::SYS_lseek, [descriptor, start, libc::SEEK_SET as u64]));
            }
            0
        },
        [descriptor, mode as u64, offset(arguments, 4)?],
    );
    Ok(())
}

fn make_pipe(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let ends = held::pipe(arguments.number(0)?)?;
    ends.into_iter().for_each(|end| leftovers.holds(end));
    operation.steps(
        |operation| {
            let [read_end, write_end, ..] = operation.arguments;
            let numbers = operation.numbers.as_ptr() as u64;
            step!(system_call(libc::SYS_pipe2, [numbers, libc::O_NONBLOCK as u64]));
            for (opened, held) in operation.numbers.into_iter().zip([read_end, write_end]) {
                step!(held::move_to(u64::from(opened.cast_unsigned()), held));
            }
            system_call(libc::SYS_fstat, [read_end, operation.stat_address()])
        },
        ends,
    );
    Ok(())
}

fn fill_pipe(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.page.fill(byte(arguments, 1)?);
    operation.steps(
        |operation| {
            let [write_end, ..] = operation.arguments;
            whole(system_call(libc::SYS_write, [write_end, operation.page.address(), PAGE_BYTES as u64]))
        },
        [held::pipe(arguments.number(0)?)?[1]],
    );
    Ok(())
}

fn open_pipe(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let descriptor = held::test_descriptor(arguments.number(0)?)?;
    leftovers.names_descriptor(descriptor);
    let write_end = arguments.flag(2)?;
    operation.paths[0].set_number(held::pipe(arguments.number(1)?)?[usize::from(write_end)]);
    let flags = access_mode(!write_end, write_end) | libc::O_NONBLOCK;
    operation.steps(
        |operation| {
            let [descriptor, flags, ..] = operation.arguments;
            open_held(operation, descriptor, flags).min(0)
        },
        [descriptor, flags as u64],
    );
    Ok(())
}

fn map_file(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    leftovers.page(arguments.number(0)?);
    operation.paths[0].set_number(held::file(arguments.number(1)?)?);
    let kind = if arguments.flag(3)? { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
    operation.steps(
        |operation| {
            let [address, start, flags, protection, mode, ..] = operation.arguments;
            let path = operation.paths[0].address();
            let opened = step!(system_call(libc::SYS_openat, [held::OF_PROCESS_0, path, mode])).cast_unsigned();
            let mapped = system_call(libc::SYS_mmap, [address, LENGTH, protection, flags, opened, start]);
            system_call(libc::SYS_close, [opened]);
            mapped
        },
        [
            address(operation, arguments, 0)?,
            offset(arguments, 2)?,
            (kind | libc::MAP_FIXED) as u64,
            protection(arguments.flag(4)?),
            access_mode(true, arguments.flag(5)?) as u64,
        ],
    );
    Ok(())
}

fn forget_file(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let held = held::file(arguments.number(0)?)?;
    leftovers.lets_go(held);
    name_of_held(&mut operation.paths[0], leftovers, held)?;
    operation.steps(
        |operation| {
            let [held, ..] = operation.arguments;
            if NEEDS_NAMES.load(Ordering::Relaxed) {
                step!(system_call(libc::SYS_unlink, [operation.paths[0].address()]));
            }
            // For the model this removes a name, which marks the time of the last change of status: so does this, which
            // leaves owner and group as they are (chown_common).
            step!(system_call(libc::SYS_fchown, [held, u64::MAX, u64::MAX]));
            system_call(libc::SYS_close, [held])
        },
        [held],
    );
    Ok(())
}

fn forget_pipe(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let [read_end, write_end] = held::pipe(arguments.number(0)?)?;
    for (end, parameter) in [(read_end, 1), (write_end, 2)] {
        if !arguments.flag(parameter)? {
            leftovers.lets_go(end);
        }
    }
    operation.steps(
        |operation| {
            let [read_end, write_end, readers_stay, writers_stay, ..] = operation.arguments;
            for (end, stays) in [(read_end, readers_stay), (write_end, writers_stay)] {
                if stays == 0 {
                    step!(system_call(libc::SYS_close, [end]));
                }
            }
            0
        },
        [read_end, write_end, arguments.flag(1)?.into(), arguments.flag(2)?.into()],
    );
    Ok(())
}
