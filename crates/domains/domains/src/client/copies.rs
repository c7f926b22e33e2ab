//! What a domain has of a file of another that it has open, at level `close-to-open`: pages that it may read where they lie, and
//! pages of its own, which it has written and not yet let others know of.

use std::collections::BTreeMap;

use posix_calls::Credentials;

use crate::server::PAGE_BYTES;
use crate::shared_pages::{Lines, lines_at};

/// Bytes of a page.
pub(super) type Page = Box<[u8; PAGE_BYTES as usize]>;

/// A page as it was when the owner reported it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// It lies in the owner's part of shared memory.
    Shared {
        number: u32,
        version: u64,
    },
    Hole,
}

/// A page of the domain's own.
#[derive(Debug)]
pub(super) struct OwnCopy {
    pub(super) bytes: Page,
    /// Lines that others do not know of.
    pub(super) written: Lines,
}

/// What there is of a file.
#[derive(Debug, Default)]
pub(super) struct Copy {
    /// What has it open.
    pub(super) handles: u64,
    pub(super) size_bytes: u64,
    /// The file's size when the owner reported it: pages after that are nothing but what was written here.
    pub(super) told_bytes: u64,
    pub(super) told: BTreeMap<u64, Told>,
    pub(super) own: BTreeMap<u64, OwnCopy>,
    /// Pages of which others do not know all.
    pub(super) written_pages: u64,
    /// Where that ends, when it was written, and by whom: by a user, if one has written.
    pub(super) end: u64,
    pub(super) modified_ns: i64,
    pub(super) writer: Option<Credentials>,
}

/// What a part of a page has.
pub(super) enum Found {
    /// It was read.
    Read,
    /// It lies in the owner's part.
    Shared { number: u32, version: u64 },
    /// The owner must be asked.
    Unknown,
}

impl Copy {
    pub(super) fn is_written(&self) -> bool {
        self.written_pages > 0
    }

    /// The owner has reported what there is: nothing that was known before is needed.
    pub(super) fn begin(&mut self, told_bytes: u64) {
        let handles = self.handles;
        *self = Copy { handles, size_bytes: told_bytes, told_bytes, ..Copy::default() };
    }

    /// The owner has reported that the file is shorter.
    pub(super) fn shorten(&mut self, told_bytes: u64) {
        if told_bytes < self.told_bytes {
            self.told_bytes = told_bytes;
            self.size_bytes = told_bytes.max(self.end);
            self.told.split_off(&told_bytes.div_ceil(PAGE_BYTES));
        }
    }

    /// Reads a part of a page, as far as the domain has it.
    pub(super) fn read(&self, index: u64, start: usize, into: &mut [u8]) -> Found {
        if let Some(own) = self.own.get(&index) {
            into.copy_from_slice(&own.bytes[start..start + into.len()]);
            return Found::Read;
        }
        match self.told.get(&index) {
            Some(Told::Shared { number, version }) => Found::Shared { number: *number, version: *version },
            None if index < self.told_bytes.div_ceil(PAGE_BYTES) => Found::Unknown,
            Some(Told::Hole) | None => {
                into.fill(0);
                Found::Read
            }
        }
    }

    /// Writes a part of a page whose rest the domain has.
    pub(super) fn write(&mut self, index: u64, start: usize, bytes: &[u8]) {
        let Some(own) = self.own.get_mut(&index) else { return };
        self.written_pages += u64::from(own.written == 0);
        own.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        own.written |= lines_at(start, bytes.len());
        self.end = self.end.max(index * PAGE_BYTES + (start + bytes.len()) as u64);
        self.size_bytes = self.size_bytes.max(self.end);
    }

    /// Others know all from now on.
    pub(super) fn note_released(&mut self) {
        self.own.values_mut().for_each(|own| own.written = 0);
        (self.written_pages, self.end, self.writer) = (0, 0, None);
    }
}
