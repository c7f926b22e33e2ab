//! Lists in the order of a key, singly linked: for some twenty items.
//!
//! ```text
//! insert B between A and C     A.next (L, C) -> (L, B)    B.next (nowhere) -> (L, C)
//! remove B                     A.next (L, B) -> (L, C)    B.next (L, C) -> (nowhere)
//! ```
//!
//! **Invariants.** The word of an item says in which list it stands and what follows there, so a word that an operation
//! finds unchanged at its decision proves both: that the item is in the list, and that nothing stands between it and the
//! next one. Items of greater keys follow in every list at every moment.
//!
//! **A reader** goes along the words. At an item whose word names another list it has lost its place: the item has gone, by
//! an operation that has also changed the word which led there. It looks at that again, and begins anew if that has gone as
//! well. An answer is right for the moment at which the word before the place was read.
//!
//! **A new item** that nobody else has is written first and linked by one swap. One that stood in a list before must not
//! be: old pointers lead writers to it, and what they insert behind it would be lost if it carried a link before it is
//! linked itself.

use core::cmp::Ordering;
use core::fmt;

use percpu::CacheLine;

use crate::domain::{Domain, Guard, Here};
use crate::field::Keyed;
use crate::item::{Arc, Ref, Slot};
use crate::link::Link;
use crate::operation::{Attempts, Change, Unchanged, View};
use crate::refusal::{Refused, TooManyLists};
use crate::word::{ListNumber, Word};

/// A list in the order of a key. See the module's head.
///
/// Cost: an insertion or removal goes along all items of smaller keys; then one compare-and-swap for an item's first
/// insertion, five for later ones and for removals.
pub struct Sorted<'d, F: Keyed> {
    // Immutable.
    domain: &'d Domain,
    number: ListNumber,
    // Atomic; its word is always one of this list.
    head: CacheLine<Link>,
    _items: core::marker::PhantomData<Arc<'d, F::Item>>,
}

/// Where a key stands in a list, or would stand.
pub(crate) struct Place<'g, T> {
    pub(crate) before: &'g Link,
    /// The word of `before`.
    pub(crate) word: Word,
    /// The item with the key.
    pub(crate) found: Option<&'g Slot<T>>,
}

impl<'d, F: Keyed> Sorted<'d, F> {
    /// An empty list.
    ///
    /// # Errors
    /// [`TooManyLists`].
    pub fn new(domain: &'d Domain) -> Result<Self, TooManyLists> {
        let number = domain.numbers.take(domain.epochs()).ok_or(TooManyLists)?;
        let head = CacheLine(Link::with(Word::link(number, 0)));
        Ok(Sorted { domain, number, head, _items: core::marker::PhantomData })
    }

    /// Inserts an item, unless there is one with its key or it stands in a list by this link.
    ///
    /// # Errors
    /// [`Refused`], which gives the item back.
    ///
    /// # Panics
    /// If the item or `here` is of another domain; if a comparison of keys does.
    pub fn insert(&self, here: &Here<'d>, item: Arc<'d, F::Item>) -> Result<(), Refused<'d, F::Item>> {
        let guard = self.pin(here);
        assert!(self.domain.is(item.slot().header().orphans()), "the item belongs to another domain");
        let link = F::link(&item);
        let mut attempts = Attempts::default();
        loop {
            let place = self.find(&guard, F::key(&item));
            let old = self.domain.value(link);
            if old.is_listed() {
                return Err(Refused::Listed(item));
            }
            if place.found.is_some() {
                return Err(Refused::Exists(item));
            }
            let (entry, linked) = (Word::link(self.number, item.slot().address()), place.word);
            let before = Change { link: place.before, old: place.word, new: entry };
            let is_new = item.slot().header().is_own();
            let outcome = if is_new || sync::mutant::planted("olf: a reused item is linked by one swap") {
                // Nobody else has the item, nor a pointer to it.
                item.slot().header().set_listed(true);
                link.store_own(linked);
                here.swap(&before).inspect_err(|_| {
                    item.slot().header().set_listed(false);
                    link.store_own(old);
                })
            } else {
                item.slot().header().set_listed(true);
                here.change(&[before, Change { link, old, new: linked }], attempts)
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

    /// Takes the item with this key out of the list, if there is one.
    ///
    /// # Panics
    /// If `here` is of another domain; if a comparison of keys does.
    pub fn remove(&self, here: &Here<'d>, key: &F::Key) -> Option<Arc<'d, F::Item>> {
        let guard = self.pin(here);
        let mut attempts = Attempts::default();
        loop {
            let place = self.find(&guard, key);
            let slot = place.found?;
            let outcome = self.leave(&place, slot, Word::NOWHERE).and_then(|changes| here.change(&changes, attempts));
            match outcome {
                // SAFETY: the list's count is ours: the operation has taken the item out.
                Ok(()) => return Some(unsafe { Arc::from_count(slot) }),
                Err(unchanged) => attempts.note(unchanged),
            }
        }
    }

    /// The changes by which a found item leaves the list, and its word becomes this.
    pub(crate) fn leave<'g>(
        &self,
        place: &Place<'g, F::Item>,
        slot: &'g Slot<F::Item>,
        new: Word,
    ) -> Result<[Change<'g>; 2], Unchanged> {
        let link = F::link(slot.value());
        let old = self.domain.value(link);
        if !old.is_in(self.number) {
            return Err(Unchanged::Other);
        }
        Ok([Change { link: place.before, old: place.word, new: old }, Change { link, old, new }])
    }

    /// Whether there is an item with this key.
    ///
    /// # Panics
    /// If `here` is of another domain; if a comparison of keys does.
    pub fn contains(&self, here: &Here<'d>, key: &F::Key) -> bool {
        let guard = self.pin(here);
        self.find(&guard, key).found.is_some()
    }

    /// The item with this key, for as long as the guard lives.
    ///
    /// # Panics
    /// If the guard is of another domain; if a comparison of keys does.
    pub fn get<'g>(&self, guard: &'g Guard<'_>, key: &F::Key) -> Option<Ref<'g, 'd, F::Item>> {
        assert!(guard.is_of(self.domain), "the guard belongs to another domain");
        let slot = self.find_for(key).found?;
        // SAFETY: the guard lives for `'g`, and the slot was found in the list while it did.
        Some(unsafe { Ref::new(Slot::at(slot.address())) })
    }

    /// Whether the list has no item.
    pub fn is_empty(&self, here: &Here<'d>) -> bool {
        self.expect_of(here);
        self.domain.value(&self.head.0).address() == 0
    }

    /// Calls `each` with all items in their order. Each of them was in the list at some moment of the call; items that
    /// are there all the time are not left out.
    ///
    /// # Panics
    /// If `here` is of another domain; if `each` or a comparison of keys does.
    pub fn for_each(&self, here: &Here<'d>, mut each: impl FnMut(&F::Item)) {
        let _guard = self.pin(here);
        let mut word = self.domain.value(&self.head.0);
        // SAFETY: guarded, and in the list when the word was read.
        while let Some(slot) = unsafe { follow::<F::Item>(word) } {
            each(slot.value());
            word = self.domain.value(F::link(slot.value()));
            if !word.is_in(self.number) {
                // The place is lost, but not the order: on behind the key.
                let behind = self.walk(self.domain, |item| F::key(item) <= F::key(slot.value()));
                word = behind.expect(NEVER_STALE).1;
            }
        }
    }

    pub(crate) fn pin<'h>(&self, here: &'h Here<'d>) -> Guard<'h> {
        self.expect_of(here);
        here.pin()
    }

    #[inline]
    pub(crate) fn expect_of(&self, here: &Here<'d>) {
        assert!(core::ptr::eq(self.domain, here.domain), "the list belongs to another domain");
    }

    pub(crate) fn number(&self) -> ListNumber {
        self.number
    }

    /// The place of a key. What it holds is valid while the guard lives.
    #[inline]
    pub(crate) fn find<'g>(&'g self, _guard: &'g Guard<'_>, key: &F::Key) -> Place<'g, F::Item> {
        self.find_for(key)
    }

    fn find_for(&self, key: &F::Key) -> Place<'_, F::Item> {
        self.find_in(self.domain, key).expect(NEVER_STALE)
    }

    /// The place of a key, as it is seen in a view; none if that is stale. For whoever holds a guard.
    #[inline]
    pub(crate) fn find_in(&self, view: &impl View, key: &F::Key) -> Option<Place<'_, F::Item>> {
        let mut order = Ordering::Greater;
        let (before, word) = self.walk(view, |item| {
            order = F::key(item).cmp(key);
            order == Ordering::Less
        })?;
        // SAFETY: guarded, and in the list when the word was read.
        let slot = unsafe { follow(word) };
        Some(Place { before, word, found: slot.filter(|_| order == Ordering::Equal) })
    }

    /// Goes past all items for which it is asked; where it stops, and the word there.
    #[inline]
    fn walk(&self, view: &impl View, mut is_past: impl FnMut(&F::Item) -> bool) -> Option<(&Link, Word)> {
        'anew: loop {
            let mut before: &Link = &self.head.0;
            let mut word = view.read(before);
            // SAFETY: guarded, and in the list when the word was read.
            while let Some(slot) = unsafe { follow::<F::Item>(word) } {
                if !is_past(slot.value()) {
                    return Some((before, word));
                }
                let link = F::link(slot.value());
                let next = view.read(link);
                if next.is_in(self.number) {
                    (before, word) = (link, next);
                    continue;
                }
                if sync::mutant::planted("olf: another list is taken as the end") {
                    return Some((before, Word::link(self.number, 0)));
                }
                if view.is_stale() {
                    return None;
                }
                // It has gone; so has the word that led here.
                word = view.read(before);
                if !word.is_in(self.number) {
                    continue 'anew;
                }
            }
            return Some((before, word));
        }
    }
}

/// Of a domain as a view.
const NEVER_STALE: &str = "words as they are";

/// The item that a word leads to.
///
/// # Safety
/// A guard lives for `'g`, and the word was read while it did; it is one of a list of such items.
#[inline]
pub(crate) unsafe fn follow<'g, T>(word: Word) -> Option<&'g Slot<T>> {
    let address = word.address();
    // SAFETY: the caller's promise; not zero.
    (address != 0).then(|| unsafe { Slot::at(address) })
}

impl<F: Keyed> Drop for Sorted<'_, F> {
    fn drop(&mut self) {
        // Nobody else has the list. A thread that has ended in the middle of an operation may have left marks.
        let mut word = value_at_the_end(self.domain, &self.head.0);
        // SAFETY: the list has a count of each item in it.
        while let Some(slot) = unsafe { follow::<F::Item>(word) } {
            let link = F::link(slot.value());
            word = value_at_the_end(self.domain, link);
            let was_last = link.exchange(word, Word::NOWHERE);
            debug_assert!(was_last.is_ok(), "somebody uses a list that is dropped");
            // SAFETY: the list's count, which ends here. The domain lives longer than the list.
            drop(unsafe { Arc::<F::Item>::from_count(slot) });
        }
        self.domain.numbers.give(self.number, self.domain.epochs());
    }
}

/// What a word is, without a mark.
fn value_at_the_end(domain: &Domain, link: &Link) -> Word {
    loop {
        let seen = link.load();
        if !seen.is_mark() {
            return seen;
        }
        domain.settle(link, seen, None);
    }
}

impl<F: Keyed> fmt::Debug for Sorted<'_, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Sorted(list {})", self.number.number())
    }
}
