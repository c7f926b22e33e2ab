//! Which field of an item is its link, and which its key: a marker type for each link.

use crate::link::Link;
use crate::list_link::ListLink;

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

/// A field of a type of items by which they stand in doubly linked lists. Made by [`links!`](crate::links).
///
/// # Safety
/// `link` gives the same link each time, and it is a field of the item itself.
pub unsafe trait ListField: 'static {
    /// The items.
    type Item: Send + Sync + 'static;

    /// The field.
    fn link(item: &Self::Item) -> &ListLink;
}

/// A link field by which items stand in the order of a key.
pub trait Keyed: LinkField {
    /// What the items are found by.
    type Key: Ord + ?Sized;

    /// The key of an item. As long as the item is listed it must not change, or items are not found; memory stays safe.
    fn key(item: &Self::Item) -> &Self::Key;
}

/// Declares a marker type for each link field of a type: `name: Item { link: field, key: field as Type }` for lists in order
/// and maps, `name: Item { list: field }` for doubly linked lists.
///
/// ```
/// pub struct Page { id: u64, by_id: olf::Link, by_age: olf::ListLink }
///
/// olf::links! {
///     /// Pages by number.
///     pub ById: Page { link: by_id, key: id as u64 }
///     /// Pages by age.
///     pub ByAge: Page { list: by_age }
/// }
/// ```
#[macro_export]
macro_rules! links {
    ($($(#[$about:meta])* $visible:vis $name:ident: $item:ty { $($fields:tt)* })*) => {$(
        $(#[$about])*
        $visible enum $name {}

        $crate::link_field! { $name: $item { $($fields)* } }
    )*};
}

/// One of [`links!`](crate::links).
#[doc(hidden)]
#[macro_export]
macro_rules! link_field {
    ($name:ident: $item:ty { list: $link:ident $(,)? }) => {
        // SAFETY: always the same field of the item.
        unsafe impl $crate::ListField for $name {
            type Item = $item;

            #[inline(always)]
            fn link(item: &$item) -> &$crate::ListLink {
                &item.$link
            }
        }
    };
    ($name:ident: $item:ty { link: $link:ident $(, key: $key:ident as $type:ty)? $(,)? }) => {
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
    };
}
