//! Which cores hold parts of an object in caches of their own: one that wants all parts then asks those, and not all
//! cores.
//!
//! **Idea.** Where a core caches its part of an object, only a look at all cores finds every part. Nothing cheaper can be had
//! of an object that no one has asked for yet: two cores that change it for the first time would meet in the note. So
//! an object begins as *anyone's*. Once many cores were looked at for it in vain, maintenance makes it a *list*: from
//! then on a core notes itself there before its cache gets a part, and strikes itself off once it has none. The
//! object's own line is written then, by a first change and in maintenance; a core whose cache goes on holding the
//! object writes nothing.
//!
//! ```text
//! anyone's   ask all cores                              asked, and few hold it → filling (round)
//! filling    ask all cores; cores note themselves       every core was maintained since → list
//! list       ask those on it                            one more than it has room for → anyone's
//! ```
//!
//! **Why a list is whole.** A part that came to a cache without a note came before its core saw that the list is filled. A core
//! empties its cache, or notes what it leaves there, in each maintenance: once each core was maintained since, none is left.
//!
//! **Reading** takes the word before the parts and looks at it again after them. Every note moves the word's version,
//! so an equal word says that the same cores had parts all the time.
//!
//! **Death of a process** leaves a core on the list that has no part: it is asked in vain.

use sync::atomic::{AtomicU64, Ordering};

use crate::core_index::CoreIndex;

/// Embedded in the object, or next to it. One word.
#[derive(Debug)]
pub struct Holders(
    /// Atomic: state, number of cores on the list, the cores, round in which filling began, version.
    AtomicU64,
);

/// What [`Holders::seen`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding(u64);

const STATE: u64 = 3;
const ANYONE: u64 = 0;
const FILLING: u64 = 1;
const LIST: u64 = 2;
const COUNT_SHIFT: u32 = 2;
const CORES_SHIFT: u32 = 4;
const CORE_BITS: u32 = 8;
const _: () = assert!(crate::MAX_CORES == 1 << CORE_BITS);
const ROUND_SHIFT: u32 = CORES_SHIFT + CORE_BITS * Holders::MOST as u32;
const ROUND_MASK: u64 = 31;
/// What one change of the word adds to it. One that looks twice would have to sleep through as many changes as there
/// are versions, 2 to the power of 31, and through neither more nor less.
const VERSION: u64 = 1 << (ROUND_SHIFT + 5);
/// This many rounds after filling began each core was maintained since. Two for the report of the one that began it,
/// which comes after it, and may be late; two more, and each core has reported what it did before; one for what a core
/// leaves in its cache at its first maintenance, to note it at the second; and one to spare.
const GRACE: u64 = 6;

impl Holders {
    /// This many cores have room on the list.
    pub const MOST: usize = 3;
    /// No list is worth its while where no more cores than this can be asked.
    pub const FEW_CORES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };

    /// Of an object of which any core may have a part.
    pub fn new() -> Holders {
        Holders(AtomicU64::new(ANYONE))
    }

    /// Of an object of which no core has a part, with an empty list: each core notes itself from the start.
    pub fn listed() -> Holders {
        Holders(AtomicU64::new(LIST))
    }

    /// A core says that its cache is about to have a part. Tells whether that stands on a list, from which it is to be struck.
    #[inline]
    pub fn note(&self, core: CoreIndex) -> bool {
        // A core that was maintained since the list is filled sees that it is.
        let word = self.0.load(Ordering::Relaxed);
        word & STATE != ANYONE && self.note_listed(core, word)
    }

    #[cold]
    fn note_listed(&self, core: CoreIndex, mut word: u64) -> bool {
        if sync::mutant::planted("percpu: a holder is not noted") {
            return false;
        }
        loop {
            let holding = Holding(word);
            if word & STATE == ANYONE || holding.lists(core) {
                return word & STATE != ANYONE;
            }
            let count = holding.count();
            let new = if count == Holders::MOST {
                ANYONE
            } else {
                let place = CORES_SHIFT + CORE_BITS * count as u32;
                (word & (VERSION - 1)) + (1 << COUNT_SHIFT) + ((core.get() as u64) << place)
            };
            match self.change(word, new) {
                Ok(()) => return new != ANYONE,
                Err(seen) => word = seen,
            }
        }
    }

    /// A core says that its cache has no part any more.
    #[cold]
    pub fn strike(&self, core: CoreIndex) {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & STATE != ANYONE && Holding(word).lists(core) {
            let left = Holding(word).cores().filter(|listed| *listed != core);
            let cores = left.fold((0, 0), |(count, cores), listed| {
                (count + 1, cores | (listed.get() as u64) << (CORES_SHIFT + CORE_BITS * count))
            });
            let kept = word & (STATE | ROUND_MASK << ROUND_SHIFT);
            match self.change(word, kept | u64::from(cores.0) << COUNT_SHIFT | cores.1) {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// Part of maintenance, where few cores were found to have a part: begins to fill the list, or says that it is whole.
    /// `round` is one of the rounds in which each core reports that it was maintained, as they are now; the caller reports
    /// after this, and has reported before.
    pub fn narrow(&self, round: u64) {
        let word = self.0.load(Ordering::Relaxed);
        let new = match word & STATE {
            ANYONE => FILLING | (round & ROUND_MASK) << ROUND_SHIFT,
            FILLING if Holding(word).is_whole(round) => word & (VERSION - 1) & !STATE | LIST,
            _ => return,
        };
        // If somebody else has changed it there will be another time.
        _ = self.change(word, new);
    }

    /// Which cores are to be asked, before that is done.
    #[inline]
    pub fn seen(&self) -> Holding {
        // Acquire: what a core has given to the object before it was struck off is seen there.
        Holding(self.0.load(Ordering::Acquire))
    }

    /// Whether the same cores were to be asked all the time, after a fence after the last part was read.
    #[inline]
    pub fn is_still(&self, holding: Holding) -> bool {
        self.0.load(Ordering::Relaxed) == holding.0
    }

    /// Release: parts were given to the object before a core is struck off. Acquire: a note comes before the part.
    fn change(&self, word: u64, new: u64) -> Result<(), u64> {
        let new = (word & !(VERSION - 1)).wrapping_add(VERSION) | new;
        self.0.compare_exchange(word, new, Ordering::AcqRel, Ordering::Relaxed).map(drop)
    }
}

impl Default for Holders {
    fn default() -> Holders {
        Holders::new()
    }
}

impl Holding {
    /// Whether only the cores of the list are to be asked, and not all.
    #[inline]
    pub fn is_list(self) -> bool {
        self.0 & STATE == LIST
    }

    /// The cores of the list.
    #[inline]
    pub fn cores(self) -> impl Iterator<Item = CoreIndex> {
        let core_at = move |place| (self.0 >> (CORES_SHIFT + CORE_BITS * place)) & ((1 << CORE_BITS) - 1);
        (0..self.count() as u32).map(move |place| CoreIndex(core_at(place) as u16))
    }

    fn count(self) -> usize {
        (self.0 >> COUNT_SHIFT & 3) as usize
    }

    fn lists(self, core: CoreIndex) -> bool {
        self.cores().any(|listed| listed == core)
    }

    /// Whether each core was maintained since filling began. Rounds are compared by their last bits: a list may wait for longer
    /// than it has to, and is never whole too early.
    fn is_whole(self, round: u64) -> bool {
        let passed = round.wrapping_sub(self.0 >> ROUND_SHIFT) & ROUND_MASK;
        let is_early = sync::mutant::planted("percpu: a list is whole at once");
        is_early || (GRACE..ROUND_MASK - GRACE).contains(&passed)
    }
}
