//! Questions about the base, and how they are asked: the first time, and again.
//!
//! One function, [`ask`], answers both. So what a transaction has seen is compared with what it would see, by the same
//! look. Replies name objects by inode number, which no other object ever gets.

use alloc::boxed::Box;
use alloc::vec::Vec;

use posix_calls::{
    AccessMode, Answer, Credentials, Errno, Existence, Fields, InodeNumber, Kind, Need, ObjectOperations,
    PermissionChange, Permissions, PipeEnd, SET_GROUP, STICKY, StatusFlags, TimesRight, Use,
};

use crate::name::Name;
use crate::table::{Key, Table};

/// Where listings of all names start.
pub(crate) const FIRST_COOKIE: u64 = 2;

/// Something that a transaction has asked about an object of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) subject: InodeNumber,
    pub(crate) about: About,
}

impl Key for Question {
    /// All questions about one name have one number.
    fn mixed(&self) -> u64 {
        let about = match &self.about {
            About::LeadsTo(name) | About::Existence(name) | About::Exists(name) => {
                return Question::mixed_of_name(self.subject, name);
            }
            About::Next(cookie) => *cookie,
            About::HasBeside(names) => names.len() as u64,
            About::Permissions(changes, _) => changes.len() as u64,
            About::IsUnder(other) => other.0,
            About::Data(about) => about.mixed(),
            // Few about one object.
            About::Parent | About::IsRemoved | About::WorkingDirectory | About::LinkCount => 0,
            About::SizeBytes | About::AccessedNs | About::ChangedNs => 1,
        };
        self.subject.0 ^ about.rotate_left(32)
    }
}

impl Question {
    /// The number of all questions about a name.
    #[inline]
    pub(crate) fn mixed_of_name(directory: InodeNumber, name: &Name) -> u64 {
        directory.0 ^ name.mixed()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum About {
    /// Of a file, or of the process (then the subject is the root).
    Data(AboutData),
    /// What a name of a directory leads to.
    LeadsTo(Name),
    /// Whether it exists, and may lead to a symbolic link.
    Existence(Name),
    /// Whether it exists.
    Exists(Name),
    /// The first name of a directory from a cookie on.
    Next(u64),
    /// Whether a directory has names beside these, which are in order.
    HasBeside(Vec<Name>),
    /// The directory in which a directory has its name.
    Parent,
    /// Whether a directory is this object or below it.
    IsUnder(InodeNumber),
    /// Whether a directory was removed.
    IsRemoved,
    /// The directory in which the process works; the subject is the root.
    WorkingDirectory,
    /// What follows from its permissions, once these changes are made.
    Permissions(Vec<PermissionChange>, Rule),
    LinkCount,
    SizeBytes,
    /// Of the last access.
    AccessedNs,
    /// Of the last modification, and of the last change of status.
    ChangedNs,
}

impl About {
    /// The name that it is about.
    pub(crate) fn name(&self) -> Option<&Name> {
        match self {
            About::LeadsTo(name) | About::Existence(name) | About::Exists(name) => Some(name),
            _ => None,
        }
    }
}

/// What a transaction has asked about data and descriptors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AboutData {
    /// What a file's bytes are from an offset on, so many.
    Bytes(u64, usize),
    /// Whether a read at this offset finds the end.
    EndsAt(u64),
    /// Whether a file is shorter than this.
    IsShorterThan(u64),
    /// What a descriptor leads to.
    Descriptor(u32),
    /// Whether a descriptor may lead to what serves a use; kept if it does not.
    MayServe(u32, Use),
    /// The offset of a descriptor's description.
    Offset(u32),
    /// Whether that is at least so many bytes.
    Reaches(u32, u64),
    /// Its flags.
    Status(u32),
    /// What waits in a pipe, at most so many bytes.
    PipeBytes(usize),
    /// How many bytes there is room for in a pipe, at most so many.
    PipeRoom(usize),
    /// Whether the last descriptor of the other end of a pipe was closed.
    PipeIsAlone(PipeEnd),
}

impl AboutData {
    fn mixed(&self) -> u64 {
        match *self {
            AboutData::Bytes(offset, _)
            | AboutData::EndsAt(offset)
            | AboutData::IsShorterThan(offset)
            | AboutData::Reaches(_, offset) => offset,
            AboutData::Descriptor(number)
            | AboutData::MayServe(number, _)
            | AboutData::Offset(number)
            | AboutData::Status(number) => number.into(),
            AboutData::PipeBytes(length) | AboutData::PipeRoom(length) => length as u64,
            AboutData::PipeIsAlone(_) => 0,
        }
    }
}

/// An open file description of the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    pub(crate) identity: u64,
    pub(crate) node: InodeNumber,
    pub(crate) mode: AccessMode,
}

/// What a call wants to know of permissions: no more, so that changes of anything else do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// All that there is to know.
    All,
    /// [`ObjectOperations::permits`](posix_calls::ObjectOperations::permits)
    Permits(Need),
    /// [`ObjectOperations::keeps_names`](posix_calls::ObjectOperations::keeps_names)
    KeepsNames,
    /// [`ObjectOperations::inherited_group`](posix_calls::ObjectOperations::inherited_group)
    InheritedGroup,
    /// Why the caller may not make a change.
    Refuses(PermissionChange),
    /// Why the caller may not set times.
    RefusesTimes(TimesRight),
}

impl Rule {
    fn reply(self, credentials: &Credentials, kind: Kind, permissions: Permissions) -> Reply {
        let Permissions { mode, user, group } = permissions;
        match self {
            Rule::All => Reply::Permissions(permissions),
            Rule::Permits(need) => Reply::Truth(need.check(credentials, kind, permissions).is_ok()),
            Rule::KeepsNames => Reply::Truth(mode & STICKY != 0 && user != credentials.user),
            Rule::InheritedGroup => Reply::Group((mode & SET_GROUP != 0).then_some(group)),
            Rule::Refuses(change) => Reply::Error(change.of(credentials, kind, permissions).err()),
            Rule::RefusesTimes(right) => Reply::Error(right.check(credentials, permissions).err()),
        }
    }
}

/// What the base says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Node(Option<InodeNumber>),
    Truth(bool),
    Existence(Existence),
    Next(Option<Listed>),
    Permissions(Permissions),
    Group(Option<u32>),
    Error(Option<Errno>),
    Count(u64),
    Times(i64, i64),
    Bytes(Box<[u8]>),
    Description(Option<Described>),
    Offset(Option<u64>),
    Status(Option<StatusFlags>),
}

/// A name in a listing of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub(crate) name: Name,
    pub(crate) number: InodeNumber,
    pub(crate) next_cookie: u64,
}

/// An object that a transaction knows. It is kept until the transaction ends, so that its number stays its own.
#[derive(Debug)]
pub struct Object<H> {
    pub(crate) handle: H,
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
}

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was there.
    Base,
    /// The transaction has made it: nobody else finds it before the commit.
    Made,
}

/// All objects that a transaction knows.
pub type Objects<H> = Table<InodeNumber, Object<H>>;

/// An object that was met for the first time.
pub(crate) type Met<H> = Option<(InodeNumber, Object<H>)>;

/// The number of an object of the base.
pub(crate) fn number<'v, B: ObjectOperations>(base: &'v B, node: B::Node<'v>) -> Answer<InodeNumber, B> {
    base.number(node)
}

/// An object's number, and the object itself if it is not known yet.
pub(crate) fn meet<'v, B: ObjectOperations>(
    base: &'v B,
    objects: &Objects<B::Handle>,
    node: B::Node<'v>,
) -> Answer<(InodeNumber, Met<B::Handle>), B> {
    let number = number(base, node)?;
    let met = if objects.contains(&number) {
        None
    } else {
        let object = Object { handle: base.retain(node)?, kind: base.kind(node), origin: Origin::Base };
        Some((number, object))
    };
    Ok((number, met))
}

/// The key of a name that was kept.
pub(crate) fn key<'n, B: ObjectOperations>(base: &B, name: &'n Name) -> B::Key<'n> {
    base.key_again(name, name.hash)
}

/// A name of the base that was found without its key.
fn name<B: ObjectOperations>(base: &B, name: &[u8]) -> Name {
    Name::new(name, base.key(name).map_or(0, |key| base.key_hash(&key)))
}

/// Asks the base, or looks at it through changes that are open. `introduce` tells the number of an object that the reply
/// names.
pub(crate) fn ask<'v, B: ObjectOperations>(
    base: &'v B,
    objects: &'v Objects<B::Handle>,
    (subject, question): (&'v B::Handle, &Question),
    mut introduce: impl FnMut(B::Node<'v>) -> Answer<InodeNumber, B>,
) -> Answer<Reply, B> {
    let node_of = |number: &InodeNumber| base.held(&objects[number].handle);
    let node = base.held(subject);
    let fields = |fields| base.attributes(node, fields);
    let reply = match &question.about {
        About::Data(_) => unreachable!("looks at objects are not asked for data"),
        About::LeadsTo(name) => {
            let found = base.look_up(node, &key(base, name))?;
            Reply::Node(found.map(|found| introduce(base.node(&found))).transpose()?)
        }
        About::Existence(name) => Reply::Existence(base.existence(node, &key(base, name))?),
        About::Exists(name) => Reply::Truth(base.exists(node, &key(base, name))?),
        About::Next(cookie) => {
            let mut first = None;
            base.list(node, *cookie, &mut |item| {
                first = Some((name(base, item.name), item.node, item.next_cookie));
                false
            })?;
            let listed = first.map(|(name, node, next_cookie)| -> Answer<Listed, B> {
                Ok(Listed { name, number: introduce(node)?, next_cookie })
            });
            Reply::Next(listed.transpose()?)
        }
        About::HasBeside(names) => {
            let mut has_others = false;
            base.list(node, FIRST_COOKIE, &mut |item| {
                has_others = names.binary_search_by(|name| name[..].cmp(item.name)).is_err();
                !has_others
            })?;
            Reply::Truth(has_others)
        }
        About::Parent => Reply::Node(Some(introduce(base.parent(node)?)?)),
        About::IsUnder(other) => Reply::Truth(base.is_above(node_of(other), node)?),
        About::IsRemoved => Reply::Truth(base.is_removed(node)?),
        About::WorkingDirectory => Reply::Node(Some(introduce(base.working_directory())?)),
        About::Permissions(changes, rule) => {
            let (credentials, kind) = (base.credentials(), base.kind(node));
            let changed = |old, change: &PermissionChange| change.of(credentials, kind, old).unwrap_or(old);
            rule.reply(credentials, kind, changes.iter().fold(base.permissions(node)?, changed))
        }
        About::LinkCount => Reply::Count(fields(Fields::LINK_COUNT)?.link_count.into()),
        About::SizeBytes => Reply::Count(fields(Fields::SIZE)?.size_bytes),
        About::AccessedNs => Reply::Times(fields(Fields::PERMISSIONS)?.accessed_ns, 0),
        About::ChangedNs => {
            let attributes = fields(Fields::TIMES)?;
            Reply::Times(attributes.modified_ns, attributes.changed_ns)
        }
    };
    Ok(reply)
}

/// What a question asks for, out of a reply to it.
macro_rules! parts {
    ($($name:ident: $variant:ident($($part:ident),+) -> $type:ty;)*) => {
        impl Reply {
            $(pub(crate) fn $name(self) -> $type {
                match self {
                    #[allow(unused_parens)]
                    Reply::$variant($($part),+) => ($($part),+),
                    other => unreachable!("{other:?} answers another question"),
                }
            })*
        }
    };
}

parts! {
    node: Node(number) -> Option<InodeNumber>;
    truth: Truth(is_so) -> bool;
    existence: Existence(existence) -> Existence;
    next: Next(listed) -> Option<Listed>;
    permissions: Permissions(permissions) -> Permissions;
    group: Group(group) -> Option<u32>;
    error: Error(errno) -> Option<Errno>;
    count: Count(count) -> u64;
    times: Times(first, second) -> (i64, i64);
    bytes: Bytes(bytes) -> Box<[u8]>;
    description: Description(described) -> Option<Described>;
    offset: Offset(bytes) -> Option<u64>;
    status: Status(status) -> Option<StatusFlags>;
}
