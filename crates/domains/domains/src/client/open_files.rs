//! Open file descriptions of a domain: offset and flags of those that are its own, and which ones it shares with others.

use std::collections::HashMap;

use posix_calls::{AccessMode, Kind, PipeEnd};

use crate::identity::{ObjectNumber, Target};
use crate::wire::DescriptionState;

/// Where offset and flags are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Here: no other domain has a descriptor.
    Own(DescriptionState),
    /// With the file's owner, who knows the description by this number.
    Shared(ObjectNumber),
}

/// An open file description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFile {
    pub(crate) target: Target,
    pub(crate) mode: AccessMode,
    pub(crate) place: Place,
    /// Descriptors of this domain that lead here.
    pub(crate) descriptors: u32,
}

impl OpenFile {
    /// The end of a pipe that it is.
    pub(crate) fn end(&self) -> Option<PipeEnd> {
        end_of(self.target, self.mode)
    }
}

/// The end of a pipe that a description with this mode is.
pub(crate) fn end_of(target: Target, mode: AccessMode) -> Option<PipeEnd> {
    let end = if mode.write { PipeEnd::Write } else { PipeEnd::Read };
    (target.kind == Kind::Pipe).then_some(end)
}

/// The descriptions of a domain, by number.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    files: HashMap<u64, OpenFile>,
    /// By the numbers that owners gave them.
    shared: HashMap<ObjectNumber, u64>,
    last: u64,
}

impl OpenFiles {
    pub(crate) fn add(&mut self, file: OpenFile) -> u64 {
        self.last += 1;
        self.files.insert(self.last, file);
        if let Place::Shared(description) = file.place {
            self.shared.insert(description, self.last);
        }
        self.last
    }

    pub(crate) fn get(&self, number: u64) -> Option<OpenFile> {
        self.files.get(&number).copied()
    }

    /// The description that an owner knows by a number.
    pub(crate) fn of_shared(&self, description: ObjectNumber) -> Option<u64> {
        self.shared.get(&description).copied()
    }

    /// Offset and flags of a description come here, or go to an owner.
    pub(crate) fn place_at(&mut self, number: u64, place: Place) {
        let Some(file) = self.files.get_mut(&number) else { return };
        if let Place::Shared(description) = std::mem::replace(&mut file.place, place) {
            self.shared.remove(&description);
        }
        if let Place::Shared(description) = place {
            self.shared.insert(description, number);
        }
    }

    /// Changes offset and flags of a description that is the domain's own.
    pub(crate) fn change(&mut self, number: u64, change: impl FnOnce(&mut DescriptionState)) {
        if let Some(Place::Own(state)) = self.files.get_mut(&number).map(|file| &mut file.place) {
            change(state);
        }
    }

    /// One descriptor more leads to a description.
    pub(crate) fn count_descriptor(&mut self, number: u64) {
        if let Some(file) = self.files.get_mut(&number) {
            file.descriptors += 1;
        }
    }

    /// One descriptor fewer leads to a description; what it was, if it was the last.
    pub(crate) fn drop_descriptor(&mut self, number: u64) -> Option<OpenFile> {
        let file = self.files.get_mut(&number)?;
        file.descriptors -= 1;
        if file.descriptors > 0 {
            return None;
        }
        let file = self.files.remove(&number)?;
        if let Place::Shared(description) = file.place {
            self.shared.remove(&description);
        }
        Some(file)
    }
}
