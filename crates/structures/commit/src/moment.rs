//! Whether anything has happened between two looks at a core's word.
//!
//! Every operation moves its core's word on when it begins and when it is decided. So who finds the words of all cores as they
//! were knows that none was decided in the meantime, and that what it has read in between was so at one moment.
//!
//! **Single changes.** A change of one word needs no decision: it happens by its own compare and exchange. Its core's word says
//! that such a change is under way ([`Decisions::begin_single`]). If it is at both looks, the change may have happened in between.

use percpu::{Core, CoreIndex};
use sync::atomic::Ordering;

use crate::{COMMITTED, Decisions, SINGLE, STATE_BITS, STATE_MASK, Word};

/// What a core's word was at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(u64);

impl Moment {
    /// Before any look.
    pub const NONE: Moment = Moment(u64::MAX);

    /// Whether a single change was under way.
    pub fn is_single(self) -> bool {
        self.0 & STATE_MASK == SINGLE
    }
}

/// A change of one word that is under way; over when dropped.
pub struct Single<'d> {
    word: &'d Word,
    sequence: u64,
}

impl Decisions {
    /// Looks at a core's word.
    #[inline]
    pub fn moment(&self, core: CoreIndex) -> Moment {
        // SeqCst, as `look`. Acquire pairs with the releases of decisions and of `Single`: who finds one over finds what it changed.
        Moment(self.words.of(core).state.load(Ordering::SeqCst))
    }

    /// Says that the caller's core is about to change one word. The core has no other operation that is not decided.
    #[inline]
    pub fn begin_single<'d>(&'d self, core: &'d Core<'_>) -> Single<'d> {
        let word = self.words.get(core);
        let sequence = (word.state.load(Ordering::Relaxed) >> STATE_BITS) + 1;
        // Release: as in `begin_marked`. The change that follows releases this: who sees it finds the word moved on.
        word.state.store(sequence << STATE_BITS | SINGLE, Ordering::Release);
        Single { word, sequence }
    }
}

impl Drop for Single<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the acquire in `moment`.
        self.word.state.store(self.sequence << STATE_BITS | COMMITTED, Ordering::Release);
    }
}
