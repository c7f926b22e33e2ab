//! Memory that domains share, as its users see it.

mod discipline;
mod explored;
#[cfg(any(shuttle, fuzzing))]
mod faults;
mod logs;
mod rings;
