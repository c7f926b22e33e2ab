//! Descriptors that the runner holds in the table of a process, out of the way of those that tests name.
//!
//! They stay below 64, so that the table keeps the size that it has in a small program (Linux: NR_OPEN_DEFAULT). A set-up
//! holds its files and pipes in process 0, under fixed numbers, until it forgets them; other processes, and other open
//! file descriptions, are made by opening them again through /proc.

use std::ffi::CString;
use std::io;
use std::ops::Range;

use super::system_call::system_call;

/// Test descriptors are below this.
pub const TEST_DESCRIPTORS: u64 = 36;

const FILES: u64 = 8;
const PIPES: u64 = 6;
const FIRST_PIPE: u64 = TEST_DESCRIPTORS + FILES;

/// The descriptors that hold a process's epoll instances, where it has some.
pub const EPOLLS: Range<u64> = FIRST_PIPE + 2 * PIPES..OWN;

/// The first of the runner's own descriptors, which stay from window to window: below, everything is closed.
pub const FIRST_PERMANENT: u64 = OWN;

/// The directory of the process's own descriptors.
pub const OWN: u64 = 60;

/// The directory of the descriptors of process 0.
pub const OF_PROCESS_0: u64 = 61;

/// The ends of an empty pipe, for copies of what waits in another: the one to read from, the one to write to.
pub const SCRATCH_PIPE: [u64; 2] = [62, 63];

/// The number of a test's descriptor.
///
/// # Errors
/// It is out of range.
pub fn test_descriptor(number: i64) -> Result<u64, String> {
    below(number, TEST_DESCRIPTORS, "descriptor")
}

/// The descriptor that holds a set-up's file.
///
/// # Errors
/// The file's number is out of range.
pub fn file(number: i64) -> Result<u64, String> {
    below(number, FILES, "file").map(|file| TEST_DESCRIPTORS + file)
}

/// The descriptors that hold a set-up's pipe: the end to read from, the end to write to.
///
/// # Errors
/// The pipe's number is out of range.
pub fn pipe(number: i64) -> Result<[u64; 2], String> {
    below(number, PIPES, "pipe").map(|pipe| [FIRST_PIPE + 2 * pipe, FIRST_PIPE + 2 * pipe + 1])
}

/// The descriptor that holds an epoll instance of the calling process.
///
/// # Errors
/// The instance's number is out of range.
pub fn epoll(number: i64) -> Result<u64, String> {
    below(number, EPOLLS.end - EPOLLS.start, "epoll instance").map(|epoll| EPOLLS.start + epoll)
}

fn below(number: i64, limit: u64, what: &str) -> Result<u64, String> {
    u64::try_from(number)
        .ok()
        .filter(|number| *number < limit)
        .ok_or_else(|| format!("{what} {number}: expected 0 to {}", limit - 1))
}

/// Opens what stays. `own` and `first` are the ids of the calling process and of process 0.
///
/// # Errors
/// The kernel does not open it.
pub fn open_permanent(own: libc::pid_t, first: libc::pid_t) -> io::Result<()> {
    for (process, wanted) in [(own, OWN), (first, OF_PROCESS_0)] {
        let path = CString::new(format!("/proc/{process}/fd"))?;
        let flags = (libc::O_PATH | libc::O_DIRECTORY) as u64;
        let opened = system_call(libc::SYS_openat, [libc::AT_FDCWD as u64, path.as_ptr() as u64, flags]);
        checked(if opened < 0 { opened } else { move_to(opened.cast_unsigned(), wanted) })?;
    }
    let mut ends = [0_i32; 2];
    checked(system_call(libc::SYS_pipe2, [ends.as_mut_ptr() as u64, libc::O_NONBLOCK as u64]))?;
    for (end, wanted) in ends.into_iter().zip(SCRATCH_PIPE) {
        checked(move_to(u64::from(end.cast_unsigned()), wanted))?;
    }
    Ok(())
}

fn checked(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(i32::try_from(-result).unwrap_or_default())) } else { Ok(()) }
}

/// Gives an open descriptor another number; returns that, or an error number, negated.
pub fn move_to(descriptor: u64, wanted: u64) -> i64 {
    if descriptor == wanted {
        return wanted.cast_signed();
    }
    let result = system_call(libc::SYS_dup3, [descriptor, wanted, 0]);
    system_call(libc::SYS_close, [descriptor]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_descriptors_are_distinct_and_out_of_the_way() {
        let mut numbers: Vec<u64> = (0..FILES.cast_signed()).map(|number| file(number).unwrap()).collect();
        numbers.extend((0..PIPES.cast_signed()).flat_map(|number| pipe(number).unwrap()));
        numbers.extend((0..4).map(|number| epoll(number).unwrap()));
        numbers.extend([OWN, OF_PROCESS_0]);
        numbers.extend(SCRATCH_PIPE);
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len() as u64, FILES + 2 * PIPES + 8);
        assert!(numbers[0] >= TEST_DESCRIPTORS && numbers.iter().all(|number| *number < 64));
        assert_eq!(numbers.iter().filter(|number| **number >= FIRST_PERMANENT).count(), 4);
        assert!(file(8).is_err() && pipe(6).is_err() && epoll(4).is_err());
        assert!(test_descriptor(36).is_err() && test_descriptor(-1).is_err());
    }
}
