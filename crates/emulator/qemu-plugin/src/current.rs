//! Which virtual CPU of a machine runs.
//!
//! QEMU tells each callback, but from 9.2 or 10.0 on it tells the wrong one: it writes the index into translated code as a
//! constant, unless virtual CPUs run in threads of their own. With one thread for all they share that code, and each
//! callback is given the one that had it translated. QEMU's own variable `current_cpu`, one per thread, is right in
//! every version. It is compared with what `qemu_get_cpu` gives for each index.
//!
//! A program's threads each have their own virtual CPU, and code with the constant is thrown away when the second one
//! starts: there the index that is given is right, and nothing is bound.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::symbols;

/// `qemu_get_cpu`: a virtual CPU's structure by its index, or null.
pub type GetCpu = unsafe extern "C" fn(c_int) -> *mut c_void;

/// Virtual CPUs that are looked through.
const LIMIT: c_int = 64;

static GET_CPU: OnceLock<GetCpu> = OnceLock::new();
/// The thread that runs the machine, by the place of a variable of its own; 0 before [`bind`].
static THREAD: AtomicUsize = AtomicUsize::new(0);
/// `current_cpu` of the thread that runs the machine, once [`bind`] was called there.
static PLACE: AtomicPtr<AtomicPtr<c_void>> = AtomicPtr::new(std::ptr::null_mut());
/// The virtual CPU that was found last, and its index. Only the machine's one thread reads and writes them.
static LAST_CPU: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static LAST_INDEX: AtomicU32 = AtomicU32::new(0);

/// Makes sure that [`bind`] and [`index`] will work. To be called when a plugin is installed in a machine.
///
/// # Errors
/// One line if this QEMU keeps to itself what is needed.
pub fn prepare() -> Result<(), String> {
    symbols::require(c"current_cpu")?;
    // SAFETY: the function's type, which has not changed from 7.2 to 10.0.
    let get_cpu = unsafe { symbols::function::<GetCpu>(c"qemu_get_cpu") }?;
    GET_CPU.get_or_init(|| get_cpu);
    Ok(())
}

/// Takes the calling thread as the one that runs all virtual CPUs. To be called at each translation: a virtual CPU with a
/// thread of its own translates the code that it starts with there, before any callback of its own.
///
/// # Errors
/// One line if another thread was taken before. The machine must not go on: all that is kept belongs to the first one.
pub fn bind() -> Result<(), &'static str> {
    thread_local!(static HERE: u8 = const { 0 });
    let here = HERE.with(|here| std::ptr::from_ref(here) as usize);
    // Relaxed: only whose number is there is asked.
    match THREAD.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => PLACE.store(symbols::find(c"current_cpu").cast(), Ordering::Relaxed),
        Err(first) if first == here => {}
        Err(_) => return Err("expected -accel tcg,thread=single, got virtual CPUs in several threads"),
    }
    Ok(())
}

/// Ends the machine at once, with status 1: other threads may be anywhere, so nothing of theirs is run or waited for.
pub fn end_machine() -> ! {
    // SAFETY: the function has no conditions.
    unsafe { libc::_exit(1) }
}

/// The index of the virtual CPU that runs in the bound thread; what was given, if none is bound.
#[inline]
pub fn index(told: u32) -> u32 {
    // SAFETY: a variable of the bound thread, which lives as long as the machine, and which that thread alone changes.
    let Some(place) = (unsafe { PLACE.load(Ordering::Relaxed).as_ref() }) else { return told };
    let cpu = place.load(Ordering::Relaxed);
    if cpu == LAST_CPU.load(Ordering::Relaxed) { LAST_INDEX.load(Ordering::Relaxed) } else { look_for(cpu, told) }
}

#[cold]
#[inline(never)]
fn look_for(cpu: *mut c_void, told: u32) -> u32 {
    let Some(get_cpu) = GET_CPU.get().filter(|_| !cpu.is_null()) else { return told };
    // SAFETY: the function only looks through the machine's virtual CPUs.
    let Some(found) = (0..LIMIT).find(|&index| unsafe { get_cpu(index) } == cpu) else { return told };
    LAST_INDEX.store(found as u32, Ordering::Relaxed);
    LAST_CPU.store(cpu, Ordering::Relaxed);
    found as u32
}
