//! Longer mappings, and mappings at other places (`mremap`).
//!
//! ```text
//! grow:  lock content of the pages and of those behind them, and the rights;  nothing behind?  → the last one's mapping goes on there
//! move:  lock content of both places, lower one first, and the rights;  what is stored goes into the new place, unseen;
//!        the old place leads nowhere, and all tables are told;  copies know the new mapping;  the marks of the new place
//! ```
//! Between the two places there is a moment at which the pages are at neither.

use core::ops::Range;

use pages::PAGE_BYTES;
use percpu::{CacheLine, OutOfMemory};
use posix_calls::{Growth, SPACE_PAGES, Sharing};
use radix::LockedRange;
use refcache::Counted;
use sync::Wait;
use sync::mutant::planted;

use crate::content::{Content, note_copy};
use crate::files::{FileId, Files};
use crate::mapping::{KIND_MAPPING, Mapping, MappingRef};
use crate::marks::{Mark, Wanted};
use crate::mmu::{Mmu, Revoked};
use crate::space::{AddressSpace, Memory, is_empty, unmapped};

/// Pages of a file whose bytes have numbers of 64 bits.
const LAST_FILE_PAGE: u64 = u64::MAX / PAGE_BYTES as u64;

/// Why nothing was grown or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapError {
    /// The pages are not one mapping: somewhere nothing is mapped, or something else, or with other rights.
    NotOneMapping,
    /// The file's pages have no numbers so large.
    TooLarge,
    /// Something is mapped where the pages are to be.
    Exists,
    /// No memory for nodes or for a page, or no room in the address space.
    OutOfMemory,
}

impl From<OutOfMemory> for RemapError {
    fn from(_: OutOfMemory) -> RemapError {
        RemapError::OutOfMemory
    }
}

/// What pages have in common: nothing but memory, or a file, whose page comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Common {
    Anonymous,
    File { file: FileId, page: u64, sharing: Sharing },
}

impl<M: Mmu> AddressSpace<M> {
    /// Lets a mapping go on for so many pages behind its end, if nothing is there.
    ///
    /// # Errors
    /// [`RemapError`], and nothing has changed.
    ///
    /// # Panics
    /// If the pages do not lie within the address space, or are none.
    pub fn grow<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        range: Range<u64>,
        more: u64,
    ) -> Result<Growth, RemapError> {
        assert!(range.start < range.end && range.end <= SPACE_PAGES && more > 0, "pages of the address space");
        let Memory { guard, wait, .. } = *memory;
        let behind = range.end..range.end.saturating_add(more);
        let has_room = behind.end <= SPACE_PAGES && self.marks.first(guard, &behind, Mark::Mapped, wait) == behind.end;
        let content = self.content.lock(guard, range.clone(), wait)?;
        let added = if has_room { Some(self.content.lock(guard, behind.clone(), wait)?) } else { None };
        let _kept = self.marks.lock(guard, &range, Wanted::AS_IT_IS.keeping_rights(), wait)?;
        let (common, rights) = self.common(memory, &range)?;
        common.must_go_on(range.end - range.start + more)?;
        let Some(added) = added.filter(|_| is_empty(&self.content, guard, &behind)) else {
            return Ok(Growth::NoRoom);
        };
        let wanted = rights.with(Mark::Mapped, true);
        let marks = self.marks.lock(guard, &behind, wanted, wait)?;
        let last = self.content.get(guard, range.end - 1).map(Content::decode).expect("pages that are locked stay");
        let mapping = last.mapping(memory.pages);
        self.count_mapping(memory, mapping, more as i64);
        let value = mapping.map_or(Content::Anonymous, Content::File).encode();
        marks.change(wanted, || added.fill(Some(value), |_, _| unreachable!("nothing is there")));
        drop(content);
        Ok(Growth::Done)
    }

    /// Moves a mapping to another place, where it has so many pages, no fewer than now. Nothing is mapped there, or nothing
    /// changes ([`RemapError::Exists`]); `None`: the space chooses. Returns the first page.
    ///
    /// # Errors
    /// [`RemapError`], and nothing has changed.
    ///
    /// # Panics
    /// If the pages do not lie within the address space, or overlap, or are none.
    pub fn relocate<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        range: Range<u64>,
        place: Option<u64>,
        pages: u64,
    ) -> Result<u64, RemapError> {
        assert!(range.start < range.end && range.end <= SPACE_PAGES, "pages of the address space");
        assert!(pages >= range.end - range.start, "as many pages as before, or more");
        let Memory { guard, wait, .. } = *memory;
        loop {
            let first = match place {
                Some(first) => first,
                None => {
                    self.choose(memory, pages).map(|(range, _)| range.start).map_err(|_| RemapError::OutOfMemory)?
                }
            };
            let new = first..first + pages;
            assert!(new.end <= SPACE_PAGES && (new.end <= range.start || range.end <= new.start), "another place");
            let lock = |range: &Range<u64>| self.content.lock(guard, range.clone(), wait);
            // The lower place first, as whoever locks a range.
            let (from, to) = if range.start < new.start {
                let from = lock(&range)?;
                (from, lock(&new)?)
            } else {
                let to = lock(&new)?;
                (lock(&range)?, to)
            };
            if is_empty(&self.content, guard, &new) {
                return self.relocate_locked(memory, (&range, &from), (&new, &to)).map(|()| first);
            }
            // Somebody came between the choice and the lock.
            if place.is_some() {
                return Err(RemapError::Exists);
            }
        }
    }

    fn relocate_locked<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        (old, from): (&Range<u64>, &LockedRange<'_>),
        (new, to): (&Range<u64>, &LockedRange<'_>),
    ) -> Result<(), RemapError> {
        let Memory { guard, pages, wait, .. } = *memory;
        let mut rights = self.marks.rights_of_first(guard, old);
        let (old_marks, new_marks, common, wanted) = loop {
            let wanted = rights.with(Mark::Mapped, true);
            let lock_old = || self.marks.lock(guard, old, unmapped().keeping_rights(), wait);
            // The rights there are locked even if none change: a protection of both places may have found that they do.
            let lock_new = || self.marks.lock(guard, new, wanted.keeping_rights(), wait);
            // The lower place first, as whoever locks a range: before it is known for sure which marks change.
            let (old_marks, new_marks) = if old.start < new.start {
                let old_marks = lock_old()?;
                (old_marks, lock_new()?)
            } else {
                let new_marks = lock_new()?;
                (lock_old()?, new_marks)
            };
            let (common, found) = self.common(memory, old)?;
            if found == rights {
                break (old_marks, new_marks, common, wanted);
            }
            rights = found;
        };
        common.must_go_on(new.end - new.start)?;
        let mapping = match common {
            Common::Anonymous => None,
            Common::File { file, page, sharing } => {
                let count = CacheLine(Counted::new((new.end - new.start) as i64, KIND_MAPPING));
                let mapping = Mapping { file, first: new.start, file_page: page, sharing, pages: count };
                Some(guard.core().allocate_object(mapping)?)
            }
        };
        let reference = mapping.map(MappingRef::new);
        let base = reference.map_or(Content::Anonymous, Content::File).encode();
        to.fill(Some(base), |_, _| unreachable!("nothing is there"));
        if let Err(error) = self.carry_stored(memory, old, new.start, to, reference) {
            // Nobody has seen any of it: whoever looks at a content waits for its lock.
            to.fill(None, |part, value| self.drop_carried(memory, old.start + (part.start - new.start), value));
            if let Some(mapping) = mapping {
                // SAFETY: made just now; nobody has seen it.
                unsafe { guard.core().free_object(mapping) };
            }
            return Err(error.into());
        }
        if let Common::File { file, .. } = common {
            memory.files.hold(file);
        }
        old_marks.change(unmapped(), || {
            from.fill(None, |part, value| {
                let content = Content::decode(value);
                self.count_mapping(memory, content.mapping(pages), part.start as i64 - part.end as i64);
                // Pages of the space's own, and shared ones of no file, are at the new place.
                if matches!(content, Content::Shared(_)) && content.mapping(pages).is_some() {
                    self.drop_stored(memory, content);
                }
            });
            if !planted("address-space: a moved page stays in the tables of its old place") {
                self.mmu.revoke(guard, old.clone(), Revoked::All, wait);
            }
        });
        // Nobody stores there any more, and who loads looks at the table again.
        self.content.for_each_in(guard, new.clone(), |_, value| {
            if let Content::Own(own) = Content::decode(value)
                && let Some((_, cuts)) = Content::Own(own).original(pages)
            {
                note_copy(pages, own, reference.map(|mapping| (mapping, cuts)));
            }
        });
        new_marks.change(wanted, || ());
        Ok(())
    }

    /// Puts what the space itself has stored into the new place too. Of a shared page that is a copy of a file's that is a copy,
    /// which can know the new mapping.
    fn carry_stored<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        old: &Range<u64>,
        first: u64,
        to: &LockedRange<'_>,
        mapping: Option<MappingRef>,
    ) -> Result<(), OutOfMemory> {
        let Memory { guard, pages, files, .. } = *memory;
        let mut outcome = Ok(());
        self.content.for_each_in(guard, old.clone(), |part, value| {
            let content = Content::decode(value);
            if outcome.is_err() || content.page().is_none() {
                return;
            }
            let carried = match (content, content.present(part.start, pages, files)) {
                (Content::Shared(_), copy @ Content::Shared(_)) if mapping.is_some() => {
                    pages.allocate(guard.core()).map(|own| {
                        self.copy_to(memory, part.start, copy, own);
                        Some(Content::Own(own))
                    })
                }
                // Cut off from the file.
                (Content::Shared(_), Content::File(_)) => Ok(None),
                _ => Ok(Some(content)),
            };
            outcome = carried.and_then(|carried| match carried {
                Some(content) => to.set(first + (part.start - old.start), Some(content.encode())).map(drop),
                None => Ok(()),
            });
            if outcome.is_err()
                && let Ok(Some(Content::Own(own))) = carried
                && carried != Ok(Some(content))
            {
                // SAFETY: allocated just now.
                unsafe { pages.free(guard.core(), own) };
            }
        });
        outcome
    }

    /// Gives up a copy that [`AddressSpace::carry_stored`] has made of what stands at a page.
    fn drop_carried<F, W>(&self, memory: &Memory<'_, F, W>, page: u64, value: u64) {
        let is_copy = self.content.get(memory.guard, page) != Some(value);
        if let (Content::Own(own), true) = (Content::decode(value), is_copy) {
            // SAFETY: allocated by `carry_stored`; nobody else has seen it.
            unsafe { memory.pages.free(memory.guard.core(), own) };
        }
    }

    /// What pages whose content is locked have in common, if they are one mapping, with their rights.
    fn common<F, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        range: &Range<u64>,
    ) -> Result<(Common, Wanted), RemapError> {
        let (mut common, mut end) = (None, range.start);
        self.content.for_each_in(memory.guard, range.clone(), |part, value| {
            let here = match Content::decode(value).mapping(memory.pages) {
                None => Common::Anonymous,
                Some(mapping) => {
                    let mapping = mapping.get();
                    Common::File {
                        file: mapping.file,
                        page: mapping.page_of_file(range.start),
                        sharing: mapping.sharing,
                    }
                }
            };
            if end == part.start && common.is_none_or(|common| common == here) {
                (common, end) = (Some(here), part.end);
            }
        });
        match (common, self.marks.common_rights(memory.guard, range)) {
            (Some(common), Some(rights)) if end == range.end => Ok((common, rights)),
            _ => Err(RemapError::NotOneMapping),
        }
    }
}

impl Common {
    /// Whether the file's pages have numbers for so many of them.
    fn must_go_on(self, pages: u64) -> Result<(), RemapError> {
        match self {
            Common::File { page, .. } if page.checked_add(pages).is_none_or(|end| end > LAST_FILE_PAGE) => {
                Err(RemapError::TooLarge)
            }
            _ => Ok(()),
        }
    }
}
