//! Domains ask each other and notify each other, over each transport: every reply is right, and no notice is lost.

#[cfg(any(shuttle, fuzzing))]
mod faults;
mod file_system;
#[cfg(not(any(shuttle, fuzzing)))]
mod killed;
mod rings;
mod talk;
mod tcp;
#[cfg(not(any(shuttle, fuzzing)))]
mod two_hosts;
