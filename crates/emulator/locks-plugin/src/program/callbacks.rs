//! What QEMU calls: at each translated block once, then at each block, memory access and lock event.
//!
//! A thread's state is touched by that thread alone, in callbacks, which do not nest; so it needs no lock.

use std::cell::UnsafeCell;
use std::ffi::{c_uint, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use lock_annotation::Event;
use qemu_plugin::abi::{self, Instruction, MemoryCallback, MemoryInfo, PluginId, TranslationBlock};

use super::instruction::{Kind, classify, exchange_at_end, reads_what_it_found};
use super::recorder::{Lock, Recorder, Teller};
use super::span::Switch;
use super::thread::Thread;
use super::thread_stacks::ThreadStacks;
use super::words::{Change, Place};
use super::{addresses, signals};
use crate::arguments::Arguments;

/// Virtual CPUs that are followed: threads at a time.
const VCPU_LIMIT: usize = 4096;
/// Bits of the filter that most plain stores fail.
const WATCHED_BITS: usize = 1 << 18;

/// A virtual CPU: a thread at a time.
struct Cell {
    thread: UnsafeCell<Thread>,
    /// Instructions of all threads that it ran. Written by its own thread only.
    instructions: AtomicU64,
    /// Somebody has the state. Looked at in debug builds alone: it would be a store for each access.
    #[cfg(debug_assertions)]
    lent: std::sync::atomic::AtomicBool,
}

// SAFETY: the thread's state is touched by the thread that runs the virtual CPU alone; it is replaced, when the number is
// used again, before the new thread runs.
unsafe impl Sync for Cell {}

static CELLS: [AtomicPtr<Cell>; VCPU_LIMIT] = [const { AtomicPtr::new(std::ptr::null_mut()) }; VCPU_LIMIT];
/// Words of locks, by hash. A plain store to one that was found by its instructions releases it or makes it new; one that the
/// program itself makes to a lock of pthread's makes it new.
static WATCHED: [AtomicU64; WATCHED_BITS / 64] = [const { AtomicU64::new(0) }; WATCHED_BITS / 64];
static THREAD_COUNT: AtomicU32 = AtomicU32::new(0);
static STACKS: Mutex<ThreadStacks> = Mutex::new(ThreadStacks::new());
static RECORDER: OnceLock<(Mutex<Recorder>, Settings)> = OnceLock::new();

#[derive(Clone, Copy)]
struct Settings {
    filters_stack: bool,
    inlined: bool,
    switch: Option<&'static Switch>,
}

/// Registers the callbacks; only the first call has an effect.
///
/// # Errors
/// One line if the switch of spans cannot be had.
pub fn install(id: PluginId, arguments: Arguments) -> Result<(), String> {
    let switch = match &arguments.span {
        Some(path) => Some(&*Box::leak(Box::new(Switch::open(path, arguments.heeds_annotations)?))),
        None => None,
    };
    let settings = Settings { filters_stack: arguments.filters_stack, inlined: arguments.inlined, switch };
    RECORDER.get_or_init(|| (Mutex::new(Recorder::new(&arguments)), settings));
    // SAFETY: QEMU's functions, called during installation as its interface demands.
    unsafe {
        abi::qemu_plugin_register_vcpu_init_cb(id, on_thread_start);
        abi::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        abi::qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
        abi::qemu_plugin_register_atexit_cb(id, on_exit, std::ptr::null_mut());
    }
    Ok(())
}

fn recorder() -> Option<MutexGuard<'static, Recorder>> {
    RECORDER.get().map(|(recorder, _)| recorder.lock().unwrap_or_else(PoisonError::into_inner))
}

#[inline]
fn cell(vcpu: c_uint) -> Option<&'static Cell> {
    // SAFETY: a pointer in `CELLS` was leaked by `on_thread_start` and is valid forever.
    unsafe { CELLS.get(vcpu as usize)?.load(Ordering::Acquire).as_ref() }
}

/// Runs `action` on the state of the calling thread; `action` does not reach this function again.
#[inline]
fn with_thread<R>(cell: &Cell, action: impl FnOnce(&mut Thread) -> R) -> R {
    #[cfg(debug_assertions)]
    assert!(!cell.lent.swap(true, Ordering::Relaxed), "the state of a virtual CPU is lent once at a time");
    // SAFETY: called by the thread that runs the virtual CPU; callbacks do not nest.
    let result = action(unsafe { &mut *cell.thread.get() });
    #[cfg(debug_assertions)]
    cell.lent.store(false, Ordering::Relaxed);
    result
}

extern "C" fn on_thread_start(_id: PluginId, vcpu: c_uint) {
    let (Some(slot), Some((_, settings))) = (CELLS.get(vcpu as usize), RECORDER.get()) else { return };
    let number = THREAD_COUNT.fetch_add(1, Ordering::Relaxed);
    if number > 0
        && let Some(mut recorder) = recorder()
    {
        recorder.has_company(instructions_of_all());
    }
    let state = Thread::new(number, settings.filters_stack);
    match cell(vcpu) {
        Some(known) => with_thread(known, |thread| *thread = state),
        None => {
            let new = Cell {
                thread: UnsafeCell::new(state),
                instructions: AtomicU64::new(0),
                #[cfg(debug_assertions)]
                lent: std::sync::atomic::AtomicBool::new(false),
            };
            slot.store(Box::into_raw(Box::new(new)), Ordering::Release);
        }
    }
}

extern "C" fn on_exit(_id: PluginId, _data: *mut c_void) {
    report_now();
}

/// `SYS_execve` and `SYS_execveat`.
const REPLACES_PROGRAM: [i64; 2] = [59, 322];

/// Calls that reach a device, a file or another process (`arch/x86/entry/syscalls/syscall_64.tbl`, Linux 6.1): reading and
/// writing, sockets, synchronising. What they do cannot be seen in the program's memory.
const COMMUNICATES: [std::ops::RangeInclusive<i64>; 12] = [
    0..=1,     // read, write
    16..=20,   // ioctl, pread64, pwrite64, readv, writev
    40..=40,   // sendfile
    42..=47,   // connect to recvmsg
    74..=77,   // fsync, fdatasync, truncate, ftruncate
    82..=88,   // rename to symlink
    257..=259, // openat, mkdirat, mknodat
    263..=266, // unlinkat to symlinkat
    275..=278, // splice, tee, sync_file_range, vmsplice
    288..=288, // accept4
    295..=299, // preadv, pwritev, ..., recvmmsg
    307..=307, // sendmmsg
];

/// `SYS_clone` and `SYS_clone3`.
const MAKES_THREAD: [i64; 2] = [56, 435];

/// A program that replaces itself, or kills itself, leaves the emulator, and with it this recorder: the report is written
/// before.
#[allow(clippy::too_many_arguments)] // QEMU's
extern "C" fn on_system_call(
    _id: PluginId,
    vcpu: c_uint,
    number: i64,
    first: u64,
    second: u64,
    third: u64,
    _: u64,
    fifth: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    if COMMUNICATES.iter().any(|numbers| numbers.contains(&number))
        && let (Some(cell), Some(mut recorder)) = (cell(vcpu), recorder())
    {
        with_thread(cell, |thread| recorder.touch_device(thread));
    }
    if MAKES_THREAD.contains(&number) {
        learn_stack(number, first, second, fifth);
    }
    if REPLACES_PROGRAM.contains(&number) || signals::is_by_own_hand(number, [first, second, third]) {
        report_now();
    }
}

/// `fifth` is what the processor's own `clone` calls the thread pointer.
fn learn_stack(number: i64, first: u64, second: u64, fifth: u64) {
    let mut stacks = STACKS.lock().unwrap_or_else(PoisonError::into_inner);
    if number == MAKES_THREAD[0] {
        stacks.clone(first, second, fifth, addresses::words_at(fifth).as_ref());
    } else if let Some(arguments) = addresses::words_at(first) {
        stacks.clone3(arguments);
    }
}

/// The stack of a thread whose first stack pointer this is.
fn stack_around(stack_pointer: u64) -> std::ops::Range<u64> {
    let known = STACKS.lock().unwrap_or_else(PoisonError::into_inner).around(stack_pointer);
    known.unwrap_or_else(|| addresses::stack_around(&addresses::read(), stack_pointer))
}

/// Writes the report of all that happened until now.
pub fn report_now() {
    if let Some(mut recorder) = recorder() {
        write_report(&mut recorder);
    }
}

fn write_report(recorder: &mut Recorder) {
    recorder.write_report(instructions_of_all(), THREAD_COUNT.load(Ordering::Relaxed));
}

/// Acts on a switch that was thrown: what was recorded in a span is written at its end.
#[cold]
fn switch_to(on: bool) {
    let Some(mut recorder) = recorder() else { return };
    recorder.switch(on, instructions_of_all());
    if !on {
        write_report(&mut recorder);
    }
}

/// What all threads executed so far.
fn instructions_of_all() -> u64 {
    let count = |slot: &AtomicPtr<Cell>| {
        // SAFETY: as in `cell`.
        unsafe { slot.load(Ordering::Acquire).as_ref() }.map_or(0, |cell| cell.instructions.load(Ordering::Relaxed))
    };
    CELLS.iter().map(count).sum()
}

extern "C" fn on_translation(_id: PluginId, block: *mut TranslationBlock) {
    let Some((_, settings)) = RECORDER.get() else { return };
    // SAFETY: the block is valid during this callback, as are its instructions and their bytes; the data of callbacks are
    // numbers that travel as pointers.
    unsafe {
        let count = abi::qemu_plugin_tb_n_insns(block);
        let data = count as *mut c_void;
        abi::qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, abi::CALLBACK_NO_REGISTERS, data);
        for index in 0..count {
            let instruction = abi::qemu_plugin_tb_get_insn(block, index);
            let kind = match abi::with_instruction_bytes(instruction, classify) {
                Kind::Swap if !reads_what_it_found(&code_of(block, index..count)) => Kind::Plain,
                Kind::Swap | Kind::Exchange => exchange_at_end(&code_of(block, 0..index + 1)),
                kind => kind,
            };
            instrument(instruction, kind, *settings);
        }
    }
}

/// The bytes of some of a block's instructions.
///
/// # Safety
/// The block is being translated, and has these instructions.
unsafe fn code_of(block: *mut TranslationBlock, instructions: Range<usize>) -> Vec<u8> {
    let mut code = Vec::new();
    // SAFETY: as this function demands; the bytes are copied while the block is valid.
    unsafe {
        for index in instructions {
            let instruction = abi::qemu_plugin_tb_get_insn(block, index);
            abi::with_instruction_bytes(instruction, |bytes| code.extend_from_slice(bytes));
        }
    }
    code
}

/// Registers what one instruction needs.
///
/// # Safety
/// The instruction belongs to the block that is being translated.
unsafe fn instrument(instruction: *mut Instruction, kind: Kind, settings: Settings) {
    // SAFETY: as this function demands.
    let address = unsafe { abi::qemu_plugin_insn_vaddr(instruction) };
    let (callback, data): (MemoryCallback, u64) = match kind {
        Kind::Tell(event, size_bytes) => {
            let teller = recorder().map_or(Teller::Annotation, |mut recorder| recorder.teller_at(address));
            (on_event, (teller as u64) << 24 | u64::from(event as u8) << 16 | u64::from(size_bytes))
        }
        Kind::Call => (on_call, address),
        Kind::Return => (on_return, address),
        Kind::Exchange if settings.inlined => (on_exchange, address),
        Kind::Clear if settings.inlined => (on_clear, address),
        Kind::Take if settings.inlined => (on_take, address),
        Kind::TryClear if settings.inlined => (on_try_clear, address),
        Kind::Modify if settings.inlined => (on_modify, address),
        Kind::Plain | Kind::Exchange | Kind::Swap | Kind::Clear | Kind::Take | Kind::TryClear | Kind::Modify => {
            (on_access, address)
        }
    };
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

extern "C" fn on_block(vcpu: c_uint, instruction_count: *mut c_void) {
    if let Some(cell) = cell(vcpu) {
        let before = cell.instructions.load(Ordering::Relaxed);
        cell.instructions.store(before + instruction_count as u64, Ordering::Relaxed);
    }
    let switch = RECORDER.get().and_then(|(_, settings)| settings.switch);
    if let Some(on) = switch.and_then(Switch::news) {
        switch_to(on);
    }
}

/// Size in bytes and direction of an access.
#[inline]
fn size_and_direction(info: MemoryInfo) -> (u8, bool) {
    // SAFETY: `info` is what QEMU handed to the running memory callback.
    unsafe { (1 << abi::qemu_plugin_mem_size_shift(info).min(6), abi::qemu_plugin_mem_is_store(info)) }
}

extern "C" fn on_access(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    let Some(cell) = cell(vcpu) else { return };
    let (size_bytes, write) = size_and_direction(info);
    with_thread(cell, |thread| {
        thread.access(address, size_bytes, write, site as u64);
        if write && is_watched(address) {
            change(cell, thread, Change::Store, address, size_bytes, site as u64);
        }
    });
}

extern "C" fn on_call(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    let Some(cell) = cell(vcpu) else { return };
    // An indirect call also loads its target.
    if size_and_direction(info).1 {
        with_thread(cell, |thread| thread.call(address, site as u64, stack_around));
    } else {
        on_access(vcpu, info, address, site);
    }
}

extern "C" fn on_return(vcpu: c_uint, _info: MemoryInfo, address: u64, _site: *mut c_void) {
    let Some(cell) = cell(vcpu) else { return };
    with_thread(cell, |thread| {
        if thread.ret(address) {
            tell_returned(cell, thread);
        }
    });
}

#[cold]
fn tell_returned(cell: &Cell, thread: &mut Thread) {
    let Some(mut recorder) = recorder() else { return };
    while let Some(word) = thread.next_returned() {
        recorder.returned(thread, word, cell.instructions.load(Ordering::Relaxed));
    }
}

extern "C" fn on_exchange(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    on_atomic(vcpu, info, address, site, Change::Exchange);
}

extern "C" fn on_clear(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    on_atomic(vcpu, info, address, site, Change::Clear);
}

extern "C" fn on_take(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    on_atomic(vcpu, info, address, site, Change::Take);
}

extern "C" fn on_try_clear(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    on_atomic(vcpu, info, address, site, Change::TryClear);
}

extern "C" fn on_modify(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void) {
    on_atomic(vcpu, info, address, site, Change::Modify);
}

#[inline]
fn on_atomic(vcpu: c_uint, info: MemoryInfo, address: u64, site: *mut c_void, kind: Change) {
    let Some(cell) = cell(vcpu) else { return };
    let (size_bytes, write) = size_and_direction(info);
    with_thread(cell, |thread| {
        thread.access(address, size_bytes, write, site as u64);
        if write {
            change(cell, thread, kind, address, size_bytes, site as u64);
        }
    });
}

extern "C" fn on_event(vcpu: c_uint, _info: MemoryInfo, address: u64, data: *mut c_void) {
    let data = data as u64;
    let Some(event) = Event::from_number((data >> 16) as u8) else { return };
    if matches!(event, Event::SpanBegin | Event::SpanEnd) {
        let switch = RECORDER.get().and_then(|(_, settings)| settings.switch);
        if let Some(switch) = switch.filter(|switch| switch.heeds_annotations) {
            switch.set(event == Event::SpanBegin);
            switch.news().into_iter().for_each(switch_to);
        }
        return;
    }
    let (Some(cell), Some(mut recorder)) = (cell(vcpu), recorder()) else { return };
    let teller = if data >> 24 == Teller::Preloaded as u64 { Teller::Preloaded } else { Teller::Annotation };
    let (size_bytes, instructions) = (data as u16, cell.instructions.load(Ordering::Relaxed));
    let lock = Lock { address, size_bytes, teller };
    if with_thread(cell, |thread| recorder.tell(thread, event, lock, instructions)) {
        (address..address + u64::from(size_bytes)).step_by(8).for_each(watch);
    }
    if recorder.is_due() {
        write_report(&mut recorder);
    }
}

fn change(cell: &Cell, thread: &mut Thread, kind: Change, address: u64, size_bytes: u8, site: u64) {
    let Some(mut recorder) = recorder() else { return };
    let value = value_at(address, size_bytes); // looked at now, so that looks are reported in their order
    let instructions = cell.instructions.load(Ordering::Relaxed);
    if recorder.change(thread, kind, Place { address, site, size_bytes }, value, instructions) {
        watch(address);
        if recorder.is_due() {
            write_report(&mut recorder);
        }
    }
}

fn watch(address: u64) {
    let bit = watched_bit(address);
    WATCHED[bit / 64].fetch_or(1 << (bit % 64), Ordering::Relaxed);
}

fn watched_bit(address: u64) -> usize {
    ((address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - WATCHED_BITS.ilog2())) as usize
}

#[inline]
fn is_watched(address: u64) -> bool {
    let bit = watched_bit(address);
    WATCHED[bit / 64].load(Ordering::Relaxed) >> (bit % 64) & 1 != 0
}

/// What the program has at an address now. The emulator maps a program's memory at the program's own addresses.
fn value_at(address: u64, size_bytes: u8) -> Option<u64> {
    if !address.is_multiple_of(u64::from(size_bytes.max(1))) {
        return None;
    }
    // SAFETY: the program has just accessed these bytes, aligned, in this process; another of its threads may write them
    // at the same time, hence the atomic loads.
    unsafe {
        match size_bytes {
            1 => Some(u64::from((*(address as *const std::sync::atomic::AtomicU8)).load(Ordering::Relaxed))),
            4 => Some(u64::from((*(address as *const AtomicU32)).load(Ordering::Relaxed))),
            8 => Some((*(address as *const AtomicU64)).load(Ordering::Relaxed)),
            _ => None,
        }
    }
}
