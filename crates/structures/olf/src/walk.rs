//! How a reader goes along a list in the order of insertion, while items leave and come back elsewhere.
//!
//! ```text
//! at A (version 3), whose word leads to B
//!   read B.next, which leads to C, and B's version                       7
//!   look again: A.next still leads to B, and A's version is 3            so B followed A; else back to A, or the one before A ...
//! at B (version 7), whose word leads to C
//!   read C.next, and C's version                                         2
//!   look again: B.next still leads to C, and B's version is 7            so C followed B, and B had not moved since
//! ```
//!
//! **Trail.** The reader keeps the last 16 places, and goes back to the last one that still stands. All places after
//! that have gone, so no item that is there all the time comes twice. If all 16 have gone, its place is lost, and it
//! begins again.
//!
//! **Cursor.** The third time it sets a cursor: a place of its own, which it moves along item by item. That writes, and ends the
//! repetition, since no one takes it away unless many stand at an end that somebody needs.

use core::cell::Cell;

use crate::cursor::Cursor;
use crate::domain::{Guard, Here};
use crate::field::ListField;
use crate::item::{Ref, Slot};
use crate::list::List;
use crate::list_link::ListLink;
use crate::operation::{Attempts, Change};
use crate::places::{End, Stop};
use crate::word::Word;

/// A reader can go back this many places.
const TRAIL: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };
/// So often a reader begins again before it sets a cursor.
const MOST_LOSSES: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 3 };

/// Where a reader stands: after an item or cursor, with the version that it had there, or before all.
#[derive(Clone, Copy)]
struct Standing<'g> {
    link: Option<&'g ListLink>,
    version: u64,
}

const BEFORE_ALL: Standing<'static> = Standing { link: None, version: 0 };

/// The places that a reader has passed last.
struct Trail<'g> {
    places: [Standing<'g>; TRAIL],
    /// It has passed this many.
    passed: usize,
    /// The first ones of these are not kept any more.
    floor: usize,
}

impl<'g> Trail<'g> {
    #[inline]
    fn push(&mut self, place: Standing<'g>) {
        self.places[self.passed % TRAIL] = place;
        self.passed += 1;
    }

    fn pop(&mut self) -> Option<Standing<'g>> {
        self.floor = self.floor.max(self.passed.saturating_sub(TRAIL));
        if self.passed == self.floor {
            return None;
        }
        self.passed -= 1;
        Some(self.places[self.passed % TRAIL])
    }
}

/// The reader's place is lost.
struct Lost;

impl<'d, F: ListField> List<'d, F> {
    /// The first item for which this is true, for as long as the guard lives. Items that come, leave or move in the
    /// meantime may be asked for twice or not at all, and all of them again if the reader has lost its place.
    ///
    /// # Panics
    /// If the guard is of another domain; if `is_wanted` does.
    pub fn find<'g>(
        &self,
        guard: &'g Guard<'_>,
        mut is_wanted: impl FnMut(&F::Item) -> bool,
    ) -> Option<Ref<'g, 'd, F::Item>> {
        assert!(guard.is_of(self.domain), "the list belongs to another domain");
        let found = self.walk(guard.here(), &mut (), |()| (), |(), slot| is_wanted(slot.value()));
        // SAFETY: the guard lives for `'g`, and the item stood in the list while it did.
        found.map(|slot| unsafe { Ref::new(Slot::at(slot.address())) })
    }

    /// Calls `each` with all items in their order. Items that are there all the time come at least once. If the reader has
    /// lost its place, all begins again; [`List::fold`] says so.
    ///
    /// # Panics
    /// If `here` is of another domain; if `each` does.
    pub fn for_each(&self, here: &Here<'d>, mut each: impl FnMut(&F::Item)) {
        self.fold(here, || (), |(), item| each(item));
    }

    /// Goes through all items in their order, and returns what comes of it. Items that are there all the time come once; those
    /// that come, leave or move in the meantime once, twice or not at all. If the reader has lost its place it begins
    /// again with a new `start`.
    ///
    /// # Panics
    /// If `here` is of another domain; if `start` or `each` does.
    pub fn fold<A>(&self, here: &Here<'d>, start: impl Fn() -> A, mut each: impl FnMut(&mut A, &F::Item)) -> A {
        assert!(core::ptr::eq(self.domain, here.domain), "the list belongs to another domain");
        let guard = here.pin();
        let mut folded = start();
        let again = |folded: &mut A| *folded = start();
        self.walk(guard.here(), &mut folded, again, |folded, slot| {
            each(folded, slot.value());
            false
        });
        folded
    }

    /// Goes along until `ends`. The caller holds a guard. `begins_again` is called if the place was lost.
    #[inline]
    fn walk<'g, A>(
        &'g self,
        here: &Here<'_>,
        to: &mut A,
        mut begins_again: impl FnMut(&mut A),
        mut ends: impl FnMut(&mut A, &'g Slot<F::Item>) -> bool,
    ) -> Option<&'g Slot<F::Item>> {
        for _ in 0..MOST_LOSSES {
            if let Ok(found) = self.walk_by_words(here, |slot| ends(to, slot)) {
                return found;
            }
            begins_again(to);
        }
        loop {
            let mut outcome = Err(Lost);
            if let Some(cursor) = SetCursor::new(self, here) {
                outcome = cursor.walk(|slot| ends(to, slot));
            } else if let Ok(found) = self.walk_by_words(here, |slot| ends(to, slot)) {
                // A walk within a walk of this thread.
                return found;
            }
            match outcome {
                Ok(found) => return found,
                Err(Lost) => begins_again(to),
            }
        }
    }

    #[inline(never)]
    fn walk_by_words<'g>(
        &'g self,
        here: &Here<'_>,
        mut ends: impl FnMut(&'g Slot<F::Item>) -> bool,
    ) -> Result<Option<&'g Slot<F::Item>>, Lost> {
        let mut trail = Trail { places: [BEFORE_ALL; TRAIL], passed: 0, floor: 0 };
        let mut at = BEFORE_ALL;
        let mut word = here.domain.value(self.places.end(End::Front));
        loop {
            // SAFETY: guarded; the word is one of this list, was read, and what it leads to stood there, while the guard lived.
            let Some(stop) = (unsafe { self.places.stop(word) }) else {
                if self.follows(here, at, word) {
                    return Ok(None);
                }
                (at, word) = self.go_back(here, at, &mut trail)?;
                continue;
            };
            let link = match &stop {
                Stop::Item(slot) => F::link(slot.value()),
                Stop::Cursor(cursor) => &cursor.link,
            };
            let (mut next, mut version) = (link.next.load(), link.version());
            if !next.is_in(self.places.number) {
                (next, version) = here.domain.next_and_version(link);
            }
            if !self.follows(here, at, word) {
                (at, word) = self.go_back(here, at, &mut trail)?;
                continue;
            }
            trail.push(at);
            at = Standing { link: Some(link), version };
            if let Stop::Item(slot) = stop
                && ends(slot)
            {
                return Ok(Some(slot));
            }
            word = next;
            if !next.is_in(self.places.number) {
                (at, word) = self.go_back(here, at, &mut trail)?;
            }
        }
    }

    /// The second look: whether a word still says what follows.
    #[inline]
    fn follows(&self, here: &Here<'_>, at: Standing<'_>, word: Word) -> bool {
        let is_as_seen = match at.link {
            None => self.places.end(End::Front).load() == word,
            Some(link) => {
                // The word first: it has stood since the version was read first.
                let is_word = link.next.load() == word;
                is_word && (link.version() == at.version || sync::mutant::planted("olf: no version"))
            }
        };
        // Else it may be a mark that means the same.
        is_as_seen || self.follows_by_marks(here, at, word) || sync::mutant::planted("olf: no second look")
    }

    #[cold]
    #[inline(never)]
    fn follows_by_marks(&self, here: &Here<'_>, at: Standing<'_>, word: Word) -> bool {
        self.next_at(here, at) == Some(word)
    }

    /// Back to the last place that still stands, which may be this one; what follows there.
    #[cold]
    #[inline(never)]
    fn go_back<'g>(
        &self,
        here: &Here<'_>,
        mut at: Standing<'g>,
        trail: &mut Trail<'g>,
    ) -> Result<(Standing<'g>, Word), Lost> {
        loop {
            if let Some(word) = self.next_at(here, at) {
                return Ok((at, word));
            }
            at = trail.pop().ok_or(Lost)?;
        }
    }

    /// What follows at this moment; none if what the reader stands at has gone.
    #[inline]
    fn next_at(&self, here: &Here<'_>, at: Standing<'_>) -> Option<Word> {
        match at.link {
            None => Some(here.domain.value(self.places.end(End::Front))),
            Some(link) => here.domain.next_at(link, at.version).filter(|word| word.is_in(self.places.number)),
        }
    }
}

/// A cursor of this thread in a list; taken out when dropped.
struct SetCursor<'g, 'h, 'd, F: ListField> {
    list: &'g List<'d, F>,
    here: &'h Here<'h>,
    cursor: &'h Cursor,
    /// Whether a step is under way. A thread that ends in one, as tests let it, takes nothing out.
    is_changing: Cell<bool>,
}

impl<'g, 'h, 'd, F: ListField> SetCursor<'g, 'h, 'd, F> {
    /// Before all items. None if the thread's cursor stands elsewhere.
    #[cold]
    fn new(list: &'g List<'d, F>, here: &'h Here<'h>) -> Option<Self> {
        if here.uses_cursor.replace(true) {
            return None;
        }
        let set = SetCursor { list, here, cursor: here.domain.cursors.own(&here.core), is_changing: Cell::new(true) };
        let link = &set.cursor.link;
        let mut attempts = Attempts::default();
        loop {
            // SAFETY: the caller holds a guard.
            let arrival = unsafe { list.places.arrival(here.domain, End::Front, set.entry()) };
            let [next, prev] = [&link.next, &link.prev].map(|link| here.domain.value(link));
            let own = [Change::new(&link.next, next, arrival.next), Change::new(&link.prev, prev, arrival.prev)];
            match here.change(&[arrival.around[0], arrival.around[1], own[0], own[1]], attempts) {
                Ok(()) => {
                    set.is_changing.set(false);
                    return Some(set);
                }
                Err(unchanged) => attempts.note(unchanged),
            }
        }
    }

    fn entry(&self) -> Word {
        self.list.places.cursor_entry(self.cursor)
    }

    fn walk(&self, mut ends: impl FnMut(&'g Slot<F::Item>) -> bool) -> Result<Option<&'g Slot<F::Item>>, Lost> {
        let mut attempts = Attempts::default();
        loop {
            let word = self.here.domain.value(&self.cursor.link.next);
            if !word.is_in(self.list.places.number) {
                return Err(Lost);
            }
            if word.address() == 0 {
                return Ok(None);
            }
            let Some(changes) = self.step(word) else { continue };
            self.is_changing.set(true);
            let outcome = self.here.change(&changes, attempts);
            self.is_changing.set(false);
            match outcome {
                Ok(()) => attempts = Attempts::default(),
                Err(unchanged) => {
                    attempts.note(unchanged);
                    continue;
                }
            }
            // SAFETY: guarded; it stood in the list when the cursor passed it.
            if let Some(Stop::Item(slot)) = unsafe { self.list.places.stop(word) }
                && ends(slot)
            {
                return Ok(Some(slot));
            }
        }
    }

    /// What changes when the cursor passes what `word` leads to: P K X Q becomes P X K Q.
    fn step(&self, word: Word) -> Option<[Change<'g>; 6]>
    where
        'h: 'g,
    {
        let (places, domain, link) = (&self.list.places, self.here.domain, &self.cursor.link);
        // SAFETY: guarded; it stood in the list when the word was read.
        let passed = unsafe { places.link(word) }?;
        let (next, prev) = (domain.value(&passed.next), domain.value(&link.prev));
        if !next.is_in(places.number) || !prev.is_in(places.number) {
            return None;
        }
        // SAFETY: as above; for `prev` see the head of `places`.
        let (before, behind) = unsafe { (places.next_of(prev), places.prev_of(next)) };
        let entry = self.entry();
        Some([
            Change::new(before, entry, word),
            Change::new(&passed.prev, entry, prev),
            Change::leaving(link, word, next),
            Change::new(&link.prev, prev, word),
            Change::new(&passed.next, next, entry),
            Change::new(behind, word, entry),
        ])
    }

    /// Takes the cursor out; whether it stands nowhere any more.
    fn take_out(&self) -> bool {
        let entry = self.entry();
        // SAFETY: the walk's guard lives, and a cursor lives as long as the domain.
        let departure =
            unsafe { self.list.places.departure(self.here.domain, entry, &self.cursor.link, Word::NOWHERE) };
        match departure {
            None => true,
            Some(Err(_)) => false,
            Some(Ok(changes)) => self.here.change(&changes, Attempts::default()).is_ok(),
        }
    }
}

impl<F: ListField> Drop for SetCursor<'_, '_, '_, F> {
    fn drop(&mut self) {
        while !self.is_changing.get() && !sync::mutant::planted("olf: a cursor is left behind") {
            self.is_changing.set(self.take_out());
        }
        self.here.uses_cursor.set(false);
    }
}
