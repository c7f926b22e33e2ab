//! Conjunctions of facts over named terms: can they hold together?
//!
//! Paths speak of numbered unknowns; conditions speak of terms such as `names_has(src)`, so that facts of different paths
//! can be compared. A conjunction is decided by congruence closure and linear integer arithmetic: equal arguments give
//! equal results, and a number lies within the bounds of its type. A contradiction that follows only from a case split over
//! integers may be missed.

use crate::linear::{Constraint, Linear, Relation, TooLarge};
use crate::path::Comparison;
use crate::solve::Solve;

/// The number of a term.
pub type Term = u32;

/// What a fact is about.
#[derive(Clone, Debug)]
pub enum Atom {
    /// A truth value.
    Truth(Term),
    /// Two values of one sort are the same.
    Same(Term, Term),
    /// A sum of terms, each with a factor, and a constant stands so to 0.
    Compare(Comparison, Vec<(Term, i64)>, i64),
}

impl Atom {
    fn terms(&self) -> Vec<Term> {
        match self {
            Self::Truth(term) => vec![*term],
            Self::Same(left, right) => vec![*left, *right],
            Self::Compare(_, terms, _) => terms.iter().map(|term| term.0).collect(),
        }
    }
}

#[derive(Debug)]
struct Shape {
    /// The function; a constant has one of its own.
    symbol: u32,
    arguments: Vec<Term>,
    low: Option<i64>,
    high: Option<i64>,
}

/// Terms and atoms, numbered in the order in which they came.
#[derive(Debug, Default)]
pub struct Facts {
    terms: Vec<Shape>,
    atoms: Vec<(Atom, Vec<Term>)>,
    /// Where a term stands among those of the conjunction under way; `NOWHERE` between two questions.
    places: Vec<u32>,
}

/// An atom, and whether it holds.
pub type Fact = (u32, bool);

const NOWHERE: u32 = u32::MAX;

impl Facts {
    /// The number of a new term: a function's value, within bounds if it is a number. Arguments have come before.
    pub fn new_term(&mut self, symbol: u32, arguments: Vec<Term>, low: Option<i64>, high: Option<i64>) -> Term {
        self.terms.push(Shape { symbol, arguments, low, high });
        self.places.push(NOWHERE);
        number(self.terms.len() - 1)
    }

    /// The number of a new atom over terms that have come before.
    pub fn new_atom(&mut self, atom: Atom) -> u32 {
        let mut within = atom.terms();
        let mut next = 0;
        while next < within.len() {
            for argument in &self.terms[within[next] as usize].arguments {
                if !within.contains(argument) {
                    within.push(*argument);
                }
            }
            next += 1;
        }
        self.atoms.push((atom, within));
        number(self.atoms.len() - 1)
    }

    /// How many terms there are.
    pub fn term_count(&self) -> usize {
        self.terms.len()
    }

    /// How many atoms there are.
    pub fn atom_count(&self) -> usize {
        self.atoms.len()
    }

    /// Whether these atoms, each with its side, cannot hold together; false may also mean that this was not found out.
    pub fn contradictory<S: Solve>(&mut self, facts: &[Fact], solver: &mut S) -> Result<bool, S::Error> {
        let mut here: Vec<Term> = vec![];
        for (atom, _) in facts {
            for &term in &self.atoms[*atom as usize].1 {
                if self.places[term as usize] == NOWHERE {
                    self.places[term as usize] = number(here.len());
                    here.push(term);
                }
            }
        }
        let found = self.decide(facts, &here, solver);
        here.iter().for_each(|term| self.places[*term as usize] = NOWHERE);
        found
    }

    /// The first of the conjunctions that can hold together with this one, as far as is found out.
    ///
    /// Most hold a fact and this one its opposite, which is seen without reasoning.
    pub fn first_compatible<'c, S: Solve>(
        &mut self,
        facts: &[Fact],
        others: impl IntoIterator<Item = (usize, &'c [Fact])>,
        solver: &mut S,
    ) -> Result<Option<usize>, S::Error> {
        let sides = self.sides(facts);
        let mut both = facts.to_vec();
        for (place, other) in others {
            if !other.iter().any(|(atom, holds)| sides[*atom as usize] == Some(!holds)) {
                both.truncate(facts.len());
                both.extend_from_slice(other);
                if !self.contradictory(&both, solver)? {
                    return Ok(Some(place));
                }
            }
        }
        Ok(None)
    }

    /// Whether the facts imply all of the others, as far as is found out.
    pub fn imply<S: Solve>(&mut self, facts: &[Fact], others: &[Fact], solver: &mut S) -> Result<bool, S::Error> {
        let sides = self.sides(facts);
        if others.iter().any(|(atom, holds)| sides[*atom as usize] == Some(!holds)) {
            return Ok(false);
        }
        let mut denied = facts.to_vec();
        for &(atom, holds) in others {
            if sides[atom as usize].is_none() {
                denied.truncate(facts.len());
                denied.push((atom, !holds));
                if !self.contradictory(&denied, solver)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn sides(&self, facts: &[Fact]) -> Vec<Option<bool>> {
        let mut sides = vec![None; self.atoms.len()];
        facts.iter().for_each(|(atom, holds)| sides[*atom as usize] = Some(*holds));
        sides
    }

    fn decide<S: Solve>(&self, facts: &[Fact], here: &[Term], solver: &mut S) -> Result<bool, S::Error> {
        let classes = self.classes(facts, here);
        let class = |term: Term| classes.find(self.places[term as usize]);
        let mut truths = vec![None; here.len()];
        for &(atom, holds) in facts {
            match &self.atoms[atom as usize].0 {
                Atom::Truth(term) if *truths[class(*term) as usize].get_or_insert(holds) != holds => return Ok(true),
                Atom::Same(left, right) if !holds && class(*left) == class(*right) => return Ok(true),
                _ => {}
            }
        }
        match self.constraints(facts, class) {
            Ok(constraints) if !constraints.is_empty() => Ok(solver.solve(constraints)?.is_none()),
            _ => Ok(false),
        }
    }

    /// Which terms are equal by what is said to be, and by congruence.
    fn classes(&self, facts: &[Fact], here: &[Term]) -> Classes {
        let mut classes = Classes((0..number(here.len())).collect());
        for &(atom, holds) in facts {
            match &self.atoms[atom as usize].0 {
                Atom::Same(left, right) if holds => {
                    classes.merge(self.places[*left as usize], self.places[*right as usize]);
                }
                Atom::Compare(Comparison::Equal, terms, 0) if holds => {
                    if let [(left, factor), (right, other)] = terms[..]
                        && factor.checked_add(other) == Some(0)
                    {
                        classes.merge(self.places[left as usize], self.places[right as usize]);
                    }
                }
                _ => {}
            }
        }
        let applied: Vec<&Shape> =
            here.iter().map(|term| &self.terms[*term as usize]).filter(|shape| !shape.arguments.is_empty()).collect();
        let places: Vec<u32> = (0..number(here.len()))
            .filter(|place| !self.terms[here[*place as usize] as usize].arguments.is_empty())
            .collect();
        let mut changed = true;
        while changed {
            changed = false;
            for (number, (shape, place)) in applied.iter().zip(&places).enumerate() {
                for (other, other_place) in applied[..number].iter().zip(&places) {
                    if shape.symbol == other.symbol
                        && shape.arguments.len() == other.arguments.len()
                        && classes.find(*place) != classes.find(*other_place)
                        && shape.arguments.iter().zip(&other.arguments).all(|(left, right)| {
                            classes.find(self.places[*left as usize]) == classes.find(self.places[*right as usize])
                        })
                    {
                        classes.merge(*place, *other_place);
                        changed = true;
                    }
                }
            }
        }
        classes
    }

    /// What is said of numbers, and the bounds of those of which something is said.
    fn constraints(&self, facts: &[Fact], class: impl Fn(Term) -> u32) -> Result<Vec<Constraint>, TooLarge> {
        let mut constraints = vec![];
        let mut bounded: Vec<Term> = vec![];
        for &(atom, holds) in facts {
            let Atom::Compare(comparison, terms, constant) = &self.atoms[atom as usize].0 else { continue };
            let linear = Linear::sum(terms.iter().map(|(term, factor)| (class(*term), *factor)), *constant)?;
            constraints.push(comparison.constraint(&linear, holds)?);
            bounded.extend(terms.iter().map(|term| term.0));
        }
        bounded.sort_unstable();
        bounded.dedup();
        for term in bounded {
            let Shape { low, high, .. } = &self.terms[term as usize];
            let low = low.map(|low| Linear::unknown(class(term), -1, low));
            let high = high.and_then(i64::checked_neg).map(|high| Linear::unknown(class(term), 1, high));
            let bounds = low.into_iter().chain(high);
            constraints.extend(bounds.map(|linear| Constraint { relation: Relation::AtMost, linear }));
        }
        Ok(constraints)
    }
}

/// A union-find without ranks: conjunctions are short.
struct Classes(Vec<u32>);

impl Classes {
    fn find(&self, mut place: u32) -> u32 {
        while self.0[place as usize] != place {
            place = self.0[place as usize];
        }
        place
    }

    fn merge(&mut self, left: u32, right: u32) {
        let (left, right) = (self.find(left), self.find(right));
        self.0[left.max(right) as usize] = left.min(right);
    }
}

fn number(position: usize) -> u32 {
    u32::try_from(position).expect("fewer than 2^32")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::{Solution, Solver};

    struct Exact(Solver);

    impl Solve for Exact {
        type Error = ();

        fn solve(&mut self, constraints: Vec<Constraint>) -> Result<Option<Solution>, ()> {
            self.0.solve(constraints, &mut |_| Err(()))
        }
    }

    #[test]
    fn congruence_bounds_and_comparisons_contradict() {
        let mut facts = Facts::default();
        let keys: Vec<Term> = (0..3).map(|symbol| facts.new_term(symbol, vec![], None, None)).collect();
        let held: Vec<Term> = keys.iter().map(|key| facts.new_term(3, vec![*key], None, None)).collect();
        let sizes: Vec<Term> = keys.iter().map(|key| facts.new_term(4, vec![*key], Some(0), Some(3))).collect();
        let first_held = facts.new_atom(Atom::Truth(held[0]));
        let last_held = facts.new_atom(Atom::Truth(held[2]));
        let first_two = facts.new_atom(Atom::Same(keys[0], keys[1]));
        let last_two = facts.new_atom(Atom::Same(keys[1], keys[2]));
        let ends = facts.new_atom(Atom::Same(keys[0], keys[2]));
        let large = facts.new_atom(Atom::Compare(Comparison::AtMost, vec![(sizes[0], 1)], -3));
        let less = facts.new_atom(Atom::Compare(Comparison::AtMost, vec![(sizes[0], 1), (sizes[2], -1)], 1));
        assert_eq!((facts.term_count(), facts.atom_count()), (9, 7));
        let mut says = |given: &[Fact]| facts.contradictory(given, &mut Exact(Solver::default()));
        assert_eq!(says(&[(first_held, true), (last_held, false)]), Ok(false));
        assert_eq!(says(&[(first_held, true), (last_held, false), (first_two, true), (last_two, true)]), Ok(true));
        assert_eq!(says(&[(first_two, true), (last_two, true), (ends, false)]), Ok(true));
        assert_eq!(says(&[(large, false)]), Ok(true));
        assert_eq!(says(&[(less, true)]), Ok(false));
        assert_eq!(says(&[(less, true), (ends, true)]), Ok(true));
        let solver = &mut Exact(Solver::default());
        assert_eq!(facts.imply(&[(first_two, true), (last_two, true)], &[(ends, true)], solver), Ok(true));
        assert_eq!(facts.imply(&[(first_two, true)], &[(ends, true)], solver), Ok(false));
        let others: [&[Fact]; 3] = [&[(less, false)], &[(ends, true)], &[(last_held, true)]];
        let numbered = || others.iter().copied().enumerate();
        assert_eq!(facts.first_compatible(&[(less, true)], numbered(), solver), Ok(Some(2)));
    }
}
