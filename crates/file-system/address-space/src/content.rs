//! What a page of an address space leads to.

use pages::{PageNumber, PagePool};
use posix_calls::Sharing;
use sync::atomic::Ordering;

use crate::files::Files;
use crate::mapping::MappingRef;

const KIND_MASK: u64 = 3;
const ANONYMOUS: u64 = 1;
const FILE: u64 = 2;
const OWN: u64 = 3;
const NUMBER_SHIFT: u32 = 2;
/// Notes of a page: the mapping that it is a copy of a page of, or zero; how often the file had been cut.
const NOTE_MAPPING: usize = 0;
const NOTE_CUTS: usize = 1;

/// What a slot of the array says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Anonymous memory that nobody has stored to: zeros.
    Anonymous,
    /// A page of a file, as the file has it.
    File(MappingRef),
    /// A page that only this address space has.
    Own(PageNumber),
}

impl Content {
    #[inline]
    pub(crate) fn decode(value: u64) -> Content {
        match value & KIND_MASK {
            ANONYMOUS => Content::Anonymous,
            FILE => Content::File(MappingRef::from_address(value & !KIND_MASK).expect("a mapping has an address")),
            _ => Content::Own(PageNumber::new((value >> NUMBER_SHIFT) as u32)),
        }
    }

    #[inline]
    pub(crate) fn encode(self) -> u64 {
        match self {
            Content::Anonymous => ANONYMOUS,
            Content::File(mapping) => mapping.address() | FILE,
            Content::Own(page) => u64::from(page.get()) << NUMBER_SHIFT | OWN,
        }
    }

    /// The mapping that the page belongs to, if it is one of a file.
    pub(crate) fn mapping(self, pages: &PagePool) -> Option<MappingRef> {
        match self {
            Content::Anonymous => None,
            Content::File(mapping) => Some(mapping),
            Content::Own(page) => MappingRef::from_address(pages.notes(page)[NOTE_MAPPING].load(Ordering::Relaxed)),
        }
    }

    /// What the page is for an access now: a copy of a page that was cut off from its file is none any more.
    #[inline]
    pub(crate) fn present(self, page: u64, pages: &PagePool, files: &impl Files) -> Content {
        let Content::Own(own) = self else { return self };
        let Some(mapping) = self.mapping(pages) else { return self };
        let cuts = pages.notes(own)[NOTE_CUTS].load(Ordering::Relaxed);
        let original = mapping.get();
        if files.is_cut_since(original.file, original.page_of_file(page), cuts) { Content::File(mapping) } else { self }
    }

    /// Whether accesses must look here each time: private pages of files, whose file may be cut.
    pub(crate) fn is_looked_at(self, pages: &PagePool) -> bool {
        self.mapping(pages).is_some_and(|mapping| mapping.get().sharing == Sharing::Private)
    }
}

/// Notes whose copy a page is, before it is in a slot.
pub(crate) fn note_copy(pages: &PagePool, page: PageNumber, original: Option<(MappingRef, u64)>) {
    let [mapping, cuts] = pages.notes(page);
    // Published with the slot's value.
    mapping.store(original.map_or(0, |(mapping, _)| mapping.address()), Ordering::Relaxed);
    cuts.store(original.map_or(0, |(_, cuts)| cuts), Ordering::Relaxed);
}
