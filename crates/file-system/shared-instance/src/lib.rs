//! An instance of ScaleFS in memory that all processes of a tree map at one address.
//!
//! ```text
//! BASE ─► Control: what all must know, and a seat per process │ arena: names, inodes │ pages: data
//! ```
//! All three lie in one file in memory (`memfd_create`), which is mapped as a whole: every pointer in it leads into it.
//!
//! **Seats.** Each process of the host has one, with the name under which it claims cores ([`percpu::OwnerId`]), which no other
//! process of the instance has or had. A parent takes the seat of its child before it forks, so that who dies at whichever
//! moment has a name under which what it had is taken over ([`take_over`]).
//!
//! Processes that map the memory trust each other: any of them can change all of it.
#![no_std]
#![warn(clippy::missing_errors_doc)]

#[cfg(feature = "std")]
extern crate std;

#[cfg(all(feature = "std", target_os = "linux"))]
mod burials;
mod code;
mod control;
mod deaths;
#[cfg(all(feature = "std", target_os = "linux"))]
mod made;
mod mappings;
mod seats;
#[cfg(all(feature = "std", target_os = "linux"))]
mod watch;

pub use code::{Code, CodeOf};
pub use control::{ARENA, AttachError, BASE, Control, Descriptors, Sizes};
pub use deaths::take_over;
#[cfg(all(feature = "std", target_os = "linux"))]
pub use made::{MakeError, NotInspected, SharedInstance};
pub use mappings::{Mapped, Mapping, Mappings};
pub use seats::{Entry, Seat, Seats};
#[cfg(all(feature = "std", target_os = "linux"))]
pub use watch::{Lock, duplicate, lock, peer, watch};
