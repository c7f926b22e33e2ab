//! What QEMU calls: at each translated block once, then at each block and each access to memory.
//!
//! Either one thread of the program plays all cores, or its threads take turns. So what is counted belongs to one virtual CPU at a
//! time, that of whose turn it is ([`OWNER`]), and needs no other lock; what other threads do in between is not followed.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use qemu_plugin::abi::{self, MemoryCallback, MemoryInfo, PluginId, TranslationBlock};
use transfers::coherence::Access;

use crate::counter::Counter;
use crate::instruction::{Kind, classify};
use crate::mark::Mark;
use crate::report::Report;

/// The signal that interrupts a thread of the program: SIGSTKFLT, which Linux itself never sends.
const INTERRUPTION: c_int = 16;

/// It is no core's turn, and no one changes what is counted.
const NOBODY: u64 = u64::MAX;
/// It is no core's turn, and somebody changes what is counted.
const CHANGING: u64 = u64::MAX - 1;

/// The virtual CPU whose turn it is: what is counted belongs to it.
static OWNER: AtomicU64 = AtomicU64::new(NOBODY);

struct State {
    counter: UnsafeCell<Counter>,
    path: PathBuf,
    /// A process that the program forks has a copy of all this, and writes no report.
    process: u32,
}

// SAFETY: what is inside the cell belongs to the one that `OWNER` names.
unsafe impl Sync for State {}

static STATE: OnceLock<State> = OnceLock::new();
/// Code that is not measured.
static OWN_CODE: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());
/// Code of which no access is followed by a signal.
static NEVER_INTERRUPTED: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());

/// Registers the callbacks; only the first call has an effect.
pub fn install(id: PluginId, path: PathBuf) {
    STATE.get_or_init(|| State { counter: UnsafeCell::new(Counter::new()), path, process: std::process::id() });
    // SAFETY: QEMU's functions, called during installation as its interface demands.
    unsafe {
        abi::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        abi::qemu_plugin_register_atexit_cb(id, on_exit, std::ptr::null_mut());
    }
}

/// Runs `action` on what is counted if it is this virtual CPU's turn; `action` does not reach this function again.
#[inline]
fn with_counter<T>(vcpu: c_uint, action: impl FnOnce(&mut Counter) -> T) -> Option<T> {
    // Acquire pairs with the release in `mark`: of the turn before. Only this thread gives up its turn.
    if OWNER.load(Ordering::Acquire) != u64::from(vcpu) {
        return None;
    }
    // SAFETY: it is this virtual CPU's turn, which one thread runs, and whose callbacks do not nest.
    STATE.get().map(|state| action(unsafe { &mut *state.counter.get() }))
}

/// Runs `action` on what is counted if it is no one's turn, or this virtual CPU's: what it says is whether it is its
/// turn from now on. Says whether it ran.
fn change(vcpu: c_uint, action: impl FnOnce(&mut Counter) -> bool) -> bool {
    let is_ours = OWNER.load(Ordering::Acquire) == u64::from(vcpu);
    // Acquire and release pass on what is counted from turn to turn.
    let is_free = || OWNER.compare_exchange(NOBODY, CHANGING, Ordering::Acquire, Ordering::Relaxed).is_ok();
    let Some(state) = STATE.get().filter(|_| is_ours || is_free()) else { return false };
    // SAFETY: as in `with_counter`, or no one else has `CHANGING`.
    let has_turn = action(unsafe { &mut *state.counter.get() });
    OWNER.store(if has_turn { u64::from(vcpu) } else { NOBODY }, Ordering::Release);
    true
}

extern "C" fn on_exit(_id: PluginId, _data: *mut c_void) {
    let Some(state) = STATE.get().filter(|state| state.process == std::process::id()) else { return };
    let mut report = Vec::new();
    // A program that ends in the middle of a turn has not come to its end; it leaves no report.
    change(0, |counter| {
        report = serde_json::to_vec(&Report::of(counter)).unwrap_or_default();
        false
    });
    if let Err(error) = std::fs::write(&state.path, report) {
        eprintln!("commutant transfer counter: cannot write '{}': {error}", state.path.display());
    }
}

fn is_in(ranges: &Mutex<Vec<Range<u64>>>, code: u64) -> bool {
    ranges.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|range| range.contains(&code))
}

extern "C" fn on_translation(_id: PluginId, block: *mut TranslationBlock) {
    // SAFETY: the block is valid during this callback, as QEMU's interface says.
    let count = unsafe { abi::qemu_plugin_tb_n_insns(block) };
    let mut measured = 0;
    for index in 0..count {
        // SAFETY: the index is below the block's number of instructions; their bytes are valid during this callback.
        let (instruction, kind, address) = unsafe {
            let instruction = abi::qemu_plugin_tb_get_insn(block, index);
            let kind = abi::with_instruction_bytes(instruction, classify);
            (instruction, kind, abi::qemu_plugin_insn_vaddr(instruction))
        };
        let is_own = is_in(&OWN_CODE, address);
        let is_interrupted = !is_own && !is_in(&NEVER_INTERRUPTED, address);
        measured += u64::from(!is_own);
        let callback: MemoryCallback = match (kind, is_own) {
            (Kind::Mark, _) => on_mark,
            (Kind::Call, false) => on_call,
            (Kind::Return, false) => on_return,
            (Kind::Call, true) => on_own_call,
            (Kind::Return, true) => on_own_return,
            (Kind::Plain | Kind::Atomic, true) => continue,
            (Kind::Atomic, false) if is_interrupted => on_interrupted_atomic,
            (Kind::Plain, false) if is_interrupted => on_interrupted_access,
            (Kind::Atomic, false) => on_atomic,
            (Kind::Plain, false) => on_access,
        };
        // SAFETY: the instruction is valid during this callback; the data is a number, not a pointer.
        unsafe {
            abi::qemu_plugin_register_vcpu_mem_cb(
                instruction,
                callback,
                abi::CALLBACK_NO_REGISTERS,
                abi::MEMORY_READ_WRITE,
                address as *mut c_void,
            );
        }
    }
    if measured > 0 {
        // SAFETY: as above.
        unsafe {
            abi::qemu_plugin_register_vcpu_tb_exec_cb(
                block,
                on_block,
                abi::CALLBACK_NO_REGISTERS,
                measured as *mut c_void,
            );
        }
    }
}

extern "C" fn on_block(vcpu: c_uint, count: *mut c_void) {
    with_counter(vcpu, |counter| counter.instructions(count as u64));
}

/// Size in bytes and direction of an access.
#[inline]
fn size_and_direction(info: MemoryInfo) -> (u64, bool) {
    // SAFETY: `info` is what QEMU handed to the running memory callback.
    unsafe { (1 << abi::qemu_plugin_mem_size_shift(info).min(6), abi::qemu_plugin_mem_is_store(info)) }
}

/// Counts an access of the instruction at `code`.
#[inline]
fn access(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void, is_atomic: bool) {
    with_counter(vcpu, |counter| {
        let (size_bytes, is_store) = size_and_direction(info);
        let kind = if is_store || is_atomic { Access::Write } else { Access::Read };
        counter.access(code as u64, address, size_bytes, kind);
    });
}

extern "C" fn on_access(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, false);
}

extern "C" fn on_atomic(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, true);
}

extern "C" fn on_interrupted_access(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, false);
    interrupt(vcpu);
}

extern "C" fn on_interrupted_atomic(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, true);
    interrupt(vcpu);
}

/// Sends the thread a signal if one is drawn. QEMU hands it to the program before its next block of instructions: there the
/// program can wait, and QEMU goes on, as it could not if this callback waited.
#[inline]
fn interrupt(vcpu: c_uint) {
    if with_counter(vcpu, Counter::is_interrupted) == Some(true) {
        raise(INTERRUPTION);
    }
}

// SAFETY: as the C library declares it.
unsafe extern "C" {
    /// Sends the calling thread a signal.
    safe fn raise(signal: c_int) -> c_int;
}

extern "C" fn on_call(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, false);
    on_own_call(vcpu, info, address, code);
}

extern "C" fn on_own_call(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    with_counter(vcpu, |counter| {
        // An indirect call loads its target first.
        if size_and_direction(info).1 {
            counter.call(code as u64, address);
        }
    });
}

extern "C" fn on_return(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, false);
    on_own_return(vcpu, info, address, code);
}

extern "C" fn on_own_return(vcpu: c_uint, _info: MemoryInfo, address: u64, _code: *mut c_void) {
    with_counter(vcpu, |counter| counter.ret(address));
}

/// The words that the store goes to.
extern "C" fn on_mark(vcpu: c_uint, _info: MemoryInfo, address: u64, _code: *mut c_void) {
    // SAFETY: the program has just stored to the first word, and its own convention says that two more follow, aligned. QEMU
    // gives a program of its own architecture the addresses that it has itself (guest base 0).
    let words = unsafe { (address as *const [u64; 3]).read() };
    let Some(mark) = Mark::from_words(words) else {
        eprintln!("commutant transfer counter: expected a mark, got {words:?}");
        return;
    };
    let known = match &mark {
        Mark::OwnCode(range) => Some((&OWN_CODE, range)),
        Mark::NeverInterrupted(range) => Some((&NEVER_INTERRUPTED, range)),
        _ => None,
    };
    if let Some((ranges, range)) = known {
        ranges.lock().unwrap_or_else(PoisonError::into_inner).push(range.clone());
    }
    if !change(vcpu, |counter| counter.mark(mark)) {
        eprintln!("commutant transfer counter: a mark in the turn of another thread");
    }
}
