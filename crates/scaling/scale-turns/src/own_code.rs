//! What lies where: this library, which is not measured; the C library, which is not interrupted, since it holds locks of its own;
//! and the list of all that is loaded, which names what was touched.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::path::Path;

use transfer_marks as mark;

/// Says to the counter what it must know of the code that is loaded.
pub fn say() {
    // SAFETY: the function gets what is handed on, during the call.
    unsafe { libc::dl_iterate_phdr(Some(say_object), std::ptr::null_mut()) };
}

unsafe extern "C" fn say_object(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the C library hands a valid record, with a name, and as many headers as it says.
    let (name, start, headers) = unsafe {
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
        (CStr::from_ptr((*info).dlpi_name).to_bytes(), (*info).dlpi_addr as usize, headers)
    };
    let is_code = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
    let ranges = headers.iter().filter(is_code).map(|header| {
        let start = start.wrapping_add(header.p_vaddr as usize);
        start..start.wrapping_add(header.p_memsz as usize)
    });
    let ranges: Vec<Range<usize>> = ranges.collect();
    let is_own = ranges.iter().any(|range| range.contains(&(say as fn() as usize)));
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    for range in ranges {
        if is_own {
            mark::own_code(range);
        } else if file.starts_with(b"libc.so") || file.starts_with(b"ld-linux") {
            mark::never_interrupted(range);
        }
    }
    0
}

/// Writes how many turns the clock had to interrupt, and what is mapped where, into a file.
pub fn list_loaded(path: &Path, stalls: u64) {
    let mapped = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if let Err(error) = std::fs::write(path, format!("stalls {stalls}\n{mapped}")) {
        crate::system::refuse(&format!("{}: {error}", path.display()));
    }
}
