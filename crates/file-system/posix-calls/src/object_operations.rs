//! The operations on objects through which the call layer reaches them.
//!
//! Each operation is on one object. The compound ones among the required ([`ObjectOperations::create`],
//! [`ObjectOperations::add_link`], [`ObjectOperations::remove`], [`ObjectOperations::rename`],
//! [`ObjectOperations::exchange`]) are needed by techniques of the paper's section 6.3; beside each stands its
//! decomposition into prepare and commit steps on one object each. The compound ones with default bodies are shortcuts for
//! whoever is far away: an implementation that leaves them alone loses nothing but round trips.
//!
//! **What may fail.** Every operation that asks or changes an object may end the call (module [`crate::fault`]). What it
//! has told already is the caller's own: an object's kind, the object of a name that was found.
//!
//! **Questions as narrow as the rule that asks.** A call that needs to know whether it may search a directory asks that
//! ([`ObjectOperations::permits`]), not for all permissions. The default bodies answer from the wider question; who
//! keeps answers to compare them later, as a transaction does, then keeps no more than what the call rests on.
//!
//! **What is lent.** Nodes, and names that were found, are values of one call: they borrow from it, and the compiler
//! refuses them afterwards. What is to last longer is a [`ObjectOperations::Handle`].

use crate::credentials::Credentials;
use crate::errno::Errno;
use crate::fault::{Failed, OperationError};
use crate::fields::{Attributes, Fields};
use crate::kind::{InodeNumber, Kind, Permissions, SET_GROUP, STICKY};
use crate::rights::{Need, PermissionChange, TimesRight, check_user};

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

/// What [`ObjectOperations::create`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewObject<'t> {
    /// An empty regular file.
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link to a target of 1 to 4,095 bytes.
    Symlink(&'t [u8]),
    /// A name for something outside, of this kind ([`Kind::is_outside`]), and the number of its device, or 0.
    Outside(Kind, u64),
}

impl NewObject<'_> {
    /// What it will be.
    pub fn kind(self) -> Kind {
        match self {
            NewObject::File => Kind::Regular,
            NewObject::Directory => Kind::Directory,
            NewObject::Symlink(_) => Kind::Symlink,
            NewObject::Outside(kind, _) => kind,
        }
    }
}

/// A name and what it is expected to lead to.
#[derive(Clone, Copy, Debug)]
pub struct NamedNode<'k, N, K> {
    /// The directory of the name.
    pub directory: N,
    /// The name.
    pub key: &'k K,
    /// What it leads to.
    pub node: N,
}

/// A name that is to lead elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct TargetName<'k, N, K> {
    /// The directory of the name.
    pub directory: N,
    /// The name.
    pub key: &'k K,
    /// What it is expected to lead to; nothing if it does not exist.
    pub replaced: Option<N>,
}

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
pub struct ParentLink<N> {
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

/// What an operation answers: a value, or the fault that ends the call.
pub type Answer<T, V> = Result<T, Failed<<V as ObjectOperations>::Fault>>;

/// What an operation that changes objects answers: a value, or why it did nothing.
pub type Outcome<T, V> = Result<T, OperationError<<V as ObjectOperations>::Fault>>;

/// What one call does to objects, on behalf of one process. A value of the type lasts for one call.
pub trait ObjectOperations: Sized {
    /// Why an operation cannot be done; [`core::convert::Infallible`] where there is no reason.
    type Fault: Into<Errno>;
    /// An object, valid during the call. It knows its kind.
    type Node<'v>: Copy + PartialEq
    where
        Self: 'v;
    /// An object that is kept over calls, by a reference of its own.
    type Handle;
    /// A name as look-ups want it: hashed, for instance.
    type Key<'n>: Copy;
    /// A name that was seen to exist.
    type Present<'v>: Copy
    where
        Self: 'v;
    /// A name whose object was looked up.
    type Found<'v>: Copy
    where
        Self: 'v;
    /// Bytes of a symbolic link's target: in place, or in a buffer of its own.
    type LinkTarget<'v>: AsRef<[u8]>
    where
        Self: 'v;

    // The caller.

    /// Who calls.
    fn credentials(&self) -> &Credentials;

    /// Permission bits that new objects do not get.
    fn umask(&self) -> u32;

    /// Where relative paths start.
    fn working_directory(&self) -> Self::Node<'_>;

    /// Lets relative paths of later calls start at a directory, which is kept meanwhile.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn set_working_directory(&self, directory: Self::Node<'_>) -> Answer<(), Self>;

    /// The root directory.
    fn root(&self) -> Self::Node<'_>;

    // Names of one directory.

    /// The key of a name; none unless it has 1 to 255 bytes.
    fn key<'n>(&self, name: &'n [u8]) -> Option<Self::Key<'n>>;

    /// What [`ObjectOperations::key_again`] takes, of a key.
    fn key_hash(&self, _key: &Self::Key<'_>) -> u64 {
        0
    }

    /// The key of a name that had one with this hash, at less than it costs for the first time.
    fn key_again<'n>(&self, name: &'n [u8], _hash: u64) -> Self::Key<'n> {
        self.key(name).expect("a name that had a key has one")
    }

    /// Whether a name exists, without reading what it leads to.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn existence(&self, directory: Self::Node<'_>, key: &Self::Key<'_>) -> Answer<Existence, Self>;

    /// Whether a name exists, whatever it leads to.
    ///
    /// # Errors
    /// The implementation's fault alone.
    #[inline]
    fn exists(&self, directory: Self::Node<'_>, key: &Self::Key<'_>) -> Answer<bool, Self> {
        Ok(self.existence(directory, key)? != Existence::Absent)
    }

    /// A name, if it exists, without reading what it leads to.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn present<'v>(&'v self, directory: Self::Node<'v>, key: &Self::Key<'_>)
    -> Answer<Option<Self::Present<'v>>, Self>;

    /// Whether the name has existed ever since it was seen.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn still_present(&self, present: &Self::Present<'_>) -> Answer<bool, Self>;

    /// A name with its object, if it exists.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn look_up<'v>(&'v self, directory: Self::Node<'v>, key: &Self::Key<'_>) -> Answer<Option<Self::Found<'v>>, Self>;

    /// The object of a name.
    fn node<'v>(&'v self, found: &Self::Found<'v>) -> Self::Node<'v>;

    /// Whether the name has led to the object ever since it was looked up.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn still_same(&self, found: &Self::Found<'_>) -> Answer<bool, Self>;

    /// A number that two look-ups of a name give alike if it has led to the same object from the first to the second, and
    /// else (but for a chance of one in 2^64) different ones.
    fn fingerprint(&self, found: &Self::Found<'_>) -> u64;

    /// Tells `each` the names from a cookie on until it returns false; returns the cookie to go on from, or `None` at
    /// the end. A name that exists all the time is told once; one that comes or goes meanwhile may be told or not.
    /// Cookies are 2 or larger and below 2^63.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn list<'v>(
        &'v self,
        directory: Self::Node<'v>,
        from: u64,
        each: &mut dyn FnMut(Item<'_, Self::Node<'v>>) -> bool,
    ) -> Answer<Option<u64>, Self>;

    /// Insert if absent, with a new object of one link and these permissions.
    /// Steps: make the object; insert the name.
    ///
    /// # Errors
    /// `Exists`, `Dead`, `NoSpace`: nothing has happened; or the implementation's fault.
    fn create<'v>(
        &'v self,
        directory: Self::Node<'v>,
        key: &Self::Key<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
    ) -> Outcome<Self::Node<'v>, Self>;

    /// Insert if absent, with an object that another name still leads to at that moment; its link count rises.
    /// Steps: prepare insertion of the new name; prepare the count; check the source again; commit.
    ///
    /// # Errors
    /// `Exists`, `Dead`, `NoSpace`, or `Changed` if the source leads elsewhere: nothing has happened; or the fault.
    fn add_link(&self, directory: Self::Node<'_>, key: &Self::Key<'_>, source: &Self::Found<'_>) -> Outcome<(), Self>;

    /// Remove if the name leads to the object; its link count falls. A directory must be empty and takes no names
    /// afterwards.
    /// Steps: if a directory, close it to insertions and see that it is empty; prepare removal; prepare the count;
    /// commit; if a directory, end it.
    ///
    /// # Errors
    /// `Changed` if the name leads elsewhere, `NotEmpty`: nothing has happened; or the implementation's fault.
    fn remove(&self, name: NamedNode<'_, Self::Node<'_>, Self::Key<'_>>) -> Outcome<(), Self>;

    /// Move a name to another that leads to `replaced` or to nothing. A directory does not become its own descendant.
    /// Steps: if a directory goes to another parent, mark it as moving and look for it above the target; if a directory
    /// is replaced, close it as in `remove`; prepare removal of the source; prepare insertion or replacement of the
    /// target; prepare the replaced object's count; commit.
    ///
    /// # Errors
    /// `Changed`, `NotEmpty`, `Dead`, `NoSpace`, or that it would become its own descendant: nothing has happened; or
    /// the fault.
    fn rename(
        &self,
        source: NamedNode<'_, Self::Node<'_>, Self::Key<'_>>,
        target: TargetName<'_, Self::Node<'_>, Self::Key<'_>>,
    ) -> Outcome<(), Self>;

    /// Let two names lead to each other's objects.
    /// Steps: as `rename`, with two replacements.
    ///
    /// # Errors
    /// As [`ObjectOperations::rename`].
    fn exchange(
        &self,
        first: NamedNode<'_, Self::Node<'_>, Self::Key<'_>>,
        second: NamedNode<'_, Self::Node<'_>, Self::Key<'_>>,
    ) -> Outcome<(), Self>;

    // One object.

    /// What it is.
    fn kind(&self, node: Self::Node<'_>) -> Kind;

    /// Where a directory stands.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn parent_link<'v>(&'v self, directory: Self::Node<'v>) -> Answer<ParentLink<Self::Node<'v>>, Self>;

    /// The directory in which a directory has its name, or had its last; the root is its own.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn parent<'v>(&'v self, directory: Self::Node<'v>) -> Answer<Self::Node<'v>, Self> {
        Ok(self.parent_link(directory)?.parent)
    }

    /// Whether an object is a directory or one of its ancestors. They are looked at one by one.
    ///
    /// # Errors
    /// The implementation's fault alone.
    #[inline]
    fn is_above<'v>(&'v self, node: Self::Node<'v>, directory: Self::Node<'v>) -> Answer<bool, Self> {
        let (mut current, root) = (directory, self.root());
        while current != node && current != root {
            current = self.parent(current)?;
        }
        Ok(current == node)
    }

    /// A number that two looks at the ancestors of a directory give alike if none of them moved in between, and else (but
    /// for a chance of one in 2^64) different ones.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn fingerprint_of_ancestors<'v>(&'v self, directory: Self::Node<'v>) -> Answer<u64, Self> {
        let (mut current, root, mut fingerprint) = (directory, self.root(), 0_u64);
        while current != root {
            let ParentLink { parent, moves } = self.parent_link(current)?;
            for word in [self.attributes(current, Fields::IDENTITY)?.number.0, moves] {
                fingerprint = mixed(fingerprint, word);
            }
            current = parent;
        }
        Ok(fingerprint)
    }

    /// Whether a directory was removed: it has no names, and takes none.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn is_removed(&self, directory: Self::Node<'_>) -> Answer<bool, Self>;

    /// What a symbolic link leads to: 1 to 4,095 bytes, which never change.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn link_target<'v>(&'v self, symlink: Self::Node<'v>) -> Answer<Self::LinkTarget<'v>, Self>;

    /// The number of the device that a name is for, which never changes.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn device(&self, node: Self::Node<'_>) -> Answer<u64, Self>;

    /// Owner and permission bits.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn permissions(&self, node: Self::Node<'_>) -> Answer<Permissions, Self>;

    /// Whether permissions let a caller who is not the superuser do what it needs. The superuser has no need to ask.
    ///
    /// # Errors
    /// The implementation's fault alone.
    #[inline]
    fn permits(&self, node: Self::Node<'_>, need: Need) -> Answer<bool, Self> {
        Ok(check_user(self.credentials(), self.permissions(node)?, need).is_ok())
    }

    /// The group that a directory gives to what is made in it; none if the caller's is taken.
    ///
    /// # Errors
    /// The implementation's fault alone.
    #[inline]
    fn inherited_group(&self, directory: Self::Node<'_>) -> Answer<Option<u32>, Self> {
        let permissions = self.permissions(directory)?;
        Ok((permissions.mode & SET_GROUP != 0).then_some(permissions.group))
    }

    /// Whether names of a directory are removed by the owners of what they lead to alone, as far as the caller, who is not
    /// the superuser, is concerned.
    ///
    /// # Errors
    /// The implementation's fault alone.
    #[inline]
    fn keeps_names(&self, directory: Self::Node<'_>) -> Answer<bool, Self> {
        let permissions = self.permissions(directory)?;
        Ok(permissions.mode & STICKY != 0 && permissions.user != self.credentials().user)
    }

    /// Owner and permission bits for a call that has changed data: either these show a change of them that another call
    /// makes, or that call sees the data.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn permissions_after_change(&self, node: Self::Node<'_>) -> Answer<Permissions, Self> {
        self.permissions(node)
    }

    /// Changes owner and permission bits, unless [`PermissionChange::of`] refuses; marks the time of the change.
    ///
    /// # Errors
    /// What [`PermissionChange::of`] refuses by.
    fn change_permissions(&self, node: Self::Node<'_>, change: PermissionChange) -> Result<(), Errno>;

    /// An object's number.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn number(&self, node: Self::Node<'_>) -> Answer<InodeNumber, Self> {
        Ok(self.attributes(node, Fields::IDENTITY)?.number)
    }

    /// Attributes of an object, each as it was at one moment of the call.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn attributes(&self, node: Self::Node<'_>, fields: Fields) -> Answer<Attributes, Self>;

    /// Sets access and modification time in nanoseconds since 1970, each if given, unless [`TimesRight::check`] refuses;
    /// marks the time of the change. Of two such calls one is the last for both times.
    ///
    /// # Errors
    /// What [`TimesRight::check`] refuses by.
    fn set_times(
        &self,
        node: Self::Node<'_>,
        right: TimesRight,
        times: (Option<i64>, Option<i64>),
    ) -> Result<(), Errno>;

    /// The time.
    fn now_ns(&self) -> u64;

    /// Keeps an object, also when its last name goes.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn retain(&self, node: Self::Node<'_>) -> Answer<Self::Handle, Self>;

    /// The object that is kept.
    ///
    /// # Panics
    /// If the handle is of another instance.
    fn held<'v>(&'v self, handle: &'v Self::Handle) -> Self::Node<'v>;

    /// Keeps an object no longer.
    ///
    /// # Panics
    /// If the handle is of another instance.
    fn release(&self, handle: Self::Handle);

    // All objects.

    /// Free and used space.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn space(&self) -> Answer<Space, Self>;

    // Compound operations for whoever is far away.

    /// Goes along the components of a path from a directory, as far as can be told at once; returns where it came to, and
    /// how many bytes of the path it used. Each component passed, which another follows, is a name (not `.` or `..`)
    /// of a directory that leads to a directory, and the caller may search that in which it is. Nothing need be passed.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn walk_ahead<'v>(&'v self, directory: Self::Node<'v>, _path: &[u8]) -> Answer<(Self::Node<'v>, usize), Self> {
        Ok((directory, 0))
    }

    /// Makes a regular file and keeps it.
    /// Steps: create; retain.
    ///
    /// # Errors
    /// As [`ObjectOperations::create`].
    fn create_open<'v>(
        &'v self,
        directory: Self::Node<'v>,
        key: &Self::Key<'_>,
        permissions: Permissions,
    ) -> Outcome<Self::Handle, Self> {
        let node = self.create(directory, key, NewObject::File, permissions)?;
        Ok(self.retain(node)?)
    }

    /// Keeps an object if the caller has the permissions: at once, or, as by default, not at all (`None`), and the call takes
    /// the steps.
    /// Steps: permissions; check; retain.
    ///
    /// # Errors
    /// EACCES without the permissions.
    fn open_node(&self, _node: Self::Node<'_>, _need: Need) -> Option<Result<Self::Handle, Errno>> {
        None
    }
}

/// A number of which each word before is a part, and their order.
#[inline]
pub(crate) fn mixed(fingerprint: u64, word: u64) -> u64 {
    (fingerprint ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
