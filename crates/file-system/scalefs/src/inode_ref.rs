//! Pointers to inodes, as names and caches hold them.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;

use hashdir::Found;
use posix_calls::Kind;

use crate::inode::Inode;

/// An inode's address, with its kind in the low bits, as names have it. Only dereferenced in the call in which it was found
/// and while a reference is held: the core maintains between calls only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct InodeRef(u64);

const KIND_MASK: u64 = 63;

impl InodeRef {
    pub(crate) fn new(inode: NonNull<Inode>, kind: Kind) -> InodeRef {
        InodeRef(inode.as_ptr() as usize as u64 | kind as u64)
    }

    /// The node with bits that [`InodeRef::to_bits`] gave.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> InodeRef {
        InodeRef(bits)
    }

    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn of(found: &Found<'_>) -> InodeRef {
        InodeRef(found.value())
    }

    /// What it is; inodes do not change their kind.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        Kind::from_number((self.0 & KIND_MASK) as u8)
    }

    #[inline]
    pub(crate) fn address(self) -> NonNull<Inode> {
        // SAFETY: nodes are made from addresses of inodes.
        unsafe { NonNull::new_unchecked((self.0 & !KIND_MASK) as usize as *mut Inode) }
    }

    /// The inode, for the time of the call in which the node was found, or while a reference is held.
    #[inline]
    pub(crate) fn inode<'i>(self) -> &'i Inode {
        // SAFETY: whoever has a node found it in this call, where a name or a counted reference led to it, or holds a
        // reference himself; see `refcache` on why it lives on.
        unsafe { self.address().as_ref() }
    }
}

impl fmt::Debug for InodeRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} at {:#x}", self.kind(), self.0 & !KIND_MASK)
    }
}
