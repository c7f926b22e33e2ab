//! A test case as read from its JSON object (`docs/reference/test-cases.md`): what to run, and what may come.
//!
//! A *sequence* of calls, one after the other, is a test case without calls under test and so without orders: its calls
//! are the steps of the set-up, each with the `core` that it is made on, and every step has a `result` that is expected.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::batch::{Batch, PlacedCall, Shape, Step, Test, is_permutation};
use crate::bytes::WireError;
use crate::value::Value;

/// One acceptable outcome of one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Results in the order of the test's calls.
    pub results: Vec<Value<'static>>,
    /// Results of the observation.
    pub observation: Vec<Value<'static>>,
}

/// One order of the calls with every outcome that is acceptable for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The calls' indices in the order of execution.
    pub order: Vec<u8>,
    /// At least one outcome.
    pub outcomes: Vec<Outcome>,
}

/// Calls or steps of a case, with the shapes that they are of: what cases share is read once, and kept once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<T> {
    shapes: Vec<Shape<'static>>,
    items: Vec<T>,
}

impl<T> Part<T> {
    fn read(
        member: &str,
        list: &[Json],
        read: impl Fn(&mut Batch, &Json) -> Result<T, WireError>,
    ) -> Result<Arc<Self>, WireError> {
        let mut scratch = Batch::default();
        let items = list
            .iter()
            .enumerate()
            .map(|(index, item)| read(&mut scratch, item).map_err(|error| at(&error, member, index)))
            .collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { shapes: scratch.shapes, items }))
    }

    /// A call as a reader knows it: `open(name="n0", creat=true)`.
    fn text(&self, shape: usize, arguments: &[Value<'_>]) -> String {
        let shape = &self.shapes[shape];
        let arguments: Vec<String> =
            shape.parameters.iter().zip(arguments).map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}({})", shape.call, arguments.join(", "))
    }
}

impl<T: Clone> Part<T> {
    /// The items as they stand in a batch; `shape` is where an item says its shape.
    fn for_batch(&self, batch: &mut Batch, shape: impl Fn(&mut T) -> &mut usize) -> Vec<T> {
        let shapes: Vec<usize> = self.shapes.iter().map(|shape| batch.intern_shape(shape)).collect();
        let mut items = self.items.clone();
        for item in &mut items {
            let shape = shape(item);
            *shape = shapes[*shape];
        }
        items
    }
}

/// Reads the JSON text of the calls of a case.
///
/// # Errors
/// What is missing or of the wrong kind, and where.
pub fn read_calls(text: &str) -> Result<Arc<Part<PlacedCall>>, WireError> {
    Part::read("calls", array(&json(text)?)?, placed_call)
}

/// Reads the JSON text of the steps of a set-up or an observation (`member` says of which).
///
/// # Errors
/// As [`read_calls`].
pub fn read_steps(member: &str, text: &str) -> Result<Arc<Part<Step>>, WireError> {
    Part::read(member, array(&json(text)?)?, step)
}

/// Reads the JSON text of the orders of a case.
///
/// # Errors
/// As [`read_calls`].
pub fn read_orders(text: &str) -> Result<Arc<Vec<Order>>, WireError> {
    orders(array(&json(text)?)?)
}

/// A test case: what the runner does, and the orders for the judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    calls: Arc<Part<PlacedCall>>,
    setup: Arc<Part<Step>>,
    observe: Arc<Part<Step>>,
    /// All orders.
    pub orders: Arc<Vec<Order>>,
}

impl Case {
    /// Reads the JSON text of a test case. Members that only describe the test are not looked at.
    ///
    /// # Errors
    /// What is missing or of the wrong kind, and where.
    pub fn parse(text: &str) -> Result<Self, WireError> {
        let json = json(text)?;
        let case = object(&json)?;
        Self::new(
            Part::read("calls", list(case, "calls")?, placed_call)?,
            Part::read("setup", list(case, "setup")?, step)?,
            Part::read("observe", list(case, "observe")?, step)?,
            orders(list(case, "orders")?)?,
        )
    }

    /// The case of these parts.
    ///
    /// # Errors
    /// An order that is not one of the calls, or an outcome with another number of results than there are calls or steps.
    pub fn new(
        calls: Arc<Part<PlacedCall>>,
        setup: Arc<Part<Step>>,
        observe: Arc<Part<Step>>,
        orders: Arc<Vec<Order>>,
    ) -> Result<Self, WireError> {
        for (index, order) in orders.iter().enumerate() {
            fits(order, calls.items.len(), observe.items.len()).map_err(|error| at(&error, "orders", index))?;
        }
        Ok(Self { calls, setup, observe, orders })
    }

    /// Adds the test to a batch, and returns its index there.
    pub fn add_to(&self, batch: &mut Batch) -> usize {
        let test = Test {
            calls: self.calls.for_batch(batch, |call| &mut call.shape),
            setup: self.setup.for_batch(batch, |step| &mut step.shape),
            observe: self.observe.for_batch(batch, |step| &mut step.shape),
        };
        batch.tests.push(test);
        batch.tests.len() - 1
    }

    /// The set-up steps, for their expected results.
    #[must_use]
    pub fn setup(&self) -> &[Step] {
        &self.setup.items
    }

    /// The steps of the observation; those of a sequence have an expected result.
    #[must_use]
    pub fn observe(&self) -> &[Step] {
        &self.observe.items
    }

    /// A call of the set-up as a reader knows it: `open(n0, true)`.
    #[must_use]
    pub fn setup_text(&self, index: usize) -> String {
        let step = self.setup.items.get(index);
        step.map_or_else(String::new, |step| self.setup.text(step.shape, &step.arguments))
    }

    /// A call under test as a reader knows it.
    #[must_use]
    pub fn call_text(&self, index: usize) -> String {
        let call = self.calls.items.get(index);
        call.map_or_else(String::new, |call| self.calls.text(call.shape, &call.arguments))
    }

    /// A call of the observation as a reader knows it.
    #[must_use]
    pub fn observe_text(&self, index: usize) -> String {
        let step = self.observe.items.get(index);
        step.map_or_else(String::new, |step| self.observe.text(step.shape, &step.arguments))
    }
}

fn json(text: &str) -> Result<Json, WireError> {
    serde_json::from_str(text).map_err(|error| WireError::new(format!("not JSON: {error}")))
}

fn array(json: &Json) -> Result<&[Json], WireError> {
    json.as_array().map(Vec::as_slice).ok_or_else(|| WireError::new("expected a list"))
}

fn at(error: &WireError, member: &str, index: usize) -> WireError {
    WireError::new(format!("{member}[{index}]: {error}"))
}

fn object(json: &Json) -> Result<&Map<String, Json>, WireError> {
    json.as_object().ok_or_else(|| WireError::new("expected a JSON object"))
}

fn list<'a>(object: &'a Map<String, Json>, name: &str) -> Result<&'a [Json], WireError> {
    match object.get(name) {
        Some(Json::Array(items)) => Ok(items),
        _ => Err(WireError::new(format!("no list {name:?}"))),
    }
}

fn small(object: &Map<String, Json>, name: &str) -> Result<u8, WireError> {
    object
        .get(name)
        .and_then(Json::as_u64)
        .and_then(|number| u8::try_from(number).ok())
        .ok_or_else(|| WireError::new(format!("no small number {name:?}")))
}

fn shape_and_arguments(
    batch: &mut Batch,
    object: &Map<String, Json>,
) -> Result<(usize, Vec<Value<'static>>), WireError> {
    let call = object.get("call").and_then(Json::as_str).ok_or_else(|| WireError::new("no text \"call\""))?;
    let args = object.get("args").and_then(Json::as_object).ok_or_else(|| WireError::new("no object \"args\""))?;
    let mut shape = Shape { call: call.to_owned().into(), parameters: Vec::new() };
    let mut arguments = Vec::new();
    for (name, value) in args {
        shape.parameters.push(name.clone().into());
        arguments.push(Value::from_json(value).map_err(|error| WireError::new(format!("{name}: {error}")))?);
    }
    Ok((batch.intern_shape(&shape), arguments))
}

fn placed_call(batch: &mut Batch, json: &Json) -> Result<PlacedCall, WireError> {
    let call = object(json)?;
    let (shape, arguments) = shape_and_arguments(batch, call)?;
    Ok(PlacedCall {
        shape,
        process: small(call, "process")?,
        thread: small(call, "thread")?,
        core: small(call, "core")?,
        arguments,
    })
}

fn step(batch: &mut Batch, json: &Json) -> Result<Step, WireError> {
    let step = object(json)?;
    let (shape, arguments) = shape_and_arguments(batch, step)?;
    let expected = Value::from_json(step.get("result").unwrap_or(&Json::Null))?;
    let core = if step.contains_key("core") { Some(small(step, "core")?) } else { None };
    let also = if step.contains_key("also") { list(step, "also")? } else { &[] };
    let also = also.iter().map(Value::from_json).collect::<Result<_, _>>()?;
    Ok(Step { shape, process: small(step, "process")?, core, arguments, expected, also })
}

fn orders(list: &[Json]) -> Result<Arc<Vec<Order>>, WireError> {
    let read = |(index, item)| order(item).map_err(|error| at(&error, "orders", index));
    list.iter().enumerate().map(read).collect::<Result<_, _>>().map(Arc::new)
}

fn order(json: &Json) -> Result<Order, WireError> {
    let item = object(json)?;
    let order = list(item, "order")?
        .iter()
        .map(|index| index.as_u64().and_then(|index| u8::try_from(index).ok()))
        .collect::<Option<Vec<u8>>>()
        .filter(|order| is_permutation(order))
        .ok_or_else(|| WireError::new(NO_ORDER))?;
    let outcomes = list(item, "outcomes")?
        .iter()
        .map(|outcome| {
            let outcome = object(outcome)?;
            let values =
                |name| list(outcome, name)?.iter().map(Value::from_json).collect::<Result<Vec<_>, WireError>>();
            Ok(Outcome { results: values("results")?, observation: values("observation")? })
        })
        .collect::<Result<Vec<_>, WireError>>()?;
    if outcomes.is_empty() {
        return Err(WireError::new("no acceptable outcome"));
    }
    Ok(Order { order, outcomes })
}

const NO_ORDER: &str = "\"order\" is not a permutation of the calls";

/// Whether an order is one of this many calls, with results of all of them and of this many steps of the observation.
fn fits(order: &Order, calls: usize, observed: usize) -> Result<(), WireError> {
    if order.order.len() != calls {
        return Err(WireError::new(NO_ORDER));
    }
    for outcome in &order.outcomes {
        for (name, values, count) in
            [("results", &outcome.results, calls), ("observation", &outcome.observation, observed)]
        {
            if values.len() != count {
                return Err(WireError::new(format!("{name:?} has {} values: expected {count}", values.len())));
            }
        }
    }
    Ok(())
}
