//! Locks of a program under `qemu-x86_64`.

mod addresses;
#[cfg(not(test))]
mod callbacks;
#[cfg(not(test))]
mod death;
mod instruction;
mod names;
mod recorder;
mod signals;
mod span;
mod thread;
mod thread_stacks;
mod words;

pub use addresses::Mapping;

#[cfg(not(test))]
pub use callbacks::install;
