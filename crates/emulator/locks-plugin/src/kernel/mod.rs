//! Locks of a Linux kernel in a machine under `qemu-system-x86_64`, all virtual CPUs in one thread of the emulator.
//!
//! The kernel's own symbols tell where locks are taken and released ([`functions`]), its types and the guest's memory tell
//! what a lock is a part of ([`names`]). Registers are not seen: a lock is known by the memory that the atomic instruction
//! of its function touches, a task by the place that the task switch loads its stack pointer from.

#[cfg(not(test))]
mod callbacks;
mod context;
mod functions;
mod instruction;
mod names;
mod recorder;
mod report;

#[cfg(not(test))]
pub use self::{
    callbacks::{CPU_LIMIT, install},
    functions::Functions,
    names::KernelNames,
    recorder::Recorder,
};
