//! The file of pages: written where no record leads to, and synced before a record leads there.
//!
//! ```text
//! page 0   magic, format, identity of the instance, checksum
//! page 1   a mark: how many commits last for certain, checksum     the marks take turns, so that one of them is whole
//! page 2   a mark
//! page 3   data
//! ...
//! ```

use std::collections::BTreeSet;
use std::io;

use redb::StorageBackend;
use sync::mutant::planted;

use crate::FORMAT;
use crate::error::OpenError;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// The first page with data.
const FIRST_PAGE: u64 = 3;
/// The file grows by so many pages at least.
const GROWTH_PAGES: u64 = 256;
const MAGIC: [u8; 8] = *b"CMTPAGES";
/// What tells two instances apart.
pub(crate) type Identity = [u8; 16];

/// What a page has to be.
pub(crate) type Checksum = [u8; 16];

/// A page that a record leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageAt {
    pub(crate) page: u64,
    pub(crate) checksum: Checksum,
}

/// What a page of a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// These bytes.
    Bytes(Box<[u8]>),
    /// Those of a page of the page file.
    At(PageAt),
}

impl Content {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Content::Bytes(bytes) => bytes.to_vec(),
            Content::At(at) => [&at.page.to_le_bytes()[..], &at.checksum].concat(),
        }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Content> {
        if bytes.len() == PAGE {
            return Some(Content::Bytes(bytes.into()));
        }
        let (page, checksum) = bytes.split_first_chunk()?;
        Some(Content::At(PageAt { page: u64::from_le_bytes(*page), checksum: checksum.try_into().ok()? }))
    }
}

pub(crate) fn checksum_of(bytes: &[u8]) -> Checksum {
    let hash = blake3::hash(bytes);
    core::array::from_fn(|index| hash.as_bytes()[index])
}

/// Bytes with their checksum, at the beginning of a page.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    [bytes, &checksum_of(bytes)].concat()
}

/// So many bytes of a page, if the checksum after them says that they are what was written.
fn unsealed(page: &[u8], length: usize) -> Option<&[u8]> {
    let (bytes, rest) = page.split_at_checked(length)?;
    rest.starts_with(&checksum_of(bytes)).then_some(bytes)
}

/// How many commits a mark says, if it is whole.
fn mark_in(page: &[u8]) -> Option<u64> {
    unsealed(page, 8).map(|mark| u64::from_le_bytes(mark.try_into().expect("8 bytes")))
}

/// The pages, and which of them no record leads to.
#[derive(Debug)]
pub(crate) struct PageFile {
    storage: Box<dyn StorageBackend>,
    free: BTreeSet<u64>,
    /// Pages that the file has.
    page_count: u64,
}

impl PageFile {
    /// Begins a new file.
    pub(crate) fn create(storage: Box<dyn StorageBackend>, identity: &Identity) -> io::Result<PageFile> {
        storage.set_len(FIRST_PAGE * PAGE as u64)?;
        storage.write(0, &sealed(&[&MAGIC, &FORMAT.to_le_bytes()[..], identity].concat()))?;
        let pages = PageFile { storage, free: BTreeSet::new(), page_count: FIRST_PAGE };
        pages.mark(0)?;
        pages.sync()?;
        Ok(pages)
    }

    /// Whether a file can be what is left of one that was begun: it has no data, and no commit was ever noted in it.
    pub(crate) fn is_unused(storage: &dyn StorageBackend) -> io::Result<bool> {
        let length = storage.len()?;
        if length < FIRST_PAGE * PAGE as u64 {
            return Ok(true);
        }
        let mark = |page: u64| Ok::<_, io::Error>(mark_in(&storage.read(page * PAGE as u64, PAGE)?).unwrap_or(0));
        Ok(length == FIRST_PAGE * PAGE as u64 && mark(1)? == 0 && mark(2)? == 0)
    }

    /// Opens a file; also says to which instance it belongs, and how many commits there were at least.
    pub(crate) fn open(storage: Box<dyn StorageBackend>) -> Result<(PageFile, Identity, u64), OpenError> {
        let length = storage.len().map_err(OpenError::system("measure the page file"))?;
        let page_count = length / PAGE as u64;
        if page_count < FIRST_PAGE {
            return Err(OpenError::damaged(format!("its page file has {length} bytes, fewer than an empty one")));
        }
        let read = |page: u64| {
            storage
                .read(page * PAGE as u64, PAGE)
                .map_err(OpenError::system(format!("read page {page} of the page file")))
        };
        let header = read(0)?;
        if header[..8] != MAGIC {
            return Err(OpenError::damaged("its page file does not begin as one"));
        }
        let header =
            unsealed(&header, 28).ok_or_else(|| OpenError::damaged("the checksum of its page file is another one"))?;
        let found = u32::from_le_bytes(header[8..12].try_into().expect("4 bytes"));
        if found != FORMAT {
            return Err(OpenError::OtherVersion { found });
        }
        let identity = header[12..28].try_into().expect("16 bytes");
        let mut lasting = None;
        for page in [1, 2] {
            lasting = lasting.max(mark_in(&read(page)?));
        }
        let lasting = lasting.ok_or_else(|| OpenError::damaged("neither mark of its page file is whole"))?;
        let free = (FIRST_PAGE..page_count).collect();
        Ok((PageFile { storage, free, page_count }, identity, lasting))
    }

    /// Notes that so many commits last; it need not last itself.
    pub(crate) fn mark(&self, commits: u64) -> io::Result<()> {
        self.storage.write((1 + commits % 2) * PAGE as u64, &sealed(&commits.to_le_bytes()))
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.storage.sync_data(false)
    }

    /// A record leads to this page. False if another one does, or there is none.
    pub(crate) fn claim(&mut self, page: u64) -> bool {
        self.free.remove(&page)
    }

    /// No record leads to this page any more, now and after a power cut.
    pub(crate) fn give_back(&mut self, page: u64) {
        self.free.insert(page);
    }

    /// Writes pages where no record leads to: as many as there are in a row at once.
    pub(crate) fn write(&mut self, pages: &[&[u8]]) -> io::Result<Vec<PageAt>> {
        let lacking = (pages.len() as u64).saturating_sub(self.free.len() as u64);
        if lacking > 0 {
            let page_count = self.page_count + lacking.max(GROWTH_PAGES);
            self.storage.set_len(page_count * PAGE as u64)?;
            self.free.extend(self.page_count..page_count);
            self.page_count = page_count;
        }
        let (mut written, mut run, mut first) = (Vec::with_capacity(pages.len()), Vec::new(), 0);
        for bytes in pages {
            let page = self.free.pop_first().expect("there are enough");
            if !run.is_empty() && page != first + (run.len() / PAGE) as u64 {
                self.storage.write(first * PAGE as u64, &run)?;
                run.clear();
            }
            if run.is_empty() {
                first = page;
            }
            run.extend_from_slice(bytes);
            written.push(PageAt { page, checksum: checksum_of(bytes) });
        }
        if !run.is_empty() {
            self.storage.write(first * PAGE as u64, &run)?;
        }
        Ok(written)
    }

    /// The bytes of a page; nothing, if they are not what was written.
    pub(crate) fn read(&self, at: PageAt) -> io::Result<Option<Vec<u8>>> {
        if at.page >= self.page_count {
            return Ok(None);
        }
        let bytes = self.storage.read(at.page * PAGE as u64, PAGE)?;
        let is_same = checksum_of(&bytes) == at.checksum;
        Ok((is_same || planted("durable: pages are not compared with their checksums")).then_some(bytes))
    }
}
