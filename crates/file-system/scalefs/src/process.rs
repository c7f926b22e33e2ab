//! Processes: a context for calls on names, and a table of descriptors. How they begin and end: `lives.rs`.
//!
//! **The table** is a radix array: a descriptor's number leads to its description, each on a line of its own, read
//! without locks. A new descriptor gets the lowest free number (POSIX.1-2017, 2.14), which the call finds by looking at
//! all lower ones, and so shares a line with whoever opens or closes one of them; or, with O_ANYFD (section 4 of the
//! paper), a number of the calling core's own part, and shares nothing.
//!
//! ```text
//! 0 .. 2^20              lowest free number
//! (c + 1) * 2^20 + i     core c's part
//! ```
//!
//! **Race of two openers** for a number: it is taken under its lock, and then all lower ones are looked at again.
//!
//! **Marks** say for what a number *may* be open, each on a line of its own: reading, writing, whether it is a pipe. A
//! call that finds its mark absent fails with EBADF and has not looked at the table. So `open` for writing and `read`
//! share nothing even if they have the same number: there is nothing to read from before and after it (section 6.3,
//! "don't read unless necessary").
//!
//! ```text
//! 4n reading │ 4n + 1 writing │ 4n + 2 pipe │     marks of number n, changed under n's lock in the table:
//! set the marks of the new description;  change the table;  clear those of the old one that the new one does not have
//! ```
//! So what the table says has its marks set, at every moment; a mark alone says nothing.
//!
//! **Survivors.** Whether a descriptor survives `exec` is marked in an array of its own, which has slots only where one does:
//! posix_spawn goes through it, and touches no line of the others, however many they are.
//!
//! **Numbers and children**: `family.rs`.
#![allow(unsafe_code)]

use core::ops::{ControlFlow, Deref};

use address_space::AddressSpace;
use epoch::Guard;
#[cfg(feature = "std")]
use percpu::CoreIndex;
use percpu::{ArenaObject, CacheLine, Core, ObjectKind, OutOfMemory, object_kind};
use posix_calls::{DESCRIPTOR_LIMIT, Errno, FileAction, NumberChoice, OnExec, Use};
use radix::{LockedSlot, RadixArray};
use sync::atomic::{AtomicU32, Ordering};
use sync::mutant::planted;
use sync::{OwnWord, Wait};

use crate::context::Context;
use crate::description::{DescriptionPtr, DescriptionRef};
use crate::file_locks::Leaving;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;
use crate::life::Life;
use crate::relatives::Relatives;
use crate::window::WindowMmu;

/// A process in the arena: what its calls have in common.
#[repr(C)]
pub(crate) struct ProcessObject {
    pub(crate) context: Context,
    descriptors: CacheLine<Numbers>,
    marks: CacheLine<RadixArray>,
    survivors: CacheLine<RadixArray>,
    pub(crate) memory: AddressSpace<WindowMmu>,
    pub(crate) relatives: CacheLine<Relatives>,
    pub(crate) life: CacheLine<Life>,
}

/// To what numbers lead, and what is looked at wherever one is closed.
struct Numbers {
    array: RadixArray,
    /// Atomic, never less: whether the process has had locks.
    has_locks: AtomicU32,
}

impl Deref for Numbers {
    type Target = RadixArray;

    #[inline]
    fn deref(&self) -> &RadixArray {
        &self.array
    }
}

/// What tools call a process's parts.
pub(crate) const PROCESS: ObjectKind = object_kind!(16, ProcessObject as "process" {
    "context" = context,
    "root of the descriptors" = descriptors.0.array,
    "whether it has locks" = descriptors.0.has_locks,
    "root of their marks" = marks,
    "root of those that survive exec" = survivors,
    "memory" = memory,
    "relatives" = relatives,
    "life" = life,
});

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for ProcessObject {
    const KIND: ObjectKind = PROCESS;
}

/// What a number may be open for; its marks' places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Reading = 0,
    Writing = 1,
    Pipe = 2,
}

impl Mark {
    const ALL: [Mark; 3] = [Mark::Reading, Mark::Writing, Mark::Pipe];

    /// The index of a number's mark. Those of one number lie in one leaf.
    #[inline]
    fn index(self, number: u64) -> u64 {
        number << 2 | self as u64
    }
}

/// What an index of the table holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) description: DescriptionPtr,
    pub(crate) on_exec: OnExec,
}

impl Descriptor {
    // Descriptions are aligned to lines: their lowest bits are free.
    fn decode(value: u64) -> Descriptor {
        let on_exec = if value & 1 != 0 { OnExec::Close } else { OnExec::Keep };
        Descriptor { description: DescriptionPtr::from_address(value & !1), on_exec }
    }

    fn encode(self) -> u64 {
        self.description.address() | u64::from(self.on_exec == OnExec::Close)
    }

    fn has(self, mark: Mark) -> bool {
        let opened = &self.description.get().opened;
        match mark {
            Mark::Reading => opened.mode.read,
            Mark::Writing => opened.mode.write,
            Mark::Pipe => self.description.pipe_end().is_some(),
        }
    }
}

impl ProcessObject {
    /// A process without descriptors and children, at this place of the table.
    #[inline]
    pub(crate) fn new(context: Context, relatives: Relatives, life: Life) -> ProcessObject {
        // SAFETY: used with cores of the instance's arena and guards of its epochs, whose maintenance frees nodes.
        let array = || CacheLine(unsafe { RadixArray::new() });
        // SAFETY: as above; used with the instance's pages and counts, whose maintenance gives mappings back.
        let memory = unsafe { AddressSpace::with_mmu(WindowMmu::new()) };
        ProcessObject {
            context,
            descriptors: CacheLine(Numbers { array: array().0, has_locks: AtomicU32::new(0) }),
            marks: array(),
            survivors: array(),
            memory,
            relatives: CacheLine(relatives),
            life: CacheLine(life),
        }
    }

    /// Gives up all that it has. Nobody calls for it any more.
    ///
    /// # Safety
    /// No call of the process is under way or follows, and its descriptors are closed. Once.
    pub(crate) unsafe fn release(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        // SAFETY: the caller's promise.
        unsafe {
            self.release_memory(fs, core, wait);
            self.descriptors.destroy(core);
            self.marks.destroy(core);
            self.survivors.destroy(core);
        }
    }

    /// Closes the descriptors of this kind.
    pub(crate) fn close_all(
        &self,
        fs: &ScaleFs,
        core: &Core<'_>,
        wait: &impl Wait,
        which: impl Fn(Descriptor) -> bool,
    ) {
        let guard = fs.epochs().pin(core);
        self.descriptors.for_each(&guard, |range, value| {
            if which(Descriptor::decode(value))
                && let Some(closed) = self.remove(fs, &guard, range.start, wait)
            {
                closed.description.release(fs, core, wait);
            }
        });
    }

    /// Unlocks what a dead thread of the process was changing.
    ///
    /// # Safety
    /// `guard` pins a core that was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over(&self, fs: &ScaleFs, guard: &Guard<'_>, wait: &impl Wait) {
        // SAFETY: the caller's promise.
        unsafe {
            self.descriptors.unlock_taken_over(guard);
            self.marks.unlock_taken_over(guard);
            self.survivors.unlock_taken_over(guard);
            self.repair_memory_taken_over(fs, guard, wait);
        }
    }

    /// Tells `each` the core that holds a lock of a number, lock by lock.
    #[cfg(feature = "std")]
    pub(crate) fn for_each_held(&self, guard: &Guard<'_>, mut each: impl FnMut(CoreIndex)) {
        for array in [&self.descriptors.array, &self.marks, &self.survivors] {
            array.for_each_held(guard, &mut each);
        }
    }

    /// Calls `each` for every descriptor's number, in order.
    pub(crate) fn for_each_descriptor(&self, guard: &Guard<'_>, mut each: impl FnMut(u32)) {
        self.descriptors.for_each(guard, |range, _| each(range.start as u32));
    }

    /// Whether it has a descriptor by which an object may be written.
    pub(crate) fn may_write(&self, guard: &Guard<'_>, node: InodeRef) -> bool {
        let mut found = false;
        self.descriptors.for_each(guard, |_, value| {
            let opened = &Descriptor::decode(value).description.get().opened;
            found |= opened.mode.write && opened.node == node;
        });
        found
    }

    /// Gives a child that nobody else knows yet all descriptors.
    pub(crate) fn pass_all(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        child: &ProcessObject,
        wait: &impl Wait,
    ) -> Result<(), Errno> {
        let all = |_, value| Some(Descriptor::decode(value).on_exec);
        self.pass_each(fs, guard, (&self.descriptors, child), all, wait)
    }

    /// What a number leads to.
    #[inline]
    pub(crate) fn descriptor(&self, guard: &Guard<'_>, number: u32) -> Option<Descriptor> {
        self.descriptors.get(guard, number.into()).map(Descriptor::decode)
    }

    /// Whether a number may lead to what serves this use. If not, it did not at one moment of the call.
    #[inline]
    pub(crate) fn may_serve(&self, guard: &Guard<'_>, number: u32, usage: Use, wait: &impl Wait) -> bool {
        let mark = match usage {
            Use::Read | Use::ReadAt => Mark::Reading,
            Use::Write | Use::WriteAt => Mark::Writing,
        };
        let number = number.into();
        match usage {
            Use::Read | Use::Write => self.marks.get(guard, mark.index(number)).is_some(),
            Use::ReadAt if planted("scalefs: two marks are looked at one after the other") => {
                self.marks.get(guard, Mark::Reading.index(number)).is_some()
                    || self.marks.get(guard, Mark::Pipe.index(number)).is_some()
            }
            // Together: nobody has changed the one while we looked at the other.
            Use::ReadAt | Use::WriteAt => self.marks.read(guard, mark.index(number), wait, |is_set| {
                is_set.is_some() || self.marks.get(guard, Mark::Pipe.index(number)).is_some()
            }),
        }
    }

    /// Lets a number that the caller has locked lead to what is in the core's hand, or to none; then that to which it led is in
    /// the hand, and returned. Fails without memory for marks, and then nothing has changed.
    fn put(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        (number, slot): (u64, &LockedSlot<'_>),
        new: Option<Descriptor>,
        wait: &impl Wait,
    ) -> Result<Option<Descriptor>, OutOfMemory> {
        let old = slot.value().map(Descriptor::decode);
        let change = || {
            let given = old.map(|old| old.description.address());
            fs.hand(guard.core()).exchange(|| slot.change(|| new.map(Descriptor::encode)), given);
        };
        self.mark(guard, number, (old, new), change, wait)?;
        Ok(old)
    }

    /// Does something that no close of a number comes in between, which leads to this description.
    pub(crate) fn while_open<T>(
        &self,
        guard: &Guard<'_>,
        (number, description): (u32, DescriptionRef<'_>),
        wait: &impl Wait,
        body: impl FnOnce() -> T,
    ) -> Result<T, Errno> {
        let slot = self.descriptors.lock_slot(guard, number.into(), wait).map_err(|OutOfMemory| Errno::ENOMEM)?;
        match slot.value().map(Descriptor::decode) {
            Some(found) if found.description.address() == description.address() => Ok(body()),
            _ => Err(Errno::EBADF),
        }
    }

    /// Whether closing a descriptor may give up locks.
    #[inline]
    pub(crate) fn has_locks(&self) -> bool {
        self.descriptors.has_locks.load(Ordering::Acquire) != 0
    }

    /// From now on closing a descriptor may.
    pub(crate) fn will_have_locks(&self) {
        // Look without writing first.
        if !self.has_locks() {
            self.descriptors.has_locks.store(1, Ordering::SeqCst);
        }
    }

    /// As [`ProcessObject::put`] where the process may have locks of the file to which the number has led: it gives them up.
    #[cold]
    fn put_and_unlock(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        (number, slot): (u64, &LockedSlot<'_>),
        new: Option<Descriptor>,
        wait: &impl Wait,
    ) -> Result<Option<Descriptor>, OutOfMemory> {
        let closed = slot.value().map(Descriptor::decode);
        if let Some(closed) = closed {
            self.note_leaving(fs, guard.core(), closed);
        }
        let put = self.put(fs, guard, (number, slot), new, wait);
        if let (Some(closed), Ok(_)) = (closed, &put) {
            self.unlock(fs, guard.core(), closed, wait);
        }
        fs.lock_note(guard.core()).forget();
        put
    }

    /// Notes that the process gives up its locks of the file of a descriptor, and that may be the last one.
    fn note_leaving(&self, fs: &ScaleFs, core: &Core<'_>, closed: Descriptor) {
        let leaving = Leaving { process: self.relatives.number().0, description: closed.description.address() };
        fs.lock_note(core).note(closed.description.get().opened.node.to_bits(), leaving);
    }

    /// Gives up the process's locks of a file of which a descriptor was closed.
    #[cold]
    fn unlock(&self, fs: &ScaleFs, core: &Core<'_>, closed: Descriptor, wait: &impl Wait) {
        if !planted("scalefs: a process keeps its locks when it closes the file") {
            fs.give_up_locks_of(core, closed.description.get().opened.node, self.relatives.number(), wait);
        }
    }

    /// Lets `change` change to what a number leads that the caller has locked, and the marks with it. Fails without memory for
    /// marks, and then nothing has changed.
    fn mark(
        &self,
        guard: &Guard<'_>,
        number: u64,
        (old, new): (Option<Descriptor>, Option<Descriptor>),
        change: impl FnOnce(),
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory> {
        let has = |descriptor: Option<Descriptor>, mark| descriptor.is_some_and(|descriptor| descriptor.has(mark));
        let set =
            |mark: Mark, value| self.marks.lock_slot(guard, mark.index(number), wait).map(|slot| slot.change(|| value));
        let clears = |mark: &Mark| has(old, *mark) && !has(new, *mark);
        let survives = |descriptor: Option<Descriptor>| descriptor.is_some_and(|found| found.on_exec == OnExec::Keep);
        let (survived, survives) = (survives(old), survives(new));
        if survives && !survived {
            self.set_survives(guard, number, true, wait)?;
        }
        if planted("scalefs: marks are cleared first") {
            for mark in Mark::ALL.into_iter().filter(clears) {
                set(mark, None)?;
            }
        }
        // Only the first can lack memory: they have a leaf in common.
        for mark in Mark::ALL.into_iter().filter(|mark| has(new, *mark) && !has(old, *mark)) {
            if let Err(OutOfMemory) = set(mark, Some(0)) {
                if survives && !survived {
                    self.set_survives(guard, number, false, wait)?;
                }
                return Err(OutOfMemory);
            }
        }
        change();
        for mark in Mark::ALL.into_iter().filter(clears) {
            set(mark, None)?;
        }
        if survived && !survives {
            self.set_survives(guard, number, false, wait)?;
        }
        Ok(())
    }

    /// Marks whether a number that the caller has locked may lead to what survives `exec`. It can lack memory only the first
    /// time that one does.
    fn set_survives(
        &self,
        guard: &Guard<'_>,
        number: u64,
        survives: bool,
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory> {
        let mark = self.survivors.lock_slot(guard, number, wait)?;
        mark.change(|| survives.then_some(0));
        Ok(())
    }

    /// Takes a number out of the table, for the caller to release what it led to.
    pub(crate) fn remove(&self, fs: &ScaleFs, guard: &Guard<'_>, number: u64, wait: &impl Wait) -> Option<Descriptor> {
        // Look without writing first.
        self.descriptors.get(guard, number)?;
        let slot = self.descriptors.lock_slot(guard, number, wait).ok()?;
        if self.has_locks() {
            return self.put_and_unlock(fs, guard, (number, &slot), None, wait).ok()?;
        }
        self.put(fs, guard, (number, &slot), None, wait).ok()?
    }

    /// Locks a free number.
    fn lock_free<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        choice: NumberChoice,
        hint: &OwnWord<u32>,
        wait: &impl Wait,
    ) -> Result<(u32, LockedSlot<'g>), Errno> {
        let part = (guard.core().index().get() as u64 + 1) * u64::from(DESCRIPTOR_LIMIT);
        let (start, end) = match choice {
            NumberChoice::LowestFrom(lowest) => (u64::from(lowest), u64::from(DESCRIPTOR_LIMIT)),
            NumberChoice::Any => (part, part + u64::from(DESCRIPTOR_LIMIT)),
        };
        // Any number will do: the one that the core closed last is at hand.
        let hinted = part + u64::from(hint.get());
        let mut number = match choice {
            NumberChoice::Any if self.descriptors.get(guard, hinted).is_none() => hinted,
            _ => self.descriptors.first_empty(guard, start),
        };
        loop {
            if number >= end {
                return Err(Errno::EMFILE);
            }
            let slot = self.descriptors.lock_slot(guard, number, wait).map_err(|OutOfMemory| Errno::ENOMEM)?;
            if slot.value().is_none()
                && (choice == NumberChoice::Any || self.descriptors.first_empty(guard, start) == number)
            {
                return Ok((number as u32, slot));
            }
            drop(slot);
            number = self.descriptors.first_empty(guard, start);
        }
    }

    /// Gives a description, with the caller's reference to it, a number. On failure the reference stays the caller's.
    pub(crate) fn install(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        description: DescriptionPtr,
        (choice, on_exec): (NumberChoice, OnExec),
        hint: &OwnWord<u32>,
        wait: &impl Wait,
    ) -> Result<u32, Errno> {
        let (number, slot) = self.lock_free(guard, choice, hint, wait)?;
        let descriptor = Descriptor { description, on_exec };
        let put = self.put(fs, guard, (number.into(), &slot), Some(descriptor), wait);
        put.map(|_| number).map_err(|OutOfMemory| Errno::ENOMEM)
    }

    /// Another descriptor for what `number` leads to.
    pub(crate) fn duplicate(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        number: u32,
        choice: (NumberChoice, OnExec),
        hint: &OwnWord<u32>,
        wait: &impl Wait,
    ) -> Result<u32, Errno> {
        let held = self.hold(fs, guard, number, wait)?;
        self.install(fs, guard, held.description, choice, hint, wait)
            .inspect_err(|_| held.description.release(fs, guard.core(), wait))
    }

    /// Lets `target` lead to what `number` leads to; what it led to before is released (POSIX `dup2`).
    pub(crate) fn duplicate_to(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        (number, target): (u32, u32),
        on_exec: OnExec,
        wait: &impl Wait,
    ) -> Result<(), Errno> {
        self.pass(fs, guard, number, (self, target, on_exec), wait)
    }

    /// As [`Self::duplicate_to`] if `target` leads to something; else it goes on leading to nothing. Whether it did.
    pub(crate) fn duplicate_over(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        (number, target): (u32, u32),
        on_exec: OnExec,
        wait: &impl Wait,
    ) -> Result<bool, Errno> {
        self.pass_if(fs, guard, number, (self, target, on_exec), |before| before.is_some(), wait)
    }

    /// Lets `target` in a process lead to what `number` leads to in this one; what it led to before is released.
    pub(crate) fn pass(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        number: u32,
        to: (&ProcessObject, u32, OnExec),
        wait: &impl Wait,
    ) -> Result<(), Errno> {
        self.pass_if(fs, guard, number, to, |_| true, wait).map(drop)
    }

    /// The same if what `target` led to before is as it is to be; whether it was.
    fn pass_if(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        number: u32,
        (to, target, on_exec): (&ProcessObject, u32, OnExec),
        is_wanted: impl Fn(Option<u64>) -> bool,
        wait: &impl Wait,
    ) -> Result<bool, Errno> {
        let held = self.hold(fs, guard, number, wait)?;
        let passed = Descriptor { on_exec, ..held };
        // Whoever changes nothing writes nothing.
        if to.descriptor(guard, target) == Some(passed) {
            // Linux: `do_dup2` closes what was there, whatever comes.
            if to.has_locks() {
                to.note_leaving(fs, guard.core(), passed);
                to.unlock(fs, guard.core(), passed, wait);
                fs.lock_note(guard.core()).forget();
            }
            held.description.release(fs, guard.core(), wait);
            return Ok(true);
        }
        let mut is_passed = true;
        let put = to.descriptors.lock_slot(guard, target.into(), wait).and_then(|slot| {
            is_passed = is_wanted(slot.value());
            match is_passed {
                false => Ok(Some(held)),
                true if to.has_locks() => to.put_and_unlock(fs, guard, (target.into(), &slot), Some(passed), wait),
                true => to.put(fs, guard, (target.into(), &slot), Some(passed), wait),
            }
        });
        let released = *put.as_ref().unwrap_or(&Some(held));
        if let Some(released) = released {
            released.description.release(fs, guard.core(), wait);
        }
        put.map(|_| is_passed).map_err(|OutOfMemory| Errno::ENOMEM)
    }

    /// Passes the descriptors that survive `exec` to a process that is being made, but those whose numbers these actions change.
    pub(crate) fn pass_surviving(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        (to, actions): (&ProcessObject, &[FileAction<'_>]),
        wait: &impl Wait,
    ) -> Result<(), Errno> {
        let survives = |number, _| (!FileAction::change(actions, number)).then_some(OnExec::Keep);
        if planted("scalefs: posix_spawn looks at every descriptor") {
            let keeps =
                |number, value| survives(number, value).filter(|kept| Descriptor::decode(value).on_exec == *kept);
            return self.pass_each(fs, guard, (&self.descriptors, to), keeps, wait);
        }
        self.pass_each(fs, guard, (&self.survivors, to), survives, wait)
    }

    /// Passes the numbers of an array to a process that is being made, those for which `on_exec` says what becomes of them.
    fn pass_each(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        (numbers, to): (&RadixArray, &ProcessObject),
        on_exec: impl Fn(u32, u64) -> Option<OnExec>,
        wait: &impl Wait,
    ) -> Result<(), Errno> {
        let passed = numbers.try_for_each_in(guard, 0..1 << radix::INDEX_BITS, |part, value| {
            let number = part.start as u32;
            let passed = on_exec(number, value)
                .map_or(Ok(()), |on_exec| self.pass(fs, guard, number, (to, number, on_exec), wait));
            match passed {
                // Closed meanwhile.
                Ok(()) | Err(Errno::EBADF) => ControlFlow::Continue(()),
                Err(errno) => ControlFlow::Break(errno),
            }
        });
        passed.break_value().map_or(Ok(()), Err)
    }

    /// What a number leads to, counted as one descriptor more, in the core's hand. A pipe's or socket's is counted under the number's lock: the last
    /// descriptor must not be closed between finding and counting.
    fn hold(&self, fs: &ScaleFs, guard: &Guard<'_>, number: u32, wait: &impl Wait) -> Result<Descriptor, Errno> {
        let found = self.descriptor(guard, number).ok_or(Errno::EBADF)?;
        let is_careless = planted("scalefs: an end is counted without the lock of its number");
        if !found.description.counts_descriptors() || is_careless {
            found.description.duplicate(fs, guard.core());
            // Nobody has got locks in between, which the last descriptor that is closed gives up.
            if !found.description.counts_descriptors() || is_careless {
                return Ok(found);
            }
            found.description.release(fs, guard.core(), wait);
        }
        let slot = self.descriptors.lock_slot(guard, number.into(), wait).map_err(|OutOfMemory| Errno::ENOMEM)?;
        let held = slot.value().map(Descriptor::decode).ok_or(Errno::EBADF)?;
        held.description.duplicate(fs, guard.core());
        Ok(held)
    }

    /// Whether a descriptor is closed by `exec`, and setting that.
    pub(crate) fn set_on_exec(
        &self,
        guard: &Guard<'_>,
        number: u32,
        on_exec: OnExec,
        wait: &impl Wait,
    ) -> Result<OnExec, Errno> {
        let found = self.descriptor(guard, number).ok_or(Errno::EBADF)?;
        if found.on_exec == on_exec {
            return Ok(on_exec);
        }
        let slot = self.descriptors.lock_slot(guard, number.into(), wait).map_err(|OutOfMemory| Errno::ENOMEM)?;
        let descriptor = slot.value().map(Descriptor::decode).ok_or(Errno::EBADF)?;
        let changed = Some(Descriptor { on_exec, ..descriptor });
        let change = || slot.change(|| changed.map(Descriptor::encode));
        self.mark(guard, number.into(), (Some(descriptor), changed), change, wait)
            .map_err(|OutOfMemory| Errno::ENOMEM)?;
        Ok(descriptor.on_exec)
    }
}
