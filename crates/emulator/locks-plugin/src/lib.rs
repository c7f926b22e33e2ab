//! The lock recorder: a QEMU plugin that follows the critical sections of a program and studies them as they end.
//!
//! ```text
//! QEMU ─► callbacks ─► thread (call stack, accesses of open sections), one per virtual CPU
//!              │                      │ a section begins or ends
//!              └─ lock events ─► recorder ─► lock_study ─► report (JSON, in the end and now and then)
//! ```
//!
//! Lock events come from two sources: instructions that tell them ([`lock_annotation`]: pthread's locks through the
//! library that is loaded in front of them, and custom locks that are annotated), and atomic instructions on words that
//! behave like locks ([`program::words`]: locks that are inlined, as those of Rust's standard library).

#![cfg_attr(test, allow(dead_code))]

mod arguments;
#[cfg(not(test))]
mod install;
mod kernel;
mod program;
mod report;
