//! Messages in virtual time: all domains in one thread, repeatable from a seed.
//!
//! **Idea.** Each domain has a clock, which what it does advances ([`Latencies`]). A message is there at the time at which its
//! sender had sent it. A domain may only look into its rings when no other has an earlier clock: what comes before that time
//! has come, and nothing can come any more. So the domain with the earliest clock goes on, and hands over when it would look.
//!
//! ```text
//! domain 0  ──────────────■ sends at 400            clocks at the moment: 400, 350, 900
//! domain 1  ─────────■ would look at 350            goes on: has the earliest
//! domain 2  ────────────────────────────■ at 900    does not look before both others have come to 900
//! ```
//!
//! Domains are coroutines ([`simulate`]), or none at all: then waiting means to let others serve ([`Served`]), and
//! time says little.
//!
//! **Disorder.** A seed lengthens steps and lets domains pause at random ([`Disorder`]), which makes one schedule of
//! another.

mod latencies;
mod network;
mod queues;
mod transport;
mod world;

pub use latencies::{KNOWN_MACHINES, Latencies, LatencyError};
pub use network::{Disorder, Network, RingSizes, Spent};
pub use transport::{Served, Simulated};
pub use world::{Stall, simulate};
