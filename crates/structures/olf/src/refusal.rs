//! Why an item was not put into a list, or a list not made.

use core::fmt;

use crate::item::Arc;
use crate::word::MOST_LISTS;

/// Why an item was not inserted; it is given back.
#[derive(Clone)]
pub enum Refused<'d, T: Send + Sync + 'static> {
    /// There is an item with its key.
    Exists(Arc<'d, T>),
    /// It stands in a list by this link already.
    Listed(Arc<'d, T>),
}

impl<'d, T: Send + Sync + 'static> Refused<'d, T> {
    /// The item.
    pub fn into_item(self) -> Arc<'d, T> {
        match self {
            Refused::Exists(item) | Refused::Listed(item) => item,
        }
    }
}

impl<T: Send + Sync> fmt::Debug for Refused<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refused::Exists(_) => "Exists",
            Refused::Listed(_) => "Listed",
        })
    }
}

impl<T: Send + Sync> fmt::Display for Refused<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refused::Exists(_) => "expected a key that is not in the list, there is an item with it; remove that first",
            Refused::Listed(_) => "expected an item in no list, it stands in one by this link; move it instead",
        })
    }
}

impl<T: Send + Sync> core::error::Error for Refused<'_, T> {}

/// Why an item was not moved.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMoved {
    /// The list that it shall leave has no item with this key.
    Absent,
    /// The list that it shall enter has an item with this key.
    Exists,
    /// The two lists are one.
    SameList,
}

impl fmt::Display for NotMoved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NotMoved::Absent => "expected an item with this key in the first list, there is none",
            NotMoved::Exists => "expected no item with this key in the second list, there is one; remove that first",
            NotMoved::SameList => "expected two lists, got one twice; an item stays where it is by no call at all",
        })
    }
}

impl core::error::Error for NotMoved {}

/// The domain has no number for a further list: drop one, let threads maintain, or make a domain for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyLists;

impl fmt::Display for TooManyLists {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the domain has no number for a further list (at most {MOST_LISTS}); drop one and maintain")
    }
}

impl core::error::Error for TooManyLists {}
