//! Registers by the plugin interface, which has them from version 2 on: by name, on the virtual CPU that runs.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::{Array, Register, Way};
use crate::symbols;

/// The names of the general registers, by their numbers, and of the bases of segments (gdb-xml/i386-64bit.xml).
const NAMES: [&str; 18] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
    "fs_base", "gs_base",
];

/// `qemu_plugin_reg_descriptor`.
#[repr(C)]
struct Descriptor {
    handle: *mut c_void,
    name: *const c_char,
    feature: *const c_char,
}

/// `qemu_plugin_get_registers`: descriptors of the running virtual CPU's registers.
type GetRegisters = unsafe extern "C" fn() -> *mut Array;
/// `qemu_plugin_read_register`: appends a register's bytes.
type ReadRegister = unsafe extern "C" fn(*mut c_void, *mut Array) -> c_int;
/// `g_array_free`.
type FreeArray = unsafe extern "C" fn(*mut Array, c_int) -> *mut u8;

pub struct Official {
    get_registers: GetRegisters,
    read: ReadRegister,
    free_array: FreeArray,
    /// QEMU's handle of each register, the same on all virtual CPUs of one kind; 0 for one that is not there.
    handles: OnceLock<[usize; NAMES.len()]>,
}

/// The functions of the interface.
///
/// # Errors
/// One line if one is not there.
pub fn find() -> Result<Official, String> {
    // SAFETY: the functions' types, from version 2 to 4 of the interface.
    unsafe {
        Ok(Official {
            get_registers: symbols::function(c"qemu_plugin_get_registers")?,
            read: symbols::function(c"qemu_plugin_read_register")?,
            free_array: symbols::function(c"g_array_free")?,
            handles: OnceLock::new(),
        })
    }
}

impl Official {
    /// # Safety
    /// Called in a callback of a virtual CPU.
    unsafe fn look_up(&self) -> [usize; NAMES.len()] {
        let mut handles = [0; NAMES.len()];
        // SAFETY: the array is ours, and holds `length` descriptors, whose names live as long as QEMU does.
        unsafe {
            let array = (self.get_registers)();
            if let Some(held) = array.as_ref().filter(|held| held.length > 0) {
                let descriptors = std::slice::from_raw_parts(held.data.cast::<Descriptor>(), held.length as usize);
                for descriptor in descriptors {
                    let name = CStr::from_ptr(descriptor.name).to_bytes();
                    if let Some(place) = NAMES.iter().position(|known| known.as_bytes() == name) {
                        handles[place] = descriptor.handle.expose_provenance();
                    }
                }
            }
            if !array.is_null() {
                (self.free_array)(array, 1);
            }
        }
        handles
    }
}

impl Way for Official {
    unsafe fn append(&self, _vcpu: u32, register: Register, array: *mut Array) {
        let place = match register {
            Register::General(number) => usize::from(number),
            Register::FsBase => 16,
            Register::GsBase => 17,
        };
        // SAFETY: as this function demands; the handle is one that QEMU gave out.
        unsafe {
            let handle = self.handles.get_or_init(|| self.look_up())[place];
            if handle != 0 {
                (self.read)(std::ptr::with_exposed_provenance_mut(handle), array);
            }
        }
    }
}
