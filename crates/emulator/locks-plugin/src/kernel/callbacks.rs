//! What QEMU calls: at each translated block once, then at each block, memory access and function of a lock.
//!
//! Only the kernel's instructions are followed. A virtual CPU without an open section costs one load per access; the
//! recorder is behind a lock that no one ever waits for, since the emulator runs all virtual CPUs by turns.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use qemu_plugin::abi::{self, ExecutionCallback, Instruction, MemoryCallback, MemoryInfo, PluginId, TranslationBlock};
use qemu_plugin::current;

use super::functions::{Entry, Functions};
use super::instruction::{Kind, classify};
use super::names::KernelNames;
use super::recorder::{At, Mood, Recorder};

/// Virtual CPUs that are followed.
pub const CPU_LIMIT: usize = 64;
/// Bits of the filters that most accesses fail.
const FILTER_BITS: usize = 1 << 22;
/// First address of the kernel's half of the address space.
const KERNEL_HALF: u64 = 1 << 63;
/// Where `ioremap` maps devices: `vmalloc` space and what lies above it, in whichever paging mode.
const MAPPED_DEVICES: u64 = 0xff00_0000_0000_0000;
/// From here on lie fixed mappings, among them each processor's own interrupt controller: neither memory nor a device that
/// two sections could share.
const FIXED_MAPPINGS: u64 = 0xffff_ffff_ff00_0000;
/// A memory callback's data holds the instruction's address in the upper bits and this flag.
const THROUGH_GS: u64 = 1;

/// What a virtual CPU has executed; written by the thread that runs it.
static EXECUTED: [AtomicU64; CPU_LIMIT] = [const { AtomicU64::new(0) }; CPU_LIMIT];
/// Whether what runs on a virtual CPU has an open section.
static IN_SECTION: [AtomicBool; CPU_LIMIT] = [const { AtomicBool::new(false) }; CPU_LIMIT];
/// Whether recording has begun and not ended.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Words, by hash.
type Filter = [AtomicU64; FILTER_BITS / 64];
/// Words of locks: a plain store to one makes the lock again.
static WATCHED: Filter = [const { AtomicU64::new(0) }; FILTER_BITS / 64];
/// Words that sections touched: an access without a lock may conflict with them.
static GUARDED: Filter = [const { AtomicU64::new(0) }; FILTER_BITS / 64];
/// Whether an interrupt is being delivered: QEMU counts its accesses as those of the instruction before it.
static DELIVERING: [AtomicBool; CPU_LIMIT] = [const { AtomicBool::new(false) }; CPU_LIMIT];
static RECORDER: OnceLock<Machine> = OnceLock::new();

/// The recorder and what it needs of the kernel.
struct Machine {
    recorder: Mutex<Recorder<KernelNames>>,
    functions: Functions,
    out: std::path::PathBuf,
}

/// Registers the callbacks; only the first call has an effect.
pub fn install(id: PluginId, recorder: Recorder<KernelNames>, functions: Functions, out: std::path::PathBuf) {
    RECORDER.get_or_init(|| Machine { recorder: Mutex::new(recorder), functions, out });
    // SAFETY: QEMU's functions, called during installation as its interface demands.
    unsafe {
        abi::qemu_plugin_register_vcpu_init_cb(id, on_cpu_start);
        abi::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        abi::qemu_plugin_register_atexit_cb(id, on_exit, std::ptr::null_mut());
    }
}

fn recorder() -> Option<MutexGuard<'static, Recorder<KernelNames>>> {
    RECORDER.get().map(|machine| machine.recorder.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The virtual CPU that runs, given what QEMU tells; its number is below [`CPU_LIMIT`], as installation has made sure of.
#[inline]
fn at(told: c_uint) -> At {
    let cpu = current::index(told) as usize % CPU_LIMIT;
    At { cpu, instructions: EXECUTED[cpu].load(Ordering::Relaxed) }
}

fn take(cpu: c_uint, mood: Mood) {
    // Relaxed, here and below: read and written by the one thread that runs all virtual CPUs.
    IN_SECTION[at(cpu).cpu].store(mood.in_section, Ordering::Relaxed);
    if let Some(address) = mood.watch {
        mark(&WATCHED, address);
    }
}

/// By words of eight bytes: a store may cover two locks.
#[inline]
fn bit_of(address: u64) -> usize {
    ((address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS.ilog2())) as usize
}

#[inline]
fn mark(filter: &Filter, address: u64) {
    let bit = bit_of(address);
    let word = &filter[bit / 64];
    word.store(word.load(Ordering::Relaxed) | 1 << (bit % 64), Ordering::Relaxed);
}

#[inline]
fn is_marked(filter: &Filter, address: u64) -> bool {
    let bit = bit_of(address);
    filter[bit / 64].load(Ordering::Relaxed) >> (bit % 64) & 1 != 0
}

extern "C" fn on_cpu_start(_id: PluginId, cpu: c_uint) {
    if let Some(mut recorder) = recorder() {
        recorder.add_cpu(cpu as usize % CPU_LIMIT);
    }
}

extern "C" fn on_exit(_id: PluginId, _data: *mut c_void) {
    let Some(machine) = RECORDER.get() else { return };
    let mut recorder = machine.recorder.lock().unwrap_or_else(PoisonError::into_inner);
    ACTIVE.store(false, Ordering::Relaxed);
    recorder.write_report(&machine.functions, &machine.out);
}

extern "C" fn on_translation(_id: PluginId, block: *mut TranslationBlock) {
    let Some(machine) = RECORDER.get() else { return };
    if let Err(problem) = current::bind() {
        eprintln!("commutant: {problem}");
        current::end_machine();
    }
    // SAFETY: the block is valid during this callback, as are its instructions and their bytes; the data of callbacks are
    // numbers that travel as pointers.
    unsafe {
        let count = abi::qemu_plugin_tb_n_insns(block);
        if count == 0 || abi::qemu_plugin_insn_vaddr(abi::qemu_plugin_tb_get_insn(block, 0)) < KERNEL_HALF {
            return;
        }
        let data = count as *mut c_void;
        abi::qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, abi::CALLBACK_NO_REGISTERS, data);
        for index in 0..count {
            let instruction = abi::qemu_plugin_tb_get_insn(block, index);
            let (kind, gs) = abi::with_instruction_bytes(instruction, |bytes| (classify(bytes), bytes[0] == 0x65));
            instrument(&machine.functions, instruction, kind, gs);
        }
    }
}

/// Registers what one instruction needs.
///
/// # Safety
/// The instruction belongs to the block that is being translated.
unsafe fn instrument(functions: &Functions, instruction: *mut Instruction, kind: Kind, gs: bool) {
    // SAFETY: as this function demands.
    let address = unsafe { abi::qemu_plugin_insn_vaddr(instruction) };
    let on_execution = |callback: ExecutionCallback, data: u64| {
        // SAFETY: as this function demands; the data is a number.
        unsafe {
            let data = data as *mut c_void;
            abi::qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, abi::CALLBACK_NO_REGISTERS, data);
        }
    };
    if functions.entry_at(address).is_some() {
        on_execution(on_entry, address);
    }
    if kind == Kind::PortAccess {
        on_execution(on_port, address);
    }
    let code = functions.code_at(address);
    let plain: MemoryCallback = if code.is_some() { on_access_of_lock } else { on_access };
    let callback = match (kind, code.map(|code| code.exit)) {
        (Kind::Call, _) => on_call,
        (Kind::Return, _) => on_return,
        (Kind::Atomic | Kind::ByteRelease, Some(Some(_))) => on_exit_of_lock,
        (Kind::Atomic, Some(None)) => on_atomic_of_lock,
        (Kind::Atomic, None) => on_access_of_lock,
        (Kind::LoadStackPointer, _) if functions.task_switch.contains(&address) => on_task_switch,
        _ => plain,
    };
    let data = address << 16 | if gs { THROUGH_GS } else { 0 };
    // SAFETY: as this function demands; the data is a number.
    unsafe {
        abi::qemu_plugin_register_vcpu_mem_cb(
            instruction,
            callback,
            abi::CALLBACK_NO_REGISTERS,
            abi::MEMORY_READ_WRITE,
            data as *mut c_void,
        );
    }
}

/// The instruction's address of a memory callback's data.
fn site_of(data: *mut c_void) -> u64 {
    (data as i64 >> 16) as u64
}

extern "C" fn on_block(cpu: c_uint, instruction_count: *mut c_void) {
    let cpu = at(cpu).cpu;
    DELIVERING[cpu].store(false, Ordering::Relaxed);
    let executed = &EXECUTED[cpu];
    executed.store(executed.load(Ordering::Relaxed) + instruction_count as u64, Ordering::Relaxed);
}

/// Size in bytes and direction of an access.
#[inline]
fn size_and_direction(info: MemoryInfo) -> (u8, bool) {
    // SAFETY: `info` is what QEMU handed to the running memory callback.
    unsafe { (1 << abi::qemu_plugin_mem_size_shift(info).min(6), abi::qemu_plugin_mem_is_store(info)) }
}

extern "C" fn on_entry(cpu: c_uint, address: *mut c_void) {
    let (Some(machine), Some(mut recorder)) = (RECORDER.get(), recorder()) else { return };
    let address = address as u64;
    let Some(entry) = machine.functions.entry_at(address) else { return };
    let mood = recorder.enter(at(cpu), entry, address);
    ACTIVE.store(recorder.is_active(), Ordering::Relaxed);
    take(cpu, mood);
    if entry == Entry::Phase {
        for flag in IN_SECTION.iter().filter(|_| !recorder.is_active()) {
            flag.store(false, Ordering::Relaxed);
        }
    }
}

extern "C" fn on_port(cpu: c_uint, _address: *mut c_void) {
    if IN_SECTION[at(cpu).cpu].load(Ordering::Relaxed)
        && let Some(mut recorder) = recorder()
    {
        recorder.touch_device(at(cpu).cpu);
    }
}

#[inline]
fn log(cpu: c_uint, info: MemoryInfo, address: u64, data: *mut c_void) {
    let here = at(cpu).cpu;
    if address >= FIXED_MAPPINGS {
        return;
    }
    if !IN_SECTION[here].load(Ordering::Relaxed) {
        if is_marked(&GUARDED, address)
            && let Some(mut recorder) = recorder()
        {
            let (size_bytes, write) = size_and_direction(info);
            recorder.access_outside(here, address, size_bytes, write);
        }
        return;
    }
    let Some(mut recorder) = recorder() else { return };
    let (size_bytes, write) = size_and_direction(info);
    mark(&GUARDED, address);
    if address >= MAPPED_DEVICES {
        // SAFETY: called within a memory callback, for its own access.
        let is_device = unsafe {
            let hardware = abi::qemu_plugin_get_hwaddr(info, address);
            !hardware.is_null() && abi::qemu_plugin_hwaddr_is_io(hardware)
        };
        if is_device {
            recorder.touch_device(here);
            return;
        }
    }
    recorder.access(here, address, size_bytes, write, site_of(data), data as u64 & THROUGH_GS != 0);
}

extern "C" fn on_access(cpu: c_uint, info: MemoryInfo, address: u64, data: *mut c_void) {
    if !ACTIVE.load(Ordering::Relaxed) {
        return;
    }
    if is_marked(&WATCHED, address) {
        let (size_bytes, write) = size_and_direction(info);
        if write && let Some(mut recorder) = recorder() {
            recorder.store(address, size_bytes);
        }
    }
    log(cpu, info, address, data);
}

extern "C" fn on_access_of_lock(cpu: c_uint, info: MemoryInfo, address: u64, data: *mut c_void) {
    log(cpu, info, address, data);
}

extern "C" fn on_atomic_of_lock(cpu: c_uint, info: MemoryInfo, address: u64, data: *mut c_void) {
    if ACTIVE.load(Ordering::Relaxed)
        && let (Some(machine), Some(mut recorder)) = (RECORDER.get(), recorder())
        && let Some(code) = machine.functions.code_at(site_of(data))
    {
        recorder.atomic(at(cpu), address, code.range.start);
    }
    log(cpu, info, address, data);
}

extern "C" fn on_exit_of_lock(cpu: c_uint, info: MemoryInfo, address: u64, data: *mut c_void) {
    // An atomic instruction loads and stores, whether or not it exchanges anything: each is reported once, by its
    // store.
    if !ACTIVE.load(Ordering::Relaxed) || !size_and_direction(info).1 {
        return;
    }
    let (Some(machine), Some(mut recorder)) = (RECORDER.get(), recorder()) else { return };
    if let Some(Some(exit)) = machine.functions.code_at(site_of(data)).map(|code| code.exit) {
        let mood = recorder.exit(at(cpu), exit, address);
        take(cpu, mood);
    }
}

/// Whether an access at a call or return belongs to the delivery of an interrupt after it. That begins by reading four
/// bytes of the descriptor table; calls and returns touch eight.
#[inline]
fn is_delivery(cpu: c_uint, size_bytes: u8) -> bool {
    let flag = &DELIVERING[at(cpu).cpu];
    if size_bytes == 4 {
        flag.store(true, Ordering::Relaxed);
    }
    flag.load(Ordering::Relaxed)
}

extern "C" fn on_call(cpu: c_uint, info: MemoryInfo, address: u64, data: *mut c_void) {
    if !ACTIVE.load(Ordering::Relaxed) {
        return;
    }
    let (size_bytes, write) = size_and_direction(info);
    if is_delivery(cpu, size_bytes) {
        return;
    }
    // An indirect call also loads its target.
    if !write {
        log(cpu, info, address, data);
    } else if let Some(mut recorder) = recorder() {
        recorder.call(at(cpu).cpu, address, site_of(data));
    }
}

extern "C" fn on_return(cpu: c_uint, info: MemoryInfo, address: u64, _data: *mut c_void) {
    if ACTIVE.load(Ordering::Relaxed)
        && !is_delivery(cpu, size_and_direction(info).0)
        && let Some(mut recorder) = recorder()
        && let Some(mood) = recorder.ret(at(cpu), address)
    {
        take(cpu, mood);
    }
}

extern "C" fn on_task_switch(cpu: c_uint, info: MemoryInfo, address: u64, data: *mut c_void) {
    log(cpu, info, address, data);
    if let Some(mut recorder) = recorder() {
        let mood = recorder.switch_task(at(cpu), address);
        take(cpu, mood);
    }
}
