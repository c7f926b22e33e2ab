//! What QEMU calls: at each translated block once, then at each memory access and at the few instructions that matter.
//!
//! Memory callbacks are registered on every instruction of the translation that records (see [`crate::translations`]),
//! for good: QEMU 7.2 aborts now and then when instrumentation is taken away again. The few instructions that begin and
//! end system calls, interrupts and tasks are followed in either translation, calls and returns of a machine only while
//! recording.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering;

use mtrace::layout::{EntryPoint, RangeKind};
use mtrace::record::{AccessKind, Mode};
use mtrace::rules::Rule;

use crate::context::Level;
use crate::instruction::{Kind, Marker, classify};
use crate::tracer::{
    CALL_EPOCH, CALLER, FOLLOWING, Prefetch, RECORDING, Tracer, tracer, with_vcpu_of_machine, with_vcpu_of_program,
};
use crate::vcpu::{Site, Vcpu};
use qemu_plugin::abi::{self, Instruction, MemoryCallback, MemoryInfo, PluginId, TranslationBlock};
use qemu_plugin::current;

/// Registers the callbacks that do not depend on an instruction.
pub fn register(id: PluginId) {
    // SAFETY: QEMU's functions, called during installation as its interface demands.
    unsafe {
        abi::qemu_plugin_register_vcpu_init_cb(id, on_vcpu_start);
        abi::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        abi::qemu_plugin_register_atexit_cb(id, on_exit, std::ptr::null_mut());
    }
}

extern "C" fn on_vcpu_start(_id: PluginId, vcpu: c_uint) {
    if let Some(tracer) = tracer() {
        tracer.add_vcpu(vcpu);
    }
}

extern "C" fn on_exit(_id: PluginId, _data: *mut c_void) {
    if let Some(tracer) = tracer() {
        tracer.central().end();
    }
}

extern "C" fn on_translation(_id: PluginId, block: *mut TranslationBlock) {
    let Some(tracer) = tracer() else { return };
    // SAFETY: the block is valid during this callback, as QEMU's interface says.
    let count = unsafe { abi::qemu_plugin_tb_n_insns(block) };
    let instruction = |index| {
        // SAFETY: the index is below the block's number of instructions; their bytes are valid during this callback.
        unsafe {
            let instruction = abi::qemu_plugin_tb_get_insn(block, index);
            (instruction, abi::with_instruction_bytes(instruction, classify))
        }
    };
    if tracer.mode == Mode::System {
        tracer.bind_to_thread();
    }
    let recording = tracer.translates_recording();
    for index in 0..count {
        let (instruction, kind) = instruction(index);
        instrument(tracer, instruction, kind, recording);
    }
}

/// Registers what one instruction needs, in a block whose accesses are recorded or not.
fn instrument(tracer: &Tracer, instruction: *mut Instruction, kind: Kind, recording: bool) {
    // SAFETY: the instruction is valid during the translation callback.
    let address = unsafe { abi::qemu_plugin_insn_vaddr(instruction) };
    let register = |callback: abi::ExecutionCallback, registers, data: u64| {
        // SAFETY: the instruction is valid during the translation callback; `data` is a number, not a pointer.
        unsafe {
            abi::qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, registers, data as *mut c_void);
        }
    };
    let on_execution = |callback, data| register(callback, abi::CALLBACK_NO_REGISTERS, data);
    if let Kind::Marker(marker) = kind {
        on_execution(on_marker, marker as u64);
        return;
    }
    if !tracer.record {
        return;
    }
    if let Kind::PrefetchForWrite(operand) = kind
        && recording
        && tracer.registers.is_some()
    {
        let prefetch = tracer.keep_prefetch(Prefetch { site: Site::new(address, 0), operand });
        let data = std::ptr::from_ref(prefetch).expose_provenance() as u64;
        register(on_prefetch, abi::CALLBACK_READS_REGISTERS, data);
    }
    let mut memory: Option<MemoryCallback> = match (tracer.mode, kind) {
        (Mode::User, Kind::Call) => Some(on_call_of_program),
        (Mode::User, Kind::Return) => Some(on_return_of_program),
        (Mode::User, Kind::BlockNote) => Some(on_block_note),
        // QEMU (7.2) tells the accesses of its own functions to the callbacks of the last instruction that had some: without
        // any of its own, an atomic instruction's would look like those of the last call.
        (Mode::User, Kind::Helped) => Some(on_access_of_program),
        _ if !recording => None,
        (Mode::User, _) => Some(on_access_of_program),
        (Mode::System, Kind::Call) => Some(on_call_of_machine),
        (Mode::System, Kind::Return) => Some(on_return_of_machine),
        (Mode::System, _) => Some(on_access_of_machine),
    };
    if tracer.mode == Mode::System {
        match kind {
            Kind::InterruptReturn | Kind::SystemCallReturn => on_execution(on_kernel_exit, 0),
            Kind::SaveStackPointer if tracer.layout.is_in(RangeKind::TaskSwitch, address) => {
                memory = Some(on_task_leaves);
            }
            Kind::LoadStackPointer if tracer.layout.is_in(RangeKind::TaskSwitch, address) => {
                memory = Some(on_task_enters);
            }
            _ => {}
        }
        if let Some(entry) = tracer.layout.entry_at(address) {
            match entry.point {
                EntryPoint::SystemCall => on_execution(on_system_call, address),
                EntryPoint::Exception => on_execution(on_exception, address),
                EntryPoint::Interrupt => on_execution(on_interrupt, address),
                EntryPoint::InterProcessorInterrupt => on_execution(on_inter_processor_interrupt, address),
                EntryPoint::Softirq => on_execution(on_softirq, address),
                EntryPoint::TaskStart => on_execution(on_task_start, address),
                EntryPoint::Schedule => on_execution(on_schedule, address),
            }
        }
    }
    let Some(memory) = memory else { return };
    let flag = |kind, flag| if tracer.layout.is_in(kind, address) { flag } else { 0 };
    let flags = flag(RangeKind::Clear, Site::CLEAR)
        | flag(RangeKind::Allocator, Site::ALLOCATOR)
        | flag(RangeKind::Preemption, Site::PREEMPTION);
    // SAFETY: as above; the site is a number that travels as a pointer.
    unsafe {
        let site = Site::new(address, flags).0 as *mut c_void;
        abi::qemu_plugin_register_vcpu_mem_cb(
            instruction,
            memory,
            abi::CALLBACK_NO_REGISTERS,
            abi::MEMORY_READ_WRITE,
            site,
        );
    }
}

extern "C" fn on_marker(vcpu: c_uint, code: *mut c_void) {
    if let (Some(tracer), Some(marker)) = (tracer(), Marker::from_code(code as u8)) {
        tracer.mark(current::index(vcpu), marker);
    }
}

fn begin(vcpu: c_uint, level: Level, entry: *mut c_void) {
    with_vcpu_of_machine(vcpu, |vcpu| {
        vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
        vcpu.begin(level, entry as u64, RECORDING.load(Ordering::Relaxed));
    });
}

extern "C" fn on_system_call(vcpu: c_uint, entry: *mut c_void) {
    begin(vcpu, Level::SystemCall, entry);
}

extern "C" fn on_exception(vcpu: c_uint, entry: *mut c_void) {
    begin(vcpu, Level::Exception, entry);
}

extern "C" fn on_interrupt(vcpu: c_uint, entry: *mut c_void) {
    begin(vcpu, Level::Interrupt, entry);
}

extern "C" fn on_inter_processor_interrupt(vcpu: c_uint, entry: *mut c_void) {
    begin(vcpu, Level::InterProcessorInterrupt, entry);
}

extern "C" fn on_softirq(vcpu: c_uint, entry: *mut c_void) {
    begin(vcpu, Level::Softirq, entry);
}

extern "C" fn on_schedule(vcpu: c_uint, entry: *mut c_void) {
    with_vcpu_of_machine(vcpu, |vcpu| {
        if RECORDING.load(Ordering::Relaxed) && vcpu.is_preempted() {
            vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
            vcpu.begin(Level::Preemption, entry as u64, true);
        }
    });
}

extern "C" fn on_kernel_exit(vcpu: c_uint, _data: *mut c_void) {
    with_vcpu_of_machine(vcpu, Vcpu::end);
}

extern "C" fn on_task_start(vcpu: c_uint, _data: *mut c_void) {
    let Some(tracer) = tracer() else { return };
    let mut central = tracer.central();
    with_vcpu_of_machine(vcpu, |vcpu| vcpu.begin_task(&mut central.tasks));
}

extern "C" fn on_task_leaves(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    on_access_of_machine(vcpu, info, address, site);
    with_vcpu_of_machine(vcpu, |vcpu| vcpu.leave_task(address));
}

extern "C" fn on_task_enters(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    on_access_of_machine(vcpu, info, address, site);
    let Some(tracer) = tracer() else { return };
    let mut central = tracer.central();
    with_vcpu_of_machine(vcpu, |vcpu| vcpu.enter_task(address, &mut central.tasks));
}

/// Size in bytes and direction of an access.
#[inline]
fn size_and_direction(info: MemoryInfo) -> (u8, bool) {
    // SAFETY: `info` is what QEMU handed to the running memory callback.
    unsafe { (1 << abi::qemu_plugin_mem_size_shift(info).min(6), abi::qemu_plugin_mem_is_store(info)) }
}

/// First address of the kernel's half of the address space.
const KERNEL_HALF: u64 = 1 << 63;
/// Lowest address of the kernel's fixed mappings, among them the registers of the interrupt controllers.
const FIXED_MAPPINGS: u64 = 0xffff_ffff_ff00_0000;

/// Bytes of the smallest page: what lies after an address is known up to the next border of such pages.
const PAGE_BYTES: u64 = 4096;

#[inline]
fn log_of_machine(vcpu: &mut Vcpu, info: MemoryInfo, address: u64, site: Site) {
    let (size_bytes, write) = size_and_direction(info);
    let before_border = PAGE_BYTES - address % PAGE_BYTES;
    if u64::from(size_bytes) <= before_border {
        return log_within_page(vcpu, info, address, site, size_bytes, write);
    }
    // Two pages of a program lie anywhere in memory.
    let first_bytes = before_border as u8;
    log_within_page(vcpu, info, address, site, first_bytes, write);
    log_within_page(vcpu, info, address.wrapping_add(before_border), site, size_bytes - first_bytes, write);
}

#[inline]
fn log_within_page(vcpu: &mut Vcpu, info: MemoryInfo, address: u64, site: Site, size_bytes: u8, write: bool) {
    let (mut key, mut rule) = (address, None);
    if !(KERNEL_HALF..FIXED_MAPPINGS).contains(&address) {
        // SAFETY: called within a memory callback, for its own access, of which each page has just been translated.
        unsafe {
            let hardware = abi::qemu_plugin_get_hwaddr(info, address);
            if !hardware.is_null() && abi::qemu_plugin_hwaddr_is_io(hardware) {
                rule = Some(Rule::DeviceMemory);
            } else if address < KERNEL_HALF {
                // Two processes have different memory at one address, or the same at two.
                if !hardware.is_null() {
                    key = abi::qemu_plugin_hwaddr_phys_addr(hardware);
                }
                if !tracer().is_some_and(|tracer| tracer.user_window.contains(&address)) {
                    rule = Some(Rule::Runner);
                }
            }
        }
    }
    vcpu.record(address, key, site, size_bytes, write.into(), rule);
}

extern "C" fn on_access_of_machine(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    if RECORDING.load(Ordering::Relaxed) {
        with_vcpu_of_machine(vcpu, |vcpu| {
            vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
            log_of_machine(vcpu, info, address, Site(site as u64));
        });
    }
}

extern "C" fn on_call_of_machine(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    if !RECORDING.load(Ordering::Relaxed) {
        return;
    }
    with_vcpu_of_machine(vcpu, |vcpu| {
        let site = Site(site as u64);
        vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
        log_of_machine(vcpu, info, address, site);
        match size_and_direction(info) {
            (_, true) => vcpu.call(address, site),
            // An indirect call loads its target, 8 bytes. Less is the interrupt table: see `Vcpu::interrupted`.
            (8, false) => {}
            (_, false) => vcpu.interrupted(),
        }
    });
}

extern "C" fn on_return_of_machine(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    if !RECORDING.load(Ordering::Relaxed) {
        return;
    }
    with_vcpu_of_machine(vcpu, |vcpu| {
        vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
        log_of_machine(vcpu, info, address, Site(site as u64));
        // A return address is 8 bytes, aligned; the interrupt table is read by fours, the stack for a more privileged
        // level lies unaligned in the task state segment.
        if size_and_direction(info) == (8, false) && address.is_multiple_of(8) {
            vcpu.ret(address);
        }
    });
}

/// Why an access of a program's thread is ignored, if it is.
fn rule_of_program(index: c_uint, address: u64) -> Option<Rule> {
    let is_runners = tracer().is_some_and(|tracer| tracer.layout.is_in(RangeKind::RunnerData, address));
    if is_runners { Some(Rule::Runner) } else { (CALLER.load(Ordering::Relaxed) != index).then_some(Rule::OtherTask) }
}

/// Logs an access of a program's thread. A thread that makes no call under test is one of the library's own.
#[inline]
fn log_of_program(index: c_uint, vcpu: &mut Vcpu, info: MemoryInfo, address: u64, site: Site) {
    let (size_bytes, write) = size_and_direction(info);
    vcpu.record(address, address, site, size_bytes, write.into(), rule_of_program(index, address));
}

extern "C" fn on_access_of_program(index: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    if !RECORDING.load(Ordering::Relaxed) {
        return;
    }
    with_vcpu_of_program(index, &RECORDING, |vcpu| {
        vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
        log_of_program(index, vcpu, info, address, Site(site as u64));
    });
}

/// Follows a call or a return of a program, and logs its access if a traced call runs.
#[inline]
fn follow_program(index: c_uint, info: MemoryInfo, address: u64, site: Site, then: impl FnOnce(&mut Vcpu)) {
    if !FOLLOWING.load(Ordering::Relaxed) {
        return;
    }
    with_vcpu_of_program(index, &FOLLOWING, |vcpu| {
        vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
        if RECORDING.load(Ordering::Relaxed) {
            log_of_program(index, vcpu, info, address, site);
        }
        then(vcpu);
    });
}

extern "C" fn on_call_of_program(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    let site = Site(site as u64);
    follow_program(vcpu, info, address, site, |vcpu| {
        if size_and_direction(info).1 {
            vcpu.call(address, site);
        }
    });
}

extern "C" fn on_return_of_program(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    follow_program(vcpu, info, address, Site(site as u64), |vcpu| vcpu.ret(address));
}

/// Linux maps nothing of a program below this (`vm.mmap_min_addr` as it ships): a list's null end that is asked for is none.
const LOWEST_OF_PROGRAMS: u64 = 1 << 16;

/// A `prefetchw`. As on a processor, it does nothing where no memory is mapped.
extern "C" fn on_prefetch(index: c_uint, prefetch: *mut c_void) {
    let Some(tracer) = tracer().filter(|_| RECORDING.load(Ordering::Relaxed)) else { return };
    let Some(registers) = &tracer.registers else { return };
    let index = current::index(index);
    // SAFETY: what `Tracer::keep_prefetch` gave, which is never freed.
    let Prefetch { site, operand } = unsafe { &*prefetch.cast::<Prefetch>() };
    let Some(address) = operand.address(site.address(), |register| registers.read(index, register)) else { return };
    let log = |vcpu: &mut Vcpu, key, rule| {
        vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
        vcpu.record(address, key, *site, 1, AccessKind::PrefetchForWrite, rule);
    };
    if tracer.mode == Mode::User {
        if address < LOWEST_OF_PROGRAMS {
            return;
        }
        return with_vcpu_of_program(index, &RECORDING, |vcpu| log(vcpu, address, rule_of_program(index, address)));
    }
    let Some(physical) = registers.physical_address(index, address) else { return };
    if address < KERNEL_HALF {
        let rule = (!tracer.user_window.contains(&address)).then_some(Rule::Runner);
        with_vcpu_of_machine(index, |vcpu| log(vcpu, physical, rule));
    } else if address < FIXED_MAPPINGS {
        with_vcpu_of_machine(index, |vcpu| log(vcpu, address, None));
    }
}

/// The words that the store goes to: a block's size, which it stores, and after it the block's address.
extern "C" fn on_block_note(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    on_access_of_program(vcpu, info, address, site);
    if let Some(tracer) = tracer() {
        // SAFETY: the program has just stored to the first word, and its own convention (crate `library-runner`, memory.rs)
        // says that the second is its, too, and both are aligned. QEMU gives a program of its own architecture the
        // addresses that it has itself (guest base 0), so that the program's memory is at `address` here.
        let [size_bytes, block] = unsafe { (address as *const [u64; 2]).read() };
        tracer.note_block(vcpu, block, size_bytes);
    }
}
