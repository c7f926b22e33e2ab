//! Why a call of a closure did nothing.

use core::fmt;

use crate::log::Full;
use crate::word::MOST_WORDS;

/// Why a call of a closure did nothing.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There is no item with the key.
    Absent,
    /// There is an item with the key.
    Exists,
    /// The item stands in a list by this link.
    Listed,
    /// The operation needs more than eight words: split it.
    TooManyWords,
    /// A closure of this thread calls [`Here::atomically`].
    Nested,
    /// What the closure has seen is not true any more; it runs again. To be handed on.
    Again,
    /// The closure waits until an answer changes: see [`Atomic::retry`]. To be handed on.
    Retry,
}

impl fmt::Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Absent => formatter.write_str("expected an item with this key, there is none"),
            Stop::Exists => formatter.write_str("expected no item with this key, there is one; remove that first"),
            Stop::Listed => formatter.write_str("expected an item in no list, it stands in one by this link"),
            Stop::TooManyWords => write!(formatter, "expected at most {MOST_WORDS} words in one operation; split it"),
            Stop::Nested => formatter.write_str("expected no closure inside a closure; use the one that is given"),
            Stop::Again | Stop::Retry => formatter.write_str("the closure runs again; hand this on"),
        }
    }
}

impl core::error::Error for Stop {}

impl From<Full> for Stop {
    fn from(_: Full) -> Stop {
        Stop::TooManyWords
    }
}
