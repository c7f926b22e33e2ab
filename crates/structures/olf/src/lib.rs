//! Lists whose operations compose: an item moves from one to another so that everybody sees it in exactly one.
//!
//! **Idea.** A link is a field of the user's item, one word: what follows, and in which list. An operation on several
//! lists marks all words that it changes, decides by one word of its core (crate `commit`), and replaces the marks. Up to
//! the decision a reader of a mark sees the old state, from then on the new one; it writes nothing and waits for no
//! one.
//!
//! ```text
//! move B from L (A B C) to M (X Y):                                               readers of L     readers of M
//!   A.next (L,B) -> mark    B.next (L,C) -> mark    X.next (M,Y) -> mark          A B C            X Y
//!   core's word: undecided -> committed                                           A C              X B Y
//!   A.next mark -> (L,C)    B.next mark -> (M,Y)    X.next mark -> (M,B)          A C              X B Y
//! ```
//!
//! **No locks.** A thread that needs a marked word waits a bounded number of pauses, then revokes the operation and
//! puts the old word back. A thread that stops anywhere stops no other; only if it stops while pinned, nothing is freed
//! any more. That is obstruction-freedom with precedence: an operation that was revoked more often goes first. It is
//! not lock-freedom.
//!
//! **Items are reused at once.** The word of an item says in which list it stands, so that a reader who has lost its place
//! notices. What is freed goes through epochs (crate `epoch`).
//!
//! ```text
//! operation.rs  several words at one moment         sorted.rs  lists in the order of a key
//! word.rs       what stands in a link               map.rs     maps by hash
//! places.rs     which words of a list change        list.rs    lists in the order of insertion
//! item.rs       counts of items                     change.rs  insertion, removal, moves
//! domain.rs     what all of them share              closure.rs any operations as one
//! sleepers.rs   who waits for a change              part.rs    a part of another store's operation
//! ```
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p olf --release --test models`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(any(loom, shuttle)), no_std)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "alloc")]
mod another;
mod chain;
mod change;
mod claims;
mod closure;
mod closure_list;
mod cursor;
mod domain;
mod field;
mod find;
#[cfg(feature = "alloc")]
mod hash;
mod header;
mod held;
mod item;
mod link;
mod list;
mod list_link;
mod log;
#[cfg(feature = "alloc")]
mod map;
mod methods;
mod numbers;
mod operation;
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
mod parked;
#[cfg(feature = "alloc")]
mod part;
mod places;
mod record;
mod refusal;
mod sleepers;
mod snapshot;
mod sorted;
mod stop;
mod walk;
mod word;

pub use closure::Atomic;
pub use domain::{Domain, DomainError, Guard, Here, Limits, MOST_THREADS, TooManyThreads};
pub use field::{Keyed, LinkField, ListField};
pub use find::Collection;
#[cfg(feature = "alloc")]
pub use hash::{Mixer, Mixing};
pub use held::Held;
pub use item::{AddressTooHigh, Arc, Handle, Item, Ref, Slot};
pub use link::Link;
pub use list::List;
pub use list_link::ListLink;
#[cfg(feature = "alloc")]
pub use map::Map;
/// Makes a marker type for each field with `#[olf(link)]` or `#[olf(list)]`, as [`links!`] does. The field with `#[olf(key)]` is
/// what items are found by; `#[olf(link, name = ById, key = age)]` chooses a name, and another key.
#[cfg(feature = "derive")]
pub use olf_derive::Item;
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
pub use parked::Parked;
#[cfg(feature = "alloc")]
pub use part::{Part, Stale};
pub use refusal::{NotMoved, Refused, TooManyLists};
pub use snapshot::{Contents, Snapshot};
pub use sorted::Sorted;
pub use stop::Stop;
