//! Histories that are known to have an order: a plan that runs again and again gives the same few.

use std::any::Any;
use std::cell::RefCell;

use crate::state::{State, Timed};

/// Two threads' calls overlap in few ways that differ, and return few things that do.
const MOST_KNOWN: usize = 64;

/// What a search for an order depends on: where it starts, the steps of each thread, and which of them had ended when which
/// others began.
#[derive(PartialEq)]
struct History<S: State> {
    start: S,
    steps: Vec<Vec<S::Step>>,
    had_ended: Vec<bool>,
}

thread_local! {
    /// `Vec<History<S>>` of the reference `S` that was asked about last. A test runs in one thread of the system, also where
    /// a scheduler gives it others.
    static KNOWN: RefCell<Box<dyn Any>> = RefCell::new(Box::new(()));
}

/// Whether there is an order: by what is known, or else by `search`, whose yes is then known.
pub(crate) fn has_order<S: State>(start: &S, threads: &[Vec<Timed<'_, S>>], search: impl FnOnce() -> bool) -> bool {
    let had_ended = had_ended(threads);
    let is_same = |known: &History<S>| {
        let with_these = |(known, steps): (&Vec<S::Step>, &Vec<Timed<'_, S>>)| {
            known.len() == steps.len() && known.iter().zip(steps).all(|(known, timed)| known == timed.step)
        };
        known.had_ended == had_ended
            && known.steps.len() == threads.len()
            && known.steps.iter().zip(threads).all(with_these)
            && known.start == *start
    };
    let is_known = KNOWN.with_borrow(|all| all.downcast_ref::<Vec<_>>().is_some_and(|all| all.iter().any(is_same)));
    if is_known {
        return true;
    }
    let is_found = search();
    if is_found {
        let steps = |steps: &Vec<Timed<'_, S>>| steps.iter().map(|timed| timed.step.clone()).collect();
        let history = History { start: start.clone(), steps: threads.iter().map(steps).collect(), had_ended };
        KNOWN.with_borrow_mut(|all| match all.downcast_mut::<Vec<History<S>>>() {
            Some(all) => {
                if all.len() == MOST_KNOWN {
                    all.clear();
                }
                all.push(history);
            }
            None => *all = Box::new(vec![history]),
        });
    }
    is_found
}

/// Of each step in turn, which steps had ended when it began.
fn had_ended<S: State>(threads: &[Vec<Timed<'_, S>>]) -> Vec<bool> {
    let all = || threads.iter().flatten();
    all().flat_map(|later| all().map(|earlier| earlier.ended <= later.began)).collect()
}
