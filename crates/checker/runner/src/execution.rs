//! What actors need to know of a target: what they execute, how, and who does it.

use crate::place::Place;

/// Whether a call is one of those under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// Set-up, observation, clean-up: not recorded.
    None,
    /// A call under test: executed between [`crate::marker::call_begin`] and [`crate::marker::call_end`], as close around
    /// it as can be.
    Around,
}

/// The part of a target that its actors execute.
pub trait Execution: Sized {
    /// What an actor executes: plain data with room for what comes back. It stays in the actor's slot, so pointers into
    /// it are good until the slot is prepared again.
    type Operation: Default + Send + 'static;

    /// Whether the coordinator makes all calls itself: an implementation that one thread alone may use.
    const ONE_THREAD: bool = false;

    /// Who acts for a place. A target whose processes are only names has one thread per core and one coordinator, who act
    /// for all of them.
    fn actor(place: Place) -> Place {
        place
    }

    /// Executes an operation; runs on the actor, with `marks` as close around the call as possible. The number is the
    /// target's own, for `Target::finish`.
    fn execute(operation: &mut Self::Operation, marks: Marks) -> i64;
}
