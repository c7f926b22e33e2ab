//! What the memory of an instance is called, for tools that look at it from outside.
//!
//! Objects lie in chunks of their kind (`percpu::ObjectKind`), of which the arena keeps a map; the tables that are made
//! with an instance are told of by their owners.
#![allow(unsafe_code)]

use core::ops::Range;

use address_space::{Mapping, SharedPage};
use percpu::{Arena, ArenaObject, ArenaRoot, AttachError, Layout, ObjectKind};

use crate::instance::ScaleFs;
use crate::{description, directory, family, file, inode, pipe, socket};

/// The kinds of objects that have chunks of their own.
pub const OBJECT_KINDS: [&ObjectKind; 15] = [
    &hashdir::ENTRY,
    &hashdir::BUCKET,
    &radix::SLOT,
    &radix::INNER,
    &description::DESCRIPTION,
    &file::FILE,
    &pipe::PIPE,
    &socket::SOCKET_INODE,
    &sockets::ENDPOINT,
    &sockets::RING,
    &directory::DIRECTORY,
    &family::FAMILY,
    &address_space::MAPPING,
    &address_space::SHARED_PAGE,
    &address_space::TABLE,
];

/// Where everything is in an instance, in this build.
pub const LAYOUT: Layout = Layout::BUILD
    .and_type::<ScaleFs>()
    .and_layout(hashdir::LAYOUT)
    .and_layout(radix::LAYOUT)
    .and_layout(description::Description::LAYOUT)
    .and_layout(file::File::LAYOUT)
    .and_layout(pipe::Pipe::LAYOUT)
    .and_layout(socket::SocketInode::LAYOUT)
    .and_layout(sockets::LAYOUT)
    .and_layout(directory::Directory::LAYOUT)
    .and_layout(family::Family::LAYOUT)
    .and_type::<inode::Symlink>()
    .and_layout(Mapping::LAYOUT)
    .and_layout(SharedPage::LAYOUT)
    .and_layout(address_space::TABLE_LAYOUT)
    .and_layout(refcache::SLOT.layout())
    .and_type::<refcache::Counted>()
    .and_layout(maxima::SLOT.layout())
    .and_type::<maxima::Maximum<2>>()
    .and_type::<pages::PagePool>()
    .and_type::<epoch::Retired>();

// SAFETY: an instance is made for cores of several processes, and placed for good (`ScaleFs::create` alone makes one). The
// layout is of all that is reached from it, and no other type of root is made of the same parts.
unsafe impl ArenaRoot for ScaleFs {
    const LAYOUT: Layout = LAYOUT;
}

/// Memory that holds objects of one kind, one after the other.
#[derive(Clone, Debug)]
pub struct Part {
    /// Addresses.
    pub memory: Range<usize>,
    /// What lies there.
    pub kind: &'static ObjectKind,
}

impl ScaleFs {
    /// The first instance that was made in an arena, by whichever process.
    ///
    /// # Errors
    /// [`AttachError::Empty`] if there is none, [`AttachError::OtherBuild`] if the process that made it runs a program that
    /// lays out an instance in another way.
    pub fn attach(arena: &Arena) -> Result<&ScaleFs, AttachError> {
        arena.root()
    }

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
