//! The pages of a process.

use std::collections::BTreeMap;

use posix_calls::{Errno, Protection, Sharing};

use super::PAGE_BYTES;
use crate::identity::ObjectNumber;

/// Pages of a file whose bytes have numbers of 64 bits.
const LAST_FILE_PAGE: u64 = u64::MAX / PAGE_BYTES;

/// Bytes of a page.
pub(super) type PageBytes = Box<[u8; PAGE_BYTES as usize]>;

/// A page of a file that is mapped; it keeps the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePage {
    pub(crate) file: ObjectNumber,
    pub(crate) page: u64,
    pub(crate) sharing: Sharing,
    /// Whether what it was mapped by was open for writing.
    pub(crate) may_write: bool,
}

impl FilePage {
    pub(super) fn offset(self) -> u64 {
        self.page * PAGE_BYTES
    }

    /// The page so far after this one, if `pages` follow it.
    pub(super) fn part(self, distance: u64, pages: u64) -> Result<FilePage, Errno> {
        let page = self.page.checked_add(distance).ok_or(Errno::EINVAL)?;
        match page.checked_add(pages) {
            Some(end) if end <= LAST_FILE_PAGE => Ok(FilePage { page, ..self }),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// A page that is mapped.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub(super) protection: Protection,
    /// Of a file; else of zeros.
    pub(super) from: Option<FilePage>,
    /// What the process has stored, where that is its own.
    pub(super) stored: Option<PageBytes>,
}

impl Mapped {
    pub(super) fn is_sealed(&self) -> bool {
        self.from.is_some_and(|from| from.sharing == Sharing::Shared && !from.may_write)
    }
}

/// The pages of a process.
pub(crate) type Space = BTreeMap<u64, Mapped>;
