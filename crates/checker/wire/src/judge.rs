//! Compares what came with what is acceptable (`docs/reference/test-cases.md`).
//!
//! A window's values are read in one sequence: results of the set-up, of the calls in the order of the test, of the
//! observation. Values that the implementation chooses are paired as they are met: one in the test is one in the result,
//! over the whole window. That two in the test are two in the result is asked of values that exist together, so within the
//! set-up and within the observation: what a file that is gone was called can come again in between (ext4 gives its inode
//! number to the next file). Times are paired likewise; one that is greater in the test must not be earlier in the result, and nothing is
//! asked of equal ones (clocks are coarse, and calls run at different ticks). Of a structure's fields those are compared
//! that the test expects: an implementation may tell more. Everything else is compared exactly. Where several outcomes are
//! acceptable, one must fit as a whole.
//!
//! Where a specification leaves a choice to the implementation, the set-up may lead elsewhere than to the test's state: that
//! is no fault ([`unreached`]), and nothing else of the window can be judged.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::batch::Step;
use crate::case::{Case, Outcome};
use crate::results::WindowResult;
use crate::value::Value;

/// Whether the values that are being read exist together.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Together {
    #[default]
    Yes,
    No,
}

/// Pairs of values met so far: expected against actual.
#[derive(Default, Clone)]
struct Pairing<'a> {
    forth: HashMap<(&'a str, u64), u64>,
    back: HashMap<(&'a str, u64), u64>,
    together: Together,
    times: Vec<(i64, i64)>,
}

impl<'a> Pairing<'a> {
    /// Goes on with values that exist together, or not, whatever existed before.
    fn go_on(&mut self, together: Together) {
        self.back.clear();
        self.together = together;
    }

    /// Whether steps returned what they were expected to.
    fn fit(&mut self, together: Together, steps: &'a [Step], actual: &'a [Value<'_>]) -> bool {
        self.go_on(together);
        steps.len() == actual.len()
            && steps.iter().zip(actual).all(|(step, actual)| self.mismatch(&step.expected, actual).is_none())
    }

    /// `None` if `actual` fits `expected`, else why not.
    fn mismatch(&mut self, expected: &'a Value<'_>, actual: &'a Value<'_>) -> Option<String> {
        let differ = || Some(format!("returned {actual}, acceptable is {expected}"));
        match (expected, actual) {
            (Value::Opaque { sort, id }, Value::Opaque { sort: other, id: raw }) if sort == other => {
                let known = *self.forth.entry((sort, *id)).or_insert(*raw);
                if known != *raw {
                    return Some(format!("returned {sort} {raw} where {sort} {known} was returned before"));
                }
                if self.together == Together::Yes && *self.back.entry((sort, *raw)).or_insert(*id) != *id {
                    return Some(format!("returned {sort} {raw} again, where another one is expected"));
                }
                None
            }
            (Value::Time(time), Value::Time(raw)) => {
                let broken = self.times.iter().find(|(other, other_raw)| match time.cmp(other) {
                    Ordering::Equal => false,
                    Ordering::Less => raw > other_raw,
                    Ordering::Greater => raw < other_raw,
                });
                if let Some((other, other_raw)) = broken {
                    let relation = if time < other { "no later than" } else { "no earlier than" };
                    return Some(format!("returned the time {raw} ns: acceptable is {relation} {other_raw} ns"));
                }
                self.times.push((*time, *raw));
                None
            }
            (Value::Struct(fields), Value::Struct(others)) => {
                for (name, value) in fields {
                    let Some((_, other)) = others.iter().find(|(other, _)| other == name) else {
                        return Some(format!("returned no field {name}: {actual}"));
                    };
                    if let Some(why) = self.mismatch(value, other) {
                        return Some(format!("{name}: {why}"));
                    }
                }
                None
            }
            (Value::Seq(items), Value::Seq(others)) => {
                if items.len() != others.len() {
                    return differ();
                }
                items.iter().zip(others).enumerate().find_map(|(index, (item, other))| {
                    self.mismatch(item, other).map(|why| format!("[{index}]: {why}"))
                })
            }
            _ if expected == actual => None,
            // An adapter that answers `commutant_number` for a value that was put in: what is missing is its kind.
            (Value::Text(_), Value::Int(raw)) => Some(format!(
                "returned the number {raw}, acceptable is the member {expected} of a sort (commutant_member, Member)"
            )),
            _ => differ(),
        }
    }
}

/// `None` if the window's values are acceptable, else which call or observation returned what, and what was acceptable
/// (for the outcome that fits longest).
#[must_use]
pub fn wrong(case: &Case, order_index: usize, result: &WindowResult<'_>) -> Option<String> {
    let (setup, calls, observation) = match result {
        WindowResult::Ran { setup, calls, observation, .. } => (setup, calls, observation),
        WindowResult::Refused(why) | WindowResult::Unsupported(why) => return Some(format!("not run: {why}")),
    };
    let Some(order) = case.orders.get(order_index) else {
        return Some(format!("the test has no order number {order_index}"));
    };
    let mut best: Option<(usize, String)> = None;
    for outcome in &order.outcomes {
        match first_mismatch(case, outcome, setup, calls, observation) {
            None => return None,
            Some(found) => {
                if best.as_ref().is_none_or(|(place, _)| found.0 > *place) {
                    best = Some(found);
                }
            }
        }
    }
    let order: Vec<String> = order.order.iter().map(u8::to_string).collect();
    best.map(|(_, why)| format!("order {}: {why}", order.join(",")))
}

/// Which step of the set-up returned something else than the test expects that the specification allows as well, so that
/// the set-up does not lead to the test's state; `None` if there is none, or if what it returned is not allowed.
#[must_use]
pub fn unreached(case: &Case, result: &WindowResult<'_>) -> Option<String> {
    let WindowResult::Ran { setup, .. } = result else { return None };
    let mut pairing = Pairing::default();
    for (index, (step, actual)) in case.setup().iter().zip(setup).enumerate() {
        let before = pairing.clone();
        if pairing.mismatch(&step.expected, actual).is_none() {
            continue;
        }
        let is_allowed = step.also.iter().any(|other| before.clone().mismatch(other, actual).is_none());
        return is_allowed.then(|| {
            format!(
                "set-up {index}, {}: returned {actual}, which is allowed and leads elsewhere",
                case.setup_text(index)
            )
        });
    }
    None
}

/// Whether every step of a sequence (see [`crate::case`]) returned what it was expected to.
#[must_use]
pub fn as_expected(sequence: &Case, result: &WindowResult<'_>) -> bool {
    let WindowResult::Ran { setup, observation, .. } = result else { return false };
    let mut pairing = Pairing::default();
    pairing.fit(Together::No, sequence.setup(), setup) && pairing.fit(Together::Yes, sequence.observe(), observation)
}

/// The place (number of values that fit) and description of the first value that does not fit `outcome`.
fn first_mismatch(
    case: &Case,
    outcome: &Outcome,
    setup: &[Value<'_>],
    calls: &[Value<'_>],
    observation: &[Value<'_>],
) -> Option<(usize, String)> {
    let expected_setup: Vec<&Value<'_>> = case.setup().iter().map(|step| &step.expected).collect();
    let sizes = (expected_setup.len(), outcome.results.len(), outcome.observation.len());
    if (setup.len(), calls.len(), observation.len()) != sizes {
        return Some((0, "another number of results than calls".to_owned()));
    }
    let mut pairing = Pairing::default();
    let mut place = 0;
    for (index, (expected, actual)) in expected_setup.into_iter().zip(setup).enumerate() {
        if let Some(why) = pairing.mismatch(expected, actual) {
            return Some((place, format!("set-up {index}, {}: {why}", case.setup_text(index))));
        }
        place += 1;
    }
    pairing.go_on(Together::No);
    for (index, (expected, actual)) in outcome.results.iter().zip(calls).enumerate() {
        if let Some(why) = pairing.mismatch(expected, actual) {
            return Some((place, format!("call {index}, {}: {why}", case.call_text(index))));
        }
        place += 1;
    }
    pairing.go_on(Together::Yes);
    for (index, (expected, actual)) in outcome.observation.iter().zip(observation).enumerate() {
        if let Some(why) = pairing.mismatch(expected, actual) {
            return Some((place, format!("observation {index}, {}: {why}", case.observe_text(index))));
        }
        place += 1;
    }
    None
}
