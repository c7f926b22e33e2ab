//! Linear integer constraints: is a conjunction satisfiable, and by which values?
//!
//! Equations with a unit coefficient are substituted, the rest is eliminated by Fourier and Motzkin's method, which is
//! exact over the integers as long as one of the two coefficients that meet is 1 or -1. The few systems where it is not,
//! and those whose numbers leave 64 bits on the way, go to the caller's general solver. Disequalities are tried on the
//! found solution and split only where they fail.

use std::collections::HashMap;
use std::sync::Arc;

use crate::linear::{Constraint, Linear, Relation, TooLarge, Variable};

/// Answers that are kept; beyond, all are forgotten.
const MAX_KEPT: usize = 1 << 16;

/// A conjunction over the variables below `variable_count`.
#[derive(Clone, Debug)]
pub struct System {
    /// Each is at most 0.
    pub inequalities: Vec<Linear>,
    /// Each is 0.
    pub equations: Vec<Linear>,
    /// Each is anything but 0.
    pub different: Vec<Linear>,
    /// How many variables there are.
    pub variable_count: u32,
}

/// Values of variables.
#[derive(Clone, Debug)]
pub struct Solution {
    variables: Vec<Variable>,
    values: Arc<[i64]>,
}

impl Solution {
    /// The value of a variable of the constraints; None of any other.
    pub fn value(&self, variable: Variable) -> Option<i64> {
        self.variables.iter().position(|other| *other == variable).map(|place| self.values[place])
    }

    /// Every variable and its value.
    pub fn iter(&self) -> impl Iterator<Item = (Variable, i64)> {
        self.variables.iter().copied().zip(self.values.iter().copied())
    }
}

/// What answers questions about constraints.
pub trait Solve {
    /// Why there may be no answer.
    type Error;

    /// Values for all variables of the constraints that satisfy them; None if there are none. Values are small: as near to
    /// the tightest lower bound, or to zero, as the constraints allow.
    fn solve(&mut self, constraints: Vec<Constraint>) -> Result<Option<Solution>, Self::Error>;
}

/// Solves, and keeps the answers: neighbouring paths ask the same under other names.
#[derive(Debug, Default)]
pub struct Solver {
    kept: HashMap<Vec<Constraint>, Option<Arc<[i64]>>>,
    calls: u64,
    distinct: u64,
}

impl Solver {
    /// How often it was asked, and how many of the questions it had not been asked before.
    pub fn statistics(&self) -> (u64, u64) {
        (self.calls, self.distinct)
    }

    /// See [`Solve::solve`]; `general` answers where elimination is not exact.
    pub fn solve<E>(
        &mut self,
        mut constraints: Vec<Constraint>,
        general: &mut impl FnMut(&System) -> Result<Option<Vec<i64>>, E>,
    ) -> Result<Option<Solution>, E> {
        self.calls += 1;
        constraints.sort_unstable();
        constraints.dedup();
        let mut variables: Vec<Variable> = vec![];
        for constraint in &mut constraints {
            constraint.linear = constraint.linear.renamed(|variable| {
                let known = variables.iter().position(|other| *other == variable);
                let place = known.unwrap_or_else(|| {
                    variables.push(variable);
                    variables.len() - 1
                });
                u32::try_from(place).expect("variables are numbered with 32 bits")
            });
        }
        if let Some(kept) = self.kept.get(&constraints) {
            return Ok(kept.clone().map(|values| Solution { variables, values }));
        }
        self.distinct += 1;
        let of = |relation: Relation| {
            constraints.iter().filter(|one| one.relation == relation).map(|one| one.linear.clone()).collect()
        };
        let system = System {
            inequalities: of(Relation::AtMost),
            equations: of(Relation::Equal),
            different: of(Relation::NotEqual),
            variable_count: u32::try_from(variables.len()).expect("variables are numbered with 32 bits"),
        };
        let values: Option<Arc<[i64]>> = solve_system(&system, general)?.map(Arc::from);
        if self.kept.len() >= MAX_KEPT {
            self.kept.clear();
        }
        self.kept.insert(constraints, values.clone());
        Ok(values.map(|values| Solution { variables, values }))
    }
}

/// Elimination would lose exactness over the integers, or leave 64 bits.
struct NotExact;

impl From<TooLarge> for NotExact {
    fn from(_: TooLarge) -> Self {
        Self
    }
}

fn solve_system<E>(
    system: &System,
    general: &mut impl FnMut(&System) -> Result<Option<Vec<i64>>, E>,
) -> Result<Option<Vec<i64>>, E> {
    match attempt(system) {
        Err(NotExact) => general(system),
        Ok(Attempt::Answer(answer)) => Ok(answer),
        Ok(Attempt::Split(sides)) => {
            for side in *sides {
                if let Some(found) = solve_system(&side, general)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
    }
}

enum Attempt {
    Answer(Option<Vec<i64>>),
    /// One of the two has a solution if the system has.
    Split(Box<[System; 2]>),
}

fn attempt(system: &System) -> Result<Attempt, NotExact> {
    let Some(solution) = eliminate(system)? else { return Ok(Attempt::Answer(None)) };
    for (number, linear) in system.different.iter().enumerate() {
        if value(linear, &solution)? != 0 {
            continue;
        }
        if let Some(moved) = moved(linear, &solution, system)? {
            return Ok(Attempt::Answer(Some(moved)));
        }
        let with = |side: Linear| {
            let mut one = system.clone();
            one.different.remove(number);
            one.inequalities.push(side);
            one
        };
        let (above, below) = (linear.above_zero()?, linear.plus_number(1)?);
        return Ok(Attempt::Split(Box::new([with(above), with(below)])));
    }
    Ok(Attempt::Answer(Some(solution)))
}

fn value(linear: &Linear, values: &[i64]) -> Result<i64, TooLarge> {
    linear.value(|variable| values[variable as usize])
}

/// The solution with one variable of the broken disequality moved to the next value that no disequality forbids, if that
/// breaks nothing else: long chains of `x != 0, x != 1, ...` need no split.
fn moved(broken: &Linear, solution: &[i64], system: &System) -> Result<Option<Vec<i64>>, TooLarge> {
    for &(variable, _) in broken.terms() {
        let place = variable as usize;
        let mut forbidden = vec![];
        for linear in &system.different {
            let coefficient = linear.coefficient(variable);
            if coefficient != 0 {
                let own = coefficient.checked_mul(solution[place]).ok_or(TooLarge)?;
                let rest = own.checked_sub(value(linear, solution)?).ok_or(TooLarge)?;
                if rest.checked_rem(coefficient) == Some(0) {
                    forbidden.push(rest / coefficient);
                }
            }
        }
        for step in [1, -1] {
            let mut moved = solution.to_vec();
            while forbidden.contains(&moved[place]) {
                moved[place] = moved[place].checked_add(step).ok_or(TooLarge)?;
            }
            if satisfies(system, &moved)? {
                return Ok(Some(moved));
            }
        }
    }
    Ok(None)
}

fn satisfies(system: &System, values: &[i64]) -> Result<bool, TooLarge> {
    let all = |linears: &[Linear], holds: fn(i64) -> bool| {
        linears.iter().try_fold(true, |all, linear| Ok(all && holds(value(linear, values)?)))
    };
    Ok(all(&system.inequalities, |value| value <= 0)?
        && all(&system.equations, |value| value == 0)?
        && all(&system.different, |value| value != 0)?)
}

/// How a variable went, and what says which value it has.
enum Step {
    Defined(Variable, Linear),
    Bounded(Variable, Vec<Linear>, Vec<Linear>),
}

fn eliminate(system: &System) -> Result<Option<Vec<i64>>, NotExact> {
    let mut pending = system.equations.clone();
    let mut rest = system.inequalities.clone();
    let mut steps = vec![];
    while let Some(equation) = pending.pop() {
        if let Some(number) = equation.as_number() {
            if number != 0 {
                return Ok(None);
            }
            continue;
        }
        let unit = equation.terms().iter().find(|term| term.1.abs() == 1).ok_or(NotExact)?;
        let &(variable, coefficient) = unit;
        let definition = equation.plus(&Linear::unknown(variable, coefficient, 0), -1)?.times(-coefficient)?;
        for linear in pending.iter_mut().chain(&mut rest) {
            let occurs = linear.coefficient(variable);
            if occurs != 0 {
                let others = linear.plus(&Linear::unknown(variable, occurs, 0), -1)?;
                *linear = others.plus(&definition, occurs)?;
            }
        }
        steps.push(Step::Defined(variable, definition));
    }
    let mut remaining: Vec<Variable> = rest.iter().flat_map(|linear| linear.terms()).map(|term| term.0).collect();
    remaining.sort_unstable();
    remaining.dedup();
    while let Some(&variable) = remaining.iter().min_by_key(|variable| (growth(&rest, **variable), **variable)) {
        remaining.retain(|other| *other != variable);
        let (mut lower, mut upper, mut others) = (vec![], vec![], vec![]);
        for linear in rest {
            match linear.coefficient(variable) {
                0 => others.push(linear),
                1.. => upper.push(linear),
                _ => lower.push(linear),
            }
        }
        for low in &lower {
            for high in &upper {
                let below = low.coefficient(variable).checked_neg().ok_or(NotExact)?;
                let above = high.coefficient(variable);
                if below != 1 && above != 1 {
                    return Err(NotExact);
                }
                others.push(low.times(above)?.plus(high, below)?);
            }
        }
        others.sort_unstable();
        others.dedup();
        rest = others;
        steps.push(Step::Bounded(variable, lower, upper));
    }
    if rest.iter().any(|linear| linear.as_number().is_some_and(|number| number > 0)) {
        return Ok(None);
    }
    let mut solution = vec![0; system.variable_count as usize];
    for step in steps.iter().rev() {
        match step {
            Step::Defined(variable, definition) => solution[*variable as usize] = value(definition, &solution)?,
            Step::Bounded(variable, lower, upper) => {
                let bounds = |linears: &[Linear]| {
                    linears.iter().map(|linear| bound(linear, *variable, &solution)).collect::<Result<Vec<_>, _>>()
                };
                let lowest = bounds(lower)?.into_iter().max();
                let highest = bounds(upper)?.into_iter().min();
                solution[*variable as usize] = match (lowest, highest) {
                    (Some(lowest), Some(highest)) if lowest > highest => return Ok(None),
                    (Some(lowest), _) => lowest,
                    (None, highest) => highest.map_or(0, |highest| highest.min(0)),
                };
            }
        }
    }
    Ok(Some(solution))
}

/// How many expressions eliminating the variable makes.
fn growth(linears: &[Linear], variable: Variable) -> usize {
    let count = |holds: fn(i64) -> bool| linears.iter().filter(|linear| holds(linear.coefficient(variable))).count();
    count(|coefficient| coefficient > 0) * count(|coefficient| coefficient < 0)
}

/// The bound that `linear <= 0` sets on the variable: its lowest value if its coefficient is negative, else the highest.
fn bound(linear: &Linear, variable: Variable, values: &[i64]) -> Result<i64, TooLarge> {
    let coefficient = linear.coefficient(variable);
    let rest = linear.value(|other| if other == variable { 0 } else { values[other as usize] })?;
    let negated = rest.checked_neg().ok_or(TooLarge)?;
    if coefficient > 0 {
        return Ok(negated.div_euclid(coefficient));
    }
    negated.div_euclid(coefficient.checked_neg().ok_or(TooLarge)?).checked_neg().ok_or(TooLarge)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RANGE: std::ops::RangeInclusive<i64> = -3..=3;

    fn constraints() -> impl Strategy<Value = Vec<Constraint>> {
        let relation = prop_oneof![Just(Relation::NotEqual), Just(Relation::AtMost), Just(Relation::Equal)];
        let linear = (proptest::collection::vec((0..3_u32, -1..2_i64), 0..4), -3..4_i64)
            .prop_map(|(terms, constant)| Linear::sum(terms, constant).expect("small"));
        let one = (relation, linear).prop_map(|(relation, linear)| Constraint { relation, linear });
        proptest::collection::vec(one, 0..7).prop_map(|mut constraints| {
            for variable in 0..3 {
                for coefficient in [1, -1] {
                    let linear = Linear::unknown(variable, coefficient, -RANGE.end());
                    constraints.push(Constraint { relation: Relation::AtMost, linear });
                }
            }
            constraints
        })
    }

    fn holds(constraint: &Constraint, values: &[i64; 3]) -> bool {
        let value = constraint.linear.value(|variable| values[variable as usize]).expect("small");
        match constraint.relation {
            Relation::NotEqual => value != 0,
            Relation::AtMost => value <= 0,
            Relation::Equal => value == 0,
        }
    }

    fn assignments() -> impl Iterator<Item = [i64; 3]> {
        RANGE.flat_map(|x| RANGE.flat_map(move |y| RANGE.map(move |z| [x, y, z])))
    }

    proptest! {
        /// Against all values of three bounded variables. Where elimination is not exact, the test itself searches.
        #[test]
        fn answers_are_those_of_a_search(constraints in constraints()) {
            let all = |values: &[i64; 3]| constraints.iter().all(|constraint| holds(constraint, values));
            let expected = assignments().find(all);
            let mut general = |_: &System| Err(());
            if let Ok(found) = Solver::default().solve(constraints.clone(), &mut general) {
                prop_assert_eq!(found.is_some(), expected.is_some());
                if let Some(found) = found {
                    let values = [0, 1, 2].map(|variable| found.value(variable).expect("bounded"));
                    prop_assert!(all(&values), "{:?}", values);
                }
            }
        }
    }

    #[test]
    fn the_same_under_other_names_is_asked_once() {
        let mut solver = Solver::default();
        let mut general = |_: &System| Err(());
        for variable in [3, 8, 3] {
            let linear = Linear::unknown(variable, -1, 5);
            let asked = vec![Constraint { relation: Relation::AtMost, linear }];
            let found = solver.solve(asked, &mut general).expect("exact").expect("satisfiable");
            assert_eq!((found.value(variable), found.value(0)), (Some(5), None));
        }
        assert_eq!(solver.statistics(), (3, 1));
    }

    #[test]
    fn what_elimination_cannot_do_is_handed_over() {
        let parity = Linear::sum([(0, 2), (1, -2)], -1).expect("small");
        let large = Linear::sum([(0, 1), (1, i64::MAX)], i64::MAX).expect("fits");
        for linear in [parity, large.clone()] {
            let bounded = Constraint { relation: Relation::Equal, linear: Linear::unknown(1, 1, -9) };
            let asked = vec![Constraint { relation: Relation::Equal, linear }, bounded];
            assert_eq!(Solver::default().solve(asked, &mut |_| Err("asked")).map(drop), Err("asked"));
        }
    }

    #[test]
    fn long_chains_of_disequalities_need_no_split() {
        // With a split for each, 60 of them would take 2^60 steps, or exceed any stack.
        for (coefficient, expected) in [(1, 60), (-1, -60)] {
            let mut constraints: Vec<Constraint> = (0..60)
                .map(|number| Constraint {
                    relation: Relation::NotEqual,
                    linear: Linear::unknown(0, coefficient, -number),
                })
                .collect();
            let side = Linear::unknown(0, -coefficient, 0); // on the side of 0 on which they lie
            constraints.push(Constraint { relation: Relation::AtMost, linear: side });
            let found = Solver::default().solve(constraints, &mut |_| Err(())).expect("exact").expect("satisfiable");
            assert_eq!(found.value(0), Some(expected));
        }
    }

    #[test]
    fn a_variable_moves_over_what_its_coefficient_forbids() {
        // 3x != 0, 3x != 3, 3x != 6 and x from 0 on: x = 3, and 2x != 1 forbids nothing.
        let mut constraints: Vec<Constraint> = [0, -3, -6]
            .map(|constant| Constraint { relation: Relation::NotEqual, linear: Linear::unknown(0, 3, constant) })
            .to_vec();
        constraints.push(Constraint { relation: Relation::NotEqual, linear: Linear::unknown(0, 2, -1) });
        constraints.push(Constraint { relation: Relation::AtMost, linear: Linear::unknown(0, -1, 0) });
        let found = Solver::default().solve(constraints, &mut |_| Err(())).expect("exact").expect("satisfiable");
        assert_eq!(found.value(0), Some(3));
    }

    #[test]
    fn a_value_is_forbidden_once_it_is_divided_by_its_coefficient() {
        // 2x != 4 alone keeps x from 2, and from no other number: without a split the next one is 3.
        let only = Linear::unknown(0, 2, -4);
        let system =
            System { inequalities: vec![], equations: vec![], different: vec![only.clone()], variable_count: 1 };
        assert_eq!(moved(&only, &[2], &system), Ok(Some(vec![3])));
    }

    #[test]
    fn what_does_not_have_a_variable_does_not_make_its_elimination_grow() {
        let above = |variable| Linear::unknown(variable, 1, -3);
        let below = |variable| Linear::unknown(variable, -1, 0);
        let linears = [above(0), above(0), below(0), below(0), below(0), above(1), below(2)];
        assert_eq!([0, 1, 2, 3].map(|variable| growth(&linears, variable)), [6, 0, 0, 0]);
    }
}
