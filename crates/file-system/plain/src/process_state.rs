//! What the state keeps for processes: open file descriptions, mapped pages, and children.

use std::collections::BTreeMap;

use posix_calls::{Ended, Protection, Sharing};

use crate::object::{Number, PAGE_BYTES};

/// An open file description.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OpenFile {
    pub(crate) object: Number,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) status: u32,
    pub(crate) offset: u64,
    /// Descriptors that lead here.
    pub(crate) descriptors: u32,
}

/// The memory of a process, by page.
pub(crate) type Space = BTreeMap<u64, Mapped>;

/// A page that is mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mapped {
    pub(crate) protection: Protection,
    pub(crate) file: Option<MappedFile>,
    /// What the process has stored to memory of its own.
    pub(crate) own: Option<Box<[u8; PAGE_BYTES]>>,
}

/// A page of a file that is mapped; it keeps the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MappedFile {
    pub(crate) number: Number,
    pub(crate) page: u64,
    pub(crate) sharing: Sharing,
    pub(crate) may_write: bool,
}

impl MappedFile {
    /// Where the page begins in the file.
    pub(crate) fn offset(self) -> u64 {
        self.page * PAGE_BYTES as u64
    }
}

/// The children of a process that nobody has waited for, by number; how each ended, if it has.
pub(crate) type Children = BTreeMap<u64, Option<Ended>>;
