//! Which words of a doubly linked list change when an item comes or leaves.
//!
//! ```text
//! push B after the last item A     last (L,A) -> (L,B)    A.next (L,end) -> (L,B)    B.next -> (L,end)    B.prev -> (L,A)
//! take B from between A and C      A.next (L,B) -> (L,C)  C.prev (L,B) -> (L,A)      B.next (L,C) -> (nowhere)
//! ```
//!
//! Where there is no item before or after, `first` and `last` of the list take its place.
//!
//! **Why these suffice.** `A.next = (L,B)` proves that A stands in L and B follows; so the three words of a removal prove the
//! whole of it. `B.prev` stays as it is when B leaves: no one relies on it unless B stands in a list.
//!
//! **Memory.** If B stood in L at a moment at which the caller was pinned, then what is read from `B.prev` afterwards came
//! before B at that moment or later, and is not freed while the caller is pinned.

use core::marker::PhantomData;

use crate::cursor::Cursor;
use crate::field::ListField;
use crate::item::Slot;
use crate::link::Link;
use crate::list_link::ListLink;
use crate::operation::{Change, Unchanged, View};
use crate::word::{ListNumber, Word};
use percpu::CacheLine;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

/// The ends of a list, and how its words lead along.
pub(crate) struct Places<F: ListField> {
    // Immutable.
    pub(crate) number: ListNumber,
    // Atomic; their words are always those of this list. On lines of their own, so that a queue's ends do not meet.
    first: CacheLine<Link>,
    last: CacheLine<Link>,
    items: PhantomData<F>,
}

/// How an item comes to an end: what changes around it, and its own new words.
pub(crate) struct Arrival<'g> {
    pub(crate) around: [Change<'g>; 2],
    pub(crate) next: Word,
    pub(crate) prev: Word,
}

/// What a word leads to.
pub(crate) enum Stop<'g, T> {
    Item(&'g Slot<T>),
    Cursor(&'g Cursor),
}

/// Most cursors that an operation at an end steps over.
pub(crate) const MOST_CURSORS: usize = 2;

/// What stands at an end.
pub(crate) struct Edge<'g, T> {
    /// The item that stands nearest to it; none if there is no item.
    pub(crate) item: Option<&'g Slot<T>>,
    /// The words that say so: of the end, and of cursors at it.
    words: [Change<'g>; MOST_CURSORS + 1],
    count: usize,
}

impl<'g, T> Edge<'g, T> {
    /// The words on which it rests, the last one leads to the item.
    pub(crate) fn words(&self) -> &[Change<'g>] {
        &self.words[..self.count]
    }

    /// Whether this is how the item leaves the end, and no other place to which it has gone in the meantime.
    #[inline]
    pub(crate) fn is_left_by(&self, departure: &[Change<'_>; 3]) -> bool {
        let leads_to_it = self.words[self.count - 1].link;
        departure[..2].iter().any(|around| core::ptr::eq(around.link, leads_to_it))
            || sync::mutant::planted("olf: an item that has gone from the end is taken")
    }
}

/// Why an end cannot be determined.
pub(crate) enum Unclear<'g> {
    /// Words do not fit together: look again.
    Moving,
    /// More cursors stand there than an operation can step over: this one has to go.
    Crowded(&'g Cursor),
}

impl<F: ListField> Places<F> {
    pub(crate) fn new(number: ListNumber) -> Places<F> {
        let end = || CacheLine(Link::with(Word::link(number, 0)));
        Places { number, first: end(), last: end(), items: PhantomData }
    }

    /// That nothing follows, or comes before.
    #[inline]
    pub(crate) fn nothing(&self) -> Word {
        Word::link(self.number, 0)
    }

    /// The word of an end.
    #[inline]
    pub(crate) fn end(&self, end: End) -> &Link {
        match end {
            End::Front => &self.first.0,
            End::Back => &self.last.0,
        }
    }

    /// The word that leads to an item.
    #[inline]
    pub(crate) fn entry(&self, slot: &Slot<F::Item>) -> Word {
        Word::link(self.number, slot.address())
    }

    /// The word that leads to a cursor.
    #[inline]
    pub(crate) fn cursor_entry(&self, cursor: &Cursor) -> Word {
        Word::sentinel(self.number, cursor.address())
    }

    /// What a word leads to; none at an end.
    ///
    /// # Safety
    /// A guard lives for `'g`; the word was read while it did, and what it leads to stood in this list at a moment at which
    /// it did.
    #[inline]
    pub(crate) unsafe fn stop<'g>(&self, word: Word) -> Option<Stop<'g, F::Item>> {
        debug_assert!(word.is_in(self.number) || cfg!(any(loom, shuttle)));
        let address = word.address();
        match word.is_sentinel() {
            _ if address == 0 => None,
            // SAFETY: the caller's promise; cursors live as long as the domain.
            true => Some(Stop::Cursor(unsafe { &*core::ptr::with_exposed_provenance(address) })),
            // SAFETY: the caller's promise; not zero.
            false => Some(Stop::Item(unsafe { Slot::at(address) })),
        }
    }

    /// The link that a word leads to.
    ///
    /// # Safety
    /// As [`Places::stop`].
    #[inline]
    pub(crate) unsafe fn link<'g>(&self, word: Word) -> Option<&'g ListLink> {
        // SAFETY: the caller's promise.
        unsafe { self.stop(word) }.map(|stop| match stop {
            Stop::Item(slot) => F::link(slot.value()),
            Stop::Cursor(cursor) => &cursor.link,
        })
    }

    /// The word that says what follows after what `word` leads to.
    ///
    /// # Safety
    /// As [`Places::stop`].
    #[inline]
    pub(crate) unsafe fn next_of(&self, word: Word) -> &Link {
        // SAFETY: the caller's promise.
        unsafe { self.link(word) }.map_or(&self.first.0, |link| &link.next)
    }

    /// The word that says what comes before what `word` leads to.
    ///
    /// # Safety
    /// As [`Places::stop`].
    #[inline]
    pub(crate) unsafe fn prev_of(&self, word: Word) -> &Link {
        // SAFETY: the caller's promise.
        unsafe { self.link(word) }.map_or(&self.last.0, |link| &link.prev)
    }

    /// What changes when an item comes to an end.
    ///
    /// # Safety
    /// A guard of the domain lives for `'g`.
    #[inline]
    pub(crate) unsafe fn arrival<'g>(&'g self, view: &impl View, end: End, entry: Word) -> Arrival<'g> {
        let outer = self.end(end);
        let edge = view.read(outer);
        // SAFETY: guarded; the word of an end leads to what stands in the list.
        let (inner, next, prev) = unsafe {
            match end {
                End::Front => (self.prev_of(edge), edge, self.nothing()),
                End::Back => (self.next_of(edge), self.nothing(), edge),
            }
        };
        Arrival { around: [Change::new(outer, edge, entry), Change::new(inner, self.nothing(), entry)], next, prev }
    }

    /// What changes when what `entry` leads to leaves its place, and its word becomes `to`: before it, after it, and
    /// its own. None if it does not stand in the list.
    ///
    /// # Safety
    /// A guard of the domain lives for `'g`, and the link for as long as that.
    #[inline]
    pub(crate) unsafe fn departure<'g>(
        &'g self,
        view: &impl View,
        entry: Word,
        link: &'g ListLink,
        to: Word,
    ) -> Option<Result<[Change<'g>; 3], Unchanged>> {
        let next = view.read(&link.next);
        if !next.is_in(self.number) {
            return None;
        }
        let prev = view.read(&link.prev);
        if !prev.is_in(self.number) {
            return Some(Err(Unchanged::Other));
        }
        // SAFETY: it stood in the list when `next` was read; for `prev` see the module's head.
        let (before, behind) = unsafe { (self.next_of(prev), self.prev_of(next)) };
        let around = [Change::new(before, entry, next), Change::new(behind, entry, prev)];
        Some(Ok([around[0], around[1], Change::leaving(link, next, to)]))
    }

    /// What stands at an end.
    ///
    /// # Safety
    /// A guard of the domain lives for `'g`.
    #[inline]
    pub(crate) unsafe fn edge<'g>(&'g self, view: &impl View, end: End) -> Result<Edge<'g, F::Item>, Unclear<'g>> {
        let outer = self.end(end);
        let word = view.read(outer);
        let mut edge = Edge { item: None, words: [Change::asked(outer, word); MOST_CURSORS + 1], count: 1 };
        loop {
            let word = edge.words[edge.count - 1].old;
            // SAFETY: guarded; the word is one of the list, and was read while what it is in stood there.
            match unsafe { self.stop(word) } {
                None => return Ok(edge),
                Some(Stop::Item(slot)) => {
                    edge.item = Some(slot);
                    return Ok(edge);
                }
                Some(Stop::Cursor(cursor)) if edge.count > MOST_CURSORS => return Err(Unclear::Crowded(cursor)),
                Some(Stop::Cursor(cursor)) => {
                    let inner = match end {
                        End::Front => &cursor.link.next,
                        End::Back => &cursor.link.prev,
                    };
                    // A cursor's `prev` has a meaning only while it stands in the list.
                    let word = view.read(inner);
                    if !word.is_in(self.number) || !view.read(&cursor.link.next).is_in(self.number) {
                        return Err(Unclear::Moving);
                    }
                    edge.words[edge.count] = Change::asked(inner, word);
                    edge.count += 1;
                }
            }
        }
    }
}
