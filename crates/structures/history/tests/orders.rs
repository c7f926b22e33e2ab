//! The search for an order against all orders, asked about many histories one after the other: what is known of one must
//! not be taken for another.

use history::{Event, State, is_linearisable};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a word holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Word(u8);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Store(u8),
    /// A load, and what it saw.
    Load(u8),
}

impl State for Word {
    type Step = Step;

    fn take(&mut self, _: usize, step: &Step) -> bool {
        match *step {
            Step::Store(value) => {
                self.0 = value;
                true
            }
            Step::Load(seen) => self.0 == seen,
        }
    }
}

type History = Vec<Vec<Event<Step>>>;

/// Whether the rest of the threads' events can happen from here on: by all orders in which none comes before one that had
/// ended when it began.
fn has_an_order(left: &History, word: &Word) -> bool {
    let heads = || left.iter().filter_map(|events| events.first());
    if heads().next().is_none() {
        return true;
    }
    (0..left.len()).any(|thread| {
        let Some(event) = left[thread].first() else { return false };
        let (mut word, mut rest) = (word.clone(), left.clone());
        rest[thread].remove(0);
        let is_first = heads().all(|head| head.ended > event.began);
        is_first && event.steps.iter().all(|step| word.take(thread, step)) && has_an_order(&rest, &word)
    })
}

/// Of two threads, two events each at most, at moments that are drawn; of one step each, as those of many steps may mix.
fn history() -> impl Strategy<Value = History> {
    let step = prop_oneof![(0..3_u8).prop_map(Step::Store), (0..3_u8).prop_map(Step::Load)];
    let thread = vec((step, 1..3_u64, 1..3_u64), 0..3).prop_map(|steps| {
        let mut now = 0;
        let event = |(step, pause, length)| {
            let began = now + pause;
            now = began + length;
            Event { steps: vec![step], began, ended: now }
        };
        steps.into_iter().map(event).collect()
    });
    vec(thread, 2)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_search_finds_what_all_orders_find(histories in vec((history(), 0..2_u8), 100)) {
        for (history, start) in &histories {
            let start = Word(*start);
            prop_assert_eq!(is_linearisable(history, &start), has_an_order(history, &start), "{:?}", history);
        }
    }
}

/// Another reference in between is another question.
#[test]
fn references_of_two_kinds_are_asked_in_turn() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Never;
    impl State for Never {
        type Step = Step;
        fn take(&mut self, _: usize, _: &Step) -> bool {
            false
        }
    }
    let history: History = vec![vec![Event { steps: vec![Step::Store(1)], began: 1, ended: 2 }]];
    for _ in 0..3 {
        assert!(is_linearisable(&history, &Word(0)));
        assert!(!is_linearisable(&history, &Never));
    }
}
