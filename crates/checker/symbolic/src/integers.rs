//! What is known of the integer unknowns of a path: constraints, and which unknowns they connect.

use crate::linear::{Constraint, Linear, Relation, TooLarge, Variable};
use crate::literal::{Comparison, Fault};
use crate::solve::Solve;

/// The constraints of a path, findable by their variables.
#[derive(Clone, Debug, Default)]
pub struct Integers {
    constraints: Vec<Constraint>,
    constraints_of: Vec<Vec<u32>>,
}

impl Integers {
    /// The index of a new unknown.
    pub fn make(&mut self) -> Variable {
        self.constraints_of.push(vec![]);
        u32::try_from(self.constraints_of.len() - 1).expect("fewer unknowns than 2^32")
    }

    /// How many unknowns there are.
    pub fn len(&self) -> usize {
        self.constraints_of.len()
    }

    /// Whether there is no unknown.
    pub fn is_empty(&self) -> bool {
        self.constraints_of.is_empty()
    }

    /// Takes the last unknown back, of which no constraint speaks any more.
    pub fn unmake(&mut self) {
        self.constraints_of.pop();
    }

    /// Adds a constraint.
    pub fn constrain(&mut self, constraint: Constraint) {
        let number = u32::try_from(self.constraints.len()).expect("fewer constraints than 2^32");
        for &(variable, _) in constraint.linear.terms() {
            self.constraints_of[variable as usize].push(number);
        }
        self.constraints.push(constraint);
    }

    /// Takes the last constraint back.
    pub fn relax(&mut self) {
        if let Some(constraint) = self.constraints.pop() {
            for &(variable, _) in constraint.linear.terms() {
                self.constraints_of[variable as usize].pop();
            }
        }
    }

    /// The constraints that an expression's variables are connected with, directly or through others.
    fn connected(&self, linear: &Linear) -> Vec<Constraint> {
        let mut found: Vec<u32> = vec![];
        let mut variables: Vec<Variable> = linear.terms().iter().map(|term| term.0).collect();
        let mut next = 0;
        while let Some(&variable) = variables.get(next) {
            next += 1;
            for &number in &self.constraints_of[variable as usize] {
                if !found.contains(&number) {
                    found.push(number);
                    for &(other, _) in self.constraints[number as usize].linear.terms() {
                        if !variables.contains(&other) {
                            variables.push(other);
                        }
                    }
                }
            }
        }
        found.into_iter().map(|number| self.constraints[number as usize].clone()).collect()
    }

    /// Whether a comparison holds, if the constraints settle it.
    pub fn implied<S: Solve>(
        &self,
        comparison: Comparison,
        linear: &Linear,
        solver: &mut S,
    ) -> Result<Option<bool>, S::Error>
    where
        S::Error: From<Fault>,
    {
        if let Some(number) = linear.as_number() {
            return Ok(Some(comparison.holds(number)));
        }
        let mut connected = self.connected(linear);
        if connected.is_empty() && linear.terms().iter().any(|term| term.1.abs() == 1) {
            return Ok(None);
        }
        // What one solution shows need not be asked: only the other side is in doubt.
        let known = solver.solve(connected.clone())?;
        let value = |variable| known.as_ref().and_then(|known| known.value(variable)).unwrap_or(0);
        let shown = comparison.holds(linear.value(value).map_err(Fault::from)?);
        connected.push(comparison.constraint(linear, !shown).map_err(Fault::from)?);
        Ok(solver.solve(connected)?.is_none().then_some(shown))
    }

    /// Values for all unknowns that satisfy all constraints and differ from each other where constraints leave that open:
    /// each in turn takes the lowest number from 0 that none before it has and that leaves the others a solution. Unknowns
    /// that are `held`, and those that constraints connect with them, stay as [`Self::solution`] has them. More
    /// constraints, if the values satisfy them, change nothing.
    pub fn spread<S: Solve>(&self, held: &[Variable], solver: &mut S) -> Result<Vec<i64>, S::Error> {
        let mut values = self.solution(solver)?;
        let mut is_settled = vec![false; values.len()];
        for &variable in held {
            is_settled[variable as usize] = true;
            for constraint in self.connected(&Linear::unknown(variable, 1, 0)) {
                constraint.linear.terms().iter().for_each(|term| is_settled[term.0 as usize] = true);
            }
        }
        let mut taken: Vec<i64> = vec![];
        let reach = i64::try_from(values.len()).unwrap_or(i64::MAX);
        for place in 0..values.len() {
            if !is_settled[place] {
                for value in 0..=reach {
                    if !taken.contains(&value) && self.can_take(place, value, &mut values, &is_settled, solver)? {
                        break;
                    }
                }
                is_settled[place] = true;
            }
            taken.push(values[place]);
        }
        Ok(values)
    }

    /// Whether an unknown can have a value, as well as the settled ones; if so it has, and others are moved where they
    /// must.
    fn can_take<S: Solve>(
        &self,
        place: usize,
        value: i64,
        values: &mut [i64],
        is_settled: &[bool],
        solver: &mut S,
    ) -> Result<bool, S::Error> {
        let before = std::mem::replace(&mut values[place], value);
        if self.constraints_of[place].iter().all(|&number| self.constraints[number as usize].holds(values)) {
            return Ok(true);
        }
        values[place] = before;
        let variable = Variable::try_from(place).expect("made by `make`");
        let mut asked = self.connected(&Linear::unknown(variable, 1, 0));
        let mut known = vec![(variable, value)];
        for constraint in &asked {
            for &(other, _) in constraint.linear.terms() {
                if is_settled[other as usize] && !known.contains(&(other, values[other as usize])) {
                    known.push((other, values[other as usize]));
                }
            }
        }
        let Some(known) = known.into_iter().map(|(other, value)| is(other, value)).collect::<Option<Vec<_>>>() else {
            return Ok(false);
        };
        asked.extend(known);
        let Some(found) = solver.solve(asked)? else { return Ok(false) };
        found.iter().for_each(|(other, value)| values[other as usize] = value);
        Ok(true)
    }

    /// Small values for all unknowns that satisfy all constraints.
    pub fn solution<S: Solve>(&self, solver: &mut S) -> Result<Vec<i64>, S::Error> {
        let mut values: Vec<Option<i64>> = vec![None; self.constraints_of.len()];
        for variable in 0..values.len() {
            if values[variable].is_none() {
                let unknown = Linear::unknown(u32::try_from(variable).expect("made by `make`"), 1, 0);
                if let Some(found) = solver.solve(self.connected(&unknown))? {
                    found.iter().for_each(|(other, value)| values[other as usize] = Some(value));
                }
            }
        }
        Ok(values.into_iter().map(Option::unwrap_or_default).collect())
    }
}

/// That an unknown has a value.
fn is(variable: Variable, value: i64) -> Option<Constraint> {
    Some(Constraint { relation: Relation::Equal, linear: Linear::unknown(variable, 1, value.checked_neg()?) })
}

impl Comparison {
    /// Whether a number stands so to 0.
    pub fn holds(self, number: i64) -> bool {
        match self {
            Self::AtMost => number <= 0,
            Self::Equal => number == 0,
        }
    }

    /// What the comparison, or its opposite, demands.
    pub fn constraint(self, linear: &Linear, holds: bool) -> Result<Constraint, TooLarge> {
        Ok(match (self, holds) {
            (Self::AtMost, true) => Constraint { relation: Relation::AtMost, linear: linear.clone() },
            (Self::AtMost, false) => Constraint { relation: Relation::AtMost, linear: linear.above_zero()? },
            (Self::Equal, true) => Constraint { relation: Relation::Equal, linear: linear.clone() },
            (Self::Equal, false) => Constraint { relation: Relation::NotEqual, linear: linear.clone() },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::solve::{Solution, Solver};

    /// Solves what elimination is exact for.
    #[derive(Default)]
    struct Exact(Solver);

    #[derive(Debug, PartialEq)]
    struct NotExact;

    impl From<Fault> for NotExact {
        fn from(_: Fault) -> Self {
            Self
        }
    }

    impl Solve for Exact {
        type Error = NotExact;

        fn solve(&mut self, constraints: Vec<Constraint>) -> Result<Option<Solution>, NotExact> {
            self.0.solve(constraints, &mut |_| Err(NotExact))
        }
    }

    fn constraints() -> impl Strategy<Value = Vec<Constraint>> {
        let relation = prop_oneof![Just(Relation::NotEqual), Just(Relation::AtMost), Just(Relation::Equal)];
        let linear = (proptest::collection::vec((0..4_u32, -1..2_i64), 0..4), -3..4_i64)
            .prop_map(|(terms, constant)| Linear::sum(terms, constant).expect("small"));
        proptest::collection::vec(
            (relation, linear).prop_map(|(relation, linear)| Constraint { relation, linear }),
            0..6,
        )
    }

    fn of(constraints: Vec<Constraint>) -> Integers {
        let mut integers = Integers::default();
        (0..4).for_each(|_| _ = integers.make());
        constraints.into_iter().for_each(|constraint| integers.constrain(constraint));
        integers
    }

    proptest! {
        /// Values that are moved apart satisfy what the small ones do; those that are held stay.
        #[test]
        fn what_is_spread_satisfies_the_constraints(constraints in constraints(), held in 0..4_u32) {
            let (integers, mut solver) = (of(constraints.clone()), Exact::default());
            if let Ok(Some(_)) = solver.solve(constraints.clone())
                && let (Ok(small), Ok(spread)) = (integers.solution(&mut solver), integers.spread(&[held], &mut solver))
            {
                prop_assert_eq!(spread[held as usize], small[held as usize]);
                prop_assert!(constraints.iter().all(|one| one.holds(&spread)), "{:?}", spread);
            }
        }

        /// Constraints that the values satisfy anyway leave them as they are.
        #[test]
        fn what_is_spread_stays_under_more_constraints(constraints in constraints(), more in constraints()) {
            let mut solver = Exact::default();
            if let Ok(Some(_)) = solver.solve(constraints.clone())
                && let Ok(spread) = of(constraints.clone()).spread(&[], &mut solver)
                && (0..4).all(|place| (0..=4).contains(&spread[place]) && !spread[..place].contains(&spread[place]))
            {
                let satisfied = more.into_iter().filter(|one| one.holds(&spread));
                if let Ok(again) = of(constraints.into_iter().chain(satisfied).collect()).spread(&[], &mut solver) {
                    prop_assert_eq!(again, spread);
                }
            }
        }
    }

    #[test]
    fn what_is_open_differs() {
        let mut solver = Exact::default();
        assert_eq!(of(vec![]).spread(&[], &mut solver), Ok(vec![0, 1, 2, 3]));
        assert_eq!(of(vec![]).spread(&[2], &mut solver), Ok(vec![0, 1, 0, 2]));
        let at_most = |variable, high: i64| Constraint {
            relation: Relation::AtMost,
            linear: Linear::unknown(variable, 1, -high),
        };
        assert_eq!(of(vec![at_most(1, -1)]).spread(&[], &mut solver), Ok(vec![0, -1, 1, 2]));
        let differ = Linear::sum([(0, 1), (3, -1)], 0).expect("small");
        let differ = Constraint { relation: Relation::NotEqual, linear: differ };
        assert_eq!(of(vec![differ]).spread(&[], &mut solver), Ok(vec![0, 1, 2, 3]));
    }

    #[test]
    fn a_comparison_and_its_opposite_hold_of_every_number_in_turn() {
        for number in -3..=3 {
            assert_eq!((Comparison::AtMost.holds(number), Comparison::Equal.holds(number)), (number <= 0, number == 0));
            for comparison in [Comparison::AtMost, Comparison::Equal] {
                for holds in [true, false] {
                    let demanded = comparison.constraint(&Linear::unknown(0, 1, 0), holds).expect("small");
                    assert_eq!(demanded.holds(&[number]), comparison.holds(number) == holds, "{comparison:?} {number}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Against all values of four unknowns from -4 to 4, to which constraints bind them.
        #[test]
        fn what_is_implied_holds_in_every_solution(
            constraints in constraints(), terms in proptest::collection::vec((0..4_u32, -1..2_i64), 0..4), constant in -3..4_i64,
        ) {
            let linear = Linear::sum(terms, constant).expect("small");
            let bounds = (0..4_u32).flat_map(|variable| [1, -1].map(|side| Constraint {
                relation: Relation::AtMost,
                linear: Linear::unknown(variable, side, -4),
            }));
            let all: Vec<Constraint> = constraints.into_iter().chain(bounds).collect();
            let values = || (0..9_i64.pow(4)).map(|code| [0, 1, 2, 3].map(|place| code / 9_i64.pow(place) % 9 - 4));
            let solutions: Vec<[i64; 4]> = values().filter(|values| all.iter().all(|one| one.holds(values))).collect();
            let (integers, mut solver) = (of(all), Exact::default());
            for comparison in [Comparison::AtMost, Comparison::Equal] {
                let holds = |values: &[i64; 4]| {
                    comparison.holds(linear.value(|variable| values[variable as usize]).expect("small"))
                };
                let count = solutions.iter().filter(|values| holds(values)).count();
                if !solutions.is_empty() && let Ok(implied) = integers.implied(comparison, &linear, &mut solver) {
                    prop_assert_eq!(implied, (count == 0 || count == solutions.len()).then_some(count > 0));
                }
            }
        }
    }
}
