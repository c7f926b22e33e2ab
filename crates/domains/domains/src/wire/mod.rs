//! How requests, replies and notices lie in messages.
//!
//! Numbers are little-endian, bytes have their length before them, a value that may be missing a byte that says so, and a
//! value of one of several kinds the byte of its kind. A message that is cut off, or has bytes left over, or a kind that there is
//! not, is no message ([`decode`] gives `None`): it is refused, no matter who sent it.

mod fields;
mod replies;
mod requests;

pub use fields::{Bytes, Field, Reader, decode, encode};
pub use replies::{GrantedPage, Listed, ListedState, NoticeKind, Obstacle, Refusal, Reply, StoredKind};
pub use requests::{Caller, Content, DescriptionState, OperationNumber, Part, Released, Request};
