//! One file system over several domains, held against `plain`, with its caches, its messages and its decisions.
//!
//! `DOMAINS_CALLS=N` makes N random calls of each kind (3,000 if it is not set), `DOMAINS_SEED=N` starts with another sequence.

mod bad_input;
mod close_to_open;
mod histories;
mod lending;
mod memory;
mod noise;
mod random;
#[allow(dead_code, reason = "histories of ScaleFS make more calls than those here")]
#[path = "../../../../file-system/scalefs/tests/reference/mod.rs"]
mod reference;
mod round_trips;
mod sharing;
mod spread;
#[allow(dead_code, reason = "the comparison is ScaleFS's too, and here are no two cores")]
#[path = "../../../../file-system/scalefs/tests/tmpfs/systems/mod.rs"]
mod systems;
#[allow(dead_code, reason = "histories of ScaleFS look at more than those here")]
#[path = "../../../../file-system/scalefs/tests/walks/mod.rs"]
mod walks;
