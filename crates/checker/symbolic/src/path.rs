//! One path at a time through a program over unknown values: what it has decided, and what follows.
//!
//! If a literal or its negation follows from what was decided before, that is the answer and no branch. Otherwise both
//! sides are possible, and the path takes the side that its prefix prescribes, or the true side where the prefix is used
//! up. What drives the program takes changes back one by one ([`Path::undo_last`]) to where the next path leaves the
//! last one; changes of things that the path does not know itself (`F`) are handed back in their turn.

use crate::integers::Integers;
use crate::linear::{Constraint, Linear, Relation, TooLarge, Variable};
pub use crate::literal::{Comparison, Decision, Fault, Literal, MAX_DECISIONS_PER_PATH};
use crate::solve::Solve;
use crate::sorts::{self, Sorts, Value};

/// What takes a change back.
#[derive(Debug)]
enum Change<F> {
    BoolMade,
    IntegerMade,
    Decided(u32),
    Sorts(sorts::Change),
    Constrained,
    Compared,
    Restricted,
    Foreign(F),
}

/// The decisions and consequences of a path. `F` takes a change back of which the path knows nothing itself.
#[derive(Debug)]
pub struct Path<F> {
    prefix: Vec<Decision>,
    trail: Vec<Decision>,
    /// Per decision, whether it is about presence or a flag and was taken for a restriction.
    for_restriction: Vec<bool>,
    restrictions: Vec<Decision>,
    bools: Vec<Option<bool>>,
    sorts: Sorts,
    integers: Integers,
    compared: Vec<(Comparison, Linear, bool)>,
    log: Vec<Change<F>>,
    /// Whether branches ask what the model demands of its states.
    pub in_restriction: bool,
}

impl<F> Path<F> {
    /// A path with these first decisions and without unknowns.
    pub fn new(prefix: Vec<Decision>) -> Self {
        Self {
            prefix,
            trail: vec![],
            for_restriction: vec![],
            restrictions: vec![],
            bools: vec![],
            sorts: Sorts::default(),
            integers: Integers::default(),
            compared: vec![],
            log: vec![],
            in_restriction: false,
        }
    }

    /// The branches taken.
    pub fn trail(&self) -> &[Decision] {
        &self.trail
    }

    /// How many decisions the prefix prescribes.
    pub fn prescribed(&self) -> usize {
        self.prefix.len()
    }

    /// Positions in the trail of decisions about presence and flags that were taken in a restriction.
    pub fn decided_in_restriction(&self) -> impl Iterator<Item = usize> {
        self.for_restriction.iter().enumerate().filter(|(_, restricted)| **restricted).map(|(position, _)| position)
    }

    /// What was taken for granted without a branch.
    pub fn restrictions(&self) -> &[Decision] {
        &self.restrictions
    }

    /// How many changes there are to take back.
    pub fn changes(&self) -> usize {
        self.log.len()
    }

    /// Notes what takes back a change that the path knows nothing of.
    pub fn log(&mut self, change: F) {
        self.log.push(Change::Foreign(change));
    }

    /// Takes the last change back, or returns what does.
    pub fn undo_last(&mut self) -> Option<F> {
        match self.log.pop()? {
            Change::Foreign(change) => return Some(change),
            Change::BoolMade => drop(self.bools.pop()),
            Change::IntegerMade => self.integers.unmake(),
            Change::Decided(index) => self.bools[index as usize] = None,
            Change::Sorts(change) => self.sorts.undo(change),
            Change::Constrained => self.integers.relax(),
            Change::Compared => drop(self.compared.pop()),
            Change::Restricted => drop(self.restrictions.pop()),
        }
        None
    }

    /// Prescribes the next path in the order of a depth-first search, after one that took the first `decided` decisions
    /// of the trail: the last that was true becomes false. False if there is none: all is explored.
    pub fn prescribe_next(&mut self, decided: usize) -> bool {
        let Some(last) = self.trail[..decided].iter().rposition(|decision| decision.holds) else { return false };
        self.prefix.truncate(last);
        let known = self.prefix.len();
        self.prefix.extend_from_slice(&self.trail[known..=last]);
        self.prefix[last].holds = false;
        true
    }

    /// Forgets the decisions after the first `decided`; their changes must be taken back too.
    pub fn forget_decisions(&mut self, decided: usize) {
        self.trail.truncate(decided);
        self.for_restriction.truncate(decided);
    }

    /// The index of a new boolean unknown.
    pub fn new_bool(&mut self) -> u32 {
        self.bools.push(None);
        self.log.push(Change::BoolMade);
        u32::try_from(self.bools.len() - 1).expect("fewer unknowns than 2^32")
    }

    /// The index of a new integer unknown with inclusive bounds.
    pub fn new_integer(&mut self, low: Option<i64>, high: Option<i64>) -> Result<Variable, Fault> {
        let negated = |bound: i64| bound.checked_neg().ok_or(TooLarge);
        let high = high.map(negated).transpose()?;
        let index = self.integers.make();
        self.log.push(Change::IntegerMade);
        let low = low.map(|low| Linear::unknown(index, -1, low));
        let high = high.map(|high| Linear::unknown(index, 1, high));
        for linear in low.into_iter().chain(high) {
            self.constrain(Constraint { relation: Relation::AtMost, linear });
        }
        Ok(index)
    }

    /// The index of a new value of a sort; a fresh one differs from every value that is not fresh.
    pub fn new_sort_value(&mut self, is_fresh: bool) -> Value {
        let (index, change) = self.sorts.make(is_fresh);
        self.log.push(Change::Sorts(change));
        index
    }

    /// What is known of values of sorts.
    pub fn sorts(&self) -> &Sorts {
        &self.sorts
    }

    /// What is known of integers.
    pub fn integers(&self) -> &Integers {
        &self.integers
    }

    /// The truth of a boolean unknown, if it was decided.
    pub fn bool_value(&self, index: u32) -> Option<bool> {
        self.bools.get(index as usize).copied().flatten()
    }

    /// The truth of a literal, if what was decided settles it.
    pub fn implied<S: Solve>(&self, literal: &Literal, solver: &mut S) -> Result<Option<bool>, S::Error>
    where
        S::Error: From<Fault>,
    {
        if !self.knows(literal) {
            return Err(Fault::NoSuchUnknown.into());
        }
        match literal {
            Literal::Bool(index) => Ok(self.bool_value(*index)),
            Literal::Same(left, right) => Ok(self.sorts.same(*left, *right)),
            Literal::Compare(comparison, linear) => {
                let told = self.compared.iter().find(|(kind, told, _)| kind == comparison && told == linear);
                match told {
                    Some((_, _, holds)) => Ok(Some(*holds)),
                    None => self.integers.implied(*comparison, linear, solver),
                }
            }
        }
    }

    /// Whether all unknowns that a literal speaks of exist.
    fn knows(&self, literal: &Literal) -> bool {
        match literal {
            Literal::Bool(index) => (*index as usize) < self.bools.len(),
            Literal::Same(left, right) => (*left.max(right) as usize) < self.sorts.len(),
            Literal::Compare(_, linear) => {
                linear.terms().last().is_none_or(|term| (term.0 as usize) < self.integers.len())
            }
        }
    }

    /// Whether a literal holds on this path.
    pub fn decide<S: Solve>(&mut self, literal: Literal, solver: &mut S) -> Result<bool, S::Error>
    where
        S::Error: From<Fault>,
    {
        // What the prefix prescribes here was open when the path before came here, and this one has decided the same.
        if self.prefix.get(self.trail.len()).is_none_or(|prescribed| prescribed.literal != literal)
            && let Some(known) = self.implied(&literal, solver)?
        {
            return Ok(known);
        }
        Ok(self.branch(literal)?)
    }

    /// Which side of an open literal this path takes.
    fn branch(&mut self, literal: Literal) -> Result<bool, Fault> {
        let position = self.trail.len();
        let holds = match self.prefix.get(position) {
            Some(prescribed) if prescribed.literal == literal => prescribed.holds,
            Some(_) => return Err(Fault::NotDeterministic),
            None if position >= MAX_DECISIONS_PER_PATH => return Err(Fault::TooManyDecisions),
            None => true,
        };
        self.assume(literal, holds)?;
        Ok(holds)
    }

    /// Decides an open literal without asking the prefix.
    pub fn assume(&mut self, literal: Literal, holds: bool) -> Result<(), Fault> {
        self.assert(&literal, holds)?;
        self.for_restriction.push(self.in_restriction && matches!(literal, Literal::Bool(_)));
        self.trail.push(Decision { literal, holds });
        Ok(())
    }

    /// Excludes states in which a literal is not as said; a fault if this path needs such a state.
    pub fn restrict<S: Solve>(&mut self, literal: Literal, holds: bool, solver: &mut S) -> Result<(), S::Error>
    where
        S::Error: From<Fault>,
    {
        match self.implied(&literal, solver)? {
            Some(known) if known == holds => Ok(()),
            Some(_) => Err(Fault::Infeasible.into()),
            None => {
                self.assert(&literal, holds)?;
                self.restrictions.push(Decision { literal, holds });
                self.log.push(Change::Restricted);
                Ok(())
            }
        }
    }

    fn assert(&mut self, literal: &Literal, holds: bool) -> Result<(), Fault> {
        if !self.knows(literal) {
            return Err(Fault::NoSuchUnknown);
        }
        match literal {
            Literal::Bool(index) => {
                self.bools[*index as usize] = Some(holds);
                self.log.push(Change::Decided(*index));
            }
            Literal::Same(left, right) => {
                let log = &mut self.log;
                self.sorts.assert(*left, *right, holds, |change| log.push(Change::Sorts(change)));
            }
            Literal::Compare(comparison, linear) => {
                let constraint = comparison.constraint(linear, holds)?;
                self.compared.push((*comparison, linear.clone(), holds));
                self.log.push(Change::Compared);
                self.constrain(constraint);
            }
        }
        Ok(())
    }

    fn constrain(&mut self, constraint: Constraint) {
        self.integers.constrain(constraint);
        self.log.push(Change::Constrained);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::solve::{Solution, Solver};

    impl Solve for Solver {
        type Error = Fault;

        fn solve(&mut self, constraints: Vec<Constraint>) -> Result<Option<Solution>, Fault> {
            Solver::solve(self, constraints, &mut |_| panic!("unit coefficients are eliminated exactly"))
        }
    }

    fn literals() -> impl Strategy<Value = Literal> {
        let comparison = prop_oneof![Just(Comparison::AtMost), Just(Comparison::Equal)];
        prop_oneof![
            (0..2_u32).prop_map(Literal::Bool),
            (0..4_u32, 0..4_u32).prop_map(|(left, right)| Literal::Same(left.min(right), left.max(right))),
            (comparison, 0..2_u32, -2..3_i64)
                .prop_map(|(kind, variable, constant)| Literal::Compare(kind, Linear::unknown(variable, 1, constant))),
        ]
    }

    fn new_path() -> Path<()> {
        let mut path = Path::new(vec![]);
        (0..2).for_each(|_| _ = path.new_bool());
        (0..4).for_each(|value| _ = path.new_sort_value(value == 3));
        path.new_integer(Some(0), Some(2)).expect("small");
        path.new_integer(None, None).expect("small");
        path
    }

    /// What a path knows, its prefix and log apart.
    fn knowledge(path: &Path<()>) -> String {
        let Path { trail, for_restriction, restrictions, bools, sorts, integers, compared, .. } = path;
        format!("{trail:?} {for_restriction:?} {restrictions:?} {bools:?} {sorts:?} {integers:?} {compared:?}")
    }

    proptest! {
        /// Paths come in depth-first order, no two alike, and each begins with no trace of those before.
        #[test]
        fn every_path_starts_from_the_same_knowledge(questions in proptest::collection::vec(literals(), 0..6)) {
            let (mut path, mut solver) = (new_path(), Solver::default());
            let (start, changes) = (knowledge(&path), path.changes());
            let mut found: Vec<Vec<bool>> = vec![];
            loop {
                let answers: Result<Vec<bool>, Fault> =
                    questions.iter().map(|question| path.decide(question.clone(), &mut solver)).collect();
                let answers = answers.expect("consistent");
                prop_assert!(found.last().is_none_or(|before| *before > answers), "{:?} behind {:?}", answers, found.last());
                for (question, answer) in questions.iter().zip(&answers) {
                    prop_assert_eq!(path.implied(question, &mut solver), Ok(Some(*answer)));
                }
                found.push(answers);
                if !path.prescribe_next(path.trail().len()) {
                    break;
                }
                path.forget_decisions(0);
                while path.changes() > changes {
                    path.undo_last();
                }
                prop_assert_eq!(&knowledge(&path), &start);
            }
        }
    }

    #[test]
    fn restrictions_exclude() {
        let (mut path, mut solver) = (new_path(), Solver::default());
        assert_eq!(path.restrict(Literal::Bool(0), true, &mut solver), Ok(()));
        assert_eq!(path.restrict(Literal::Bool(0), false, &mut solver), Err(Fault::Infeasible));
        assert_eq!(path.decide(Literal::Bool(0), &mut solver), Ok(true));
        assert_eq!((path.trail().len(), path.restrictions().len()), (0, 1));
    }

    #[test]
    fn another_question_at_the_same_place_is_a_fault() {
        let mut path = Path::<()>::new(vec![Decision { literal: Literal::Bool(1), holds: false }]);
        (0..2).for_each(|_| _ = path.new_bool());
        let mut solver = Solver::default();
        assert_eq!(path.decide(Literal::Bool(0), &mut solver), Err(Fault::NotDeterministic));
        assert_eq!(path.decide(Literal::Bool(1), &mut solver), Ok(false));
        assert_eq!(path.decide(Literal::Bool(2), &mut solver), Err(Fault::NoSuchUnknown));
    }

    #[test]
    fn a_loop_without_end_is_a_fault() {
        let (mut path, mut solver) = (Path::<()>::new(vec![]), Solver::default());
        for _ in 0..MAX_DECISIONS_PER_PATH {
            let index = path.new_bool();
            assert_eq!(path.decide(Literal::Bool(index), &mut solver), Ok(true));
        }
        let index = path.new_bool();
        let refused = path.decide(Literal::Bool(index), &mut solver);
        assert_eq!(refused, Err(Fault::TooManyDecisions));
    }
}
