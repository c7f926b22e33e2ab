//! Leases: as which core of an instance a thread acts, for one call.
//!
//! A thread tries the core that it had last; if that is taken, the one of its processor's number, and then others that were
//! ever used. So the number of cores that were ever used, at each of which exact answers look, stays near that of processors,
//! however many threads call. One that was never used is taken only if no other became free for long.
//!
//! ```text
//! begin:   the thread has this core already → one lease more of it
//!          else claim it │ processor's core │ another that was used │ wait, ever more patiently │ one that was not
//! end:     the last lease → count the call, maintain at times, release
//! ```
//! **Within another.** A thread that has a lease gets the same core again: a call in the middle of another, by a closure or a
//! callback, waits for nobody. What is left to do between calls is done when the last lease ends.
//!
//! **No space.** Space that was given up is free once all cores have maintained. A call that finds none asks
//! [`Lease::make_room`] whether it is worth another try: as long as something is on its way. Where nothing is, nobody waits for
//! it; twice it is tried again all the same, since memory of one class may have come to serve another.
#![allow(unsafe_code)]

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::boxed::Box;
use std::io;
use std::time::Duration;

use percpu::{CacheLine, ClaimError, Core, OwnerId};
use posix_calls::Errno;
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::instance::ScaleFs;
use crate::outside::{self, Outside};
use crate::owned::OwnedScaleFs;

/// Calls that act as a core between two maintenances of it.
const CALLS_PER_MAINTENANCE: u32 = 64;
/// So often a thread looks for a core that was used before it takes one that was not: the last looks are 50 microseconds apart.
const LOOKS_FOR_A_USED_CORE: u32 = 2_000;
/// Maintenances, since one has freed anything, after which memory of one class serves another, whatever else is on its way.
const ROUNDS_FOR_ANOTHER_CLASS: u32 = 2;
/// Maintenances after which space that was given up is free, if no other thread is in a call; and further ones, each after a
/// millisecond in which one can end its own.
const ROUNDS_FOR_SPACE: u32 = 24;
const PATIENT_ROUNDS_FOR_SPACE: u32 = 32;

/// What a thread remembers of its last call.
struct Caller {
    /// The core that it acted as; at first none.
    number: Cell<usize>,
}

std::thread_local! {
    // Without a destructor, so that it is there as long as the thread is. Its address names the thread.
    static CALLER: Caller = const { Caller { number: Cell::new(usize::MAX) } };
}

/// A core of an instance, and who acts as it.
struct Seat {
    /// Atomic: the thread that has the core, or zero. A thread finds its own name only where it has put it.
    thread: AtomicUsize,
    // The rest is that thread's.
    leases: Cell<u32>,
    calls: Cell<u32>,
    /// Of the instance's arena, whatever its lifetime says; there while there are leases.
    core: UnsafeCell<Option<Core<'static>>>,
}

/// An instance, and the cores that threads have of it.
pub(crate) struct Seats {
    // Before the instance: cores are of its arena.
    seats: Box<[CacheLine<Seat>]>,
    owned: OwnedScaleFs,
    owner: OwnerId,
    /// Atomic: threads that wait for a core.
    waiting: AtomicU32,
    /// Atomic: the last search for space that was patient found none.
    is_full: AtomicBool,
}

// SAFETY: a seat's cells are touched by the thread alone that its first word names, or that has claimed its core.
unsafe impl Sync for Seats {}
// SAFETY: as above; who sends it has no lease of it, each of which borrows it.
unsafe impl Send for Seats {}

/// A call in a closure that may run again, of another store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InClosure;

impl fmt::Display for InClosure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "expected no call of the file system inside `atomically`, which may run again; \
             begin a transaction outside, in which lists take part",
        )
    }
}

impl core::error::Error for InClosure {}

/// The right of a thread to call for an instance, as a core of it, until this is dropped. See the module's head.
pub(crate) struct Seated<'s> {
    seats: &'s Seats,
    seat: &'s Seat,
    /// How often it has looked for space.
    searches: u32,
    /// Of these, how often since one has freed anything.
    in_vain: u32,
    /// It is its thread's.
    _not_send: PhantomData<*const ()>,
}

impl Seats {
    pub(crate) fn new(owned: OwnedScaleFs, owner: OwnerId) -> Seats {
        let seat = |_| {
            CacheLine(Seat {
                thread: AtomicUsize::new(0),
                leases: Cell::new(0),
                calls: Cell::new(0),
                core: UnsafeCell::new(None),
            })
        };
        let seats = (0..owned.core_count()).map(seat).collect();
        Seats { seats, owned, owner, waiting: AtomicU32::new(0), is_full: AtomicBool::new(false) }
    }

    pub(crate) fn file_system(&self) -> &ScaleFs {
        self.owned.file_system()
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        self.owned.is_of_this_process()
    }

    pub(crate) fn used_cores(&self) -> usize {
        self.owned.used_cores()
    }

    /// Becomes a core, or goes on as the one that the thread is.
    ///
    /// # Errors
    /// In a child of the process that made the instance; EDEADLK in the middle of a change of several objects; [`InClosure`].
    #[inline]
    pub(crate) fn begin(&self) -> io::Result<Seated<'_>> {
        if commit::is_in_closure() && !planted("scalefs: calls in closures that run again are made") {
            return Err(io::Error::other(InClosure));
        }
        let (thread, number) = CALLER.with(|caller| (core::ptr::from_ref(caller).addr(), caller.number.get()));
        if let Some(seat) = self.seats.get(number)
            && seat.thread.load(Ordering::Relaxed) != thread
            && let Ok(core) = self.owned.claim(number, self.owner)
        {
            return Ok(self.sit(seat, core, thread));
        }
        self.begin_otherwise(thread)
    }

    #[inline]
    fn sit<'s>(&'s self, seat: &'s Seat, core: Core<'s>, thread: usize) -> Seated<'s> {
        // SAFETY: whoever has claimed the core has its seat; only the lifetime differs, and the core is given back before the
        // lease that borrows the instance ends.
        unsafe { *seat.core.get() = Some(core::mem::transmute::<Core<'s>, Core<'static>>(core)) };
        seat.leases.set(1);
        seat.thread.store(thread, Ordering::Relaxed);
        Seated { seats: self, seat, searches: 0, in_vain: 0, _not_send: PhantomData }
    }

    #[cold]
    fn begin_otherwise(&self, thread: usize) -> io::Result<Seated<'_>> {
        if !self.owned.is_of_this_process() {
            return Err(io::Error::other(ClaimError::OtherProcess));
        }
        let is_ours = |seat: &&CacheLine<Seat>| {
            let is_forgetful = planted("scalefs: a thread that has a core asks for another");
            seat.thread.load(Ordering::Relaxed) == thread && !is_forgetful
        };
        if let Some(seat) = self.seats.iter().find(is_ours) {
            let again = Seated { seats: self, seat, searches: 0, in_vain: 0, _not_send: PhantomData };
            seat.leases.set(seat.leases.get() + 1);
            return match self.is_changing(again.core()) {
                true => Err(Errno::EDEADLK.into()),
                false => Ok(again),
            };
        }
        let core = self.find_core()?;
        let number = core.index().get();
        CALLER.with(|caller| caller.number.set(number));
        Ok(self.sit(&self.seats[number], core, thread))
    }

    /// Whether the core is in the middle of a change of several objects: it has locks, which a call would wait for, also once it
    /// is decided.
    fn is_changing(&self, core: &Core<'_>) -> bool {
        let fs = self.owned.file_system();
        let has_locks = !fs.noted(core).is_empty() && !planted("scalefs: what is decided is done");
        has_locks || fs.decisions().is_deciding(core)
    }

    fn find_core(&self) -> io::Result<Core<'_>> {
        let lease = || self.owned.lease(outside::processor(), self.owner);
        if let Ok(core) = lease() {
            return Ok(core);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut round = 0;
        let found = loop {
            let found = if round < LOOKS_FOR_A_USED_CORE { lease() } else { self.owned.claim_any(self.owner) };
            match found {
                Ok(_) | Err(ClaimError::OtherProcess) => break found,
                Err(_) => Outside.wait(WaitReason::Operation, round),
            }
            round = round.saturating_add(1);
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        found.map_err(io::Error::other)
    }
}

impl fmt::Debug for Seats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.owned.fmt(formatter)
    }
}

impl Seated<'_> {
    #[inline]
    pub(crate) fn core(&self) -> &Core<'_> {
        // SAFETY: the thread has the seat, and gives its core back with the last lease.
        unsafe { (*self.seat.core.get()).as_ref() }.expect("there as long as a lease is")
    }

    #[inline]
    pub(crate) fn file_system(&self) -> &ScaleFs {
        self.seats.owned.file_system()
    }

    /// See [`crate::Lease::make_room`].
    #[cold]
    pub(crate) fn make_room(&mut self) -> bool {
        // Another call of the thread is under way: its core cannot maintain.
        if self.seat.leases.get() > 1 {
            return false;
        }
        self.searches += 1;
        let (is_full, searches) = (&self.seats.is_full, self.searches);
        let maintained = self.file_system().maintain_for_space(self.core(), &Outside);
        if maintained.freed > 0 {
            is_full.store(false, Ordering::Relaxed);
            self.in_vain = 0;
            return searches <= ROUNDS_FOR_SPACE + PATIENT_ROUNDS_FOR_SPACE;
        }
        self.in_vain += 1;
        if self.in_vain <= ROUNDS_FOR_ANOTHER_CLASS {
            return true;
        }
        if !maintained.is_pending && !planted("scalefs: who finds no space waits whatever is on its way") {
            return false;
        }
        if searches <= ROUNDS_FOR_SPACE {
            std::thread::yield_now();
            return true;
        }
        // Whoever keeps what is on its way has kept it for as long as a call could take.
        let is_patient = searches <= ROUNDS_FOR_SPACE + PATIENT_ROUNDS_FOR_SPACE && !is_full.load(Ordering::Relaxed);
        if is_patient {
            std::thread::sleep(Duration::from_millis(1));
        } else {
            is_full.store(true, Ordering::Relaxed);
        }
        is_patient
    }

    /// The last lease of the thread ends. Returns whether a maintenance was due.
    #[inline]
    fn release(&self) -> bool {
        let calls = self.seat.calls.get().wrapping_add(1);
        self.seat.calls.set(calls);
        let is_due = calls.is_multiple_of(CALLS_PER_MAINTENANCE);
        if is_due {
            self.maintain();
        }
        self.seat.thread.store(0, Ordering::Relaxed);
        // SAFETY: nobody borrows the core: each lease of it has ended.
        drop(unsafe { (*self.seat.core.get()).take() });
        is_due
    }

    /// Maintains, unless another call of the thread is under way, or is being left by a panic.
    #[cold]
    pub(crate) fn maintain(&self) {
        if self.seat.leases.get() <= 1 && !std::thread::panicking() {
            self.file_system().maintain_with_idle_cores(self.core(), &Outside);
        }
    }
}

impl Drop for Seated<'_> {
    #[inline]
    fn drop(&mut self) {
        let others = self.seat.leases.get() - 1;
        self.seat.leases.set(others);
        if others > 0 {
            return;
        }
        // Whoever calls without a pause lets those who wait have the core at times.
        if self.release() && self.seats.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
    }
}
