//! An address space: mapping, unmapping, protecting.

use core::ops::Range;

use epoch::Guard;
use pages::PagePool;
use percpu::{CacheLine, OutOfMemory};
use posix_calls::{Place, Protection, SPACE_PAGES, Sharing};
use radix::{LockedRange, RadixArray};
use refcache::{Counted, RefCache};
use sync::Wait;
use sync::mutant::planted;

use crate::content::Content;
use crate::files::{FileId, Files};
use crate::mapping::{KIND_MAPPING, Mapping, MappingRef};
use crate::marks::{Mark, Marks, Wanted};
use crate::mmu::{Mmu, Revoked};
use crate::parts::part_of;
use crate::software::SoftwareMmu;

/// Ranges of at least so many pages begin at multiples of their length, up to the second number: then they need few nodes.
const ALIGNED_FROM_PAGES: u64 = 16;
const LARGEST_ALIGNMENT_PAGES: u64 = 1 << 18;

/// What calls on memory have in common: the pinned core, and where pages, counts and files are.
pub struct Memory<'a, F, W> {
    /// The core, pinned.
    pub guard: &'a Guard<'a>,
    /// Pages of memory.
    pub pages: &'a PagePool,
    /// Counts of mappings.
    pub counts: &'a RefCache,
    /// What is mapped.
    pub files: &'a F,
    /// How the core waits.
    pub wait: &'a W,
}

/// What is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Memory that is zero at first, and the address space's own.
    Anonymous,
    /// A file from a page on.
    File {
        /// The file.
        file: FileId,
        /// Its page that lies at the first one of the mapping.
        page: u64,
        /// Who sees what is stored.
        sharing: Sharing,
        /// Whether the mapping may ever be stored to.
        may_write: bool,
    },
}

/// What was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The first page.
    pub page: u64,
    /// Whether the mapping is a new one, which has taken over the caller's reference to the file. If not, there was the same
    /// already, and the reference stays the caller's.
    pub is_new: bool,
}

/// Why nothing was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// No memory for nodes, or no room in the address space.
    OutOfMemory,
    /// Something is mapped there already.
    Exists,
}

/// Why `protect` changed only the pages before the first that it could not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectError {
    /// Nothing is mapped there.
    NotMapped,
    /// It is a shared mapping of a file that was not open for writing.
    Denied,
    /// No memory for nodes.
    OutOfMemory,
}

impl From<OutOfMemory> for MapError {
    fn from(_: OutOfMemory) -> MapError {
        MapError::OutOfMemory
    }
}

impl From<OutOfMemory> for ProtectError {
    fn from(_: OutOfMemory) -> ProtectError {
        ProtectError::OutOfMemory
    }
}

/// The memory of a process; see the crate's head.
pub struct AddressSpace<M = SoftwareMmu> {
    pub(crate) content: CacheLine<RadixArray>,
    pub(crate) marks: Marks,
    /// Core → the page at which it last found room.
    pub(crate) hints: CacheLine<RadixArray>,
    pub(crate) mmu: M,
}

impl AddressSpace<SoftwareMmu> {
    /// An empty address space whose hardware is software.
    ///
    /// # Safety
    /// As for [`RadixArray::new`]; used with one pool and one [`RefCache`] only, whose maintenance gives mappings back.
    pub unsafe fn new() -> AddressSpace<SoftwareMmu> {
        // SAFETY: the caller's promise.
        unsafe { AddressSpace::with_mmu(SoftwareMmu::new()) }
    }
}

impl<M: Mmu> AddressSpace<M> {
    /// An empty address space.
    ///
    /// # Safety
    /// As for [`AddressSpace::new`]. The hardware finds nothing but what was installed for the core and the page, and neither
    /// withdrawn nor revoked since: accesses go where it says.
    pub unsafe fn with_mmu(mmu: M) -> AddressSpace<M> {
        // SAFETY: the caller's promise.
        unsafe {
            let array = || CacheLine(RadixArray::new());
            AddressSpace { content: array(), marks: Marks::new(), hints: array(), mmu }
        }
    }

    /// The hardware.
    pub fn mmu(&self) -> &M {
        &self.mmu
    }

    /// Maps so many pages, at least one. A file comes with a reference, which the mapping takes over if it is new.
    ///
    /// # Errors
    /// [`MapError`]: no room, something is where nothing may be, or no memory; then nothing has changed.
    ///
    /// # Panics
    /// If the pages do not lie within the address space.
    pub fn map<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        place: Place,
        pages: u64,
        protection: Protection,
        backing: Backing,
    ) -> Result<Mapped, MapError> {
        let Memory { guard, wait, .. } = *memory;
        let may_write = !matches!(backing, Backing::File { sharing: Sharing::Shared, may_write: false, .. });
        let wanted = rights(protection).with(Mark::Sealed, !may_write).with(Mark::Mapped, true);
        let (range, content) = match place {
            Place::Anywhere => self.choose(memory, pages)?,
            Place::Fixed(page) | Place::FixedNoReplace(page) => {
                let range = page..page + pages;
                assert!(range.end <= SPACE_PAGES, "pages of the address space");
                if place == Place::Fixed(page) && pages == 1 && self.is_same(memory, page, backing, wanted) {
                    return Ok(Mapped { page, is_new: false });
                }
                if place != Place::Fixed(page) && self.marks.first(guard, &range, Mark::Mapped, wait) != range.end {
                    return Err(MapError::Exists);
                }
                let content = self.content.lock(guard, range.clone(), wait)?;
                if place != Place::Fixed(page) && !is_empty(&self.content, guard, &range) {
                    return Err(MapError::Exists);
                }
                (range, content)
            }
        };
        let (value, mapping) = match backing {
            Backing::Anonymous => (Content::Anonymous, None),
            Backing::File { file, page, sharing, .. } => {
                let count = CacheLine(Counted::new(pages as i64, KIND_MAPPING));
                let mapping = Mapping { file, first: range.start, file_page: page, sharing, pages: count };
                let mapping = guard.core().allocate_object(mapping)?;
                (Content::File(MappingRef::new(mapping)), Some(mapping))
            }
        };
        let marks = self.marks.lock(guard, &range, wanted, wait).inspect_err(|_| {
            if let Some(mapping) = mapping {
                // SAFETY: made just now; nobody has seen it.
                unsafe { guard.core().free_object(mapping) };
            }
        })?;
        let mut replaces = false;
        marks.change(wanted, || {
            content.fill(Some(value.encode()), |part, old| {
                replaces = true;
                self.give_up(memory, &part, old);
            });
            if replaces {
                self.mmu.revoke(guard, range.clone(), Revoked::All, wait);
            }
            // Rights that seemed to be as wanted are not locked. Others may have changed them since, and then seen what was here
            // before: so this comes after them. From now on nobody sees that, nor yet what comes.
            let is_as_wanted = !marks.has(Mark::Writable) && !marks.has(Mark::Mapped);
            if is_as_wanted && !planted("address-space: rights that were as wanted are not taken again") {
                let rights = wanted.without(Mark::Mapped);
                // Who has changed them has made slots for them.
                if let Ok(marks) = self.marks.lock(guard, &range, rights, wait) {
                    marks.change(rights, || ());
                }
            }
        });
        Ok(Mapped { page: range.start, is_new: true })
    }

    /// Lets pages of a range lead nowhere; those that do not lead anywhere stay so.
    ///
    /// # Errors
    /// [`OutOfMemory`] without memory for a node; then nothing has changed.
    ///
    /// # Panics
    /// If the pages do not lie within the address space.
    pub fn unmap<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>, range: Range<u64>) -> Result<(), OutOfMemory> {
        assert!(range.end <= SPACE_PAGES, "pages of the address space");
        let Memory { guard, wait, .. } = *memory;
        let is_mapped = match range.end - range.start {
            1 => self.is_mapped(memory, range.start),
            _ => self.marks.first(guard, &range, Mark::Mapped, wait) != range.end,
        };
        if !is_mapped {
            return Ok(());
        }
        let wanted = unmapped();
        let content = self.content.lock(guard, range.clone(), wait)?;
        let marks = self.marks.lock(guard, &range, wanted, wait)?;
        marks.change(wanted, || {
            content.fill(None, |part, old| self.give_up(memory, &part, old));
            self.mmu.revoke(guard, range, Revoked::All, wait);
        });
        Ok(())
    }

    /// Changes what may be done with the pages of a range: all those before the first for which it cannot be.
    ///
    /// # Errors
    /// [`ProtectError`] at the first page for which it cannot be, or without memory.
    ///
    /// # Panics
    /// If the pages do not lie within the address space.
    pub fn protect<F: Files, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        range: Range<u64>,
        protection: Protection,
    ) -> Result<(), ProtectError> {
        assert!(range.end <= SPACE_PAGES, "pages of the address space");
        let Memory { guard, wait, .. } = *memory;
        let wanted = rights(protection);
        // The pages for which it can be, and what the next one says.
        let possible = || {
            let mapped_end = match range.end - range.start {
                1 => range.start + u64::from(self.is_mapped(memory, range.start)),
                _ => self.marks.prefix(guard, &range, Mark::Mapped, wait),
            };
            let part = range.start..mapped_end;
            let sealed = match protection {
                Protection::ReadWrite => self.marks.first(guard, &part, Mark::Sealed, wait),
                _ => part.end,
            };
            let error = if sealed < part.end { ProtectError::Denied } else { ProtectError::NotMapped };
            (part.start..sealed, if sealed < range.end { Err(error) } else { Ok(()) })
        };
        let is_page = range.end - range.start == 1;
        loop {
            // Of one page at one moment, at which nobody changes it.
            let is_so = || self.is_mapped(memory, range.start) && self.marks.are(guard, &range, wanted, wait);
            if is_page && self.marks.of(Mark::Writable).read(guard, range.start, wait, |_| is_so()) {
                return Ok(());
            }
            let (part, outcome) = possible();
            if part.is_empty() || (!is_page && self.marks.are(guard, &part, wanted, wait)) {
                return outcome;
            }
            let marks = self.marks.lock(guard, &part, wanted, wait)?;
            // Others have made it so since we looked: that is looked at again, at one moment. Who makes a page one that cannot be
            // written holds the lock that we have now.
            if !marks.has(Mark::Writable) || possible().0 != part {
                continue;
            }
            let revoked = match protection {
                Protection::None => Some(Revoked::All),
                Protection::Read => Some(Revoked::Stores),
                Protection::ReadWrite => None,
            };
            marks.change(wanted, || {
                if let Some(revoked) = revoked {
                    self.mmu.revoke(guard, part.clone(), revoked, wait);
                }
            });
            return outcome;
        }
    }

    /// Calls `each` for all ranges that are mapped, in order; weakly consistent if others change them.
    pub fn for_each_mapped(&self, guard: &Guard<'_>, mut each: impl FnMut(Range<u64>)) {
        self.marks.of(Mark::Mapped).for_each(guard, |range, _| each(range));
    }

    /// Gives everything back.
    ///
    /// # Safety
    /// Nobody uses the address space any more, or will.
    pub unsafe fn destroy<F: Files, W: Wait>(&self, memory: &Memory<'_, F, W>) {
        self.content.for_each(memory.guard, |part, old| self.give_up(memory, &part, old));
        let core = memory.guard.core();
        // SAFETY: the caller's promise.
        unsafe {
            self.content.destroy(core);
            self.marks.destroy(core);
            self.hints.destroy(core);
            self.mmu.destroy(memory.guard);
        }
    }

    /// Whether a page is mapped, as of a moment at which nobody is changing that.
    fn is_mapped<F, W: Wait>(&self, memory: &Memory<'_, F, W>, page: u64) -> bool {
        self.marks.has(memory.guard, page, Mark::Mapped, memory.wait)
    }

    /// Whether the page leads where a mapping of it would let it lead, with the same rights.
    fn is_same<F, W: Wait>(&self, memory: &Memory<'_, F, W>, page: u64, backing: Backing, wanted: Wanted) -> bool {
        let Memory { guard, wait, .. } = *memory;
        // Not in the middle of a change, of which the tables have not been told yet.
        let value = self.content.settled(guard, page, wait);
        let leads_there = match (value.map(Content::decode), backing) {
            (Some(Content::Anonymous), Backing::Anonymous) => true,
            (Some(Content::File(mapping)), Backing::File { file, page: page_of_file, sharing, .. }) => {
                let mapping = mapping.get();
                mapping.file == file && mapping.sharing == sharing && mapping.page_of_file(page) == page_of_file
            }
            _ => false,
        };
        leads_there
            && self.marks.are(guard, &(page..page + 1), wanted, wait)
            && self.content.settled(guard, page, wait) == value
    }

    /// The pages of a range do not lead there any more.
    pub(crate) fn give_up<F, W>(&self, memory: &Memory<'_, F, W>, range: &Range<u64>, value: u64) {
        let content = Content::decode(value);
        let pages = range.end as i64 - range.start as i64;
        self.count_mapping(memory, content.mapping(memory.pages), -pages);
        self.drop_stored(memory, content);
    }

    /// So many pages more, or less, lead to a mapping, if there is one.
    pub(crate) fn count_mapping<F, W>(&self, memory: &Memory<'_, F, W>, mapping: Option<MappingRef>, pages: i64) {
        if let Some(mapping) = mapping {
            // SAFETY: its count has one for each page that leads to it, as one did until now; this call, in which it was found, has
            // not ended.
            unsafe { memory.counts.change(memory.guard.core(), &mapping.get().pages, pages) };
        }
    }

    /// What the space had stored to a page is in its slot no more. Tables may lead there until the caller, who is pinned, has
    /// revoked that.
    pub(crate) fn drop_stored<F, W>(&self, memory: &Memory<'_, F, W>, content: Content) {
        match content {
            Content::Anonymous | Content::File(_) => {}
            // SAFETY: it was in this slot only.
            Content::Own(page) => unsafe { memory.pages.retire(memory.guard, page) },
            // SAFETY: the slot led there, and the count has one for it.
            Content::Shared(shared) => unsafe { memory.counts.change(memory.guard.core(), shared.spaces(), -1) },
        }
    }

    /// Locks so many pages of the core's own part that lead nowhere.
    pub(crate) fn choose<'g, F, W: Wait>(
        &'g self,
        memory: &Memory<'g, F, W>,
        pages: u64,
    ) -> Result<(Range<u64>, LockedRange<'g>), MapError> {
        let Memory { guard, wait, .. } = *memory;
        let core = guard.core().index().get() as u64;
        let part = part_of(guard.core().index());
        if pages > part.end - part.start {
            return Err(MapError::OutOfMemory);
        }
        let alignment = match pages {
            ALIGNED_FROM_PAGES.. => pages.next_power_of_two().min(LARGEST_ALIGNMENT_PAGES),
            _ => 1,
        };
        let hint = self.hints.get(guard, core).unwrap_or(part.start);
        // From the hint to the end of the part, and then from its beginning.
        for mut start in [hint, part.start] {
            loop {
                start = start.next_multiple_of(alignment);
                let range = start..start + pages;
                if range.end > part.end {
                    break;
                }
                let mut taken_end = start;
                self.content.for_each_in(guard, range.clone(), |taken, _| taken_end = taken.end);
                if taken_end == start {
                    let locked = self.content.lock(guard, range.clone(), wait)?;
                    if is_empty(&self.content, guard, &range) {
                        if hint != start {
                            self.hints.lock_slot(guard, core, wait)?.change(|| Some(start));
                        }
                        return Ok((range, locked));
                    }
                    continue;
                }
                // A large mapping is a few words: page by page, the one behind 1 GiB would look 262,144 times.
                start = self.content.first_empty(guard, taken_end);
            }
        }
        Err(MapError::OutOfMemory)
    }
}

pub(crate) fn is_empty(array: &RadixArray, guard: &Guard<'_>, range: &Range<u64>) -> bool {
    let mut is_empty = true;
    array.for_each_in(guard, range.clone(), |_, _| is_empty = false);
    is_empty
}

/// The marks of a protection.
pub(crate) fn rights(protection: Protection) -> Wanted {
    Wanted::AS_IT_IS
        .with(Mark::Writable, protection == Protection::ReadWrite)
        .with(Mark::Hidden, protection == Protection::None)
}

/// The marks of pages that lead nowhere.
pub(crate) fn unmapped() -> Wanted {
    rights(Protection::Read).with(Mark::Sealed, false).with(Mark::Mapped, false)
}
