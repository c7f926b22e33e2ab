//! The slot of an actor: one operation at a time, handed over by spinning.
//!
//! The coordinator writes the operation, then raises `command`; the actor executes, writes `result`, then sets `done` to
//! the same number. Both wait with `pause`, which under a single-threaded emulator passes the processor on at once, so no
//! wake-up, interrupt or scheduling falls into a window. Actors that are not needed sleep on `command` as a futex. An actor
//! that shares the coordinator's virtual CPU cannot spin: there both sides sleep, on `command` and `done`.
//!
//! ```text
//! coordinator                              actor
//! write operation                          spin while command == last
//! command := n | what          (release) → (acquire) execute operation
//! spin while done != n | what  (acquire) ← done := n | what   (release)
//! read operation, result
//! ```

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, Ordering};

use crate::execution::{Execution, Marks};
use crate::marker;

/// How an actor waits for its next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Spinning while it is wanted, on a virtual CPU of its own.
    Spinning,
    /// Asleep always, on the coordinator's virtual CPU.
    Asleep,
}

/// What the two low bits of a command ask for; the rest counts.
const RUN: u32 = 0;
const RUN_MARKED: u32 = 1;
const ATTEND: u32 = 2;
const SLEEP: u32 = 3;
const STEP: u32 = 4;

/// Atomic, set before any actor starts: whether who spins also offers its processor to others.
static YIELDS: AtomicBool = AtomicBool::new(false);

/// From now on, spinning actors yield to the operating system: for programs whose actors are its threads.
pub fn yield_while_spinning() {
    YIELDS.store(true, Ordering::Relaxed);
}

fn spin() {
    std::hint::spin_loop();
    if YIELDS.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

/// Hand-over between the coordinator and one actor; lies in memory that both map at the same address.
#[repr(C, align(4096))]
pub struct Slot<Operation> {
    /// Atomic, written by the coordinator.
    command: AtomicU32,
    /// Atomic, written by the actor; on a line of its own, since both sides spin.
    done: Padded,
    /// Atomic, written by the coordinator before `command`: the command of the actor to wake when going to sleep, or null.
    successor: AtomicPtr<AtomicU32>,
    /// Atomic, written by the actor before `done`.
    result: AtomicI64,
    /// Guarded by the hand-over: the coordinator's while `done == command`, the actor's otherwise.
    operation: UnsafeCell<Operation>,
}

#[repr(C, align(64))]
struct Padded(AtomicU32);

// SAFETY: `operation` is only touched by the side that the hand-over gives it to; the acquire and release orderings of
// `command` and `done` make each side's writes visible to the other.
unsafe impl<Operation: Send> Sync for Slot<Operation> {}

impl<Operation: Default> Default for Slot<Operation> {
    fn default() -> Self {
        Self {
            command: AtomicU32::new(0),
            done: Padded(AtomicU32::new(0)),
            successor: AtomicPtr::new(ptr::null_mut()),
            result: AtomicI64::new(0),
            operation: UnsafeCell::new(Operation::default()),
        }
    }
}

impl<Operation> Slot<Operation> {
    /// The operation, for the coordinator to prepare or to read.
    ///
    /// # Safety
    /// The caller is the coordinator, no command is under way (every method below has returned), and no other reference
    /// from this method is alive.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn operation(&self) -> &mut Operation {
        debug_assert_eq!(self.command.load(Ordering::Relaxed), self.done.0.load(Ordering::Relaxed));
        // SAFETY: `done == command`, so the actor does not touch the operation; the caller keeps other references away.
        unsafe { &mut *self.operation.get() }
    }

    /// Sends the actor to sleep and wakes `successor` on the same virtual CPU, which the actor itself does on its way: one
    /// switch between two tasks, without a detour by another processor. Returns once the successor spins.
    ///
    /// # Safety
    /// The successor's slot lives as long as this one's actor serves, and lies at one address in the processes of both.
    pub unsafe fn relieve(&self, successor: &Self) {
        let arrival = successor.announce(ATTEND);
        self.successor.store(ptr::from_ref(&successor.command).cast_mut(), Ordering::Relaxed);
        self.command(SLEEP, false);
        self.successor.store(ptr::null_mut(), Ordering::Relaxed);
        successor.await_done(arrival);
    }

    /// Has the actor execute its operation, and waits for the result. It must be awake.
    pub fn run(&self, marks: Marks) -> i64 {
        self.command(if marks == Marks::Around { RUN_MARKED } else { RUN }, false);
        self.result.load(Ordering::Relaxed)
    }

    /// As [`Slot::run`], for an actor on the coordinator's own virtual CPU, which serves with [`Waiting::Asleep`].
    pub fn run_here(&self, marks: Marks) -> i64 {
        let before = self.done.0.load(Ordering::Relaxed);
        let next = self.announce(if marks == Marks::Around { RUN_MARKED } else { RUN });
        futex_wake(&self.command);
        // Acquire: pairs with the release of `done` in `serve`; we must see operation and result.
        while self.done.0.load(Ordering::Acquire) != next {
            futex_wait(&self.done.0, before);
        }
        self.result.load(Ordering::Relaxed)
    }

    /// Wakes the actor, and returns once it spins.
    pub fn attend(&self) {
        self.command(ATTEND, true);
    }

    /// Sends the actor to sleep; returns when it is on its way.
    pub fn sleep(&self) {
        self.command(SLEEP, false);
    }

    fn command(&self, what: u32, wake: bool) {
        let next = self.announce(what);
        if wake {
            futex_wake(&self.command);
        }
        self.await_done(next);
    }

    /// Raises the command, without waiting.
    fn announce(&self, what: u32) -> u32 {
        let last = self.command.load(Ordering::Relaxed);
        let next = (last & !(STEP - 1)).wrapping_add(STEP) | what;
        // Release: pairs with the actor's acquire in `serve`; it must see the operation.
        self.command.store(next, Ordering::Release);
        next
    }

    fn await_done(&self, command: u32) {
        // Acquire: pairs with the release of `done` in `serve`; we must see operation and result.
        while self.done.0.load(Ordering::Acquire) != command {
            spin();
        }
    }

    /// The life of an actor: executes what its slot brings, forever. Starts asleep.
    ///
    /// # Safety
    /// No one else serves this slot.
    pub unsafe fn serve<T: Execution<Operation = Operation>>(&self, waiting: Waiting) -> ! {
        marker::thread();
        let mut last = self.done.0.load(Ordering::Relaxed);
        let mut awake = false;
        loop {
            // Acquire: pairs with the release of `command`; we must see the operation.
            let next = self.command.load(Ordering::Acquire);
            if next == last {
                if awake {
                    spin();
                } else {
                    futex_wait(&self.command, last);
                }
                continue;
            }
            match next & (STEP - 1) {
                ATTEND => awake = true,
                SLEEP => {
                    awake = false;
                    let successor = self.successor.load(Ordering::Relaxed);
                    if !successor.is_null() {
                        // SAFETY: `relieve` stored the address of a command in another slot, which lives as long as we serve.
                        futex_wake(unsafe { &*successor });
                    }
                }
                what => {
                    let marks = if what == RUN_MARKED { Marks::Around } else { Marks::None };
                    // SAFETY: `command != done`, so the coordinator does not touch the operation, and no one else
                    // serves.
                    let operation = unsafe { &mut *self.operation.get() };
                    self.result.store(T::execute(operation, marks), Ordering::Relaxed);
                }
            }
            last = next;
            // Release: pairs with the coordinator's acquire in `command`.
            self.done.0.store(next, Ordering::Release);
            if waiting == Waiting::Asleep {
                futex_wake(&self.done.0);
            }
        }
    }
}

/// Sleeps while `*word == value`; may return early. Works between processes (not a private futex).
fn futex_wait(word: &AtomicU32, value: u32) {
    // SAFETY: the word is a live, aligned u32; without a time-out the kernel reads nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, ptr::null::<libc::timespec>()) };
}

/// Wakes those who sleep on `word`.
fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is a live, aligned u32, which the kernel only uses as a key.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
