//! Descriptors of the host: by which a process is watched that is no child of ours, and under numbers that children have, too.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A descriptor that is ready once the process has ended (Linux `pidfd_open`).
///
/// # Errors
/// ESRCH if there is no such process, and others of the system.
pub fn watch(process: i32) -> io::Result<OwnedFd> {
    // SAFETY: asks, and makes a descriptor.
    let made = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    match i32::try_from(made) {
        // SAFETY: opened just now.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Another number for a file, the lowest free one from `lowest` on, which children get, too (`fcntl` with F_DUPFD).
///
/// # Errors
/// Those of the system.
pub fn duplicate(file: BorrowedFd<'_>, lowest: u32) -> io::Result<OwnedFd> {
    // SAFETY: makes a descriptor.
    let number = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, lowest) };
    // SAFETY: opened just now.
    if number < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(number) }) }
}
