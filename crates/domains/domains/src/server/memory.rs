//! Memory of a domain's processes: which pages are mapped, and what each leads to.
//!
//! Mapped files are the domain's own: their pages are read and written in place. What lies elsewhere cannot be mapped, as
//! loads and stores send no messages.

use std::collections::BTreeMap;
use std::ops::Range;

use posix_calls::{AccessError, Errno, Growth, OperationError, Place, Protection, SPACE_PAGES, Sharing};
use sync::mutant::planted;

use super::PAGE_BYTES;
use super::Server;
use super::object::Body;
use super::space::{FilePage, Mapped, PageBytes, Space};
use crate::identity::ObjectNumber;

/// Where pages go that may be anywhere.
const FIRST_CHOSEN_PAGE: u64 = 1 << 30;
/// Each page is an entry of its own: larger mappings are refused, as without memory.
const LARGEST_MAPPING_PAGES: u64 = 1 << 16;
/// What becomes of an access.
pub(crate) type Accessed<F> = Result<(), AccessError<F>>;

/// The parts of an access, each within a page: the page, where it starts there, and which bytes it has.
fn parts(address: u64, length: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        // What overflows leads to pages that no space has.
        let at = address.saturating_add(done as u64);
        let start = (at % PAGE_BYTES) as usize;
        let bytes = done..(done + PAGE_BYTES as usize - start).min(length);
        done = bytes.end;
        (!bytes.is_empty()).then_some((at / PAGE_BYTES, start, bytes))
    })
}

impl Server {
    /// Memory for a process, in which nothing is mapped.
    pub(crate) fn new_space(&mut self) -> u64 {
        self.last_space += 1;
        self.spaces.insert(self.last_space, Space::new());
        self.last_space
    }

    /// Memory with the same in it (POSIX `fork`). What was stored takes pages, even if there are none.
    pub(crate) fn copy_space(&mut self, space: u64) -> u64 {
        let copy = self.spaces.get(&space).cloned().unwrap_or_default();
        for mapped in copy.values() {
            self.pages.used += u64::from(mapped.stored.is_some());
            self.keep_mapped(mapped.from);
        }
        let number = self.new_space();
        self.spaces.insert(number, copy);
        number
    }

    /// Gives up a process's memory.
    pub(crate) fn end_space(&mut self, space: u64) {
        self.unmap(space, 0..SPACE_PAGES);
        self.spaces.remove(&space);
    }

    /// The pages that are mapped, in their order.
    pub(crate) fn mapped_pages(&self, space: u64) -> Vec<u64> {
        self.spaces.get(&space).into_iter().flat_map(BTreeMap::keys).copied().collect()
    }

    fn keep_mapped(&mut self, from: Option<FilePage>) {
        if let Some(object) = from.and_then(|from| self.objects.get_mut(&from.file)) {
            object.references += 1;
        }
    }

    fn pages_of(&mut self, space: u64) -> &mut Space {
        self.spaces.entry(space).or_default()
    }

    /// The first of this many pages that are free, one after the other.
    fn room(&mut self, space: u64, pages: u64) -> Option<u64> {
        let mut first = FIRST_CHOSEN_PAGE;
        for (page, _) in self.pages_of(space).range(FIRST_CHOSEN_PAGE..) {
            if page - first >= pages {
                break;
            }
            first = page + 1;
        }
        (first + pages <= SPACE_PAGES).then_some(first)
    }

    pub(crate) fn is_free(&mut self, space: u64, pages: Range<u64>) -> bool {
        self.pages_of(space).range(pages).next().is_none()
    }

    pub(crate) fn is_mapped(&mut self, space: u64, pages: Range<u64>) -> bool {
        self.pages_of(space).range(pages.clone()).count() as u64 == pages.end - pages.start
    }

    pub(crate) fn map<F>(
        &mut self,
        space: u64,
        (place, pages): (Place, u64),
        protection: Protection,
        from: Option<FilePage>,
    ) -> Result<u64, OperationError<F>> {
        if pages > LARGEST_MAPPING_PAGES {
            return Err(OperationError::NoSpace);
        }
        let first = match place {
            Place::Anywhere => self.room(space, pages).ok_or(OperationError::NoSpace)?,
            Place::Fixed(page) | Place::FixedNoReplace(page) => page,
        };
        if matches!(place, Place::FixedNoReplace(_)) && !self.is_free(space, first..first + pages) {
            return Err(OperationError::Exists);
        }
        for distance in 0..pages {
            let from = from.map(|from| FilePage { page: from.page + distance, ..from });
            self.keep_mapped(from);
            // What was there goes afterwards: it may be what keeps the file.
            self.unmap_page(space, first + distance);
            self.pages_of(space).insert(first + distance, Mapped { protection, from, stored: None });
        }
        Ok(first)
    }

    fn unmap_page(&mut self, space: u64, page: u64) {
        let Some(mapped) = self.pages_of(space).remove(&page) else { return };
        self.pages.used -= u64::from(mapped.stored.is_some());
        if let Some(from) = mapped.from {
            let _ = self.release(from.file, None);
        }
    }

    pub(crate) fn unmap(&mut self, space: u64, pages: Range<u64>) {
        let mapped: Vec<u64> = self.pages_of(space).range(pages).map(|(page, _)| *page).collect();
        mapped.into_iter().for_each(|page| self.unmap_page(space, page));
    }

    pub(crate) fn protect(&mut self, space: u64, pages: Range<u64>, protection: Protection) -> Result<(), Errno> {
        for page in pages {
            let mapped = self.pages_of(space).get_mut(&page).ok_or(Errno::ENOMEM)?;
            if protection == Protection::ReadWrite && mapped.is_sealed() {
                return Err(Errno::EACCES);
            }
            mapped.protection = protection;
        }
        Ok(())
    }

    /// Forgets what the process has stored.
    pub(crate) fn discard(&mut self, space: u64, pages: Range<u64>) {
        let stored = self.pages_of(space).range_mut(pages).filter_map(|(_, mapped)| mapped.stored.take());
        let count = stored.count() as u64;
        self.pages.used -= count;
    }

    /// Forgets what processes have stored to pages of a file that lie past its new end (Linux: `unmap_mapping_range`).
    pub(super) fn drop_copies(&mut self, file: ObjectNumber, size_bytes: u64) {
        if planted("domains: copies of what is cut stay") {
            return;
        }
        let is_cut = |from: FilePage| from.file == file && from.offset() >= size_bytes;
        for mapped in self.spaces.values_mut().flat_map(BTreeMap::values_mut) {
            if mapped.from.is_some_and(is_cut) && mapped.stored.take().is_some() {
                self.pages.used -= 1;
            }
        }
    }

    /// What is mapped at the first of some pages, if they are one mapping.
    fn one_mapping(&mut self, space: u64, pages: &Range<u64>) -> Result<(Protection, Option<FilePage>), Errno> {
        let space = self.pages_of(space);
        let (protection, from) = space.get(&pages.start).map(|it| (it.protection, it.from)).ok_or(Errno::EFAULT)?;
        for (page, distance) in pages.clone().zip(0..) {
            let mapped = space.get(&page).ok_or(Errno::EFAULT)?;
            let expected = from.map(|from| from.part(distance, 1)).transpose();
            if mapped.protection != protection || expected != Ok(mapped.from) {
                return Err(Errno::EFAULT);
            }
        }
        Ok((protection, from))
    }

    /// What comes after `pages` pages of a mapping, if `more` more can.
    fn rest(from: Option<FilePage>, pages: u64, more: u64) -> Result<Option<FilePage>, Errno> {
        from.map(|from| from.part(pages, more)).transpose()
    }

    fn add_pages(
        &mut self,
        space: u64,
        (first, pages): (u64, u64),
        (protection, from): (Protection, Option<FilePage>),
    ) -> Result<(), Errno> {
        if pages > LARGEST_MAPPING_PAGES {
            return Err(Errno::ENOMEM);
        }
        for distance in 0..pages {
            let from = from.map(|from| from.part(distance, 1)).transpose()?;
            self.keep_mapped(from);
            self.pages_of(space).insert(first + distance, Mapped { protection, from, stored: None });
        }
        Ok(())
    }

    pub(crate) fn grow(&mut self, space: u64, pages: Range<u64>, more: u64) -> Result<Growth, Errno> {
        let (protection, from) = self.one_mapping(space, &pages)?;
        let rest = Server::rest(from, pages.end - pages.start, more)?;
        let behind = pages.end..pages.end.saturating_add(more);
        if behind.end > SPACE_PAGES || !self.is_free(space, behind) {
            return Ok(Growth::NoRoom);
        }
        self.add_pages(space, (pages.end, more), (protection, rest))?;
        Ok(Growth::Done)
    }

    pub(crate) fn relocate(
        &mut self,
        space: u64,
        pages: Range<u64>,
        first: Option<u64>,
        new_pages: u64,
    ) -> Result<u64, Errno> {
        let old_pages = pages.end - pages.start;
        let (protection, from) = self.one_mapping(space, &pages)?;
        let rest = Server::rest(from, old_pages, new_pages - old_pages)?;
        let to = first.or_else(|| self.room(space, new_pages)).ok_or(Errno::ENOMEM)?;
        if !self.is_free(space, to..to + new_pages) {
            return Err(Errno::EEXIST);
        }
        self.add_pages(space, (to + old_pages, new_pages - old_pages), (protection, rest))?;
        for (old, new) in pages.zip(to..) {
            if let Some(moved) = self.pages_of(space).remove(&old) {
                self.pages_of(space).insert(new, moved);
            }
        }
        Ok(to)
    }

    fn mapped_file<F>(&self, from: FilePage) -> Result<&super::File, AccessError<F>> {
        match self.objects.get(&from.file).map(|object| &object.body) {
            Some(Body::File(file)) if file.size_bytes > from.offset() => Ok(file),
            _ => Err(AccessError::Bus),
        }
    }

    pub(crate) fn load<F>(&mut self, space: u64, address: u64, bytes: &mut [u8]) -> Accessed<F> {
        for (page, start, part) in parts(address, bytes.len()) {
            let bytes = &mut bytes[part];
            let mapped = self.spaces.get(&space).and_then(|space| space.get(&page)).ok_or(AccessError::Segment)?;
            if mapped.protection == Protection::None {
                return Err(AccessError::Segment);
            }
            bytes.fill(0);
            match (&mapped.stored, mapped.from) {
                (Some(stored), _) => bytes.copy_from_slice(&stored[start..start + bytes.len()]),
                (None, None) => {}
                (None, Some(from)) => {
                    let read = self.mapped_file(from)?.read(from.offset() + start as u64, bytes.len() as u64);
                    bytes[..read.len()].copy_from_slice(&read);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn store<F>(&mut self, space: u64, address: u64, bytes: &[u8]) -> Accessed<F> {
        parts(address, bytes.len())
            .try_for_each(|(page, start, part)| self.store_within(space, (page, start), &bytes[part]))
    }

    fn store_within<F>(&mut self, space: u64, (page, start): (u64, usize), bytes: &[u8]) -> Accessed<F> {
        let mapped = self.pages_of(space).get_mut(&page).ok_or(AccessError::Segment)?;
        if mapped.protection != Protection::ReadWrite {
            return Err(AccessError::Segment);
        }
        if let Some(stored) = &mut mapped.stored {
            stored[start..start + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        let mut copy: PageBytes = Box::new([0; PAGE_BYTES as usize]);
        if let Some(from) = mapped.from {
            let file = self.mapped_file(from)?;
            if from.sharing == Sharing::Shared {
                // What lies past the end is dropped (POSIX.1-2017, `mmap`: it "shall never be written out").
                let left = (file.size_bytes - from.offset()).min(PAGE_BYTES) as usize;
                let bytes = &bytes[..bytes.len().min(left.saturating_sub(start))];
                let mut pages = self.pages;
                let file = self.file(from.file).map_err(|_| AccessError::Bus)?;
                let written = file.write(from.offset() + start as u64, bytes, &mut pages);
                self.pages = pages;
                return if written == bytes.len() as u64 { Ok(()) } else { Err(AccessError::OutOfMemory) };
            }
            let read = file.read(from.offset(), PAGE_BYTES);
            copy[..read.len()].copy_from_slice(&read);
        }
        if self.pages.used == self.pages.limit {
            return Err(AccessError::OutOfMemory);
        }
        self.pages.used += 1;
        copy[start..start + bytes.len()].copy_from_slice(bytes);
        if let Some(mapped) = self.pages_of(space).get_mut(&page) {
            mapped.stored = Some(copy);
        }
        Ok(())
    }
}
