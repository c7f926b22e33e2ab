//! Messages between domains: cores, sockets or hosts that are coherent in themselves and share no coherent memory.
//!
//! **Idea.** A [`Transport`] carries bytes from one domain to another, in a ring for each pair of domains and each of four
//! [`Class`]es. An [`Endpoint`] makes of these what servers and clients want: requests whose replies have their place before
//! they are asked, notices that cannot be lost, and posts that no one waits for.
//!
//! ```text
//! client ── request ──► ring of Class::Requests ──► server          a request has reserved its reply's place:
//!        ◄── reply ──── ring of Class::Replies  ◄──                 to answer never waits
//! client ── prepare ──► ring of Class::Prepares ──► server          ahead of all requests
//! owner  ── notice ───► ring of Class::Notices  ──► who was answered    without room: "forget all of mine"
//! ```
//!
//! **Why nothing deadlocks.** A domain that serves a message never waits: its reply has a place, a notice always finds one,
//! a post waits in the domain's own memory. A domain that waits for a reply, or for room for a request, serves what comes
//! in the meantime. So every domain that waits takes messages out of all its rings, each ring gets room, and each
//! request is answered.
//!
//! **Transports.** [`simulated`] is one of virtual time, repeatable from a seed. Rings in memory that is not coherent, and
//! connections between machines, are others; [`Transport`] says what each must give.
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod counts;
mod endpoint;
pub mod simulated;
mod transport;

pub use counts::Counts;
pub use endpoint::{Asked, Came, Endpoint, NOTICE_FORGET_ALL, ReplyTooLong, Ticket};
pub use transport::{CLASSES, Class, DomainNumber, LINE_BYTES, SendError, Step, Transport};
