//! Signals: the kernel's handler is ours, which lets the program's run where no call of ours is under way.
//!
//! ```text
//! in the program, or in a call that was passed on    the program's handler, at once, on the stack that the kernel took
//! in a call of ours                                  noted; all signals are blocked; queued again at the call's end
//! a fault in guarded text                            the instruction is answered
//! ```
//! The signal by which the kernel tells of calls that it took (SIGSYS) is never blocked: programs' masks are given to the kernel
//! without it.

use core::sync::atomic::{AtomicU64, Ordering};

use scalefs::Errno;

use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::home::Home;
use crate::instance::planted;
use crate::shared;
use crate::system::{self, number};
use crate::threads::{self, Thread};

const SIGNALS: usize = 65;
const SIGKILL: u64 = 9;
const SIGBUS: u64 = 7;
const SIGSEGV: u64 = 11;
const SIGSTOP: u64 = 19;
const SIGSYS: u64 = 31;
const SA_SIGINFO: u64 = 4;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_RESETHAND: u64 = 0x8000_0000;
const DEFAULT: u64 = 0;
const IGNORE: u64 = 1;
const SIG_SETMASK: u64 = 2;
const MASK_BYTES: u64 = 8;
/// Where in `ucontext_t` are the registers and the mask.
const UC_RIP: usize = 168;
const UC_MASK: usize = 296;

unsafe extern "C" {
    fn scalefs_signalled();
    fn scalefs_dispatched();
    fn scalefs_restorer();
    fn scalefs_window();
    fn scalefs_window_end();
    fn scalefs_issue_window();
    fn scalefs_issue_window_end();
    fn scalefs_guarded();
    fn scalefs_guarded_end();
    fn scalefs_guard_failed();
}

/// `struct sigaction` of the kernel: handler, flags, restorer, mask.
type Action = [u64; 4];

/// The program's handlers.
pub(crate) struct Handlers {
    /// Atomic: by signal, the handler and the flags that were asked for; zero for none.
    handlers: [[AtomicU64; 3]; SIGNALS],
}

impl Handlers {
    /// None.
    pub(crate) const fn empty() -> Handlers {
        Handlers { handlers: [const { [const { AtomicU64::new(0) }; 3] }; SIGNALS] }
    }

    pub(crate) fn copy_from(&self, other: &Handlers) {
        for (to, from) in self.handlers.iter().flatten().zip(other.handlers.iter().flatten()) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn bit(signal: u64) -> u64 {
    1 << (signal - 1)
}

/// A mask as the kernel may have it.
pub(crate) fn without_ours(mask: u64) -> u64 {
    mask & !bit(SIGSYS)
}

fn set_action(signal: u64, action: &Action) -> Result<Action, i32> {
    let mut old: Action = [0; 4];
    let arguments = [signal, action.as_ptr() as u64, old.as_mut_ptr() as u64, MASK_BYTES, 0, 0];
    system::try_call(number::SIGACTION, arguments)?;
    Ok(old)
}

fn action(handler: unsafe extern "C" fn(), flags: u64, mask: u64) -> Action {
    [handler as usize as u64, flags | SA_RESTORER, scalefs_restorer as unsafe extern "C" fn() as usize as u64, mask]
}

/// Takes the signals that we need.
pub(crate) fn begin() {
    // While it runs nothing else does: it changes a few words.
    let dispatched = action(scalefs_dispatched, SA_SIGINFO | SA_ONSTACK | SA_NODEFER, u64::MAX);
    let faulted = action(scalefs_signalled, SA_SIGINFO | SA_ONSTACK | SA_NODEFER, 0);
    for (signal, action) in [(SIGSYS, &dispatched), (SIGSEGV, &faulted), (SIGBUS, &faulted)] {
        if set_action(signal, action).is_err() {
            system::die(&["the system refuses a handler of signals"]);
        }
    }
}

/// Blocks all signals; returns the mask of before.
pub(crate) fn block_all() -> u64 {
    change_all(u64::MAX)
}

/// Sets the mask; returns that of before.
fn change_all(new: u64) -> u64 {
    let mut old = 0_u64;
    system::call(number::SIGPROCMASK, [SIG_SETMASK, (&raw const new) as u64, (&raw mut old) as u64, MASK_BYTES, 0, 0]);
    old
}

/// Blocks the signal by which others ask for what they have cut off; returns the mask of before. No call is dispatched until then.
pub(crate) fn block_ours() -> u64 {
    const SIG_BLOCK: u64 = 0;
    let (ours, mut old) = (bit(SIGSYS), 0_u64);
    system::call(number::SIGPROCMASK, [SIG_BLOCK, (&raw const ours) as u64, (&raw mut old) as u64, MASK_BYTES, 0, 0]);
    old
}

/// Lets it come again.
pub(crate) fn unblock_ours() {
    const SIG_UNBLOCK: u64 = 1;
    let ours = bit(SIGSYS);
    system::call(number::SIGPROCMASK, [SIG_UNBLOCK, (&raw const ours) as u64, 0, MASK_BYTES, 0, 0]);
}

/// Sets the mask.
pub(crate) fn set_mask(mask: u64) {
    system::call(number::SIGPROCMASK, [SIG_SETMASK, (&raw const mask) as u64, 0, MASK_BYTES, 0, 0]);
}

/// What the kernel's handler asks: the program's handler that is to run, or zero.
///
/// The pointers are the kernel's, to what it has put on a stack.
pub(crate) extern "C" fn signalled(signal: u64, info: *const u64, context: *mut u8) -> u64 {
    // SAFETY: words of the frame that the kernel has made.
    let (rip, mask) = unsafe { (context.add(UC_RIP).cast::<u64>(), context.add(UC_MASK).cast::<u64>()) };
    // SAFETY: as above.
    let at = unsafe { *rip };
    let lies = |from: unsafe extern "C" fn(), to: unsafe extern "C" fn()| {
        (from as usize as u64..to as usize as u64).contains(&at)
    };
    if signal == SIGSYS {
        // Of another process, which has cut off what is mapped here.
        shared::take_away();
        return 0;
    }
    let is_guarded = lies(scalefs_guarded, scalefs_guarded_end);
    if signal == SIGBUS && (is_guarded || threads::this().in_call == 0) && is_made_again(info) {
        return 0;
    }
    if matches!(signal, SIGSEGV | SIGBUS) && is_guarded {
        // SAFETY: as above: the thread goes on there.
        unsafe { *rip = scalefs_guard_failed as unsafe extern "C" fn() as usize as u64 };
        return 0;
    }
    let thread = threads::this();
    for (from, to) in [
        (scalefs_window as unsafe extern "C" fn(), scalefs_window_end as unsafe extern "C" fn()),
        (scalefs_issue_window, scalefs_issue_window_end),
    ] {
        if thread.in_call != 0 && thread.pending == 0 && lies(from, to) {
            // All registers are the program's: the call is over, or about to be passed on.
            thread.in_call = 0;
            // SAFETY: as above.
            unsafe { *rip = to as usize as u64 };
        }
    }
    if thread.in_call != 0 && !planted("shim: a handler runs in the middle of a call") {
        if matches!(signal, SIGSEGV | SIGBUS) && is_fault(info) {
            fail(thread, signal, at);
        }
        // SAFETY: the kernel's words; the mask counts when the handler returns.
        unsafe {
            core::ptr::copy_nonoverlapping(info, thread.info.as_mut_ptr(), thread.info.len());
            thread.saved_mask = *mask;
            *mask = u64::MAX;
        }
        thread.pending = 1;
        return 0;
    }
    let [handler, flags, _] = &thread.home().handlers.handlers[signal as usize % SIGNALS];
    let found = handler.load(Ordering::Relaxed);
    if found <= IGNORE {
        if found == IGNORE && !is_fault(info) {
            return 0;
        }
        // The program has none: what the signal does without one, when the instruction is made again.
        let default: Action = [DEFAULT, SA_RESTORER, scalefs_restorer as unsafe extern "C" fn() as usize as u64, 0];
        let _ = set_action(signal, &default);
        if !is_fault(info) {
            let process = system::call(number::GETPID, [0; 6]) as u64;
            const KILL: u64 = 62;
            system::call(KILL, [process, signal, 0, 0, 0, 0]);
        }
        return 0;
    }
    if flags.load(Ordering::Relaxed) & SA_RESETHAND != 0 {
        handler.store(DEFAULT, Ordering::Relaxed);
        let default: Action = [DEFAULT, SA_RESTORER, scalefs_restorer as unsafe extern "C" fn() as usize as u64, 0];
        if !matches!(signal, SIGSEGV | SIGBUS) {
            let _ = set_action(signal, &default);
        }
    }
    found
}

/// Whether an access that has raised SIGBUS finds something by now.
fn is_made_again(info: *const u64) -> bool {
    const NO_ADDRESS: u32 = 2;
    // SAFETY: the kernel's words: what was wrong, and the address.
    let (code, address) = unsafe { (*info.add(1) as u32, *info.add(2)) };
    if code != NO_ADDRESS {
        return false;
    }
    // Who cuts a file waits for an answer.
    let mask = change_all(!bit(SIGSYS));
    let is_there = shared::fault(threads::this(), address);
    set_mask(mask);
    is_there
}

/// Whether a signal is of an instruction's, and not sent by somebody.
fn is_fault(info: *const u64) -> bool {
    // SAFETY: the kernel's words.
    let code = unsafe { *info.add(1) } as u32 as i32;
    code > 0 && code < 0x80
}

/// A fault in our own text ends the process.
fn fail(thread: &Thread, signal: u64, at: u64) -> ! {
    let mut digits = [0_u8; 16];
    for (index, digit) in digits.iter_mut().enumerate() {
        let value = (at >> (60 - 4 * index) & 0xf) as u8;
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
    }
    let _ = thread;
    let which = if signal == SIGSEGV { "SIGSEGV" } else { "SIGBUS" };
    system::die(&["a fault of ours: ", which, " at 0x", core::str::from_utf8(&digits).unwrap_or("?")])
}

/// rt_sigaction.
pub(crate) fn set_handler(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let [signal, new, old, bytes, ..] = call.1;
    let signal = u64::from(signal as u32);
    if bytes != MASK_BYTES || signal == 0 || signal >= SIGNALS as u64 || matches!(signal, SIGKILL | SIGSTOP) {
        return Answer::issue(thread, call.0, call.1, After::Nothing);
    }
    Answer::of(change_handler(thread.home(), signal, new, old))
}

fn change_handler(home: &Home, signal: u64, new: u64, old: u64) -> Result<u64, Errno> {
    let wanted = if new == 0 { None } else { Some(guarded::read_value::<Action>(new)?) };
    let _lock = home.lock();
    let [handler, flags, kept_mask] = &home.handlers.handlers[signal as usize];
    let is_taken = matches!(signal, SIGSYS | SIGSEGV | SIGBUS);
    // What the kernel has: ours, or what was there before the program began.
    let mut present: Action = [0; 4];
    let arguments = [signal, 0, present.as_mut_ptr() as u64, MASK_BYTES, 0, 0];
    system::try_call(number::SIGACTION, arguments).map_err(|_| Errno::EINVAL)?;
    let is_ours = present[0] == scalefs_signalled as unsafe extern "C" fn() as usize as u64
        || present[0] == scalefs_dispatched as unsafe extern "C" fn() as usize as u64;
    if is_ours {
        let found = handler.load(Ordering::Relaxed);
        present[0] = found;
        present[1] = flags.load(Ordering::Relaxed);
        present[3] = kept_mask.load(Ordering::Relaxed);
    }
    if old != 0 {
        guarded::write_value(old, present)?;
    }
    let Some(wanted) = wanted else { return Ok(0) };
    flags.store(wanted[1], Ordering::Relaxed);
    kept_mask.store(wanted[3], Ordering::Relaxed);
    if wanted[0] <= IGNORE && !is_taken {
        let plain = [wanted[0], wanted[1], wanted[2], without_ours(wanted[3])];
        set_action(signal, &plain).map_err(|_| Errno::EINVAL)?;
        handler.store(wanted[0], Ordering::Relaxed);
        return Ok(0);
    }
    handler.store(wanted[0], Ordering::Relaxed);
    if signal == SIGSYS {
        // Ours alone: the program's is kept, and called by no one.
        return Ok(0);
    }
    let mut kernel_flags = wanted[1] & !SA_RESETHAND | SA_SIGINFO;
    if is_taken {
        kernel_flags |= SA_NODEFER;
    }
    set_action(signal, &action(scalefs_signalled, kernel_flags, without_ours(wanted[3]))).map_err(|_| Errno::EINVAL)?;
    Ok(0)
}

/// rt_sigprocmask: without our signal.
pub(crate) fn change_mask(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    wait_with_mask(thread, call, 1)
}

/// Where a mask lies that is the program's without our signal: at the same place, if it has not that.
pub(crate) fn mask_without_ours(thread: &mut Thread, at: u64) -> u64 {
    let mask = if at == 0 { Err(Errno::EFAULT) } else { guarded::read_value::<u64>(at) };
    match mask {
        Ok(mask) if mask & bit(SIGSYS) != 0 => {
            let room = thread.room();
            room[..8].copy_from_slice(&without_ours(mask).to_le_bytes());
            room.as_ptr() as u64
        }
        _ => at,
    }
}

/// Calls that wait with another mask, or for signals of one: `index` is that of its pointer.
pub(crate) fn wait_with_mask(thread: &mut Thread, call: (u64, [u64; 6]), index: usize) -> Answer {
    let mut arguments = call.1;
    arguments[index] = mask_without_ours(thread, arguments[index]);
    Answer::issue(thread, call.0, arguments, After::Nothing)
}
