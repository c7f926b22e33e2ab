//! The calls of the self-test.

use commutant_wire::value::Value;

use super::names::open_to_read_and_write;
use super::{LinuxCall, Names, number};

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new(
        "getppid",
        &[],
        |operation, _, _| {
            operation.call(libc::SYS_getppid, []);
            Ok(())
        },
        |_, raw| Value::Opaque { sort: "Pid".into(), id: raw.cast_unsigned() },
    ),
    LinuxCall::new(
        "open_descriptor",
        &["name", "creat", "excl"],
        |operation, arguments, leftovers| {
            leftovers.descriptors();
            open_to_read_and_write(operation, arguments, leftovers)
        },
        number,
    )
    .by(Names::Relative),
];
