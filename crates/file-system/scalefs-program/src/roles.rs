//! What starter, guard and server have in common: how one starts the next, and how it hears that the directory can be used.

use std::os::fd::AsFd;
use std::process::Command;

/// What a server, and then its guard, says when the directory can be used.
pub(crate) const READY: &str = "ready";

/// This program once more.
pub(crate) fn this_program() -> Result<Command, String> {
    std::env::current_exe().map(Command::new).map_err(|error| format!("finding this program: {error}"))
}

/// Keeps nobody waiting who reads what this process says.
pub(crate) fn be_silent() {
    if let Ok(nothing) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdout(nothing.as_fd());
        let _ = nix::unistd::dup2_stderr(nothing.as_fd());
    }
}
