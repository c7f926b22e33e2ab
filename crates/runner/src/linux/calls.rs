//! The table of calls: how each becomes a system call, and what its result is. A new call is a new row.
//!
//! Semantics are Linux's own (the raw system calls, no C library in between). Names are relative to the working
//! directory, which is the window's fresh one.

use commutant_wire::value::Value;

use super::operation::Operation;
use crate::arguments::Arguments;
use crate::target::Signature;

/// What belongs to a call but not into the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// The descriptor that the call returned is closed.
    Close,
}

/// One call.
pub struct LinuxCall {
    /// Name and parameters, as in the interface.
    pub signature: Signature,
    /// Parameters that are file names which the call may create: to be removed after the window.
    pub created_names: &'static [usize],
    /// Whether descriptors may stay open after the call.
    pub leaves_descriptors: bool,
    /// Fills in the system call.
    pub prepare: fn(&mut Operation, &Arguments<'_>) -> Result<(), String>,
    /// The result of a call that did not fail with an error number.
    pub result: fn(&Operation, i64) -> Value,
    /// What is to be done after the window.
    pub after: After,
}

const CWD: u64 = libc::AT_FDCWD as u64;

/// All calls.
pub const CALLS: &[LinuxCall] = &[
    // Reports success only; the descriptor is closed after the window.
    LinuxCall {
        signature: Signature { name: "open", parameters: &["name", "creat", "excl"] },
        created_names: &[0],
        leaves_descriptors: false,
        prepare: open,
        result: success,
        after: After::Close,
    },
    LinuxCall {
        signature: Signature { name: "link", parameters: &["old", "new"] },
        created_names: &[1],
        leaves_descriptors: false,
        prepare: |operation, arguments| {
            let (old, new) = two_names(operation, arguments)?;
            operation.set(libc::SYS_linkat, [CWD, old, CWD, new, 0]);
            Ok(())
        },
        result: success,
        after: After::Nothing,
    },
    LinuxCall {
        signature: Signature { name: "unlink", parameters: &["name"] },
        created_names: &[],
        leaves_descriptors: false,
        prepare: |operation, arguments| {
            let name = name(operation, arguments)?;
            operation.set(libc::SYS_unlinkat, [CWD, name, 0]);
            Ok(())
        },
        result: success,
        after: After::Nothing,
    },
    LinuxCall {
        signature: Signature { name: "rename", parameters: &["src", "dst"] },
        created_names: &[1],
        leaves_descriptors: false,
        prepare: |operation, arguments| {
            let (source, destination) = two_names(operation, arguments)?;
            operation.set(libc::SYS_renameat2, [CWD, source, CWD, destination, 0]);
            Ok(())
        },
        result: success,
        after: After::Nothing,
    },
    LinuxCall {
        signature: Signature { name: "stat", parameters: &["name"] },
        created_names: &[],
        leaves_descriptors: false,
        prepare: |operation, arguments| {
            let name = name(operation, arguments)?;
            operation.set(libc::SYS_newfstatat, [CWD, name, operation.stat.as_ptr() as u64, 0]);
            Ok(())
        },
        result: status,
        after: After::Nothing,
    },
    LinuxCall {
        signature: Signature { name: "access", parameters: &["name"] },
        created_names: &[],
        leaves_descriptors: false,
        prepare: |operation, arguments| {
            let name = name(operation, arguments)?;
            operation.set(libc::SYS_faccessat, [CWD, name, libc::F_OK as u64]);
            Ok(())
        },
        result: success,
        after: After::Nothing,
    },
    // The calls below are those of the self-test.
    LinuxCall {
        signature: Signature { name: "getppid", parameters: &[] },
        created_names: &[],
        leaves_descriptors: false,
        prepare: |operation, _| {
            operation.set(libc::SYS_getppid, []);
            Ok(())
        },
        result: |_, raw| Value::Opaque { sort: "Pid".into(), id: raw.cast_unsigned() },
        after: After::Nothing,
    },
    LinuxCall {
        signature: Signature { name: "open_descriptor", parameters: &["name", "creat", "excl"] },
        created_names: &[0],
        leaves_descriptors: true,
        prepare: open,
        result: |_, raw| Value::Int(raw),
        after: After::Nothing,
    },
    LinuxCall {
        signature: Signature { name: "fstat", parameters: &["fd"] },
        created_names: &[],
        leaves_descriptors: false,
        prepare: |operation, arguments| {
            let descriptor = arguments.number(0)?.cast_unsigned();
            operation.set(libc::SYS_fstat, [descriptor, operation.stat.as_ptr() as u64]);
            Ok(())
        },
        result: status,
        after: After::Nothing,
    },
];

/// Error number or value of what the kernel returned.
pub fn decode(call: &LinuxCall, operation: &Operation, raw: i64) -> Value {
    match raw {
        -4095..=-1 => Value::Errno(u16::try_from(-raw).unwrap_or_default()),
        _ => (call.result)(operation, raw),
    }
}

fn name(operation: &mut Operation, arguments: &Arguments<'_>) -> Result<u64, String> {
    operation.names[0].set(arguments.text(0)?)?;
    Ok(operation.names[0].address())
}

fn two_names(operation: &mut Operation, arguments: &Arguments<'_>) -> Result<(u64, u64), String> {
    let first = name(operation, arguments)?;
    operation.names[1].set(arguments.text(1)?)?;
    Ok((first, operation.names[1].address()))
}

fn open(operation: &mut Operation, arguments: &Arguments<'_>) -> Result<(), String> {
    let name = name(operation, arguments)?;
    let mut flags = libc::O_RDWR;
    if arguments.flag(1)? {
        flags |= libc::O_CREAT;
    }
    if arguments.flag(2)? {
        flags |= libc::O_EXCL;
    }
    operation.set(libc::SYS_openat, [CWD, name, flags as u64, 0o644]);
    Ok(())
}

fn success(_: &Operation, _: i64) -> Value {
    Value::Int(0)
}

fn status(operation: &Operation, _: i64) -> Value {
    let stat = operation.stat();
    Value::Struct(vec![
        ("ino".into(), Value::Opaque { sort: "Inum".into(), id: stat.st_ino }),
        ("nlink".into(), Value::Int(stat.st_nlink.cast_signed())),
    ])
}
