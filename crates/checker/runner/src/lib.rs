//! Runs windows of test cases inside the system under test.
//!
//! A batch (`wire::batch`) is interpreted by one *coordinator*: per window it asks the [`target::Target`] for a
//! fresh state, has the set-up made, lets each call under test be made by its own *worker* on its own core, one after the
//! other in the window's order, reads the observation, and cleans up. Who executes an operation is an *actor*
//! ([`place::Place`]): each process has a *home*, which can make set-up and observation away from those cores, and one
//! worker per core. The coordinator prepares everything in the actor's [`slot::Slot`], so that an actor does nothing between the
//! marks ([`marker`]) but the call.
//!
//! The interpreter ([`window`]) is generic over the target; [`linux`] is the one that makes system calls. A target that
//! is a library brings its own operations and starts its actors as threads.

pub mod arguments;
pub mod crew;
mod emptiness;
pub mod execution;
pub mod linux;
pub mod marker;
pub mod place;
pub mod slot;
pub mod target;
pub mod window;
