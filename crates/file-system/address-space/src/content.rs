//! What a page of an address space leads to.

use pages::{PageNumber, PagePool};
use posix_calls::Sharing;
use sync::atomic::Ordering;

use crate::files::Files;
use crate::mapping::MappingRef;
use crate::shared::SharedPageRef;

const KIND_MASK: u64 = 3;
const SHARED: u64 = 0;
const ANONYMOUS: u64 = 1;
const FILE: u64 = 2;
const NUMBER_SHIFT: u32 = 2;
const OWN: u64 = 3;
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
    /// A page that other address spaces have too: who stores makes a copy.
    Shared(SharedPageRef),
}

impl Content {
    #[inline]
    pub(crate) fn decode(value: u64) -> Content {
        let address = value & !KIND_MASK;
        match value & KIND_MASK {
            ANONYMOUS => Content::Anonymous,
            FILE => Content::File(MappingRef::from_address(address).expect("a mapping has an address")),
            SHARED => Content::Shared(SharedPageRef::from_address(address).expect("a shared page has an address")),
            _ => Content::Own(PageNumber::new((value >> NUMBER_SHIFT) as u32)),
        }
    }

    #[inline]
    pub(crate) fn encode(self) -> u64 {
        match self {
            Content::Anonymous => ANONYMOUS,
            Content::File(mapping) => mapping.address() | FILE,
            Content::Own(page) => u64::from(page.get()) << NUMBER_SHIFT | OWN,
            Content::Shared(shared) => shared.address() | SHARED,
        }
    }

    /// The page of the pool, if there is one.
    #[inline]
    pub(crate) fn page(self) -> Option<PageNumber> {
        match self {
            Content::Anonymous | Content::File(_) => None,
            Content::Own(page) => Some(page),
            Content::Shared(shared) => Some(shared.page()),
        }
    }

    /// Of a copy of a file's page: the mapping, and how often the file had been cut when it was made.
    #[inline]
    pub(crate) fn original(self, pages: &PagePool) -> Option<(MappingRef, u64)> {
        match self {
            Content::Anonymous | Content::File(_) => None,
            Content::Shared(shared) => shared.original(),
            Content::Own(page) => {
                let [mapping, cuts] = [NOTE_MAPPING, NOTE_CUTS].map(|note| &pages.notes(page)[note]);
                let mapping = MappingRef::from_address(mapping.load(Ordering::Relaxed))?;
                Some((mapping, cuts.load(Ordering::Relaxed)))
            }
        }
    }

    /// The mapping that the page belongs to, if it is one of a file.
    #[inline]
    pub(crate) fn mapping(self, pages: &PagePool) -> Option<MappingRef> {
        match self {
            Content::File(mapping) => Some(mapping),
            copy => copy.original(pages).map(|(mapping, _)| mapping),
        }
    }

    /// What the page was before the address space stored to it.
    pub(crate) fn unstored(self, pages: &PagePool) -> Content {
        self.mapping(pages).map_or(Content::Anonymous, Content::File)
    }

    /// What the page is for an access now: a copy of a page that was cut off from its file is none any more.
    #[inline]
    pub(crate) fn present(self, page: u64, pages: &PagePool, files: &impl Files) -> Content {
        let Some((mapping, cuts)) = self.original(pages) else { return self };
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
