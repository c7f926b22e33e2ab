//! What a domain keeps of others' answers.
//!
//! An answer is kept with the domain that gave it. Before it is used, that domain's notices are read: so an answer that is used was
//! true at that moment. Without a limit a domain that looks at everything would keep everything; beyond one it forgets
//! all.

use std::collections::HashMap;
use std::rc::Rc;

use messages::DomainNumber;
use posix_calls::Permissions;
use sync::mutant::planted;

use crate::identity::{ObjectNumber, Target};

/// Answers of each kind that are kept, at most.
const LIMIT: usize = 1 << 16;

/// What a name leads to, since it had a stamp; nothing, if it is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownName {
    pub(crate) target: Option<Target>,
    pub(crate) stamp: u64,
    pub(crate) owner: DomainNumber,
}

/// Names of one directory.
type Names = HashMap<Vec<u8>, KnownName>;

/// What is kept.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    names: HashMap<ObjectNumber, Names>,
    name_count: usize,
    permissions: HashMap<ObjectNumber, Permissions>,
    /// Of directories that are there: parent, and how often they have come to another.
    places: HashMap<ObjectNumber, (ObjectNumber, u64)>,
    /// Targets of symbolic links, which never change.
    link_targets: HashMap<ObjectNumber, Rc<[u8]>>,
    /// Directories that are split over all domains: they stay so.
    split: HashMap<ObjectNumber, ()>,
    /// By owner: how often something of it was forgotten.
    forgotten: HashMap<DomainNumber, u64>,
}

impl Cache {
    /// How often something of an owner was forgotten: what was asked before the last time may not be kept.
    pub(crate) fn forgotten(&self, owner: DomainNumber) -> u64 {
        self.forgotten.get(&owner).copied().unwrap_or(0)
    }

    pub(crate) fn name(&self, directory: ObjectNumber, name: &[u8]) -> Option<KnownName> {
        self.names.get(&directory)?.get(name).copied()
    }

    pub(crate) fn keep_name(&mut self, directory: ObjectNumber, name: &[u8], known: KnownName) {
        if self.name_count >= LIMIT {
            self.names.clear();
            self.name_count = 0;
        }
        if self.names.entry(directory).or_default().insert(name.to_vec(), known).is_none() {
            self.name_count += 1;
        }
    }

    pub(crate) fn forget_name(&mut self, directory: ObjectNumber, name: &[u8]) {
        let Some(names) = self.names.get_mut(&directory) else { return };
        if names.remove(name).is_some() {
            self.name_count -= 1;
        }
        if names.is_empty() {
            self.names.remove(&directory);
        }
    }

    pub(crate) fn permissions(&self, object: ObjectNumber) -> Option<Permissions> {
        self.permissions.get(&object).copied()
    }

    pub(crate) fn keep_permissions(&mut self, object: ObjectNumber, permissions: Permissions) {
        if self.permissions.len() >= LIMIT {
            self.permissions.clear();
        }
        self.permissions.insert(object, permissions);
    }

    /// Where a directory stands that is there.
    pub(crate) fn place(&self, directory: ObjectNumber) -> Option<(ObjectNumber, u64)> {
        self.places.get(&directory).copied()
    }

    pub(crate) fn keep_place(&mut self, directory: ObjectNumber, place: (ObjectNumber, u64)) {
        if self.places.len() >= LIMIT {
            self.places.clear();
        }
        self.places.insert(directory, place);
    }

    /// Forgets permissions, and where a directory stands.
    pub(crate) fn forget_object(&mut self, object: ObjectNumber) {
        self.permissions.remove(&object);
        self.places.remove(&object);
    }

    pub(crate) fn link_target(&self, symlink: ObjectNumber) -> Option<Rc<[u8]>> {
        self.link_targets.get(&symlink).cloned()
    }

    pub(crate) fn keep_link_target(&mut self, symlink: ObjectNumber, target: &Rc<[u8]>) {
        if self.link_targets.len() >= LIMIT / 16 {
            self.link_targets.clear();
        }
        self.link_targets.insert(symlink, Rc::clone(target));
    }

    pub(crate) fn is_split(&self, directory: ObjectNumber) -> bool {
        self.split.contains_key(&directory)
    }

    /// Keeps that a directory is split; returns whether that is new.
    pub(crate) fn keep_split(&mut self, directory: ObjectNumber) -> bool {
        if self.split.len() >= LIMIT {
            self.split.clear();
        }
        self.split.insert(directory, ()).is_none()
    }

    /// Notes that an owner has sent a notice.
    pub(crate) fn note_notice(&mut self, owner: DomainNumber) {
        *self.forgotten.entry(owner).or_default() += 1;
    }

    /// Forgets all that an owner has answered.
    pub(crate) fn forget_all_of(&mut self, owner: DomainNumber) {
        if planted("domains: one who is to forget all forgets nothing") {
            return;
        }
        for names in self.names.values_mut() {
            names.retain(|_, known| known.owner != owner);
        }
        self.names.retain(|_, names| !names.is_empty());
        self.name_count = self.names.values().map(HashMap::len).sum();
        self.permissions.retain(|object, _| object.home() != owner);
        self.places.retain(|directory, _| directory.home() != owner);
    }
}
