//! Loads, stores and faults.

use core::slice;

use pages::{PAGE_BYTES, PageNumber, shared_bytes};
use percpu::OutOfMemory;
use posix_calls::Sharing;
use radix::LockedSlot;
use sync::Wait;
use sync::atomic::{Ordering, fence};
use sync::mutant::planted;

use crate::content::{Content, note_copy};
use crate::files::Files;
use crate::marks::Mark;
use crate::mmu::{Access, Mmu, Revoked, Translation};
use crate::space::{AddressSpace, Memory};

/// Why an access ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is mapped there, or it must not be accessed so (SIGSEGV).
    Segment,
    /// The page lies behind the end of its file, or there is no page for it (SIGBUS).
    Bus,
    /// No memory for a page or for a node.
    OutOfMemory,
}

impl From<OutOfMemory> for Fault {
    fn from(_: OutOfMemory) -> Fault {
        Fault::OutOfMemory
    }
}

/// The pieces of an access that lie within one page each: page, first byte in it, bytes of the access.
fn pieces(address: u64, length: usize) -> impl Iterator<Item = (u64, usize, core::ops::Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        if done == length {
            return None;
        }
        // Addresses that overflow lead to pages that no space has.
        let position = address.saturating_add(done as u64);
        let start = (position % PAGE_BYTES as u64) as usize;
        let end = (done + PAGE_BYTES - start).min(length);
        let piece = (position / PAGE_BYTES as u64, start, done..end);
        done = end;
        Some(piece)
    })
}

impl<M: Mmu> AddressSpace<M> {
    /// Loads bytes, page by page; what comes before a fault has been loaded.
    ///
    /// # Errors
    /// A [`Fault`] at the first page that cannot be loaded from.
    pub fn load<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        address: u64,
        bytes: &mut [u8],
    ) -> Result<(), Fault> {
        pieces(address, bytes.len())
            .try_for_each(|(page, start, part)| self.load_within(memory, page, start, &mut bytes[part]))
    }

    /// Stores bytes, page by page; what comes before a fault has been stored.
    ///
    /// # Errors
    /// A [`Fault`] at the first page that cannot be stored to.
    pub fn store<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        pieces(address, bytes.len())
            .try_for_each(|(page, start, part)| self.store_within(memory, page, start, &bytes[part]))
    }

    fn load_within<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        page: u64,
        start: usize,
        bytes: &mut [u8],
    ) -> Result<(), Fault> {
        loop {
            let Some(translation) = self.mmu.find(memory.guard, page, Access::Load) else {
                self.fault_load(memory, page)?;
                continue;
            };
            let value = match translation {
                Translation::Content => self.content.settled(memory.guard, page, memory.wait),
                _ => None,
            };
            let content = match translation {
                Translation::Zeros => Content::Anonymous,
                Translation::Page(own) => Content::Own(own),
                Translation::File(mapping) => Content::File(mapping),
                Translation::Content => {
                    Content::decode(value.ok_or(Fault::Segment)?).present(page, memory.pages, memory.files)
                }
            };
            let is_there = self.copy_out(memory, page, start, content, bytes);
            // Nobody but the file's users changes what it holds: if it was not ours any more when we looked, this has not been.
            fence(Ordering::Acquire);
            let has_stayed = match translation {
                Translation::Zeros | Translation::Page(_) => true,
                Translation::File(_) => self.mmu.find(memory.guard, page, Access::Load) == Some(translation),
                Translation::Content => {
                    self.mmu.find(memory.guard, page, Access::Load) == Some(translation)
                        && self.content.get(memory.guard, page) == value
                }
            };
            if has_stayed || planted("address-space: a file is looked at once") {
                return if is_there { Ok(()) } else { Err(Fault::Bus) };
            }
        }
    }

    /// Copies what a page leads to; false if it lies behind the end of its file.
    fn copy_out<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        page: u64,
        start: usize,
        content: Content,
        bytes: &mut [u8],
    ) -> bool {
        match content {
            Content::Anonymous => bytes.fill(0),
            Content::Own(_) | Content::Shared(_) => {
                let own = content.page().expect("a page of the pool");
                // SAFETY: found under this guard, and pages are given up by being retired, or by a count that waits as long: it is
                // in use at least until the guard ends. Callers stay within a page.
                unsafe { shared_bytes::load(bytes, memory.pages.address(own).as_ptr().add(start)) };
            }
            Content::File(mapping) => {
                let mapping = mapping.get();
                return memory.files.load(mapping.file, mapping.page_of_file(page), start, bytes);
            }
        }
        true
    }

    /// Does what a store to a page does, but for the bytes.
    pub(crate) fn prepare_store<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>, page: u64) -> Result<(), Fault> {
        self.store_within(memory, page, 0, &[])
    }

    fn store_within<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        page: u64,
        start: usize,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        loop {
            self.mmu.begin_store(memory.guard, page, memory.wait)?;
            let stored = self.store_found(memory, page, start, bytes);
            self.mmu.end_store(memory.guard);
            if stored? {
                return Ok(());
            }
            self.fault_store(memory, page)?;
        }
    }

    /// Stores to a page that the table has; false if it has not.
    fn store_found<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        page: u64,
        start: usize,
        bytes: &[u8],
    ) -> Result<bool, Fault> {
        let found = match self.mmu.find(memory.guard, page, Access::Store) {
            None | Some(Translation::Zeros) => None,
            Some(Translation::Page(own)) => Some(Content::Own(own)),
            Some(Translation::File(mapping)) => Some(Content::File(mapping)),
            Some(Translation::Content) => {
                // Not in the middle of a change; and nobody is waited for now.
                let Ok(Some(value)) = self.content.try_settled(memory.guard, page) else { return Ok(false) };
                match Content::decode(value).present(page, memory.pages, memory.files) {
                    Content::Own(own) => Some(Content::Own(own)),
                    // The entry holds until the store ends, and with it the right to store.
                    _ => self.make_own(memory, page, value)?.map(Content::Own),
                }
            }
        };
        match found {
            Some(Content::Own(own)) => {
                // SAFETY: found under this guard, in the slot or in the core's table, and pages are given up by being
                // retired: it is in use at least until the guard ends. Callers stay within a page.
                unsafe { shared_bytes::store(memory.pages.address(own).as_ptr().add(start), bytes) };
                Ok(true)
            }
            Some(Content::File(mapping)) => {
                let mapping = mapping.get();
                let is_there = memory.files.store(mapping.file, mapping.page_of_file(page), start, bytes);
                // Linux: a file system without space raises SIGBUS (`filemap_fault`, `vmf_error`).
                if is_there == Ok(true) { Ok(true) } else { Err(Fault::Bus) }
            }
            _ => Ok(false),
        }
    }

    /// Puts a page into the core's table, for loads.
    #[cold]
    fn fault_load<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>, page: u64) -> Result<(), Fault> {
        let Memory { guard, wait, .. } = *memory;
        // Whoever hides the page has told all tables when this says so: it is waited for.
        let is_hidden = || self.marks.has(guard, page, Mark::Hidden, wait);
        // Not in the middle of a change, of which other cores have not been told yet.
        let value = self.content.settled(guard, page, wait).ok_or(Fault::Segment)?;
        if is_hidden() {
            return Err(Fault::Segment);
        }
        let translation = match Content::decode(value) {
            content if content.is_looked_at(memory.pages) => Translation::Content,
            Content::Anonymous => Translation::Zeros,
            Content::Own(own) => Translation::Page(own),
            Content::Shared(shared) => Translation::Page(shared.page()),
            Content::File(mapping) => Translation::File(mapping),
        };
        let is_still_so = || self.content.get(guard, page) == Some(value) && !is_hidden();
        self.install(memory, (page, Access::Load), translation, is_still_so, wait)
    }

    fn install<F, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        (page, access): (u64, Access),
        translation: Translation,
        is_still_so: impl Fn() -> bool,
        wait: &W,
    ) -> Result<(), Fault> {
        self.mmu.install(memory.guard, page, access, translation, wait)?;
        // Pairs with the fence in `Mmu::revoke`: either we see the change, or they see the entry.
        fence(Ordering::SeqCst);
        if !is_still_so() && !planted("address-space: what an entry rests on is not looked at again") {
            self.mmu.withdraw(memory.guard, page, access, wait);
        }
        Ok(())
    }

    /// Puts a page into the core's table, for stores, or gives the address space a page of its own there.
    #[cold]
    fn fault_store<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>, page: u64) -> Result<(), Fault> {
        let Memory { guard, wait, .. } = *memory;
        let is_writable = || self.marks.has(guard, page, Mark::Writable, wait);
        if !is_writable() {
            return Err(Fault::Segment);
        }
        let value = self.content.settled(guard, page, wait).ok_or(Fault::Segment)?;
        let is_still_so = || is_writable() && self.content.get(guard, page) == Some(value);
        let translation = match Content::decode(value) {
            Content::File(mapping) if mapping.get().sharing == Sharing::Shared => Translation::File(mapping),
            Content::Own(own) if !Content::Own(own).is_looked_at(memory.pages) => Translation::Page(own),
            // What the store itself will make a page of its own, perhaps: that wants a slot of its own.
            content => {
                if let Content::File(mapping) = content.present(page, memory.pages, memory.files) {
                    let mapping = mapping.get();
                    // Behind the end nothing is locked.
                    if !memory.files.load(mapping.file, mapping.page_of_file(page), 0, &mut []) {
                        return if is_still_so() { Err(Fault::Bus) } else { Ok(()) };
                    }
                }
                drop(self.content.lock_slot(guard, page, wait)?);
                Translation::Content
            }
        };
        self.install(memory, (page, Access::Store), translation, is_still_so, wait)
    }

    /// Gives the address space a page of its own where it has none: zeros, what the file has there, or what is shared. Called while
    /// the core stores to the page, so it waits for no lock of the content: `None` if others have it, or if the slot holds another
    /// value by now.
    fn make_own<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        page: u64,
        value: u64,
    ) -> Result<Option<PageNumber>, Fault> {
        let Memory { guard, pages, files, wait, .. } = *memory;
        let is_same = |slot: &LockedSlot<'_>| {
            slot.value() == Some(value) || planted("address-space: a page is copied for a store after it has changed")
        };
        let Some(slot) = self.content.try_lock_slot(guard, page).filter(is_same) else {
            return Ok(None);
        };
        let content = Content::decode(value);
        let source = content.present(page, pages, files);
        if let Content::Own(own) = source {
            return Ok(Some(own));
        }
        let own = pages.allocate(guard.core())?;
        if !self.copy_to(memory, page, source, own) {
            // SAFETY: allocated just now.
            unsafe { pages.free(guard.core(), own) };
            return Err(Fault::Bus);
        }
        slot.change(|| Some(Content::Own(own).encode()));
        // Loads of private pages of files look at the content each time; but those of programs.
        if !content.is_looked_at(pages) || self.mmu.is_direct() {
            self.mmu.revoke(guard, page..page + 1, Revoked::Loads, wait);
        }
        // The mapping has the page as before.
        self.drop_stored(memory, content);
        Ok(Some(own))
    }

    /// Fills a page that is the caller's alone with what a page of the space is, and notes whose copy it is. False if that lies
    /// behind the end of its file.
    pub(crate) fn copy_to<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        page: u64,
        source: Content,
        own: PageNumber,
    ) -> bool {
        let Memory { pages, files, .. } = *memory;
        let original = match source {
            // Before the copy: one that was taken after a cut is good, and one from before does not count.
            Content::File(mapping) => Some((mapping, files.cuts(mapping.get().file))),
            copy => copy.original(pages),
        };
        note_copy(pages, own, original);
        // SAFETY: allocated by the caller, after all who could read it as somebody else's had ended; nobody else has it before it
        // is in the slot. The pool's memory is valid for reads, whatever it holds.
        let bytes = unsafe { slice::from_raw_parts_mut(pages.address(own).as_ptr(), PAGE_BYTES) };
        self.copy_out(memory, page, 0, source, bytes)
    }
}
