//! The verbs through which the call layer reaches objects.
//!
//! Each verb is on one object. The compound ones ([`Verbs::add_link`], [`Verbs::rename`]) are needed by techniques of
//! the paper's section 6.3; beside each stands its decomposition into prepare and commit steps on one object each, for
//! ways to run the call layer in which objects are shadow copies or live on another server.

use hashdir::Key;

use crate::inode::Attributes;

/// Why a verb did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The name exists already.
    Exists,
    /// What the caller saw before is not so any more: start the call again.
    Changed,
    /// The directory was removed.
    Dead,
    /// No memory is left.
    NoSpace,
}

/// Which attributes a caller wants; what it does not want is not read (`fstatx` of section 4 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldChoice {
    /// All.
    All,
    /// All but the link count, which is the one that costs a look at every core.
    WithoutLinkCount,
}

/// What one call does to objects. A value of the type lasts for one call.
pub trait Verbs {
    /// An object, valid during the call.
    type Node: Copy + PartialEq;
    /// A name that was seen to exist.
    type Present<'v>: Copy
    where
        Self: 'v;
    /// A name whose object was looked up.
    type Found<'v>: Copy
    where
        Self: 'v;

    /// The root directory.
    fn root(&self) -> Self::Node;

    /// The key of a name of 1 to 255 bytes.
    fn key<'n>(&self, name: &'n [u8]) -> Option<Key<'n>>;

    /// Whether a name exists, without reading what it leads to.
    fn exists(&self, directory: Self::Node, key: &Key<'_>) -> bool;

    /// A name, if it exists, without reading what it leads to.
    fn present<'v>(&'v self, directory: Self::Node, key: &Key<'_>) -> Option<Self::Present<'v>>;

    /// Whether the name has existed ever since it was seen.
    fn still_present(&self, present: &Self::Present<'_>) -> bool;

    /// A name with its object, if it exists.
    fn look_up<'v>(&'v self, directory: Self::Node, key: &Key<'_>) -> Option<Self::Found<'v>>;

    /// The object of a name.
    fn node(&self, found: &Self::Found<'_>) -> Self::Node;

    /// Whether the name has led to the object ever since it was looked up.
    fn still_same(&self, found: &Self::Found<'_>) -> bool;

    /// Insert if absent, with a new regular file of one link.
    fn create_file(&self, directory: Self::Node, key: &Key<'_>, mode: u32) -> Result<Self::Node, Refusal>;

    /// Insert if absent, with an object that another name still leads to at that moment; its link count rises.
    /// Steps: prepare insertion of the new name; prepare the count; check the source again; commit.
    fn add_link(&self, directory: Self::Node, key: &Key<'_>, source: &Self::Found<'_>) -> Result<(), Refusal>;

    /// Remove if the name leads to `expected`; the object's link count falls.
    /// Steps: prepare removal; prepare the count; commit.
    fn remove(&self, directory: Self::Node, key: &Key<'_>, expected: Self::Node) -> Result<(), Refusal>;

    /// Move a name that leads to `expected` to a name that leads to `replaced` or to nothing.
    /// Steps: prepare removal of the source; prepare insertion or replacement of the target; prepare the replaced
    /// object's count; commit.
    fn rename(
        &self,
        source: (Self::Node, &Key<'_>, Self::Node),
        target: (Self::Node, &Key<'_>, Option<Self::Node>),
    ) -> Result<(), Refusal>;

    /// Attributes of an object, all as they were at one moment of the call.
    fn attributes(&self, node: Self::Node, fields: FieldChoice) -> Attributes;

    /// Takes a reference that keeps the object when its last name goes.
    fn take(&self, node: Self::Node);

    /// Gives such a reference up.
    fn give_up(&self, node: Self::Node);
}
