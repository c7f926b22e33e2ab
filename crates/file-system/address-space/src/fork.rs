//! Copies of address spaces (POSIX `fork`): nothing that was stored is copied before somebody stores to it again.
//!
//! ```text
//! per mapped part:  lock content and "writable";  own pages → shared pages, here and in the child;  others as they are;
//!                   ask all cores' tables of stores;  the marks into the child
//! ```
//! A part is a step: what is mapped, stored or protected in two parts meanwhile may be in the child for the later one only. (Linux
//! holds `mmap_lock` against calls, but other threads' stores meet `copy_page_range` in the same way.)

use core::ops::Range;

use percpu::OutOfMemory;
use posix_calls::SPACE_PAGES;
use sync::Wait;
use sync::mutant::planted;

use crate::content::Content;
use crate::files::Files;
use crate::marks::Mark;
use crate::mmu::{Mmu, Revoked};
use crate::shared::{SharedPage, SharedPageRef};
use crate::space::{AddressSpace, Memory};

impl<M: Mmu> AddressSpace<M> {
    /// Gives an empty address space, which nobody else knows yet, what this one has: shared mappings lead to the same files,
    /// of private pages each has what the other does not see it store. Both are used with the same pool and counts.
    ///
    /// # Errors
    /// [`OutOfMemory`]: the other one is to be destroyed then; this one is as before for whoever looks.
    pub fn fork_to<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        child: &AddressSpace<M>,
    ) -> Result<(), OutOfMemory> {
        let mut outcome = Ok(());
        // While nodes are folded away, what they say would be passed over.
        self.marks.of(Mark::Mapped).for_each_settled_in(memory.guard, 0..SPACE_PAGES, memory.wait, |part, _| {
            if outcome.is_ok() {
                outcome = self.fork_part(memory, child, part);
            }
        });
        outcome
    }

    fn fork_part<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        child: &AddressSpace<M>,
        part: Range<u64>,
    ) -> Result<(), OutOfMemory> {
        let Memory { guard, wait, .. } = *memory;
        let content = self.content.lock(guard, part.clone(), wait)?;
        // Whoever changes what may be done holds this.
        let _rights = self.marks.of(Mark::Writable).lock(guard, part.clone(), wait)?;
        let mut outcome = Ok(());
        let mut has_own = false;
        self.content.for_each_in(guard, part.clone(), |piece, value| {
            if outcome.is_err() {
                return;
            }
            outcome = child.content.lock(guard, piece.clone(), wait).and_then(|copied| {
                let value = match Content::decode(value) {
                    Content::Anonymous => value,
                    Content::File(mapping) => {
                        self.count_mapping(memory, Some(mapping), (piece.end - piece.start) as i64);
                        value
                    }
                    Content::Own(own) => {
                        let original = Content::Own(own).original(memory.pages);
                        let shared = guard.core().allocate_object(SharedPage::of_two(own, original))?;
                        let value = Content::Shared(SharedPageRef::new(shared)).encode();
                        content.set(piece.start, Some(value)).inspect_err(|_| {
                            // SAFETY: made just now; nobody has seen it.
                            unsafe { guard.core().free_object(shared) };
                        })?;
                        has_own = true;
                        self.count_mapping(memory, original.map(|(mapping, _)| mapping), 1);
                        value
                    }
                    Content::Shared(shared) => {
                        // SAFETY: the slot, which is locked, leads there, and the count has one for it.
                        unsafe { memory.counts.change(guard.core(), shared.spaces(), 1) };
                        self.count_mapping(memory, Content::Shared(shared).mapping(memory.pages), 1);
                        value
                    }
                };
                copied.fill(Some(value), |_, _| unreachable!("the child is empty"));
                Ok(())
            });
            if outcome.is_ok() {
                outcome = self.marks.copy_to(&child.marks, guard, piece, wait);
            }
        });
        // Also when memory ran out: what the child has got so far it will give up, and others must not store to it until then.
        if has_own && !planted("address-space: fork leaves the tables as they are") {
            self.mmu.revoke(guard, part, Revoked::Stores, wait);
        }
        outcome
    }
}
