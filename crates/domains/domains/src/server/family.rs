//! Which processes are children of which.

use std::collections::{BTreeMap, HashMap};

use posix_calls::Ended;

use crate::identity::ObjectNumber;

/// Processes that have children, and those that are some.
#[derive(Debug, Default)]
pub(crate) struct Families {
    /// By parent: its children that no one has waited for, and how each has ended, if it has.
    pub(super) children: HashMap<ObjectNumber, BTreeMap<ObjectNumber, Option<Ended>>>,
    pub(super) parents: HashMap<ObjectNumber, ObjectNumber>,
}
