//! A batch as a runner reads it: all of its tests in a few lists, and its texts where they lie in the document.
//!
//! A runner under an emulator pays for each instruction, and allocating memory takes more of them than all that a window
//! needs of a batch. So what belongs to a call or a test is a range of a list that all of them share.

use std::ops::Range;

use crate::batch::{ANY_CORE, MAGIC, Shape, VERSION, is_permutation};
use crate::bytes::{Reader, WireError};
use crate::value::Value;

/// One call of a test.
#[derive(Debug)]
pub struct Call<'a> {
    /// Index into [`Plan::shapes`].
    pub shape: usize,
    /// The process that makes the call.
    pub process: u8,
    /// The core that the call is made on; of a step, `None` lets the runner choose who makes it.
    pub core: Option<u8>,
    /// What a step of the set-up must return; [`Value::Null`] for others.
    pub expected: Value<'a>,
    /// One value per parameter of the shape, in [`Plan::arguments`].
    arguments: Range<usize>,
}

/// What there is to do for one test, whatever the order.
#[derive(Debug, Clone, Copy)]
pub struct Test<'p, 'a> {
    /// The calls under test.
    pub calls: &'p [Call<'a>],
    /// The calls that build the initial state.
    pub setup: &'p [Call<'a>],
    /// The calls that read the final state.
    pub observe: &'p [Call<'a>],
}

/// A test's places in the list of all calls: its calls, after them its set-up, after that its observation.
#[derive(Debug)]
struct Places {
    calls: usize,
    setup: usize,
    observe: usize,
    end: usize,
}

/// Tests and windows, as received from a host.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Shapes of all calls.
    pub shapes: Vec<Shape<'a>>,
    tests: Vec<Places>,
    calls: Vec<Call<'a>>,
    arguments: Vec<Value<'a>>,
    /// Per window its test, and where its order stands.
    windows: Vec<(usize, Range<usize>)>,
    orders: Vec<u8>,
}

impl<'a> Plan<'a> {
    /// Reads the binary form of a [`crate::batch::Batch`].
    ///
    /// # Errors
    /// Anything that a batch is not written as.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::start(bytes, MAGIC, VERSION, "a batch")?;
        let mut plan = Self {
            shapes: Vec::new(),
            tests: Vec::new(),
            calls: Vec::new(),
            arguments: Vec::new(),
            windows: Vec::new(),
            orders: Vec::new(),
        };
        for _ in 0..reader.count_u32(3)? {
            let call = reader.text()?;
            let parameters = (0..reader.u8()?).map(|_| reader.text()).collect::<Result<_, _>>()?;
            plan.shapes.push(Shape { call, parameters });
        }
        for _ in 0..reader.count_u32(5)? {
            plan.read_test(&mut reader)?;
        }
        for _ in 0..reader.count_u32(4)? {
            plan.read_window(&mut reader)?;
        }
        reader.finish()?;
        Ok(plan)
    }

    fn read_test(&mut self, reader: &mut Reader<'a>) -> Result<(), WireError> {
        let calls = self.calls.len();
        for _ in 0..reader.u8()? {
            let (shape, process) = (self.read_shape(reader)?, reader.u8()?);
            let (_thread, core) = (reader.u8()?, reader.u8()?);
            self.read_call(reader, shape, process, Some(core))?;
        }
        let setup = self.calls.len();
        for _ in 0..reader.u16()? {
            let call = self.read_step(reader)?;
            self.calls[call].expected = Value::read(reader)?;
        }
        let observe = self.calls.len();
        for _ in 0..reader.u16()? {
            self.read_step(reader)?;
        }
        self.tests.push(Places { calls, setup, observe, end: self.calls.len() });
        Ok(())
    }

    fn read_shape(&self, reader: &mut Reader<'a>) -> Result<usize, WireError> {
        let shape = usize::from(reader.u16()?);
        if shape < self.shapes.len() { Ok(shape) } else { Err(reader.error("a call of a shape that is not there")) }
    }

    fn read_step(&mut self, reader: &mut Reader<'a>) -> Result<usize, WireError> {
        let (shape, process, core) = (self.read_shape(reader)?, reader.u8()?, reader.u8()?);
        self.read_call(reader, shape, process, Some(core).filter(|core| *core != ANY_CORE))
    }

    /// Reads a call's arguments, and adds it; gives its place.
    fn read_call(
        &mut self,
        reader: &mut Reader<'a>,
        shape: usize,
        process: u8,
        core: Option<u8>,
    ) -> Result<usize, WireError> {
        let start = self.arguments.len();
        for _ in 0..self.shapes[shape].parameters.len() {
            self.arguments.push(Value::read(reader)?);
        }
        let arguments = start..self.arguments.len();
        self.calls.push(Call { shape, process, core, expected: Value::Null, arguments });
        Ok(self.calls.len() - 1)
    }

    fn read_window(&mut self, reader: &mut Reader<'a>) -> Result<(), WireError> {
        let test = reader.u32()? as usize;
        let places = self.tests.get(test).ok_or_else(|| reader.error("a window of a test that is not there"))?;
        let start = self.orders.len();
        for _ in places.calls..places.setup {
            self.orders.push(reader.u8()?);
        }
        if !is_permutation(&self.orders[start..]) {
            return Err(reader.error("an order that is not a permutation of the calls"));
        }
        self.windows.push((test, start..self.orders.len()));
        Ok(())
    }

    /// How many windows there are.
    #[must_use]
    pub fn window_count(&self) -> usize {
        self.windows.len()
    }

    /// The windows, in the order in which they are to be run: each with its test's number, and a permutation of the test's
    /// calls, the order of execution.
    pub fn windows(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.windows.iter().map(|(test, order)| (*test, &self.orders[order.clone()]))
    }

    /// How many tests there are.
    #[must_use]
    pub fn test_count(&self) -> usize {
        self.tests.len()
    }

    /// A test.
    ///
    /// # Panics
    /// If there is none of that number.
    #[must_use]
    pub fn test(&self, number: usize) -> Test<'_, 'a> {
        let Places { calls, setup, observe, end } = self.tests[number];
        Test {
            calls: &self.calls[calls..setup],
            setup: &self.calls[setup..observe],
            observe: &self.calls[observe..end],
        }
    }

    /// A call's arguments: one value per parameter of its shape.
    #[must_use]
    pub fn arguments(&self, call: &Call<'a>) -> &[Value<'a>] {
        &self.arguments[call.arguments.clone()]
    }
}
