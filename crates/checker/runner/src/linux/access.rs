//! Loads from and stores to pages of a test, which may fault: the signal is the result.
//!
//! An access is one instruction between two marks. Its registers say where the access stands and where to go on, so that
//! the handler of SIGSEGV and SIGBUS, which the kernel enters with them, can note the signal and leave the rest to
//! `rt_sigreturn`. A fault of any other instruction is one of the runner's own: it gets the default action.
//!
//! ```text
//! lea r9, access ─ lea r10, on ─ mark ─ access: load or store ─ on: mark ─ r8 is 0, or the signal
//!                                            └─ fault ─ handler: r8 := signal, rip := r10 ─┘
//! ```

use std::arch::asm;
use std::io;

use crate::target::Marks;
use crate::{call_begin_bytes, call_end_bytes};

/// Size of a page.
pub const PAGE_BYTES: usize = 4096;

/// A signal that ended an access: its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault(pub u8);

/// Has SIGSEGV and SIGBUS end the access that raises them; for this process and those that it forks later.
///
/// # Errors
/// The kernel takes no handler.
pub fn catch_faults() -> io::Result<()> {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: all-zero is a valid `sigaction`; the handler only touches the context that it is given.
        let result = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            // Not masked while handled: returning then restores a mask that has not changed.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn on_fault(signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives the handler (SA_SIGINFO) a context on the stack, which is this thread's alone.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    if registers[libc::REG_RIP as usize] == registers[libc::REG_R9 as usize] {
        registers[libc::REG_R8 as usize] = i64::from(signal);
        registers[libc::REG_RIP as usize] = registers[libc::REG_R10 as usize];
    } else {
        // SAFETY: sets the default action, which the fault meets when the instruction is executed again.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// One access with its marks; `$begin` and `$end` are the marks' bytes or nothing.
macro_rules! access {
    ($begin:expr, $access:literal, $end:expr, $($operand:tt)*) => {{
        let mut signal = 0_u64;
        asm!("lea r9, [rip + 2f]", "lea r10, [rip + 3f]", $begin, "2:", $access, "3:", $end,
            inout("r8") signal, out("r9") _, out("r10") _, $($operand)*, options(nostack));
        signal
    }};
}

fn fault_of(signal: u64) -> Result<(), Fault> {
    match u8::try_from(signal) {
        Ok(0) => Ok(()),
        number => Err(Fault(number.unwrap_or_default())),
    }
}

/// Loads the byte at an address.
///
/// # Errors
/// The signal that the access raised.
pub fn load(address: u64, marks: Marks) -> Result<u8, Fault> {
    let mut value = 0_u64;
    // SAFETY: the address is one that tests map (`reserved`), where no object of the runner lies; a fault ends the access.
    let signal = unsafe {
        match marks {
            Marks::Around => access!(call_begin_bytes!(), "movzx eax, byte ptr [rdi]", call_end_bytes!(),
                in("rdi") address, inout("rax") value),
            Marks::None => access!("", "movzx eax, byte ptr [rdi]", "", in("rdi") address, inout("rax") value),
        }
    };
    fault_of(signal).map(|()| (value & 0xff) as u8)
}

/// Fills the page at an address with a byte.
///
/// # Errors
/// The signal that the access raised.
pub fn store(address: u64, byte: u8, marks: Marks) -> Result<(), Fault> {
    let word = u64::from_ne_bytes([byte; 8]);
    let words = PAGE_BYTES as u64 / 8;
    // SAFETY: as in `load`.
    let signal = unsafe {
        match marks {
            Marks::Around => access!(call_begin_bytes!(), "rep stosq", call_end_bytes!(),
                inout("rdi") address => _, inout("rcx") words => _, in("rax") word),
            Marks::None => access!("", "rep stosq", "",
                inout("rdi") address => _, inout("rcx") words => _, in("rax") word),
        }
    };
    fault_of(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(protection: i32) -> u64 {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), PAGE_BYTES, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        page as u64
    }

    #[test]
    fn an_access_gives_the_byte_or_the_signal() {
        catch_faults().unwrap();
        let fault = Fault(libc::SIGSEGV as u8);
        for marks in [Marks::None, Marks::Around] {
            let page = map(libc::PROT_READ | libc::PROT_WRITE);
            assert_eq!(load(page, marks), Ok(0));
            assert_eq!(store(page, 0xa5, marks), Ok(()));
            assert_eq!(load(page + PAGE_BYTES as u64 - 1, marks), Ok(0xa5));
            let read_only = map(libc::PROT_READ);
            assert_eq!(load(read_only, marks), Ok(0));
            assert_eq!(store(read_only, 1, marks), Err(fault));
            let none = map(libc::PROT_NONE);
            assert_eq!(load(none, marks), Err(fault));
            assert_eq!(store(none, 1, marks), Err(fault));
        }
    }

    #[test]
    fn beyond_the_end_of_a_file_it_is_another_signal() {
        catch_faults().unwrap();
        // SAFETY: an empty anonymous file, mapped at an address that the kernel chooses.
        let page = unsafe {
            let file = libc::memfd_create(c"empty".as_ptr(), 0);
            libc::mmap(std::ptr::null_mut(), PAGE_BYTES, libc::PROT_READ, libc::MAP_SHARED, file, 0)
        };
        assert_eq!(load(page as u64, Marks::None), Err(Fault(libc::SIGBUS as u8)));
    }
}
