//! What a transaction has made of its process's descriptors.
//!
//! A descriptor that it opens takes a number of the base at once, as new objects take inode numbers: other threads of the
//! process see that number taken. It is given back if the transaction does not happen. What it closes, moves or lets lead
//! elsewhere is its own until it has happened.

use alloc::collections::{BTreeMap, BTreeSet};

use posix_calls::{DESCRIPTOR_LIMIT, OnExec, StatusFlags};

/// A descriptor that leads to what the transaction says.
#[derive(Clone, Copy, Debug)]
pub struct OwnDescriptor {
    /// The description.
    pub(crate) identity: u64,
    /// A number of the base that leads to it.
    pub(crate) real: u32,
    pub(crate) on_exec: OnExec,
}

#[derive(Clone, Copy, Debug, Default)]
struct OwnDescription {
    real: u32,
    offset: Option<u64>,
    status: Option<StatusFlags>,
}

/// See the module's head. A copy is a savepoint, but for the numbers that are taken.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// By number; nothing where one was closed.
    changed: BTreeMap<u32, Option<OwnDescriptor>>,
    /// By identity.
    descriptions: BTreeMap<u64, OwnDescription>,
    taken: BTreeSet<u32>,
}

impl Descriptors {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.taken.is_empty() && self.descriptions.is_empty()
    }

    /// What a number leads to, unless the base says so.
    pub(crate) fn get(&self, number: u32) -> Option<Option<OwnDescriptor>> {
        let own = self.changed.get(&number).copied();
        own.or_else(|| self.taken.contains(&number).then_some(None))
    }

    pub(crate) fn set(&mut self, number: u32, descriptor: Option<OwnDescriptor>) {
        self.changed.insert(number, descriptor);
    }

    /// Notes a number of the base that was taken.
    pub(crate) fn take(&mut self, real: u32) {
        self.taken.insert(real);
    }

    pub(crate) fn has_taken(&self, real: u32) -> bool {
        self.taken.contains(&real)
    }

    pub(crate) fn taken(&self) -> impl Iterator<Item = u32> {
        self.taken.iter().copied()
    }

    /// The lowest number from one on that the transaction has made free.
    pub(crate) fn lowest_free(&self, from: u32) -> Option<u32> {
        let closed = self.changed.range(from..).find(|(_, own)| own.is_none()).map(|(number, _)| *number);
        let unused = self.taken.range(from..).find(|number| !self.changed.contains_key(number)).copied();
        closed.into_iter().chain(unused).min()
    }

    /// Whether a number leads where the transaction says.
    pub(crate) fn is_own(&self, real: u32) -> bool {
        matches!(self.changed.get(&real), Some(Some(_)))
    }

    /// A number behind all that the transaction knows of among those under the lowest free numbers.
    pub(crate) fn end(&self) -> u32 {
        let low = ..DESCRIPTOR_LIMIT;
        let last = [self.changed.range(low).next_back().map(|(number, _)| number), self.taken.range(low).next_back()];
        last.into_iter().flatten().max().map_or(0, |last| last + 1)
    }

    pub(crate) fn changed(&self) -> impl Iterator<Item = (u32, Option<OwnDescriptor>)> {
        self.changed.iter().map(|(number, own)| (*number, *own))
    }

    pub(crate) fn changed_statuses(&self) -> impl Iterator<Item = (u32, StatusFlags)> {
        self.descriptions.values().filter_map(|own| Some((own.real, own.status?)))
    }

    pub(crate) fn offset(&self, identity: u64) -> Option<u64> {
        self.descriptions.get(&identity)?.offset
    }

    pub(crate) fn status(&self, identity: u64) -> Option<StatusFlags> {
        self.descriptions.get(&identity)?.status
    }

    pub(crate) fn set_offset(&mut self, (identity, real): (u64, u32), offset: u64) {
        let own = self.descriptions.entry(identity).or_default();
        (own.real, own.offset) = (real, Some(offset));
    }

    pub(crate) fn set_status(&mut self, (identity, real): (u64, u32), status: StatusFlags) {
        let own = self.descriptions.entry(identity).or_default();
        (own.real, own.status) = (real, Some(status));
    }

    /// Goes back to a savepoint; numbers that were taken since stay so.
    pub(crate) fn go_back(&mut self, savepoint: Descriptors) {
        let taken = core::mem::take(&mut self.taken);
        *self = Descriptors { taken, ..savepoint };
    }
}
