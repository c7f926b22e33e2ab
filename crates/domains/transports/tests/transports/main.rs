//! Domains ask each other and notify each other, over each transport: every reply is right, and no notice is lost.

#[cfg(any(shuttle, fuzzing))]
mod faults;
mod file_system;
mod rings;
mod talk;
mod tcp;
