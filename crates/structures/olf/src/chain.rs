//! A chain of items, and of sentinels between them, that words of one list lead along.
//!
//! **A reader** goes along the words. At an item whose word names another list it has lost its place: the item has gone, by
//! an operation that has also changed the word which led there. It looks at that again, and begins again if that has
//! gone as well. Where it stops, the word before was one of the list when it was read, and what it leads to followed
//! there.

use core::marker::PhantomData;

use percpu::CacheLine;

use crate::field::LinkField;
use crate::item::{Arc, Slot};
use crate::link::Link;
use crate::operation::View;
use crate::word::{ListNumber, Word};

/// A place in a chain that is no item, and never leaves it.
#[repr(C)]
pub(crate) struct Sentinel {
    // On a line of its own: changed by those who change the bucket.
    pub(crate) link: CacheLine<Link>,
    /// Where it stands. Read by those who come to the end of the bucket before, and so on another line.
    pub(crate) order: u64,
}

#[cfg(feature = "alloc")]
impl Sentinel {
    /// Where it stands, for links.
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }
}

/// What a word leads to.
pub(crate) enum Node<'g, T> {
    Item(&'g Slot<T>),
    Sentinel(&'g Sentinel),
}

impl<'g, T> Node<'g, T> {
    /// What follows in a chain.
    ///
    /// # Safety
    /// A guard lives for `'g`, and the word was read while it did, of a list of such items that lives for `'g`.
    #[inline]
    pub(crate) unsafe fn after(word: Word) -> Option<Node<'g, T>> {
        // SAFETY: the caller's promise.
        unsafe { Node::behind::<true>(word) }
    }

    /// The same, where one knows whether there are sentinels.
    ///
    /// # Safety
    /// As [`Node::after`].
    #[inline(always)]
    unsafe fn behind<const SENTINELS: bool>(word: Word) -> Option<Node<'g, T>> {
        let address = word.address();
        match SENTINELS && word.is_sentinel() {
            _ if address == 0 => None,
            // SAFETY: the caller's promise; a list keeps its sentinels.
            true => Some(Node::Sentinel(unsafe { &*core::ptr::with_exposed_provenance(address) })),
            // SAFETY: the caller's promise; not zero.
            false => Some(Node::Item(unsafe { Slot::at(address) })),
        }
    }

    #[inline]
    pub(crate) fn link<F: LinkField<Item = T>>(&self) -> &'g Link {
        match self {
            Node::Item(slot) => F::link(slot.value()),
            Node::Sentinel(sentinel) => &sentinel.link.0,
        }
    }
}

/// How a walk goes on.
enum Step {
    /// Along this word, which followed.
    On(Word),
    /// Along this word, of what came before.
    Back(Word),
    Anew,
    /// Not at all: the view is stale.
    Stale,
    /// Not at all, as if nothing followed.
    End,
}

/// A chain of items by one of their links, and whether sentinels stand between them.
pub(crate) struct Chain<F: LinkField, const SENTINELS: bool> {
    pub(crate) number: ListNumber,
    items: PhantomData<F>,
}

impl<F: LinkField, const SENTINELS: bool> Chain<F, SENTINELS> {
    pub(crate) fn new(number: ListNumber) -> Self {
        Chain { number, items: PhantomData }
    }

    /// Goes from a link that never leaves the list past all nodes for which it is asked; where it stops, and the word there.
    /// None if the view is stale. The caller holds a guard for `'g`.
    #[inline]
    pub(crate) fn walk<'g>(
        &self,
        head: &'g Link,
        view: &impl View,
        mut is_past: impl FnMut(&Node<'g, F::Item>) -> bool,
    ) -> Option<(&'g Link, Word)> {
        'anew: loop {
            let mut before = head;
            let mut word = view.read(before);
            // SAFETY: guarded, and in the list when the word was read.
            while let Some(node) = unsafe { Node::behind::<SENTINELS>(word) } {
                if !is_past(&node) {
                    return Some((before, word));
                }
                let link = node.link::<F>();
                // One comparison says that it is no mark, either.
                let seen = view.peek(link);
                if seen.is_in(self.number) {
                    (before, word) = (link, seen);
                    continue;
                }
                match self.step(view, before, link, seen) {
                    Step::On(next) => (before, word) = (link, next),
                    Step::Back(next) => word = next,
                    Step::Anew => continue 'anew,
                    Step::Stale => return None,
                    Step::End => return Some((before, Word::link(self.number, 0))),
                }
            }
            return Some((before, word));
        }
    }

    /// Where a walk goes on from `before`, if the word of what followed is a mark, or of another list.
    #[cold]
    #[inline(never)]
    fn step(&self, view: &impl View, before: &Link, link: &Link, seen: Word) -> Step {
        let next = if seen.is_mark() { view.read(link) } else { seen };
        if next.is_in(self.number) {
            return Step::On(next);
        }
        if sync::mutant::planted("olf: another list is taken as the end") {
            return Step::End;
        }
        if view.is_stale() {
            return Step::Stale;
        }
        // It has gone; so has the word that led here.
        let word = view.read(before);
        if word.is_in(self.number) { Step::Back(word) } else { Step::Anew }
    }

    /// Takes all items out, of a list that no one else has: `value` reads words without marks.
    pub(crate) fn clear<'d>(&self, head: &Link, value: impl Fn(&Link) -> Word, mut each: impl FnMut(Arc<'d, F::Item>))
    where
        F::Item: Send + Sync,
    {
        let mut word = value(head);
        // SAFETY: the list has a count of each item in it, and its sentinels.
        while let Some(node) = unsafe { Node::<F::Item>::after(word) } {
            let link = node.link::<F>();
            word = value(link);
            if let Node::Item(slot) = node {
                let outcome = link.exchange(word, Word::NOWHERE);
                debug_assert!(outcome.is_ok(), "somebody uses a list that is dropped");
                // SAFETY: the list's count, which ends here. The domain lives longer than the list.
                each(unsafe { Arc::from_count(slot) });
            }
        }
    }
}
