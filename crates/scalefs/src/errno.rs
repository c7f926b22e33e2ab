//! Linux's error numbers.

use core::fmt;

/// Why a call failed, with Linux's number on x86-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Errno {
    /// Operation not permitted.
    EPERM = 1,
    /// No such file or directory.
    ENOENT = 2,
    /// File exists.
    EEXIST = 17,
    /// Not a directory.
    ENOTDIR = 20,
    /// Is a directory.
    EISDIR = 21,
    /// Invalid argument.
    EINVAL = 22,
    /// No space left on device.
    ENOSPC = 28,
    /// File name too long.
    ENAMETOOLONG = 36,
    /// Device or resource busy.
    EBUSY = 16,
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
