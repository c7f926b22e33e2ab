//! Pointers to inodes, as names and caches hold them; and what of them is lent to whoever makes calls.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use hashdir::Found;
use posix_calls::Kind;

use crate::file::File;
use crate::inode::{Directory, Inode};
use crate::instance::{Identity, ScaleFs};
use crate::pipe::Pipe;

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

    /// The inode as a directory.
    #[inline]
    pub(crate) fn directory<'i>(self) -> &'i Directory {
        assert_eq!(self.kind(), Kind::Directory, "only directories have names");
        // SAFETY: as in `inode`; an inode of that kind is the first field of a `Directory`.
        unsafe { self.address().cast::<Directory>().as_ref() }
    }

    /// The inode as a regular file.
    #[inline]
    pub(crate) fn file<'i>(self) -> &'i File {
        assert_eq!(self.kind(), Kind::Regular, "only regular files have data");
        // SAFETY: as in `inode`; an inode of that kind is the first field of a `File`.
        unsafe { self.address().cast::<File>().as_ref() }
    }

    /// The inode as a pipe.
    #[inline]
    pub(crate) fn pipe<'i>(self) -> &'i Pipe {
        assert_eq!(self.kind(), Kind::Pipe, "only pipes have ends");
        // SAFETY: as in `inode`; an inode of that kind is the first field of a `Pipe`.
        unsafe { self.address().cast::<Pipe>().as_ref() }
    }
}

impl fmt::Debug for InodeRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} at {:#x}", self.kind(), self.0 & !KIND_MASK)
    }
}

/// An object during a call, which keeps the core from maintaining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node<'v> {
    pub(crate) at: InodeRef,
    call: PhantomData<&'v ()>,
}

impl Node<'_> {
    /// An object that was found in the call from which the lifetime is, or that a reference keeps for as long.
    #[inline]
    pub(crate) fn lent(at: InodeRef) -> Self {
        Node { at, call: PhantomData }
    }

    /// What it is; objects do not change their kind.
    #[inline]
    pub fn kind(self) -> Kind {
        self.at.kind()
    }
}

/// An object that is kept over calls by a reference of its own. Dropped without
/// [`close`](crate::names::close), it keeps the object for ever.
#[derive(Debug)]
#[must_use = "an object is kept until `names::close`"]
pub struct OpenNode {
    at: InodeRef,
    pub(crate) instance: Identity,
}

impl OpenNode {
    /// Takes over a reference.
    #[inline]
    pub(crate) fn new(fs: &ScaleFs, at: InodeRef) -> OpenNode {
        OpenNode { at, instance: fs.identity }
    }

    /// The object, of which this keeps the reference.
    ///
    /// # Panics
    /// If it is of another instance.
    #[inline]
    pub(crate) fn of(&self, fs: &ScaleFs) -> InodeRef {
        assert!(self.is_of(fs), "an open object of another file system");
        self.at
    }
}
