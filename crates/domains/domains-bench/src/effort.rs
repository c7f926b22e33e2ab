//! How much is done.

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Full,
    /// So little that figures mean nothing: for tests.
    Quick,
}

impl Effort {
    /// Of the largest sizes: a run of one benchmark takes some milliseconds, less than a time slice of the system.
    pub fn percent(self) -> usize {
        if self == Effort::Full { 30 } else { 1 }
    }

    /// Rounds, each of which gives a sample.
    pub fn rounds(self) -> usize {
        if self == Effort::Full { 5 } else { 1 }
    }

    /// Runs of a round, of which one is a sample, and the first fills caches.
    pub fn runs(self) -> usize {
        if self == Effort::Full { 5 } else { 2 }
    }
}
