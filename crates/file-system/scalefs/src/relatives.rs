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
    /// Immutable once it is adopted; zero before.
    pub(crate) number: ProcessNumber,
    /// As `number`: address of the parent's family, with a reference; or zero.
    parent: u64,
    parent_number: ProcessNumber,
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
        Relatives { number: ProcessNumber(0), parent: 0, parent_number: ProcessNumber(0), family: AtomicU64::new(0) }
    }

    /// Of a process that is nobody's child.
    pub(crate) fn without_parent(fs: &ScaleFs, core: &Core<'_>) -> Relatives {
        Relatives { number: family::number_without_parent(core, fs.count_process(core)), ..Relatives::unknown() }
    }

    /// Notes that the process is about to end: from here on its heir says that it was killed.
    pub(crate) fn begin_end<'s>(&self, fs: &'s ScaleFs, core: &'s Core<'_>) -> Option<FamilyNote<'s>> {
        (self.parent != 0).then(|| {
            let note = fs.work_on_family(core, self.parent);
            note.of_child(self.number);
            note
        })
    }

    /// Its children have no parent any more; the reference to its family is given up.
    pub(crate) fn leave_children(&self, fs: &ScaleFs, core: &Core<'_>) {
        let address = self.family.swap(0, Ordering::AcqRel);
        if address != 0 {
            let family = family_at(address);
            family.set_gone();
            family.change_references(fs.counts(), core, -1);
        }
    }

    /// Tells the parent how the process ended; the reference to the parent's family is given up.
    pub(crate) fn end(&self, fs: &ScaleFs, core: &Core<'_>, ended: Ended, wait: &impl Wait) {
        if self.parent != 0 {
            let family = family_at(self.parent);
            family.end(&fs.epochs().pin(core), self.number, ended, wait);
            family.change_references(fs.counts(), core, -1);
        }
    }

    /// The number of its parent (POSIX `getppid`); `None` if it has none, or if that has ended.
    pub(crate) fn parent(&self) -> Option<ProcessNumber> {
        let Relatives { parent, parent_number, .. } = *self;
        (parent != 0 && !family_at(parent).is_gone()).then_some(parent_number)
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
        child: &mut Relatives,
        wait: &impl Wait,
    ) -> Result<(), Errno> {
        let core = guard.core();
        let address = self.family_or_new(core).map_err(|OutOfMemory| Errno::ENOMEM)?;
        let family = family_at(address);
        let count = fs.count_process(core);
        let note = fs.work_on_family(core, address);
        let number = family.add(guard, count, fs.child_hint(core), |number| note.of_child(number), wait)?;
        family.change_references(fs.counts(), core, 1);
        (child.number, child.parent, child.parent_number) = (number, address, self.number);
        Ok(())
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
