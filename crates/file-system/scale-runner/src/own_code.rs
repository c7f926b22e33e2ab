//! What of this program plays the cores, and is not measured: the code that chooses turns, and thread-local memory, of which
//! the one thread has one copy for all cores.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use program_runner::symbols;

/// Functions that choose turns, by parts of their names.
const OWN: [&str; 2] = ["sync::turns::", "commutant_scale_runner::cores::hand_over"];

/// Where they lie.
///
/// # Errors
/// This program's symbols cannot be read.
pub fn ranges() -> Result<Vec<Range<usize>>, String> {
    let listing = symbols::of_this_program()?;
    let lines = listing.lines().filter(|line| OWN.iter().any(|own| line.contains(own)));
    let range = |line: &str| {
        let mut parts = line.split(' ').map(|part| usize::from_str_radix(part, 16));
        Some(parts.next()?.ok()?..parts.next()?.ok()?)
    };
    Ok(lines.filter_map(range).collect())
}

/// Bytes of the C library's own record of a thread, at least: what its functions look at lies there.
const RECORD_BYTES: usize = 0x900;

/// Where this thread's copy of thread-local variables lies, with the record of the thread behind it.
pub fn thread_locals() -> Range<usize> {
    let thread: usize;
    // SAFETY: by the x86-64 ABI the word at the thread pointer is the thread pointer.
    unsafe { core::arch::asm!("mov {}, fs:0", out(reg) thread, options(nostack, preserves_flags, readonly)) };
    let mut size_bytes = 0_usize;
    // SAFETY: the function gets what is handed on, during the call.
    unsafe { libc::dl_iterate_phdr(Some(add_size), (&raw mut size_bytes).cast()) };
    thread - size_bytes..thread + RECORD_BYTES
}

unsafe extern "C" fn add_size(info: *mut libc::dl_phdr_info, _: usize, sum: *mut c_void) -> c_int {
    // SAFETY: the C library hands a valid record with as many headers as it says, and what `thread_locals` gave.
    unsafe {
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
        for header in headers.iter().filter(|header| header.p_type == libc::PT_TLS) {
            *sum.cast::<usize>() += header.p_memsz.next_multiple_of(header.p_align.max(1)) as usize;
        }
    }
    0
}
