//! Forgetting what was stored (`madvise` with MADV_DONTNEED).

use core::ops::Range;

use percpu::OutOfMemory;
use posix_calls::SPACE_PAGES;
use sync::Wait;
use sync::mutant::planted;

use crate::content::Content;
use crate::files::Files;
use crate::marks::Mark;
use crate::mmu::{Mmu, Revoked};
use crate::space::{AddressSpace, Memory};

impl<M: Mmu> AddressSpace<M> {
    /// Forgets what the address space itself has stored to the pages of a range: anonymous memory is zero again, private pages of
    /// files are as the file has them. What is shared stays. Pages that hold nothing of that kind are not written to.
    ///
    /// # Errors
    /// [`OutOfMemory`] without memory for a node; then some pages have been forgotten.
    ///
    /// # Panics
    /// If the pages do not lie within the address space.
    pub fn discard<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>, range: Range<u64>) -> Result<(), OutOfMemory> {
        assert!(range.end <= SPACE_PAGES, "pages of the address space");
        // In the middle of a change, tables still know what was there before: who loads that now would load it after us.
        let settle =
            |page| match planted("address-space: what is to be forgotten is looked at in the middle of a change") {
                true => self.content.get(memory.guard, page),
                false => self.content.settled(memory.guard, page, memory.wait),
            };
        let is_stored = |value| Content::decode(value).page().is_some();
        if range.end - range.start == 1 {
            return if settle(range.start).is_some_and(is_stored) {
                self.discard_page(memory, range.start)
            } else {
                Ok(())
            };
        }
        let mut outcome = Ok(());
        self.content.for_each_in(memory.guard, range, |part, value| {
            if outcome.is_ok() && (is_stored(value) || settle(part.start).is_some_and(is_stored)) {
                outcome = part.into_iter().try_for_each(|page| self.discard_page(memory, page));
            }
        });
        outcome
    }

    fn discard_page<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>, page: u64) -> Result<(), OutOfMemory> {
        let Memory { guard, pages, wait, .. } = *memory;
        let slot = self.content.lock_slot(guard, page, wait)?;
        // Others may have mapped something else since we looked.
        let Some(content) = slot.value().map(Content::decode).filter(|content| content.page().is_some()) else {
            return Ok(());
        };
        slot.change(|| Some(content.unstored(pages).encode()));
        if !planted("address-space: what is forgotten stays in the tables") {
            self.mmu.revoke(guard, page..page + 1, Revoked::All, wait);
        }
        // The mapping has the page as before.
        self.drop_stored(memory, content);
        Ok(())
    }

    /// Whether something is mapped at each page of a range, as of some moments of the call.
    pub fn is_mapped_throughout<F, W: Wait>(&self, memory: &Memory<'_, F, W>, range: Range<u64>) -> bool {
        self.marks.prefix(memory.guard, &range, Mark::Mapped, memory.wait) == range.end
    }

    /// Whether nothing is mapped at any page of a range, as of some moments of the call.
    pub fn is_free<F, W: Wait>(&self, memory: &Memory<'_, F, W>, range: Range<u64>) -> bool {
        self.marks.first(memory.guard, &range, Mark::Mapped, memory.wait) == range.end
    }
}
