//! One operation on several words: all of them change at one moment, if each is still what it was.
//!
//! ```text
//! begin; fence; record                      core's word: (sequence + 1, undecided)
//! each word: old -> mark                    another value there: abort, marks -> old; another's mark: settle it first
//! core's word: undecided -> committed       fails if somebody revoked: marks -> old
//! each word: mark -> new                    or somebody who needed the word was quicker
//! ```
//!
//! **Invariant.** From its mark to the decision a word has its old value, since only the owner decides, and only one
//! that has aborted the operation replaces a mark before. So the decision is a compare-and-swap of all words at one
//! moment. Marks never recur: the owner places them, all others replace them, and their tag counts operations.
//!
//! **Readers** of a mark see the old value until the decision, and then the new one ([`Domain::value`]). They write nothing and
//! wait for no one. **Writers** need the word itself ([`Domain::settle`]): they replace the mark of a decided operation
//! by what it means; that of an undecided one they wait for, a bounded number of pauses, and then revoke it. Of two
//! operations the one that was revoked more often goes first and waits less, so that none is revoked forever.
//!
//! **Cost**: 2k + 1 compare-and-swaps for k words, on the words and on the core's own line.

use commit::{Look, Marked, Precedence};
use sync::atomic::{Ordering, fence};
use sync::{Spin, Wait, WaitReason};

use crate::domain::{Domain, Here};
use crate::link::Link;
use crate::list_link::{ListLink, leave_place};
use crate::record::{Place, Record};
use crate::word::{MOST_WORDS, Mark, Word};

/// Pauses at a mark of an operation that goes second, and of one that goes first, before it is revoked.
const PATIENCE: [u32; 2] = if cfg!(any(loom, shuttle)) { [0, 1] } else { [5, 100] };

/// A word, what it must be, and what it becomes; the same if it is only asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'g> {
    pub(crate) link: &'g Link,
    pub(crate) old: Word,
    pub(crate) new: Word,
    /// The link of an item whose place ends by this change of its `next`.
    pub(crate) leaving: Option<&'g ListLink>,
}

impl<'g> Change<'g> {
    #[inline]
    pub(crate) fn new(link: &'g Link, old: Word, new: Word) -> Change<'g> {
        Change { link, old, new, leaving: None }
    }

    /// A word that must be this.
    #[inline]
    pub(crate) fn asked(link: &'g Link, word: Word) -> Change<'g> {
        Change::new(link, word, word)
    }

    /// An item of a doubly linked list leaves its place.
    #[inline]
    pub(crate) fn leaving(link: &'g ListLink, old: Word, new: Word) -> Change<'g> {
        Change { link: &link.next, old, new, leaving: Some(link) }
    }

    /// Once it is marked: whether the item that leaves has not left since, and come back. The word is the same then, but the place
    /// is another.
    #[inline]
    pub(crate) fn is_same_stay(&self, place: &Place) -> bool {
        self.leaving.is_none_or(|leaving| leaving.version() == place.version())
    }
}

/// Why nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchanged {
    /// A word is no longer what it was: look again.
    Other,
    /// Somebody needed one of the words: try again, with precedence.
    Revoked,
}

/// How often an operation was revoked: who was more often goes first.
#[derive(Clone, Copy, Default)]
pub(crate) struct Attempts(u64);

impl Attempts {
    /// After this came of it.
    pub(crate) fn note(&mut self, unchanged: Unchanged) {
        self.0 += u64::from(unchanged == Unchanged::Revoked);
    }

    fn precedence(self) -> Precedence {
        Precedence(u64::MAX - self.0)
    }
}

/// How words are looked at.
pub trait View {
    /// What a word is.
    fn read(&self, link: &Link) -> Word;

    /// What stands there, a mark as it is.
    fn peek(&self, link: &Link) -> Word;

    /// Whether what was read before is known not to hold any more, so that looking again may lead nowhere.
    fn is_stale(&self) -> bool;
}

/// As they are.
impl View for Domain {
    #[inline]
    fn read(&self, link: &Link) -> Word {
        self.value(link)
    }

    #[inline(always)]
    fn peek(&self, link: &Link) -> Word {
        link.load()
    }

    #[inline(always)]
    fn is_stale(&self) -> bool {
        false
    }
}

impl Domain {
    /// What a word is at this moment, no matter who is about to change it.
    #[inline]
    pub(crate) fn value(&self, link: &Link) -> Word {
        let seen = link.load();
        if seen.is_mark() { self.read_marked(link, seen).0 } else { seen }
    }

    /// What follows at this moment after an item, if it stands where it had this version.
    pub(crate) fn next_at(&self, link: &ListLink, version: u64) -> Option<Word> {
        let (word, told) = self.meaning(&link.next, link.next.load());
        // Read after the word: it has stood since the version was read first.
        let now = told.unwrap_or_else(|| link.version());
        (now == version || sync::mutant::planted("olf: no version")).then_some(word)
    }

    /// What follows after an item, and the version of its place, each at a moment of its own.
    #[cold]
    #[inline(never)]
    pub(crate) fn next_and_version(&self, link: &ListLink) -> (Word, u64) {
        let (word, told) = self.meaning(&link.next, link.next.load());
        // The one that has decided may have stopped before it has moved the version on.
        let told = told.filter(|_| !sync::mutant::planted("olf: a version is read beside its mark"));
        (word, told.unwrap_or_else(|| link.version()))
    }

    fn meaning(&self, link: &Link, seen: Word) -> (Word, Option<u64>) {
        if seen.is_mark() { self.read_marked(link, seen) } else { (seen, None) }
    }

    /// What a word is that held a mark; and which version goes with it, if an item has left its place by that operation.
    #[cold]
    fn read_marked(&self, link: &Link, mut seen: Word) -> (Word, Option<u64>) {
        while let Some(mark) = seen.as_mark() {
            if let Some(record) = self.record_of(mark) {
                let (old, new, version) = record.read(mark.place);
                // Acquire: the look comes after the record was read. Pairs with the fence in `begin`: who has read what
                // belongs to a later operation finds its sequence number, too.
                if !sync::mutant::planted("olf: no fence after the record is read") {
                    fence(Ordering::Acquire);
                }
                match self.look(mark) {
                    Look::Committed => return (new, (version != 0).then_some(version + 1)),
                    _ if sync::mutant::planted("olf: a mark is taken as new") => return (new, None),
                    Look::Undecided | Look::Aborted => return (old, None),
                    Look::Over if sync::mutant::planted("olf: the record is not checked again") => return (new, None),
                    Look::Over => {}
                }
            }
            seen = link.load();
        }
        (seen, None)
    }

    /// Where the words of a mark's operation are written down.
    #[inline]
    fn record_of(&self, mark: Mark) -> Option<&Record> {
        #[cfg(feature = "alloc")]
        if mark.is_of_another {
            return self.another.as_ref()?.record(mark.tag);
        }
        mark.tag.core().map(|core| self.records.of(core))
    }

    /// What a reader learns of a mark's operation. It waits for no one, but for another store's that insists.
    #[inline]
    fn look(&self, mark: Mark) -> Look {
        #[cfg(feature = "alloc")]
        if let Some(another) = self.another.as_ref().filter(|_| mark.is_of_another) {
            return another.observe(mark.tag);
        }
        self.decisions().look(mark.tag)
    }

    /// What a word is, of a list that no one else has any more: marks are replaced.
    pub(crate) fn value_at_the_end(&self, link: &Link) -> Word {
        loop {
            let seen = link.load();
            if !seen.is_mark() {
                return seen;
            }
            self.settle(link, seen, None);
        }
    }

    /// Replaces a mark by what it means. Its operation is revoked if it is not decided after a while.
    #[cold]
    pub(crate) fn settle(&self, link: &Link, mark: Word, own: Option<&Marked<'_>>) {
        let Some(Mark { tag, place, is_of_another }) = mark.as_mark() else { return };
        if is_of_another {
            #[cfg(feature = "alloc")]
            if let Some(another) = &self.another {
                another.wait(link, mark);
            }
            return;
        }
        let Some(core) = tag.core() else { return };
        let decisions = self.decisions();
        let goes_first =
            !sync::mutant::planted("olf: no precedence") && own.is_none_or(|own| decisions.goes_before(own, tag));
        let mut patience = PATIENCE[usize::from(!goes_first)];
        let mut round = 0;
        let value = loop {
            let (old, new, version) = self.records.of(core).read(place);
            // As in `read_marked`: what was read is of this operation, unless it is over.
            fence(Ordering::Acquire);
            match decisions.look(tag) {
                Look::Committed => {
                    leave_place(link, version);
                    break new;
                }
                Look::Aborted => break old,
                Look::Over => return,
                Look::Undecided if sync::mutant::planted("olf: marks are replaced without revoking") => break old,
                Look::Undecided if patience == 0 => decisions.revoke(tag),
                Look::Undecided => {
                    Spin.wait(WaitReason::Operation, round);
                    (patience, round) = (patience - 1, round + 1);
                }
            }
        };
        let _ = link.exchange(mark, value);
    }
}

impl Here<'_> {
    /// Makes all changes at one moment, or none. The words are different ones.
    ///
    /// # Errors
    /// [`Unchanged`] says why there is none.
    #[inline]
    pub(crate) fn change(&self, changes: &[Change<'_>], attempts: Attempts) -> Result<(), Unchanged> {
        debug_assert!(changes.len() <= MOST_WORDS);
        self.domain.claims.wait(self.claimant(), self.domain.host);
        let operation = self.begin(changes, attempts);
        let marks = || (0..MOST_WORDS).map(|place| Word::mark(operation.tag(), place));
        let places = self.record.places();
        for ((change, mark), place) in changes.iter().zip(marks()).zip(places) {
            if let Err(unchanged) = self.place(&operation, change, mark, place) {
                operation.abort();
                undo(&operation, changes);
                return Err(unchanged);
            }
        }
        if operation.commit().is_err() {
            undo(&operation, changes);
            return Err(Unchanged::Revoked);
        }
        for ((change, mark), place) in changes.iter().zip(marks()).zip(places) {
            if sync::mutant::planted("olf: an operation ends without its tag") {
                let _ = change.link.exchange(change.link.load(), change.new);
                continue;
            }
            if let Some(leaving) = change.leaving {
                leaving.leave(place.version());
            }
            // Who needed the word was quicker, or the mark is still there.
            let _ = change.link.exchange(mark, change.new);
        }
        after_changes(self.domain, changes);
        Ok(())
    }

    #[inline]
    fn begin(&self, changes: &[Change<'_>], attempts: Attempts) -> Marked<'_> {
        let operation = self.domain.decisions().begin_marked(&self.core, attempts.precedence());
        if !sync::mutant::planted("olf: no fence before the record") {
            // Release: one that reads the record as it is from here on finds the new sequence number, too. Pairs with
            // the fence in `read_marked`.
            fence(Ordering::Release);
        }
        for (change, place) in changes.iter().zip(self.record.places()) {
            place.write(change.old, change.new, change.leaving.map_or(0, ListLink::version));
        }
        operation
    }

    #[inline]
    fn place(&self, operation: &Marked<'_>, change: &Change<'_>, mark: Word, place: &Place) -> Result<(), Unchanged> {
        loop {
            match change.link.exchange(change.old, mark) {
                Ok(()) => break,
                Err(seen) if seen.is_mark() => self.domain.settle(change.link, seen, Some(operation)),
                Err(_) => return Err(Unchanged::Other),
            }
        }
        if change.is_same_stay(place) { Ok(()) } else { Err(Unchanged::Other) }
    }

    /// Changes one word, which is old by itself: no mark, no record.
    #[inline]
    pub(crate) fn swap(&self, change: &Change<'_>) -> Result<(), Unchanged> {
        self.domain.claims.wait(self.claimant(), self.domain.host);
        let _single = self.domain.decisions().begin_single(&self.core);
        loop {
            match change.link.exchange(change.old, change.new) {
                Ok(()) => {
                    after_changes(self.domain, core::slice::from_ref(change));
                    return Ok(());
                }
                Err(seen) if seen.is_mark() => self.domain.settle(change.link, seen, None),
                Err(_) => return Err(Unchanged::Other),
            }
        }
    }
}

#[cold]
fn undo(operation: &Marked<'_>, changes: &[Change<'_>]) {
    for (place, change) in changes.iter().enumerate() {
        // Who needed the word was quicker, or the mark is still there.
        let _ = change.link.exchange(Word::mark(operation.tag(), place), change.old);
    }
}

/// What the caller does next comes after its change in the order in which all see both: so says the standard of
/// sequentially consistent accesses. loom takes them for acquire and release, and needs a fence. And who waits for such a change is
/// woken.
#[inline(always)]
pub(crate) fn after_changes(domain: &Domain, changes: &[Change<'_>]) {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
    domain.sleepers.wake(domain.host, changes.iter().map(|change| change.link));
}
