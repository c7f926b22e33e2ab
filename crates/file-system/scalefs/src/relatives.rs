//! Whose child a process is, and who are its own.
#![allow(unsafe_code)]

use epoch::Guard;
use percpu::{Core, OutOfMemory};
use posix_calls::{ChildState, Ended, Errno, ProcessNumber};
use sync::Wait;
use sync::atomic::{AtomicU64, Ordering};

use crate::family::{self, Family};
use crate::instance::{FamilyNote, ScaleFs};

/// Whose child a process is, and its own children.
pub(crate) struct Relatives {
    /// Atomic: zero before it is adopted, as the next two; then they stay as they are.
    number: AtomicU64,
    /// Atomic: address of the parent's family, with a reference; or zero.
    parent: AtomicU64,
    parent_number: AtomicU64,
    /// Atomic: address of its own family, with a reference; zero until it has a child.
    family: AtomicU64,
}

/// The family at an address that is not zero, with a reference of whoever asks.
fn family_at<'f>(address: u64) -> &'f Family {
    // SAFETY: addresses in processes, and in notes of cores that work on one, are those of families that `Family::make` has
    // made; whoever has one has a reference.
    unsafe { &*(address as usize as *const Family) }
}

impl Relatives {
    /// Of a process without a number.
    pub(crate) fn unknown() -> Relatives {
        let [number, parent, parent_number, family] = [0; 4].map(AtomicU64::new);
        Relatives { number, parent, parent_number, family }
    }

    /// Of a process that is nobody's child.
    pub(crate) fn without_parent(fs: &ScaleFs, core: &Core<'_>) -> Relatives {
        let number = family::number_without_parent(core, fs.count_process(core));
        Relatives { number: AtomicU64::new(number.0), ..Relatives::unknown() }
    }

    #[inline]
    pub(crate) fn number(&self) -> ProcessNumber {
        ProcessNumber(self.number.load(Ordering::Acquire))
    }

    /// The parent's family, if there is one.
    fn parents_family(&self) -> Option<&Family> {
        match self.parent.load(Ordering::Acquire) {
            0 => None,
            address => Some(family_at(address)),
        }
    }

    fn work_on_parents_family<'s>(&self, fs: &'s ScaleFs, guard: &'s Guard<'_>) -> FamilyNote<'s> {
        fs.work_on_family(guard.core(), self.parent.load(Ordering::Relaxed))
    }

    /// Its children have no parent any more; the reference to its family is given up. For the heir of a process that died in it
    /// once more: then a reference may stay.
    pub(crate) fn leave_children(&self, fs: &ScaleFs, core: &Core<'_>) {
        if let Some(family) = self.family() {
            family.set_gone();
            self.family.store(0, Ordering::Release);
            family.change_references(fs.counts(), core, -1);
        }
    }

    /// Tells the parent how the process ended.
    pub(crate) fn end(&self, fs: &ScaleFs, guard: &Guard<'_>, ended: Ended, wait: &impl Wait) {
        if let Some(family) = self.parents_family() {
            let _note = self.work_on_parents_family(fs, guard);
            family.end(guard, self.number(), ended, wait);
        }
    }

    /// Tells the parent that the process was killed, unless it knows already how it ended.
    pub(crate) fn end_killed(&self, fs: &ScaleFs, guard: &Guard<'_>, wait: &impl Wait) {
        if let Some(family) = self.parents_family() {
            let _note = self.work_on_parents_family(fs, guard);
            family.end_killed(guard, self.number(), wait);
        }
    }

    /// Gives up the reference to the parent's family: once, when that has been told.
    pub(crate) fn leave_parent(&self, fs: &ScaleFs, core: &Core<'_>) {
        if let Some(family) = self.parents_family() {
            family.change_references(fs.counts(), core, -1);
        }
    }

    /// The number of its parent (POSIX `getppid`); `None` if it has none, or if that has ended.
    pub(crate) fn parent(&self) -> Option<ProcessNumber> {
        let is_there = self.parents_family().is_some_and(|family| !family.is_gone());
        is_there.then(|| ProcessNumber(self.parent_number.load(Ordering::Acquire)))
    }

    /// Its family, if it has had a child.
    #[inline]
    pub(crate) fn family(&self) -> Option<&Family> {
        match self.family.load(Ordering::Acquire) {
            0 => None,
            address => Some(family_at(address)),
        }
    }

    fn family_or_new(&self, core: &Core<'_>) -> Result<u64, OutOfMemory> {
        let family = &self.family;
        // Look without writing first.
        let known = family.load(Ordering::Acquire);
        if known != 0 {
            return Ok(known);
        }
        let made = Family::make(core)?;
        let address = made.as_ptr() as usize as u64;
        match family.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(address),
            Err(known) => {
                // SAFETY: nobody has seen it.
                unsafe { Family::free(made, core) };
                Ok(known)
            }
        }
    }

    /// Makes a process without a number a child of this one.
    pub(crate) fn adopt(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        child: &Relatives,
        wait: &impl Wait,
    ) -> Result<(), Errno> {
        let core = guard.core();
        let address = self.family_or_new(core).map_err(|OutOfMemory| Errno::ENOMEM)?;
        let family = family_at(address);
        let count = fs.count_process(core);
        let _note = fs.work_on_family(core, address);
        // The child knows its parent, with a reference, before the parent knows it: its heir tells that.
        let told = |number: ProcessNumber| {
            family.change_references(fs.counts(), core, 1);
            child.number.store(number.0, Ordering::Relaxed);
            child.parent_number.store(self.number().0, Ordering::Relaxed);
            child.parent.store(address, Ordering::Release);
        };
        family.add(guard, count, fs.child_hint(core), told, wait)
    }

    /// What becomes of a child; one that has ended is none afterwards.
    pub(crate) fn take_ended(
        &self,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        child: ProcessNumber,
        wait: &impl Wait,
    ) -> ChildState {
        match self.family.load(Ordering::Acquire) {
            0 => ChildState::NoChild,
            address => {
                let _note = fs.work_on_family(guard.core(), address);
                family_at(address).take_ended(guard, child, wait)
            }
        }
    }
}
