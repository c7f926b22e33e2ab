//! What a closure has seen and wants to change: at most eight words, looked at through the log itself.
//!
//! Most words that a closure reads are not in its log. So the log keeps a set of bits, one for each link that it has, by the
//! link's address: a word whose bit is missing is not looked for.

use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::slice;

use crate::domain::{Domain, Guard};
use crate::header::Header;
use crate::link::Link;
use crate::operation::{Change, View};
use crate::sleepers::bit;
use crate::word::{MOST_WORDS, Word};

/// The operation needs more than eight words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The words of an operation that is being put together. Nothing is marked yet.
#[derive(Clone, Copy)]
pub(crate) struct Log<'t> {
    // The first `count` of both are there.
    changes: [MaybeUninit<Change<'t>>; MOST_WORDS],
    /// Of which item the link is; none for heads of lists.
    items: [MaybeUninit<Option<NonNull<Header>>>; MOST_WORDS],
    count: usize,
    /// The bits of the links.
    bits: u64,
}

/// What a log comes to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Whether a word changes.
    pub(crate) changes: bool,
    /// Whether an item comes to stand in a list by a link, or does no longer.
    pub(crate) memberships: bool,
}

impl<'t> Log<'t> {
    /// Without a word.
    #[inline]
    pub(crate) fn new() -> Log<'t> {
        Log {
            changes: [const { MaybeUninit::uninit() }; MOST_WORDS],
            items: [const { MaybeUninit::uninit() }; MOST_WORDS],
            count: 0,
            bits: 0,
        }
    }

    /// All words, with what they shall become.
    #[inline]
    pub(crate) fn changes(&self) -> &[Change<'t>] {
        // SAFETY: this many were written, and there are no more places.
        unsafe { slice::from_raw_parts(self.changes.as_ptr().cast(), self.count) }
    }

    #[inline]
    fn changes_mut(&mut self) -> &mut [Change<'t>] {
        // SAFETY: this many were written, and there are no more places.
        unsafe { slice::from_raw_parts_mut(self.changes.as_mut_ptr().cast(), self.count) }
    }

    #[inline]
    fn items(&self) -> &[Option<NonNull<Header>>] {
        // SAFETY: this many were written, and there are no more places.
        unsafe { slice::from_raw_parts(self.items.as_ptr().cast(), self.count) }
    }

    /// All words, to be asked only.
    pub(crate) fn asked(&self) -> Log<'t> {
        let mut asked = *self;
        for change in asked.changes_mut() {
            *change = Change::asked(change.link, change.old);
        }
        asked
    }

    /// Goes back to what the log was, but for the words that were looked at since.
    pub(crate) fn go_back(&mut self, before: &Log<'t>) {
        for (place, change) in self.changes_mut().iter_mut().enumerate() {
            *change = before.changes().get(place).copied().unwrap_or(Change::asked(change.link, change.old));
        }
    }

    /// What it comes to.
    #[inline]
    pub(crate) fn outcome(&self) -> Outcome {
        self.changes().iter().fold(Outcome::default(), |outcome, change| Outcome {
            changes: outcome.changes | (change.old != change.new),
            memberships: outcome.memberships | is_membership(change),
        })
    }

    /// The bits of all links.
    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }

    #[inline(always)]
    fn place(&self, link: &Link) -> Option<usize> {
        if self.bits & bit(link) == 0 { None } else { self.place_among_all(link) }
    }

    #[inline]
    fn place_among_all(&self, link: &Link) -> Option<usize> {
        self.changes().iter().position(|change| ptr::eq(change.link, link))
    }

    /// Whether this many of these words can still be noted.
    #[inline]
    pub(crate) fn expect_room<const N: usize>(&self, links: [&Link; N]) -> Result<(), Full> {
        if self.count + N <= MOST_WORDS {
            return Ok(());
        }
        let more = links.iter().filter(|link| self.place(link).is_none()).count();
        if self.count + more > MOST_WORDS { Err(Full) } else { Ok(()) }
    }

    /// Notes a change of a word. There is room for it.
    #[inline]
    pub(crate) fn note(&mut self, change: &Change<'t>, item: Option<NonNull<Header>>) {
        let Some(place) = self.place(change.link) else {
            self.changes[self.count].write(*change);
            self.items[self.count].write(item);
            self.count += 1;
            self.bits |= bit(change.link);
            return;
        };
        let noted = &mut self.changes_mut()[place];
        noted.new = change.new;
        noted.leaving = change.leaving.or(noted.leaving);
        if item.is_some() {
            self.items[place].write(item);
        }
    }

    /// The items that come to stand in a list by a link, or do no longer.
    pub(crate) fn memberships(&self, comes: bool) -> impl Iterator<Item = NonNull<Header>> {
        let changes = self.changes().iter().zip(self.items());
        let matching = changes.filter(move |(change, _)| is_membership(change) && change.new.is_listed() == comes);
        matching.filter_map(|(_, item)| *item)
    }

    /// Counts for the lists in which items come to stand. Who finds an item in its new list may end that list's count: it is
    /// there before. False if an item has no count any more; then none was given.
    pub(crate) fn give_counts(&self, guard: &Guard<'_>) -> bool {
        // SAFETY: the items are guarded.
        let of = |item: NonNull<Header>| unsafe { item.as_ref() };
        let comes = || self.memberships(true);
        let counted = comes().take_while(|item| of(*item).increment_if_any()).count();
        comes().take(counted).for_each(|item| of(item).set_listed(true));
        let are_all = counted == comes().count();
        for item in comes().take(if are_all { 0 } else { counted }) {
            // SAFETY: given above. The guard is of the domain.
            unsafe { guard.end_count(item) };
        }
        are_all
    }

    /// Ends the counts of those lists that have lost items, or, if nothing has happened, those that were given.
    pub(crate) fn end_counts(&self, guard: &Guard<'_>, has_happened: bool) {
        for item in self.memberships(!has_happened) {
            // SAFETY: counts of ours: those that no list got, or that lists had. The guard is of the domain.
            unsafe { guard.end_count(item) };
        }
    }
}

#[inline]
fn is_membership(change: &Change<'_>) -> bool {
    change.old.is_listed() != change.new.is_listed()
}

/// Words as they are once the log has come true.
pub(crate) struct Through<'v, 't> {
    pub(crate) domain: &'v Domain,
    pub(crate) log: &'v Log<'t>,
}

impl View for Through<'_, '_> {
    #[inline]
    fn read(&self, link: &Link) -> Word {
        match self.log.place(link) {
            Some(place) => self.log.changes()[place].new,
            None => self.domain.value(link),
        }
    }

    #[inline]
    fn peek(&self, link: &Link) -> Word {
        match self.log.place(link) {
            Some(place) => self.log.changes()[place].new,
            None => link.load(),
        }
    }

    fn is_stale(&self) -> bool {
        self.log.changes().iter().any(|change| self.domain.value(change.link) != change.old)
    }
}
