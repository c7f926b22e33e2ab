//! Snapshots of two lists while a thread moves items of others: what either costs under load.

use std::time::Duration;

use crate::harness::{Effort, Span, run_threads};
use crate::ours;

/// Items of each list that is read.
const ITEMS: u64 = 100;

/// Prints the quickest of some stretches: of snapshots alone, of moves alone, and of both at once.
pub fn measure(effort: Effort) {
    let (stretches, time) = effort.of((8, Duration::from_millis(50)), (1, Duration::from_millis(2)));
    let here = ours::enter();
    let read = [0, 1].map(|_| ours::sorted(&here, 0..ITEMS));
    let moved = [ours::sorted(&here, 0..2), ours::sorted(&here, [])];
    drop(here);
    let once = |threads: usize, first: usize| {
        run_threads(threads, Span::For(time), |thread| {
            let (here, read, moved) = (ours::enter(), &read, &moved);
            let (takes_snapshots, mut from) = (thread + first == 0, 0);
            move || match takes_snapshots {
                true => {
                    let (one, other) = here.snapshot(|s| (s.count(&read[0]), s.count(&read[1])));
                    assert_eq!(one + other, 2 * ITEMS as usize);
                }
                false => {
                    moved[from].move_to(&moved[1 - from], &here, &1).expect("no one else moves it");
                    from = 1 - from;
                }
            }
        })
    };
    // Again where a thread has had no processor: what it did not do has no time.
    let stretch = |threads: usize, first: usize| loop {
        let run = once(threads, first);
        if !run.contains(&0) {
            return run;
        }
    };
    let least = |runs: &[Vec<u64>], thread: usize| {
        let most = runs.iter().map(|run| run[thread]).max().expect("a stretch");
        time.as_nanos() as f64 / most as f64
    };
    let all = |threads, first| (0..stretches).map(|_| stretch(threads, first)).collect::<Vec<_>>();
    let (alone, moves_alone, together) = (all(1, 0), all(1, 1), all(2, 0));
    for (what, way, nanoseconds) in [
        (SNAPSHOT, "alone", least(&alone, 0)),
        (SNAPSHOT, "with moves", least(&together, 0)),
        ("move, of a domain", "alone", least(&moves_alone, 0)),
        ("move, of a domain", "with snapshots", least(&together, 1)),
    ] {
        println!(r#"{{"what": "{what}", "way": "{way}", "ns": {nanoseconds:.1}}}"#);
    }
}

const SNAPSHOT: &str = "snapshot of two lists of 100";
