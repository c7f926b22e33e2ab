//! What the tracer writes and what the host makes of it.
//!
//! The tracer (the QEMU plugin in `crates/emulator/mtrace-plugin`) writes a stream of records, one per *window*: one run of a
//! test's calls, each on its own core. A record holds the cache lines that two cores shared in the window. This crate
//! holds the three things that both sides must agree on, and the analysis:
//!
//! - [`rules`]: why an access may be ignored, by name;
//! - [`layout`]: the text file that tells the tracer where functions and memory areas of the traced system lie;
//! - [`record`], [`encode`], [`decode`]: the trace format (`docs/reference/trace-format.md`);
//! - [`conflict`]: from the accesses to one line to what is shared there;
//! - [`blocks`], [`loaded`]: what a program's memory consists of, and names of a program that loads libraries;
//! - [`names`], [`findings`]: its names, and windows as lists of numbered findings;
//! - [`pictures`]: the shared lines of one object, with all that each core touched of them;
//! - [`courses`]: the same in the order in which it was done.
#![forbid(unsafe_code)]

pub mod blocks;
pub mod conflict;
pub mod courses;
pub mod decode;
pub mod encode;
pub mod findings;
pub mod kallsyms;
pub mod layout;
pub mod loaded;
pub mod names;
pub mod pictures;
pub mod record;
pub mod rules;
pub mod sections;

/// Size of a cache line, the unit of sharing (x86-64: 64 bytes).
pub const LINE_BYTES: u64 = 64;
/// Size of an aligned pair of lines, which prefetchers fetch together.
pub const PAIR_BYTES: u64 = 2 * LINE_BYTES;
/// Lines begin at a multiple of [`LINE_BYTES`], or this many bytes from the start of an object that is itself aligned
/// to this only (docs/reference/trace-format.md).
pub const OBJECT_ALIGNMENT_BYTES: u64 = 8;
