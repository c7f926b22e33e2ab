//! Conjunctions of facts over named terms; see `commutant.analyzer.facts`.

use ::symbolic::Comparison;
use ::symbolic::facts::{Atom, Fact, Facts, Term};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::integers::{Number, ThreadSolver};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Cubes>()?;
    module.add_class::<FactTable>()
}

/// Terms and what facts are about, by number. An atom's number is positive; the opposite fact is its negative.
#[pyclass(module = "commutant._native")]
#[derive(Default)]
struct FactTable(Facts);

#[pymethods]
impl FactTable {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The number of a new term.
    #[pyo3(signature = (symbol, arguments, low = None, high = None))]
    fn new_term(&mut self, symbol: u32, arguments: Vec<Term>, low: Option<i64>, high: Option<i64>) -> PyResult<Term> {
        self.check(arguments.iter().copied())?;
        Ok(self.0.new_term(symbol, arguments, low, high))
    }

    /// The number of the atom that a term is true.
    fn new_truth(&mut self, term: Term) -> PyResult<i64> {
        self.new_atom(Atom::Truth(term), &[term])
    }

    /// The number of the atom that two terms are the same.
    fn new_same(&mut self, left: Term, right: Term) -> PyResult<i64> {
        self.new_atom(Atom::Same(left, right), &[left, right])
    }

    /// The number of the atom that a sum is 0 (`is_equal`), or at most 0.
    fn new_comparison(&mut self, is_equal: bool, terms: Vec<(Term, Number)>, constant: Number) -> PyResult<i64> {
        let comparison = if is_equal { Comparison::Equal } else { Comparison::AtMost };
        let terms: Vec<(Term, i64)> = terms.into_iter().map(|(term, factor)| (term, factor.0)).collect();
        let within: Vec<Term> = terms.iter().map(|term| term.0).collect();
        self.new_atom(Atom::Compare(comparison, terms, constant.0), &within)
    }

    /// Whether the facts cannot hold together; False may also mean that this was not found out.
    fn contradictory(&mut self, py: Python<'_>, facts: Vec<i64>) -> PyResult<bool> {
        let facts = self.sided(&facts)?;
        Ok(self.0.contradictory(&facts, &mut ThreadSolver(py))?)
    }

    /// Conjunctions that others are compared with.
    fn cubes(&self, cubes: Vec<Vec<i64>>) -> PyResult<Cubes> {
        cubes.iter().map(|cube| self.sided(cube)).collect::<PyResult<_>>().map(Cubes)
    }

    /// The place of a conjunction that can hold together with these facts; those at `first` are asked first.
    fn first_compatible(
        &mut self,
        py: Python<'_>,
        facts: Vec<i64>,
        cubes: &Cubes,
        first: Vec<usize>,
    ) -> PyResult<Option<usize>> {
        let facts = self.sided(&facts)?;
        let cubes = &cubes.0;
        let others = first.into_iter().filter(|place| *place < cubes.len()).chain(0..cubes.len());
        let others = others.map(|place| (place, cubes[place].as_slice()));
        Ok(self.0.first_compatible(&facts, others, &mut ThreadSolver(py))?)
    }

    /// The places of the conjunctions that the facts imply.
    fn implied(&mut self, py: Python<'_>, facts: Vec<i64>, cubes: &Cubes) -> PyResult<Vec<usize>> {
        let facts = self.sided(&facts)?;
        let mut places = vec![];
        for (place, cube) in cubes.0.iter().enumerate() {
            if self.0.imply(&facts, cube, &mut ThreadSolver(py))? {
                places.push(place);
            }
        }
        Ok(places)
    }
}

/// Conjunctions of facts of one table.
#[pyclass(module = "commutant._native", frozen)]
struct Cubes(Vec<Vec<Fact>>);

impl FactTable {
    fn sided(&self, facts: &[i64]) -> PyResult<Vec<Fact>> {
        let known = self.0.atom_count();
        let sided = facts.iter().map(|fact| {
            let atom = u32::try_from(fact.unsigned_abs()).ok().and_then(|number| number.checked_sub(1));
            let atom = atom.filter(|atom| (*atom as usize) < known);
            atom.map(|atom| (atom, *fact > 0)).ok_or_else(|| PyValueError::new_err(format!("no fact {fact}")))
        });
        sided.collect()
    }

    fn check(&self, terms: impl Iterator<Item = Term>) -> PyResult<()> {
        let known = self.0.term_count();
        let mut unknown = terms.filter(|term| *term as usize >= known);
        unknown.next().map_or(Ok(()), |term| Err(PyValueError::new_err(format!("no term {term}"))))
    }

    fn new_atom(&mut self, atom: Atom, terms: &[Term]) -> PyResult<i64> {
        self.check(terms.iter().copied())?;
        Ok(i64::from(self.0.new_atom(atom)) + 1)
    }
}
