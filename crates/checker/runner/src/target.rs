//! What a system under test brings to the interpreter.

use std::fmt;

use wire::results::ResultsWriter;

use crate::arguments::Arguments;
use crate::crew::Crew;
pub use crate::execution::{Execution, Marks};
use crate::place::{PROCESS_LIMIT, Place};

/// A call that a target knows. Its name alone does not tell it: interfaces have calls of one name with other parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// The name, as in the interface.
    pub name: &'static str,
    /// Names of the parameters.
    pub parameters: &'static [&'static str],
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}({})", self.name, self.parameters.join(", "))
    }
}

/// The processes of a window, each with an actor that can do for it what belongs to no call: the coordinator for process
/// 0, else a worker that the window needs anyway, since the other homes are slow to wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agents([Option<Place>; PROCESS_LIMIT]);

impl Agents {
    /// Adds a process with its actor, unless it has one already.
    pub fn add(&mut self, place: Place) {
        self.0[place.process()].get_or_insert(place);
    }

    /// The actors, by process.
    pub fn iter(self) -> impl Iterator<Item = Place> {
        self.0.into_iter().flatten()
    }
}

/// A system under test. Errors are texts for people: the window is then reported as not run.
pub trait Target: Execution {
    /// Whether the author of an adapter promises that [`Target::fresh`] gives an empty state: then it is looked at now and
    /// then.
    const FRESH_IS_PROMISED: bool = false;

    /// The calls that the target knows; an index into this list names a call below.
    fn signatures(&self) -> &[Signature];

    /// A window of a test begins, whose calls under test are made in this order; `test` gives a number that is the same in all
    /// windows of the test, and another one in those of most others.
    fn begin_window(&mut self, _order: &[u8], _test: impl FnOnce() -> u64) {}

    /// Makes a fresh, empty state for a window in which nothing but `calls` are made. It shares nothing with earlier
    /// windows that a caller could tell.
    ///
    /// # Errors
    /// The state cannot be made.
    fn fresh(
        &mut self,
        crew: &mut Crew<Self>,
        agents: Agents,
        calls: impl Iterator<Item = usize>,
    ) -> Result<(), String>;

    /// The fresh state was looked at and removed; the window begins again, as if that had not been.
    fn begin_again(&mut self) {}

    /// Who makes a call of the set-up or observation; `worker` is a worker of the same process.
    fn place(&self, call: usize, home: Place, worker: Place) -> Place;

    /// Turns a call that `place` will make into an operation. Remembers what [`Target::clean`] needs.
    ///
    /// # Errors
    /// An argument of the wrong kind or out of range.
    fn prepare(
        &mut self,
        operation: &mut Self::Operation,
        place: Place,
        call: usize,
        arguments: &Arguments<'_>,
    ) -> Result<(), String>;

    /// All calls under test are prepared, and none is made; `places` says who makes them. Here is what belongs into the
    /// window before them: transactions begin.
    ///
    /// # Errors
    /// It cannot be done.
    fn begin_calls(&mut self, _crew: &mut Crew<Self>, _places: &[Place]) -> Result<(), String> {
        Ok(())
    }

    /// All calls under test were made, with these numbers as results. Here is what belongs after them, though not into
    /// the window: transactions end. Bit *i* of what is returned: the transaction of call *i* was aborted, and the call
    /// made again.
    ///
    /// # Errors
    /// It cannot be done.
    fn end_calls(&mut self, _crew: &mut Crew<Self>, _places: &[Place], _results: &mut [i64]) -> Result<u8, String> {
        Ok(0)
    }

    /// Why the window that has just failed asks for what is not offered, if it does: then it says nothing of its test.
    fn not_offered(&mut self) -> Option<String> {
        None
    }

    /// Writes what came back as the call's result, one value, and does what belongs to the call but not into the window.
    ///
    /// # Errors
    /// The target did what it never should.
    fn finish(
        &mut self,
        crew: &mut Crew<Self>,
        place: Place,
        call: usize,
        result: i64,
        results: &mut ResultsWriter,
    ) -> Result<(), String>;

    /// Removes the state.
    ///
    /// # Errors
    /// The state cannot be removed.
    fn clean(&mut self, crew: &mut Crew<Self>, agents: Agents) -> Result<(), String>;
}
