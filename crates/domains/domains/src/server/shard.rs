//! The names of a directory, or of the part of it that this owner has.

use std::collections::{BTreeMap, HashMap};

use messages::DomainNumber;

use super::readers::Readers;
use crate::identity::{ObjectNumber, Target, domain_of_name, name_hash};
use crate::wire::{ListedState, OperationNumber};

/// Absent names of a directory that some domain keeps as absent, at most: further ones may not be kept.
const ABSENT_LIMIT: usize = 4096;

/// A change of a name that was prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) operation: OperationNumber,
    pub(crate) after: Option<Target>,
    pub(crate) at_ns: i64,
    /// Of the name when it has changed.
    pub(crate) stamp: u64,
}

/// Who decides on a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Authority {
    /// This owner, whose name it is.
    #[default]
    Own,
    /// The domain that owns what it leads to, until it gives it back.
    Lent { to: DomainNumber },
    /// This owner, to whom it is lent, and who gives it back when it is asked to; whether it was.
    Borrowed { is_recalled: bool },
}

/// A name: what it leads to, and what is to become of it.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Nothing: the name is only marked, or kept as absent.
    pub(crate) target: Option<Target>,
    pub(crate) stamp: u64,
    pub(crate) mark: Option<Mark>,
    /// Links that are being made rest on it.
    pub(crate) held_by: Vec<OperationNumber>,
    pub(crate) readers: Readers,
    pub(crate) authority: Authority,
    cookie: u64,
}

impl Entry {
    fn is_listed(&self) -> bool {
        self.target.is_some() || self.authority != Authority::Own
    }

    /// Whether no operation is under way on it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.mark.is_none() && self.held_by.is_empty()
    }
}

/// Names with their order.
#[derive(Debug)]
pub(crate) struct Shard {
    directory: ObjectNumber,
    domain_count: usize,
    entries: HashMap<Vec<u8>, Entry>,
    /// Names that lead to something, and those that are lent or borrowed, by cookie.
    order: BTreeMap<u64, Vec<u8>>,
    absent: usize,
    /// Entries with a mark.
    pub(crate) marked: usize,
    /// Who is about to remove the directory.
    pub(crate) closing: Option<OperationNumber>,
    /// The directory was removed.
    pub(crate) is_closed: bool,
    /// How often others than its home have changed its names.
    pub(crate) changes_by_others: u64,
    /// It is to be split as soon as nothing is under way: nothing begins before.
    pub(crate) is_draining: bool,
}

impl Shard {
    pub(crate) fn new(directory: ObjectNumber, domain_count: usize) -> Shard {
        Shard {
            directory,
            domain_count,
            entries: HashMap::new(),
            order: BTreeMap::new(),
            absent: 0,
            marked: 0,
            closing: None,
            is_closed: false,
            changes_by_others: 0,
            is_draining: false,
        }
    }

    /// Names that lead to something.
    pub(crate) fn name_count(&self) -> usize {
        self.entries.len() - self.absent
    }

    pub(crate) fn entry(&mut self, name: &[u8]) -> Option<&mut Entry> {
        self.entries.get_mut(name)
    }

    /// The entry of a name, to be looked at.
    pub(crate) fn peek(&self, name: &[u8]) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// The entry of a name, if need be one that leads to nothing.
    pub(crate) fn entry_or_absent(&mut self, name: &[u8], stamp: u64) -> &mut Entry {
        if !self.entries.contains_key(name) {
            self.absent += 1;
            let entry = Entry {
                target: None,
                stamp,
                mark: None,
                held_by: Vec::new(),
                readers: Readers::default(),
                authority: Authority::Own,
                cookie: 0,
            };
            self.entries.insert(name.to_vec(), entry);
        }
        self.entries.get_mut(name).expect("inserted just now")
    }

    /// Whether one more absent name may be kept by its readers.
    pub(crate) fn may_note_absence(&self) -> bool {
        self.absent < ABSENT_LIMIT
    }

    /// Lets a name lead elsewhere from this stamp on.
    pub(crate) fn set(&mut self, name: &[u8], target: Option<Target>, stamp: u64) {
        let authority = self.entry_or_absent(name, stamp).authority;
        self.put(name, (target, stamp), authority);
    }

    /// The same, and who decides on the name from now on.
    pub(crate) fn put(&mut self, name: &[u8], (target, stamp): (Option<Target>, u64), authority: Authority) {
        let entry = self.entry_or_absent(name, stamp);
        let (was_listed, was_absent) = (entry.is_listed(), entry.target.is_none());
        (entry.target, entry.stamp, entry.authority) = (target, stamp, authority);
        let (is_listed, cookie) = (entry.is_listed(), entry.cookie);
        self.absent = self.absent - usize::from(was_absent) + usize::from(target.is_none());
        if is_listed && !was_listed {
            let cookie = self.free_cookie(name);
            self.order.insert(cookie, name.to_vec());
            self.entry_or_absent(name, stamp).cookie = cookie;
        } else if was_listed && !is_listed {
            self.order.remove(&cookie);
        }
    }

    /// Forgets a name that leads to nothing, if no one knows of it.
    pub(crate) fn tidy(&mut self, name: &[u8]) {
        let is_idle = |entry: &Entry| !entry.is_listed() && entry.is_quiet() && entry.readers.is_empty();
        if self.entries.get(name).is_some_and(is_idle) {
            self.entries.remove(name);
            self.absent -= 1;
        }
    }

    /// Where a name stands in listings: by its hash, whether the directory is split or not; at least 256, below 2^63. The last
    /// eight bits are those of the domain that has the name when it is split, so that no two domains give the same.
    fn free_cookie(&self, name: &[u8]) -> u64 {
        let hash = name_hash(self.directory, name);
        let domain = domain_of_name(hash, self.domain_count).0 & 0xff;
        let mut cookie = (hash.rotate_left(32) >> 10 << 8 | u64::from(domain)) + 256;
        while self.order.contains_key(&cookie) {
            cookie += 256;
        }
        cookie
    }

    /// Names from a cookie on.
    pub(crate) fn list(&self, from: u64) -> impl Iterator<Item = (u64, &[u8], ListedState)> {
        self.order.range(from..).filter_map(|(cookie, name)| {
            let entry = self.entries.get(name)?;
            let state = match (entry.target, entry.authority) {
                (Some(target), _) => ListedState::Leads { target },
                (None, Authority::Lent { .. }) => ListedState::Lent {},
                (None, _) => ListedState::Absent {},
            };
            Some((*cookie, &name[..], state))
        })
    }

    /// Names that are lent.
    pub(crate) fn lent_names(&self) -> Vec<Vec<u8>> {
        let is_lent = |entry: &Entry| matches!(entry.authority, Authority::Lent { .. });
        self.entries.iter().filter(|(_, entry)| is_lent(entry)).map(|(name, _)| name.clone()).collect()
    }

    /// Names that have a mark.
    pub(crate) fn marked_names(&self) -> Vec<Vec<u8>> {
        self.entries.iter().filter(|(_, entry)| entry.mark.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// Whether no operation is under way on any name.
    pub(crate) fn is_quiet(&self) -> bool {
        self.marked == 0
            && self.closing.is_none()
            && !self.is_closed
            && self.entries.values().all(|entry| entry.held_by.is_empty())
    }

    /// All names, those kept as absent too.
    pub(crate) fn all_names(&self) -> Vec<Vec<u8>> {
        self.entries.keys().cloned().collect()
    }
}
