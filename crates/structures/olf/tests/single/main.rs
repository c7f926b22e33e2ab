//! Lists and maps in one thread: what they hold, what they refuse, and when items end.
#![cfg(not(any(loom, shuttle)))]

mod list;
mod map;
mod snapshot;
mod sorted;
