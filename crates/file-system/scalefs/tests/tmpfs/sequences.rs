//! Every sequence of a few calls over three names, on ScaleFS and on `plain`. Random calls meet most of what goes wrong in long
//! runs; a fault that takes five calls in one order on the same names is met here, or is not there.
//!
//! Of each class of sequences one is made:
//!
//! - Names are alike. The first that a sequence uses is `n0`, the next new one is `n1`.
//! - What `plain` refuses changes nothing. So sequences go on after calls that succeed; all calls that fail next are made one
//!   after the other, and the look after them would show a trace.
//!
//! Each has an empty directory of one bucket. Some hundreds share an instance, so that what one leaves in caches of counts
//! is there for the next; in the end nothing may be left. `SCALEFS_SEQUENCE_CALLS=N` makes sequences of up to N calls, and
//! `SCALEFS_SEQUENCES=3/10` the third tenth of them, by their first two calls.

use call_language::{Call, Operation, perform};
use plain::{Plain, Process};
use scalefs::names::RenameMode;
use scalefs::{Credentials, OpenFlags};

use crate::number_from_environment;
use crate::systems::Systems;
use crate::systems::comparison::{difference_from_plain, report};
use crate::systems::ours::Memory;

/// Names that sequences use.
const NAMES: usize = 3;
/// Sequences that share an instance, since to make one and to see that nothing is left costs as much as dozens.
const TOGETHER: usize = 384;
/// Sequences are divided into parts by so many calls.
const CALLS_OF_A_PART: usize = 2;
/// The longest sequences of `make test`.
const CALLS: u64 = 3;

/// All calls if so many names are in use, each with how many there are after it.
fn calls(used: usize) -> Vec<(Operation, usize)> {
    let path = |name: usize| format!("n{name}");
    let names = |used: usize| 0..NAMES.min(used + 1);
    let create = OpenFlags::WRITE | OpenFlags::CREATE;
    let mut calls = Vec::new();
    for first in names(used) {
        let used = used.max(first + 1);
        let on_one = [
            Operation::Open(path(first), create, 0o666),
            Operation::MakeDirectory(path(first), 0o777),
            Operation::Unlink(path(first)),
            Operation::RemoveDirectory(path(first)),
        ];
        calls.extend(on_one.map(|operation| (operation, used)));
        for second in names(used) {
            let used = used.max(second + 1);
            let on_two = [
                Operation::Link(path(first), path(second), false),
                Operation::Symlink(path(first), path(second)),
                Operation::Rename(path(first), path(second), RenameMode::Replace),
                Operation::Rename(path(first), path(second), RenameMode::Exchange),
            ];
            calls.extend(on_two.map(|operation| (operation, used)));
        }
    }
    calls
}

/// A state of `plain`, the calls that have led to it, and the names in use.
#[derive(Clone)]
struct Reached {
    plain: Plain,
    process: Process,
    calls: Vec<Operation>,
    used: usize,
}

impl Reached {
    /// An empty directory.
    fn start() -> Reached {
        let plain = Plain::default();
        let process = Process::new(&plain, Credentials::SUPERUSER);
        Reached { plain, process, calls: Vec::new(), used: 0 }
    }

    /// The state after one call more; `None` if it fails.
    fn after(&self, operation: Operation, used: usize) -> Option<Reached> {
        let Reached { plain, process, mut calls, .. } = self.clone();
        perform(&plain.begin(&process), &operation).ok()?;
        calls.push(operation);
        Some(Reached { plain, process, calls, used })
    }
}

/// The sequences of up to so many calls, one a class.
struct Walk<'s, S> {
    systems: &'s mut S,
    longest: usize,
    /// Which of how many parts, from 0.
    part: (usize, usize),
    /// Beginnings that a part is chosen by, so far.
    beginnings: usize,
    /// Calls of sequences that were not made yet, and how many these are.
    waiting: (Vec<Call>, usize),
    /// Classes whose calls all succeed.
    succeeding: u64,
    /// Classes with one call at their end that fails.
    failing: u64,
}

impl<S: Systems> Walk<'_, S> {
    fn of(systems: &mut S, longest: usize, part: (usize, usize)) -> Walk<'_, S> {
        Walk { systems, longest, part, beginnings: 0, waiting: (Vec::new(), 0), succeeding: 0, failing: 0 }
    }

    /// Makes all sequences; some of which one differs, if there are such.
    fn first_different(&mut self) -> Option<Vec<Call>> {
        self.below(&Reached::start()).or_else(|| self.make())
    }

    /// Makes all that begin as this one does.
    fn below(&mut self, reached: &Reached) -> Option<Vec<Call>> {
        if reached.calls.len() == CALLS_OF_A_PART {
            self.beginnings += 1;
            if self.beginnings % self.part.1 != self.part.0 {
                return None;
            }
        }
        let (mut made, mut longer) = (reached.calls.clone(), Vec::new());
        if made.len() < self.longest {
            for (operation, used) in calls(reached.used) {
                match reached.after(operation.clone(), used) {
                    Some(next) => longer.push(next),
                    None => made.push(operation),
                }
            }
        }
        self.succeeding += 1;
        self.failing += (made.len() - reached.calls.len()) as u64;
        self.add(made).or_else(|| longer.iter().find_map(|next| self.below(next)))
    }

    fn add(&mut self, sequence: Vec<Operation>) -> Option<Vec<Call>> {
        let directory = format!("d{}", self.waiting.1);
        let enter = [Operation::MakeDirectory(directory.clone(), 0o777), Operation::ChangeDirectory(directory)];
        let whole = enter.into_iter().chain(sequence).chain([Operation::ChangeDirectory("..".into())]);
        self.waiting.0.extend(whole.map(|operation| Call { user: 0, operation }));
        self.waiting.1 += 1;
        if self.waiting.1 < TOGETHER { None } else { self.make() }
    }

    /// Makes what waits; gives it back if it differs.
    fn make(&mut self) -> Option<Vec<Call>> {
        let (calls, _) = std::mem::take(&mut self.waiting);
        difference_from_plain(self.systems, &calls).is_some().then_some(calls)
    }
}

fn longest() -> usize {
    number_from_environment("SCALEFS_SEQUENCE_CALLS").unwrap_or(CALLS) as usize
}

fn part() -> (usize, usize) {
    let Ok(text) = std::env::var("SCALEFS_SEQUENCES") else { return (0, 1) };
    let numbers = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    match numbers {
        Some((part, parts)) if (1..=parts).contains(&part) => (part % parts, parts),
        _ => panic!("SCALEFS_SEQUENCES: expected a part as `3/10`, got {text:?}"),
    }
}

#[test]
fn all_short_sequences_give_the_same_on_scalefs_and_plain() {
    let memory = &mut Memory::new();
    let mut walk = Walk::of(memory, longest(), part());
    if let Some(calls) = walk.first_different() {
        panic!("{}", report(calls, |calls| difference_from_plain(memory, calls)));
    }
    println!("{} sequences of calls that succeed, {} with one at their end that fails", walk.succeeding, walk.failing);
}

/// Whether a sequence of up to so many calls differs, or ends in a panic, with the fault planted.
#[cfg(fuzzing)]
pub fn shows(fault: &'static str, longest: usize) -> bool {
    let search = || {
        sync::mutant::plant(fault);
        Walk::of(&mut Memory::new(), longest, (0, 1)).first_different().is_some()
    };
    std::panic::catch_unwind(search).unwrap_or(true)
}
