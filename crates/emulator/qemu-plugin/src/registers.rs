//! The registers of a virtual CPU, in the callback of an instruction's execution, though the interface of QEMU 7.2 shows none.
//!
//! QEMU's own function for debuggers (`x86_cpu_gdb_read_register`) reads them from the virtual CPU's structure. Translated code
//! keeps what it computes in registers of the host, and stores it there before it calls a function that reads registers of
//! the guest. In QEMU's table of such functions the one behind the callbacks of a plugin says that it reads none. So
//! [`Registers::find`] looks for that entry, by its name, and has it say that it reads all of them (later versions of QEMU do the same
//! for callbacks that ask for it). What such a callback costs is a store for each register that was changed, in the few
//! instructions that have one: those of memory accesses are other functions.
//!
//! None of this is part of an interface. What is not found as expected gives no registers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The function behind the callbacks of an instruction's execution, in QEMU's table (accel/tcg/plugin-gen.c).
const CALLBACK_NAME: &CStr = c"plugin_vcpu_udata_cb";
/// `TCG_CALL_NO_READ_GLOBALS`: it reads no registers of the guest, and writes none.
const READS_NONE: u32 = 1;
/// `TCG_CALL_NO_WRITE_GLOBALS`: it writes none.
const WRITES_NONE: u32 = 2;
/// What it takes and returns: nothing from a number of 32 bits and a pointer.
const TYPES: u32 = 0x190;

/// A register by its number in an instruction's encoding, or what a segment adds to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Register {
    /// `%rax`, `%rcx`, `%rdx`, `%rbx`, `%rsp`, `%rbp`, `%rsi`, `%rdi`, `%r8` to `%r15`.
    General(u8),
    /// The base of `%fs`.
    FsBase,
    /// The base of `%gs`.
    GsBase,
}

impl Register {
    /// The debugger's number of it (target/i386/gdbstub.c).
    fn number(self) -> c_int {
        match self {
            Register::General(number @ 0..=7) => [0, 2, 3, 1, 7, 6, 4, 5][usize::from(number)],
            Register::General(number) => c_int::from(number),
            Register::FsBase => 24,
            Register::GsBase => 25,
        }
    }
}

/// `GByteArray` of GLib.
#[repr(C)]
struct ByteArray {
    data: *mut u8,
    length: c_uint,
}

/// `qemu_get_cpu` of cpus-common.c: a virtual CPU's structure by its index, or null.
type GetCpu = unsafe extern "C" fn(c_int) -> *mut c_void;
/// `x86_cpu_gdb_read_register` of target/i386/gdbstub.c: appends a register's bytes, and says how many.
type ReadRegister = unsafe extern "C" fn(*mut c_void, *mut ByteArray, c_int) -> c_int;
/// `cpu_get_phys_page_debug` of hw/core/cpu-sysemu.c: the physical page of a virtual one, or all ones.
type PhysicalPage = unsafe extern "C" fn(*mut c_void, u64) -> u64;
type NewByteArray = unsafe extern "C" fn() -> *mut ByteArray;
type FreeByteArray = unsafe extern "C" fn(*mut ByteArray, c_int) -> *mut u8;

/// The way to a virtual CPU's registers.
pub struct Registers {
    get_cpu: GetCpu,
    read: ReadRegister,
    new_array: NewByteArray,
    free_array: FreeByteArray,
    /// Of a machine.
    physical_page: Option<PhysicalPage>,
}

impl Registers {
    /// Finds the way, and has QEMU's callbacks see the registers as they are. To be called when the plugin is installed,
    /// before any code is translated. None if this QEMU is another than expected.
    pub fn find() -> Option<Registers> {
        if cfg!(feature = "interface-4") {
            return None;
        }
        // SAFETY: functions of QEMU's and GLib's, of the types given, which have not changed from 7.2 to 8.2.
        let registers = unsafe {
            Registers {
                get_cpu: std::mem::transmute::<*mut c_void, Option<GetCpu>>(symbol(c"qemu_get_cpu"))?,
                read: std::mem::transmute::<*mut c_void, Option<ReadRegister>>(symbol(c"x86_cpu_gdb_read_register"))?,
                new_array: std::mem::transmute::<*mut c_void, Option<NewByteArray>>(symbol(c"g_byte_array_new"))?,
                free_array: std::mem::transmute::<*mut c_void, Option<FreeByteArray>>(symbol(c"g_byte_array_free"))?,
                physical_page: std::mem::transmute::<*mut c_void, Option<PhysicalPage>>(symbol(
                    c"cpu_get_phys_page_debug",
                )),
            }
        };
        let flags = flags_of_callbacks()?;
        let page_bytes = 4096;
        let page = flags.as_ptr().map_addr(|address| address & !(page_bytes - 1));
        // SAFETY: a page of the program's own data, which nobody takes from it; it only becomes writable.
        if unsafe { libc::mprotect(page.cast(), page_bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return None;
        }
        flags.store(WRITES_NONE, Ordering::Relaxed);
        Some(registers)
    }

    /// What a virtual CPU has in a register; in the callback of an instruction's execution, on that virtual CPU. None if it
    /// runs no code of 64 bits.
    pub fn read(&self, vcpu: u32, register: Register) -> Option<u64> {
        // SAFETY: asks for a virtual CPU, which lives as long as it runs code, by its index; the array is this function's own,
        // and holds `length` bytes.
        unsafe {
            let cpu = (self.get_cpu)(vcpu as c_int);
            if cpu.is_null() {
                return None;
            }
            let array = (self.new_array)();
            (self.read)(cpu, array, register.number());
            let bytes = std::slice::from_raw_parts((*array).data, (*array).length as usize);
            let value = bytes.try_into().ok().map(u64::from_le_bytes);
            (self.free_array)(array, 1);
            value
        }
    }

    /// The physical address behind one of a machine's virtual addresses, as its virtual CPU translates it now. None if nothing is
    /// there.
    pub fn physical_address(&self, vcpu: u32, address: u64) -> Option<u64> {
        let page_bytes = 4096;
        // SAFETY: as above; the function only reads the guest's page tables.
        let page = unsafe {
            let cpu = (self.get_cpu)(vcpu as c_int);
            (!cpu.is_null())
                .then(|| self.physical_page.map(|physical_page| physical_page(cpu, address & !(page_bytes - 1))))??
        };
        (page != u64::MAX).then_some(page + address % page_bytes)
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
    // may change meanwhile, for which atomic ones allow; what does not change is read as bytes.
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

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a search by a valid name in all that the process has loaded (a null library is RTLD_DEFAULT).
    unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) }
}
