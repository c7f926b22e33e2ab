//! What of an object is lent to who makes calls: for a call, or by a reference for longer.

use core::marker::PhantomData;

use posix_calls::Kind;

use crate::identity::Identity;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;

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
