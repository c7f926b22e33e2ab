//! Linux's error numbers.

use core::fmt;

/// Why a call failed, with Linux's number on x86-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(i32)]
pub enum Errno {
    /// Operation not permitted.
    EPERM = 1,
    /// No such file or directory.
    ENOENT = 2,
    /// Input or output error: what holds the object does not answer.
    EIO = 5,
    /// No such device or address.
    ENXIO = 6,
    /// A list that is too long: a value, of extended attributes.
    E2BIG = 7,
    /// Not an open descriptor, or not open for this.
    EBADF = 9,
    /// No child to wait for.
    ECHILD = 10,
    /// Nothing to do at the moment; try again.
    EAGAIN = 11,
    /// Out of memory.
    ENOMEM = 12,
    /// Permission denied.
    EACCES = 13,
    /// An address at which there is not what the call needs.
    EFAULT = 14,
    /// Device or resource busy.
    EBUSY = 16,
    /// File exists.
    EEXIST = 17,
    /// Not of this file system.
    EXDEV = 18,
    /// Not something that can be mapped.
    ENODEV = 19,
    /// Not a directory.
    ENOTDIR = 20,
    /// Is a directory.
    EISDIR = 21,
    /// Invalid argument.
    EINVAL = 22,
    /// Too many open files of the process.
    EMFILE = 24,
    /// A program that runs is not written.
    ETXTBSY = 26,
    /// File too large.
    EFBIG = 27,
    /// No space left on device.
    ENOSPC = 28,
    /// Not seekable.
    ESPIPE = 29,
    /// Too many links.
    EMLINK = 31,
    /// Nobody reads the pipe.
    EPIPE = 32,
    /// Result does not fit.
    ERANGE = 34,
    /// Only the caller could end this wait.
    EDEADLK = 35,
    /// File name too long.
    ENAMETOOLONG = 36,
    /// No memory for another lock of a file.
    ENOLCK = 37,
    /// Directory not empty.
    ENOTEMPTY = 39,
    /// Too many symbolic links.
    ELOOP = 40,
    /// No such extended attribute.
    ENODATA = 61,
    /// A number is too large for its type.
    EOVERFLOW = 75,
    /// Not a socket.
    ENOTSOCK = 88,
    /// A message that is too long.
    EMSGSIZE = 90,
    /// Operation not supported.
    EOPNOTSUPP = 95,
    /// Another socket has the name.
    EADDRINUSE = 98,
    /// No peer, and no address was given.
    ENOTCONN = 107,
    /// Nobody receives there.
    ECONNREFUSED = 111,
    /// The transaction rests on what is not so any more.
    ECANCELED = 125,
}

impl Errno {
    /// The number.
    pub fn number(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?} ({})", self.number())
    }
}

impl core::error::Error for Errno {}

#[cfg(feature = "std")]
impl From<Errno> for std::io::Error {
    /// The error that the operating system gives for this number.
    fn from(errno: Errno) -> std::io::Error {
        std::io::Error::from_raw_os_error(errno.number())
    }
}
