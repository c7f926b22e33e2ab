//! A batch: tests to interpret, and the windows to run of them, in order. The host builds it; a runner reads it as a
//! [`crate::plan::Plan`].
//!
//! Binary form, version 2 (texts are references into the table at the end, see [`crate::bytes`]):
//!
//! ```text
//! "CMTBATCH" version:u32 texts_offset:u32
//! shapes:u32   { call:text parameters:u8 { name:text } }
//! tests:u32    { calls:u8    { shape:u16 process:u8 thread:u8 core:u8 arguments }
//!                set-up:u16  { shape:u16 process:u8 core:u8 arguments expected:value }
//!                observe:u16 { shape:u16 process:u8 core:u8 arguments } }
//! windows:u32  { test:u32 order: one u8 per call of the test }
//! texts:u16    { length:u16 bytes }
//! ```
//! Arguments are as many values as the shape has parameters. The core of a step is 255 if the runner is to choose.

use std::borrow::Cow;

use crate::bytes::{WireError, Writer};
use crate::value::Value;

pub(crate) const MAGIC: [u8; 8] = *b"CMTBATCH";
pub(crate) const VERSION: u32 = 2;

/// What stands for the core of a step whose place the runner chooses.
pub(crate) const ANY_CORE: u8 = u8::MAX;

/// A call's name with the names of the arguments that are given: resolved by a runner once per batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape<'a> {
    /// The call.
    pub call: Cow<'a, str>,
    /// The parameters that are given, in the order of the arguments.
    pub parameters: Vec<Cow<'a, str>>,
}

/// One call of a set-up or an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Index into [`Batch::shapes`].
    pub shape: usize,
    /// The process that makes the call.
    pub process: u8,
    /// The core that the call is made on, by a thread of the process; `None` lets the runner choose who makes it.
    pub core: Option<u8>,
    /// One value per parameter of the shape.
    pub arguments: Vec<Value<'static>>,
    /// What a set-up step must return, so that opaque values in later arguments can be bound to it; `Null` for the
    /// steps of an observation.
    pub expected: Value<'static>,
    /// What the specification allows a set-up step to return besides, with which the set-up leads to another state. The
    /// host's alone: a runner does not get it.
    pub also: Vec<Value<'static>>,
}

/// One of the calls under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedCall {
    /// Index into [`Batch::shapes`].
    pub shape: usize,
    /// The process that makes the call.
    pub process: u8,
    /// The thread of that process, as the test case numbers it.
    pub thread: u8,
    /// The core it runs on.
    pub core: u8,
    /// One value per parameter of the shape.
    pub arguments: Vec<Value<'static>>,
}

/// What a runner has to do for one test, whatever the order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Test {
    /// The calls under test.
    pub calls: Vec<PlacedCall>,
    /// The calls that build the initial state.
    pub setup: Vec<Step>,
    /// The calls that read the final state.
    pub observe: Vec<Step>,
}

/// One run of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Index into [`Batch::tests`].
    pub test: usize,
    /// A permutation of the test's calls: the order of execution.
    pub order: Vec<u8>,
}

/// Tests and windows, as sent to a runner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Shapes of all calls.
    pub shapes: Vec<Shape<'static>>,
    /// The tests that windows refer to.
    pub tests: Vec<Test>,
    /// The windows, in the order in which they are to be run.
    pub windows: Vec<Window>,
}

impl Batch {
    /// The index of a shape, which is added if it is new.
    pub fn intern_shape(&mut self, shape: &Shape<'static>) -> usize {
        self.shapes.iter().position(|known| known == shape).unwrap_or_else(|| {
            self.shapes.push(shape.clone());
            self.shapes.len() - 1
        })
    }

    /// The binary form.
    ///
    /// # Errors
    /// More calls, arguments or texts than their fields can count.
    ///
    /// # Panics
    /// If indices or numbers of arguments do not fit together: a defect of the caller.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let mut writer = Writer::start(Vec::new(), MAGIC, VERSION);
        writer.u32(count(self.shapes.len())?);
        for shape in &self.shapes {
            writer.text(&shape.call)?;
            writer.length_u8(shape.parameters.len(), "parameters")?;
            for name in &shape.parameters {
                writer.text(name)?;
            }
        }
        writer.u32(count(self.tests.len())?);
        for test in &self.tests {
            writer.length_u8(test.calls.len(), "calls")?;
            for call in &test.calls {
                self.write_shape(&mut writer, call.shape)?;
                writer.u8(call.process);
                writer.u8(call.thread);
                writer.u8(call.core);
                self.write_arguments(&mut writer, call.shape, &call.arguments)?;
            }
            writer.length_u16(test.setup.len(), "set-up steps")?;
            for step in &test.setup {
                self.write_step(&mut writer, step)?;
                step.expected.write(&mut writer)?;
            }
            writer.length_u16(test.observe.len(), "steps of the observation")?;
            for step in &test.observe {
                self.write_step(&mut writer, step)?;
            }
        }
        writer.u32(count(self.windows.len())?);
        for window in &self.windows {
            assert_eq!(window.order.len(), self.tests[window.test].calls.len(), "an order names every call once");
            writer.u32(count(window.test)?);
            for index in &window.order {
                writer.u8(*index);
            }
        }
        writer.finish()
    }

    fn write_shape(&self, writer: &mut Writer, shape: usize) -> Result<(), WireError> {
        assert!(shape < self.shapes.len(), "a call refers to a shape of its batch");
        writer.length_u16(shape, "shapes of calls")
    }

    fn write_arguments(&self, writer: &mut Writer, shape: usize, arguments: &[Value<'_>]) -> Result<(), WireError> {
        assert_eq!(arguments.len(), self.shapes[shape].parameters.len(), "one argument per parameter");
        arguments.iter().try_for_each(|argument| argument.write(writer))
    }

    fn write_step(&self, writer: &mut Writer, step: &Step) -> Result<(), WireError> {
        self.write_shape(writer, step.shape)?;
        writer.u8(step.process);
        writer.u8(step.core.unwrap_or(ANY_CORE));
        self.write_arguments(writer, step.shape, &step.arguments)
    }
}

fn count(length: usize) -> Result<u32, WireError> {
    u32::try_from(length).map_err(|_| WireError::new("more records than 32 bits can count"))
}

/// Whether `order` holds each of 0..len once.
pub(crate) fn is_permutation(order: &[u8]) -> bool {
    let mut seen = [false; 256];
    order
        .iter()
        .all(|index| usize::from(*index) < order.len() && !std::mem::replace(&mut seen[usize::from(*index)], true))
}
