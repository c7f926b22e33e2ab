//! The registers of a virtual CPU, in the callback of an instruction's execution that was registered as one that reads them
//! ([`crate::abi::CALLBACK_READS_REGISTERS`]).
//!
//! From QEMU 9.0 on they are part of the plugin interface ([`official`]); before, QEMU's own function for debuggers reads
//! them ([`debugger`]). What a machine's page tables say of an address is no part of any interface that we use.

mod debugger;
mod official;

use std::ffi::{c_int, c_uint, c_void};

use crate::abi;
use crate::current::GetCpu;
use crate::symbols;

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

/// `GArray` and `GByteArray` of GLib.
#[repr(C)]
struct Array {
    data: *mut u8,
    length: c_uint,
}

/// `cpu_get_phys_page_debug`: the physical page of a virtual one, or all ones.
type PhysicalPage = unsafe extern "C" fn(*mut c_void, u64) -> u64;
type NewByteArray = unsafe extern "C" fn() -> *mut Array;
type FreeByteArray = unsafe extern "C" fn(*mut Array, c_int) -> *mut u8;

/// Appends a register's bytes to an array.
trait Way {
    /// # Safety
    /// Called in a callback that reads registers, on the virtual CPU of this index; the array is one of GLib's.
    unsafe fn append(&self, vcpu: u32, register: Register, array: *mut Array);
}

/// The way to a virtual CPU's registers.
pub struct Registers {
    way: Box<dyn Way + Send + Sync>,
    new_array: NewByteArray,
    free_array: FreeByteArray,
    /// Of a machine.
    page_tables: Option<(GetCpu, PhysicalPage)>,
}

impl Registers {
    /// Finds the way, and has QEMU's callbacks see the registers as they are. To be called when the plugin is installed,
    /// before any code is translated.
    ///
    /// # Errors
    /// One line if this QEMU is another than expected.
    pub fn find(is_machine: bool) -> Result<Registers, String> {
        let way: Box<dyn Way + Send + Sync> =
            if abi::shows_registers() { Box::new(official::find()?) } else { Box::new(debugger::find()?) };
        // SAFETY: the types of GLib's functions, and of QEMU's, which have not changed from 7.2 to 10.0.
        unsafe {
            let page_tables = || -> Result<(GetCpu, PhysicalPage), String> {
                Ok((symbols::function(c"qemu_get_cpu")?, symbols::function(c"cpu_get_phys_page_debug")?))
            };
            Ok(Registers {
                way,
                new_array: symbols::function(c"g_byte_array_new")?,
                free_array: symbols::function(c"g_byte_array_free")?,
                page_tables: is_machine.then(page_tables).transpose()?,
            })
        }
    }

    /// What a virtual CPU has in a register; in the callback of an instruction's execution, on that virtual CPU. None if it
    /// runs no code of 64 bits.
    pub fn read(&self, vcpu: u32, register: Register) -> Option<u64> {
        // SAFETY: the caller is in such a callback, says this function; the array is its own, and holds `length` bytes.
        unsafe {
            let array = (self.new_array)();
            self.way.append(vcpu, register, array);
            let held = &*array;
            let bytes =
                if held.length == 0 { &[] } else { std::slice::from_raw_parts(held.data, held.length as usize) };
            let value = bytes.try_into().ok().map(u64::from_le_bytes);
            (self.free_array)(array, 1);
            value
        }
    }

    /// The physical address behind one of a machine's virtual addresses, as its virtual CPU translates it now. None if nothing is
    /// there.
    pub fn physical_address(&self, vcpu: u32, address: u64) -> Option<u64> {
        let page_bytes = 4096;
        let (get_cpu, physical_page) = self.page_tables?;
        // SAFETY: asks for a virtual CPU, which lives as long as it runs code, by its index; the other function only reads the
        // guest's page tables.
        let page = unsafe {
            let cpu = get_cpu(vcpu as c_int);
            (!cpu.is_null()).then(|| physical_page(cpu, address & !(page_bytes - 1)))?
        };
        (page != u64::MAX).then_some(page + address % page_bytes)
    }
}
