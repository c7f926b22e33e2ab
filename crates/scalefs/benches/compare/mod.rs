//! Two systems measured in one run: their rounds alternate, so that a slow phase of the machine strikes both.

use std::time::Instant;

/// Calls of a round.
const CALLS: usize = 5000;

fn nanoseconds_per_call(mut call: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..CALLS).for_each(&mut call);
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

/// First quartile, median and third quartile.
pub fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values.len() / 4, values.len() / 2, 3 * values.len() / 4].map(|index| values[index])
}

/// Rounds of ours and of theirs in turn, as a row: medians with quartiles, and the ratio.
pub fn compare(title: &str, rounds: usize, mut ours: impl FnMut(usize), mut theirs: impl FnMut(usize)) {
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        our_times.push(nanoseconds_per_call(&mut ours));
        their_times.push(nanoseconds_per_call(&mut theirs));
    }
    let (ours, theirs) = (quartiles(our_times), quartiles(their_times));
    println!(
        "{title:<22} {:8.0} [{:.0}, {:.0}] {:8.0} [{:.0}, {:.0}] {:8.3}",
        ours[1],
        ours[0],
        ours[2],
        theirs[1],
        theirs[0],
        theirs[2],
        ours[1] / theirs[1]
    );
}
