//! Every order of steps and moves of a small program, each state once.
//!
//! **Idea.** A run is repeated from its beginning with other choices: which domain makes the next step, or which line a cache
//! writes back, evicts or fetches. A run that comes to a state that was seen before ends there, so that the search is finite
//! also if domains look again and again. It is exhaustive if domains say what they keep between calls
//! ([`super::Domain::at_rest`]): else states that differ might look alike, or those that are alike differ.

use core::ops::Range;
use std::boxed::Box;
use std::collections::HashSet;
use std::vec::Vec;

use super::turns::Turns;
use super::{Emulated, Move};

/// One run, at its beginning.
pub struct World {
    /// The memory.
    pub memory: Emulated,
    /// What domains do; a program that finds a wrong value panics.
    pub turns: Turns,
    /// What must hold when all programs have ended.
    pub end: Box<dyn FnOnce()>,
}

/// What a search has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// States.
    pub states: usize,
    /// Runs that were begun.
    pub runs: u64,
    /// Runs in which all programs ended.
    pub ends: u64,
    /// The longest run's choices.
    pub depth: usize,
}

#[derive(Clone, Copy)]
enum Choice {
    Step(usize),
    Move(Move),
}

/// Tries all choices, with moves of these lines alone. Panics as soon as a program does.
///
/// # Panics
/// If there are more than `limit` states.
pub fn explore(begin: impl Fn() -> World, lines: Range<usize>, limit: usize) -> Explored {
    let mut seen = HashSet::new();
    let mut explored = Explored { states: 0, runs: 0, ends: 0, depth: 0 };
    // Of the run under way: how many choices there were, and which one was made.
    let mut path: Vec<(usize, usize)> = Vec::new();
    loop {
        explored.runs += 1;
        let World { memory, mut turns, end } = begin();
        let mut depth = 0;
        loop {
            let choices: Vec<Choice> = turns.running().map(Choice::Step).collect();
            if choices.is_empty() {
                end();
                explored.ends += 1;
                break;
            }
            let choices: Vec<Choice> =
                choices.into_iter().chain(memory.moves(lines.clone()).into_iter().map(Choice::Move)).collect();
            if depth == path.len() {
                if !seen.insert(memory.fingerprint()) {
                    break;
                }
                assert!(seen.len() <= limit, "more than {limit} states");
                path.push((choices.len(), 0));
            }
            match choices[path[depth].1] {
                Choice::Step(domain) => turns.step(domain),
                Choice::Move(one) => memory.make(one),
            }
            depth += 1;
        }
        explored.depth = explored.depth.max(depth);
        while let Some((count, chosen)) = path.pop() {
            if chosen + 1 < count {
                path.push((count, chosen + 1));
                break;
            }
        }
        if path.is_empty() {
            explored.states = seen.len();
            return explored;
        }
    }
}
