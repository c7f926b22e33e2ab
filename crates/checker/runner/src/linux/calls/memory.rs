//! Calls on memory, a page at a time, and accesses of it.

use super::super::held::test_descriptor;
use super::super::leftovers::Leftovers;
use super::super::operation::{Action, Operation, PAGE_BYTES};
use super::super::reserved;
use super::{After, LinuxCall, byte, flag, number, offset, success};
use crate::arguments::{Arguments, Number};

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new(
        "mmap",
        &["fixed", "address", "anonymous", "shared", "writable", "fd", "page"],
        mmap,
        |operation, raw, results| reserved::write(operation.process, raw.cast_unsigned(), results),
    )
    .of_memory()
    .then(After::Remember),
    LinuxCall::new("munmap", &["address"], munmap, success).of_memory(),
    LinuxCall::new("mprotect", &["address", "writable"], mprotect, success).of_memory(),
    LinuxCall::new("memread", &["address"], memread, number).of_memory(),
    LinuxCall::new("memwrite", &["address", "data"], memwrite, success).of_memory(),
    LinuxCall::new("msync", &["address"], msync, success).of_memory(),
    LinuxCall::new("madvise", &["address"], madvise, success).of_memory(),
];

pub(super) const LENGTH: u64 = PAGE_BYTES as u64;

/// The address that an argument names: a test's page, or what the kernel picked.
pub(super) fn address(operation: &Operation, arguments: &Arguments<'_>, parameter: usize) -> Result<u64, String> {
    match arguments.given_or_chosen(parameter)? {
        Number::Given(page) => reserved::address(page),
        Number::Chosen(identity) => reserved::picked(operation.process, identity),
    }
}

/// Whether the address that `mmap` returned was the kernel's choice, and not by chance a page that tests can name.
pub fn has_picked(operation: &Operation, result: i64) -> bool {
    let fixed = operation.arguments[3] & libc::MAP_FIXED as u64 != 0;
    !fixed && result >= 0 && reserved::page(result.cast_unsigned()).is_none()
}

/// Protection of memory that can be read, and perhaps written.
pub(super) fn protection(writable: bool) -> u64 {
    let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    protection as u64
}

fn mmap(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let fixed = arguments.flag(0)?;
    if fixed && let Number::Given(page) = arguments.given_or_chosen(1)? {
        leftovers.page(page);
    }
    let (kind, descriptor, start) = if arguments.flag(2)? {
        (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, u64::MAX, 0)
    } else {
        let kind = if arguments.flag(3)? { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        (kind, test_descriptor(arguments.number(5)?)?, offset(arguments, 6)?)
    };
    let flags = (kind | flag(arguments, 0, libc::MAP_FIXED)?) as u64;
    let wanted = if fixed { address(operation, arguments, 1)? } else { 0 };
    operation.call(libc::SYS_mmap, [wanted, LENGTH, protection(arguments.flag(4)?), flags, descriptor, start]);
    Ok(())
}

fn munmap(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.call(libc::SYS_munmap, [address(operation, arguments, 0)?, LENGTH]);
    Ok(())
}

fn mprotect(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.call(libc::SYS_mprotect, [address(operation, arguments, 0)?, LENGTH, protection(arguments.flag(1)?)]);
    Ok(())
}

fn msync(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.call(libc::SYS_msync, [address(operation, arguments, 0)?, LENGTH, libc::MS_SYNC as u64]);
    Ok(())
}

fn madvise(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.call(libc::SYS_madvise, [address(operation, arguments, 0)?, LENGTH, libc::MADV_DONTNEED as u64]);
    Ok(())
}

fn memread(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.set(Action::Load, [address(operation, arguments, 0)?]);
    Ok(())
}

fn memwrite(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.set(Action::Store, [address(operation, arguments, 0)?, byte(arguments, 1)?.into()]);
    Ok(())
}
