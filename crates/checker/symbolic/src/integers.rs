//! What is known of the integer unknowns of a path: constraints, and which unknowns they connect.

use crate::linear::{Constraint, Linear, Relation, TooLarge, Variable};
use crate::path::{Comparison, Fault};
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
