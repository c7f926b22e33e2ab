//! Lives of processes: how they begin, who runs them, and how they end.
//!
//! **The table** has the address of each process, on a line each. A core makes processes in its own part, so that two that are
//! made share nothing. It is there for heirs, and for processes that one owner of cores makes and another runs; calls do not
//! look at it.
//!
//! ```text
//! processes[c * 2^20 + i]    the i-th process that core c has made
//! begin:   the object │ its place in the table │ descriptors, memory │ a child of its parent
//! end:     descriptors are closed │ EMPTIED │ arrays and memory are given up; the parent is told │ TOLD │ references are given up,
//!          the place is empty, the object is free
//! ```
//! **Who runs it**: the owner whose core has made it, or to whom it was handed over. When that has died, whoever takes its cores
//! over ends what it ran ([`ScaleFs::end_processes_of`]), from where the end had come to. So wherever a process dies, how its
//! children end is told.
//!
//! **Lock order**: a place of the table, alone.
#![allow(unsafe_code)]

use core::ops::Range;
use core::ptr::NonNull;

use address_space::Mmu as _;
use epoch::Guard;
use percpu::{Core, OutOfMemory, OwnerId};
use posix_calls::{Credentials, Ended, Errno, OnExec, ProcessNumber};
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::mutant::planted;
use sync::{Spin, Wait};

use crate::context::Context;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;
use crate::life::{EMPTIED, Life, RUNS, TOLD};
use crate::places;
use crate::process::ProcessObject;
use crate::relatives::Relatives;

/// A process: what its calls have in common. Threads share it.
///
/// It lies in the arena; this is the right to call for it, and to end it. It belongs to the instance with which it was made: any
/// other ends the program. [`Process::exit`] closes its descriptors and gives its working directory up. If the owner of the core
/// that has made it dies, [`ScaleFs::end_processes_of`] does that.
#[must_use = "a process keeps what it has open until it exits"]
pub struct Process(NonNull<ProcessObject>);

// SAFETY: all that a process has may be used by several threads: arrays, atomics, and what is immutable.
unsafe impl Send for Process {}
// SAFETY: as above.
unsafe impl Sync for Process {}

/// A process on its way from one owner of cores to another.
#[derive(Clone, Copy, Debug)]
pub struct HandedOver {
    place: u64,
    number: ProcessNumber,
}

impl HandedOver {
    /// As two words, for memory that both owners share.
    pub fn to_bits(self) -> [u64; 2] {
        [self.place, self.number.0]
    }

    /// What [`HandedOver::to_bits`] has made. Words that were never of one are received by no owner.
    pub fn from_bits([place, number]: [u64; 2]) -> HandedOver {
        HandedOver { place, number: ProcessNumber(number) }
    }
}

fn object_at<'p>(address: u64) -> &'p ProcessObject {
    // SAFETY: in the table are addresses of processes; who ends one empties its place, whose lock or whose process the caller has.
    unsafe { &*(address as usize as *const ProcessObject) }
}

impl Process {
    /// A process without descriptors that works in the root directory.
    ///
    /// # Errors
    /// ENOMEM; EAGAIN if the core has made too many.
    pub fn new(fs: &ScaleFs, core: &Core<'_>, credentials: Credentials) -> Result<Process, Errno> {
        let context = Context::new(fs, core, credentials);
        // Nobody holds a place of the core's for long.
        Process::begin(fs, &fs.epochs().pin(core), context, Relatives::without_parent(fs, core), &Spin)
    }

    /// A process without descriptors and children, run by the core's owner.
    pub(crate) fn begin(
        fs: &ScaleFs,
        guard: &Guard<'_>,
        context: Context,
        relatives: Relatives,
        wait: &impl Wait,
    ) -> Result<Process, Errno> {
        let core = guard.core();
        let room = places::lock_free(&fs.processes, guard, fs.process_hint(core), wait).and_then(|(place, slot)| {
            let room = core.allocate_place::<ProcessObject>().map_err(|OutOfMemory| Errno::ENOMEM)?;
            Ok((place, slot, room))
        });
        let (place, slot, room) = match room {
            Ok(room) => room,
            Err(errno) => {
                context.leave(fs, core);
                return Err(errno);
            }
        };
        let runner = AtomicU64::new(core.owner().map_or(0, OwnerId::number));
        let life = Life { place, runner, on_its_way: AtomicU32::new(0), stage: AtomicU32::new(RUNS) };
        // SAFETY: fresh memory for one.
        unsafe { room.write(ProcessObject::new(context, relatives, life)) };
        slot.change(|| Some(room.as_ptr() as usize as u64));
        Ok(Process(room))
    }

    #[inline]
    pub(crate) fn object(&self) -> &ProcessObject {
        // SAFETY: it lives until this value ends it.
        unsafe { self.0.as_ref() }
    }

    /// Its number, which no other process of the instance has had or will have.
    #[inline]
    pub fn number(&self) -> ProcessNumber {
        self.object().relatives.number()
    }

    /// The number of its parent (POSIX `getppid`); `None` if it has none, or if that has ended.
    pub fn parent(&self) -> Option<ProcessNumber> {
        self.object().relatives.parent()
    }

    /// What calls on names want to know.
    #[inline]
    pub fn context(&self) -> &Context {
        &self.object().context
    }

    /// A child with the same descriptors and memory (POSIX `fork`). A descriptor that another thread opens or closes meanwhile is
    /// copied or not, and so is what it maps or stores, page by page.
    ///
    /// # Errors
    /// ENOMEM, EAGAIN without a number, and then nothing is left of it.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn fork(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) -> Result<Process, Errno> {
        let parent = self.object();
        let guard = fs.epochs().pin(core);
        let child = Process::begin(fs, &guard, parent.context.duplicate(fs, core, None), Relatives::unknown(), wait)?;
        let forked = parent
            .pass_all(fs, &guard, child.object(), wait)
            .and_then(|()| parent.copy_memory_to(child.object(), fs, &guard, wait).map_err(|OutOfMemory| Errno::ENOMEM))
            .and_then(|()| parent.relatives.adopt(fs, &guard, &child.object().relatives, wait));
        drop(guard);
        match forked {
            Ok(()) => Ok(child),
            Err(errno) => {
                child.exit(fs, core, wait);
                Err(errno)
            }
        }
    }

    /// Gives up all memory, and closes the descriptors that do not survive `exec`. What other threads, which POSIX ends first,
    /// map meanwhile stays.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn exec(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        self.context().assert_of(fs);
        if !planted("scalefs: exec keeps memory") {
            self.object().unmap_all(fs, core, wait);
        }
        self.object().close_all(fs, core, wait, |descriptor| descriptor.on_exec == OnExec::Close);
    }

    /// [`Process::exit_with`] success.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn exit(self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        self.exit_with(fs, core, Ended::Exited(0), wait);
    }

    /// Closes all descriptors, leaves the working directory, and tells the parent how it ended (POSIX `_exit`). Its children
    /// have no parent any more.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn exit_with(self, fs: &ScaleFs, core: &Core<'_>, ended: Ended, wait: &impl Wait) {
        self.context().assert_of(fs);
        self.end(fs, core, |object, guard| object.relatives.end(fs, guard, ended, wait), wait);
    }

    /// Ends the process, or goes on with that. `tell` tells the parent.
    fn end(self, fs: &ScaleFs, core: &Core<'_>, tell: impl FnOnce(&ProcessObject, &Guard<'_>), wait: &impl Wait) {
        let object = self.object();
        let life = &object.life;
        if life.is(RUNS) || planted("scalefs: an heir ends a process from the beginning") {
            object.close_all(fs, core, wait, |_| true);
            if object.has_locks() {
                fs.lock_waits().take_all(core, object.relatives.number().0, wait);
            }
            object.relatives.leave_children(fs, core);
            {
                // Who looks through its descriptors has the place, and finds them there, or hears that they are not.
                let guard = fs.epochs().pin(core);
                let _place = fs.processes.lock_slot(&guard, life.place, wait);
                life.enter(EMPTIED);
            }
            // SAFETY: the table is empty; calls borrow the process, so none uses it, its marks, or the memory; the stage says that it
            // was done.
            unsafe { object.release(fs, core, wait) };
        }
        let guard = fs.epochs().pin(core);
        if !life.is(TOLD) {
            // Last of all that can be seen: who has waited for it finds nothing of it.
            tell(object, &guard);
            life.enter(TOLD);
            object.relatives.leave_parent(fs, core);
            object.context.leave_directory(fs, core);
        }
        let slot = fs.processes.lock_slot(&guard, life.place, wait);
        slot.expect("made with the process").change(|| None);
        // SAFETY: nobody finds it in the table, nor has the right that this value is; it came from there.
        unsafe { core.free_object(self.0) };
    }

    /// Another owner of cores runs the process from now on: an heir of that ends it. Who has the result, and acts as a core of
    /// that owner, receives it ([`ScaleFs::receive`]).
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn hand_over(self, fs: &ScaleFs, to: OwnerId) -> HandedOver {
        self.context().assert_of(fs);
        let Life { place, runner, on_its_way, .. } = &*self.object().life;
        let handed_over = HandedOver { place: *place, number: self.number() };
        on_its_way.store(1, Ordering::Release);
        if !planted("scalefs: who made a process runs it forever") {
            runner.store(to.number(), Ordering::Release);
        }
        handed_over
    }

    /// As [`Process::hand_over`], to the next program of the same owner (`exec`): the process goes on here until that receives it. Who
    /// has offered it in vain receives it, and forgets what it gets: it is this one.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn offer(&self, fs: &ScaleFs) -> HandedOver {
        self.context().assert_of(fs);
        let Life { place, on_its_way, .. } = &*self.object().life;
        on_its_way.store(1, Ordering::Release);
        HandedOver { place: *place, number: self.number() }
    }

    /// Unlocks what a dead thread of the process was changing whose owner did not run the process. For those that it ran,
    /// [`ScaleFs::end_processes_of`] does that.
    ///
    /// # Safety
    /// `heir` was taken over from a dead owner.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub unsafe fn repair_taken_over(&self, fs: &ScaleFs, heir: &Core<'_>, wait: &impl Wait) {
        self.context().assert_of(fs);
        // SAFETY: the caller's promise.
        unsafe { self.object().repair_taken_over(fs, &fs.epochs().pin(heir), wait) };
    }

    /// Calls `each` for every descriptor's number, in order.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn for_each_descriptor(&self, fs: &ScaleFs, core: &Core<'_>, each: impl FnMut(u32)) {
        self.context().assert_of(fs);
        self.object().for_each_descriptor(&fs.epochs().pin(core), each);
    }

    /// Calls `each` for every range of pages that is mapped, in order.
    ///
    /// # Panics
    /// If the process is of another instance.
    pub fn for_each_mapped(&self, fs: &ScaleFs, core: &Core<'_>, each: impl FnMut(Range<u64>)) {
        self.context().assert_of(fs);
        self.object().memory.for_each_mapped(&fs.epochs().pin(core), each);
    }
}

impl ScaleFs {
    /// A process that was handed over to the core's owner. `None` if it has received it already, or another owner was meant, or
    /// who handed it over has ended with it.
    pub fn receive(&self, core: &Core<'_>, handed_over: HandedOver, wait: &impl Wait) -> Option<Process> {
        let guard = self.epochs().pin(core);
        let slot = self.processes.lock_slot(&guard, handed_over.place, wait).ok()?;
        let object = object_at(slot.value()?);
        let life = &object.life;
        let is_meant = object.relatives.number() == handed_over.number
            && core.owner().is_some_and(|owner| owner.number() == life.runner.load(Ordering::Acquire))
            && life.on_its_way.swap(0, Ordering::AcqRel) != 0;
        is_meant.then(|| Process(NonNull::from(object)))
    }

    /// Ends all processes that a dead owner of cores ran, as by SIGKILL: their descriptors are closed and their memory is given
    /// up, and their parents are told. `core` acts, for its owner: if that dies too, its heir does the rest.
    ///
    /// # Safety
    /// `dead` has stopped for good. All cores that it had were taken over by the caller, are `taken_over`, and have been repaired
    /// ([`ScaleFs::repair_taken_over`]).
    pub unsafe fn end_processes_of(&self, core: &Core<'_>, dead: OwnerId, taken_over: &[&Core<'_>], wait: &impl Wait) {
        let by = core.owner().map_or(0, OwnerId::number);
        let guard = self.epochs().pin(core);
        self.processes.for_each(&guard, |place, _| {
            let Some(process) = self.claim(&guard, place.start, (dead.number(), by), wait) else { return };
            if planted("scalefs: an heir closes nothing") {
                process.object().life.enter(EMPTIED);
            }
            if process.object().life.is(RUNS) {
                // All their stores are over, before one heir waits for those of others.
                for heir in taken_over.iter().filter(|_| !planted("scalefs: one heir waits for the stores of the next"))
                {
                    process.object().memory.mmu().end_store(&self.epochs().pin(heir));
                }
                for heir in taken_over {
                    // SAFETY: the caller's promise; the arrays have not been given up.
                    unsafe { process.object().repair_taken_over(self, &self.epochs().pin(heir), wait) };
                }
            }
            process.end(self, core, |object, guard| object.relatives.end_killed(self, guard, wait), wait);
        });
    }

    /// Whether a process has a descriptor by which an object may be written, of those whose owner counts. All tables are looked
    /// through: for calls that are rare, so that opening and closing share nothing for it.
    pub(crate) fn is_open_for_writing(
        &self,
        guard: &Guard<'_>,
        node: InodeRef,
        counts: impl Fn(OwnerId) -> bool,
        wait: &impl Wait,
    ) -> bool {
        let mut found = false;
        self.processes.for_each(guard, |place, _| {
            let Ok(slot) = self.processes.lock_slot(guard, place.start, wait) else { return };
            let Some(process) = slot.value().map(object_at) else { return };
            let runner = || OwnerId::new(process.life.runner.load(Ordering::Acquire));
            found = found || process.life.is(RUNS) && process.may_write(guard, node) && runner().is_some_and(&counts);
        });
        found
    }

    /// The process at a place of the table, if it is one that the first owner runs, for the second.
    fn claim(&self, guard: &Guard<'_>, place: u64, (from, to): (u64, u64), wait: &impl Wait) -> Option<Process> {
        let slot = self.processes.lock_slot(guard, place, wait).ok()?;
        let object = object_at(slot.value()?);
        let claimed = object.life.runner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        claimed.is_ok().then(|| Process(NonNull::from(object)))
    }
}
