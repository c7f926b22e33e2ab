//! Room for bytes that are still to be written, and room that is given back.
//!
//! ```text
//! reserve:  are there as many pages as it takes?  extend the file;  a page into each hole, under its slot's lock
//! punch:    of each page that is there, under its slot's lock: all of it → a hole's mark, the page is retired;  a part → zeros
//! ```
//! **The end stays where it is.** A hole's mark is a value: it says as the page did where the file goes on. And what lies behind the
//! end is zero already. So a punch asks for no size, and shares nothing with who moves the end elsewhere.

use core::ops::{ControlFlow, Range};

use pages::{PAGE_BYTES, shared_bytes};
use percpu::OutOfMemory;
use sync::Wait;

use super::{Access, Entry, File, PAGE};
use crate::window::Forgotten;

/// The pages in which bytes lie.
fn pages_of(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / PAGE..bytes.end.div_ceil(PAGE)
}

impl File {
    /// Lets there be a page for each of these bytes, as far as the file goes; first it becomes as long as they reach, if it
    /// `grows`. Without as many pages nothing has changed, unless others took them meanwhile.
    pub(crate) fn reserve<W: Wait>(
        &self,
        access: Access<'_, W>,
        bytes: Range<u64>,
        grows: bool,
    ) -> Result<(), OutOfMemory> {
        let Access { fs, guard, wait } = access;
        let all = pages_of(&bytes);
        // Linux: more than there could ever be is refused also where none of it is taken.
        if all.end - all.start > fs.pages().total() {
            return Err(OutOfMemory);
        }
        let end = if grows { bytes.end } else { bytes.end.min(self.size(access)) };
        if end <= bytes.start {
            return Ok(());
        }
        let pages = pages_of(&(bytes.start..end));
        let mut lacking = pages.end - pages.start;
        self.pages.array.for_each_in(guard, pages.clone(), |part, value| {
            if Entry::decode(value).page.is_some() {
                lacking -= part.end - part.start;
            }
        });
        if lacking > fs.pages().free_pages() {
            return Err(OutOfMemory);
        }
        while grows && self.size(access) < end && !self.extend(access, end)? {}
        for index in pages {
            let value = self.pages.array.read_beside_marks(guard, index, wait, access.is_as_before(), |value| value);
            let is_there = value.is_some_and(|value| Entry::decode(value).page.is_some());
            // Others may have cut the file: then nothing is left to do.
            if !is_there && !self.store_locked(access, index, 0, &[])? {
                break;
            }
        }
        Ok(())
    }

    /// Lets these bytes be zeros, as far as the file goes, and gives pages back of which they have all.
    pub(crate) fn punch<W: Wait>(&self, access: Access<'_, W>, bytes: &Range<u64>) -> Result<(), OutOfMemory> {
        let mut rest = pages_of(bytes);
        while let Some(index) = self.first_page_in(access, rest.clone()) {
            let start = bytes.start.saturating_sub(index * PAGE) as usize;
            let end = (bytes.end - index * PAGE).min(PAGE) as usize;
            self.punch_page(access, index, start..end)?;
            rest.start = index + 1;
        }
        Ok(())
    }

    /// The first index at which there is a page.
    fn first_page_in<W>(&self, access: Access<'_, W>, indices: Range<u64>) -> Option<u64> {
        let found =
            self.pages.array.try_for_each_in(access.guard, indices, |part, value| match Entry::decode(value).page {
                Some(_) => ControlFlow::Break(part.start),
                None => ControlFlow::Continue(()),
            });
        found.break_value()
    }

    fn punch_page<W: Wait>(&self, access: Access<'_, W>, index: u64, bytes: Range<usize>) -> Result<(), OutOfMemory> {
        let Access { fs, guard, wait } = access;
        let slot = self.pages.array.lock_slot(guard, index, wait)?;
        let Some(entry @ Entry { page: Some(page), .. }) = slot.value().map(Entry::decode) else { return Ok(()) };
        let is_whole = bytes == (0..PAGE_BYTES);
        slot.change(|| {
            // What programs store until then goes, too; and the lock keeps the page from being shown again.
            if is_whole {
                self.forget_shown(index..index + 1, Forgotten::Replaced);
                return Some(Entry { page: None, ..entry }.encode());
            }
            self.forget_shown(index..index + 1, Forgotten::Stores);
            // SAFETY: the page is ours to write while we hold the lock; readers notice. The range lies in it.
            unsafe {
                let address = fs.pages().address(page).as_ptr();
                shared_bytes::clear(address.add(bytes.start), bytes.len());
            }
            Some(entry.encode())
        });
        drop(slot);
        if is_whole {
            // SAFETY: the page was in this slot only; readers that have found it are pinned.
            unsafe { fs.pages().retire(guard, page) };
        }
        Ok(())
    }
}
