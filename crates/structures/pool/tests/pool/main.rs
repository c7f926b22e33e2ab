//! Memory that domains share, as its users see it.

mod coherent;
mod cxl0;
mod discipline;
mod explored;
#[cfg(any(shuttle, fuzzing))]
mod faults;
#[cfg(not(shuttle))]
mod files;
mod logs;
mod rings;
