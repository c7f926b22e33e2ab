//! Names of the signals that a faulting access of memory raises (`signal(7)`; numbers of x86-64 and Arm).

const NAMES: &[(u8, &str)] =
    &[(4, "SIGILL"), (5, "SIGTRAP"), (7, "SIGBUS"), (8, "SIGFPE"), (11, "SIGSEGV"), (13, "SIGPIPE")];

/// The number of the signal called `name`.
#[must_use]
pub fn number(name: &str) -> Option<u8> {
    NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

/// The name of signal `number`.
#[must_use]
pub fn name(number: u8) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}
