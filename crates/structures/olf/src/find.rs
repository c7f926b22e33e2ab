//! What lists in order and maps have in common: a key has one place.

use crate::domain::{Domain, Guard, Here};
use crate::field::{Keyed, LinkField};
use crate::item::Slot;
use crate::link::Link;
use crate::operation::View;
use crate::word::{ListNumber, Word};

/// The items of a collection.
pub type ItemOf<'d, C> = <<C as Find<'d>>::Field as LinkField>::Item;
/// Their keys.
pub type KeyOf<'d, C> = <<C as Find<'d>>::Field as Keyed>::Key;

/// Lists and maps of a domain whose items stand in them by a key: [`Sorted`](crate::Sorted), [`Map`](crate::Map).
pub trait Collection<'d>: Find<'d> {}

impl<'d, C: Find<'d>> Collection<'d> for C {}

/// Where a key stands in a collection, or would stand.
pub struct Place<'g, T> {
    pub(crate) before: &'g Link,
    /// The word of `before`.
    pub(crate) word: Word,
    /// The item with the key.
    pub(crate) found: Option<&'g Slot<T>>,
}

/// How the crate itself looks into a collection.
pub trait Find<'d> {
    /// By which link items stand in it, and by which key.
    type Field: Keyed;

    #[doc(hidden)]
    fn domain(&self) -> &'d Domain;

    #[doc(hidden)]
    fn number(&self) -> ListNumber;

    /// The place of a key, as it is seen in a view; none if that is stale. For those who hold a guard.
    #[doc(hidden)]
    fn find_in(&self, view: &impl View, key: &KeyOf<'d, Self>) -> Option<Place<'_, ItemOf<'d, Self>>>;

    /// The place of a key. What it holds is valid while the guard lives.
    #[doc(hidden)]
    #[inline]
    fn find<'g>(&'g self, _guard: &'g Guard<'_>, key: &KeyOf<'d, Self>) -> Place<'g, ItemOf<'d, Self>> {
        self.find_in(self.domain(), key).expect(NEVER_STALE)
    }

    #[doc(hidden)]
    #[inline]
    fn expect_of(&self, here: &Here<'d>) {
        assert!(core::ptr::eq(self.domain(), here.domain), "the list belongs to another domain");
    }
}

/// Of a domain as a view.
pub(crate) const NEVER_STALE: &str = "words as they are";
