//! What QEMU calls: at each translated block once, then at each block and each access to memory.
//!
//! The program plays all cores in its one thread, whose callbacks do not nest: what is counted needs no lock. Other threads are
//! not followed.

use std::cell::UnsafeCell;
use std::ffi::{c_uint, c_void};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use qemu_plugin::abi::{self, MemoryCallback, MemoryInfo, PluginId, TranslationBlock};
use transfers::coherence::Access;

use crate::counter::Counter;
use crate::instruction::{Kind, classify};
use crate::mark::Mark;
use crate::report::Report;

/// The virtual CPU of a program's first thread.
const FIRST: c_uint = 0;

struct State(UnsafeCell<Counter>);

// SAFETY: only callbacks of the first virtual CPU reach what is inside, which one thread runs, and the last one, when no
// thread runs any more.
unsafe impl Sync for State {}

static STATE: OnceLock<(State, PathBuf)> = OnceLock::new();
/// It is some core's turn.
static FOLLOWS: AtomicBool = AtomicBool::new(false);
/// Code that is not measured.
static OWN_CODE: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());

/// Registers the callbacks; only the first call has an effect.
pub fn install(id: PluginId, out: PathBuf) {
    STATE.get_or_init(|| (State(UnsafeCell::new(Counter::new())), out));
    // SAFETY: QEMU's functions, called during installation as its interface demands.
    unsafe {
        abi::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        abi::qemu_plugin_register_atexit_cb(id, on_exit, std::ptr::null_mut());
    }
}

/// Runs `action` on what is counted, for the first virtual CPU; `action` does not reach this function again.
#[inline]
fn with_counter(vcpu: c_uint, action: impl FnOnce(&mut Counter)) {
    if let (FIRST, Some((State(counter), _))) = (vcpu, STATE.get()) {
        // SAFETY: see `State`.
        action(unsafe { &mut *counter.get() });
    }
}

extern "C" fn on_exit(_id: PluginId, _data: *mut c_void) {
    let Some((_, path)) = STATE.get() else { return };
    let mut report = Vec::new();
    with_counter(FIRST, |counter| report = serde_json::to_vec(&Report::of(counter)).unwrap_or_default());
    if let Err(error) = std::fs::write(path, report) {
        eprintln!("commutant transfer counter: cannot write '{}': {error}", path.display());
    }
}

fn is_own(code: u64) -> bool {
    OWN_CODE.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|range| range.contains(&code))
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
        let is_own = is_own(address);
        measured += u64::from(!is_own);
        let callback: MemoryCallback = match (kind, is_own) {
            (Kind::Mark, _) => on_mark,
            (Kind::Call, false) => on_call,
            (Kind::Return, false) => on_return,
            (Kind::Call, true) => on_own_call,
            (Kind::Return, true) => on_own_return,
            (Kind::Plain | Kind::Atomic, true) => continue,
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
    if FOLLOWS.load(Ordering::Relaxed) {
        with_counter(vcpu, |counter| counter.instructions(count as u64));
    }
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
    if FOLLOWS.load(Ordering::Relaxed) {
        let (size_bytes, is_store) = size_and_direction(info);
        let kind = if is_store || is_atomic { Access::Write } else { Access::Read };
        with_counter(vcpu, |counter| counter.access(code as u64, address, size_bytes, kind));
    }
}

extern "C" fn on_access(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, false);
}

extern "C" fn on_atomic(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, true);
}

extern "C" fn on_call(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, false);
    on_own_call(vcpu, info, address, code);
}

extern "C" fn on_own_call(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    // An indirect call loads its target first.
    if FOLLOWS.load(Ordering::Relaxed) && size_and_direction(info).1 {
        with_counter(vcpu, |counter| counter.call(code as u64, address));
    }
}

extern "C" fn on_return(vcpu: c_uint, info: MemoryInfo, address: u64, code: *mut c_void) {
    access(vcpu, info, address, code, false);
    on_own_return(vcpu, info, address, code);
}

extern "C" fn on_own_return(vcpu: c_uint, _info: MemoryInfo, address: u64, _code: *mut c_void) {
    if FOLLOWS.load(Ordering::Relaxed) {
        with_counter(vcpu, |counter| counter.ret(address));
    }
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
    if let Mark::OwnCode(range) = &mark {
        OWN_CODE.lock().unwrap_or_else(PoisonError::into_inner).push(range.clone());
    }
    with_counter(vcpu, |counter| FOLLOWS.store(counter.mark(mark), Ordering::Relaxed));
}
