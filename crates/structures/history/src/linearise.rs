//! Whether an order of concurrent calls explains what they returned (Wing and Gong's search, with points that failed
//! remembered).
//!
//! A call is one step of the reference, or, where POSIX or Linux does not make it atomic, several: each happens at some
//! moment between the call's begin and its end, in their order. That is how a relaxed specification is written down. What
//! goes before a step and is seen by no one, a walk along a path for instance, happens at moments of its own.

use std::collections::HashSet;
use std::fmt::Debug;

use crate::known::has_order;
use crate::state::{Event, State, Timed};

fn timed<S: State>(event: &Event<S::Step>) -> impl Iterator<Item = Timed<'_, S>> {
    event.steps.iter().map(|step| Timed { step, began: event.began, ended: event.ended })
}

/// Whether the threads' events, each thread's in order, can have happened from this state on. Histories of which this was
/// found a moment ago are not searched again.
pub fn is_linearisable<S: State>(threads: &[Vec<Event<S::Step>>], start: &S) -> bool {
    // Steps, flat: which event each belongs to does not matter but for its times.
    let threads: Vec<Vec<_>> = threads.iter().map(|events| events.iter().flat_map(timed::<S>).collect()).collect();
    has_order(start, &threads, || search(&threads, (vec![0; threads.len()], start.clone()), &mut HashSet::new()))
}

/// Lets nothing pass that [`is_linearisable`] does not explain.
///
/// # Panics
/// Without an order; then what happened is printed: by `calls`, and the steps of each event, in the order in which they
/// began.
pub fn expect_order<S: State<Step: Debug>>(
    round: u64,
    threads: &[Vec<Event<S::Step>>],
    start: &S,
    calls: impl FnOnce() -> String,
) {
    assert!(is_linearisable(threads, start), "no order explains round {round}:\n{}{}", calls(), told(threads));
}

fn told<S: Debug>(threads: &[Vec<Event<S>>]) -> String {
    let numbered =
        threads.iter().enumerate().flat_map(|(thread, events)| events.iter().map(move |event| (thread, event)));
    let mut lines: Vec<_> = numbered
        .map(|(thread, Event { steps, began, ended })| match ended {
            &u64::MAX => (*began, format!("in the end {steps:?}\n")),
            _ => (*began, format!("{began:3} to {ended:3} thread {thread} {steps:?}\n")),
        })
        .collect();
    lines.sort_by_key(|(began, _)| *began);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Where a search stands: steps done per thread, and the state.
type Point<S> = (Vec<usize>, S);

fn search<S: State>(threads: &[Vec<Timed<'_, S>>], point: Point<S>, failed: &mut HashSet<Point<S>>) -> bool {
    let (done, state) = &point;
    let heads = threads.iter().zip(done).filter_map(|(steps, done)| steps.get(*done));
    let Some(first_end) = heads.map(|head| head.ended).min() else {
        return true;
    };
    if failed.contains(&point) {
        return false;
    }
    for (thread, steps) in threads.iter().enumerate() {
        let Some(Timed { step, .. }) = steps.get(done[thread]).filter(|head| head.began < first_end) else {
            continue;
        };
        let (mut further, mut after) = (done.clone(), state.clone());
        further[thread] += 1;
        if after.take(thread, step) {
            if search(threads, (further, after), failed) {
                return true;
            }
            if S::only_looks(step) {
                // If it may look later, it may now: no other order has to be tried.
                break;
            }
        }
        let nearer = state.come_nearer(thread, step);
        if nearer.is_some_and(|nearer| search(threads, (done.clone(), nearer), failed)) {
            return true;
        }
    }
    failed.insert(point);
    false
}
