//! The children of a process: who they are, and how they ended.
//!
//! ```text
//! │ gone 64 │ references 128 │ children 192 │ ended 256 │
//! children[c * 2^20 + i]   which of the processes of core c it is: the i-th child that c has made here
//! ended[c * 2^20 + i]      how it ended
//! a process's number:      which of the processes of core c │ c │ i
//! ```
//! Both are radix arrays: a line for each child in each. A core makes children in its own part, a number tells where its
//! child stands, and a child says there how it ended. So calls on different children share nothing, nor do those that make
//! some; and a wait for any child that finds one looks no further. The second array is apart from the first, so that who
//! looks for children that have ended does not look at what changes with each new one.
//!
//! **Lives.** The process has a reference, and so has each child until it ends (crate `refcache`). How children ended of
//! which the parent has gone is forgotten with the rest.
//!
//! **Lock order**: a child's slot in `children`, then that in `ended`.
//!
//! **Death of a process** in a call on a family, which it has noted: [`Family::repair_taken_over`]. What becomes of the processes
//! that it ran: `lives.rs`.
#![allow(unsafe_code)]

use core::mem::offset_of;
use core::ops::{ControlFlow, Range};
use core::ptr::NonNull;

use epoch::Guard;
use percpu::{ArenaObject, CacheLine, Core, ObjectKind, OutOfMemory, object_kind};
use posix_calls::{ChildState, Ended, Errno, ProcessNumber};
use radix::RadixArray;
use refcache::{Counted, CountedKind, RefCache};
use sync::atomic::{AtomicU32, Ordering};
use sync::mutant::planted;
use sync::{OwnWord, Wait};

use crate::places;

/// Kind of the count of references, for the callback of `RefCache::maintain`.
pub(crate) const KIND_FAMILY: CountedKind = CountedKind(5);
pub(crate) const FAMILY: ObjectKind = object_kind!(13, Family as "family of processes" {
    "gone" = gone,
    "references" = references,
    "children" = children,
    "ended" = ended,
});

/// Bits of a number that tell where the child stands.
const PLACE_BITS: u32 = 28;
const PLACES: u64 = 1 << PLACE_BITS;
const _: () = assert!(PLACES == places::ALL);
/// The signal of a process that nobody runs any more (SIGKILL).
const KILLED: Ended = Ended::Killed(9);

/// The children of a process, in the arena.
#[repr(C)]
pub(crate) struct Family {
    /// Atomic: whether the process has ended.
    gone: CacheLine<AtomicU32>,
    references: CacheLine<Counted>,
    children: CacheLine<RadixArray>,
    ended: CacheLine<RadixArray>,
}

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for Family {
    const KIND: ObjectKind = FAMILY;
}

/// A child's place in its parent's family.
fn place_of(number: ProcessNumber) -> u64 {
    number.0 & (PLACES - 1)
}

/// Which of the processes of its core it is.
fn count_of(number: ProcessNumber) -> u64 {
    number.0 >> PLACE_BITS
}

/// The number of a process that is nobody's child.
pub(crate) fn number_without_parent(core: &Core<'_>, count: u64) -> ProcessNumber {
    ProcessNumber((count << PLACE_BITS) | (core.index().get() as u64 * places::PART))
}

fn encode(ended: Ended) -> u64 {
    match ended {
        Ended::Exited(status) => u64::from(status),
        Ended::Killed(signal) => 0x100 | u64::from(signal),
    }
}

fn decode(value: u64) -> Ended {
    if value & 0x100 == 0 { Ended::Exited(value as u8) } else { Ended::Killed(value as u8) }
}

impl Family {
    /// A family without children, of a process that has the one reference to it.
    pub(crate) fn make(core: &Core<'_>) -> Result<NonNull<Family>, OutOfMemory> {
        // SAFETY: used with cores of the instance's arena and guards of its epochs, whose maintenance frees nodes.
        let array = || CacheLine(unsafe { RadixArray::new() });
        core.allocate_object(Family {
            gone: CacheLine(AtomicU32::new(0)),
            references: CacheLine(Counted::new(1, KIND_FAMILY)),
            children: array(),
            ended: array(),
        })
    }

    /// The family whose count of references this is.
    ///
    /// # Safety
    /// It is one.
    pub(crate) unsafe fn of_references(counted: NonNull<Counted>) -> NonNull<Family> {
        // SAFETY: the caller's promise.
        unsafe { counted.byte_sub(offset_of!(Family, references)).cast() }
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// Nobody uses the family any more.
    pub(crate) unsafe fn free(family: NonNull<Family>, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            family.as_ref().children.destroy(core);
            family.as_ref().ended.destroy(core);
            core.free_object(family);
        }
    }

    pub(crate) fn change_references(&self, counts: &RefCache, core: &Core<'_>, change: i64) {
        // SAFETY: the caller is the process, or a child that has not ended: each has a reference.
        unsafe { counts.change(core, &self.references, change) };
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire) != 0
    }

    pub(crate) fn set_gone(&self) {
        self.gone.store(1, Ordering::Release);
    }

    /// One child more, the core's process of this count; `told` is told its number before it is one. `hint` is where the core
    /// looks first.
    pub(crate) fn add(
        &self,
        guard: &Guard<'_>,
        count: u64,
        hint: &OwnWord<u32>,
        told: impl FnOnce(ProcessNumber),
        wait: &impl Wait,
    ) -> Result<(), Errno> {
        let (place, child) = places::lock_free(&self.children, guard, hint, wait)?;
        // Room for its end, which must not fail; and empty, where a wait died before it had made it so. Who looks for
        // children that have ended looks there, so nothing is written without need.
        if !self.ended.has_slot(guard, place) || self.ended.get(guard, place).is_some() {
            let ended = self.ended.lock_slot(guard, place, wait).map_err(|OutOfMemory| Errno::ENOMEM)?;
            ended.change(|| None);
        }
        told(ProcessNumber(count << PLACE_BITS | place));
        child.change(|| Some(count));
        Ok(())
    }

    /// A child tells how it ended.
    pub(crate) fn end(&self, guard: &Guard<'_>, child: ProcessNumber, ended: Ended, wait: &impl Wait) {
        let slot = self.ended.lock_slot(guard, place_of(child), wait);
        slot.expect("`add` has made room").change(|| Some(encode(ended)));
    }

    /// Where a core looks: first in its own part.
    fn parts(guard: &Guard<'_>) -> [Range<u64>; 3] {
        let start = places::start(guard);
        let end = start + places::PART;
        [start..end, end..PLACES, 0..start]
    }

    /// A child that has ended.
    pub(crate) fn ended_child(&self, guard: &Guard<'_>) -> Option<ProcessNumber> {
        Family::parts(guard).into_iter().find_map(|part| {
            let found = self.ended.try_for_each_in(guard, part, |place, _| {
                let place = place.start;
                match self.children.get(guard, place) {
                    Some(count) => ControlFlow::Break(ProcessNumber(count << PLACE_BITS | place)),
                    None => ControlFlow::Continue(()),
                }
            });
            found.break_value()
        })
    }

    /// Whether there is a child.
    pub(crate) fn has_child(&self, guard: &Guard<'_>) -> bool {
        let found = |part| self.children.try_for_each_in(guard, part, |_, _| ControlFlow::Break(()));
        Family::parts(guard).into_iter().any(|part| found(part).is_break())
    }

    /// What becomes of a child; one that has ended is none afterwards.
    pub(crate) fn take_ended(&self, guard: &Guard<'_>, child: ProcessNumber, wait: &impl Wait) -> ChildState {
        let (place, count) = (place_of(child), count_of(child));
        // Look without writing first.
        if self.children.get(guard, place) != Some(count) {
            return ChildState::NoChild;
        }
        if self.ended.get(guard, place).is_none() {
            // If it is the child's still: numbers do not come again.
            let is_child = self.children.get(guard, place) == Some(count)
                || planted("scalefs: a child that was waited for in between is said to run");
            return if is_child { ChildState::Running } else { ChildState::NoChild };
        }
        // Both slots were made with the child.
        let Ok(slot) = self.children.lock_slot(guard, place, wait) else { return ChildState::NoChild };
        if slot.value() != Some(count) && !planted("scalefs: two threads wait for one child") {
            return ChildState::NoChild;
        }
        let Ok(ended) = self.ended.lock_slot(guard, place, wait) else { return ChildState::NoChild };
        let Some(value) = ended.value() else { return ChildState::Running };
        // In this order: what is said of a child that there is not says nothing.
        slot.change(|| None);
        ended.change(|| None);
        ChildState::Ended(decode(value))
    }

    /// A child that nobody runs any more was killed, unless it has told how it ended.
    pub(crate) fn end_killed(&self, guard: &Guard<'_>, child: ProcessNumber, wait: &impl Wait) {
        let place = place_of(child);
        // Not another one in its place, nor one that its maker has not made a child of this process.
        let is_child = self.children.get(guard, place) == Some(count_of(child))
            && !planted("scalefs: an heir does not say that a child was killed");
        if !is_child {
            return;
        }
        // While the parent can neither wait for the child nor make another one in its place. The slot was made with the child.
        let Ok(slot) = self.children.lock_slot(guard, place, wait) else { return };
        if slot.value() == Some(count_of(child)) && self.ended.get(guard, place).is_none() {
            self.end(guard, child, KILLED, wait);
        }
    }

    /// Unlocks what a dead process was changing.
    ///
    /// # Safety
    /// `guard` pins a core that was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over(&self, guard: &Guard<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            self.children.unlock_taken_over(guard);
            self.ended.unlock_taken_over(guard);
        }
    }
}
