//! A prepared system call with all memory that it refers to.

use std::arch::asm;
use std::ffi::CStr;
use std::mem::MaybeUninit;

use crate::target::Marks;
use crate::{call_begin_bytes, call_end_bytes};

/// Longest file name that Linux takes (`NAME_MAX`).
pub const NAME_LIMIT_BYTES: usize = 255;

/// A zero-terminated file name.
#[repr(C, align(64))]
pub struct Name([u8; NAME_LIMIT_BYTES + 1]);

impl Name {
    /// Holds `text` from now on.
    ///
    /// # Errors
    /// The text is no name of a file in one directory.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.len() > NAME_LIMIT_BYTES {
            return Err(format!("a file name of {} bytes: expected 1 to {NAME_LIMIT_BYTES}", bytes.len()));
        }
        if bytes.contains(&0) || bytes.contains(&b'/') || text == "." || text == ".." {
            return Err(format!("{text:?} is not a name of a file in one directory"));
        }
        self.0[..bytes.len()].copy_from_slice(bytes);
        self.0[bytes.len()] = 0;
        Ok(())
    }

    /// Holds a path from now on.
    ///
    /// # Panics
    /// If the path is longer than a name may be: the runner's own paths are short.
    pub fn set_path(&mut self, path: &CStr) {
        let bytes = path.to_bytes_with_nul();
        self.0[..bytes.len()].copy_from_slice(bytes);
    }

    /// The name's address, as an argument.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

/// A system call: number and arguments, two names and a buffer for what the kernel writes.
#[repr(C)]
pub struct Operation {
    /// The number (`SYS_*`).
    pub number: i64,
    /// The arguments; pointers point into this operation.
    pub arguments: [u64; 6],
    /// Names that arguments point to.
    pub names: [Name; 2],
    /// What `fstat` and its kin write.
    pub stat: MaybeUninit<libc::stat>,
}

impl Default for Operation {
    fn default() -> Self {
        Self {
            number: libc::SYS_getppid,
            arguments: [0; 6],
            names: [Name([0; NAME_LIMIT_BYTES + 1]), Name([0; NAME_LIMIT_BYTES + 1])],
            stat: MaybeUninit::zeroed(),
        }
    }
}

impl Operation {
    /// Prepares a call with the given arguments; the others are 0.
    pub fn set<const N: usize>(&mut self, number: i64, arguments: [u64; N]) {
        self.number = number;
        self.arguments = [0; 6];
        self.arguments[..N].copy_from_slice(&arguments);
    }

    /// What the last call wrote.
    #[must_use]
    pub fn stat(&self) -> &libc::stat {
        // SAFETY: `struct stat` is plain numbers, for which every content is valid; it was zeroed at first.
        unsafe { self.stat.assume_init_ref() }
    }

    /// Makes the system call and returns what the kernel returns: -4095..=-1 is an error number, negated.
    ///
    /// All registers are loaded in front of the first mark, and the result is stored behind the second: between the marks
    /// stands the `syscall` instruction and nothing else.
    pub fn execute(&mut self, marks: Marks) -> i64 {
        let mut result = self.number;
        let [a, b, c, d, e, f] = self.arguments;
        match marks {
            // SAFETY: `calls` fills in a system call whose pointers lie within this operation, which outlives the call; none
            // of them changes the memory or the control flow of the runner itself. The kernel clobbers rcx and r11.
            Marks::Around => unsafe {
                asm!(call_begin_bytes!(), "syscall", call_end_bytes!(),
                    inlateout("rax") result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
                    lateout("rcx") _, lateout("r11") _, options(nostack));
            },
            // SAFETY: as above.
            Marks::None => unsafe {
                asm!("syscall",
                    inlateout("rax") result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
                    lateout("rcx") _, lateout("r11") _, options(nostack));
            },
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_call_returns_what_an_unmarked_one_does() {
        let mut operation = Operation::default();
        operation.set(libc::SYS_getppid, []);
        assert_eq!(operation.execute(Marks::Around), operation.execute(Marks::None));
        operation.set(libc::SYS_close, [u64::from(u32::MAX)]);
        assert_eq!(operation.execute(Marks::Around), -i64::from(libc::EBADF));
    }

    #[test]
    fn names_are_those_of_files_in_one_directory() {
        let mut operation = Operation::default();
        for bad in ["", ".", "..", "a/b", "a\0b", &"x".repeat(256)] {
            assert!(operation.names[0].set(bad).is_err(), "{bad:?}");
        }
        assert!(operation.names[0].set(&"x".repeat(255)).is_ok());
    }
}
