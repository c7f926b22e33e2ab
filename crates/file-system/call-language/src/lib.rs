//! POSIX's calls as values: one language for all that makes random calls and compares what comes of them.
//!
//! ```text
//! seed ─┐
//!       ├─ Random ── Call::any, scene ──► Call ──► perform on ScaleFS, Plain, a transaction ─┐
//! bytes ┘            (draw.rs)            (calls.rs)          (perform.rs)                   ├─ Bijection::same
//!  (a fuzzer)                               └────► made on the host's tmpfs ─────────────────┘
//! ```
//! Bytes are choices one after the other, so that a fuzzer which changes a byte changes a call, and one that cuts bytes
//! off cuts calls off.
#![warn(clippy::missing_errors_doc)]
#![forbid(unsafe_code)]

mod calls;
mod data;
mod draw;
mod draw_data;
mod memory;
mod perform;
mod random;
mod shrink;

pub use calls::{Answer, Bijection, Call, GROUPS, Operation, Outcome, SHARED_GROUP, USERS, told};
pub use data::{DataOperation, NO_DESCRIPTOR, PLANTED, WINDOW_BYTES, WINDOWS, bytes};
pub use draw::{MODES, data_scene, scene};
pub use memory::{
    DESCRIPTORS, MemoryAnswer, MemoryCall, MemoryOperation, MemoryOutcome, PROCESSES, Remapped, WINDOW, WINDOW_PAGES,
    perform_memory,
};
pub use perform::perform;
pub use random::Random;
pub use shrink::shrunk;
