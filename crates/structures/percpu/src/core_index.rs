//! Which core of an arena.

/// The index of a core in its arena, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreIndex(pub(crate) u16);

impl CoreIndex {
    /// The index as a number below [`MAX_CORES`](crate::MAX_CORES).
    pub fn get(self) -> usize {
        usize::from(self.0)
    }

    /// The index with this number, if an arena can have it.
    pub fn new(number: usize) -> Option<CoreIndex> {
        (number < crate::MAX_CORES).then_some(CoreIndex(number as u16))
    }
}
