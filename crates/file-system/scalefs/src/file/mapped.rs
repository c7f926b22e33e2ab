//! Pages of a file that are mapped: loads and stores without the calls' ways to read and write.
//!
//! A store goes to the page in place, without the slot's lock: two cores that store to different lines of a page share
//! nothing. It looks at the slot again afterwards. If a cut has made the page one in which the file ends, what was stored
//! behind that is cleared, so that it does not show when the file grows: either the cut sees what was stored and clears it, or
//! the store sees the cut.
//!
//! ```text
//! store:  slot: a page, below the end as a whole → bytes in place;  fence;  the same still? → done
//!         any other: under the slot's lock, as far as the file goes
//! ```
//! What is stored behind the end, in the page in which the file ends, is dropped (POSIX.1-2017, `mmap`: it "shall never be written
//! out"; Linux keeps it in the page, where other mappings see it, until the file grows).

use core::ops::Range;
use core::ptr::NonNull;

use address_space::{FileId, Presence};
use pages::{PAGE_BYTES, PageNumber, shared_bytes};
use percpu::OutOfMemory;
use posix_calls::Kind;
use sync::atomic::{Ordering, fence};
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use super::{Access, Entry, File, PAGE};
use crate::inode_ref::InodeRef;
use crate::window::{Forgotten, forget};

impl File {
    /// Copies a part of a page, zeros behind the end; false if the page lies behind the end.
    pub(crate) fn load_mapped<W: Wait>(
        &self,
        access: Access<'_, W>,
        index: u64,
        start: usize,
        bytes: &mut [u8],
    ) -> bool {
        let read = self.read_page(access, index, start, bytes);
        if read.is_there {
            bytes[read.count..].fill(0);
        }
        read.is_there
    }

    /// Stores a part of a page, as far as the file goes; false if the page lies behind the end. Marks no time: when it is is left
    /// open (POSIX.1-2017, `mmap`).
    pub(crate) fn store_mapped<W: Wait>(
        &self,
        access: Access<'_, W>,
        index: u64,
        start: usize,
        bytes: &[u8],
    ) -> Result<bool, OutOfMemory> {
        let Access { fs, guard, wait } = access;
        let value = self.pages.array.read(guard, index, wait, |value| value);
        if let Some(Entry { page: Some(page), may_end: false }) = value.map(Entry::decode) {
            // SAFETY: the page was in the slot under this guard, and leaves slots by being retired: it is in use at least until
            // the guard ends. Callers stay within a page.
            unsafe { shared_bytes::store(fs.pages().address(page).as_ptr().add(start), bytes) };
            // Pairs with the slot's sequence, which a cut makes odd before it clears: one of the two sees the other.
            fence(Ordering::SeqCst);
            let after = self.pages.array.read(guard, index, wait, |value| value).map(Entry::decode);
            match after {
                Some(Entry { page: Some(same), may_end: true })
                    if same == page && !planted("scalefs: a store does not look for cuts") =>
                {
                    self.store_locked(access, index, start, &[])?;
                }
                Some(Entry { page: Some(same), .. }) if same == page => {}
                // A change of many things has put a copy in its place, perhaps without our bytes.
                Some(Entry { page: Some(_), .. }) => drop(self.store_locked(access, index, start, bytes)?),
                // Of a page that is not the file's any more the store came before the cut.
                _ => {}
            }
            return Ok(true);
        }
        // Behind the end nothing is locked.
        if !self.read_page(access, index, 0, &mut []).is_there {
            return Ok(false);
        }
        self.store_locked(access, index, start, bytes)
    }

    /// Stores under the slot's lock, and clears what of the page is behind the end.
    pub(super) fn store_locked<W: Wait>(
        &self,
        access: Access<'_, W>,
        index: u64,
        start: usize,
        bytes: &[u8],
    ) -> Result<bool, OutOfMemory> {
        let Access { fs, guard, wait } = access;
        let mut round = 0;
        loop {
            let slot = self.pages.array.lock_slot(guard, index, wait)?;
            let entry = slot.value().map(Entry::decode);
            let end = match entry {
                Some(Entry { may_end: false, .. }) => Some(PAGE_BYTES),
                // Nobody waits for a size under a slot's lock.
                Some(_) => {
                    fs.sizes().try_read(&self.size).map(|[size]| size.saturating_sub(index * PAGE).min(PAGE) as usize)
                }
                // No cut that begins now goes past the slot: if the file goes on behind it, it stays below the end.
                None => self.floor_under_lock().map(|floor| {
                    let is_known = floor.words[0] >= (index + 1) * PAGE;
                    let goes_on = || self.pages.array.any_from(guard, index + 1, wait, access.is_as_before());
                    if is_known || goes_on() { PAGE_BYTES } else { 0 }
                }),
            };
            let Some(end) = end else {
                drop(slot);
                wait.wait(WaitReason::Operation, round);
                round = round.saturating_add(1);
                continue;
            };
            if end == 0 {
                return Ok(false);
            }
            let entry = entry.unwrap_or(Entry { page: None, may_end: false });
            let page = entry.page.map_or_else(|| fs.pages().allocate(guard.core()), Ok)?;
            slot.change(|| {
                let address = fs.pages().address(page).as_ptr();
                let bytes = &bytes[..bytes.len().min(end.saturating_sub(start))];
                // SAFETY: the page is ours to write while we hold the lock; readers notice.
                unsafe {
                    if entry.page.is_none() {
                        shared_bytes::clear(address, PAGE_BYTES);
                    }
                    shared_bytes::store(address.add(start), bytes);
                    shared_bytes::clear(address.add(end), PAGE_BYTES - end);
                }
                Some(Entry { page: Some(page), ..entry }.encode())
            });
            return Ok(true);
        }
    }

    /// Calls `show` with the page that holds a page of the file, under the slot's lock, with a page for a hole. Of a page in which the
    /// file may end only for loads.
    pub(crate) fn with_mapped_page<W: Wait>(
        &self,
        access: Access<'_, W>,
        index: u64,
        wanted: address_space::Access,
        show: &mut dyn FnMut(PageNumber) -> Result<(), OutOfMemory>,
    ) -> Result<Presence, OutOfMemory> {
        let Access { fs, guard, wait } = access;
        for round in 0_u32.. {
            let slot = self.pages.array.lock_slot(guard, index, wait)?;
            if let Some(Entry { page: Some(page), may_end }) = slot.value().map(Entry::decode) {
                // The flag may say "ask for the size" although nobody need. A size that somebody changes is waited for without the lock.
                let size = || fs.sizes().try_read(&self.size).map(|[size]| size);
                match may_end.then(size) {
                    Some(None) => {
                        drop(slot);
                        wait.wait(WaitReason::Operation, round);
                        continue;
                    }
                    Some(Some(size)) if size <= index * PAGE => return Ok(Presence::Behind),
                    Some(Some(size)) if size < (index + 1) * PAGE && wanted == address_space::Access::Store => {
                        return Ok(Presence::EndsWithin);
                    }
                    _ => {}
                }
                show(page)?;
                return Ok(Presence::Shown);
            }
            drop(slot);
            if !self.store_locked(access, index, 0, &[])? {
                return Ok(Presence::Behind);
            }
        }
        unreachable!("it goes on forever")
    }

    /// No program reaches these pages by its own instructions any more before it has touched them again. The caller holds the locks
    /// of slots that are still there, or has emptied them.
    pub(super) fn forget_shown(&self, pages: Range<u64>, which: Forgotten) {
        let node = InodeRef::new(NonNull::from(&self.inode), Kind::Regular);
        forget(FileId(node.to_bits()), &pages, which);
    }

    /// How often the file was cut.
    pub(crate) fn cut_count(&self) -> u64 {
        self.cuts.count()
    }

    /// Whether a page was cut off after the first `seen` cuts.
    pub(crate) fn is_cut_since(&self, index: u64, seen: u64, wait: &impl Wait) -> bool {
        self.cuts.took_since(index, seen, wait)
    }
}
