//! Linux as the system under test: operations are system calls.
//!
//! * [`operation`]: one prepared system call, and its execution between the marks;
//! * [`calls`]: the table of calls; a new call is a new row;
//! * [`directory`]: the target: a fresh directory per window;
//! * [`processes`]: the actors as processes and threads, pinned;
//! * [`region`]: memory and doorbell shared with the host of the virtual machine;
//! * [`guest`]: the life of the guest's init.

pub mod calls;
pub mod directory;
pub mod guest;
pub mod operation;
pub mod processes;
pub mod region;
