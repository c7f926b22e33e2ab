//! The call of the self-test that no interface has; its others are those of set-ups (pipes) and of names.

use commutant_wire::value::Value;

use super::LinuxCall;

pub(super) const CALLS: &[LinuxCall] = &[LinuxCall::new(
    "getppid",
    &[],
    |operation, _, _| {
        operation.call(libc::SYS_getppid, []);
        Ok(())
    },
    |_, raw| Value::Opaque { sort: "Pid".into(), id: raw.cast_unsigned() },
)];
