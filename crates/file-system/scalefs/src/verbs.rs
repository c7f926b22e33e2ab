//! The verbs through which the call layer reaches objects.
//!
//! Each verb is on one object. The compound ones ([`Verbs::create`], [`Verbs::add_link`], [`Verbs::remove`],
//! [`Verbs::rename`], [`Verbs::exchange`]) are needed by techniques of the paper's section 6.3; beside each stands its
//! decomposition into prepare and commit steps on one object each, for ways to run the call layer in which objects are
//! shadow copies or live on another server.

use hashdir::Key;

use crate::context::Credentials;
use crate::errno::Errno;
use crate::fields::{Attributes, Fields};
use crate::inode::{Kind, Permissions};

/// Why a verb did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The name exists already.
    Exists,
    /// What the caller saw before is not so any more: start the call again.
    Changed,
    /// The directory was removed.
    Dead,
    /// The directory that is to go has names.
    NotEmpty,
    /// No memory is left, or no inode.
    NoSpace,
}

/// Whether a name exists, as far as that can be told without reading what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// No.
    Absent,
    /// Yes, and it led to no symbolic link at that moment.
    Plain,
    /// Yes, and it may lead to a symbolic link.
    MaybeSymlink,
}

/// What [`Verbs::create`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewObject<'t> {
    /// An empty regular file.
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link to a target of 1 to 4,095 bytes.
    Symlink(&'t [u8]),
}

/// A name and what it is expected to lead to: directory, key, object.
pub type Expected<'k, N> = (N, &'k Key<'k>, N);

/// What a listing tells of a name.
#[derive(Clone, Copy, Debug)]
pub struct Item<'n, N> {
    /// The name.
    pub name: &'n [u8],
    /// What it leads to.
    pub node: N,
    /// Where a listing goes on after it.
    pub next_cookie: u64,
}

/// Where a directory stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing<N> {
    /// The directory in which it has its name, or had its last; the root is its own.
    pub parent: N,
    /// How often it has come to another parent.
    pub moves: u64,
}

/// Free and used space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks that are free.
    pub free_blocks: u64,
    /// Most inodes that there can be.
    pub inodes: u64,
    /// Inodes that can still be made.
    pub free_inodes: u64,
}

/// What one call does to objects, on behalf of one process. A value of the type lasts for one call.
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

    // The caller.

    /// Who calls.
    fn credentials(&self) -> &Credentials;

    /// Permission bits that new objects do not get.
    fn umask(&self) -> u32;

    /// Where relative paths start.
    fn working_directory(&self) -> Self::Node;

    /// Lets relative paths of later calls start at a directory, which is kept meanwhile.
    fn set_working_directory(&self, directory: Self::Node);

    /// The root directory.
    fn root(&self) -> Self::Node;

    // Names of one directory.

    /// The key of a name of 1 to 255 bytes.
    fn key<'n>(&self, name: &'n [u8]) -> Option<Key<'n>>;

    /// Whether a name exists, without reading what it leads to.
    fn existence(&self, directory: Self::Node, key: &Key<'_>) -> Existence;

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

    /// A number that two look-ups of a name give alike if it has led to the same object from the first to the second, and
    /// else (but for a chance of one in 2^64) different ones.
    fn trace(&self, found: &Self::Found<'_>) -> u64;

    /// Tells `each` the names from a cookie on until it returns false; returns the cookie to go on from, or `None` at
    /// the end. A name that exists all the time is told once; one that comes or goes meanwhile may be told or not.
    fn list(&self, directory: Self::Node, from: u64, each: &mut dyn FnMut(Item<'_, Self::Node>) -> bool)
    -> Option<u64>;

    /// Insert if absent, with a new object of one link and these permissions.
    /// Steps: make the object; insert the name.
    fn create(
        &self,
        directory: Self::Node,
        key: &Key<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
    ) -> Result<Self::Node, Refusal>;

    /// Insert if absent, with an object that another name still leads to at that moment; its link count rises.
    /// Steps: prepare insertion of the new name; prepare the count; check the source again; commit.
    fn add_link(&self, directory: Self::Node, key: &Key<'_>, source: &Self::Found<'_>) -> Result<(), Refusal>;

    /// Remove if the name leads to the object; its link count falls. A directory must be empty and takes no names
    /// afterwards.
    /// Steps: if a directory, close it to insertions and see that it is empty; prepare removal; prepare the count;
    /// commit; if a directory, end it.
    fn remove(&self, name: Expected<'_, Self::Node>) -> Result<(), Refusal>;

    /// Move a name to another that leads to `replaced` or to nothing. A directory does not become its own descendant.
    /// Steps: if a directory goes to another parent, mark it as moving and look for it above the target; if a directory
    /// is replaced, close it as in `remove`; prepare removal of the source; prepare insertion or replacement of the
    /// target; prepare the replaced object's count; commit.
    fn rename(
        &self,
        source: Expected<'_, Self::Node>,
        target: (Self::Node, &Key<'_>, Option<Self::Node>),
    ) -> Result<(), Refusal>;

    /// Let two names lead to each other's objects.
    /// Steps: as `rename`, with two replacements.
    fn exchange(&self, first: Expected<'_, Self::Node>, second: Expected<'_, Self::Node>) -> Result<(), Refusal>;

    // One object.

    /// What it is.
    fn kind(&self, node: Self::Node) -> Kind;

    /// Where a directory stands.
    fn standing(&self, directory: Self::Node) -> Standing<Self::Node>;

    /// The directory in which a directory has its name, or had its last; the root is its own.
    fn parent(&self, directory: Self::Node) -> Self::Node {
        self.standing(directory).parent
    }

    /// Whether a directory was removed: it has no names, and takes none.
    fn is_removed(&self, directory: Self::Node) -> bool;

    /// What a symbolic link leads to.
    fn link_target(&self, symlink: Self::Node) -> &[u8];

    /// Owner and permission bits.
    fn permissions(&self, node: Self::Node) -> Permissions;

    /// Turns owner and permission bits into others, or not if `change` refuses; marks the time of the change.
    fn change_permissions(
        &self,
        node: Self::Node,
        change: &dyn Fn(Permissions) -> Result<Permissions, Errno>,
    ) -> Result<(), Errno>;

    /// Attributes of an object, each as it was at one moment of the call.
    fn attributes(&self, node: Self::Node, fields: Fields) -> Attributes;

    /// Sets access and modification time in nanoseconds since 1970, each if given, or not if `check` refuses; marks the time of
    /// the change. Of two such calls one is the last for both times.
    fn set_times(
        &self,
        node: Self::Node,
        check: &dyn Fn(Permissions) -> Result<(), Errno>,
        times: (Option<i64>, Option<i64>),
    ) -> Result<(), Errno>;

    /// The time.
    fn now_ns(&self) -> u64;

    /// Takes a reference that keeps the object when its last name goes.
    fn take(&self, node: Self::Node);

    /// Gives such a reference up.
    fn give_up(&self, node: Self::Node);

    // All objects.

    /// Free and used space.
    fn space(&self) -> Space;
}
