//! The instance as this process has it, and how a call is made: as a core that is leased for it.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use percpu::{Arena, Core};
use scalefs::{Errno, Host, InProcess, OpenNode, ScaleFs};
use shared_instance::Control;
use sync::{Wait, WaitReason};

use crate::home::Home;
use crate::system::{self, number};
use crate::threads::Thread;

static CONTROL: AtomicPtr<Control> = AtomicPtr::new(ptr::null_mut());
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());
static FILE_SYSTEM: AtomicPtr<ScaleFs> = AtomicPtr::new(ptr::null_mut());
/// What is set once, before another thread runs.
struct Top(UnsafeCell<Option<OpenNode>>);

// SAFETY: it is changed while one thread runs, and read afterwards.
unsafe impl Sync for Top {}

static TOP: Top = Top(UnsafeCell::new(None));
/// The kernel's function that tells the time without a call, if it was found.
static CLOCK: AtomicUsize = AtomicUsize::new(0);

/// Calls of a thread between two maintenances of the core that it is at, and of those that no one is.
const CALLS_PER_MAINTENANCE: u32 = 64;
const CALLS_PER_MAINTENANCE_OF_ALL: u32 = 1024;
/// How often a call that finds no space is made again, after what was given up was looked for; and how often more, each after a
/// millisecond in which another one can end the call that keeps it.
const SEARCHES_FOR_SPACE: u32 = 12;
const PATIENT_SEARCHES_FOR_SPACE: u32 = 32;
const PATIENCE_NS: u64 = 1_000_000;
/// Whether the last search for space was in vain: the next one is not patient, so that a refused call costs little. Atomic.
static IS_FULL: AtomicBool = AtomicBool::new(false);
/// Looks for a core that was used before one that was not is taken.
const LOOKS_FOR_A_USED_CORE: u32 = 300;
const SPINS: u32 = 16;
const YIELDS: u32 = 256;
const SLEEP_NS: u64 = 50_000;
/// `CLOCK_REALTIME_COARSE`: what Linux's file systems take times from.
const COARSE_CLOCK: u64 = 5;
/// The segment whose limit has the number of the processor (Linux: `GDT_ENTRY_CPUNODE`).
const PROCESSOR_SEGMENT: u64 = 0x7b;
const PROCESSOR_BITS: u64 = 0xfff;

/// Sets what all of this program uses; once, before anything else.
pub(crate) fn set(control: &'static Control, arena: &'static Arena, file_system: &'static ScaleFs, clock: usize) {
    CONTROL.store(ptr::from_ref(control).cast_mut(), Ordering::Relaxed);
    ARENA.store(ptr::from_ref(arena).cast_mut(), Ordering::Relaxed);
    FILE_SYSTEM.store(ptr::from_ref(file_system).cast_mut(), Ordering::Relaxed);
    CLOCK.store(clock, Ordering::Relaxed);
}

/// What lies first in the shared memory.
#[inline]
pub(crate) fn control() -> &'static Control {
    // SAFETY: set before the first call, and mapped for good.
    unsafe { &*CONTROL.load(Ordering::Relaxed) }
}

#[inline]
pub(crate) fn arena() -> &'static Arena {
    // SAFETY: as above.
    unsafe { &*ARENA.load(Ordering::Relaxed) }
}

#[inline]
pub(crate) fn file_system() -> &'static ScaleFs {
    // SAFETY: as above.
    unsafe { &*FILE_SYSTEM.load(Ordering::Relaxed) }
}

/// Whether a test has planted a fault: never in ordinary builds.
#[inline(always)]
pub(crate) fn planted(name: &str) -> bool {
    cfg!(feature = "planted-faults") && control().is_planted(name)
}

/// For tests that look at what other threads do in the middle of something: a while, if one of these is planted.
#[inline(always)]
pub(crate) fn pause_if_planted(names: &[&str]) {
    if cfg!(feature = "planted-faults") && names.iter().any(|name| planted(name)) {
        const PAUSE_NS: u64 = 900_000_000;
        let time = [0, PAUSE_NS];
        system::call(number::NANOSLEEP, [time.as_ptr() as u64, 0, 0, 0, 0, 0]);
    }
}

/// Sets the top of the tree, which is there as long as the instance: a reference to it is never given up.
pub(crate) fn set_top(top: OpenNode) {
    // SAFETY: set before the first call of the program, by the only thread.
    unsafe { *TOP.0.get() = Some(top) };
}

/// The top of the tree.
#[inline]
pub(crate) fn top() -> &'static OpenNode {
    // SAFETY: no one changes it any more.
    unsafe { (*TOP.0.get()).as_ref() }.expect("set before the first call of the program")
}

/// How our calls wait, and what time it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here;

impl Wait for Here {
    fn wait(&self, _: WaitReason, round: u32) {
        match round {
            0..SPINS => core::hint::spin_loop(),
            SPINS..YIELDS => _ = system::call(number::SCHED_YIELD, [0; 6]),
            _ => {
                let time = [0, SLEEP_NS];
                system::call(number::NANOSLEEP, [time.as_ptr() as u64, 0, 0, 0, 0, 0]);
            }
        }
    }

    fn wake(&self, word: &AtomicU32) {
        const FUTEX_WAKE: u64 = 1;
        let every = i32::MAX as u64;
        system::call(number::FUTEX, [core::ptr::from_ref(word) as u64, FUTEX_WAKE, every, 0, 0, 0]);
    }
}

impl Host for Here {
    fn now_ns(&self) -> u64 {
        let mut time = [0_u64; 2];
        match CLOCK.load(Ordering::Relaxed) {
            0 => _ = system::call(number::CLOCK_GETTIME, [COARSE_CLOCK, time.as_mut_ptr() as u64, 0, 0, 0, 0]),
            function => {
                // SAFETY: the kernel's function of this type, in memory that stays.
                let clock: extern "C" fn(i32, *mut u64) -> i32 = unsafe { core::mem::transmute(function) };
                clock(COARSE_CLOCK as i32, time.as_mut_ptr());
            }
        }
        time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
    }
}

/// The number of the processor on which the thread runs at the moment.
#[inline]
fn processor() -> usize {
    let limit: u64;
    // SAFETY: reads a limit of a segment.
    unsafe { asm!("lsl {}, {}", out(reg) limit, in(reg) PROCESSOR_SEGMENT, options(nomem, nostack)) };
    (limit & PROCESSOR_BITS) as usize
}

/// Becomes a core.
#[inline]
pub(crate) fn lease(home: &Home) -> Core<'static> {
    match arena().lease(processor(), home.owner()) {
        Ok(core) => core,
        Err(_) => wait_for_a_core(home),
    }
}

#[cold]
fn wait_for_a_core(home: &Home) -> Core<'static> {
    let mut round = 0;
    loop {
        let found = match round {
            // Who looks at all of the instance has all cores that were used, and wants no other to be.
            _ if round < LOOKS_FOR_A_USED_CORE || control().is_closed() => arena().lease(processor(), home.owner()),
            _ => arena().claim_any(home.owner()),
        };
        if let Ok(core) = found {
            return core;
        }
        Here.wait(WaitReason::Operation, round);
        round = round.saturating_add(1);
    }
}

/// Makes a call of the thread's process; again if it finds no space and some may become free.
pub(crate) fn call<T>(
    thread: &Thread,
    mut body: impl FnMut(&InProcess<'_, Here>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let home = thread.home();
    let core = lease(home);
    let mut result = body(&file_system().enter(&core, home.process(), &Here).acting_as(&thread.credentials));
    if matches!(result, Err(Errno::ENOSPC | Errno::ENOMEM)) && !planted("shim: a full tree is not looked through") {
        for round in 0..SEARCHES_FOR_SPACE + PATIENT_SEARCHES_FOR_SPACE {
            file_system().maintain_with_idle_cores(&core, &Here);
            if round >= SEARCHES_FOR_SPACE {
                if IS_FULL.load(Ordering::Relaxed) {
                    break;
                }
                let time = [0, PATIENCE_NS];
                system::call(number::NANOSLEEP, [time.as_ptr() as u64, 0, 0, 0, 0, 0]);
            } else if round > SEARCHES_FOR_SPACE / 2 {
                system::call(number::SCHED_YIELD, [0; 6]);
            }
            result = body(&file_system().enter(&core, home.process(), &Here).acting_as(&thread.credentials));
            if !matches!(result, Err(Errno::ENOSPC | Errno::ENOMEM)) {
                break;
            }
        }
        IS_FULL.store(matches!(result, Err(Errno::ENOSPC | Errno::ENOMEM)), Ordering::Relaxed);
    }
    let calls = thread.calls.get().wrapping_add(1);
    thread.calls.set(calls);
    if calls.is_multiple_of(CALLS_PER_MAINTENANCE) {
        maintain(&core, calls);
    }
    result
}

#[cold]
fn maintain(core: &Core<'_>, calls: u32) {
    if calls.is_multiple_of(CALLS_PER_MAINTENANCE_OF_ALL) {
        file_system().maintain_with_idle_cores(core, &Here);
    } else {
        file_system().maintain(core, &Here);
    }
}
