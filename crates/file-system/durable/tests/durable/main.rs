//! Durable instances: what is there again, after an end, a power cut, or damage.
#![cfg(not(any(loom, shuttle)))]

mod damage;
mod disk;
mod examples;
#[cfg(fuzzing)]
mod faults;
mod kills;
mod lasting;
mod power_cuts;
mod tree;
