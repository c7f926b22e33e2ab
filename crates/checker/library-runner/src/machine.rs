//! What a library asks its machine is answered by us, so that its answers are the same in each run and an option decides:
//! random numbers, how many processors there are, and on which of them a thread runs.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::values::scramble;

unsafe extern "C" {
    fn __sysconf(name: c_int) -> c_long;
}

/// Atomic, set before any library is loaded.
static PROCESSORS: AtomicUsize = AtomicUsize::new(1);
/// Atomic, set before any library is loaded.
static SEED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The thread's core; threads of the library's own have the coordinator's.
    static CORE: Cell<u32> = const { Cell::new(0) };
    /// Random numbers that this thread has asked for.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Decides what libraries are shown. To be called before one is loaded.
pub fn pretend(processors: usize, seed: u64) {
    PROCESSORS.store(processors, Ordering::Relaxed);
    SEED.store(seed, Ordering::Relaxed);
}

/// The calling thread runs on a core from now on.
pub fn set_core(core: usize) {
    CORE.set(core as u32);
}

fn fill(bytes: &mut [u8]) {
    let thread = u64::from(CORE.get()) << 48;
    for part in bytes.chunks_mut(8) {
        let drawn = DRAWN.get();
        DRAWN.set(drawn + 1);
        let number = scramble(SEED.load(Ordering::Relaxed) ^ scramble(thread | drawn));
        part.copy_from_slice(&number.to_le_bytes()[..part.len()]);
    }
}

/// See getrandom(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, _flags: c_uint) -> isize {
    // SAFETY: the caller says that this many bytes may be written.
    fill(unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) });
    length.cast_signed()
}

/// See getentropy(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(buffer: *mut c_void, length: usize) -> c_int {
    // SAFETY: as above.
    unsafe { getrandom(buffer, length, 0) };
    0
}

/// See sched_getaffinity(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getaffinity(_process: c_int, bytes: usize, set: *mut c_void) -> c_int {
    // SAFETY: the caller says that this many bytes may be written.
    let set = unsafe { std::slice::from_raw_parts_mut(set.cast::<u8>(), bytes) };
    let processors = PROCESSORS.load(Ordering::Relaxed);
    for (index, byte) in set.iter_mut().enumerate() {
        let in_byte = processors.saturating_sub(index * 8).min(8);
        *byte = ((1u16 << in_byte) - 1) as u8;
    }
    0
}

/// See sysconf(3).
#[unsafe(no_mangle)]
pub extern "C" fn sysconf(name: c_int) -> c_long {
    match name {
        libc::_SC_NPROCESSORS_CONF | libc::_SC_NPROCESSORS_ONLN => PROCESSORS.load(Ordering::Relaxed) as c_long,
        // SAFETY: the C library's own function under its other name.
        _ => unsafe { __sysconf(name) },
    }
}

/// See get_nprocs(3).
#[unsafe(no_mangle)]
pub extern "C" fn get_nprocs() -> c_int {
    PROCESSORS.load(Ordering::Relaxed) as c_int
}

/// See get_nprocs_conf(3).
#[unsafe(no_mangle)]
pub extern "C" fn get_nprocs_conf() -> c_int {
    get_nprocs()
}

/// See sched_getcpu(3).
#[unsafe(no_mangle)]
pub extern "C" fn sched_getcpu() -> c_int {
    CORE.get().cast_signed()
}

/// See fork(2): a process with one thread of several is of no use to a test.
#[unsafe(no_mangle)]
pub extern "C" fn fork() -> c_int {
    // SAFETY: the thread's own error number.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// `start_routine` of pthread_create(3).
type StartRoutine = extern "C" fn(*mut c_void) -> *mut c_void;
type PthreadCreate =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, StartRoutine, *mut c_void) -> c_int;

/// See pthread_create(3): the tracer is informed that a thread starts, which is the library's own.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: StartRoutine,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: a search by a valid name, which finds the C library's function of this type.
    let create: Option<PthreadCreate> =
        unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr())) };
    runner::marker::thread();
    // SAFETY: as the caller promises.
    create.map_or(libc::ENOSYS, |create| unsafe { create(thread, attributes, routine, argument) })
}

/// Descriptors that were open before any library was loaded, which no library may close: the runner's, and those of the
/// emulator that runs it.
static OURS: [AtomicU64; DESCRIPTORS / 64] = [const { AtomicU64::new(0) }; DESCRIPTORS / 64];
const DESCRIPTORS: usize = 1024;

/// All descriptors that are open now stay open.
pub fn keep_descriptors() {
    for descriptor in 0..DESCRIPTORS {
        // SAFETY: only asks whether the descriptor is open.
        if unsafe { libc::fcntl(descriptor as c_int, libc::F_GETFD) } >= 0 {
            OURS[descriptor / 64].fetch_or(1 << (descriptor % 64), Ordering::Relaxed);
        }
    }
}

/// See close(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    let place = usize::try_from(descriptor).ok().filter(|place| *place < DESCRIPTORS);
    if place.is_some_and(|place| OURS[place / 64].load(Ordering::Relaxed) >> (place % 64) & 1 != 0) {
        // SAFETY: the thread's own error number.
        unsafe { *libc::__errno_location() = libc::EBADF };
        return -1;
    }
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_close, descriptor) as c_int }
}

/// See close_range(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, _flags: c_int) -> c_int {
    for descriptor in first..=last.min(DESCRIPTORS as c_uint) {
        // SAFETY: as the caller promises.
        unsafe { close(descriptor.cast_signed()) };
    }
    0
}

/// Whether a file tells how many processors there are.
fn tells_processors(path: &[u8]) -> bool {
    [&b"/proc/self/cgroup"[..], b"/sys/fs/cgroup", b"/sys/devices/system/cpu", b"/proc/cpuinfo", b"/proc/stat"]
        .iter()
        .any(|known| path.starts_with(known))
}

/// See open(2): what a file tells of the number of processors is not there.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's text ends with NUL.
    if tells_processors(unsafe { CStr::from_ptr(path) }.to_bytes()) {
        // SAFETY: the thread's own error number.
        unsafe { *libc::__errno_location() = libc::ENOENT };
        return -1;
    }
    // SAFETY: as the caller promises.
    unsafe { libc::openat(libc::AT_FDCWD, path, flags, mode) }
}

/// See open(2).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { open64(path, flags, mode) }
}
