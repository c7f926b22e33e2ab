//! What a closure does with doubly linked lists.

use crate::closure::Atomic;
use crate::field::ListField;
use crate::held::Held;
use crate::item::Slot;
use crate::list::List;
use crate::operation::{Change, View};
use crate::places::{Edge, End, Unclear};
use crate::stop::Stop;
use crate::word::Word;

impl<'t, 'a: 't, 'd: 'a> Atomic<'t, 'a, 'd> {
    /// Puts an item before all others of a list.
    ///
    /// # Errors
    /// [`Stop`]: this call has done nothing.
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn push_front<F: ListField>(&mut self, list: &'a List<'d, F>, item: Held<'t, 'd, F::Item>) -> Result<(), Stop> {
        self.push(list, item, End::Front)
    }

    /// Puts an item after all others of a list.
    ///
    /// # Errors
    /// [`Stop`]: this call has done nothing.
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn push_back<F: ListField>(&mut self, list: &'a List<'d, F>, item: Held<'t, 'd, F::Item>) -> Result<(), Stop> {
        self.push(list, item, End::Back)
    }

    /// Takes the first item out of a list.
    ///
    /// # Errors
    /// [`Stop::Absent`] if there is none; this call has done nothing.
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn pop_front<F: ListField>(&mut self, list: &'a List<'d, F>) -> Result<Held<'t, 'd, F::Item>, Stop> {
        self.pop(list, End::Front)
    }

    /// Takes the last item out of a list.
    ///
    /// # Errors
    /// [`Stop::Absent`] if there is none; this call has done nothing.
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn pop_back<F: ListField>(&mut self, list: &'a List<'d, F>) -> Result<Held<'t, 'd, F::Item>, Stop> {
        self.pop(list, End::Back)
    }

    /// Takes an item out of a list, wherever it stands.
    ///
    /// # Errors
    /// [`Stop::Absent`] if it does not stand there; this call has done nothing.
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn take<F: ListField>(&mut self, list: &'a List<'d, F>, item: Held<'t, 'd, F::Item>) -> Result<(), Stop> {
        self.look(list)?;
        self.leave(list, item.slot(), None)
    }

    /// The first item of a list, if there is one.
    ///
    /// # Errors
    /// [`Stop::Again`], [`Stop::TooManyWords`].
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn front<F: ListField>(&mut self, list: &'a List<'d, F>) -> Result<Option<Held<'t, 'd, F::Item>>, Stop> {
        self.at_end(list, End::Front)
    }

    /// The last item of a list, if there is one.
    ///
    /// # Errors
    /// [`Stop::Again`], [`Stop::TooManyWords`].
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn back<F: ListField>(&mut self, list: &'a List<'d, F>) -> Result<Option<Held<'t, 'd, F::Item>>, Stop> {
        self.at_end(list, End::Back)
    }

    /// Whether an item stands in a list.
    ///
    /// # Errors
    /// [`Stop::Again`], [`Stop::TooManyWords`].
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn is_in<F: ListField>(&mut self, list: &'a List<'d, F>, item: Held<'t, 'd, F::Item>) -> Result<bool, Stop> {
        self.look(list)?;
        let link = &F::link(item.slot().value()).next;
        let word = self.view().read(link);
        self.ask(link, Some(item.slot()), word)?;
        Ok(word.is_in(list.places.number))
    }

    fn look<F: ListField>(&mut self, list: &List<'d, F>) -> Result<(), Stop> {
        assert!(core::ptr::eq(list.domain, self.here.domain), "the list belongs to another domain");
        self.count_look()
    }

    fn push<F: ListField>(&mut self, list: &'a List<'d, F>, item: Held<'t, 'd, F::Item>, end: End) -> Result<(), Stop> {
        self.look(list)?;
        let slot = item.slot();
        let link = F::link(slot.value());
        let [next, prev] = [&link.next, &link.prev].map(|link| self.view().read(link));
        if next.is_listed() {
            self.ask(&link.next, Some(slot), next)?;
            return Err(Stop::Listed);
        }
        let entry = list.places.entry(slot);
        // SAFETY: the closure runs under a guard.
        let arrival = unsafe { list.places.arrival(&self.view(), end, entry) };
        let [outer, inner] = arrival.around;
        self.expect_as_found(&[outer, inner])?;
        self.log.expect_room([outer.link, inner.link, &link.next, &link.prev])?;
        self.log.note(&outer, None);
        self.log.note(&inner, None);
        self.log.note(&Change::new(&link.next, next, arrival.next), Some(slot.whole()));
        self.log.note(&Change::new(&link.prev, prev, arrival.prev), None);
        Ok(())
    }

    fn pop<F: ListField>(&mut self, list: &'a List<'d, F>, end: End) -> Result<Held<'t, 'd, F::Item>, Stop> {
        let edge = self.edge(list, end)?;
        let Some(slot) = edge.item else {
            self.ask_all(edge.words())?;
            return Err(Stop::Absent);
        };
        self.leave(list, slot, Some(&edge))?;
        Ok(Held::new(slot))
    }

    fn at_end<F: ListField>(&mut self, list: &'a List<'d, F>, end: End) -> Result<Option<Held<'t, 'd, F::Item>>, Stop> {
        let edge = self.edge(list, end)?;
        self.ask_all(edge.words())?;
        Ok(edge.item.map(Held::new))
    }

    fn edge<F: ListField>(&mut self, list: &'a List<'d, F>, end: End) -> Result<Edge<'t, F::Item>, Stop> {
        self.look(list)?;
        // SAFETY: the closure runs under a guard.
        let edge = unsafe { list.places.edge(&self.view(), end) };
        edge.map_err(|unclear| {
            if let Unclear::Crowded(_) = unclear {
                list.clear_up(self.here, unclear);
            }
            self.lose()
        })
    }

    /// Takes an item out, which was found at an end.
    fn leave<F: ListField>(
        &mut self,
        list: &'a List<'d, F>,
        slot: &'t Slot<F::Item>,
        edge: Option<&Edge<'t, F::Item>>,
    ) -> Result<(), Stop> {
        let link = F::link(slot.value());
        let entry = list.places.entry(slot);
        // SAFETY: the closure runs under a guard, and the item lives as long as it does.
        let departure = unsafe { list.places.departure(&self.view(), entry, link, Word::NOWHERE) };
        let Some(departure) = departure else {
            if edge.is_some() {
                // It stood at the end a moment ago: that there is none is not what was seen.
                return Err(self.lose());
            }
            let word = self.view().read(&link.next);
            self.ask(&link.next, Some(slot), word)?;
            return Err(Stop::Absent);
        };
        let Ok(changes) = departure else {
            return Err(self.lose());
        };
        if edge.is_some_and(|edge| !edge.is_left_by(&changes)) {
            return Err(self.lose());
        }
        let [before, behind, next] = changes;
        self.expect_as_found(&[before, behind])?;
        let cursors = edge.map_or(&[][..], |edge| &edge.words()[..edge.words().len() - 1]);
        self.ask_all(cursors)?;
        self.log.expect_room([before.link, behind.link, next.link])?;
        self.log.note(&before, None);
        self.log.note(&behind, None);
        self.log.note(&next, Some(slot.whole()));
        Ok(())
    }

    /// That words are what they must be for this.
    fn expect_as_found(&mut self, changes: &[Change<'t>]) -> Result<(), Stop> {
        let is_as_found = changes.iter().all(|change| self.view().read(change.link) == change.old);
        if is_as_found { Ok(()) } else { Err(self.lose()) }
    }

    fn ask_all(&mut self, words: &[Change<'t>]) -> Result<(), Stop> {
        words.iter().try_for_each(|asked| self.ask::<()>(asked.link, None, asked.old))
    }
}
