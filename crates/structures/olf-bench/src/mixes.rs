//! A list of 100 items under mixes of reads and changes, as in table 8.4 of the thesis: the time of an operation times the
//! number of threads.

use crate::harness::{Comparison, Effort, Span, ThreadedWay, compare_threads, run_threads};
use crate::random::Random;
use crate::reclaim::{Deferred, Hazards};
use crate::sets::Set;
use crate::{harris_michael, ours, spin};

/// Items, of twice as many keys.
const ITEMS: u64 = 100;

pub fn measure(effort: Effort) {
    for (what, ways) in comparisons() {
        compare_threads(effort, &what, &[1, 2], &ways);
    }
}

/// What is measured, each with its ways.
pub fn comparisons() -> impl Iterator<Item = Comparison> {
    [0, 10, 100].into_iter().map(|changes| {
        let make = || ours::sorted(&ours::enter(), []);
        let ways = vec![
            mixed("olf", make, changes),
            mixed("spin lock", spin::List::new, changes),
            mixed("Harris-Michael, hazard pointers", harris_michael::List::<Hazards>::new, changes),
            mixed("Harris-Michael, deferred", harris_michael::List::<Deferred>::new, changes),
        ];
        (format!("list of 100, {changes} % changes"), ways)
    })
}

fn mixed<S: Set>(name: &'static str, make: impl Fn() -> S + 'static, changes: u64) -> ThreadedWay<'static> {
    let run = move |threads: usize, span: Span| {
        let list = make();
        let mut local = list.local();
        (0..ITEMS).for_each(|key| assert!(list.insert(&mut local, 2 * key)));
        drop(local);
        let list = &list;
        run_threads(threads, span, |thread| {
            let (mut local, mut random) = (list.local(), Random::new(thread));
            move || {
                let (key, chance) = (random.below(2 * ITEMS), random.below(200));
                // As many insertions as removals, so that half of the keys stay there.
                if chance >= 2 * changes {
                    list.contains(&mut local, key);
                } else if chance % 2 == 0 {
                    list.insert(&mut local, key);
                } else {
                    list.remove(&mut local, key);
                }
            }
        })
    };
    (name, Box::new(run))
}
