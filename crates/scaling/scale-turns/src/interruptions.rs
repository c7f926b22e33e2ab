//! Interruptions: the counter sends the thread that runs a signal after accesses that it draws, and a clock does so to one that stands
//! still. The handler lets another thread go on. Unless the thread is in this library: there it hands over by itself.

use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use libc::{pthread_attr_t, pthread_t, sigset_t};
use preload::next;
use transfer_marks::INTERRUPTION;

use crate::scheduler::{self, Inside};
use crate::system;

/// A turn that takes so long is interrupted.
const LONGEST_TURN_SECONDS: i64 = 1;

/// The clock has sent a signal.
static BY_CLOCK: AtomicBool = AtomicBool::new(false);
static STALLS: AtomicU64 = AtomicU64::new(0);

/// How many turns ended by the clock.
pub fn stalls() -> u64 {
    STALLS.load(Ordering::Relaxed)
}

extern "C" fn on_interruption(_: c_int) {
    // SAFETY: this thread's own.
    let errno = unsafe { *libc::__errno_location() };
    if let Some(mut inside) = Inside::now() {
        let is_by_clock = BY_CLOCK.swap(false, Ordering::Relaxed);
        if inside.hand_over() && is_by_clock {
            STALLS.fetch_add(1, Ordering::Relaxed);
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Sets the handler, and starts the clock.
pub fn begin() {
    // SAFETY: a handler that leaves all as it was; zero is a valid value of what is not set.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_interruption as extern "C" fn(c_int) as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(INTERRUPTION, &raw const action, ptr::null_mut());
    }
    start_clock();
}

type Function = extern "C" fn(*mut c_void) -> *mut c_void;

/// A thread that takes no turns, and no signals: those are the program's.
fn start_clock() {
    let (mut all, mut before): (sigset_t, sigset_t);
    // SAFETY: sets are filled by these functions; zero is a valid value before.
    unsafe {
        (all, before) = (zeroed(), zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let mut handle: pthread_t = 0;
    let place = &raw mut handle;
    let (attributes, function, argument): (_, Function, *mut c_void) = (ptr::null(), clock, ptr::null_mut());
    next!(pthread_create(
        place: *mut pthread_t, attributes: *const pthread_attr_t, function: Function, argument: *mut c_void
    ));
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
}

extern "C" fn clock(_: *mut c_void) -> *mut c_void {
    let (mut turns, _) = scheduler::now();
    loop {
        system::sleep(LONGEST_TURN_SECONDS);
        let (now, thread) = scheduler::now();
        if now == turns {
            BY_CLOCK.store(true, Ordering::Relaxed);
            system::signal(thread, INTERRUPTION);
        }
        turns = now;
    }
}
