//! Calls on descriptors that move no data.

use super::super::held::test_descriptor;
use super::super::leftovers::Leftovers;
use super::super::operation::Operation;
use super::{LinuxCall, offset, page_count, status, success};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("fstat", &["fd"], fstat, status),
    LinuxCall::new("lseek", &["fd", "offset", "whence"], lseek, page_count),
    LinuxCall::new("close", &["fd"], close, success),
];

fn fstat(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(0)?)?;
    operation.call(libc::SYS_fstat, [descriptor, operation.stat_address()]);
    Ok(())
}

fn lseek(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(0)?)?;
    let whence = arguments.number(2)?.cast_unsigned();
    operation.call(libc::SYS_lseek, [descriptor, offset(arguments, 1)?, whence]);
    Ok(())
}

fn close(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.call(libc::SYS_close, [test_descriptor(arguments.number(0)?)?]);
    Ok(())
}
