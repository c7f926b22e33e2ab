//! What travels between the checker and a runner: a *batch* of windows to run, and the *results* that came.
//!
//! A batch holds whole test cases (set-up, calls, observation) and a list of windows, each a test and an order of its
//! calls. The runner needs nothing else and keeps nothing: it interprets the batch over its target and writes one record
//! per window, in the order of the batch. Both are self-describing: a call is named by text, once per batch, so that a
//! call can be added to a runner without a change of the format; what a target does not know, it refuses by name.
//!
//! * [`value`]: the values of arguments and results, "Values" of `docs/reference/test-cases.md`;
//! * [`batch`], [`results`]: the two documents and their binary form (little endian, length-prefixed, one version number
//!   each); decoding is strict, bounded, and never panics;
//! * [`plan`]: a batch as a runner reads it;
//! * [`case`]: a test case read from its JSON line;
//! * [`judge`]: whether what came is among what is acceptable.
#![forbid(unsafe_code)]

pub mod batch;
mod bytes;
pub mod case;
pub mod errno;
pub mod judge;
pub mod plan;
pub mod results;
pub mod signal;
pub mod value;

pub use bytes::WireError;
