//! Calls that move data, a page at a time, and `pipe`. The page that is read into or written from is the actor's own.

use wire::results::ResultsWriter;

use super::super::held::test_descriptor;
use super::super::leftovers::Leftovers;
use super::super::operation::{Operation, PAGE_BYTES};
use super::{LinuxCall, byte, content, offset, page_count, pages};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("pipe", &[], pipe, |operation, _, results| {
        results.structure(2);
        for (name, number) in ["read_end", "write_end"].into_iter().zip(operation.numbers) {
            results.field(name);
            results.number(number.into());
        }
    }),
    LinuxCall::new("read", &["fd"], read, what_was_read),
    LinuxCall::new("write", &["fd", "data"], write, page_count),
    LinuxCall::new("pread", &["fd", "page"], pread, what_was_read),
    LinuxCall::new("pwrite", &["fd", "page", "data"], pwrite, page_count),
];

const COUNT: u64 = PAGE_BYTES as u64;

fn pipe(operation: &mut Operation, _: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    leftovers.picks_descriptors(2);
    operation.call(libc::SYS_pipe2, [operation.numbers.as_ptr() as u64, libc::O_NONBLOCK as u64]);
    Ok(())
}

fn read(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(0)?)?;
    operation.call(libc::SYS_read, [descriptor, operation.page.address(), COUNT]);
    Ok(())
}

fn pread(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(0)?)?;
    operation.call(libc::SYS_pread64, [descriptor, operation.page.address(), COUNT, offset(arguments, 1)?]);
    Ok(())
}

fn write(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(0)?)?;
    operation.page.fill(byte(arguments, 1)?);
    operation.call(libc::SYS_write, [descriptor, operation.page.address(), COUNT]);
    Ok(())
}

fn pwrite(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(0)?)?;
    operation.page.fill(byte(arguments, 2)?);
    operation.call(libc::SYS_pwrite64, [descriptor, operation.page.address(), COUNT, offset(arguments, 1)?]);
    Ok(())
}

/// How many pages, and what they hold; nothing reads like a page of zeros.
fn what_was_read(operation: &Operation, raw: i64, results: &mut ResultsWriter) {
    results.structure(2);
    results.field("pages");
    pages(raw, results);
    results.field("data");
    results.number(if raw == 0 { 0 } else { content(operation.page.uniform()) });
}
