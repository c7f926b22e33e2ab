//! Operations that carry a mark on all that they rest on, and that writers revoke.
//!
//! Nothing is locked: a mark is put by compare and exchange, and a thread that finds it replaces it by what it means.
//! What is only asked is marked, too, so that readers need no revocation: up to the decision all is as it was before. A
//! thread that stops in the middle stops no other, since writers revoke what they meet and go on.

use percpu::Core;
use sync::atomic::Ordering;

use crate::{ABORTED, COMMITTED, CORE_BITS, Decisions, MARKED, Precedence, Revoked, STATE_BITS, STATE_MASK, Tag, Word};

/// What is known of a marked operation. Learning it revokes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It has not happened up to now.
    Undecided,
    /// It has happened.
    Committed,
    /// It never happens.
    Aborted,
    /// It ended, and its marks are gone: look at the object again.
    Over,
}

/// A marked operation of the caller's core that is not decided yet.
pub struct Marked<'d> {
    word: &'d Word,
    tag: Tag,
}

impl Decisions {
    /// Starts an operation that marks all that it rests on. The marks of the core's operation before have been replaced.
    #[inline]
    pub fn begin_marked<'d>(&'d self, core: &'d Core<'_>, precedence: Precedence) -> Marked<'d> {
        let word = self.words.get(core);
        let sequence = (word.state.load(Ordering::Relaxed) >> STATE_BITS) + 1;
        word.precedence.store(precedence.0, Ordering::Relaxed);
        // Release pairs with the acquire in `look`: who finds the operation over also finds the marks of the one before
        // replaced.
        word.state.store(sequence << STATE_BITS | MARKED, Ordering::Release);
        Marked { word, tag: Tag(sequence << CORE_BITS | core.index().get() as u64) }
    }

    /// What has come of a marked operation.
    #[inline]
    pub fn look(&self, tag: Tag) -> Look {
        let Some(core) = tag.core() else {
            return Look::Over;
        };
        // SeqCst: a look that finds it undecided comes before its decision in the order of all such accesses, whatever
        // the looker has done before comes before that, too. Acquire pairs with the releases in `begin_marked` and
        // `commit`.
        let seen = self.words.of(core).state.load(Ordering::SeqCst);
        if seen >> STATE_BITS != tag.sequence() {
            return Look::Over;
        }
        match seen & STATE_MASK {
            COMMITTED => Look::Committed,
            ABORTED => Look::Aborted,
            _ => Look::Undecided,
        }
    }

    /// Makes sure that a marked operation never happens, unless it is decided.
    pub fn revoke(&self, tag: Tag) {
        let Some(core) = tag.core() else { return };
        let (undecided, aborted) = (tag.sequence() << STATE_BITS | MARKED, tag.sequence() << STATE_BITS | ABORTED);
        // What fails is decided, or over. SeqCst as in `look`.
        let _ = self.words.of(core).state.compare_exchange(undecided, aborted, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Whether the operation of the caller's core goes before that of another one: by precedence, of equal ones by core.
    #[inline]
    pub fn goes_before(&self, own: &Marked<'_>, other: Tag) -> bool {
        let rank = |tag: Tag| {
            let core = tag.core()?;
            Some((self.words.of(core).precedence.load(Ordering::Relaxed), core.get()))
        };
        rank(own.tag) < rank(other)
    }
}

impl Marked<'_> {
    /// The tag to mark objects with.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Makes the operation happen. No fence follows: a caller that needs one replaces a mark by a sequentially
    /// consistent swap.
    ///
    /// # Errors
    /// [`Revoked`] if somebody revoked it: it never happens.
    #[inline]
    pub fn commit(&self) -> Result<(), Revoked> {
        let sequence = self.tag.sequence() << STATE_BITS;
        if sync::mutant::planted("commit: a revoked operation commits") {
            self.word.state.store(sequence | COMMITTED, Ordering::SeqCst);
            return Ok(());
        }
        // Release pairs with the acquire in `look`: who sees the decision sees all marks. SeqCst as there.
        self.word
            .state
            .compare_exchange(sequence | MARKED, sequence | COMMITTED, Ordering::SeqCst, Ordering::Relaxed)
            .map(|_| ())
            .map_err(|_| Revoked)
    }

    /// Makes sure that the operation never happens.
    #[inline]
    pub fn abort(&self) {
        // No one else writes anything but this. Release as in `commit`.
        self.word.state.store(self.tag.sequence() << STATE_BITS | ABORTED, Ordering::Release);
    }
}
