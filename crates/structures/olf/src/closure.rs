//! Any operations as one: a closure that looks, inserts and removes, and happens at one moment or not at all.
//!
//! **Idea.** The closure changes nothing: it keeps a log of the words that it has looked at and wants to change, and looks
//! through that. In the end one operation marks them all, those that were only asked as well, and decides. If one of them
//! has changed in the meantime the closure runs again.
//!
//! **Answers.** What a closure sees may have been true at different moments; then it runs again before anybody learns of
//! it. An error that it returns is confirmed in the same way: all words that it rests on are marked once, unchanged. While
//! it runs it learns that it has lost ([`Stop::Again`]) once its number of looks has doubled, so it cannot go round
//! forever between answers that were never true together, if it heeds its errors.
//!
//! **Counts.** The list's count of an item goes with it. Items that come to stand in a list get a count before the
//! decision, those that stand in one less lose theirs after it.

use core::cell::Cell;
use core::marker::PhantomData;

use commit::InClosure;
use sync::Wait;

use crate::domain::{Guard, Here};
use crate::field::{Keyed, LinkField};
use crate::find::{Collection, ItemOf, KeyOf, Place};
use crate::held::Held;
use crate::item::{Arc, Slot};
use crate::link::Link;
use crate::log::{Log, Outcome, Through};
use crate::operation::{Attempts, Change, Unchanged, View};
use crate::sleepers::Asleep;
use crate::stop::Stop;
use crate::word::Word;

/// What a closure makes its calls with. Lists live for `'a`, items as long as the closure runs.
pub struct Atomic<'t, 'a: 't, 'd: 'a> {
    pub(crate) here: &'t Here<'d>,
    pub(crate) log: Log<'t>,
    attempts: Attempts,
    looks: u64,
    has_lost: bool,
    waits: bool,
    _lists: PhantomData<&'a ()>,
}

impl<'d> Here<'d> {
    /// Runs a closure until it has happened at one moment: all that it looked at was so, and all that it changed changed.
    ///
    /// ```
    /// # struct Job { id: u64, link: olf::Link }
    /// # olf::links! { ById: Job { link: link, key: id as u64 } }
    /// let domain = olf::Domain::with(olf::Limits { threads: 1, lists: 2 })?;
    /// let here = domain.enter()?;
    /// let (waiting, running) = (olf::Sorted::<ById>::new(&domain)?, olf::Sorted::<ById>::new(&domain)?);
    /// waiting.insert(&here, olf::Arc::new(&domain, Job { id: 7, link: olf::Link::new() })).unwrap();
    ///
    /// here.atomically(|a| {
    ///     let job = a.remove(&waiting, &7)?;
    ///     a.insert(&running, job)
    /// })?;
    /// assert!(running.contains(&here, &7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What the closure returns, confirmed; [`Stop::Nested`] inside another closure of this thread.
    ///
    /// # Panics
    /// If the closure does: then nothing has happened.
    pub fn atomically<'a, R, E: From<Stop>>(
        &self,
        closure: impl for<'t> FnMut(&mut Atomic<'t, 'a, 'd>) -> Result<R, E>,
    ) -> Result<R, E>
    where
        'd: 'a,
    {
        self.atomically_with(self.domain.host, closure)
    }

    /// [`Here::atomically`] for closures that [retry](Atomic::retry): `wait` says how they spend their time, and not the
    /// domain's host.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn atomically_with<'a, R, E: From<Stop>>(
        &self,
        wait: &dyn Wait,
        closure: impl for<'t> FnMut(&mut Atomic<'t, 'a, 'd>) -> Result<R, E>,
    ) -> Result<R, E>
    where
        'd: 'a,
    {
        let _entered = self.enter_closure()?;
        self.run(wait, closure)
    }

    /// [`Here::atomically_with`], inside another closure, too: neither sees what the other is about to change.
    pub(crate) fn run<'a, R, E>(
        &self,
        wait: &dyn Wait,
        mut closure: impl for<'t> FnMut(&mut Atomic<'t, 'a, 'd>) -> Result<R, E>,
    ) -> Result<R, E>
    where
        'd: 'a,
    {
        self.repeat(wait, |attempts| {
            let guard = self.pin();
            // SAFETY: the guard outlives what the closure uses.
            let mut atomic = unsafe { Atomic::new(self, attempts) };
            let outcome = closure(&mut atomic);
            atomic.end_attempt(&guard, outcome)
        })
    }

    /// Runs attempts until one has happened.
    #[inline(always)]
    pub(crate) fn repeat<'h, R, E>(
        &'h self,
        wait: &dyn Wait,
        mut attempt: impl FnMut(Attempts) -> Attempt<'h, R, E>,
    ) -> Result<R, E> {
        let (mut attempts, mut round) = (Attempts::default(), 0);
        loop {
            let ended = attempt(attempts);
            attempts = ended.attempts;
            match ended.end {
                End::Waits(asleep) => {
                    asleep.sleep(wait, round);
                    round = round.saturating_add(1);
                }
                End::Happened(outcome) => return outcome,
                End::Lost => {}
            }
        }
    }

    /// Notes that a closure of this thread runs.
    pub(crate) fn enter_closure(&self) -> Result<Entered<'_>, Stop> {
        Entered::new(&self.in_closure).ok_or(Stop::Nested)
    }
}

/// How an attempt to run a closure has ended.
pub(crate) struct Attempt<'h, R, E> {
    attempts: Attempts,
    end: End<'h, R, E>,
}

enum End<'h, R, E> {
    Happened(Result<R, E>),
    /// Until one of these words has changed.
    Waits(Asleep<'h>),
    Lost,
}

impl<R, E> Attempt<'_, R, E> {
    #[cfg(feature = "alloc")]
    pub(crate) fn has_succeeded(&self) -> bool {
        matches!(self.end, End::Happened(Ok(_)))
    }
}

/// That a closure runs; no longer once dropped.
pub(crate) struct Entered<'h> {
    is_in: &'h Cell<bool>,
    _in_closure: InClosure,
}

impl<'h> Entered<'h> {
    fn new(is_in: &'h Cell<bool>) -> Option<Entered<'h>> {
        (!is_in.replace(true)).then(|| Entered { is_in, _in_closure: InClosure::new() })
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.is_in.set(false);
    }
}

impl<'t, 'a: 't, 'd: 'a> Atomic<'t, 'a, 'd> {
    /// # Safety
    /// A guard of the domain lives as long as what is looked at by this.
    pub(crate) unsafe fn new(here: &'t Here<'d>, attempts: Attempts) -> Self {
        Atomic { here, log: Log::new(), attempts, looks: 0, has_lost: false, waits: false, _lists: PhantomData }
    }

    /// An item that the caller has, for [`Atomic::insert`].
    ///
    /// # Panics
    /// If it is of another domain.
    pub fn hold<T: Send + Sync>(&self, item: &'a Arc<'d, T>) -> Held<'t, 'd, T> {
        assert!(self.here.domain.is(item.slot().header().orphans()), "the item belongs to another domain");
        Held::new(item.slot())
    }

    /// Inserts an item.
    ///
    /// # Errors
    /// [`Stop`]: this call has done nothing.
    ///
    /// # Panics
    /// If the list is of another domain.
    #[inline]
    pub fn insert<C: Collection<'d>>(&mut self, list: &'a C, item: Held<'t, 'd, ItemOf<'d, C>>) -> Result<(), Stop> {
        let slot = item.slot();
        let link = C::Field::link(slot.value());
        let place = self.find(list, C::Field::key(slot.value()))?;
        let word = self.view().read(link);
        if word.is_listed() {
            self.ask(link, Some(slot), word)?;
            return Err(Stop::Listed);
        }
        if let Some(found) = place.found {
            self.ask_found(list, found)?;
            return Err(Stop::Exists);
        }
        self.log.expect_room([place.before, link])?;
        let entry = Word::link(list.number(), slot.address());
        self.log.note(&Change::new(place.before, place.word, entry), None);
        self.log.note(&Change::new(link, word, place.word), Some(slot.whole()));
        Ok(())
    }

    /// Takes the item with this key out of a list.
    ///
    /// # Errors
    /// [`Stop`]: this call has done nothing.
    ///
    /// # Panics
    /// If the list is of another domain.
    #[inline]
    pub fn remove<C: Collection<'d>>(
        &mut self,
        list: &'a C,
        key: &KeyOf<'d, C>,
    ) -> Result<Held<'t, 'd, ItemOf<'d, C>>, Stop> {
        let place = self.find(list, key)?;
        let Some(slot) = place.found else {
            self.ask::<ItemOf<'d, C>>(place.before, None, place.word)?;
            return Err(Stop::Absent);
        };
        let link = C::Field::link(slot.value());
        let word = self.word_in(list, link)?;
        self.log.expect_room([place.before, link])?;
        self.log.note(&Change::new(place.before, place.word, word), None);
        self.log.note(&Change::new(link, word, Word::NOWHERE), Some(slot.whole()));
        Ok(Held::new(slot))
    }

    /// The item with this key, if there is one.
    ///
    /// # Errors
    /// [`Stop::Again`], [`Stop::TooManyWords`].
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn get<C: Collection<'d>>(
        &mut self,
        list: &'a C,
        key: &KeyOf<'d, C>,
    ) -> Result<Option<Held<'t, 'd, ItemOf<'d, C>>>, Stop> {
        let place = self.find(list, key)?;
        match place.found {
            Some(slot) => {
                self.ask_found(list, slot)?;
                Ok(Some(Held::new(slot)))
            }
            None => {
                self.ask::<ItemOf<'d, C>>(place.before, None, place.word)?;
                Ok(None)
            }
        }
    }

    /// Whether there is an item with this key.
    ///
    /// # Errors
    /// [`Stop::Again`], [`Stop::TooManyWords`].
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn contains<C: Collection<'d>>(&mut self, list: &'a C, key: &KeyOf<'d, C>) -> Result<bool, Stop> {
        Ok(self.get(list, key)?.is_some())
    }

    /// What the closure returns to wait: it runs again once a word on which its answers rest has changed. Until then its thread
    /// sleeps, if the domain's host can let it ([`Domain::hosted`](crate::Domain::hosted)).
    pub fn retry(&mut self) -> Stop {
        self.waits = true;
        Stop::Retry
    }

    /// What `first` does; if that would wait, what `second` does, as if the first had changed nothing.
    ///
    /// # Errors
    /// What the one of the two returns.
    pub fn or_else<R, E: From<Stop>>(
        &mut self,
        first: impl FnOnce(&mut Self) -> Result<R, E>,
        second: impl FnOnce(&mut Self) -> Result<R, E>,
    ) -> Result<R, E> {
        let before = self.log;
        let outcome = first(self);
        if outcome.is_ok() || !self.waits {
            return outcome;
        }
        self.waits = false;
        self.log.go_back(&before);
        second(self)
    }

    #[inline]
    pub(crate) fn view(&self) -> Through<'_, 't> {
        Through { domain: self.here.domain, log: &self.log }
    }

    #[inline(always)]
    fn find<C: Collection<'d>>(&mut self, list: &'a C, key: &KeyOf<'d, C>) -> Result<Place<'t, ItemOf<'d, C>>, Stop> {
        list.expect_of(self.here);
        self.count_look()?;
        list.find_in(&self.view(), key).ok_or_else(|| self.lose())
    }

    /// Before a look: whether what was seen so far may still be true.
    #[inline]
    pub(crate) fn count_look(&mut self) -> Result<(), Stop> {
        self.looks += 1;
        if self.looks > FIRST_CONFIRMED_LOOKS && self.looks.is_power_of_two() {
            self.has_lost |= !self.confirm();
        }
        if self.has_lost { Err(Stop::Again) } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn lose(&mut self) -> Stop {
        self.has_lost = true;
        Stop::Again
    }

    /// The word of an item that was found in a list.
    #[inline]
    fn word_in<C: Collection<'d>>(&mut self, list: &C, link: &Link) -> Result<Word, Stop> {
        let word = self.view().read(link);
        if word.is_in(list.number()) { Ok(word) } else { Err(self.lose()) }
    }

    fn ask_found<C: Collection<'d>>(&mut self, list: &C, slot: &'t Slot<ItemOf<'d, C>>) -> Result<(), Stop> {
        let link = C::Field::link(slot.value());
        let word = self.word_in(list, link)?;
        self.ask(link, Some(slot), word)
    }

    /// Notes that an answer rests on a word.
    pub(crate) fn ask<T>(&mut self, link: &'t Link, item: Option<&'t Slot<T>>, word: Word) -> Result<(), Stop> {
        if sync::mutant::planted("olf: what is only asked is not noted") {
            return Ok(());
        }
        self.log.expect_room([link])?;
        self.log.note(&Change::asked(link, word), item.map(Slot::whole));
        Ok(())
    }

    /// Whether all that was looked at was so at one moment.
    fn confirm(&mut self) -> bool {
        // One word was what it was at the moment at which it was read.
        self.log.changes().len() <= 1 || self.confirm_all()
    }

    #[cold]
    fn confirm_all(&mut self) -> bool {
        let asked = self.log.asked();
        let outcome = self.here.change(asked.changes(), self.attempts);
        self.has_come(outcome)
    }

    #[inline]
    fn has_come(&mut self, outcome: Result<(), Unchanged>) -> bool {
        outcome.map_err(|unchanged| self.attempts.note(unchanged)).is_ok()
    }

    /// What comes of the attempt, after the closure has returned this.
    #[inline(always)]
    fn end_attempt<R, E>(&mut self, guard: &Guard<'_>, outcome: Result<R, E>) -> Attempt<'t, R, E> {
        let is_done = outcome.is_ok();
        self.end_by(outcome, |atomic| atomic.end(guard, is_done))
    }

    /// The same of a part, of which nothing happens yet.
    #[cfg(feature = "alloc")]
    pub(crate) fn confirm_attempt<R, E>(&mut self, outcome: Result<R, E>) -> Attempt<'t, R, E> {
        self.end_by(outcome, |atomic| !atomic.has_lost && atomic.confirm())
    }

    #[inline(always)]
    fn end_by<R, E>(&mut self, outcome: Result<R, E>, end: impl FnOnce(&mut Self) -> bool) -> Attempt<'t, R, E> {
        let end = if self.waits && !self.has_lost && outcome.is_err() {
            self.fall_asleep()
        } else if end(self) {
            End::Happened(outcome)
        } else {
            End::Lost
        };
        Attempt { attempts: self.attempts, end }
    }

    /// Waits until one of the words that were looked at has changed, unless one has.
    #[cold]
    fn fall_asleep<R, E>(&self) -> End<'t, R, E> {
        let domain = self.here.domain;
        let asleep = domain.sleepers.enter(&self.here.core, self.log.bits());
        let is_as_seen = |change: &Change<'_>| domain.value(change.link) == change.old;
        let are_as_seen = self.log.changes().iter().all(is_as_seen);
        if are_as_seen || sync::mutant::planted("olf: who falls asleep does not look again") {
            End::Waits(asleep)
        } else {
            End::Lost
        }
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn into_log(self) -> Log<'t> {
        self.log
    }

    /// Makes what the closure wants happen, or confirms what it has seen; false if it has lost.
    #[inline]
    fn end(&mut self, guard: &Guard<'_>, is_done: bool) -> bool {
        if self.has_lost {
            return false;
        }
        if !is_done {
            return sync::mutant::planted("olf: errors are not confirmed") || self.confirm();
        }
        match self.log.outcome() {
            Outcome { changes: false, .. } => self.confirm(),
            Outcome { memberships: false, .. } => {
                let outcome = self.here.change(self.log.changes(), self.attempts);
                self.has_come(outcome)
            }
            _ => self.end_with_counts(guard),
        }
    }

    /// Items come to stand in lists, or do no longer: the lists' counts change.
    fn end_with_counts(&mut self, guard: &Guard<'_>) -> bool {
        if !self.log.give_counts(guard) {
            return self.has_come(Err(Unchanged::Other));
        }
        let outcome = self.here.change(self.log.changes(), self.attempts);
        self.log.end_counts(guard, outcome.is_ok());
        self.has_come(outcome)
    }
}

/// This many looks are not worth a confirmation.
const FIRST_CONFIRMED_LOOKS: u64 = 8;
