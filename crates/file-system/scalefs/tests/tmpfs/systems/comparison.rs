//! Two systems that make the same calls, held against each other: every outcome, then the trees with all contents, then
//! what is left when all is removed.

use call_language::{
    Answer, Bijection, Call, DataOperation, Operation, Outcome, Random, WINDOWS, data_scene, scene, shrunk, told,
};
use scalefs::{Credentials, Kind};

use super::Systems;
use super::maps::Maps;

/// What both systems give for the call with this number in its sequence.
pub type Both<'b> = dyn Fn(usize, &Call) -> [Outcome; 2] + 'b;

/// How much of the trees could be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    All,
    /// Both systems refused a look, such as one along a path that is too long.
    Part,
}

/// What is known of two systems.
pub struct Comparison {
    names: [&'static str; 2],
    /// Which number of a file on one is which on the other.
    numbers: Bijection,
}

impl Comparison {
    /// Of two systems with these names, both empty.
    pub fn new(names: [&'static str; 2]) -> Comparison {
        Comparison { names, numbers: Bijection::default() }
    }

    fn difference(&mut self, [here, there]: &[Outcome; 2]) -> Option<String> {
        let [ours, theirs] = self.names;
        let is_same = self.numbers.same(here, there);
        (!is_same).then(|| format!("gives {} on {ours}, {} on {theirs}", told(here), told(there)))
    }

    /// Makes the calls; the first outcome that differs, if there is one.
    pub fn different_outcome(&mut self, calls: &[Call], both: &Both) -> Option<String> {
        calls.iter().enumerate().find_map(|(index, call)| {
            let outcomes = both(index, call);
            self.difference(&outcomes).map(|difference| format!("call {index} {difference}"))
        })
    }

    /// Compares what is below a directory.
    ///
    /// # Errors
    /// What differs.
    pub fn trees(&mut self, path: &str, both: &Both) -> Result<Seen, String> {
        let Ok(Answer::Names(names)) = self.look(Operation::List(path.into()), both)? else {
            return Ok(Seen::Part);
        };
        let mut seen = Seen::All;
        for (name, kind) in names {
            let below = format!("{path}/{name}");
            if self.look(Operation::Stat(below.clone(), false), both)?.is_err() {
                seen = Seen::Part;
            }
            let _ = self.look(Operation::ReadLink(below.clone()), both)?;
            if kind == Kind::Regular as u8 {
                for offset in WINDOWS {
                    let contents = DataOperation::Contents(below.clone(), offset);
                    let _ = self.look(Operation::Data(contents), both)?;
                }
            }
            if kind == Kind::Directory as u8 && self.trees(&below, both)? == Seen::Part {
                seen = Seen::Part;
            }
        }
        Ok(seen)
    }

    fn look(&mut self, operation: Operation, both: &Both) -> Result<Outcome, String> {
        let call = Call { user: 0, operation };
        let outcomes = both(0, &call);
        if let Some(difference) = self.difference(&outcomes) {
            return Err(format!("{call:?} in the end {difference}"));
        }
        let [ours, _] = outcomes;
        Ok(ours)
    }
}

/// The calls that bytes stand for; one user has all descriptors.
pub fn calls_of_bytes(bytes: &[u8]) -> Vec<Call> {
    let random = &mut Random::from_bytes(bytes);
    let user = random.below(2);
    let mut calls = [data_scene(random, user), scene(random, true)].concat();
    while !random.is_exhausted() {
        calls.push(Call::of_names_and_data(random, true, user, false));
    }
    calls
}

/// Makes the calls on a system and on `plain`; the first difference, if there is one.
pub fn difference_from_plain<S: Systems>(systems: &mut S, calls: &[Call]) -> Option<String> {
    systems.with_empty(None, Credentials::SUPERUSER, |ours| {
        Maps.with_empty(None, Credentials::SUPERUSER, |maps| {
            let both = |index: usize, call: &Call| [ours.call(index, call), maps.call(index, call)];
            let mut comparison = Comparison::new([S::NAME, Maps::NAME]);
            if let Some(difference) = comparison.different_outcome(calls, &both) {
                return Some(difference);
            }
            let _ = both(0, &Call { user: 0, operation: Operation::ChangeDirectory("/".into()) });
            let seen = comparison.trees(".", &both);
            match seen {
                Err(difference) => Some(difference),
                // What no path reaches cannot be removed by its path either.
                Ok(Seen::Part) => None,
                Ok(Seen::All) => ours.remains(),
            }
        })
    })
}

/// The fewest calls that still differ, one a line, below what differs.
pub fn report(calls: Vec<Call>, mut difference: impl FnMut(&[Call]) -> Option<String>) -> String {
    let few = shrunk(calls, |calls| difference(calls).is_some());
    let lines: Vec<String> = few.iter().map(|call| format!("  {call:?}")).collect();
    format!("{}\n{}", difference(&few).unwrap_or_default(), lines.join("\n"))
}
