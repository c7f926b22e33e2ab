//! Plans: drawn, or all of a kind.

use std::fmt::Debug;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::rounds::{is_asked_for, is_long};

/// Plans for this many threads of calls of one to three kinds, at most this many each. Where all kinds are drawn at
/// once, two of one kind hardly meet ("swarm testing": Groce et al., ISSTA 2012).
pub fn of_few_kinds<C: Clone + Debug, K: PartialEq>(
    calls: impl Strategy<Value = C>,
    kind: impl Fn(&C) -> K + Clone,
    threads: usize,
    most: usize,
) -> impl Strategy<Value = Vec<Vec<C>>> {
    (vec(calls, 20 * threads), 1..=3_usize).prop_map(move |(calls, kind_count)| {
        let mut kinds = Vec::new();
        for call in &calls {
            if kinds.len() < kind_count && !kinds.contains(&kind(call)) {
                kinds.push(kind(call));
            }
        }
        let mut plan = std::vec::from_elem(Vec::new(), threads);
        let chosen = calls.into_iter().filter(|call| kinds.contains(&kind(call)));
        for (number, call) in chosen.take(threads * most).enumerate() {
            plan[number % threads].push(call);
        }
        plan
    })
}

/// Plans of two or three calls in all, of two threads or three, and of a call with two of which the first comes again:
/// what changes and changes back. To be overtaken ([`overtake`](crate::overtake)).
pub fn of_few_calls<C: Clone + Debug>(calls: impl Strategy<Value = C>) -> impl Strategy<Value = Vec<Vec<C>>> {
    // Which of three calls each thread makes.
    let shapes: &[&[&[usize]]] = &[
        &[&[0], &[1]],
        &[&[0], &[1, 2]],
        &[&[0], &[1, 2]],
        &[&[0, 1], &[2]],
        &[&[0], &[1], &[2]],
        &[&[0], &[1, 2, 1]],
    ];
    (vec(calls, 3), proptest::sample::select(shapes)).prop_map(|(calls, shape)| {
        shape.iter().map(|thread| thread.iter().map(|call| calls[*call].clone()).collect()).collect()
    })
}

/// Every two of these calls, one of each of two threads.
pub fn pairs<C: Clone>(calls: &[C]) -> impl Iterator<Item = Vec<Vec<C>>> {
    let with = |(place, first): (usize, &C)| {
        calls[place..].iter().map(|second| vec![vec![first.clone()], vec![second.clone()]]).collect::<Vec<_>>()
    };
    calls.iter().enumerate().flat_map(with)
}

/// Each of these calls with every two of another thread, to be overtaken by both
/// ([`overtake_first`](crate::overtake_first)).
pub fn beside_two<C: Clone>(calls: &[C]) -> impl Iterator<Item = Vec<Vec<C>>> {
    let two = |first: &C| calls.iter().map(|second| vec![first.clone(), second.clone()]).collect::<Vec<_>>();
    let beside = move |call: &C| {
        let call = vec![call.clone()];
        calls.iter().flat_map(two).map(move |two| vec![call.clone(), two]).collect::<Vec<_>>()
    };
    calls.iter().flat_map(beside)
}

/// Of one call of each of two threads: first the one and then the other is to be overtaken ([`overtake_first`](crate::overtake_first))
/// by the other call and looks of its thread, which show what the first is in the middle of.
pub fn and_look<C: Clone>(pair: &[Vec<C>], looks: &[C]) -> [Vec<Vec<C>>; 2] {
    [(0, 1), (1, 0)].map(|(first, second)| vec![pair[first].clone(), [&pair[second], looks].concat()])
}

/// Whether a plan of this number is run even if calls of it commute: those may still share memory.
pub fn is_sample(number: u64) -> bool {
    number.is_multiple_of(4)
}

/// Those of these plans in which no call commutes with all others ([`no_call_commutes`](crate::no_call_commutes)), and a
/// sample of the others ([`is_sample`]; all of them if `HISTORIES` or `HISTORIES_MS` is given); with their numbers, for [`overtake_each`](crate::overtake_each). `HISTORIES=first..end` asks for some of them.
/// Where threads are the system's, one of 17.
///
/// # Panics
/// As [`rounds`](crate::rounds).
pub fn mattering<P>(
    plans: impl IntoIterator<Item = P>,
    no_call_commutes: impl Fn(&P) -> bool,
) -> impl Iterator<Item = (u64, Arc<P>)> {
    let (is_asked_for, is_long) = (is_asked_for(), is_long());
    let matters = move |(number, plan): &(u64, P)| {
        is_asked_for(*number) && (is_long || is_sample(*number) || no_call_commutes(plan))
    };
    (0..).zip(plans).filter(matters).map(|(number, plan)| (number, Arc::new(plan)))
}

/// The plan that a number draws.
pub(crate) fn drawn<P>(number: u64, plans: impl Strategy<Value = P>) -> P {
    let seed: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(32).collect();
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    plans.new_tree(&mut TestRunner::new_with_rng(Config::default(), random)).expect("a plan").current()
}
