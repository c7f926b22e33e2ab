//! Open file descriptions, which stay with the domain of the process that has opened them.

use std::collections::HashMap;

use posix_calls::{AccessMode, StatusFlags};

use crate::identity::Target;

/// An open file description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFile {
    pub(crate) target: Target,
    pub(crate) mode: AccessMode,
    pub(crate) status: StatusFlags,
    pub(crate) offset: u64,
    /// How often the offset has moved.
    pub(crate) moves: u64,
    /// Descriptors that lead here.
    pub(crate) descriptors: u32,
}

/// The descriptions of a domain, by number.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    files: HashMap<u64, OpenFile>,
    last: u64,
}

impl OpenFiles {
    pub(crate) fn add(&mut self, file: OpenFile) -> u64 {
        self.last += 1;
        self.files.insert(self.last, file);
        self.last
    }

    pub(crate) fn get(&self, number: u64) -> Option<OpenFile> {
        self.files.get(&number).copied()
    }

    pub(crate) fn change(&mut self, number: u64, change: impl FnOnce(&mut OpenFile)) {
        if let Some(file) = self.files.get_mut(&number) {
            change(file);
        }
    }

    /// One descriptor fewer leads to a description; its object, if it was the last.
    pub(crate) fn drop_descriptor(&mut self, number: u64) -> Option<Target> {
        let file = self.files.get_mut(&number)?;
        file.descriptors -= 1;
        if file.descriptors > 0 {
            return None;
        }
        self.files.remove(&number).map(|file| file.target)
    }
}
