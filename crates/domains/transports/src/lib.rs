//! What carries messages between domains: rings in memory that is not coherent ([`Rings`]), and TCP where there is no such
//! memory ([`Tcp`]). Both give what [`messages::Transport`] asks for. Operations on several
//! domains are decided in such memory by [`domains::PoolLines`].
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod clock;
mod rings;
mod tcp;

pub use rings::{Plan, Rings};
pub use tcp::{Tcp, TcpError};
