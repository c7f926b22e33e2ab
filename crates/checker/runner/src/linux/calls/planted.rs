//! The call of the self-test that no interface has; its others are those of set-ups (pipes) and of names.

use super::LinuxCall;

pub(super) const CALLS: &[LinuxCall] = &[LinuxCall::new(
    "getppid",
    &[],
    |operation, _, _| {
        operation.call(libc::SYS_getppid, []);
        Ok(())
    },
    |_, raw, results| results.opaque("Pid", raw.cast_unsigned()),
)];
