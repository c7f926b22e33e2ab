//! The layer of a transaction's own changes, over the base.

use alloc::vec::Vec;

use posix_calls::{AttributeChange, InodeNumber, StatusFlags, Touched};
use sync::mutant::planted;

use crate::descriptors::{Descriptors, OwnDescriptor};
use crate::file::OwnData;
use crate::name::Name;
use crate::own::{Made, Modified, OwnName, Status};
use crate::pipe::OwnPipe;
use crate::question::Question;
use crate::table::{Key, Table};
use crate::undo::{NoSuchSavepoint, Savepoint, Scalars, Step, Undo};

/// Cookies of names that the base does not have are this or larger.
pub(crate) const OWN_COOKIES: u64 = (1 << 63) - (1 << 24);

/// What a transaction has changed, and how to undo it.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    /// By directory and name.
    names: Table<(InodeNumber, Name), OwnName>,
    objects: Table<InodeNumber, OwnObject>,
    pub(crate) descriptors: Descriptors,
    pub(crate) scalars: Scalars,
    undo: Undo,
}

impl Key for (InodeNumber, Name) {
    fn mixed(&self) -> u64 {
        Question::mixed_of_name(self.0, &self.1)
    }
}

/// What has become of an object, other than in its own names.
#[derive(Debug, Default)]
pub(crate) struct OwnObject {
    pub(crate) status: Status,
    /// If the transaction has made it: how.
    pub(crate) made: Option<Made>,
    /// Made again, one by one, by the commit.
    pub(crate) attributes: Vec<AttributeChange>,
    pub(crate) data: OwnData,
    pub(crate) pipe: OwnPipe,
}

impl OwnObject {
    /// Which times of an object of the base become the moment of the transaction.
    pub(crate) fn touched(&self) -> Option<Touched> {
        match self.status.modified {
            Some(Modified::Now) => Some(Touched::Data),
            _ => self.status.is_changed.then_some(Touched::Status),
        }
    }
}

impl Layer {
    /// Whether no name and no object has changed.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.names.len() == 0 && self.objects.len() == 0
    }

    pub(crate) fn name(&self, directory: InodeNumber, name: &Name) -> Option<OwnName> {
        let mut like = self.names.like(Question::mixed_of_name(directory, name));
        like.find(|(key, _)| key.0 == directory && key.1 == *name).map(|(_, own)| *own)
    }

    /// The names of a directory that have changed, the last one first.
    pub(crate) fn names_of(&self, directory: InodeNumber) -> impl Iterator<Item = (&Name, &OwnName)> {
        let mut next = self.object(directory).and_then(|own| own.status.last_name);
        core::iter::from_fn(move || {
            let ((_, name), own) = self.names.row(next? as usize);
            next = own.previous;
            Some((name, own))
        })
    }

    /// All names that have changed.
    pub(crate) fn names(&self) -> impl Iterator<Item = (InodeNumber, &Name, &OwnName)> + use<'_> {
        self.names.iter().map(|((directory, name), own)| (*directory, name, own))
    }

    pub(crate) fn object(&self, number: InodeNumber) -> Option<&OwnObject> {
        self.objects.get(&number)
    }

    /// All objects that have changed.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (InodeNumber, &OwnObject)> + use<'_> {
        self.objects.iter().map(|(number, object)| (*number, object))
    }

    /// The place of what has become of an object, which is about to change.
    fn place_of(&mut self, number: InodeNumber) -> usize {
        match self.objects.place(&number) {
            Some(place) => {
                self.undo.note(|| Step::Status(place, self.objects.row(place).1.status));
                place
            }
            None => {
                self.undo.note(|| Step::NewObject);
                self.objects.push(number, OwnObject::default());
                self.objects.len() - 1
            }
        }
    }

    /// Notes an object that the transaction has made.
    pub(crate) fn note_made(&mut self, number: InodeNumber, made: Made) {
        let place = self.place_of(number);
        self.objects.row_mut(place).made = Some(made);
    }

    /// What has become of an object that is small, to be changed.
    pub(crate) fn status_mut(&mut self, number: InodeNumber) -> &mut Status {
        let place = self.place_of(number);
        &mut self.objects.row_mut(place).status
    }

    /// What has become of a pipe of the base, to be changed.
    pub(crate) fn pipe_mut(&mut self, number: InodeNumber) -> &mut OwnPipe {
        let place = self.place_of(number);
        // No longer than a pipe is.
        self.undo.note(|| Step::Pipe(place, self.objects.row(place).1.pipe.clone()));
        &mut self.objects.row_mut(place).pipe
    }

    /// Lets a file have bytes from an offset on.
    pub(crate) fn write(&mut self, number: InodeNumber, offset: u64, bytes: &[u8]) {
        let place = self.place_of(number);
        let before = self.objects.row_mut(place).data.write(offset, bytes, self.undo.is_wanted());
        let range = offset..offset + bytes.len() as u64;
        self.undo.note(|| Step::Data(place, range, before));
        self.mark_data(number);
    }

    /// Lets a file have this size.
    pub(crate) fn resize(&mut self, number: InodeNumber, size: u64) {
        let place = self.place_of(number);
        let before = self.objects.row_mut(place).data.resize(size);
        self.undo.note(|| Step::Data(place, size..u64::MAX, before));
        self.mark_data(number);
    }

    /// Changes permissions or times.
    pub(crate) fn change_attributes(&mut self, number: InodeNumber, change: AttributeChange) {
        let place = self.place_of(number);
        self.undo.note(|| Step::Attributes(place, self.objects.row(place).1.attributes.clone()));
        let own = self.objects.row_mut(place);
        own.attributes.push(change);
        own.status.is_changed = true;
        if let AttributeChange::Times(_, (accessed, modified)) = change {
            own.status.accessed_ns = accessed.or(own.status.accessed_ns);
            own.status.modified = modified.map(Modified::At).or(own.status.modified);
        }
    }

    /// Lets a descriptor lead elsewhere, or nowhere.
    pub(crate) fn set_descriptor(&mut self, number: u32, descriptor: Option<OwnDescriptor>) {
        let before = self.descriptors.set(number, Some(descriptor));
        self.undo.note(|| Step::Descriptor(number, before));
    }

    pub(crate) fn set_offset(&mut self, (identity, real): (u64, u32), offset: u64) {
        let before = self.descriptors.set_offset((identity, real), offset);
        self.undo.note(|| Step::Description(identity, before));
    }

    pub(crate) fn set_status(&mut self, (identity, real): (u64, u32), status: StatusFlags) {
        let before = self.descriptors.set_status((identity, real), status);
        self.undo.note(|| Step::Description(identity, before));
    }

    /// Lets a name lead elsewhere, marks its directory, and counts.
    pub(crate) fn set_name(
        &mut self,
        (directory, name): (InodeNumber, &Name),
        (before, after): (Option<InodeNumber>, Option<InodeNumber>),
    ) {
        self.scalars.cookies += 1;
        let cookie = OWN_COOKIES + self.scalars.cookies;
        let key = (directory, name.clone());
        match self.names.place(&key) {
            Some(place) => {
                let own = self.names.row_mut(place);
                self.undo.note(|| Step::Name(place, *own));
                // Where it is replaced, it stays in listings.
                if own.leads_to.is_none() {
                    own.cookie = cookie;
                }
                own.leads_to = after;
            }
            None => {
                let place = u32::try_from(self.names.len()).expect("memory holds fewer names");
                let previous = self.status_mut(directory).last_name.replace(place);
                self.undo.note(|| Step::NewName);
                self.names.push(key, OwnName { before, leads_to: after, cookie, previous });
            }
        }
        self.mark_data(directory);
        for (number, change) in [(before, -1), (after, 1)] {
            if let Some(number) = number {
                let status = self.status_mut(number);
                status.links += change;
                status.is_changed = true;
            }
        }
    }

    /// Marks that data or names change now: a modification time set before is of the past.
    pub(crate) fn mark_data(&mut self, number: InodeNumber) {
        let place = self.place_of(number);
        let is_set =
            |change: &AttributeChange| matches!(change, AttributeChange::Times(_, (_, modified)) if modified.is_some());
        let own = self.objects.row_mut(place);
        (own.status.modified, own.status.is_changed) = (Some(Modified::Now), true);
        if own.attributes.iter().any(is_set) {
            self.undo.note(|| Step::Attributes(place, own.attributes.clone()));
            for change in &mut own.attributes {
                if let AttributeChange::Times(_, (_, modified)) = change {
                    *modified = None;
                }
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
        self.scalars = Scalars::default();
        self.undo.clear();
    }

    pub(crate) fn savepoint(&mut self) -> Savepoint {
        if planted("transact: a savepoint copies what was written") {
            self.objects().for_each(|(_, own)| drop(own.data.clone()));
        }
        self.undo.savepoint(self.scalars)
    }

    /// Goes back to a savepoint; tells of each object whose data are others now.
    pub(crate) fn go_back(
        &mut self,
        savepoint: &Savepoint,
        mut differs: impl FnMut(InodeNumber),
    ) -> Result<(), NoSuchSavepoint> {
        let (steps, scalars) = self.undo.back_to(savepoint)?;
        self.scalars = scalars;
        for step in steps.into_iter().rev() {
            match step {
                Step::NewName => self.names.pop(),
                Step::Name(place, own) => *self.names.row_mut(place) = own,
                Step::NewObject => self.objects.pop(),
                Step::Status(place, status) => self.objects.row_mut(place).status = status,
                Step::Attributes(place, attributes) => self.objects.row_mut(place).attributes = attributes,
                Step::Data(place, range, before) => {
                    differs(self.objects.row(place).0);
                    self.objects.row_mut(place).data.restore(range, before);
                }
                Step::Pipe(place, pipe) => self.objects.row_mut(place).pipe = pipe,
                Step::Descriptor(number, before) => drop(self.descriptors.set(number, before)),
                Step::Description(identity, before) => self.descriptors.restore(identity, before),
            }
        }
        Ok(())
    }

    /// Lets a directory stand in another.
    pub(crate) fn move_to(&mut self, directory: InodeNumber, parent: InodeNumber) {
        self.status_mut(directory).parent = Some(parent);
        self.scalars.has_moves = true;
    }
}
