//! What a closure has seen and wants to change: at most eight words, looked at through the log itself.

use core::ptr::{self, NonNull};

use crate::domain::Domain;
use crate::header::Header;
use crate::link::Link;
use crate::operation::{Change, View};
use crate::word::{MOST_WORDS, Word};

/// The operation needs more than eight words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The words of an operation that is being put together. Nothing is marked yet.
#[derive(Clone, Copy)]
pub(crate) struct Log<'t> {
    changes: [Change<'t>; MOST_WORDS],
    /// Of which item the link is; none for heads of lists.
    items: [Option<NonNull<Header>>; MOST_WORDS],
    count: usize,
}

impl<'t> Log<'t> {
    /// Without a word; `link` is any.
    pub(crate) fn new(link: &'t Link) -> Log<'t> {
        let nothing = Change::asked(link, Word::NOWHERE);
        Log { changes: [nothing; MOST_WORDS], items: [None; MOST_WORDS], count: 0 }
    }

    /// All words, with what they shall become.
    pub(crate) fn changes(&self) -> &[Change<'t>] {
        &self.changes[..self.count]
    }

    /// All words, to be asked only.
    pub(crate) fn asked(&self) -> Log<'t> {
        let mut asked = *self;
        for change in &mut asked.changes {
            change.new = change.old;
            change.leaving = None;
        }
        asked
    }

    /// Goes back to what the log was, but for the words that were looked at since.
    pub(crate) fn go_back(&mut self, before: &Log<'t>) {
        for (place, change) in self.changes.iter_mut().enumerate() {
            let is_older = place < before.count;
            change.new = if is_older { before.changes[place].new } else { change.old };
            change.leaving = if is_older { before.changes[place].leaving } else { None };
        }
    }

    fn place(&self, link: &Link) -> Option<usize> {
        self.changes().iter().position(|change| ptr::eq(change.link, link))
    }

    /// Whether so many of these words can still be noted.
    pub(crate) fn expect_room<const N: usize>(&self, links: [&Link; N]) -> Result<(), Full> {
        let more = links.iter().filter(|link| self.place(link).is_none()).count();
        if self.count + more > MOST_WORDS { Err(Full) } else { Ok(()) }
    }

    /// Notes a change of a word. There is room for it.
    pub(crate) fn note_change(&mut self, change: &Change<'t>, item: Option<NonNull<Header>>) {
        self.note(change.link, item, change.old, change.new);
        if change.leaving.is_some() {
            let place = self.place(change.link).expect("it was noted");
            self.changes[place].leaving = change.leaving;
        }
    }

    /// Notes that a word is `seen`, and becomes `new`. There is room for it.
    pub(crate) fn note(&mut self, link: &'t Link, item: Option<NonNull<Header>>, seen: Word, new: Word) {
        let place = self.place(link).unwrap_or_else(|| {
            self.changes[self.count] = Change::asked(link, seen);
            self.items[self.count] = item;
            self.count += 1;
            self.count - 1
        });
        self.changes[place].new = new;
        if item.is_some() {
            self.items[place] = item;
        }
    }

    /// The items that come to stand in a list by a link, or do no longer.
    pub(crate) fn memberships(&self, comes: bool) -> impl Iterator<Item = NonNull<Header>> {
        let changes = self.changes.iter().zip(&self.items).take(self.count);
        let matching = changes.filter(move |(change, _)| {
            change.old.is_listed() != change.new.is_listed() && change.new.is_listed() == comes
        });
        matching.filter_map(|(_, item)| *item)
    }
}

/// Words as they are once the log has come true.
pub(crate) struct Through<'v, 't> {
    pub(crate) domain: &'v Domain,
    pub(crate) log: &'v Log<'t>,
}

impl View for Through<'_, '_> {
    fn read(&self, link: &Link) -> Word {
        match self.log.place(link) {
            Some(place) => self.log.changes[place].new,
            None => self.domain.value(link),
        }
    }

    fn is_stale(&self) -> bool {
        self.log.changes().iter().any(|change| self.domain.value(change.link) != change.old)
    }
}
