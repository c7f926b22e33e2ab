//! Registers by QEMU's own function for debuggers, for the interface of QEMU 7.2 to 8.x, which shows none.
//!
//! That function (`x86_cpu_gdb_read_register`) reads them from the virtual CPU's structure. Translated code keeps what it
//! computes in registers of the host, and stores it there before it calls a function that reads registers of the guest. In
//! QEMU's table of such functions the one behind the callbacks of a plugin says that it reads none. So [`find`] looks for
//! that entry, by its name, and has it say that it reads all of them (later versions of QEMU do the same for callbacks that
//! ask for it). What such a callback costs is a store for each register that was changed, in the few instructions that have
//! one: those of memory accesses are other functions.
//!
//! None of this is part of an interface. Where it is not found as expected, the plugin is not installed.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Array, Register, Way};
use crate::current::GetCpu;
use crate::symbols;

/// The function behind the callbacks of an instruction's execution, in QEMU's table (accel/tcg/plugin-gen.c).
const CALLBACK_NAME: &CStr = c"plugin_vcpu_udata_cb";
/// `TCG_CALL_NO_READ_GLOBALS`: it reads no registers of the guest, and writes none.
const READS_NONE: u32 = 1;
/// `TCG_CALL_NO_WRITE_GLOBALS`: it writes none.
const WRITES_NONE: u32 = 2;
/// What it takes and returns: nothing from a number of 32 bits and a pointer.
const TYPES: u32 = 0x190;

/// The debugger's number of a register (target/i386/gdbstub.c).
fn number_of(register: Register) -> c_int {
    match register {
        Register::General(number @ 0..=7) => [0, 2, 3, 1, 7, 6, 4, 5][usize::from(number)],
        Register::General(number) => c_int::from(number),
        Register::FsBase => 24,
        Register::GsBase => 25,
    }
}

/// `x86_cpu_gdb_read_register` of target/i386/gdbstub.c: appends a register's bytes, and says how many.
type ReadRegister = unsafe extern "C" fn(*mut c_void, *mut Array, c_int) -> c_int;

pub struct Debugger {
    get_cpu: GetCpu,
    read: ReadRegister,
}

/// Finds the function, and has callbacks see the registers as they are.
///
/// # Errors
/// One line if this QEMU is another than expected.
pub fn find() -> Result<Debugger, String> {
    // SAFETY: functions of QEMU's, of the types given, which have not changed from 7.2 to 8.2.
    let debugger = unsafe {
        Debugger {
            get_cpu: symbols::function(c"qemu_get_cpu")?,
            read: symbols::function(c"x86_cpu_gdb_read_register")?,
        }
    };
    let unknown = "expected QEMU's table of the functions that translated code calls, found none such as 7.2 has";
    let flags = flags_of_callbacks().ok_or(unknown)?;
    let page_bytes = 4096;
    let page = flags.as_ptr().map_addr(|address| address & !(page_bytes - 1));
    // SAFETY: a page of the program's own data, which no one takes from it; it only becomes writable.
    if unsafe { libc::mprotect(page.cast(), page_bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        return Err(format!("QEMU's table of functions cannot be written: {}", std::io::Error::last_os_error()));
    }
    flags.store(WRITES_NONE, Ordering::Relaxed);
    Ok(debugger)
}

impl Way for Debugger {
    unsafe fn append(&self, vcpu: u32, register: Register, array: *mut Array) {
        // SAFETY: asks for a virtual CPU, which lives as long as it runs code, by its index; the array is one of GLib's, says
        // this function.
        unsafe {
            let cpu = (self.get_cpu)(vcpu as c_int);
            if !cpu.is_null() {
                (self.read)(cpu, array, number_of(register));
            }
        }
    }
}

/// Where the table says what the function behind the callbacks reads.
fn flags_of_callbacks() -> Option<&'static AtomicU32> {
    let mut found: Option<&'static AtomicU32> = None;
    // SAFETY: `each_object` gets the pointer that is handed over here, and what it points to outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look_in), (&raw mut found).cast()) };
    found
}

/// Looks in the first object, which is the program itself, and ends the search.
unsafe extern "C" fn look_in(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader's description of the program, valid during this call; its segments stay mapped for good. Their words
    // may change in the meantime, for which atomic ones allow; what does not change is read as bytes.
    unsafe {
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
        let segments = |wanted: u32| {
            headers
                .iter()
                .filter(move |header| header.p_type == libc::PT_LOAD && header.p_flags == wanted)
                .map(|header| ((*info).dlpi_addr.wrapping_add(header.p_vaddr) as usize, header.p_filesz as usize))
        };
        let name = CALLBACK_NAME.to_bytes_with_nul();
        let name_at = segments(libc::PF_R).find_map(|(start, size_bytes)| {
            let bytes = std::slice::from_raw_parts(start as *const u8, size_bytes);
            bytes.windows(name.len()).position(|window| window == name).map(|offset| (start + offset) as u64)
        });
        let Some(name_at) = name_at else { return 1 };
        for (start, size_bytes) in segments(libc::PF_R | libc::PF_W) {
            let first = start.next_multiple_of(8);
            let words = std::slice::from_raw_parts(first as *const AtomicU64, (start + size_bytes - first) / 8);
            let expected = u64::from(READS_NONE) | u64::from(TYPES) << 32;
            let entry = words.windows(2).position(|pair| {
                pair[0].load(Ordering::Relaxed) == name_at && pair[1].load(Ordering::Relaxed) == expected
            });
            if let Some(entry) = entry {
                *found.cast::<Option<&'static AtomicU32>>() = Some(&*(words.as_ptr().add(entry + 1).cast()));
                return 1;
            }
        }
    }
    1
}
