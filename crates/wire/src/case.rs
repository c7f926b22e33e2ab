//! A test case as read from its JSON object (`docs/ARCHITECTURE.md`, "Test case"): what to run, and what may come.
//!
//! A *sequence* of calls, one after the other, is a test case without calls under test and so without orders: its calls
//! are the steps of the set-up, each with the `core` that it is made on, and every step has a `result` that is expected.

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

/// A test case: the test for the runner, and its orders for the judge. Shapes of calls are the case's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The case's id.
    pub id: String,
    shapes: Vec<Shape<'static>>,
    test: Test,
    /// All orders.
    pub orders: Vec<Order>,
}

impl Case {
    /// Reads the JSON text of a test case. Members that only describe the test are not looked at.
    ///
    /// # Errors
    /// What is missing or of the wrong kind, and where.
    pub fn parse(text: &str) -> Result<Self, WireError> {
        let json: Json = serde_json::from_str(text).map_err(|error| WireError::new(format!("not JSON: {error}")))?;
        let case = json.as_object().ok_or_else(|| WireError::new("expected a JSON object"))?;
        let mut scratch = Batch::default();
        let mut test = Test::default();
        for (index, item) in list(case, "calls")?.iter().enumerate() {
            test.calls.push(placed_call(&mut scratch, item).map_err(|error| at(&error, "calls", index))?);
        }
        for (index, item) in list(case, "setup")?.iter().enumerate() {
            test.setup.push(step(&mut scratch, item).map_err(|error| at(&error, "setup", index))?);
        }
        for (index, item) in list(case, "observe")?.iter().enumerate() {
            test.observe.push(step(&mut scratch, item).map_err(|error| at(&error, "observe", index))?);
        }
        let orders = list(case, "orders")?
            .iter()
            .enumerate()
            .map(|(index, item)| order(item, &test).map_err(|error| at(&error, "orders", index)))
            .collect::<Result<_, _>>()?;
        let id = case.get("id").and_then(Json::as_str).unwrap_or_default().to_owned();
        Ok(Self { id, shapes: scratch.shapes, test, orders })
    }

    /// Adds the test to a batch, and returns its index there.
    pub fn add_to(&self, batch: &mut Batch) -> usize {
        let shapes: Vec<usize> = self.shapes.iter().map(|shape| batch.intern_shape(shape)).collect();
        let mut test = self.test.clone();
        test.calls.iter_mut().for_each(|call| call.shape = shapes[call.shape]);
        test.setup.iter_mut().chain(&mut test.observe).for_each(|step| step.shape = shapes[step.shape]);
        batch.tests.push(test);
        batch.tests.len() - 1
    }

    /// The set-up steps, for their expected results.
    #[must_use]
    pub fn setup(&self) -> &[Step] {
        &self.test.setup
    }

    /// The steps of the observation; those of a sequence have an expected result.
    #[must_use]
    pub fn observe(&self) -> &[Step] {
        &self.test.observe
    }

    /// A call of the set-up as a reader knows it: `open(n0, true)`.
    #[must_use]
    pub fn setup_text(&self, index: usize) -> String {
        self.test.setup.get(index).map_or_else(String::new, |step| self.text(step.shape, &step.arguments))
    }

    /// A call under test as a reader knows it.
    #[must_use]
    pub fn call_text(&self, index: usize) -> String {
        self.test.calls.get(index).map_or_else(String::new, |call| self.text(call.shape, &call.arguments))
    }

    /// A call of the observation as a reader knows it.
    #[must_use]
    pub fn observe_text(&self, index: usize) -> String {
        self.test.observe.get(index).map_or_else(String::new, |step| self.text(step.shape, &step.arguments))
    }

    fn text(&self, shape: usize, arguments: &[Value<'_>]) -> String {
        let shape = &self.shapes[shape];
        let arguments: Vec<String> =
            shape.parameters.iter().zip(arguments).map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}({})", shape.call, arguments.join(", "))
    }
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
    Ok(Step { shape, process: small(step, "process")?, core, arguments, expected })
}

fn order(json: &Json, test: &Test) -> Result<Order, WireError> {
    let item = object(json)?;
    let order = list(item, "order")?
        .iter()
        .map(|index| index.as_u64().and_then(|index| u8::try_from(index).ok()))
        .collect::<Option<Vec<u8>>>()
        .filter(|order| order.len() == test.calls.len() && is_permutation(order))
        .ok_or_else(|| WireError::new("\"order\" is not a permutation of the calls"))?;
    let outcomes = list(item, "outcomes")?
        .iter()
        .map(|outcome| {
            let outcome = object(outcome)?;
            let values = |name: &str, count: usize| {
                let items = list(outcome, name)?;
                if items.len() != count {
                    return Err(WireError::new(format!("{name:?} has {} values: expected {count}", items.len())));
                }
                items.iter().map(Value::from_json).collect::<Result<Vec<_>, _>>()
            };
            let results = values("results", test.calls.len())?;
            Ok(Outcome { results, observation: values("observation", test.observe.len())? })
        })
        .collect::<Result<Vec<_>, WireError>>()?;
    if outcomes.is_empty() {
        return Err(WireError::new("no acceptable outcome"));
    }
    Ok(Order { order, outcomes })
}
