//! The data of a regular file: pages, and holes where there is none.

use std::collections::BTreeMap;

use std::rc::Rc;

use posix_calls::data::MAX_FILE_BYTES;

use crate::shared_pages::{Lines, OwnPage, PAGE_BYTES, Part};
use crate::wire::StoredKind;

/// Pages that an owner has for data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pages {
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

/// A page of a file.
#[derive(Debug)]
struct Page {
    bytes: Box<[u8; PAGE_BYTES as usize]>,
    /// The same in shared memory, if somebody has asked for it since it was written.
    shared: Option<Rc<OwnPage>>,
}

impl Page {
    fn empty() -> Page {
        Page { bytes: Box::new([0; PAGE_BYTES as usize]), shared: None }
    }

    /// Its bytes, which are about to change.
    fn bytes_mut(&mut self) -> &mut [u8; PAGE_BYTES as usize] {
        self.shared = None;
        &mut self.bytes
    }
}

/// Data of a file. Bytes of a page that lie at the file's end or later are zero.
#[derive(Debug, Default)]
pub(crate) struct File {
    pages: BTreeMap<u64, Page>,
    pub(crate) size_bytes: u64,
}

impl File {
    /// Bytes from an offset on: fewer than asked for only at the end.
    pub(crate) fn read(&self, offset: u64, most_bytes: u64) -> Vec<u8> {
        let length = self.size_bytes.saturating_sub(offset).min(most_bytes);
        let mut bytes = vec![0; length as usize];
        let mut done = 0;
        while done < length {
            let (page, start, count) = part_of_page(offset + done, length - done);
            if let Some(page) = self.pages.get(&page) {
                bytes[done as usize..(done + count) as usize]
                    .copy_from_slice(&page.bytes[start..start + count as usize]);
            }
            done += count;
        }
        bytes
    }

    /// Writes bytes as long as there are pages; returns how many.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], pages: &mut Pages) -> u64 {
        let length = MAX_FILE_BYTES.saturating_sub(offset).min(bytes.len() as u64);
        let mut done = 0;
        while done < length {
            let (page, start, count) = part_of_page(offset + done, length - done);
            if !self.pages.contains_key(&page) {
                if pages.used == pages.limit {
                    break;
                }
                pages.used += 1;
            }
            let page = self.pages.entry(page).or_insert_with(Page::empty);
            page.bytes_mut()[start..start + count as usize]
                .copy_from_slice(&bytes[done as usize..(done + count) as usize]);
            done += count;
            self.size_bytes = self.size_bytes.max(offset + done);
        }
        done
    }

    /// Makes the file so long.
    pub(crate) fn resize(&mut self, size_bytes: u64, pages: &mut Pages) {
        let before = self.pages.len();
        drop(self.pages.split_off(&size_bytes.div_ceil(PAGE_BYTES)));
        if let Some(last) = self.pages.get_mut(&(size_bytes / PAGE_BYTES)) {
            last.bytes_mut()[(size_bytes % PAGE_BYTES) as usize..].fill(0);
        }
        self.size_bytes = size_bytes;
        pages.used -= (before - self.pages.len()) as u64;
    }

    /// What lies at an offset, and to where alike.
    pub(crate) fn extent(&self, offset: u64) -> (StoredKind, u64) {
        let first = offset / PAGE_BYTES;
        if !self.pages.contains_key(&first) {
            let next = self.pages.range(first..).next();
            return (StoredKind::Hole, next.map_or(u64::MAX, |(page, _)| page * PAGE_BYTES));
        }
        let alike = (first..).zip(self.pages.range(first..)).take_while(|(place, (page, _))| place == *page);
        (StoredKind::Data, (first + alike.count() as u64) * PAGE_BYTES)
    }

    /// A page as it lies in this part of shared memory from now on; nothing if there is a hole.
    ///
    /// # Errors
    /// No page of the part is free.
    pub(crate) fn share(&mut self, index: u64, part: &Rc<Part>) -> Result<Option<Rc<OwnPage>>, ()> {
        let Some(page) = self.pages.get_mut(&index) else { return Ok(None) };
        if page.shared.is_none() {
            page.shared = part.put(&page.bytes, Lines::MAX).map(Rc::new);
        }
        page.shared.clone().map(Some).ok_or(())
    }

    pub(crate) fn page_count(&self) -> u64 {
        self.pages.len() as u64
    }
}

/// The page of an offset, where it starts there, and how many of the bytes lie in it.
fn part_of_page(offset: u64, length: u64) -> (u64, usize, u64) {
    let start = offset % PAGE_BYTES;
    (offset / PAGE_BYTES, start as usize, length.min(PAGE_BYTES - start))
}
