//! A file that is made shorter while it is mapped: the accesses that meet the end are errors, not the end of the process.
//!
//! **Idea.** The kernel sends SIGBUS to a thread that touches a mapped page which its file has no more. The handler puts zero
//! pages over the whole mapping, so that the access can go on, and sets the mapping's flag, so that its owner gets
//! [`crate::Fault::Truncated`]. A SIGBUS anywhere else goes to the handler that was there before.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Mappings that a process can have at once.
pub(super) const MAPPINGS: usize = 64;

/// A mapping that the handler knows. Free while `length` is 0.
struct Slot {
    start: AtomicUsize,
    length: AtomicUsize,
    flag: AtomicPtr<AtomicBool>,
}

static SLOTS: [Slot; MAPPINGS] =
    [const { Slot { start: AtomicUsize::new(0), length: AtomicUsize::new(0), flag: AtomicPtr::new(ptr::null_mut()) } };
        MAPPINGS];

/// Guards which slots are taken, and whether the handler is there; the handler itself takes no lock.
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// The action that was there before, read by the handler; written once, before the handler is there.
static mut BEFORE: core::mem::MaybeUninit<libc::sigaction> = core::mem::MaybeUninit::uninit();

/// From now on, a SIGBUS in these bytes sets the flag. Returns the mapping's slot, if there is one left.
///
/// The flag lives until [`forget`].
pub(super) fn watch(start: usize, length: usize, flag: &AtomicBool) -> Option<usize> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*installed {
        // SAFETY: the lock is held, and the handler is not there yet.
        unsafe { install() }?;
        *installed = true;
    }
    let free = SLOTS.iter().position(|slot| slot.length.load(Ordering::Relaxed) == 0)?;
    let slot = &SLOTS[free];
    slot.start.store(start, Ordering::Relaxed);
    slot.flag.store(ptr::from_ref(flag).cast_mut(), Ordering::Relaxed);
    // Last: the handler looks at the length first.
    slot.length.store(length, Ordering::Release);
    Some(free)
}

/// The mapping of this slot is about to go.
pub(super) fn forget(slot: usize) {
    let _installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    SLOTS[slot].length.store(0, Ordering::Release);
}

/// # Safety
/// Called once.
unsafe fn install() -> Option<()> {
    // SAFETY: all zero is a valid action; the calls get valid pointers. `BEFORE` is written before the handler can read it:
    // it is filled by a query first.
    unsafe {
        let before = ptr::addr_of_mut!(BEFORE).cast::<libc::sigaction>();
        if libc::sigaction(libc::SIGBUS, ptr::null(), before) != 0 {
            return None;
        }
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        (libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) == 0).then_some(())
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid one.
    let address = unsafe { (*info).si_addr() } as usize;
    for slot in &SLOTS {
        let length = slot.length.load(Ordering::Acquire);
        let start = slot.start.load(Ordering::Relaxed);
        if length != 0 && (start..start + length).contains(&address) {
            // SAFETY: the slot's memory is mapped until `forget`, which its owner calls, which makes no access at
            // that moment; mmap is a plain system call. The flag lives as long.
            unsafe {
                let zeros = libc::mmap(
                    start as *mut libc::c_void,
                    length,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                    -1,
                    0,
                );
                if zeros != libc::MAP_FAILED {
                    (*slot.flag.load(Ordering::Relaxed)).store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
    // SAFETY: `install` has filled it before it set this handler.
    unsafe { pass_on(signal, info, context) };
}

/// The signal is not ours.
///
/// # Safety
/// `BEFORE` is filled; the arguments are those of the handler.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the caller's promise; a handler that was installed may be called with what the kernel gave.
    unsafe {
        let before = &*ptr::addr_of!(BEFORE).cast::<libc::sigaction>();
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The access is made again, and ends the process as it would have without us.
                libc::sigaction(signal, before, ptr::null_mut());
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    core::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(libc::c_int) = core::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}
