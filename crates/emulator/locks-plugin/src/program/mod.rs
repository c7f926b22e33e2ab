//! Locks of a program under `qemu-x86_64`.

mod addresses;
#[cfg(not(test))]
mod callbacks;
mod death;
mod instruction;
mod names;
mod recorder;
mod thread;
mod thread_stacks;
mod words;

pub use addresses::Mapping;

#[cfg(not(test))]
pub use callbacks::install;
