//! Longer and shorter files.
//!
//! ```text
//! extend to n:     lock the slot of byte n - 1;  no cut under way?  → raise the size;  a hole there
//! cut to n:        lock the slot of byte n - 1 and all behind it;  begin a new generation of the size
//!                  empty them, retire their pages;  clear the rest of the last page;  end the generation with n
//! cut to nothing:  begin a new generation;  from left to right lock what is there, and empty it;  end the generation with 0
//! ```
//! **A cut to nothing** of a file with no more pages than a leaf has writes to no slot that nobody uses, nor to the root: so
//! it shares nothing with who reads behind the end. Who moves the end meanwhile locks a slot first and then looks
//! whether a generation is open. Either the cut sees the lock and waits, or the other one sees the cut, and gives the lock up.
//!
//! Nobody sees a part of it: who finds no page, and one behind it, waits for the generation. Who finds nothing behind a
//! page either has come when the cut has gone past all of it, and so past all before it.

use core::mem::offset_of;

use maxima::Maximum;
use pages::{PAGE_BYTES, shared_bytes};
use percpu::OutOfMemory;
use sync::Wait;
use sync::mutant::planted;

use super::{Access, Entry, File, PAGE, RANK_APPEND, is_below_end};
use crate::window::Forgotten;

impl File {
    /// Notes how far the floor of a size, which some core has just raised, tells of pages. Part of maintenance.
    ///
    /// # Safety
    /// The size is a file's, which is alive.
    pub(crate) unsafe fn note_known(size: &Maximum<1>) {
        // SAFETY: the caller's promise.
        let file = unsafe { &*core::ptr::from_ref(size).byte_sub(offset_of!(File, size)).cast::<File>() };
        file.pages.note_known(size.applied()[0].div_ceil(PAGE));
    }

    /// Makes the file this long. On failure nothing has changed.
    pub(crate) fn resize<W: Wait>(&self, access: Access<'_, W>, size: u64) -> Result<(), OutOfMemory> {
        loop {
            let present = self.size(access);
            let done = match present.cmp(&size) {
                core::cmp::Ordering::Equal => true,
                core::cmp::Ordering::Less => self.extend(access, size)?,
                core::cmp::Ordering::Greater => self.cut(access, size)?,
            };
            if done {
                return Ok(());
            }
        }
    }

    /// Extends the file by a hole; false if it has become longer meanwhile.
    pub(super) fn extend<W: Wait>(&self, access: Access<'_, W>, size: u64) -> Result<bool, OutOfMemory> {
        let Access { fs, guard, wait } = access;
        let last = (size - 1) / PAGE;
        // SAFETY: the file is not freed before all cores have maintained.
        unsafe { fs.sizes().prepare(guard.core(), &self.size, wait) };
        let slot = self.pages.array.lock_slot(guard, last, wait)?;
        let value = slot.value();
        let Some(floor) = self.floor_under_lock() else { return Ok(false) };
        let is_longer = fs.sizes().try_read(&self.size).is_some_and(|[present]| present > size);
        if is_longer || is_below_end(value) || self.pages.array.any_from(guard, last + 1, wait, access.is_as_before()) {
            return Ok(false);
        }
        slot.change(|| {
            // SAFETY: the file is not freed before all cores have maintained.
            unsafe { fs.sizes().raise_above(guard.core(), &self.size, &floor, [size]) };
            let page = value.and_then(|value| Entry::decode(value).page);
            Some(Entry { page, may_end: !size.is_multiple_of(PAGE) }.encode())
        });
        Ok(true)
    }

    /// Cuts the file off; false if it has become shorter meanwhile.
    fn cut<W: Wait>(&self, access: Access<'_, W>, size: u64) -> Result<bool, OutOfMemory> {
        let Access { fs, guard, wait } = access;
        // Cuts exclude each other, and appends.
        let is_alone = planted("scalefs: cuts do not exclude each other");
        let _lock = (!is_alone).then(|| self.appending.lock.lock(guard.core(), RANK_APPEND, wait));
        let last = match size.checked_sub(1).map(|byte| byte / PAGE) {
            None if self.pages.array.is_small() => return Ok(self.empty(access)),
            last => last,
        };
        let (last, rest) = match last {
            None => (None, self.pages.array.lock_from(guard, 0, wait)?),
            Some(last) => {
                let (last, rest) = self.pages.array.lock_slot_and_rest(guard, last, wait)?;
                (Some(last), rest)
            }
        };
        // Another cut may have come first. Under the locks nobody else cuts, but before the cut others may still extend: what
        // they raise would be lost if the size that was seen here were set.
        let is_shorter = |[present]: [u64; 1]| present <= size;
        let sets_what_it_saw = planted("scalefs: a cut sets the size that it saw");
        if !sets_what_it_saw && is_shorter(fs.sizes().read(&self.size, wait)) {
            return Ok(false);
        }
        // Whoever wrote behind the cut before has raised in the generation that ends here, and whoever comes after us
        // raises in the next.
        let (reset, before) = fs.sizes().reset(guard.core(), &self.size, wait);
        if sets_what_it_saw && is_shorter(before) {
            reset.finish(before);
            return Ok(false);
        }
        let empty_rest = || rest.fill(None, |_, value| self.retire(access, value));
        let last_index = size.saturating_sub(1) / PAGE;
        let Some(last) = last else {
            empty_rest();
            self.cuts.note(0);
            self.forget_shown(0..u64::MAX, Forgotten::CutOff);
            reset.finish([size]);
            return Ok(true);
        };
        // All before the reset ends, for which whoever finds no page waits: nobody finds one page cut and then another as before.
        self.pages.shortenings.change(|| {
            last.change(|| {
                empty_rest();
                let page = last.value().and_then(|value| Entry::decode(value).page);
                let end = ((size - 1) % PAGE + 1) as usize;
                if let Some(page) = page {
                    // What programs store until then is cleared; and the lock keeps the page from being shown again.
                    if end < PAGE_BYTES {
                        self.forget_shown(last_index..last_index + 1, Forgotten::Stores);
                    }
                    // SAFETY: the page is ours to write while we hold the lock; readers notice.
                    unsafe {
                        let address = fs.pages().address(page).as_ptr();
                        shared_bytes::clear(address.add(end), PAGE_BYTES - end);
                    }
                }
                Some(Entry { page, may_end: end < PAGE_BYTES }.encode())
            });
        });
        self.cuts.note(size.div_ceil(PAGE));
        self.forget_shown(size.div_ceil(PAGE)..u64::MAX, Forgotten::CutOff);
        reset.finish([size]);
        Ok(true)
    }

    /// Cuts off all of a file; false if it is empty. Locks no slot that nobody uses. The caller keeps other cuts off.
    fn empty<W: Wait>(&self, access: Access<'_, W>) -> bool {
        let Access { fs, guard, wait } = access;
        if fs.sizes().read(&self.size, wait) == [0] {
            return false;
        }
        // From now on nobody moves the end. Who did and has not ended has a lock, and comes before us.
        let (reset, _) = fs.sizes().reset(guard.core(), &self.size, wait);
        self.pages.array.empty_each(guard, wait, |value| self.retire(access, value));
        self.cuts.note(0);
        self.forget_shown(0..u64::MAX, Forgotten::CutOff);
        reset.finish([0]);
        true
    }

    /// What a slot said that was emptied just now.
    fn retire<W>(&self, Access { fs, guard, .. }: Access<'_, W>, value: u64) {
        if let Some(page) = Entry::decode(value).page {
            // SAFETY: the page was in this slot only; readers that have found it are pinned.
            unsafe { fs.pages().retire(guard, page) };
        }
    }
}
