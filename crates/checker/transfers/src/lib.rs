#![forbid(unsafe_code)]
//! How often lines of memory go from core to core while cores make their calls again and again.
//!
//! One core repeats a call, and all others repeat another one, in equal periods and each at a random phase. Per line the
//! call is a row of events: at a moment of the period it reads the line, or writes it. An event that does not find the line
//! in its core's cache, or that must take it from others before it writes, is a *transfer*. What is computed here is the
//! expected number of them per period: exactly, over all phases, without any replay.
//!
//! ```text
//! own call     R······R··W·······R········     the line is read, read, written, read
//! other call   ····W···········R··········     at any distance from it, each as likely as any other
//! ```
//!
//! - [`event`]: events, and how much room they leave on the circle that a period is;
//! - [`protocol`]: the chance that an event is a transfer, for two ways in which caches agree;
//! - [`course`]: from accesses to bytes of several lines to events of the lines that a layout makes of them.
//! - [`coherence`]: the same counted, access by access, where a whole run of many cores is seen.
//!
//! Nothing else of a cache is looked at: neither its size nor how long a line stays away.

pub mod coherence;
pub mod course;
pub mod event;
pub mod protocol;

pub use course::{Access, Course, Kind, Part};
pub use event::Event;
pub use protocol::{Protocol, transfers, transfers_to};
