//! The part of QEMU's plugin interface that our plugins use, in all its versions from 1 (QEMU 7.2) to 4 (QEMU 10.0).
//!
//! Declared here by hand: it is seventeen functions. Of these one differs between the versions: since version 3 the bytes of
//! an instruction are copied out. The functions are found in the QEMU executable when the plugin is loaded, all of them at
//! once. QEMU refuses a plugin whose [`qemu_plugin_version`] it does not offer, so that a newer interface, whose structures
//! differ, is never called by mistake.
//!
//! One plugin serves all versions: when it is loaded, before QEMU reads that number, it looks which interface is there, and
//! while it is installed it learns which version QEMU offers ([`set_offered`]).

// Functions and types are documented in QEMU's header; their names are its own.
#![allow(missing_docs)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::symbols;

/// Version of the plugin interface that this plugin needs; QEMU reads it before it calls anything.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(OLD_VERSION);

/// QEMU 4.2 to 8.x offer version 1; 9.0 and later do not.
const OLD_VERSION: c_int = 1;
/// QEMU 9.0 and later (seen up to 10.0) take plugins from this version on; what differs above it is asked of QEMU ([`set_offered`]).
const NEW_VERSION: c_int = 2;
/// From this version on, an instruction's bytes are copied out.
const COPIES_BYTES: c_int = 3;

/// The newest version that the running QEMU offers.
static OFFERED: AtomicI32 = AtomicI32::new(OLD_VERSION);

/// What the loader calls before anybody has looked at the plugin.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = choose_version;

extern "C" fn choose_version() {
    // Came with version 2.
    if !symbols::find(c"qemu_plugin_num_vcpus").is_null() {
        qemu_plugin_version.store(NEW_VERSION, Ordering::Relaxed);
    }
}

/// Notes the newest version that the running QEMU offers.
pub(crate) fn set_offered(version: c_int) {
    OFFERED.store(version, Ordering::Relaxed);
}

/// Whether the running QEMU offers the interface that shows registers.
pub fn shows_registers() -> bool {
    OFFERED.load(Ordering::Relaxed) >= NEW_VERSION
}

/// The longest instruction of x86 (Intel's manual, volume 2, 2.3.11).
const INSTRUCTION_LIMIT_BYTES: usize = 15;

/// `qemu_plugin_id_t`.
pub type PluginId = u64;
/// `qemu_plugin_meminfo_t`.
pub type MemoryInfo = u32;

/// `struct qemu_plugin_tb`: a block of instructions that is being translated.
#[repr(C)]
pub struct TranslationBlock {
    _opaque: [u8; 0],
}

/// `struct qemu_plugin_insn`: one instruction of such a block.
#[repr(C)]
pub struct Instruction {
    _opaque: [u8; 0],
}

/// `struct qemu_plugin_hwaddr`: what a virtual address was translated to; valid within a memory callback only.
#[repr(C)]
pub struct HardwareAddress {
    _opaque: [u8; 0],
}

/// `qemu_info_t`: what QEMU tells a plugin about itself.
#[repr(C)]
pub struct Info {
    /// Architecture, such as `x86_64`.
    pub target_name: *const c_char,
    /// Oldest plugin interface that this QEMU offers.
    pub version_min: c_int,
    /// Newest plugin interface that this QEMU offers.
    pub version_cur: c_int,
    /// Whether a whole machine is emulated (else one program).
    pub system_emulation: bool,
    /// Virtual CPUs at the start; with `system_emulation` only.
    pub smp_vcpus: c_int,
    /// Virtual CPUs there can ever be; with `system_emulation` only.
    pub max_vcpus: c_int,
}

/// `QEMU_PLUGIN_CB_NO_REGS`: the callback looks at no register.
pub const CALLBACK_NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_CB_R_REGS`: the callback reads registers. Version 1 knows no such flag, and ignores it.
pub const CALLBACK_READS_REGISTERS: c_int = 1;
/// `QEMU_PLUGIN_MEM_RW`: call back for loads and for stores. (Callbacks for one of the two miss half of an atomic access.)
pub const MEMORY_READ_WRITE: c_int = 3;

pub type VcpuCallback = extern "C" fn(PluginId, c_uint);
pub type TranslationCallback = extern "C" fn(PluginId, *mut TranslationBlock);
pub type ExecutionCallback = extern "C" fn(c_uint, *mut c_void);
pub type MemoryCallback = extern "C" fn(c_uint, MemoryInfo, u64, *mut c_void);
/// Number and arguments of a system call (programs only).
pub type SystemCallCallback = extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub type ExitCallback = extern "C" fn(PluginId, *mut c_void);

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_init_cb(id: PluginId, callback: VcpuCallback);
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: PluginId, callback: TranslationCallback);
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut TranslationBlock,
        callback: ExecutionCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_syscall_cb(id: PluginId, callback: SystemCallCallback);
    pub fn qemu_plugin_register_atexit_cb(id: PluginId, callback: ExitCallback, data: *mut c_void);
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: ExecutionCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: MemoryCallback,
        flags: c_int,
        direction: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_tb_n_insns(block: *const TranslationBlock) -> usize;
    pub fn qemu_plugin_tb_get_insn(block: *const TranslationBlock, index: usize) -> *mut Instruction;
    /// Of either type: `BorrowBytes` or `CopyBytes`.
    fn qemu_plugin_insn_data();
    pub fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub fn qemu_plugin_mem_size_shift(info: MemoryInfo) -> c_uint;
    pub fn qemu_plugin_mem_is_store(info: MemoryInfo) -> bool;
    pub fn qemu_plugin_get_hwaddr(info: MemoryInfo, address: u64) -> *mut HardwareAddress;
    pub fn qemu_plugin_hwaddr_is_io(address: *const HardwareAddress) -> bool;
    pub fn qemu_plugin_hwaddr_phys_addr(address: *const HardwareAddress) -> u64;
}

/// `qemu_plugin_insn_data` of versions 1 and 2.
type BorrowBytes = unsafe extern "C" fn(*const Instruction) -> *const c_void;
/// `qemu_plugin_insn_data` from version 3 on.
type CopyBytes = unsafe extern "C" fn(*const Instruction, *mut c_void, usize) -> usize;

/// The bytes of an instruction, handed to `use_bytes`.
///
/// # Safety
/// The instruction comes from the translation callback under way.
pub unsafe fn with_instruction_bytes<R>(instruction: *const Instruction, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
    let mut bytes = [0_u8; INSTRUCTION_LIMIT_BYTES];
    // SAFETY: the caller vouches for the instruction; the function has the type that the offered version says; nothing is
    // copied beyond what the instruction and the buffer hold.
    let length = unsafe {
        let length = qemu_plugin_insn_size(instruction).min(bytes.len());
        let function = qemu_plugin_insn_data as *const ();
        if OFFERED.load(Ordering::Relaxed) >= COPIES_BYTES {
            let copy = std::mem::transmute::<*const (), CopyBytes>(function);
            copy(instruction, bytes.as_mut_ptr().cast(), length)
        } else {
            let borrow = std::mem::transmute::<*const (), BorrowBytes>(function);
            std::ptr::copy_nonoverlapping(borrow(instruction).cast(), bytes.as_mut_ptr(), length);
            length
        }
    };
    use_bytes(&bytes[..length])
}
