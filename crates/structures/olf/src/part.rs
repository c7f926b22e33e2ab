//! Changes of lists that are part of another store's operation: they happen with it, or not at all.
//!
//! A part is what a closure would do, kept for later: the words that it has looked at, and what shall become of them. The
//! operation marks them when it is prepared ([`Part::mark`]), if all of them are still so; and replaces the marks
//! at its end ([`Part::unmark`]).

use core::fmt;

use commit::{Operation, Tag};

use crate::another::Another;
use crate::closure::Atomic;
use crate::domain::{Guard, Here};
use crate::link::Link;
use crate::list_link::ListLink;
use crate::log::Log;
use crate::operation::{Change, after_changes};
use crate::stop::Stop;
use crate::word::Word;

/// What it rests on is not so any more, or another store's operation is about to change it: make a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

impl fmt::Display for Stale {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("lists have changed since the part was made; make it again")
    }
}

impl core::error::Error for Stale {}

/// Changes of lists that wait for another store's operation: see [`Here::part`]. It guards the items, so no item of the domain
/// is freed before it is dropped.
pub struct Part<'p, 'd> {
    here: &'p Here<'d>,
    log: Log<'p>,
    /// The operation whose marks may stand.
    marked: Option<Tag>,
    // Last: the log leads to what it guards.
    guard: Guard<'p>,
}

impl<'d> Here<'d> {
    /// Runs a closure as [`Here::atomically`] does, but that nothing happens yet: what it wants is part of an operation of the
    /// domain's other store ([`Domain::together_with`](crate::Domain::together_with)). Closures made later do not see it before that has happened.
    /// An operation takes at most one part of a domain.
    ///
    /// # Errors
    /// What the closure returns, confirmed; [`Stop::Nested`] inside another closure of this thread.
    ///
    /// # Panics
    /// If the closure does; if the domain has no other store.
    pub fn part<'p, 'a: 'p, R, E: From<Stop>>(
        &'p self,
        mut closure: impl for<'t> FnMut(&mut Atomic<'t, 'a, 'd>) -> Result<R, E>,
    ) -> Result<(Part<'p, 'd>, R), E>
    where
        'd: 'a,
    {
        assert!(self.domain.another.is_some(), "{ALONE}");
        let _entered = self.enter_closure()?;
        let mut part = None;
        let outcome = self.repeat(self.domain.host, |attempts| {
            let guard = self.pin();
            // SAFETY: the guard lives as long as the log, in a part or here.
            let mut atomic = unsafe { Atomic::new(self, attempts) };
            let outcome = closure(&mut atomic);
            let attempt = atomic.confirm_attempt(outcome);
            // Who waits guards nothing.
            part = attempt.has_succeeded().then(|| Part { here: self, log: atomic.into_log(), marked: None, guard });
            attempt
        })?;
        Ok((part.expect("the last attempt has left one"), outcome))
    }
}

impl Part<'_, '_> {
    fn another(&self) -> &Another {
        self.here.domain.another.as_ref().expect(ALONE)
    }

    fn changes(&self, tag: Tag) -> impl Iterator<Item = (&Change<'_>, Word)> {
        let marks = (0..).map(move |place| Word::mark_of_another(tag, place));
        self.log.changes().iter().zip(marks)
    }

    /// Marks what it rests on under an operation that is firm: so it stays until [`Part::unmark`]. Waits for no operation of another
    /// store; those of the domain it revokes.
    ///
    /// # Errors
    /// [`Stale`]: nothing is marked.
    ///
    /// # Panics
    /// If the operation is not of the domain's other store, or has another part in it.
    pub fn mark(&mut self, operation: &Operation<'_>) -> Result<(), Stale> {
        let another = self.another();
        assert!(another.decides(operation), "expected an operation of the domain's other store, got one of a third");
        if !self.log.give_counts(&self.guard) {
            return Err(Stale);
        }
        let tag = operation.tag();
        if !another.begin(tag) {
            self.log.end_counts(&self.guard, false);
            panic!("an operation takes one part of a domain: let one closure do all of it");
        }
        self.marked = Some(tag);
        let record = self.another().record(tag).expect("of the store, as seen above");
        for (change, place) in self.log.changes().iter().zip(record.places()) {
            place.write(change.old, change.new, change.leaving.map_or(0, ListLink::version));
        }
        let is_marked = self
            .changes(tag)
            .zip(record.places())
            .all(|((change, mark), place)| self.place(change.link, change.old, mark) && change.is_same_stay(place));
        if !is_marked {
            self.unmark(false);
            return Err(Stale);
        }
        Ok(())
    }

    /// Places a mark where the word is still what it was.
    fn place(&self, link: &Link, old: Word, mark: Word) -> bool {
        loop {
            let Err(seen) = link.exchange(old, mark) else { return true };
            match seen.as_mark() {
                Some(met) if met.is_of_another && !self.another().has_happened(met.tag) => return false,
                Some(_) => self.here.domain.settle(link, seen, None),
                None => return false,
            }
        }
    }

    /// Replaces the marks by what they mean, once the operation is decided; or takes them back. Before its core begins another
    /// operation.
    pub fn unmark(&mut self, has_happened: bool) {
        let Some(tag) = self.marked.take() else { return };
        let record = self.another().record(tag).expect("it was marked");
        for ((change, mark), place) in self.changes(tag).zip(record.places()) {
            if let Some(leaving) = change.leaving.filter(|_| has_happened) {
                leaving.leave(place.version());
            }
            // Who needed the word was quicker, or the mark is still there.
            let _ = change.link.exchange(mark, if has_happened { change.new } else { change.old });
        }
        self.another().end(tag);
        self.log.end_counts(&self.guard, has_happened);
        if has_happened {
            after_changes(self.here.domain, self.log.changes());
        }
    }
}

impl Drop for Part<'_, '_> {
    /// After a panic in the middle of the operation, which then has not happened.
    fn drop(&mut self) {
        self.unmark(false);
    }
}

impl fmt::Debug for Part<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Part(of {} words)", self.log.changes().len())
    }
}

const ALONE: &str = "the domain has no other store; give it one by `Domain::together_with`";
