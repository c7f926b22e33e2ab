//! What a thread of the process left that died in a call.
//!
//! ```text
//! died in        what is left                                         what becomes of it
//! all            locks; tables that lead to what was given up         unlocked; all tables forget all
//! map, unmap     content without "mapped", or the other way round     the pages lead nowhere
//! relocate       the same; a page that both places lead to            the old place has it; or neither, if it was given up there
//! protect        a page that is both hidden and writable              it is not writable
//! ```
//! Never is a page given up that a slot leads to. Lost are at most: the page that a store had taken, a mapping with its reference to
//! the file, and all that a child has got which nobody knows.

use core::ops::{ControlFlow, Range};

use epoch::Guard;
use percpu::OutOfMemory;
use posix_calls::SPACE_PAGES;
use radix::RadixArray;
use sync::Wait;
use sync::mutant::planted;

use crate::content::Content;
use crate::files::Files;
use crate::marks::{Mark, Wanted, first_with, prefix_with};
use crate::mmu::{Mmu, Revoked};
use crate::space::{AddressSpace, Memory, unmapped};

impl<M: Mmu> AddressSpace<M> {
    /// Unlocks what a dead thread of the process was changing, and makes it whole. Without memory for a node some pages may stay
    /// half mapped: then accesses to them fail.
    ///
    /// # Safety
    /// The memory's guard pins a core that was taken over from a dead owner, and that no other call of this process has used since.
    pub unsafe fn repair_taken_over<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>) {
        let Memory { guard, wait, .. } = *memory;
        // SAFETY: the caller's promise.
        unsafe {
            self.content.unlock_taken_over(guard);
            self.marks.unlock_taken_over(guard);
            self.hints.unlock_taken_over(guard);
            self.mmu.unlock_taken_over(guard, wait);
        }
        if !planted("address-space: an heir leaves the tables as they are") {
            self.mmu.revoke(guard, 0..SPACE_PAGES, Revoked::All, wait);
        }
        if planted("address-space: an heir leaves what is half mapped") {
            return;
        }
        let [writable, hidden, sealed, mapped] =
            [Mark::Writable, Mark::Hidden, Mark::Sealed, Mark::Mapped].map(|mark| self.marks.of(mark));
        for (there, missing) in
            [(&*self.content, mapped), (mapped, &*self.content), (writable, mapped), (hidden, mapped), (sealed, mapped)]
        {
            let mut from = 0;
            while let Some(torn) = first_difference(guard, there, missing, from) {
                from = torn.end;
                if self.forget_torn(memory, torn).is_err() {
                    return;
                }
            }
        }
        for forbids in [hidden, sealed] {
            let mut from = 0;
            while let Some(both) = first_common(guard, forbids, writable, from) {
                from = both.end;
                let wanted = Wanted::AS_IT_IS.with(Mark::Writable, false);
                let Ok(marks) = self.marks.lock(guard, &both, wanted, wait) else { return };
                marks.change(wanted, || ());
            }
        }
    }

    /// Lets pages lead nowhere of which content and marks do not tell the same, unless they do by now.
    fn forget_torn<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>, torn: Range<u64>) -> Result<(), OutOfMemory> {
        let Memory { guard, wait, .. } = *memory;
        let content = self.content.lock(guard, torn.clone(), wait)?;
        let mapped = self.marks.of(Mark::Mapped);
        let is_whole = first_difference(guard, &self.content, mapped, torn.start).is_none_or(|at| at.start >= torn.end)
            && first_difference(guard, mapped, &self.content, torn.start).is_none_or(|at| at.start >= torn.end)
            && first_with(mapped, guard, &torn) != torn.end;
        if is_whole {
            return Ok(());
        }
        let wanted = unmapped();
        let marks = self.marks.lock(guard, &torn, wanted, wait)?;
        marks.change(wanted, || {
            content.fill(None, |_, value| {
                // A move may have put it here, and not yet taken it from there. What mapping it counts for nobody knows.
                if Content::decode(value).page().is_some() && !self.leads_to(guard, value) {
                    self.drop_stored(memory, Content::decode(value));
                }
            });
            self.mmu.revoke(guard, torn.clone(), Revoked::All, wait);
        });
        Ok(())
    }

    /// Whether a slot holds this.
    fn leads_to(&self, guard: &Guard<'_>, value: u64) -> bool {
        let found = self.content.try_for_each_in(guard, 0..SPACE_PAGES, |_, other| match other == value {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        found.is_break()
    }
}

/// The first pages, from one on, at which an array has a value and another has none.
fn first_difference(guard: &Guard<'_>, there: &RadixArray, missing: &RadixArray, from: u64) -> Option<Range<u64>> {
    let found = there.try_for_each_in(guard, from..SPACE_PAGES, |part, _| {
        let start = prefix_with(missing, guard, &part);
        match start < part.end {
            true => ControlFlow::Break(start..first_with(missing, guard, &(start..part.end))),
            false => ControlFlow::Continue(()),
        }
    });
    found.break_value()
}

/// The first pages, from one on, at which two arrays have a value.
fn first_common(guard: &Guard<'_>, one: &RadixArray, other: &RadixArray, from: u64) -> Option<Range<u64>> {
    let found = one.try_for_each_in(guard, from..SPACE_PAGES, |part, _| {
        let start = first_with(other, guard, &part);
        match start < part.end {
            true => ControlFlow::Break(start..prefix_with(other, guard, &(start..part.end))),
            false => ControlFlow::Continue(()),
        }
    });
    found.break_value()
}
