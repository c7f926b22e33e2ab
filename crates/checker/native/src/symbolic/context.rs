//! A run of a program over unknown values: the path (crate `symbolic`), its unknowns' names, its steps, and what takes
//! back changes of Python's own objects.

use std::cell::RefCell;

use ::symbolic::{Fault, Literal as Statement, Path};
use pyo3::PyClass;
use pyo3::exceptions::{PyAssertionError, PyKeyError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::False;
use pyo3::types::{PyDict, PyList, PySet, PyTuple};

use super::integers::{Number, ThreadSolver, solution_dict};
use super::literals::{Decision, Literal, shown};
use super::problem::Problem;

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(current, module)?)?;
    module.add_function(wrap_pyfunction!(install, module)?)?;
    module.add_class::<Mark>()?;
    module.add_class::<Context>()
}

thread_local! {
    static CURRENT: RefCell<Option<Py<Context>>> = const { RefCell::new(None) };
}

/// The context of the run under way.
#[pyfunction]
pub fn current(py: Python<'_>) -> PyResult<Py<Context>> {
    let context = CURRENT.with_borrow(|current| current.as_ref().map(|context| context.clone_ref(py)));
    context.ok_or_else(|| PyAssertionError::new_err("an unknown value was used outside of symbolic exploration"))
}

/// Makes a context the current one and returns the one before.
#[pyfunction]
fn install(context: Option<Py<Context>>) -> Option<Py<Context>> {
    CURRENT.replace(context)
}

/// Whether a literal holds on the path of the run under way.
pub fn decide(py: Python<'_>, literal: Statement) -> Result<bool, Problem> {
    let context = current(py)?;
    let mut context = context.borrow_mut(py);
    context.path.decide(literal, &mut ThreadSolver(py))
}

/// Excludes states in which a literal does not hold.
pub fn restrict(py: Python<'_>, literal: Statement) -> PyResult<()> {
    let context = current(py)?;
    let mut context = context.borrow_mut(py);
    Ok(context.path.restrict(literal, true, &mut ThreadSolver(py))?)
}

/// Notes what takes back a change that the step under way makes, if there is one under way.
pub fn undo_with(py: Python<'_>, undo: impl FnOnce() -> PyResult<Undo>) -> PyResult<()> {
    let context = CURRENT.with_borrow(|current| current.as_ref().map(|context| context.clone_ref(py)));
    let Some(context) = context else { return Ok(()) };
    let undo = undo()?;
    context.borrow_mut(py).path.log(undo);
    Ok(())
}

/// Takes back a change of a native object; the number says which, as the one that logged it chose.
pub type TakeBack = fn(&Bound<'_, PyAny>, usize);

/// Notes what takes back a change of a native object that the step under way makes.
pub fn log<T>(object: &Bound<'_, T>, detail: usize, take_back: TakeBack) -> PyResult<()> {
    let py = object.py();
    let undo = Undo::Native(object.clone().into_any().unbind(), detail, take_back);
    current(py)?.borrow_mut(py).path.log(undo);
    Ok(())
}

/// The object that a [`TakeBack`] gets, which was logged as one of this class.
pub fn logged<'py, T: PyClass<Frozen = False>>(object: &Bound<'py, PyAny>) -> PyRefMut<'py, T> {
    object.downcast::<T>().expect("logged as this class").borrow_mut()
}

/// What takes back a change of Python's objects.
pub enum Undo {
    Remove(Py<PyDict>, Py<PyAny>),
    Restore(Py<PyDict>, Py<PyAny>, Py<PyAny>),
    Call(Py<PyAny>, Py<PyTuple>),
    Shorten(Names),
    Native(Py<PyAny>, usize, TakeBack),
}

impl Undo {
    fn run(self, context: &Bound<'_, Context>) -> PyResult<()> {
        let py = context.py();
        match self {
            Self::Remove(mapping, key) => match mapping.bind(py).del_item(key) {
                Err(error) if error.is_instance_of::<PyKeyError>(py) => Ok(()),
                outcome => outcome,
            },
            Self::Restore(mapping, key, value) => mapping.bind(py).set_item(key, value),
            Self::Call(function, arguments) => function.bind(py).call1(arguments.bind(py)).map(drop),
            Self::Native(object, detail, take_back) => {
                take_back(object.bind(py), detail);
                Ok(())
            }
            Self::Shorten(names) => {
                let unknowns = context.borrow().unknowns.clone_ref(py);
                match names {
                    Names::Bools => shorten(unknowns.bool_terms.bind(py)),
                    Names::Integers => shorten(unknowns.int_terms.bind(py)),
                    Names::SortValues => {
                        shorten(unknowns.sort_terms.bind(py))?;
                        shorten(unknowns.sort_names.bind(py))
                    }
                }
            }
        }
    }
}

fn shorten(list: &Bound<'_, PyList>) -> PyResult<()> {
    list.del_item(list.len() - 1)
}

/// Lists of what unknowns stand for.
#[derive(Clone, Copy)]
pub enum Names {
    Bools,
    Integers,
    SortValues,
}

/// What the unknowns stand for, in Python's words.
struct Unknowns {
    bool_terms: Py<PyList>,
    int_terms: Py<PyList>,
    sort_terms: Py<PyList>,
    sort_names: Py<PyList>,
    bool_usual: Py<PyDict>,
    content_sorts: Py<PySet>,
    constants: Py<PyDict>,
}

impl Unknowns {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let list = || PyList::empty(py).unbind();
        Ok(Self {
            bool_terms: list(),
            int_terms: list(),
            sort_terms: list(),
            sort_names: list(),
            bool_usual: PyDict::new(py).unbind(),
            content_sorts: PySet::empty(py)?.unbind(),
            constants: PyDict::new(py).unbind(),
        })
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            bool_terms: self.bool_terms.clone_ref(py),
            int_terms: self.int_terms.clone_ref(py),
            sort_terms: self.sort_terms.clone_ref(py),
            sort_names: self.sort_names.clone_ref(py),
            bool_usual: self.bool_usual.clone_ref(py),
            content_sorts: self.content_sorts.clone_ref(py),
            constants: self.constants.clone_ref(py),
        }
    }
}

/// A point on a path to go back to.
#[pyclass(frozen, module = "commutant._native")]
#[derive(Clone, Copy)]
pub struct Mark {
    decisions: usize,
    changes: usize,
}

/// A part of the program that has run: the point that was reached after it, and what it returned.
struct Step {
    end: Mark,
    result: Py<PyAny>,
}

/// The unknowns, decisions and consequences of one path; see `commutant.symbolic.engine`.
#[pyclass(module = "commutant._native")]
pub struct Context {
    /// What was decided.
    pub path: Path<Undo>,
    unknowns: Unknowns,
    steps: Vec<Step>,
    next_step: usize,
    /// Whether a record that a state holds was stored again.
    #[pyo3(get, set)]
    may_share: bool,
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (prefix = Vec::new()))]
    fn new(py: Python<'_>, prefix: Vec<PyRef<'_, Decision>>) -> PyResult<Self> {
        let path = Path::new(prefix.iter().map(|decision| decision.0.clone()).collect());
        Ok(Self { path, unknowns: Unknowns::new(py)?, steps: vec![], next_step: 0, may_share: false })
    }

    /// What a part of the program returns: it runs unless a path before has gone through it in the same way.
    fn step(slf: &Bound<'_, Self>, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        {
            let mut context = slf.borrow_mut();
            let number = context.next_step;
            context.next_step += 1;
            if let Some(kept) = context.steps.get(number) {
                return Ok(kept.result.clone_ref(py));
            }
        }
        let result = function.call0()?.unbind();
        slf.borrow_mut().took(result.clone_ref(py));
        Ok(result)
    }

    /// What the first of several steps returns that does not return None; those after it are not made.
    fn first_of(slf: &Bound<'_, Self>, functions: &Bound<'_, PyList>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let mut kept = 0;
        {
            let mut context = slf.borrow_mut();
            while kept < functions.len() && context.next_step < context.steps.len() {
                let result = context.steps[context.next_step].result.clone_ref(py);
                context.next_step += 1;
                kept += 1;
                if !result.is_none(py) {
                    return Ok(result);
                }
            }
        }
        for function in functions.iter().skip(kept) {
            let result = function.call0()?.unbind();
            let mut context = slf.borrow_mut();
            context.took(result.clone_ref(py));
            context.next_step += 1;
            if !result.is_none(py) {
                return Ok(result);
            }
        }
        Ok(py.None())
    }

    /// Sets a key of a mapping that outlives the step.
    fn put(
        slf: &Bound<'_, Self>,
        mapping: &Bound<'_, PyDict>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let before = mapping.get_item(key)?;
        mapping.set_item(key, value)?;
        let (mapping, key) = (mapping.clone().unbind(), key.clone().unbind());
        slf.borrow_mut().path.log(match before {
            None => Undo::Remove(mapping, key),
            Some(before) => Undo::Restore(mapping, key, before.unbind()),
        });
        Ok(())
    }

    /// Says that a key, which the step is about to set, was not in a mapping.
    fn undo_pop(&mut self, mapping: Py<PyDict>, key: Py<PyAny>) {
        self.path.log(Undo::Remove(mapping, key));
    }

    /// Says what takes a change back that the step is about to make.
    #[pyo3(signature = (function, *arguments))]
    fn undo_with(&mut self, function: Py<PyAny>, arguments: Py<PyTuple>) {
        self.path.log(Undo::Call(function, arguments));
    }

    /// How many decisions the path has taken that ends here.
    fn end_path(&self) -> PyResult<usize> {
        let taken = self.path.trail().len();
        if taken < self.path.prescribed() {
            return Err(Problem::from(Fault::NotDeterministic).into());
        }
        Ok(taken)
    }

    /// Begins the next path in the order of a depth-first search, after one that has taken this many decisions; False
    /// if there is none.
    fn next_path(slf: &Bound<'_, Self>, decided: usize) -> PyResult<bool> {
        let (dropped, changes);
        {
            let mut context = slf.borrow_mut();
            if !context.path.prescribe_next(decided) {
                return Ok(false);
            }
            let prescribed = context.path.prescribed();
            let kept =
                context.steps.iter().rposition(|step| step.end.decisions < prescribed).map_or(0, |last| last + 1);
            dropped = context.steps.split_off(kept);
            let start = context.steps.last().map_or(Mark { decisions: 0, changes: 0 }, |step| step.end);
            context.path.forget_decisions(start.decisions);
            changes = start.changes;
            context.next_step = 0;
            context.may_share = false;
        }
        drop(dropped);
        Self::undo_to(slf, changes)?;
        Ok(true)
    }

    /// The point that the path has reached.
    fn mark(&self) -> Mark {
        Mark { decisions: self.path.trail().len(), changes: self.path.changes() }
    }

    /// Takes back all that was decided and changed after a point.
    fn take_back(slf: &Bound<'_, Self>, mark: PyRef<'_, Mark>) -> PyResult<()> {
        slf.borrow_mut().path.forget_decisions(mark.decisions);
        Self::undo_to(slf, mark.changes)
    }

    /// The index of a new boolean unknown.
    pub fn new_bool(&mut self, py: Python<'_>, term: &Bound<'_, PyAny>) -> PyResult<u32> {
        self.unknowns.bool_terms.bind(py).append(term)?;
        self.path.log(Undo::Shorten(Names::Bools));
        Ok(self.path.new_bool())
    }

    /// The index of a new integer unknown with inclusive bounds (None: unbounded).
    pub fn new_int(
        &mut self,
        py: Python<'_>,
        term: &Bound<'_, PyAny>,
        low: Option<Number>,
        high: Option<Number>,
    ) -> PyResult<u32> {
        self.unknowns.int_terms.bind(py).append(term)?;
        self.path.log(Undo::Shorten(Names::Integers));
        let index = self.path.new_integer(low.map(|low| low.0), high.map(|high| high.0)).map_err(Problem::from)?;
        Ok(index)
    }

    /// The index of a new value of a sort; a fresh one differs from every value that is not fresh.
    #[pyo3(signature = (sort, term, *, fresh = false))]
    fn new_sort_value(
        &mut self,
        py: Python<'_>,
        sort: &Bound<'_, PyAny>,
        term: &Bound<'_, PyAny>,
        fresh: bool,
    ) -> PyResult<u32> {
        self.unknowns.sort_terms.bind(py).append(term)?;
        self.unknowns.sort_names.bind(py).append(sort)?;
        self.path.log(Undo::Shorten(Names::SortValues));
        Ok(self.path.new_sort_value(fresh))
    }

    /// Whether the literal holds on this path.
    fn decide(&mut self, py: Python<'_>, literal: &Literal) -> PyResult<bool> {
        Ok(self.path.decide(literal.0.clone(), &mut ThreadSolver(py))?)
    }

    /// Excludes states in which the literal is not as said; Infeasible if this path needs such a state.
    #[pyo3(signature = (literal, holds = true))]
    fn restrict(&mut self, py: Python<'_>, literal: &Literal, holds: bool) -> PyResult<()> {
        Ok(self.path.restrict(literal.0.clone(), holds, &mut ThreadSolver(py))?)
    }

    /// Decides an open literal without asking the prefix.
    fn assume(&mut self, literal: &Literal, holds: bool) -> PyResult<()> {
        Ok(self.path.assume(literal.0.clone(), holds).map_err(Problem::from)?)
    }

    /// The truth of the literal if what was decided settles it, else None.
    fn implied(&self, py: Python<'_>, literal: &Literal) -> PyResult<Option<bool>> {
        Ok(self.path.implied(&literal.0, &mut ThreadSolver(py))?)
    }

    /// The representative of the values that are known to equal this one.
    fn find(&self, index: u32) -> u32 {
        self.path.sorts().find(index)
    }

    /// Whether a value was made as one that differs from all that are not fresh.
    fn is_fresh(&self, index: u32) -> bool {
        self.path.sorts().is_fresh(index)
    }

    /// The truth of a boolean unknown, None where it is open.
    fn bool_value(&self, index: u32) -> Option<bool> {
        self.path.bool_value(index)
    }

    /// Small values for all integer unknowns that satisfy every decision.
    fn int_solution<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = self.path.integers().solution(&mut ThreadSolver(py))?;
        solution_dict(py, (0..).zip(values))
    }

    /// Values for all integer unknowns that satisfy every decision and differ where those leave it open; `held` ones are
    /// as small as in `int_solution`.
    fn int_values_apart<'py>(&self, py: Python<'py>, held: Vec<u32>) -> PyResult<Bound<'py, PyDict>> {
        let values = self.path.integers().spread(&held, &mut ThreadSolver(py))?;
        solution_dict(py, (0..).zip(values))
    }

    /// The integer unknowns that some decision or restriction (bounds apart) mentions.
    fn constrained_ints<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        let found = PySet::empty(py)?;
        for decision in self.path.trail().iter().chain(self.path.restrictions()) {
            if let Statement::Compare(_, linear) = &decision.literal {
                linear.terms().iter().try_for_each(|(variable, _)| found.add(variable))?;
            }
        }
        Ok(found)
    }

    /// The branches taken, from one position to before another.
    #[pyo3(signature = (start = 0, end = None))]
    fn decided<'py>(&self, py: Python<'py>, start: usize, end: Option<usize>) -> PyResult<Bound<'py, PyTuple>> {
        let trail = self.path.trail();
        let end = end.map_or(trail.len(), |end| end.min(trail.len()));
        PyTuple::new(py, shown(trail.get(start..end).unwrap_or_default()))
    }

    #[getter]
    fn trail_length(&self) -> usize {
        self.path.trail().len()
    }

    #[getter]
    fn trail(&self) -> Vec<Decision> {
        shown(self.path.trail())
    }

    #[getter]
    fn restrictions(&self) -> Vec<Decision> {
        shown(self.path.restrictions())
    }

    #[getter]
    fn restricted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        PySet::new(py, self.path.decided_in_restriction().collect::<Vec<_>>())
    }

    #[getter]
    fn in_restriction(&self) -> bool {
        self.path.in_restriction
    }

    #[setter]
    fn set_in_restriction(&mut self, is_in: bool) {
        self.path.in_restriction = is_in;
    }

    #[getter]
    fn bool_terms(&self, py: Python<'_>) -> Py<PyList> {
        self.unknowns.bool_terms.clone_ref(py)
    }

    #[getter]
    fn int_terms(&self, py: Python<'_>) -> Py<PyList> {
        self.unknowns.int_terms.clone_ref(py)
    }

    #[getter]
    fn sort_terms(&self, py: Python<'_>) -> Py<PyList> {
        self.unknowns.sort_terms.clone_ref(py)
    }

    #[getter]
    fn sort_names(&self, py: Python<'_>) -> Py<PyList> {
        self.unknowns.sort_names.clone_ref(py)
    }

    #[getter]
    fn bool_usual(&self, py: Python<'_>) -> Py<PyDict> {
        self.unknowns.bool_usual.clone_ref(py)
    }

    #[getter]
    fn content_sorts(&self, py: Python<'_>) -> Py<PySet> {
        self.unknowns.content_sorts.clone_ref(py)
    }

    #[getter]
    fn constants(&self, py: Python<'_>) -> Py<PyDict> {
        self.unknowns.constants.clone_ref(py)
    }
}

impl Context {
    /// Takes changes back until this many are left.
    fn undo_to(slf: &Bound<'_, Self>, changes: usize) -> PyResult<()> {
        loop {
            let undo = {
                let mut context = slf.borrow_mut();
                loop {
                    if context.path.changes() <= changes {
                        return Ok(());
                    }
                    if let Some(undo) = context.path.undo_last() {
                        break undo;
                    }
                }
            };
            undo.run(slf)?;
        }
    }

    fn took(&mut self, result: Py<PyAny>) {
        let end = self.mark();
        self.steps.push(Step { end, result });
    }
}
