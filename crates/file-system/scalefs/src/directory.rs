//! A directory: its inode, its names, and where it stands.
#![allow(unsafe_code)]

use hashdir::HashDir;
use percpu::{ArenaObject, CacheLine, ObjectKind};

use crate::inode::{Inode, inode_kind};
use crate::place::Place;

/// A directory: an inode with names.
#[repr(C)]
pub(crate) struct Directory {
    pub(crate) inode: Inode,
    pub(crate) names: HashDir,
    pub(crate) place: CacheLine<Place>,
}

/// What tools call a directory's parts.
pub(crate) const DIRECTORY: ObjectKind = inode_kind!(8, Directory as "directory" {
    "table of names" = names,
    "whether it takes names" = names + HashDir::STATUS,
    "growth of names" = names + HashDir::UPKEEP,
    "parent" = place.0.parent,
    "mark of a move" = place.0.moving,
});

// SAFETY: a kind of its own; what a directory has is given back before its memory is.
unsafe impl ArenaObject for Directory {
    const KIND: ObjectKind = DIRECTORY;
}
