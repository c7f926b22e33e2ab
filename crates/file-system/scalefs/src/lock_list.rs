//! The locks of a file as a list, and what a request makes of it. Rules alone: no memory, and no one else.
//!
//! The list holds the owners one after the other, in the order in which they came, and of each its ranges by where they begin. Two
//! ranges of an owner do not meet, nor do they touch if they are locked alike. So it is the list of Linux's `posix_lock_inode`,
//! and what is in the way first is so there.

use posix_calls::{ForeignLock, LockKind, LockMode, LockRange};

/// Whose a lock is: the number of a process, or the address of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockOwner {
    pub(crate) kind: LockKind,
    pub(crate) identity: u64,
}

impl LockOwner {
    /// Whether both may keep each other out.
    fn is_foreign_to(self, other: LockOwner) -> bool {
        let knows = (self.kind == LockKind::WholeFile) == (other.kind == LockKind::WholeFile);
        knows && self != other
    }
}

/// A lock.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldLock {
    pub(crate) owner: LockOwner,
    pub(crate) range: LockRange,
    pub(crate) seen_as: u64,
    pub(crate) mode: LockMode,
}

impl HeldLock {
    /// Whether it keeps another owner from locking a range so.
    pub(crate) fn is_in_the_way(&self, owner: LockOwner, range: LockRange, mode: LockMode) -> bool {
        let conflicts = self.mode == LockMode::Exclusive || mode == LockMode::Exclusive;
        conflicts && self.owner.is_foreign_to(owner) && self.range.meets(range)
    }

    /// As others see it.
    pub(crate) fn seen(&self) -> ForeignLock {
        let HeldLock { owner: LockOwner { kind, .. }, range, mode, seen_as } = *self;
        ForeignLock { kind, range, mode, seen_as: (kind == LockKind::Process).then_some(seen_as) }
    }
}

/// Most locks that one request adds: a range is divided by another one.
pub(crate) const MOST_ADDED: usize = 2;

/// Tells `put` the locks that there are once a range of an owner is locked so, or unlocked, in their order.
pub(crate) fn changed(
    held: &[HeldLock],
    (owner, range, mode): (LockOwner, LockRange, Option<LockMode>),
    seen_as: u64,
    mut put: impl FnMut(HeldLock),
) {
    let start = held.iter().position(|lock| lock.owner == owner).unwrap_or(held.len());
    let count = held[start..].iter().take_while(|lock| lock.owner == owner).count();
    let (before, rest) = held.split_at(start);
    let (own, after) = rest.split_at(count);
    before.iter().copied().for_each(&mut put);
    // What the new range takes in of those that it touches and that are alike.
    let touches = |lock: &&HeldLock| {
        Some(lock.mode) == mode
            && lock.range.first <= range.last.saturating_add(1)
            && range.first <= lock.range.last.saturating_add(1)
    };
    let whole = own.iter().filter(touches).fold(range, |whole, lock| LockRange {
        first: whole.first.min(lock.range.first),
        last: whole.last.max(lock.range.last),
    });
    let taken = if mode.is_some() { whole } else { range };
    for lock in own.iter().filter(|lock| lock.range.first < taken.first) {
        put(HeldLock { range: LockRange { last: lock.range.last.min(taken.first - 1), ..lock.range }, ..*lock });
    }
    if let Some(mode) = mode {
        put(HeldLock { owner, range: taken, seen_as, mode });
    }
    for lock in own.iter().filter(|lock| lock.range.last > taken.last) {
        put(HeldLock { range: LockRange { first: lock.range.first.max(taken.last + 1), ..lock.range }, ..*lock });
    }
    after.iter().copied().for_each(put);
}
