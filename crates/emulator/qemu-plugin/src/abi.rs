//! The part of QEMU's plugin interface that our plugins use: version 1, or, with the feature `interface-4`, version 4.
//!
//! Declared here by hand: it is seventeen functions, and the interface of one version never changes. Of these functions one
//! differs between the versions: since version 3 the bytes of an instruction are copied out. The functions are
//! found in the QEMU executable when the plugin is loaded. QEMU refuses a plugin whose [`qemu_plugin_version`] it does
//! not offer, so that a newer interface, whose structures differ, is never called by mistake.

// Functions and types are documented in QEMU's header; their names are its own.
#![allow(missing_docs)]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Version of the plugin interface that this plugin is built for; QEMU reads it before it calls anything.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = API_VERSION;

/// QEMU 4.2 to 8.x offer version 1; 9.0 and later do not. Version 4 came with QEMU 9.2.
pub const API_VERSION: c_int = if cfg!(feature = "interface-4") { 4 } else { 1 };

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
    #[cfg(not(feature = "interface-4"))]
    fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const c_void;
    #[cfg(feature = "interface-4")]
    fn qemu_plugin_insn_data(instruction: *const Instruction, destination: *mut c_void, size_bytes: usize) -> usize;
    pub fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub fn qemu_plugin_mem_size_shift(info: MemoryInfo) -> c_uint;
    pub fn qemu_plugin_mem_is_store(info: MemoryInfo) -> bool;
    pub fn qemu_plugin_get_hwaddr(info: MemoryInfo, address: u64) -> *mut HardwareAddress;
    pub fn qemu_plugin_hwaddr_is_io(address: *const HardwareAddress) -> bool;
    pub fn qemu_plugin_hwaddr_phys_addr(address: *const HardwareAddress) -> u64;
}

/// The bytes of an instruction, handed to `use_bytes`.
///
/// # Safety
/// The instruction comes from the translation callback under way.
pub unsafe fn with_instruction_bytes<R>(instruction: *const Instruction, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
    let mut bytes = [0_u8; INSTRUCTION_LIMIT_BYTES];
    // SAFETY: the caller vouches for the instruction; nothing is copied beyond what it and the buffer hold.
    let length = unsafe {
        let length = qemu_plugin_insn_size(instruction).min(bytes.len());
        #[cfg(not(feature = "interface-4"))]
        std::ptr::copy_nonoverlapping(qemu_plugin_insn_data(instruction).cast(), bytes.as_mut_ptr(), length);
        #[cfg(feature = "interface-4")]
        let length = qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), length);
        length
    };
    use_bytes(&bytes[..length])
}
