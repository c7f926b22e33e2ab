//! Waiting for children, whatever signal has ended them.

use nix::errno::Errno;
use nix::unistd::Pid;
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, wait, waitid};

/// What is added to the number of a signal that has ended a process, as shells do.
const SIGNALLED: i32 = 128;

/// Whether this process has a child, which may have ended: one from before it became this program by `exec`, if it has made none.
pub(crate) fn are_there() -> bool {
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT).is_ok()
}

/// A child that has ended, and its exit code; nothing if all that there are live.
///
/// # Errors
/// ECHILD if there is none.
pub(crate) fn ended() -> Result<Option<(Pid, u8)>, Errno> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((child, status))) => {
                // `nix` takes a signal of real time for an error, once the child is gone.
                let with = status.exit_status().or(status.terminating_signal().map(|signal| SIGNALLED + signal));
                if let Some(with) = with {
                    return Ok(Some((Pid::from_raw(child.as_raw_nonzero().get()), with as u8)));
                }
            }
            Ok(None) => return Ok(None),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
        }
    }
}
