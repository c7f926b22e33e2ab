//! System calls without a C library in between.

use std::arch::asm;

use crate::target::Marks;
use crate::{call_begin_bytes, call_end_bytes};

/// Makes a system call, without marks, and returns what the kernel returns: -4095..=-1 is an error number, negated.
pub fn system_call<const N: usize>(number: i64, arguments: [u64; N]) -> i64 {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    system_call_marked(number, all, Marks::None)
}

/// As [`system_call`], between marks if it is under test.
///
/// All registers are loaded in front of the first mark, and the result is stored after the second: between the marks
/// stands the `syscall` instruction and nothing else.
pub fn system_call_marked(number: i64, arguments: [u64; 6], marks: Marks) -> i64 {
    let mut result = number;
    let [a, b, c, d, e, f] = arguments;
    match marks {
        // SAFETY: the code that fills in a call (`calls`, `directory`) gives pointers into an operation or to paths
        // that outlive it. Memory is mapped and unmapped in the range that is reserved for tests alone (`reserved`),
        // and no call changes the control flow of the runner. The kernel clobbers rcx and r11.
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

/// Makes a process of the calling thread, between marks if that is under test, and returns its number, or 0 in the child,
/// which sets no mark. The child has a copy of the caller's memory, stack and all.
pub fn clone_marked(flags: u64, marks: Marks) -> i64 {
    let mut result = libc::SYS_clone;
    match marks {
        // SAFETY: without a stack of its own, and without CLONE_VM, the child goes on here on a copy of this one. The
        // kernel clobbers rcx and r11.
        Marks::Around => unsafe {
            asm!(call_begin_bytes!(), "syscall", "test rax, rax", "jz 2f", call_end_bytes!(), "2:",
                inlateout("rax") result, in("rdi") flags, in("rsi") 0, in("rdx") 0, in("r10") 0, in("r8") 0,
                lateout("rcx") _, lateout("r11") _);
        },
        Marks::None => result = system_call(result, [flags, 0, 0, 0, 0]),
    }
    result
}

/// Turns an error number into a text that says what failed.
pub(super) fn check(what: &str, result: i64) -> Result<(), String> {
    match i32::try_from(-result) {
        Ok(number) if number > 0 => Err(format!("{what}: {}", std::io::Error::from_raw_os_error(number))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_call_returns_what_an_unmarked_one_does() {
        let marked = system_call_marked(libc::SYS_getppid, [0; 6], Marks::Around);
        assert_eq!(marked, system_call(libc::SYS_getppid, []));
        let mut arguments = [0; 6];
        arguments[0] = u64::from(u32::MAX);
        assert_eq!(system_call_marked(libc::SYS_close, arguments, Marks::Around), -i64::from(libc::EBADF));
    }
}
