//! Calls on descriptors that share open file descriptions, on their flags, and on files behind them.

use wire::results::ResultsWriter;

use super::super::held::test_descriptor;
use super::super::leftovers::Leftovers;
use super::super::operation::{Operation, PAGE_BYTES};
use super::{LinuxCall, byte, content, number, offset, page_count, pages, success};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("dup", &["fd"], dup, number),
    LinuxCall::new("dup2", &["fd", "target"], dup2, number),
    LinuxCall::new("getfd", &["fd"], getfd, |_, flags, results| {
        results.flag(flags & i64::from(libc::FD_CLOEXEC) == 0);
    }),
    LinuxCall::new("setfd", &["fd", "survives_exec"], setfd, success),
    LinuxCall::new("getfl", &["fd"], getfl, |_, flags, results| write_mode(flags, results)),
    LinuxCall::new("setfl", &["fd", "at_offset"], setfl, success),
    LinuxCall::new("poll", &["fd"], poll, |operation, _, results| {
        // Events stand after the descriptor and what is asked for (`struct pollfd`).
        let events = (operation.numbers[1] >> 16) as libc::c_short;
        if events & libc::POLLNVAL != 0 {
            return results.errno(libc::EBADF as u16);
        }
        write_ready(events, results);
    }),
    LinuxCall::new("fsync", &["fd"], fsync, success),
    LinuxCall::new("ftruncate", &["fd", "length"], ftruncate, success),
    LinuxCall::new("readv", &["fd"], readv, what_was_read),
    LinuxCall::new("writev", &["fd", "first", "second"], writev, page_count),
];

fn dup(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    leftovers.picks_descriptors(1);
    operation.call(libc::SYS_dup, [test_descriptor(arguments.number(0)?)?]);
    Ok(())
}

fn dup2(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let target = test_descriptor(arguments.number(1)?)?;
    leftovers.names_descriptor(target);
    operation.call(libc::SYS_dup2, [test_descriptor(arguments.number(0)?)?, target]);
    Ok(())
}

/// Prepares `fcntl`.
fn fcntl(operation: &mut Operation, arguments: &Arguments<'_>, command: i32, flags: i32) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(0)?)?;
    operation.call(libc::SYS_fcntl, [descriptor, command as u64, flags as u64]);
    Ok(())
}

fn getfd(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    fcntl(operation, arguments, libc::F_GETFD, 0)
}

fn setfd(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let flags = if arguments.flag(1)? { 0 } else { libc::FD_CLOEXEC };
    fcntl(operation, arguments, libc::F_SETFD, flags)
}

fn getfl(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    fcntl(operation, arguments, libc::F_GETFL, 0)
}

/// O_NONBLOCK stays with pipes, and says nothing of files.
fn setfl(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let append = if arguments.flag(1)? { 0 } else { libc::O_APPEND };
    fcntl(operation, arguments, libc::F_SETFL, libc::O_NONBLOCK | append)
}

fn write_mode(flags: i64, results: &mut ResultsWriter) {
    let flags = flags as libc::c_int;
    let mode = flags & libc::O_ACCMODE;
    results.structure(3);
    results.field("readable");
    results.flag(mode == libc::O_RDONLY || mode == libc::O_RDWR);
    results.field("writable");
    results.flag(mode == libc::O_WRONLY || mode == libc::O_RDWR);
    results.field("at_offset");
    results.flag(flags & libc::O_APPEND == 0);
}

fn poll(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(0)?)?;
    operation.numbers = [descriptor as i32, i32::from(libc::POLLIN | libc::POLLOUT)];
    operation.call(libc::SYS_poll, [operation.numbers.as_ptr() as u64, 1, 0]);
    Ok(())
}

/// What poll tells of a descriptor; events of epoll have the same numbers.
pub(super) fn write_ready(events: libc::c_short, results: &mut ResultsWriter) {
    results.structure(4);
    for (name, event) in
        [("input", libc::POLLIN), ("output", libc::POLLOUT), ("hangup", libc::POLLHUP), ("error", libc::POLLERR)]
    {
        results.field(name);
        results.flag(events & event != 0);
    }
}

fn fsync(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.call(libc::SYS_fsync, [test_descriptor(arguments.number(0)?)?]);
    Ok(())
}

fn ftruncate(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.call(libc::SYS_ftruncate, [test_descriptor(arguments.number(0)?)?, offset(arguments, 1)?]);
    Ok(())
}

/// Two buffers of a page each: the operation's page and its list.
fn vectors(operation: &mut Operation) -> [u64; 2] {
    let size = PAGE_BYTES as u64;
    operation.vectors = [operation.page.address(), size, operation.list.address(), size];
    [operation.vectors.as_ptr() as u64, 2]
}

fn readv(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let [vectors, count] = vectors(operation);
    operation.call(libc::SYS_readv, [test_descriptor(arguments.number(0)?)?, vectors, count]);
    Ok(())
}

fn writev(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.page.fill(byte(arguments, 1)?);
    operation.list.fill(byte(arguments, 2)?);
    let [vectors, count] = vectors(operation);
    operation.call(libc::SYS_writev, [test_descriptor(arguments.number(0)?)?, vectors, count]);
    Ok(())
}

/// How many pages, and what they hold; nothing reads like a page of zeros.
fn what_was_read(operation: &Operation, raw: i64, results: &mut ResultsWriter) {
    results.structure(3);
    results.field("pages");
    pages(raw, results);
    let page_bytes = PAGE_BYTES as i64;
    for (name, page, behind) in [("first", &operation.page, 0), ("second", &operation.list, page_bytes)] {
        results.field(name);
        results.number(if raw <= behind { 0 } else { content(page.uniform()) });
    }
}
