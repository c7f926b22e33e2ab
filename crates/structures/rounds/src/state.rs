//! What the word of a group says: the round, who was seen in it, and whether that is all.

// Hints alone are in them, so that models need not interleave them.
use core::sync::atomic::AtomicU32;

use sync::atomic::{AtomicU64, Ordering};

/// Cores of a group, and groups, at most.
pub(crate) const MOST_IN_WORD: usize = 16;
const SEEN: u64 = (1 << MOST_IN_WORD) - 1;
const COMPLETE: u64 = 1 << MOST_IN_WORD;
const NUMBER_SHIFT: u32 = MOST_IN_WORD as u32 + 1;

/// The number of a round, a bit for each that was seen in it, and whether no more are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(u64);

impl State {
    pub(crate) fn new(number: u64, seen: u64) -> State {
        State(number << NUMBER_SHIFT | seen)
    }

    pub(crate) fn number(self) -> u64 {
        self.0 >> NUMBER_SHIFT
    }

    pub(crate) fn seen(self) -> u64 {
        self.0 & SEEN
    }

    /// Whether all of these were seen.
    pub(crate) fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    pub(crate) fn with(self, bits: u64) -> State {
        State(self.0 | bits)
    }

    pub(crate) fn is_complete(self) -> bool {
        self.0 & COMPLETE != 0
    }

    pub(crate) fn completed(self) -> State {
        State(self.0 | COMPLETE)
    }
}

/// The words of a group of cores, or of all groups.
pub(crate) struct Words {
    /// Atomic.
    state: AtomicU64,
    /// Atomic, a hint: who has reported by himself, in this round in the lower half, in the one before in the upper half.
    diligent: AtomicU32,
}

impl Words {
    pub(crate) fn new(state: State) -> Words {
        Words { state: AtomicU64::new(state.0), diligent: AtomicU32::new(0) }
    }

    pub(crate) fn load(&self, order: Ordering) -> State {
        State(self.state.load(order))
    }

    /// What there is, by an exchange that changes nothing: one that changes it later has read from it.
    pub(crate) fn read_in_order(&self, order: Ordering) -> State {
        State(self.state.fetch_or(0, order))
    }

    /// Adds bits in whatever round; returns what there was before. Begins with an exchange, be the guess right or wrong: for a
    /// look before, the line would come here twice, as it would for an addition of bits, which looks first on x86.
    pub(crate) fn see(&self, guess: State, bits: u64, order: Ordering) -> State {
        let mut state = guess;
        loop {
            match self.exchange(state, state.with(bits), order) {
                Ok(()) => return state,
                Err(seen) if seen.has(bits) => return seen,
                Err(seen) => state = seen,
            }
        }
    }

    pub(crate) fn exchange(&self, from: State, to: State, order: Ordering) -> Result<(), State> {
        self.state.compare_exchange(from.0, to.0, order, Ordering::Acquire).map(drop).map_err(State)
    }

    /// Notes that this many report by themselves.
    pub(crate) fn note_diligent(&self, bits: u64) {
        let noted = self.diligent.load(Ordering::Relaxed);
        if u64::from(noted) & bits != bits {
            self.diligent.store(noted | bits as u32, Ordering::Relaxed);
        }
    }

    /// Who has reported by himself in the round before.
    pub(crate) fn diligent_before(&self) -> u64 {
        u64::from(self.diligent.load(Ordering::Relaxed) >> MOST_IN_WORD)
    }

    /// A round begins.
    pub(crate) fn begin_diligence(&self) {
        self.diligent.store(self.diligent.load(Ordering::Relaxed) << MOST_IN_WORD, Ordering::Relaxed);
    }
}
