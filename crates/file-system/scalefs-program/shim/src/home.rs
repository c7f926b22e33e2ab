//! What the threads of a process have in common: its process of the instance, its seat, descriptors and handlers.
//!
//! A child of `vfork`, which runs in its parent's memory, has one of its own.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use percpu::OwnerId;
use scalefs::Process;
use shared_instance::Seat;
use sync::{Wait, WaitReason};

use crate::instance::{self, Here};
use crate::numbers::Numbers;
use crate::signals::Handlers;

/// A fault that tests plant.
pub(crate) const CHANGED_BETWEEN: &str = "shim: numbers change while a child in its parent's memory gets them";

/// See the module's head.
pub(crate) struct Home {
    /// Atomic: changed by `fork` alone, in the child.
    seat: AtomicUsize,
    owner: AtomicU64,
    /// Changed by `fork`, `exec` and exit, in a process of one thread.
    process: UnsafeCell<Option<Process>>,
    /// Atomic: who changes numbers or handlers.
    lock: AtomicU32,
    /// Atomic: the parent whose lock is held until the kernel has copied its numbers for this one, too; null for none.
    held: AtomicPtr<Home>,
    /// Atomic: threads that run.
    pub(crate) threads: AtomicU32,
    /// Atomic: whether the process works in the tree.
    pub(crate) works_inside: AtomicBool,
    /// Atomic: whether its first thread is to receive the process that its seat has.
    pub(crate) receives: AtomicBool,
    pub(crate) numbers: Numbers,
    pub(crate) handlers: Handlers,
    program: UnsafeCell<[u8; 4096]>,
    program_bytes: AtomicUsize,
}

// SAFETY: cells are changed where one thread runs, as said there.
unsafe impl Sync for Home {}

/// The right to change numbers and handlers.
pub(crate) struct Locked<'h>(&'h Home);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.lock.store(0, Ordering::Release);
    }
}

impl Home {
    /// Of no one yet: zeros are one, too.
    pub(crate) const fn empty() -> Home {
        Home {
            seat: AtomicUsize::new(0),
            owner: AtomicU64::new(0),
            process: UnsafeCell::new(None),
            lock: AtomicU32::new(0),
            held: AtomicPtr::new(core::ptr::null_mut()),
            threads: AtomicU32::new(0),
            works_inside: AtomicBool::new(false),
            receives: AtomicBool::new(false),
            numbers: Numbers::empty(),
            handlers: Handlers::empty(),
            program: UnsafeCell::new([0; 4096]),
            program_bytes: AtomicUsize::new(0),
        }
    }

    /// Sits down. The process has one thread.
    pub(crate) fn sit(&self, seat: usize, owner: OwnerId) {
        self.seat.store(seat, Ordering::Relaxed);
        self.owner.store(owner.number(), Ordering::Relaxed);
        self.threads.store(1, Ordering::Relaxed);
        self.lock.store(0, Ordering::Release);
    }

    /// Sets the process of the instance. The caller is the only thread that uses it.
    pub(crate) fn set_process(&self, process: Process) {
        // SAFETY: no one else looks at it.
        unsafe { *self.process.get() = Some(process) };
    }

    /// Takes the process out, to be ended or handed over. The caller is the only thread.
    pub(crate) fn take_process(&self) -> Process {
        // SAFETY: as above.
        unsafe { (*self.process.get()).take() }.expect("there from the start to the end")
    }

    #[inline]
    pub(crate) fn process(&self) -> &Process {
        // SAFETY: changed where no other thread calls.
        unsafe { (*self.process.get()).as_ref() }.expect("there from the start to the end")
    }

    #[inline]
    pub(crate) fn owner(&self) -> OwnerId {
        OwnerId::new(self.owner.load(Ordering::Relaxed)).expect("set at the start")
    }

    /// The owner of the parent in whose memory the process runs, until exec.
    pub(crate) fn lender(&self) -> Option<OwnerId> {
        self.seat().lender()
    }

    pub(crate) fn seat_number(&self) -> usize {
        self.seat.load(Ordering::Relaxed)
    }

    pub(crate) fn seat(&self) -> &'static Seat {
        instance::control().seats.get(self.seat_number()).expect("set at the start")
    }

    /// The program's path.
    pub(crate) fn program(&self) -> &[u8] {
        // SAFETY: set before the program begins.
        unsafe { &(&(*self.program.get()))[..self.program_bytes.load(Ordering::Relaxed)] }
    }

    /// Sets the program's path, and zero bytes after it. The caller is the only thread.
    pub(crate) fn set_program(&self, path: &[u8]) {
        let length = path.len().min(4095);
        // SAFETY: no one else looks at it.
        unsafe { (&mut (*self.program.get()))[..length].copy_from_slice(&path[..length]) };
        self.program_bytes.store(length, Ordering::Relaxed);
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        let mut round = 0;
        while self.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            Here.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
        Locked(self)
    }

    /// The lock that a child of `fork` finds taken by its parent's thread.
    pub(crate) fn unlock_in_child(&self) {
        self.lock.store(0, Ordering::Release);
    }

    /// Becomes what another one is, but for seat and process. No one changes the other's numbers until [`Home::let_go`].
    pub(crate) fn copy_from(&self, other: &'static Home) {
        if !instance::planted(CHANGED_BETWEEN) {
            core::mem::forget(other.lock());
            self.held.store(core::ptr::from_ref(other).cast_mut(), Ordering::Relaxed);
        }
        self.works_inside.store(other.works_inside.load(Ordering::Relaxed), Ordering::Relaxed);
        self.numbers.copy_from(&other.numbers);
        self.handlers.copy_from(&other.handlers);
        self.set_program(other.program());
    }

    /// The kernel has made its copy of the numbers, or makes none. It is said by the child and by who made it, which may be killed.
    pub(crate) fn let_go(&self) {
        let held = self.held.swap(core::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: it is the home of who waits for this one, or of a process that shares its memory.
        if let Some(parent) = unsafe { held.as_ref() } {
            drop(Locked(parent));
        }
    }
}
