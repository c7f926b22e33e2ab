//! What the memory of an instance is called, for tools that look at it from outside.
//!
//! Objects lie in chunks of their kind (`percpu::ObjectKind`), of which the arena keeps a map; the tables that are made
//! with an instance are told of by their owners.

use core::ops::Range;

use percpu::{Arena, ObjectKind};

use crate::instance::ScaleFs;
use crate::{description, file, inode, pipe};

/// The kinds of objects that have chunks of their own.
pub const OBJECT_KINDS: [&ObjectKind; 10] = [
    &hashdir::ENTRY,
    &hashdir::BUCKET,
    &radix::SLOT,
    &radix::INNER,
    &description::DESCRIPTION,
    &file::FILE,
    &pipe::PIPE,
    &inode::DIRECTORY,
    &address_space::MAPPING,
    &address_space::TABLE,
];

/// Memory that holds objects of one kind, one after the other.
#[derive(Clone, Debug)]
pub struct Part {
    /// Addresses.
    pub memory: Range<usize>,
    /// What lies there.
    pub kind: &'static ObjectKind,
}

impl ScaleFs {
    /// The tables that were made with the instance and hold slots of counts, times and sizes.
    pub fn tables(&self) -> impl Iterator<Item = Part> {
        let part = |kind| move |memory| Part { memory, kind };
        self.counts()
            .memory()
            .map(part(&refcache::SLOT))
            .chain(self.stamps().memory().map(part(&maxima::SLOT)))
            .chain(self.sizes().memory().map(part(&maxima::SLOT)))
    }
}

/// The chunks of an arena whose kind is known so far, by address, those of `others` with them. A part never changes; later
/// there may be more.
pub fn chunks(arena: &Arena, others: &'static [&'static ObjectKind]) -> impl Iterator<Item = Part> {
    arena.kinds().filter_map(move |(memory, number)| {
        let kind = OBJECT_KINDS.iter().chain(others).find(|kind| kind.number == number)?;
        Some(Part { memory, kind })
    })
}
