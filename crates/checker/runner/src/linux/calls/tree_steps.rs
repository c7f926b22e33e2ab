//! What set-ups and observations of `posix` do in addition to the interface's own calls.

use wire::results::ResultsWriter;

use super::super::held;
use super::super::leftovers::Leftovers;
use super::super::operation::{Operation, PAGE_BYTES};
use super::super::system_call::system_call;
use super::observation::{Numbers, contents, next, push_file, write};
use super::rights::{mode, user};
use super::trees::{Asked, TreeStatus, path};
use super::{CWD, LinuxCall, Names, PAGE, nothing, pages};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("place_file", &["file", "deep", "parent", "name"], place_file, nothing).by(Names::Relative),
    LinuxCall::new("own_file", &["file", "owner", "owner_writes", "others_write"], own_file, nothing),
    LinuxCall::new("own_path", &["deep", "parent", "name", "owner", "owner_writes", "others_write"], own_path, nothing)
        .by(Names::Relative),
    LinuxCall::new("own_root", &["owner", "owner_writes", "others_write"], own_root, nothing).by(Names::Relative),
    LinuxCall::new("become", &["user"], become_user, nothing),
    LinuxCall::new("peek_path", &["deep", "parent", "name", "times"], peek_path, |operation, _, results| {
        write_path(operation, operation.arguments[1] != 0, results);
    })
    .by(Names::Relative),
    LinuxCall::new("peek_slots", &[], peek_slots, |operation, _, results| write(operation, results, slot)),
];

fn place_file(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 1)?;
    let flags = libc::AT_EMPTY_PATH as u64;
    operation.call(libc::SYS_linkat, [held::file(arguments.number(0)?)?, c"".as_ptr() as u64, CWD, path, flags]);
    Ok(())
}

/// Gives the directory or file at the first path away, whose new owner and mode are the first arguments.
fn own(operation: &mut Operation) -> i64 {
    let ([owner, mode, ..], path) = (operation.arguments, operation.paths[0].address());
    step!(system_call(libc::SYS_fchownat, [CWD, path, owner, u64::MAX, 0]));
    system_call(libc::SYS_fchmodat, [CWD, path, mode])
}

fn own_file(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let held = held::file(arguments.number(0)?)?;
    operation.steps(
        |operation| {
            let [owner, mode, held, ..] = operation.arguments;
            step!(system_call(libc::SYS_fchown, [held, owner, u64::MAX]));
            system_call(libc::SYS_fchmod, [held, mode])
        },
        [user(arguments, 1)?, mode(arguments, 2)?, held],
    );
    Ok(())
}

fn own_path(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    path(operation, arguments, 0, 0)?;
    operation.steps(own, [user(arguments, 3)?, mode(arguments, 4)?]);
    Ok(())
}

fn own_root(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    operation.paths[0].set(&[leftovers.prefix()])?;
    operation.steps(own, [user(arguments, 0)?, mode(arguments, 1)?]);
    Ok(())
}

/// What the process calls from now on, a user makes; the runner stays what it is.
fn become_user(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let user = user(arguments, 0)?;
    leftovers.becomes(u32::try_from(user).unwrap_or_default());
    operation.steps(|_| 0, []);
    Ok(())
}

fn peek_path(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let path = path(operation, arguments, 0, 0)?;
    operation.steps(look_at_path, [path, arguments.flag(3)?.into()]);
    Ok(())
}

/// Reports the status; of a file its contents; where a link leads comes into the page.
fn look_at_path(operation: &mut Operation) -> i64 {
    operation.report.clear();
    let path = operation.arguments[0];
    let not_followed = libc::AT_SYMLINK_NOFOLLOW as u64;
    step!(system_call(libc::SYS_newfstatat, [CWD, path, operation.stat_address(), not_followed]));
    let status = TreeStatus::of(operation.stat());
    for number in status.numbers() {
        operation.report.push(number);
    }
    if status.is_link() {
        return system_call(libc::SYS_readlinkat, [CWD, path, operation.page.address(), PAGE_BYTES as u64]);
    }
    if !status.is_regular() || status.size_bytes == 0 {
        operation.report.push(0);
        return 0;
    }
    let flags = libc::O_RDONLY as u64;
    let file = step!(system_call(libc::SYS_openat, [CWD, path, flags])).cast_unsigned();
    let result = push_file(operation, file, status.size_bytes);
    system_call(libc::SYS_close, [file]);
    result
}

fn write_path(operation: &Operation, times: bool, results: &mut ResultsWriter) {
    let mut numbers = operation.report.numbers().unwrap_or_default().iter();
    let status = TreeStatus::of_numbers(std::array::from_fn(|_| next(&mut numbers)));
    results.structure(3);
    results.field("stat");
    status.write(Asked::all_but_times(times), results);
    results.field("target");
    if status.is_link() {
        super::trees::leads(operation, status.size_bytes, results);
    } else {
        results.null();
    }
    results.field("contents");
    if status.is_regular() { contents(&mut numbers, results) } else { results.null() }
}

/// Gives every open descriptor an offset of its own, and then tells the flags and the offset of each.
fn peek_slots(operation: &mut Operation, _: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    operation.steps(list_slots, [leftovers.descriptor_limit()]);
    Ok(())
}

/// The offset, in pages, that the first descriptor is given.
const FIRST_OFFSET: u64 = 64;

fn list_slots(operation: &mut Operation) -> i64 {
    operation.report.clear();
    let limit = operation.arguments[0];
    for descriptor in 0..limit {
        let offset = (FIRST_OFFSET + descriptor) * PAGE.cast_unsigned();
        system_call(libc::SYS_lseek, [descriptor, offset, libc::SEEK_SET as u64]);
    }
    for descriptor in 0..limit {
        let flags = system_call(libc::SYS_fcntl, [descriptor, libc::F_GETFD as u64]);
        if flags < 0 {
            continue;
        }
        let of_description = step!(system_call(libc::SYS_fcntl, [descriptor, libc::F_GETFL as u64]));
        let offset = system_call(libc::SYS_lseek, [descriptor, 0, libc::SEEK_CUR as u64]);
        let survives_exec = flags & i64::from(libc::FD_CLOEXEC) == 0;
        let at_offset = of_description & i64::from(libc::O_APPEND) == 0;
        for number in [descriptor.cast_signed(), survives_exec.into(), at_offset.into(), offset.max(0)] {
            operation.report.push(number);
        }
    }
    0
}

fn slot(numbers: &mut Numbers<'_>, results: &mut ResultsWriter) {
    results.structure(4);
    results.field("fd");
    results.number(next(numbers));
    for name in ["survives_exec", "at_offset"] {
        results.field(name);
        results.flag(next(numbers) != 0);
    }
    results.field("offset");
    pages(next(numbers), results);
}
