//! The order in which locks are taken.

/// Place of a kind of lock in the order in which locks are taken: a lock may be taken while holding only locks that are
/// smaller by (rank, address).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockRank(pub u8);
