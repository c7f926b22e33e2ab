//! Local datagram sockets: messages arrive whole, in their order or in any.
//!
//! **Idea** (sv6's notification sockets, section 7.3 of the paper). A socket that promises an order has one ring: its senders
//! meet at the ring's tail, its receivers at the head. A socket that promises none has a ring for each core. Who sends puts
//! the message into the ring of its own core. Who receives looks into that ring first, then into the others.
//!
//! ```text
//! Socket ─► Endpoint │ order, peer │ gone │ references │ own name │ lane 0 │ lane 1 │ ...          a line for each lane
//!                                                                   └► Ring │ head side │ tail side │ 16 slots ─► pages
//! ```
//!
//! ```text
//! send:     ring of this core (of order: the one ring) has no free slot → WouldBlock;   fill the slot, tell
//! receive:  own ring, then each other one: a message → take it
//!           none: look at all rings again;  nothing was sent since → WouldBlock, else start again
//! ```
//!
//! **Nothing is overlooked.** A receiver visits the rings one after the other. A message may come into a ring that it has
//! left while another is taken from the one where it goes next. So a receiver that found nothing looks again at each ring
//! whether anything was sent since: if not, all of them were empty at the end of the first look.
//!
//! **Pushing back.** A ring has 16 slots, and a full one refuses, as a full socket does in Linux. Of an unordered socket that
//! is the sender's own ring: other cores may still send. A ring's messages stay where they are if its core goes off-line:
//! all receivers look there.
//!
//! **Names** are those of Linux's abstract namespace (unix(7)): a name lasts as long as the socket that is bound to it.
//!
//! **Lives.** A socket is referred to by its handle, by its peer, and by its name. References are counted per core (crate
//! `refcache`). A call takes none: an endpoint is freed only after every core has maintained, which none does in a call.
//! Closing raises a flag that senders look at, on a line that nothing else writes. The sockets of a file system use its epochs,
//! counts and pages, and are maintained with it ([`Foundation`]).
//!
//! **Lock order**: the bucket of a name; then an endpoint's own name (205); then a side of a ring (210).
//!
//! **Death of a process** leaves the lock of a side, and the core's note of the endpoint that it works on:
//! [`Sockets::repair_taken_over`]. A message is sent, or taken, by one store to its slot. Lost are at most a page and a ring
//! that were on their way into their place; a socket whose making or closing a process did not survive stays for ever.
//!
//! **Cost**: send and receive an exchange each on lines of the ring, and a copy. Memory: a line per core for each unordered
//! socket; 2 KiB for each ring that was used, and a page for each of its slots that was.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(shuttle), no_std)]

mod endpoint;
mod ring;
mod sockets;

pub use endpoint::{ENDPOINT, KIND_ENDPOINT};
pub use posix_calls::{
    MAX_MESSAGE_BYTES, MAX_SOCKET_NAME_BYTES as MAX_NAME_BYTES, Received, SocketName as Name, SocketOrder as Order,
};
pub use ring::{RING, SLOT_COUNT};
pub use sockets::{Foundation, Socket, SocketError, Sockets, SocketsConfig};

/// Where everything is in a socket, in this build.
pub const LAYOUT: percpu::Layout =
    <endpoint::Endpoint as percpu::ArenaObject>::LAYOUT.and_layout(<ring::Ring as percpu::ArenaObject>::LAYOUT);
