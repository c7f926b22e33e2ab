//! Which plans of few calls can show that one was overtaken: those whose calls do not commute.
//!
//! **Idea.** The scalable commutativity rule, read from its end. Calls that commute return the same and leave the same in
//! either order; where they are conflict-free besides, neither can be overtaken. So of all plans those are worth their
//! executions in which each call meets one of another thread with which it does not commute. A plain
//! reference says so, which takes microseconds. (Clements et al., SOSP 2013, section 3.)

/// A call's thread, and its place among that thread's calls.
pub type CallPlace = (usize, usize);

/// Whether each call of a plan, a list for each thread, meets one of another thread with which it does not commute: in some
/// order of all calls, or of some of them, the outcomes are others when the two change places. (Of some: a pipe's last
/// writer that goes is not seen by a reader who finds bytes, and it is if they had not come.) Of two equal calls no one
/// can see which came first, and yet one of them may be lost: they count as such if two leave what one does not.
/// `outcomes` makes calls in an order, and returns what they returned and what can be seen of what is left.
pub fn no_call_commutes<C: PartialEq, R: PartialEq, S: PartialEq>(
    plan: &[Vec<C>],
    outcomes: impl Fn(&[CallPlace]) -> (R, S),
) -> bool {
    let calls: Vec<CallPlace> = plan
        .iter()
        .enumerate()
        .flat_map(|(thread, calls)| (0..calls.len()).map(move |place| (thread, place)))
        .collect();
    let are_equal =
        |(thread, place): CallPlace, (other, its_place): CallPlace| plan[thread][place] == plan[other][its_place];
    let mut left = calls.clone();
    // From the shortest on: two calls alone say most.
    let mut parts: Vec<u32> = (0..1 << calls.len()).collect();
    parts.sort_by_key(|part| part.count_ones());
    for part in parts {
        let made: Vec<CallPlace> = (0..calls.len()).filter(|at| part & (1 << at) != 0).map(|at| calls[at]).collect();
        if made.iter().any(|call| left.contains(call)) {
            for order in orders(&made) {
                remove_those_that_matter(&mut left, &order, &are_equal, &outcomes);
            }
        }
    }
    left.is_empty()
}

/// Of calls that are next to each other in an order, those that give other outcomes when they change places, or when one of two
/// equal ones is missing.
fn remove_those_that_matter<R: PartialEq, S: PartialEq>(
    left: &mut Vec<CallPlace>,
    order: &[CallPlace],
    are_equal: &impl Fn(CallPlace, CallPlace) -> bool,
    outcomes: &impl Fn(&[CallPlace]) -> (R, S),
) {
    for at in 1..order.len() {
        let (first, second) = (order[at - 1], order[at]);
        // The other half of the orders is these, changed.
        if first.0 < second.0 && (left.contains(&first) || left.contains(&second)) {
            let mut changed = order.to_vec();
            changed.swap(at - 1, at);
            let made = outcomes(order);
            let mut matters = made != outcomes(&changed);
            if !matters && are_equal(first, second) {
                changed.remove(at);
                matters = made.1 != outcomes(&changed).1;
            }
            if matters {
                left.retain(|call| *call != first && *call != second);
            }
        }
    }
}

/// Makes calls of a plan in an order; returns what they return, thread by thread.
pub fn in_order<C, R>(plan: &[Vec<C>], order: &[CallPlace], mut call: impl FnMut(usize, &C) -> R) -> Vec<Vec<R>> {
    let mut outcomes: Vec<Vec<R>> = plan.iter().map(|_| Vec::new()).collect();
    for (thread, place) in order {
        outcomes[*thread].push(call(*thread, &plan[*thread][*place]));
    }
    outcomes
}

/// All orders of these calls, in which those of each thread stay in theirs.
fn orders(calls: &[CallPlace]) -> Vec<Vec<CallPlace>> {
    if calls.is_empty() {
        return vec![Vec::new()];
    }
    let is_first = |call: &&CallPlace| !calls.iter().any(|(thread, place)| *thread == call.0 && *place < call.1);
    let after = |first: &CallPlace| {
        let rest: Vec<CallPlace> = calls.iter().filter(|call| *call != first).copied().collect();
        let first = *first;
        orders(&rest).into_iter().map(move |order| [vec![first], order].concat()).collect::<Vec<_>>()
    };
    calls.iter().filter(is_first).flat_map(after).collect()
}

#[cfg(test)]
mod tests {
    use super::{in_order, no_call_commutes, orders};

    /// A register: `Some` sets it, `None` reads it.
    fn is_kept(plan: &[Vec<Option<u8>>]) -> bool {
        no_call_commutes(plan, |order| {
            let mut register = 0;
            let read = in_order(plan, order, |_, call| {
                register = call.unwrap_or(register);
                call.is_none().then_some(register)
            });
            (read, register)
        })
    }

    /// Two equal additions commute, and one of them can be lost.
    #[test]
    fn equal_calls_are_kept_if_two_leave_what_one_does_not() {
        let is_kept = |plan: &[Vec<u8>]| {
            no_call_commutes(plan, |order| {
                let mut sum = 0;
                (in_order(plan, order, |_, add| sum += add), sum)
            })
        };
        assert!(is_kept(&[vec![1], vec![1]]));
        assert!(!is_kept(&[vec![1], vec![2]]));
        assert!(!is_kept(&[vec![0], vec![0]]));
    }

    #[test]
    fn a_plan_is_kept_if_no_call_commutes_with_all_others() {
        let (read, set) = (None, Some);
        assert!(is_kept(&[vec![set(1)], vec![read]]));
        assert!(is_kept(&[vec![set(1)], vec![set(2)]]));
        assert!(!is_kept(&[vec![read], vec![read]]));
        assert!(!is_kept(&[vec![set(1)], vec![set(1)]]), "no one sees the difference");
        assert!(is_kept(&[vec![read], vec![set(1), set(2)]]));
        assert!(!is_kept(&[vec![read], vec![set(1), read]]), "two of the reads commute");
        assert!(is_kept(&[vec![set(3)], vec![set(1), read]]));
        assert!(is_kept(&[vec![set(3)], vec![read], vec![read]]));
        assert!(!is_kept(&[vec![set(0)], vec![read], vec![read]]), "it is so already");
        assert!(is_kept(&[vec![read], vec![set(1), set(1)]]), "the second matters without the first");
    }

    #[test]
    fn there_are_as_many_orders_as_shuffles() {
        let (one, first, second) = ((0, 0), (1, 0), (1, 1));
        let shuffles = [vec![one, first, second], vec![first, one, second], vec![first, second, one]];
        assert_eq!(orders(&[one, first, second]), shuffles);
        assert_eq!(orders(&[(0, 0), (0, 1), (1, 0), (1, 1)]).len(), 6);
        assert_eq!(orders(&[(0, 0), (1, 0), (2, 0)]).len(), 6);
    }
}
