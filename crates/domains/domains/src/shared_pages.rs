//! Pages of data in memory that all domains reach: how one domain hands data to another without putting it into messages.
//!
//! Each domain has a part, and alone writes it. So no two domains ever write one line, and no one holds another's line
//! dirty. What a page holds stays as it is from when others are informed of it until they say that they need it no
//! more.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

use messages::DomainNumber;
use pool::{Fault, LINE_BYTES, Memory};
use sync::mutant::planted;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// A page of a domain's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedPage {
    /// Whose part.
    pub domain: DomainNumber,
    /// Which of its pages, from 0.
    pub number: u32,
}

/// Pages that all domains reach, as one domain sees them. Offsets and lengths within a page are bytes; false says that the
/// memory has failed, and then data travel in messages.
///
/// **What it must give.** What was written, written back and drained is what anyone reads who invalidates these bytes later.
pub trait SharedPages {
    /// Pages of each domain's part.
    fn pages_per_domain(&self) -> u32;

    /// Writes whole lines of a page of the own part.
    fn write(&self, page: SharedPage, start: usize, bytes: &[u8]) -> bool;

    /// Begins to write such lines back.
    fn write_back(&self, page: SharedPage, start: usize, length: usize) -> bool;

    /// Waits until all that was written back has arrived.
    fn drain(&self) -> bool;

    /// Forgets the domain's own copy of lines.
    fn invalidate(&self, page: SharedPage, start: usize, length: usize) -> bool;

    /// Reads.
    fn read(&self, page: SharedPage, start: usize, into: &mut [u8]) -> bool;
}

/// Pages in a pool: memory that domains share without coherence.
#[derive(Debug)]
pub struct PoolPages<M> {
    memory: M,
    at: usize,
    domain_count: usize,
    pages_per_domain: u32,
    fault: Cell<Option<Fault>>,
}

impl<M: Memory> PoolPages<M> {
    /// Bytes that this many pages of each domain take.
    #[must_use]
    pub fn size_bytes(domain_count: usize, pages_per_domain: u32) -> usize {
        domain_count * pages_per_domain as usize * PAGE_BYTES as usize
    }

    /// From `at`, at the beginning of a line.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`]: the memory is too small.
    pub fn new(memory: M, at: usize, domain_count: usize, pages_per_domain: u32) -> Result<PoolPages<M>, Fault> {
        pool::in_bounds(at, PoolPages::<M>::size_bytes(domain_count, pages_per_domain), memory.size_bytes())?;
        Ok(PoolPages { memory, at, domain_count, pages_per_domain, fault: Cell::new(None) })
    }

    /// Why data travel in messages, if the memory has failed.
    pub fn fault(&self) -> Option<Fault> {
        self.fault.get()
    }

    /// Does something to bytes of a page, which a peer may have named.
    fn with(
        &self,
        page: SharedPage,
        start: usize,
        length: usize,
        act: impl FnOnce(usize) -> Result<(), Fault>,
    ) -> bool {
        let SharedPage { domain, number } = page;
        let is_one = domain.index() < self.domain_count && number < self.pages_per_domain;
        if !is_one || start + length > PAGE_BYTES as usize || self.fault.get().is_some() {
            return false;
        }
        let place = domain.index() * self.pages_per_domain as usize + number as usize;
        let done = act(self.at + place * PAGE_BYTES as usize + start);
        done.inspect_err(|fault| self.fault.set(Some(*fault))).is_ok()
    }
}

impl<M: Memory> SharedPages for PoolPages<M> {
    fn pages_per_domain(&self) -> u32 {
        self.pages_per_domain
    }

    fn write(&self, page: SharedPage, start: usize, bytes: &[u8]) -> bool {
        self.with(page, start, bytes.len(), |at| self.memory.write(at, bytes))
    }

    fn write_back(&self, page: SharedPage, start: usize, length: usize) -> bool {
        self.with(page, start, length, |at| self.memory.write_back(at, length))
    }

    fn drain(&self) -> bool {
        self.memory.drain().inspect_err(|fault| self.fault.set(Some(*fault))).is_ok()
    }

    fn invalidate(&self, page: SharedPage, start: usize, length: usize) -> bool {
        self.with(page, start, length, |at| self.memory.invalidate(at, length))
    }

    fn read(&self, page: SharedPage, start: usize, into: &mut [u8]) -> bool {
        self.with(page, start, into.len(), |at| self.memory.read(at, into))
    }
}

/// Pages in the memory of one thread that plays all domains. A page takes memory once it is used.
pub struct OwnPages {
    pages: Vec<OnceCell<RefCell<Box<[u8; PAGE_BYTES as usize]>>>>,
    pages_per_domain: u32,
}

impl OwnPages {
    /// `pages` pages of each of `domain_count` domains.
    #[must_use]
    pub fn new(domain_count: usize, pages_per_domain: u32) -> OwnPages {
        let count = domain_count * pages_per_domain as usize;
        OwnPages { pages: vec![OnceCell::new(); count], pages_per_domain }
    }

    fn page(&self, page: SharedPage) -> Option<&RefCell<Box<[u8; PAGE_BYTES as usize]>>> {
        let place = page.domain.index() * self.pages_per_domain as usize + page.number as usize;
        let page = (page.number < self.pages_per_domain).then(|| self.pages.get(place))??;
        Some(page.get_or_init(|| RefCell::new(Box::new([0; PAGE_BYTES as usize]))))
    }
}

impl fmt::Debug for OwnPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnPages").field("pages", &self.pages.len()).finish_non_exhaustive()
    }
}

impl SharedPages for OwnPages {
    fn pages_per_domain(&self) -> u32 {
        self.pages_per_domain
    }

    fn write(&self, page: SharedPage, start: usize, bytes: &[u8]) -> bool {
        let Some(page) = self.page(page) else { return false };
        page.borrow_mut()[start..start + bytes.len()].copy_from_slice(bytes);
        true
    }

    fn write_back(&self, _: SharedPage, _: usize, _: usize) -> bool {
        true
    }

    fn drain(&self) -> bool {
        true
    }

    fn invalidate(&self, page: SharedPage, _: usize, _: usize) -> bool {
        self.page(page).is_some()
    }

    fn read(&self, page: SharedPage, start: usize, into: &mut [u8]) -> bool {
        let Some(page) = self.page(page) else { return false };
        into.copy_from_slice(&page.borrow()[start..start + into.len()]);
        true
    }
}

/// What data have cost in shared memory, in lines of 64 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Written back.
    pub written_back: u64,
    /// Invalidated.
    pub invalidated: u64,
}

/// Lines of a page, a bit each: bit 0 is the first.
pub(crate) type Lines = u64;

/// Lines of a page.
pub(crate) const LINES_PER_PAGE: usize = PAGE_BYTES as usize / LINE_BYTES;

/// The lines in which these bytes of a page lie.
pub(crate) fn lines_at(start: usize, length: usize) -> Lines {
    let lines = pool::lines_of(start, length);
    let count = lines.end - lines.start;
    if count == LINES_PER_PAGE { Lines::MAX } else { ((1 << count) - 1) << lines.start }
}

/// The bytes of these lines, run by run: where one starts, and its length.
pub(crate) fn runs(lines: Lines) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = lines.checked_shr(at)?;
        if rest == 0 {
            return None;
        }
        let first = at + rest.trailing_zeros();
        let count = (lines >> first).trailing_ones();
        at = first + count;
        Some((first as usize * LINE_BYTES, count as usize * LINE_BYTES))
    })
}

/// The part of a domain: which of its pages are free, and how data come into pages and out of others'.
pub(crate) struct Part {
    pages: Rc<dyn SharedPages>,
    own: DomainNumber,
    free: RefCell<Vec<u32>>,
    counts: Cell<LineCounts>,
    last_version: Cell<u64>,
}

/// A page of the own part, which is free again when no one needs it.
pub(crate) struct OwnPage {
    part: Rc<Part>,
    pub(crate) number: u32,
    /// Tells what it holds from all that pages of this part have held.
    pub(crate) version: u64,
}

impl fmt::Debug for OwnPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnPage").field("number", &self.number).field("version", &self.version).finish_non_exhaustive()
    }
}

impl Drop for OwnPage {
    fn drop(&mut self) {
        self.part.free.borrow_mut().push(self.number);
    }
}

impl Part {
    pub(crate) fn new(pages: Rc<dyn SharedPages>, own: DomainNumber) -> Part {
        let free = (0..pages.pages_per_domain()).rev().collect();
        let (counts, last_version) = (Cell::default(), Cell::new(0));
        Part { pages, own, free: RefCell::new(free), counts, last_version }
    }

    pub(crate) fn counts(&self) -> LineCounts {
        self.counts.get()
    }

    /// A page with these lines of a page of data, to be announced once [`Part::release`] has been called; nothing if no
    /// page is free.
    pub(crate) fn put(self: &Rc<Part>, bytes: &[u8; PAGE_BYTES as usize], lines: Lines) -> Option<OwnPage> {
        let number = self.free.borrow_mut().pop()?;
        self.last_version.set(self.last_version.get() + 1);
        let page = OwnPage { part: Rc::clone(self), number, version: self.last_version.get() };
        let place = SharedPage { domain: self.own, number };
        for (start, length) in runs(lines) {
            let is_written = self.pages.write(place, start, &bytes[start..start + length])
                && (planted("domains: data are not written back") || self.pages.write_back(place, start, length));
            if !is_written {
                return None;
            }
        }
        let counts = self.counts.get();
        let written_back = counts.written_back + u64::from(lines.count_ones());
        self.counts.set(LineCounts { written_back, ..counts });
        Some(page)
    }

    /// Waits until what was put into pages has arrived: one that hears of them from now on may read them.
    pub(crate) fn release(&self) -> bool {
        planted("domains: data are not drained") || self.pages.drain()
    }

    /// From now on the domain reads lines of another's page as they are.
    pub(crate) fn acquire(&self, page: SharedPage, lines: Lines) -> bool {
        let counts = self.counts.get();
        self.counts.set(LineCounts { invalidated: counts.invalidated + u64::from(lines.count_ones()), ..counts });
        runs(lines).all(|(start, length)| self.pages.invalidate(page, start, length))
    }

    /// Reads bytes of another's page that were acquired.
    pub(crate) fn read(&self, page: SharedPage, start: usize, into: &mut [u8]) -> bool {
        self.pages.read(page, start, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_page_are_bits() {
        assert_eq!(lines_at(0, 4096), Lines::MAX);
        assert_eq!(lines_at(63, 2), 3);
        assert_eq!(lines_at(4095, 1), 1 << 63);
        assert_eq!(runs(0).count(), 0);
        assert_eq!(runs(Lines::MAX).collect::<Vec<_>>(), [(0, 4096)]);
        assert_eq!(runs(1 << 63 | 0b110).collect::<Vec<_>>(), [(64, 128), (4032, 64)]);
    }
}
