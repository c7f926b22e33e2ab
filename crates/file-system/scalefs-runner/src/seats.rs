//! On which of the cores that the seed has chosen each call of a window is made.
//!
//! A test's calls stand in one order, and so would its cores: two equal calls would always lie side by side, and a call that
//! stands last never on the first core. Sharing may depend on that, as on a core's number or on who else has its part of a
//! line. So who acts as which core changes with the order of a window and with the test, and is the same whenever that
//! order of that test runs: a finding has to stand in most windows of one order.

use runner::place::CORE_LIMIT;

/// By worker: whose core its thread acts as in a window, a permutation of the first `workers`.
///
/// All orders of one test have all permutations, as far as it has as many calls as there are workers; which order has
/// which, `test` says.
pub fn seats(order: &[u8], test: u64, workers: usize) -> [usize; CORE_LIMIT] {
    let all: usize = (1..=workers).product();
    let mut left: Vec<usize> = (0..workers).collect();
    let mut number = (rank(order) + (test % all as u64) as usize) % all;
    let mut seats = std::array::from_fn(|worker| worker);
    for (worker, seat) in seats.iter_mut().enumerate().take(workers) {
        let following: usize = (1..workers - worker).product();
        *seat = left.remove(number / following);
        number %= following;
    }
    seats
}

/// Which permutation of its length this is, in the order of dictionaries.
fn rank(order: &[u8]) -> usize {
    let smaller = |place: usize| order[place + 1..].iter().filter(|other| **other < order[place]).count();
    (0..order.len()).fold(0, |rank, place| rank * (order.len() - place) + smaller(place))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ORDERS: [[u8; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

    #[test]
    fn orders_have_ranks() {
        assert_eq!(ORDERS.map(|order| rank(&order)), [0, 1, 2, 3, 4, 5]);
        assert_eq!((rank(&[]), rank(&[0]), rank(&[1, 0]), rank(&[3, 2, 1, 0])), (0, 0, 1, 23));
    }

    #[test]
    fn the_orders_of_a_test_put_each_call_on_each_core() {
        for test in [0, 5, u64::MAX] {
            let all: BTreeSet<_> = ORDERS.iter().map(|order| seats(order, test, 3)).collect();
            assert_eq!(all.len(), 6, "test {test}");
        }
        assert_eq!(seats(&[0, 1], 0, 2)[..2], [0, 1]);
        assert_eq!(seats(&[1, 0], 0, 2)[..2], [1, 0]);
        assert_eq!(seats(&[1, 0], 1, 2)[..2], [0, 1], "another test has the other first");
    }

    #[test]
    fn seats_are_those_of_the_workers() {
        for workers in 1..=CORE_LIMIT {
            for test in 0..30 {
                let found = seats(&[1, 0], test, workers);
                let mut sorted = found;
                sorted.sort_unstable();
                assert_eq!(sorted, std::array::from_fn(|worker| worker), "{workers} workers");
                assert_eq!(&found[workers..], &sorted[workers..], "{workers} workers");
            }
        }
    }
}
