//! Loaded into a program in front of the C library (`LD_PRELOAD`): has its threads take turns, and says to the counter of
//! transfers whose turn it is (crate `transfer-marks`).
//!
//! ```text
//! thread 1  ── operation ──┐              ┌── operation, interrupted ─┐                          one runs at a time;
//! thread 2                 └─ operation ──┘                           └─ waits for a lock ─┐     who goes on is drawn
//! main      ── create, create, join: waits ───────────────────────────────────────────────── …
//! ```
//!
//! Of all threads one runs ([`scheduler`]). It hands over when an operation ends, when it would have to wait ([`waits`],
//! [`locks`], [`futexes`]), and where the counter interrupts it ([`interruptions`]). The seed says who goes on, so a run with the same
//! seed is the same run. Nothing of this library is measured ([`own_code`]).
//!
//! A thread that stands still for a second, since it waits in a way that is not known here, or has much to do, is interrupted by the
//! clock. Then runs may differ, and that is said.

mod futexes;
mod interruptions;
mod locks;
mod operations;
mod options;
mod own_code;
mod reason;
mod scheduler;
mod start;
mod system;
mod threads;
mod waits;
