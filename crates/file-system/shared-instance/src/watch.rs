//! What the host says of others: by which descriptor a process is watched that is no child of ours, under which numbers children have
//! files, and who is at the other end of a socket.

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

/// Locks a file (BSD `flock`) without waiting, for the time that this descriptor or a copy of it is open in some process; false if who
/// has another kind of lock is in the way.
///
/// # Errors
/// Those of the system.
pub fn lock(file: BorrowedFd<'_>, which: Lock) -> io::Result<bool> {
    let operation = match which {
        Lock::Shared => libc::LOCK_SH,
        Lock::Exclusive => libc::LOCK_EX,
    };
    // SAFETY: looks at no memory.
    if unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}

/// Kinds of locks of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Several may have it.
    Shared,
    /// One alone.
    Exclusive,
}

/// The number of the process at the other end of a socket, and its user's, as they were when it was connected (Linux `SO_PEERCRED`). Of a
/// socket that listens: those of who has let it listen.
///
/// # Errors
/// Those of the system.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<(i32, u32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, name, place) = (libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut found).cast());
    // SAFETY: writes as many bytes to a value that has them.
    match unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, place, &raw mut bytes) } {
        0 => Ok((found.pid, found.uid)),
        _ => Err(io::Error::last_os_error()),
    }
}
