//! Batches for runners and the judgement of their results (crate `wire`).

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wire::batch::{Batch, PlacedCall, Step, Window};
use wire::case::{Case, Order, Part, read_calls, read_orders, read_steps};
use wire::results::{self, WindowResult};
use wire::{WireError, judge};

/// Adds this part to the native module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TestBook>()?;
    module.add_class::<Sequences>()
}

/// Test cases by number, so that each is read once however often it is run; they are made of parts, likewise by number,
/// that are read and kept once however many cases share them.
#[pyclass]
#[derive(Default)]
pub struct TestBook {
    calls: Vec<Arc<Part<PlacedCall>>>,
    steps: Vec<Arc<Part<Step>>>,
    orders: Vec<Arc<Vec<Order>>>,
    cases: Vec<Case>,
}

#[pymethods]
impl TestBook {
    /// An empty book.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Reads calls from their JSON text and returns their number. ValueError says what is wrong with them.
    fn add_calls(&mut self, text: &str) -> PyResult<usize> {
        self.calls.push(read_calls(text).map_err(value_error)?);
        Ok(self.calls.len() - 1)
    }

    /// Reads the steps of a set-up or an observation likewise; `member` says of which.
    fn add_steps(&mut self, member: &str, text: &str) -> PyResult<usize> {
        self.steps.push(read_steps(member, text).map_err(value_error)?);
        Ok(self.steps.len() - 1)
    }

    /// Reads orders likewise.
    fn add_orders(&mut self, text: &str) -> PyResult<usize> {
        self.orders.push(read_orders(text).map_err(value_error)?);
        Ok(self.orders.len() - 1)
    }

    /// Adds the test case of these parts and returns its number. ValueError says why they do not go together.
    fn add_case(&mut self, calls: usize, setup: usize, observe: usize, orders: usize) -> PyResult<usize> {
        let case = Case::new(
            part(&self.calls, calls)?,
            part(&self.steps, setup)?,
            part(&self.steps, observe)?,
            part(&self.orders, orders)?,
        );
        self.cases.push(case.map_err(value_error)?);
        Ok(self.cases.len() - 1)
    }

    /// The binary batch for windows, each a pair of a test's number and the index of one of its orders.
    fn encode<'py>(&self, python: Python<'py>, windows: Vec<(usize, usize)>) -> PyResult<Bound<'py, PyBytes>> {
        let mut batch = Batch::default();
        let mut placed: Vec<Option<usize>> = vec![None; self.cases.len()];
        for (number, order) in windows {
            let case = self.case(number)?;
            let order = case.orders.get(order).ok_or_else(|| PyIndexError::new_err("no such order"))?;
            let test = *placed[number].get_or_insert_with(|| case.add_to(&mut batch));
            batch.windows.push(Window { test, order: order.order.clone() });
        }
        let bytes = batch.encode().map_err(value_error)?;
        Ok(PyBytes::new(python, &bytes))
    }

    /// Judges a batch's results: per window None if there is nothing to say, or what was wrong, what the target does not
    /// offer, how its set-up led elsewhere by a choice that is allowed (one of these, or none), and the calls whose
    /// transactions were aborted. ValueError if the bytes are not the results of these windows.
    fn judge(&self, python: Python<'_>, windows: Vec<(usize, usize)>, bytes: &[u8]) -> PyResult<Vec<Option<Judged>>> {
        python.detach(|| {
            let results = results::decode(bytes).map_err(value_error)?;
            if results.len() != windows.len() {
                let message = format!("results of {} windows: expected {}", results.len(), windows.len());
                return Err(PyValueError::new_err(message));
            }
            windows
                .iter()
                .zip(&results)
                .map(|((number, order), result)| Ok(judged(self.case(*number)?, *order, result)))
                .collect()
        })
    }
}

/// What was wrong, what the target does not offer, how the set-up led elsewhere, and the calls whose transactions were
/// aborted.
type Judged = (Option<String>, Option<String>, Option<String>, Vec<usize>);

fn judged(case: &Case, order: usize, result: &WindowResult<'_>) -> Option<Judged> {
    if let WindowResult::Unsupported(why) = result {
        return Some((None, Some(why.clone()), None, vec![]));
    }
    if let Some(why) = judge::unreached(case, result) {
        return Some((None, None, Some(why), vec![]));
    }
    let aborted = if let WindowResult::Ran { aborted, .. } = result { *aborted } else { 0 };
    let wrong = judge::wrong(case, order, result);
    let is_silent = wrong.is_none() && aborted == 0;
    (!is_silent).then(|| (wrong, None, None, (0..8).filter(|index| aborted >> index & 1 == 1).collect()))
}

/// Sequences of calls for one batch, each a test case without calls under test, whose steps have expected results.
#[pyclass]
pub struct Sequences {
    cases: Vec<Case>,
}

#[pymethods]
impl Sequences {
    /// Reads sequences from their JSON texts. ValueError says which one is wrong, and how.
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "Python hands over a list of its own")]
    fn new(texts: Vec<String>) -> PyResult<Self> {
        let parse = |(index, text): (usize, &String)| {
            Case::parse(text).map_err(|error| PyValueError::new_err(format!("sequence {index}: {error}")))
        };
        Ok(Self { cases: texts.iter().enumerate().map(parse).collect::<PyResult<_>>()? })
    }

    /// The binary batch that runs each sequence once.
    fn encode<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut batch = Batch::default();
        for case in &self.cases {
            let test = case.add_to(&mut batch);
            batch.windows.push(Window { test, order: vec![] });
        }
        let bytes = batch.encode().map_err(value_error)?;
        Ok(PyBytes::new(python, &bytes))
    }

    /// Reads the batch's results: per sequence None if all came as expected, else the JSON text of what came,
    /// `{"results": [...], "observation": [...]}` or `{"refused": "why"}`. ValueError if the bytes are not the results of
    /// these sequences.
    fn read(&self, python: Python<'_>, bytes: &[u8]) -> PyResult<Vec<Option<String>>> {
        python.detach(|| {
            let results = results::decode(bytes).map_err(value_error)?;
            if results.len() != self.cases.len() {
                let message = format!("results of {} sequences: expected {}", results.len(), self.cases.len());
                return Err(PyValueError::new_err(message));
            }
            let came = |(case, result)| (!judge::as_expected(case, result)).then(|| result.to_json());
            Ok(self.cases.iter().zip(&results).map(came).collect())
        })
    }
}

fn value_error(error: WireError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn part<T>(parts: &[Arc<T>], number: usize) -> PyResult<Arc<T>> {
    parts.get(number).cloned().ok_or_else(|| PyIndexError::new_err("no such part"))
}

impl TestBook {
    fn case(&self, number: usize) -> PyResult<&Case> {
        self.cases.get(number).ok_or_else(|| PyIndexError::new_err("no such test"))
    }
}
