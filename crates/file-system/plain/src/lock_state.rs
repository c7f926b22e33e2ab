//! The locks of a file, by byte.

use std::collections::BTreeSet;

use posix_calls::{LockKind, LockMode, LockRange};

/// Who has locks of a file: a process or a description, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) kind: LockKind,
    pub(crate) number: u64,
}

/// What an owner has locked of a file: from a byte on, up to the next one that is named, so, or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Locks {
    pub(crate) owner: Owner,
    pub(crate) seen_as: u64,
    /// In order, each unlike the one before.
    pub(crate) marks: Vec<(u64, Option<LockMode>)>,
}

impl Locks {
    pub(crate) fn at(&self, byte: u64) -> Option<LockMode> {
        self.marks.iter().rev().find(|(from, _)| *from <= byte).and_then(|(_, mode)| *mode)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks.iter().all(|(_, mode)| mode.is_none())
    }

    /// Lets the bytes of a range be locked so.
    pub(crate) fn set(&mut self, range: LockRange, mode: Option<LockMode>) {
        let bounds: BTreeSet<u64> =
            self.marks.iter().map(|(from, _)| *from).chain([0, range.first, range.last + 1]).collect();
        let mut marks: Vec<(u64, Option<LockMode>)> = Vec::new();
        for from in bounds {
            let is_in = (range.first..=range.last).contains(&from);
            let now = if is_in { mode } else { self.at(from) };
            if marks.last().is_none_or(|(_, before)| *before != now) {
                marks.push((from, now));
            }
        }
        self.marks = marks;
    }

    /// The ranges that are locked, in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (LockRange, LockMode)> {
        let ends = self.marks.iter().skip(1).map(|(from, _)| from - 1).chain([LockRange::END]);
        self.marks.iter().zip(ends).filter_map(|((first, mode), last)| {
            mode.map(|mode| (LockRange { first: *first, last: last.min(LockRange::END) }, mode))
        })
    }
}
