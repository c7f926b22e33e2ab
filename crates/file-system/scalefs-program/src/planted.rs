//! Faults that a test plants, by the environment of the program.

/// Whether a test has planted a fault: never in ordinary builds.
pub(crate) fn planted(name: &str) -> bool {
    cfg!(feature = "planted-faults") && std::env::var_os("COMMUTANT_PLANTED_FAULT").is_some_and(|fault| fault == name)
}
