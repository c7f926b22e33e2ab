//! The operations on memory: for each process the pages that are mapped, and what each leads to.
//!
//! A private page of a file is the file's until the process stores to it; then it is a copy, which goes when the file is
//! cut before it (Linux: `unmap_mapping_range` with `even_cows`, called by `truncate_pagecache`).

use std::collections::BTreeMap;
use std::ops::Range;

use posix_calls::{
    AccessError, AnswerOf, Errno, Failed, Growth, MemoryOperations, OperationError, Outcome, Place, Protection,
    SPACE_PAGES, Sharing, Source,
};

use crate::call::{Call, Node, Unreachable};
use crate::object::{Number, PAGE_BYTES};
use crate::process_state::{Mapped, MappedFile, Space};
use crate::state::State;

/// Where pages go that nobody asked for by address.
const FIRST_CHOSEN_PAGE: u64 = 1 << 30;
/// Each page is an entry of its own: larger mappings are refused, as without memory.
const LARGEST_MAPPING_PAGES: u64 = 1 << 16;

/// Pages of a file whose bytes have numbers of 64 bits.
const LAST_FILE_PAGE: u64 = u64::MAX / PAGE_BYTES as u64;

type Accessed = Result<(), AccessError<Unreachable>>;

impl Mapped {
    /// The page that lies so far behind this one in its mapping, if so many follow it.
    fn part(&self, distance: u64, pages: u64) -> Result<Mapped, Errno> {
        let file = match self.file {
            Some(file) => {
                let page = file.page.checked_add(distance).ok_or(Errno::EINVAL)?;
                if page.checked_add(pages).is_none_or(|end| end > LAST_FILE_PAGE) {
                    return Err(Errno::EINVAL);
                }
                Some(MappedFile { page, ..file })
            }
            None => None,
        };
        Ok(Mapped { file, own: None, protection: self.protection })
    }
}

impl State {
    fn mapped(&mut self, space: u64, page: u64) -> Result<&mut Mapped, AccessError<Unreachable>> {
        self.spaces.get_mut(&space).and_then(|pages| pages.get_mut(&page)).ok_or(AccessError::Segment)
    }

    /// Lets a page lead nowhere, and gives up what it kept.
    fn unmap_page(&mut self, space: u64, page: u64) {
        let Some(mapped) = self.spaces.get_mut(&space).and_then(|pages| pages.remove(&page)) else { return };
        self.used.pages -= u64::from(mapped.own.is_some());
        if let Some(file) = mapped.file {
            self.release(file.number);
        }
    }

    /// Lets the pages of a range lead nowhere.
    pub(crate) fn unmap_pages(&mut self, space: u64, range: Range<u64>) {
        let pages: Vec<u64> = self
            .spaces
            .get(&space)
            .into_iter()
            .flat_map(|pages| pages.range(range.clone()))
            .map(|(page, _)| *page)
            .collect();
        pages.into_iter().for_each(|page| self.unmap_page(space, page));
    }

    /// Forgets the private copies of a file's pages that lie behind its new end.
    pub(crate) fn drop_copies(&mut self, number: Number, size_bytes: u64) {
        let is_cut = |file: MappedFile| file.number == number && file.offset() >= size_bytes;
        for mapped in self.spaces.values_mut().flat_map(BTreeMap::values_mut) {
            if mapped.file.is_some_and(is_cut) && mapped.own.take().is_some() {
                self.used.pages -= 1;
            }
        }
    }

    /// So many pages that are free, one after the other.
    fn room(&self, space: u64, pages: u64) -> Option<u64> {
        let mut first = FIRST_CHOSEN_PAGE;
        for page in self.spaces.get(&space)?.range(FIRST_CHOSEN_PAGE..).map(|(page, _)| *page) {
            if page - first >= pages {
                break;
            }
            first = page + 1;
        }
        (first + pages <= SPACE_PAGES).then_some(first)
    }

    /// The first page of some, without what was stored to it, if they are one mapping.
    fn common(&self, space: u64, pages: &Range<u64>) -> Result<Mapped, Errno> {
        let space = self.spaces.get(&space).ok_or(Errno::EFAULT)?;
        let first = space.get(&pages.start).ok_or(Errno::EFAULT)?;
        let first = Mapped { own: None, ..first.clone() };
        let alike = space.range(pages.clone()).zip(0..).filter(|((page, mapped), distance)| {
            let expected = first.part(*distance, 1);
            **page == pages.start + distance
                && expected.is_ok_and(|page| page.protection == mapped.protection && page.file == mapped.file)
        });
        if alike.count() as u64 == pages.end - pages.start { Ok(first) } else { Err(Errno::EFAULT) }
    }

    /// Maps pages from a page of a mapping on; the caller has seen that they are free.
    fn add_pages(&mut self, space: u64, first: u64, pages: u64, like: &Mapped) -> Result<(), Errno> {
        if pages > LARGEST_MAPPING_PAGES {
            return Err(Errno::ENOMEM);
        }
        for distance in 0..pages {
            let page = like.part(distance, 1)?;
            if let Some(file) = page.file {
                self.get_mut(file.number).references += 1;
            }
            self.spaces.entry(space).or_default().insert(first + distance, page);
        }
        Ok(())
    }

    /// Another process's memory with the same in it (POSIX `fork`).
    pub(crate) fn copy_space(&mut self, space: u64) -> u64 {
        let copy = self.spaces.get(&space).cloned().unwrap_or_default();
        for mapped in copy.values() {
            self.used.pages += u64::from(mapped.own.is_some());
            if let Some(file) = mapped.file {
                self.get_mut(file.number).references += 1;
            }
        }
        let number = self.add_space();
        self.spaces.insert(number, copy);
        number
    }

    fn load_within(&mut self, space: u64, page: u64, start: usize, bytes: &mut [u8]) -> Accessed {
        let Mapped { protection, file, own } = self.mapped(space, page)?;
        if *protection == Protection::None {
            return Err(AccessError::Segment);
        }
        bytes.fill(0);
        match (own, *file) {
            (Some(own), _) => bytes.copy_from_slice(&own[start..start + bytes.len()]),
            (None, None) => {}
            (None, Some(file)) => {
                let (data, ..) = self.file_mut(file.number);
                if data.size_bytes <= file.offset() {
                    return Err(AccessError::Bus);
                }
                data.read(file.offset() + start as u64, bytes);
            }
        }
        Ok(())
    }

    fn store_within(&mut self, space: u64, page: u64, start: usize, bytes: &[u8]) -> Accessed {
        let Mapped { protection, file, own } = self.mapped(space, page)?;
        if *protection != Protection::ReadWrite {
            return Err(AccessError::Segment);
        }
        if let Some(own) = own {
            own[start..start + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        let mut copy = Box::new([0; PAGE_BYTES]);
        if let Some(file) = *file {
            let (data, used, limit) = self.file_mut(file.number);
            let Some(left @ 1..) = data.size_bytes.checked_sub(file.offset()) else {
                return Err(AccessError::Bus);
            };
            if file.sharing == Sharing::Shared {
                // What lies behind the end is dropped (POSIX.1-2017, `mmap`: it "shall never be written out").
                let bytes = &bytes[..bytes.len().min((left as usize).saturating_sub(start))];
                let written = data.write(file.offset() + start as u64, bytes, || State::take_pages(used, limit));
                return if written == bytes.len() { Ok(()) } else { Err(AccessError::OutOfMemory) };
            }
            data.read(file.offset(), &mut *copy);
        }
        if !State::take_pages(&mut self.used.pages, self.limits.pages) {
            return Err(AccessError::OutOfMemory);
        }
        copy[start..start + bytes.len()].copy_from_slice(bytes);
        self.mapped(space, page)?.own = Some(copy);
        Ok(())
    }
}

/// The pieces of an access that lie within one page each: page, first byte in it, bytes of the access.
fn pieces(address: u64, length: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        // Addresses that overflow lead to pages that no space has.
        let position = address.saturating_add(done as u64);
        let start = position as usize % PAGE_BYTES;
        let part = done..(done + PAGE_BYTES - start).min(length);
        done = part.end;
        (!part.is_empty()).then_some((position / PAGE_BYTES as u64, start, part))
    })
}

impl MemoryOperations for Call<'_> {
    fn map(&self, place: Place, pages: u64, protection: Protection, source: Source<Node<'_>>) -> Outcome<u64, Self> {
        let mut state = self.change()?;
        let space = self.process.space;
        if pages > LARGEST_MAPPING_PAGES {
            return Err(OperationError::NoSpace);
        }
        let first = match place {
            Place::Anywhere => state.room(space, pages).ok_or(OperationError::NoSpace)?,
            Place::Fixed(page) | Place::FixedNoReplace(page) => page,
        };
        let range = first..first + pages;
        let is_taken = |pages: &Space| pages.range(range.clone()).next().is_some();
        if matches!(place, Place::FixedNoReplace(_)) && state.spaces.get(&space).is_some_and(is_taken) {
            return Err(OperationError::Exists);
        }
        for (at, page) in range.enumerate() {
            let file = match source {
                Source::Anonymous => None,
                Source::File { node, page, sharing, may_write } => {
                    state.get_mut(node.number).references += 1;
                    Some(MappedFile { number: node.number, page: page + at as u64, sharing, may_write })
                }
            };
            state.unmap_page(space, page);
            state.spaces.entry(space).or_default().insert(page, Mapped { protection, file, own: None });
        }
        Ok(first)
    }

    fn unmap(&self, pages: Range<u64>) -> Outcome<(), Self> {
        self.change()?.unmap_pages(self.process.space, pages);
        Ok(())
    }

    fn protect(&self, pages: Range<u64>, protection: Protection) -> Result<(), Errno> {
        let mut state = self.change()?;
        for page in pages {
            let mapped = state.mapped(self.process.space, page).map_err(|_| Errno::ENOMEM)?;
            let is_sealed = mapped.file.is_some_and(|file| file.sharing == Sharing::Shared && !file.may_write);
            if protection == Protection::ReadWrite && is_sealed {
                return Err(Errno::EACCES);
            }
            mapped.protection = protection;
        }
        Ok(())
    }

    fn is_mapped(&self, pages: Range<u64>) -> AnswerOf<bool, Self> {
        let mapped = self.ask()?.spaces.get(&self.process.space).map_or(0, |space| space.range(pages.clone()).count());
        Ok(mapped as u64 == pages.end - pages.start)
    }

    fn is_free(&self, pages: Range<u64>) -> AnswerOf<bool, Self> {
        Ok(self.ask()?.spaces.get(&self.process.space).is_none_or(|space| space.range(pages).next().is_none()))
    }

    fn discard(&self, pages: Range<u64>) -> Outcome<(), Self> {
        let mut state = self.change()?;
        let state = &mut *state;
        let stored =
            state.spaces.get_mut(&self.process.space).into_iter().flat_map(|space| space.range_mut(pages.clone()));
        state.used.pages -= stored.filter_map(|(_, mapped)| mapped.own.take()).count() as u64;
        Ok(())
    }

    fn grow(&self, pages: Range<u64>, more: u64) -> Result<Growth, Errno> {
        let mut state = self.change()?;
        let space = self.process.space;
        let first = state.common(space, &pages)?;
        let behind = pages.end..pages.end.saturating_add(more);
        let new = first.part(pages.end - pages.start, more)?;
        if behind.end > SPACE_PAGES || state.spaces[&space].range(behind.clone()).next().is_some() {
            return Ok(Growth::NoRoom);
        }
        state.add_pages(space, behind.start, more, &new)?;
        Ok(Growth::Done)
    }

    fn relocate(&self, pages: Range<u64>, first: Option<u64>, new_pages: u64) -> Result<u64, Errno> {
        let mut state = self.change()?;
        let space = self.process.space;
        let old_pages = pages.end - pages.start;
        let mapping = state.common(space, &pages)?;
        let new = mapping.part(old_pages, new_pages - old_pages)?;
        let place = first.or_else(|| state.room(space, new_pages)).ok_or(Errno::ENOMEM)?;
        if state.spaces[&space].range(place..place + new_pages).next().is_some() {
            return Err(Errno::EEXIST);
        }
        state.add_pages(space, place + old_pages, new_pages - old_pages, &new)?;
        let pages_of_space = state.spaces.get_mut(&space).expect("it has pages");
        for (page, to) in pages.zip(place..) {
            let moved = pages_of_space.remove(&page).expect("looked at just now");
            pages_of_space.insert(to, moved);
        }
        Ok(place)
    }

    fn load(&self, address: u64, bytes: &mut [u8]) -> Accessed {
        let mut state = self.change().map_err(unreachable)?;
        pieces(address, bytes.len())
            .try_for_each(|(page, start, part)| state.load_within(self.process.space, page, start, &mut bytes[part]))
    }

    fn store(&self, address: u64, bytes: &[u8]) -> Accessed {
        let mut state = self.change().map_err(unreachable)?;
        pieces(address, bytes.len())
            .try_for_each(|(page, start, part)| state.store_within(self.process.space, page, start, &bytes[part]))
    }
}

fn unreachable(Failed(fault): Failed<Unreachable>) -> AccessError<Unreachable> {
    AccessError::Fault(fault)
}

impl Call<'_> {
    /// The pages of the process that are mapped, in order.
    ///
    /// # Errors
    /// [`Unreachable`], if operations were told to fail.
    pub fn mapped_pages(&self) -> AnswerOf<Vec<u64>, Self> {
        Ok(self.ask()?.spaces.get(&self.process.space).into_iter().flat_map(BTreeMap::keys).copied().collect())
    }
}
