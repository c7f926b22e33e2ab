//! Inodes: what a name leads to. Four lines: what never changes, what calls change, and two counts.
#![allow(unsafe_code)]

use core::mem::offset_of;
use core::ptr::NonNull;

use hashdir::HashDir;
use percpu::CacheLine;
use refcache::{Counted, CountedKind};

/// Kind of the count of names, for the callback of `RefCache::maintain`.
pub(crate) const KIND_LINKS: CountedKind = CountedKind(1);
/// Kind of the count of references.
pub(crate) const KIND_REFERENCES: CountedKind = CountedKind(2);

/// The number of an inode: the core that made it and how many it had made; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeNumber(pub u64);

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
}

/// What `stat` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Number of the inode.
    pub number: InodeNumber,
    /// What it is.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u32,
    /// Number of names, if asked for.
    pub link_count: Option<u32>,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// Never changes while the inode lives.
pub(crate) struct Identity {
    pub(crate) number: InodeNumber,
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
}

/// An inode in the arena.
#[repr(C)]
pub(crate) struct Inode {
    /// Immutable: reading it never conflicts.
    pub(crate) identity: CacheLine<Identity>,
    /// The names that lead here. Zero is final.
    pub(crate) links: CacheLine<Counted>,
    /// Open descriptions and calls that keep the inode, plus one while it has names.
    pub(crate) references: CacheLine<Counted>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Inode>() == 192);

impl Inode {
    pub(crate) fn new(number: InodeNumber, kind: Kind, mode: u32) -> Inode {
        Inode {
            identity: CacheLine(Identity { number, kind, mode }),
            links: CacheLine(Counted::new(1, KIND_LINKS)),
            references: CacheLine(Counted::new(1, KIND_REFERENCES)),
        }
    }

    /// The inode whose `links` this is.
    ///
    /// # Safety
    /// It is one.
    pub(crate) unsafe fn of_links(counted: NonNull<Counted>) -> NonNull<Inode> {
        // SAFETY: the caller's promise.
        unsafe { counted.byte_sub(offset_of!(Inode, links)).cast() }
    }

    /// The inode whose `references` this is.
    ///
    /// # Safety
    /// It is one.
    pub(crate) unsafe fn of_references(counted: NonNull<Counted>) -> NonNull<Inode> {
        // SAFETY: the caller's promise.
        unsafe { counted.byte_sub(offset_of!(Inode, references)).cast() }
    }
}

/// A directory: an inode with names.
#[repr(C)]
pub(crate) struct Directory {
    pub(crate) inode: Inode,
    pub(crate) names: HashDir,
}
