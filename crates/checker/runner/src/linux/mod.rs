//! Linux as the system under test: operations are system calls.
//!
//! * [`operation`]: what an actor executes: a system call ([`system_call`]), an access of memory ([`access`]), steps;
//! * [`calls`]: the tables of calls; a new call is a new row;
//! * [`target`]: the target: fresh directories per window, and [`leftovers`]: what has to be removed after one;
//! * [`held`], [`reserved`]: descriptors and addresses, divided between tests and runner;
//! * [`processes`]: the actors as processes and threads, pinned;
//! * `signals`: those that tests send; [`family`]: the children that they fork;
//! * [`region`]: memory and doorbell shared with the host of the virtual machine;
//! * [`file_system`]: modules, the disk, and mounting what is under test;
//! * [`console`]: where the guest complains;
//! * [`guest`]: the life of the guest's init.

pub mod access;
pub mod calls;
pub mod console;
pub mod family;
pub mod file_system;
pub mod guest;
pub mod held;
pub mod leftovers;
pub mod operation;
pub mod processes;
pub mod region;
pub mod reserved;
mod signals;
pub mod system_call;
pub mod target;
