//! The layer of a transaction's own changes, over the base.

use alloc::vec::Vec;

use posix_calls::{AttributeChange, InodeNumber, Touched};

use crate::descriptors::Descriptors;
use crate::file::OwnData;
use crate::name::Name;
use crate::pipe::OwnPipe;
use crate::question::Question;
use crate::table::{Key, Table};

/// Cookies of names that the base does not have are this or larger.
pub(crate) const OWN_COOKIES: u64 = (1 << 63) - (1 << 24);

/// What a transaction has changed. A copy is a savepoint, see [`Layer::go_back`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    /// By directory and name.
    names: Table<(InodeNumber, Name), OwnName>,
    objects: Table<InodeNumber, OwnObject>,
    pub(crate) descriptors: Descriptors,
    pub(crate) working_directory: Option<InodeNumber>,
    cookies: u64,
    /// Some directory has come to another parent.
    pub(crate) has_moves: bool,
}

impl Key for (InodeNumber, Name) {
    fn mixed(&self) -> u64 {
        Question::mixed_of_name(self.0, &self.1)
    }
}

/// What has become of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnName {
    /// In the base.
    pub(crate) before: Option<InodeNumber>,
    pub(crate) leads_to: Option<InodeNumber>,
    /// Where it stands in listings, unless the base has it, too.
    pub(crate) cookie: u64,
    /// The place of the one of its directory that changed before it.
    previous: Option<u32>,
}

/// What has become of an object, other than in its own names.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnObject {
    /// Names that it has got, less those that it has lost.
    pub(crate) links: i64,
    /// Of a directory: the one in which it is now.
    pub(crate) parent: Option<InodeNumber>,
    pub(crate) is_removed: bool,
    /// The place of the name in it that changed last.
    last_name: Option<u32>,
    /// Made again, one by one, by the commit.
    pub(crate) attributes: Vec<AttributeChange>,
    pub(crate) data: OwnData,
    pub(crate) pipe: OwnPipe,
    /// As it was set.
    pub(crate) accessed_ns: Option<i64>,
    pub(crate) modified: Option<Modified>,
    /// Its status has changed, too: at the moment of the transaction.
    pub(crate) is_changed: bool,
}

/// When an object was modified last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modified {
    /// At the moment of the transaction.
    Now,
    /// As it was set.
    At(i64),
}

impl OwnObject {
    /// Which times of an object of the base become the moment of the transaction.
    pub(crate) fn touched(&self) -> Option<Touched> {
        match self.modified {
            Some(Modified::Now) => Some(Touched::Data),
            _ => self.is_changed.then_some(Touched::Status),
        }
    }
}

impl Layer {
    pub(crate) fn name(&self, directory: InodeNumber, name: &Name) -> Option<OwnName> {
        let mut like = self.names.like(Question::mixed_of_name(directory, name));
        like.find(|(key, _)| key.0 == directory && key.1 == *name).map(|(_, own)| *own)
    }

    /// The names of a directory that have changed, the last one first.
    pub(crate) fn names_of(&self, directory: InodeNumber) -> impl Iterator<Item = (&Name, &OwnName)> {
        let mut next = self.object(directory).and_then(|own| own.last_name);
        core::iter::from_fn(move || {
            let ((_, name), own) = self.names.row(next? as usize);
            next = own.previous;
            Some((name, own))
        })
    }

    /// All names that have changed.
    pub(crate) fn names(&self) -> impl Iterator<Item = (InodeNumber, &Name, &OwnName)> {
        self.names.iter().map(|((directory, name), own)| (*directory, name, own))
    }

    pub(crate) fn object(&self, number: InodeNumber) -> Option<&OwnObject> {
        self.objects.get(&number)
    }

    /// All objects that have changed.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (InodeNumber, &OwnObject)> {
        self.objects.iter().map(|(number, object)| (*number, object))
    }

    pub(crate) fn object_mut(&mut self, number: InodeNumber) -> &mut OwnObject {
        self.objects.entry(number)
    }

    /// Lets a name lead elsewhere, marks its directory, and counts.
    pub(crate) fn set_name(
        &mut self,
        (directory, name): (InodeNumber, &Name),
        (before, after): (Option<InodeNumber>, Option<InodeNumber>),
    ) {
        self.cookies += 1;
        let cookie = OWN_COOKIES + self.cookies;
        let key = (directory, name.clone());
        match self.names.get_mut(&key) {
            // Where it is replaced, it stays in listings.
            Some(own) if own.leads_to.is_some() => own.leads_to = after,
            Some(own) => (own.leads_to, own.cookie) = (after, cookie),
            None => {
                let place = u32::try_from(self.names.len()).expect("memory holds fewer names");
                let previous = self.object_mut(directory).last_name.replace(place);
                self.names.push(key, OwnName { before, leads_to: after, cookie, previous });
            }
        }
        self.mark_data(directory);
        for (number, change) in [(before, -1), (after, 1)] {
            if let Some(number) = number {
                let object = self.object_mut(number);
                object.links += change;
                object.is_changed = true;
            }
        }
    }

    /// Marks that data or names change now: a modification time set before is of the past.
    pub(crate) fn mark_data(&mut self, number: InodeNumber) {
        let object = self.object_mut(number);
        (object.modified, object.is_changed) = (Some(Modified::Now), true);
        for change in &mut object.attributes {
            if let AttributeChange::Times(_, (_, modified)) = change {
                *modified = None;
            }
        }
    }

    /// Forgets everything; its memory stays.
    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.objects.clear();
        if !self.descriptors.is_empty() {
            self.descriptors = Descriptors::default();
        }
        (self.working_directory, self.cookies, self.has_moves) = (None, 0, false);
    }

    /// Goes back to a savepoint.
    pub(crate) fn go_back(&mut self, savepoint: Layer) {
        let descriptors = core::mem::take(&mut self.descriptors);
        *self = savepoint;
        let savepoint = core::mem::replace(&mut self.descriptors, descriptors);
        self.descriptors.go_back(savepoint);
    }

    /// Lets a directory stand in another.
    pub(crate) fn move_to(&mut self, directory: InodeNumber, parent: InodeNumber) {
        self.object_mut(directory).parent = Some(parent);
        self.has_moves = true;
    }
}
