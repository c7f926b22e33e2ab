//! Lists in the order of a key, singly linked: for some twenty items.
//!
//! **Invariant.** Items of greater keys follow, in every list at every moment. So an answer is right for the moment at which
//! the word before the key's place was read: nothing stood between the two items.

use core::fmt;

use percpu::CacheLine;

use crate::chain::{Chain, Node};
use crate::domain::{Domain, Guard, Here};
use crate::field::Keyed;
use crate::find::{Find, NEVER_STALE, Place};
use crate::item::{Arc, Ref};
use crate::link::Link;
use crate::methods::methods;
use crate::operation::View;
use crate::refusal::TooManyLists;
use crate::snapshot::{Contents, visit_chain};
use crate::word::{ListNumber, Word};

/// A list in the order of a key. See the module's head.
///
/// Cost: an insertion or removal goes along all items of smaller keys; then one compare-and-swap for an item's first
/// insertion, five for later ones and for removals, seven for moves.
pub struct Sorted<'d, F: Keyed> {
    // Immutable.
    domain: &'d Domain,
    chain: Chain<F, false>,
    // Atomic; its word is always one of this list.
    head: CacheLine<Link>,
    _items: core::marker::PhantomData<Arc<'d, F::Item>>,
}

impl<'d, F: Keyed> Sorted<'d, F> {
    /// An empty list.
    ///
    /// # Errors
    /// [`TooManyLists`].
    pub fn new(domain: &'d Domain) -> Result<Self, TooManyLists> {
        let number = domain.numbers.take(domain.epochs()).ok_or(TooManyLists)?;
        let head = CacheLine(Link::with(Word::link(number, 0)));
        Ok(Sorted { domain, chain: Chain::new(number), head, _items: core::marker::PhantomData })
    }

    methods!();

    /// Whether the list has no item.
    pub fn is_empty(&self, here: &Here<'d>) -> bool {
        self.expect_of(here);
        self.domain.value(&self.head.0).address() == 0
    }

    /// The item with the smallest key, for as long as the guard lives.
    ///
    /// # Panics
    /// If the guard is of another domain.
    pub fn first<'g>(&self, guard: &'g Guard<'_>) -> Option<Ref<'g, 'd, F::Item>> {
        assert!(guard.is_of(self.domain), "the list belongs to another domain");
        // SAFETY: guarded, and in the list when the word was read.
        match unsafe { Node::after(self.domain.value(&self.head.0)) } {
            // SAFETY: the guard lives for `'g`.
            Some(Node::Item(slot)) => Some(unsafe { Ref::new(slot) }),
            _ => None,
        }
    }

    /// Calls `each` with all items in their order. Each of them was in the list at some moment of the call; items that
    /// are there all the time are not left out.
    ///
    /// # Panics
    /// If `here` is of another domain; if `each` or a comparison of keys does.
    pub fn for_each(&self, here: &Here<'d>, mut each: impl FnMut(&F::Item)) {
        self.expect_of(here);
        let _guard = here.pin();
        let mut word = self.domain.value(&self.head.0);
        // SAFETY: guarded, and in the list when the word was read.
        while let Some(Node::Item(slot)) = unsafe { Node::<F::Item>::after(word) } {
            each(slot.value());
            word = self.domain.value(F::link(slot.value()));
            if !word.is_in(self.chain.number) {
                // The place is lost, but not the order: on after the key.
                let behind = self.walk(self.domain, |item| F::key(item) <= F::key(slot.value()));
                word = behind.expect(NEVER_STALE).1;
            }
        }
    }

    #[inline(always)]
    fn walk(&self, view: &impl View, mut is_past: impl FnMut(&F::Item) -> bool) -> Option<(&Link, Word)> {
        self.chain.walk(&self.head.0, view, |node| match node {
            Node::Item(slot) => is_past(slot.value()),
            Node::Sentinel(_) => true,
        })
    }
}

impl<'d, F: Keyed> Find<'d> for Sorted<'d, F> {
    type Field = F;

    #[inline]
    fn domain(&self) -> &'d Domain {
        self.domain
    }

    #[inline]
    fn number(&self) -> ListNumber {
        self.chain.number
    }

    #[inline(always)]
    fn find_in(&self, view: &impl View, key: &F::Key) -> Option<Place<'_, F::Item>> {
        let (before, word) = self.walk(view, |item| F::key(item) < key)?;
        // SAFETY: guarded, and in the list when the word was read.
        let found = match unsafe { Node::after(word) } {
            Some(Node::Item(slot)) if F::key(slot.value()) == key => Some(slot),
            _ => None,
        };
        Some(Place { before, word, found })
    }
}

impl<'d, F: Keyed> Contents<'d> for Sorted<'d, F> {
    type Item = F::Item;

    fn domain(&self) -> &'d Domain {
        self.domain
    }

    fn number(&self) -> ListNumber {
        self.chain.number
    }

    fn visit(&self, goes_on: impl FnMut(&F::Item) -> bool) -> bool {
        visit_chain(self, &self.head.0, goes_on)
    }
}

impl<F: Keyed> Drop for Sorted<'_, F> {
    fn drop(&mut self) {
        // No one else has the list. A thread that has ended in the middle of an operation may have left marks.
        self.chain.clear(&self.head.0, |link| self.domain.value_at_the_end(link), drop);
        self.domain.numbers.give(self.chain.number, self.domain.epochs());
    }
}

impl<F: Keyed> fmt::Debug for Sorted<'_, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Sorted(list {})", self.chain.number.number())
    }
}

#[cfg(all(test, feature = "alloc", not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::domain::Limits;
    use crate::field::LinkField as _;

    struct Thing {
        key: u32,
        link: Link,
    }

    crate::links! {
        ByKey: Thing { link: link, key: key as u32 }
    }

    /// A thread stops in the middle of its single change, and goes on while a snapshot reads.
    #[test]
    fn a_snapshot_reads_twice_beside_a_single_change() {
        let domain = Domain::with(Limits { threads: 2, lists: 1 }).unwrap();
        let (here, other) = (domain.enter().unwrap(), domain.enter().unwrap());
        let list = Sorted::<ByKey>::new(&domain).unwrap();
        let single = domain.decisions().begin_single(&other.core);
        assert_eq!(here.snapshot(|snapshot| snapshot.count(&list)), 0, "it holds up no one");

        let thing = Arc::new(&domain, Thing { key: 1, link: Link::new() });
        let mut readings = 0;
        let count = here.snapshot(|snapshot| {
            readings += 1;
            let count = snapshot.count(&list);
            if readings == 1 {
                thing.slot().header().set_listed(true);
                thing.slot().header().increment();
                let nothing = Word::link(list.chain.number, 0);
                ByKey::link(&thing).store_own(nothing);
                list.head.0.exchange(nothing, Word::link(list.chain.number, thing.slot().address())).unwrap();
            }
            count
        });
        drop(single);
        assert_eq!((count, readings), (1, 4), "what the first reading found was true before the second");
    }
}
