//! What lists in order have in common here: sets of numbers, and two of them between which numbers move.

/// A set of numbers that threads share; each thread has something of its own for it.
pub trait Set: Sync {
    /// What a thread has of its own.
    type Local;

    /// Of a new thread.
    fn local(&self) -> Self::Local;
    /// Whether the number is in it.
    fn contains(&self, local: &mut Self::Local, key: u64) -> bool;
    /// Puts a number in, unless it is there; whether it did.
    fn insert(&self, local: &mut Self::Local, key: u64) -> bool;
    /// Takes a number out; whether it was there.
    fn remove(&self, local: &mut Self::Local, key: u64) -> bool;
}

/// Two sets between which numbers move.
pub trait Pair: Sync {
    /// What a thread has of its own.
    type Local;

    /// Of a new thread.
    fn local(&self) -> Self::Local;
    /// Puts a number into the first.
    fn fill(&self, local: &mut Self::Local, key: u64);
    /// Moves a number from the set of this place to the other; whether it was there.
    fn hand_over(&self, local: &mut Self::Local, from: usize, key: u64) -> bool;
}

/// Two sets that know of no move: it is a removal, then an insertion.
pub struct BySteps<S>(pub [S; 2]);

impl<S: Set> Pair for BySteps<S> {
    type Local = S::Local;

    fn local(&self) -> S::Local {
        self.0[0].local()
    }

    fn fill(&self, local: &mut S::Local, key: u64) {
        assert!(self.0[0].insert(local, key), "a new number");
    }

    #[inline]
    fn hand_over(&self, local: &mut S::Local, from: usize, key: u64) -> bool {
        self.0[from].remove(local, key) && self.0[1 - from].insert(local, key)
    }
}
