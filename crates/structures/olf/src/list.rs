//! Doubly linked lists in the order of insertion: both ends, and any item, in a constant number of steps.
//!
//! Which words change is in `places`, how a reader goes along in `walk`.
//!
//! **Invariant.** At every moment `next` and `prev` of all that stands in a list say the same order. So what an operation has
//! found in two or three words is right if they are unchanged at its decision.

use core::fmt;
use core::marker::PhantomData;

use crate::domain::{Domain, Guard, Here};
use crate::field::ListField;
use crate::item::{Arc, Handle, Ref, Slot};
use crate::operation::{Attempts, Change, Unchanged};
use crate::places::{Edge, End, Places, Stop, Unclear};
use crate::refusal::{NotMoved, Refused, TooManyLists};
use crate::word::{MOST_WORDS, Word};

/// A list in the order of insertion, and a queue: push at the one end, pop at the other. See the module's head.
///
/// Cost, in compare-and-swaps: 5 for a first insertion, 9 for later ones, 8 for a removal, 14 for a move.
pub struct List<'d, F: ListField> {
    // Immutable, but for the words of the ends.
    pub(crate) domain: &'d Domain,
    pub(crate) places: Places<F>,
    _items: PhantomData<Arc<'d, F::Item>>,
}

impl<'d, F: ListField> List<'d, F> {
    /// An empty list.
    ///
    /// # Errors
    /// [`TooManyLists`].
    pub fn new(domain: &'d Domain) -> Result<Self, TooManyLists> {
        let number = domain.numbers.take(domain.epochs()).ok_or(TooManyLists)?;
        Ok(List { domain, places: Places::new(number), _items: PhantomData })
    }

    /// Puts an item before all others, unless it stands in a list by this link.
    ///
    /// # Errors
    /// [`Refused::Listed`], which gives the item back.
    ///
    /// # Panics
    /// If the item or `here` is of another domain.
    pub fn push_front(&self, here: &Here<'d>, item: Arc<'d, F::Item>) -> Result<(), Refused<'d, F::Item>> {
        self.push(here, item, End::Front)
    }

    /// Puts an item after all others, unless it stands in a list by this link.
    ///
    /// # Errors
    /// [`Refused::Listed`], which gives the item back.
    ///
    /// # Panics
    /// If the item or `here` is of another domain.
    pub fn push_back(&self, here: &Here<'d>, item: Arc<'d, F::Item>) -> Result<(), Refused<'d, F::Item>> {
        self.push(here, item, End::Back)
    }

    /// Takes the first item out; none if the list is empty.
    ///
    /// # Panics
    /// If `here` is of another domain.
    pub fn pop_front(&self, here: &Here<'d>) -> Option<Arc<'d, F::Item>> {
        self.pop(here, End::Front)
    }

    /// Takes the last item out; none if the list is empty.
    ///
    /// # Panics
    /// If `here` is of another domain.
    pub fn pop_back(&self, here: &Here<'d>) -> Option<Arc<'d, F::Item>> {
        self.pop(here, End::Back)
    }

    /// Takes an item out, wherever it stands; none if it does not stand in this list.
    ///
    /// # Panics
    /// If the item or `here` is of another domain.
    pub fn remove(&self, here: &Here<'d>, item: &impl Handle<'d, F::Item>) -> Option<Arc<'d, F::Item>> {
        let slot = item.slot();
        self.expect_of(here, slot);
        let _guard = here.pin();
        let mut attempts = Attempts::default();
        loop {
            // SAFETY: guarded, and the caller's handle keeps the item.
            let departure = unsafe { self.departure(slot, Word::NOWHERE) }?;
            match departure.and_then(|changes| self.leave(here, &changes, attempts)) {
                // SAFETY: the list's count is ours: the operation has taken the item out.
                Ok(()) => return Some(unsafe { Arc::from_count(slot) }),
                Err(unchanged) => attempts.note(unchanged),
            }
        }
    }

    /// Moves an item of this list before all others of a list, which may be this one. Everybody sees it in exactly one place.
    ///
    /// # Errors
    /// [`NotMoved::Absent`] if the item does not stand in this list.
    ///
    /// # Panics
    /// If the item, `here` or the other list is of another domain.
    pub fn move_to_front(
        &self,
        to: &List<'d, F>,
        here: &Here<'d>,
        item: &impl Handle<'d, F::Item>,
    ) -> Result<(), NotMoved> {
        self.move_to(to, here, item.slot(), End::Front)
    }

    /// Moves an item of this list after all others of a list, which may be this one. Everybody sees it in exactly one
    /// place.
    ///
    /// # Errors
    /// [`NotMoved::Absent`] if the item does not stand in this list.
    ///
    /// # Panics
    /// If the item, `here` or the other list is of another domain.
    pub fn move_to_back(
        &self,
        to: &List<'d, F>,
        here: &Here<'d>,
        item: &impl Handle<'d, F::Item>,
    ) -> Result<(), NotMoved> {
        self.move_to(to, here, item.slot(), End::Back)
    }

    /// Whether an item stands in this list.
    ///
    /// # Panics
    /// If the item or `here` is of another domain.
    pub fn contains(&self, here: &Here<'d>, item: &impl Handle<'d, F::Item>) -> bool {
        self.expect_of(here, item.slot());
        self.domain.value(&F::link(item.slot().value()).next).is_in(self.places.number)
    }

    /// The first item, for as long as the guard lives.
    ///
    /// # Panics
    /// If the guard is of another domain.
    pub fn front<'g>(&self, guard: &'g Guard<'_>) -> Option<Ref<'g, 'd, F::Item>> {
        self.at_end(guard, End::Front)
    }

    /// The last item, for as long as the guard lives.
    ///
    /// # Panics
    /// If the guard is of another domain.
    pub fn back<'g>(&self, guard: &'g Guard<'_>) -> Option<Ref<'g, 'd, F::Item>> {
        self.at_end(guard, End::Back)
    }

    /// Whether the list has no item.
    ///
    /// # Panics
    /// If `here` is of another domain.
    pub fn is_empty(&self, here: &Here<'d>) -> bool {
        self.front(&here.pin()).is_none()
    }

    #[inline]
    fn expect_of(&self, here: &Here<'d>, slot: &Slot<F::Item>) {
        assert!(core::ptr::eq(self.domain, here.domain), "the list belongs to another domain");
        assert!(here.domain.is(slot.header().orphans()), "the item belongs to another domain");
    }

    #[inline]
    fn push(&self, here: &Here<'d>, item: Arc<'d, F::Item>, end: End) -> Result<(), Refused<'d, F::Item>> {
        self.expect_of(here, item.slot());
        let (_guard, link) = (here.pin(), F::link(&item));
        let entry = self.places.entry(item.slot());
        let mut attempts = Attempts::default();
        loop {
            let [next, prev] = [&link.next, &link.prev].map(|link| here.domain.value(link));
            if next.is_listed() {
                return Err(Refused::Listed(item));
            }
            // SAFETY: guarded.
            let arrival = unsafe { self.places.arrival(here.domain, end, entry) };
            let [outer, inner] = arrival.around;
            let is_new = item.slot().header().is_own();
            item.slot().header().set_listed(true);
            let outcome = if is_new || sync::mutant::planted("olf: a reused item is linked by one swap") {
                // No one else has the item, nor a pointer to it.
                link.next.store_own(arrival.next);
                link.prev.store_own(arrival.prev);
                here.change(&[outer, inner], attempts).inspect_err(|_| {
                    item.slot().header().set_listed(false);
                    link.next.store_own(Word::NOWHERE);
                })
            } else {
                let own = [Change::new(&link.next, next, arrival.next), Change::new(&link.prev, prev, arrival.prev)];
                here.change(&[outer, inner, own[0], own[1]], attempts)
            };
            match outcome {
                Ok(()) => {
                    item.into_count();
                    return Ok(());
                }
                Err(unchanged) => attempts.note(unchanged),
            }
        }
    }

    #[inline]
    fn pop(&self, here: &Here<'d>, end: End) -> Option<Arc<'d, F::Item>> {
        assert!(core::ptr::eq(self.domain, here.domain), "the list belongs to another domain");
        let _guard = here.pin();
        let mut attempts = Attempts::default();
        loop {
            // SAFETY: guarded.
            let edge = match unsafe { self.places.edge(here.domain, end) } {
                Ok(edge) => edge,
                Err(unclear) => {
                    self.clear_up(here, unclear);
                    continue;
                }
            };
            let outcome = match edge.item {
                None if edge.words().len() == 1 => return None,
                None => here.change(edge.words(), attempts).map(|()| None),
                Some(slot) => self.take(here, &edge, slot, attempts).map(|()| Some(slot)),
            };
            match outcome {
                // SAFETY: the list's count is ours: the operation has taken the item out.
                Ok(taken) => return taken.map(|slot| unsafe { Arc::from_count(slot) }),
                Err(unchanged) => attempts.note(unchanged),
            }
        }
    }

    /// Takes out the item at an end.
    #[inline]
    fn take(
        &self,
        here: &Here<'d>,
        edge: &Edge<'_, F::Item>,
        slot: &Slot<F::Item>,
        attempts: Attempts,
    ) -> Result<(), Unchanged> {
        // SAFETY: the caller holds a guard; the item stood in the list while it did.
        let departure = unsafe { self.departure(slot, Word::NOWHERE) };
        let changes = departure.unwrap_or(Err(Unchanged::Other))?;
        if !edge.is_left_by(&changes) {
            return Err(Unchanged::Other);
        }
        match edge.words() {
            [_] => self.leave(here, &changes, attempts),
            [cursors @ .., _] => {
                // No item comes before the cursors, either.
                let mut all = [changes[0]; MOST_WORDS];
                all[..3].copy_from_slice(&changes);
                all[3..3 + cursors.len()].copy_from_slice(cursors);
                here.change(&all[..3 + cursors.len()], attempts)
            }
            [] => unreachable!("an end has a word"),
        }
    }

    /// Makes an item leave.
    #[inline]
    fn leave(&self, here: &Here<'d>, changes: &[Change<'_>; 3], attempts: Attempts) -> Result<(), Unchanged> {
        if sync::mutant::planted("olf: prev is changed outside of the operation") {
            here.change(&[changes[0], changes[2]], attempts)?;
            let _ = changes[1].link.exchange(changes[1].old, changes[1].new);
            return Ok(());
        }
        here.change(changes, attempts)
    }

    #[inline]
    fn move_to(&self, to: &List<'d, F>, here: &Here<'d>, slot: &Slot<F::Item>, end: End) -> Result<(), NotMoved> {
        self.expect_of(here, slot);
        assert!(core::ptr::eq(to.domain, here.domain), "the list belongs to another domain");
        let (_guard, link) = (here.pin(), F::link(slot.value()));
        let entry = to.places.entry(slot);
        let mut attempts = Attempts::default();
        loop {
            // SAFETY: guarded.
            let arrival = unsafe { to.places.arrival(here.domain, end, entry) };
            let [outer, inner] = arrival.around;
            if outer.old == entry {
                // It stands there already, or in the other list and not in this one: one word says so.
                let is_same = self.places.number == to.places.number;
                return if is_same { Ok(()) } else { Err(NotMoved::Absent) };
            }
            // SAFETY: guarded, and the caller's handle keeps the item.
            let outcome = match unsafe { self.departure(slot, arrival.next) } {
                None => return Err(NotMoved::Absent),
                Some(departure) => departure.and_then(|[before, behind, next]| {
                    let prev = here.domain.value(&link.prev);
                    let is_clear = [before.link, behind.link]
                        .iter()
                        .all(|one| !core::ptr::eq(*one, outer.link) && !core::ptr::eq(*one, inner.link));
                    // Else the list has changed between the looks.
                    if !is_clear || prev != behind.new {
                        return Err(Unchanged::Other);
                    }
                    let prev = Change::new(&link.prev, prev, arrival.prev);
                    here.change(&[before, behind, next, prev, outer, inner], attempts)
                }),
            };
            match outcome {
                Ok(()) => return Ok(()),
                Err(unchanged) => attempts.note(unchanged),
            }
        }
    }

    /// What changes when an item leaves.
    ///
    /// # Safety
    /// A guard of the domain lives for `'g`, and the item for as long as that.
    #[inline]
    unsafe fn departure<'g>(&'g self, slot: &'g Slot<F::Item>, to: Word) -> Option<Result<[Change<'g>; 3], Unchanged>> {
        // SAFETY: the caller's promise.
        unsafe { self.places.departure(self.domain, self.places.entry(slot), F::link(slot.value()), to) }
    }

    /// After an end could not be determined.
    #[cold]
    pub(crate) fn clear_up(&self, here: &Here<'d>, unclear: Unclear<'_>) {
        let Unclear::Crowded(cursor) = unclear else { return };
        let entry = self.places.cursor_entry(cursor);
        // SAFETY: the caller holds a guard; a cursor lives as long as the domain.
        let departure = unsafe { self.places.departure(self.domain, entry, &cursor.link, Word::NOWHERE) };
        if let Some(Ok(changes)) = departure {
            // If it does not come off, the one that asks looks again.
            let _ = here.change(&changes, Attempts::default());
        }
    }

    fn at_end<'g>(&self, guard: &'g Guard<'_>, end: End) -> Option<Ref<'g, 'd, F::Item>> {
        let here = guard.here();
        assert!(core::ptr::eq(self.domain, here.domain), "the list belongs to another domain");
        loop {
            // SAFETY: guarded.
            match unsafe { self.places.edge(here.domain, end) } {
                Ok(edge) if edge.words().len() == 1 || here.change(edge.words(), Attempts::default()).is_ok() => {
                    // SAFETY: the guard lives for `'g`, and the item stood in the list while it did.
                    return edge.item.map(|slot| unsafe { Ref::new(Slot::at(slot.address())) });
                }
                Ok(_) => {}
                Err(unclear) => self.clear_up(here, unclear),
            }
        }
    }
}

impl<F: ListField> Drop for List<'_, F> {
    fn drop(&mut self) {
        // No one else has the list. A thread that has ended in the middle of an operation may have left marks.
        let value = |link| self.domain.value_at_the_end(link);
        let mut word = value(self.places.end(End::Front));
        // SAFETY: the list has a count of each item in it, and cursors live as long as the domain.
        while let Some(stop) = unsafe { self.places.stop(word) } {
            let link = match &stop {
                Stop::Item(slot) => F::link(slot.value()),
                Stop::Cursor(cursor) => &cursor.link,
            };
            word = value(&link.next);
            value(&link.prev);
            let outcome = link.next.exchange(word, Word::NOWHERE);
            debug_assert!(outcome.is_ok(), "somebody uses a list that is dropped");
            if let Stop::Item(slot) = stop {
                // SAFETY: the list's count, which ends here. The domain lives longer than the list.
                drop(unsafe { Arc::from_count(slot) });
            }
        }
        self.domain.numbers.give(self.places.number, self.domain.epochs());
    }
}

impl<F: ListField> fmt::Debug for List<'_, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "List(list {})", self.places.number.number())
    }
}
