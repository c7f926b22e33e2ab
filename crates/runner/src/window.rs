//! The interpreter: runs the windows of a batch, one after the other.

use commutant_wire::WireError;
use commutant_wire::batch::{Batch, PlacedCall, Shape, Step, Test, Window};
use commutant_wire::results::{ResultsWriter, WindowResult};
use commutant_wire::value::Value;

use crate::arguments::{Arguments, Bindings};
use crate::crew::Crew;
use crate::marker;
use crate::place::{CORE_LIMIT, Place};
use crate::target::{Agents, Marks, Signature, Target};

/// A shape of the batch in terms of the target.
struct Resolved {
    call: usize,
    signature: Signature,
    /// Per parameter of the target, the position of its argument.
    positions: Vec<Option<usize>>,
}

/// Runs windows over a target.
pub struct Interpreter<T: Target> {
    target: T,
    crew: Crew<T>,
    bindings: Bindings,
}

impl<T: Target> Interpreter<T> {
    /// An interpreter over `target` with `crew`.
    pub fn new(target: T, crew: Crew<T>) -> Self {
        Self { target, crew, bindings: Bindings::default() }
    }

    /// Wakes every actor once, so that all of them have started and touched what they need.
    pub fn warm_up(&mut self) {
        for place in Place::all(self.crew.core_count()) {
            self.crew.run(place, Marks::None);
        }
        self.crew.rest();
    }

    /// Runs all windows of a batch and returns the encoded results, in the memory of `buffer`. Before each window,
    /// `starting` is told its index. Afterwards all actors sleep.
    ///
    /// # Errors
    /// The results cannot be encoded.
    pub fn run(
        &mut self,
        batch: &Batch,
        buffer: Vec<u8>,
        mut starting: impl FnMut(usize),
    ) -> Result<Vec<u8>, WireError> {
        let shapes: Vec<Result<Resolved, String>> =
            batch.shapes.iter().map(|shape| resolve(self.target.signatures(), shape)).collect();
        let mut results = ResultsWriter::start(buffer, batch.windows.len());
        for (index, window) in batch.windows.iter().enumerate() {
            starting(index);
            let result = self.run_window(&shapes, &batch.tests[window.test], window);
            results.push(&result.unwrap_or_else(WindowResult::Refused))?;
        }
        self.crew.rest();
        marker::flush();
        results.finish()
    }

    /// Runs one window. It is marked as a window even if it is refused, so that windows of trace and batch correspond.
    fn run_window(
        &mut self,
        shapes: &[Result<Resolved, String>],
        test: &Test,
        window: &Window,
    ) -> Result<WindowResult, String> {
        let mut closed = false;
        let result = self.run_window_marked(shapes, test, window, &mut closed);
        if !closed {
            marker::window_open();
            marker::window_close();
        }
        result
    }

    fn run_window_marked(
        &mut self,
        shapes: &[Result<Resolved, String>],
        test: &Test,
        window: &Window,
        closed: &mut bool,
    ) -> Result<WindowResult, String> {
        let agents = check_places(test, self.crew.core_count())?;
        self.bindings.clear();
        let steps = test.setup.iter().chain(&test.observe).map(|step| step.shape);
        let used = steps.chain(test.calls.iter().map(|call| call.shape));
        let used: Vec<usize> = used.filter_map(|shape| Some(shapes[shape].as_ref().ok()?.call)).collect();
        self.target.fresh(&mut self.crew, agents, &used)?;
        let ran = self.run_in_fresh_state(shapes, test, window, closed);
        self.target.clean(&mut self.crew, agents)?;
        ran
    }

    fn run_in_fresh_state(
        &mut self,
        shapes: &[Result<Resolved, String>],
        test: &Test,
        window: &Window,
        closed: &mut bool,
    ) -> Result<WindowResult, String> {
        let mut setup = Vec::with_capacity(test.setup.len());
        for step in &test.setup {
            let result = self.run_step(shapes, test, step)?;
            self.bindings.learn(&step.expected, &result);
            setup.push(result);
        }
        for call in &test.calls {
            let place = place_of(call);
            self.crew.attend(place);
            self.prepare(shapes, call.shape, place, &call.arguments)?;
        }
        let mut raw = [0; CORE_LIMIT];
        marker::window_open();
        for index in &window.order {
            let index = usize::from(*index);
            raw[index] = self.crew.run(place_of(&test.calls[index]), Marks::Around);
        }
        marker::window_close();
        *closed = true;
        let mut calls = Vec::with_capacity(test.calls.len());
        for (call, raw) in test.calls.iter().zip(raw) {
            let definition = shapes[call.shape].as_ref().map_err(Clone::clone)?;
            calls.push(self.target.finish(&mut self.crew, place_of(call), definition.call, raw)?);
        }
        let mut observation = Vec::with_capacity(test.observe.len());
        for step in &test.observe {
            observation.push(self.run_step(shapes, test, step)?);
        }
        Ok(WindowResult::Ran { setup, calls, observation })
    }

    /// Makes one call of the set-up or observation.
    fn run_step(&mut self, shapes: &[Result<Resolved, String>], test: &Test, step: &Step) -> Result<Value, String> {
        let process = usize::from(step.process);
        let call = shapes[step.shape].as_ref().map_err(Clone::clone)?.call;
        let place = match step.core {
            Some(core) => Place::Worker { process, core: usize::from(core) },
            None => {
                let other = test.calls.iter().find(|call| call.process == step.process);
                let core = other.map_or(0, |call| usize::from(call.core));
                self.target.place(call, Place::Home { process }, Place::Worker { process, core })
            }
        };
        self.prepare(shapes, step.shape, place, &step.arguments)?;
        let result = self.crew.run(place, Marks::None);
        self.target.finish(&mut self.crew, place, call, result)
    }

    fn prepare(
        &mut self,
        shapes: &[Result<Resolved, String>],
        shape: usize,
        place: Place,
        values: &[Value],
    ) -> Result<(), String> {
        let definition = shapes[shape].as_ref().map_err(Clone::clone)?;
        let arguments = Arguments::new(definition.signature.parameters, &definition.positions, values, &self.bindings);
        self.target
            .prepare(self.crew.operation(place), place, definition.call, &arguments)
            .map_err(|why| format!("{}: {why}", definition.signature.name))
    }
}

fn place_of(call: &PlacedCall) -> Place {
    Place::Worker { process: usize::from(call.process), core: usize::from(call.core) }
}

/// Checks that all processes and cores of a test exist, each core once, and says who acts for its processes.
fn check_places(test: &Test, core_count: usize) -> Result<Agents, String> {
    let steps = test.setup.iter().chain(&test.observe).map(|step| step.process);
    for process in test.calls.iter().map(|call| call.process).chain(steps.clone()) {
        if usize::from(process) >= core_count {
            return Err(format!("process {process}: this runner has {core_count}, numbered from 0"));
        }
    }
    let cores = test.setup.iter().chain(&test.observe).filter_map(|step| step.core);
    for core in test.calls.iter().map(|call| call.core).chain(cores) {
        if usize::from(core) >= core_count {
            return Err(format!("core {core}: this runner has {core_count}, numbered from 0"));
        }
    }
    let mut taken = [false; CORE_LIMIT];
    for call in &test.calls {
        let core = usize::from(call.core);
        if std::mem::replace(&mut taken[core], true) {
            return Err(format!("core {core}: two calls on one core"));
        }
    }
    let mut agents = Agents::default();
    for call in &test.calls {
        let process = usize::from(call.process);
        agents.add(if process == 0 { Place::Home { process } } else { place_of(call) });
    }
    for process in steps {
        agents.add(Place::Home { process: usize::from(process) });
    }
    Ok(agents)
}

/// Finds the call with a shape's name and exactly its parameters, in whatever order.
fn resolve(signatures: &[Signature], shape: &Shape) -> Result<Resolved, String> {
    let fits = |signature: &Signature| {
        signature.name == shape.call
            && signature.parameters.len() == shape.parameters.len()
            && shape.parameters.iter().all(|name| signature.parameters.contains(&name.as_ref()))
    };
    let Some(call) = signatures.iter().position(fits) else {
        return Err(format!("unknown call {}({})", shape.call, shape.parameters.join(", ")));
    };
    let signature = signatures[call];
    let positions = signature
        .parameters
        .iter()
        .map(|parameter| shape.parameters.iter().position(|name| name == parameter))
        .collect();
    Ok(Resolved { call, signature, positions })
}
