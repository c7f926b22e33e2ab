//! The locks that a core holds, and the check that they are taken in order: part of the handle, only in debug builds.

use core::cell::Cell;

use crate::lock_rank::LockRank;

/// This many locks at once are checked. Nothing that the file system does in one step takes more of them but a
/// transaction of very many names, whose names are sorted.
const CHECKED_LOCKS: usize = 64;

/// The locks that a core holds, as far as they fit: part of the handle, only in debug builds.
pub(crate) struct HeldLocks {
    locks: [Cell<Option<(LockRank, usize)>>; CHECKED_LOCKS],
}

impl Default for HeldLocks {
    fn default() -> HeldLocks {
        HeldLocks { locks: core::array::from_fn(|_| Cell::new(None)) }
    }
}

impl HeldLocks {
    pub(crate) fn check(&self, rank: LockRank, address: usize) {
        if let Some(later) = self.locks.iter().filter_map(Cell::get).find(|held| *held >= (rank, address)) {
            panic!("lock order: {rank:?} at {address:#x} is taken while {later:x?} is held");
        }
    }

    pub(crate) fn push(&self, rank: LockRank, address: usize) {
        if let Some(free) = self.locks.iter().find(|place| place.get().is_none()) {
            free.set(Some((rank, address)));
        }
    }

    pub(crate) fn pop(&self, address: usize) {
        let is_held = |place: &&Cell<Option<(LockRank, usize)>>| place.get().is_some_and(|(_, held)| held == address);
        if let Some(place) = self.locks.iter().find(is_held) {
            place.set(None);
        }
    }
}
