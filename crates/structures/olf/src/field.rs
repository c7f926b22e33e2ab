//! Which field of an item is its link, and which its key: a marker type for each link.

use crate::link::Link;

/// A link field of a type of items. Made by [`links!`](crate::links).
///
/// # Safety
/// `link` gives the same link each time, and it is a field of the item itself.
pub unsafe trait LinkField: 'static {
    /// The items.
    type Item: Send + Sync + 'static;

    /// The field.
    fn link(item: &Self::Item) -> &Link;
}

/// A link field by which items stand in the order of a key.
pub trait Keyed: LinkField {
    /// What the items are found by.
    type Key: Ord + ?Sized;

    /// The key of an item. As long as the item is listed it must not change, or items are not found; memory stays safe.
    fn key(item: &Self::Item) -> &Self::Key;
}

/// Declares a marker type for each link field of a type: `name: Item { link: field }`, and `key: field as Type` for lists
/// in order and maps.
///
/// ```
/// pub struct Page { id: u64, by_id: olf::Link, by_age: olf::Link, age: u64 }
///
/// olf::links! {
///     /// Pages by number.
///     pub ById: Page { link: by_id, key: id as u64 }
///     /// Pages by age.
///     pub ByAge: Page { link: by_age, key: age as u64 }
/// }
/// ```
#[macro_export]
macro_rules! links {
    ($($(#[$about:meta])* $visible:vis $name:ident: $item:ty { link: $link:ident $(, key: $key:ident as $type:ty)? $(,)? })*) => {$(
        $(#[$about])*
        $visible enum $name {}

        // SAFETY: always the same field of the item.
        unsafe impl $crate::LinkField for $name {
            type Item = $item;

            #[inline(always)]
            fn link(item: &$item) -> &$crate::Link {
                &item.$link
            }
        }

        $(impl $crate::Keyed for $name {
            type Key = $type;

            #[inline(always)]
            fn key(item: &$item) -> &$type {
                &item.$key
            }
        })?
    )*};
}
