//! Objects: what an owner keeps of each.

use posix_calls::{Kind, Permissions};

use super::file::File;
use super::pipe::Pipe;
use super::readers::Readers;
use crate::identity::ObjectNumber;
use crate::wire::OperationNumber;

/// What kinds of objects have of their own.
#[derive(Debug)]
pub(crate) enum Body {
    File(File),
    Directory(Directory),
    Symlink(Vec<u8>),
    Pipe(Pipe),
    /// A name for what lies outside, and its device.
    Outside(Kind, u64),
}

/// What the home of a directory keeps in addition to its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directory {
    pub(crate) parent: ObjectNumber,
    pub(crate) moves: u64,
    /// Its names lie with all domains.
    pub(crate) is_split: bool,
}

impl Body {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Body::File(_) => Kind::Regular,
            Body::Directory(_) => Kind::Directory,
            Body::Symlink(_) => Kind::Symlink,
            Body::Pipe(_) => Kind::Pipe,
            Body::Outside(kind, _) => *kind,
        }
    }
}

/// What a prepared operation does to an object when it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    AddLink,
    DropLink,
    Touch,
    Move(ObjectNumber),
    Keep,
}

/// An object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) body: Body,
    pub(crate) permissions: Permissions,
    /// Names that lead here.
    pub(crate) links: u32,
    /// What keeps it besides names: descriptions, mapped pages, working directories, directories in it that were
    /// removed.
    pub(crate) references: u32,
    pub(crate) accessed_ns: i64,
    pub(crate) modified_ns: i64,
    pub(crate) changed_ns: i64,
    /// What was prepared, and is not known to be decided.
    pub(crate) pending: Vec<(OperationNumber, Effect)>,
    /// Who keeps its permissions, or where it stands.
    pub(crate) readers: Readers,
}

impl Object {
    /// An object of one link, made now.
    pub(crate) fn new(body: Body, permissions: Permissions, now_ns: i64) -> Object {
        Object {
            body,
            permissions,
            links: 1,
            references: 0,
            accessed_ns: now_ns,
            modified_ns: now_ns,
            changed_ns: now_ns,
            pending: Vec::new(),
            readers: Readers::default(),
        }
    }

    pub(crate) fn directory(&self) -> Option<&Directory> {
        match &self.body {
            Body::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    pub(crate) fn directory_mut(&mut self) -> Option<&mut Directory> {
        match &mut self.body {
            Body::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Whether nothing leads here.
    pub(crate) fn is_unused(&self) -> bool {
        self.links == 0 && self.references == 0 && self.pending.is_empty()
    }

    /// An effect takes place.
    pub(crate) fn take_effect(&mut self, effect: Effect, now_ns: i64) {
        match effect {
            Effect::AddLink => self.links += 1,
            Effect::DropLink => self.links = self.links.saturating_sub(1),
            Effect::Keep => {
                self.references += 1;
                return;
            }
            Effect::Touch => {}
            Effect::Move(parent) => {
                if let Some(directory) = self.directory_mut() {
                    directory.parent = parent;
                    directory.moves += 1;
                }
            }
        }
        self.changed_ns = now_ns;
    }
}
