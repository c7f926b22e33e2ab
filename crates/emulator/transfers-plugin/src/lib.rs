//! Counts how often lines go from core to core in a program that plays many cores in one thread, or whose threads take turns.
//!
//! ```text
//! QEMU ─► callbacks ─► counter: whose turn it is, call stacks, caches (crate `transfers`) ─► report (JSON, at the end)
//!              │ marks ──┘
//! ```
//!
//! The program says by marks ([`mark`]) which core's turn it is and in which kind of work; every access that it makes in
//! between is that core's. So any number of cores needs one processor, and the same program gives the same counts.

#![cfg_attr(test, allow(dead_code))]

mod counter;
mod instruction;
mod mark;
mod report;

// What needs QEMU's functions is not part of the unit tests' executable, which could not be linked; it is tested with
// QEMU, in tests/.
#[cfg(not(test))]
mod callbacks;
#[cfg(not(test))]
mod install;
