//! The interpreter: runs the windows of a batch, one after the other.

use std::hash::{DefaultHasher, Hash, Hasher};

use wire::WireError;
use wire::batch::Shape;
use wire::plan::{Call, Plan, Test};
use wire::results::ResultsWriter;
use wire::value::Value;

use crate::arguments::{Arguments, Bindings};
use crate::crew::Crew;
use crate::emptiness::Emptiness;
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

/// A batch that is being run.
struct Run<'a> {
    plan: &'a Plan<'a>,
    /// The plan's shapes, or why the target has no such call.
    shapes: Vec<Result<Resolved, String>>,
    bindings: Bindings<'a>,
    results: ResultsWriter,
}

impl Run<'_> {
    fn resolved(&self, shape: usize) -> Result<&Resolved, String> {
        self.shapes[shape].as_ref().map_err(Clone::clone)
    }

    /// The target's calls that a test makes.
    fn used(&self, test: Test<'_, '_>) -> impl Iterator<Item = usize> {
        all(test).filter_map(|call| Some(self.shapes[call.shape].as_ref().ok()?.call))
    }
}

/// Runs windows over a target.
pub struct Interpreter<T: Target> {
    target: T,
    crew: Crew<T>,
    emptiness: Emptiness,
}

impl<T: Target> Interpreter<T> {
    /// An interpreter over `target` with `crew`.
    pub fn new(target: T, crew: Crew<T>) -> Self {
        Self { target, crew, emptiness: Emptiness::default() }
    }

    /// Wakes every actor once, so that all of them have started and touched what they need.
    pub fn warm_up(&mut self) {
        for place in Place::all(self.crew.core_count()) {
            self.crew.run(place, Marks::None);
        }
        self.crew.rest();
    }

    /// Runs all windows of a batch and returns the encoded results, in the memory of `buffer`. Before each window,
    /// `starting` is called with its index. Afterwards all actors sleep.
    ///
    /// # Errors
    /// The results cannot be encoded.
    pub fn run(
        &mut self,
        plan: &Plan<'_>,
        buffer: Vec<u8>,
        mut starting: impl FnMut(usize),
    ) -> Result<Vec<u8>, WireError> {
        let mut run = Run {
            plan,
            shapes: plan.shapes.iter().map(|shape| resolve(self.target.signatures(), shape)).collect(),
            bindings: Bindings::default(),
            results: ResultsWriter::start(buffer, plan.window_count()),
        };
        for (index, (test, order)) in plan.windows().enumerate() {
            starting(index);
            self.run_window(&mut run, plan.test(test), order);
        }
        self.crew.rest();
        marker::flush();
        run.results.finish()
    }

    /// Runs one window. It is marked as a window even if it is refused, so that windows of trace and batch correspond.
    fn run_window<'a>(&mut self, run: &mut Run<'a>, test: Test<'a, 'a>, order: &[u8]) {
        let mut closed = false;
        run.results.setup(test.setup.len());
        if let Err(why) = self.run_window_marked(run, test, order, &mut closed) {
            match self.target.not_offered() {
                Some(why) => run.results.unsupported(&why),
                None => run.results.refused(&why),
            }
        }
        if !closed {
            marker::window_open();
            marker::window_close();
        }
    }

    fn run_window_marked<'a>(
        &mut self,
        run: &mut Run<'a>,
        test: Test<'a, 'a>,
        order: &[u8],
        closed: &mut bool,
    ) -> Result<(), String> {
        let agents = check_places(test, self.crew.core_count())?;
        run.bindings.clear();
        self.target.begin_window(order, || digest(run.plan, test));
        self.target.fresh(&mut self.crew, agents, run.used(test))?;
        if T::FRESH_IS_PROMISED && !test.observe.is_empty() && self.emptiness.is_due() {
            let results = std::mem::replace(&mut run.results, ResultsWriter::start(Vec::new(), 0));
            let is_empty = self.observe_fresh_state(run, test);
            run.results = results;
            self.target.clean(&mut self.crew, agents)?;
            is_empty?;
            self.target.begin_again();
            self.target.fresh(&mut self.crew, agents, run.used(test))?;
        }
        let ran = self.run_in_fresh_state(run, test, order, closed);
        self.target.clean(&mut self.crew, agents)?;
        ran
    }

    /// Makes the calls of a test's observation, as far as they need nothing of its set-up, and compares what they tell with
    /// what they gave for an earlier fresh state.
    fn observe_fresh_state<'a>(&mut self, run: &mut Run<'a>, test: Test<'a, 'a>) -> Result<(), String> {
        let mut before = String::new();
        for step in test.observe {
            let arguments = run.plan.arguments(step);
            if arguments.iter().any(|argument| matches!(argument, Value::Opaque { .. })) {
                continue;
            }
            let place = run.results.place();
            self.run_step(run, test, step)?;
            let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
            let call = format!("{}({})", run.resolved(step.shape)?.signature.name, arguments.join(", "));
            let answer = run.results.value_at(place).map_err(|error| error.to_string())?;
            self.emptiness.compare(&before, &call, &answer)?;
            before.push_str(&call);
        }
        Ok(())
    }

    fn run_in_fresh_state<'a>(
        &mut self,
        run: &mut Run<'a>,
        test: Test<'a, 'a>,
        order: &[u8],
        closed: &mut bool,
    ) -> Result<(), String> {
        for step in test.setup {
            let place = run.results.place();
            self.run_step(run, test, step)?;
            if Bindings::teaches(&step.expected) {
                let result = run.results.value_at(place).map_err(|error| error.to_string())?;
                run.bindings.learn(&step.expected, &result);
            }
        }
        for call in test.calls {
            let place = place_of(call);
            self.crew.attend(place);
            self.prepare(run, call, place)?;
        }
        let mut places = [Place::Home { process: 0 }; CORE_LIMIT];
        places.iter_mut().zip(test.calls).for_each(|(place, call)| *place = place_of(call));
        let places = &places[..test.calls.len()];
        let mut raw = [0; CORE_LIMIT];
        marker::window_open();
        self.target.begin_calls(&mut self.crew, places)?;
        for index in order {
            let index = usize::from(*index);
            raw[index] = self.crew.run(places[index], Marks::Around);
        }
        marker::window_close();
        *closed = true;
        let aborted = self.target.end_calls(&mut self.crew, places, &mut raw[..places.len()])?;
        run.results.calls(test.calls.len());
        for (call, raw) in test.calls.iter().zip(raw) {
            let number = run.resolved(call.shape)?.call;
            self.target.finish(&mut self.crew, place_of(call), number, raw, &mut run.results)?;
        }
        run.results.observation(test.observe.len());
        test.observe.iter().try_for_each(|step| self.run_step(run, test, step))?;
        run.results.end(aborted);
        Ok(())
    }

    /// Makes one call of the set-up or observation.
    fn run_step<'a>(&mut self, run: &mut Run<'a>, test: Test<'a, 'a>, step: &'a Call<'a>) -> Result<(), String> {
        let process = usize::from(step.process);
        let number = run.resolved(step.shape)?.call;
        let place = match step.core {
            Some(core) => Place::Worker { process, core: usize::from(core) },
            None => {
                let other = test.calls.iter().find(|call| call.process == step.process);
                let core = usize::from(other.and_then(|call| call.core).unwrap_or_default());
                self.target.place(number, Place::Home { process }, Place::Worker { process, core })
            }
        };
        self.prepare(run, step, place)?;
        let result = self.crew.run(place, Marks::None);
        self.target.finish(&mut self.crew, place, number, result, &mut run.results)
    }

    fn prepare<'a>(&mut self, run: &Run<'a>, call: &'a Call<'a>, place: Place) -> Result<(), String> {
        let Resolved { call: number, signature, positions } = run.resolved(call.shape)?;
        let arguments = Arguments::new(signature.parameters, positions, run.plan.arguments(call), &run.bindings);
        self.target
            .prepare(self.crew.operation(place), place, *number, &arguments)
            .map_err(|why| format!("{}: {why}", signature.name))
    }
}

/// Where a call under test is made. The plan gives it a core.
fn place_of(call: &Call<'_>) -> Place {
    Place::Worker { process: usize::from(call.process), core: usize::from(call.core.unwrap_or_default()) }
}

/// All calls of a test.
fn all<'a>(test: Test<'a, 'a>) -> impl Iterator<Item = &'a Call<'a>> {
    test.calls.iter().chain(test.setup).chain(test.observe)
}

/// A number that follows from what a test does, and not from the batch that it is in.
fn digest(plan: &Plan<'_>, test: Test<'_, '_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for call in all(test) {
        (plan.shapes[call.shape].call.as_ref(), call.process, call.core, plan.arguments(call)).hash(&mut hasher);
    }
    hasher.finish()
}

/// Checks that all processes and cores of a test exist, each core once, and says who acts for its processes.
fn check_places(test: Test<'_, '_>, core_count: usize) -> Result<Agents, String> {
    for calls in [test.calls, test.setup, test.observe] {
        for call in calls {
            if usize::from(call.process) >= core_count {
                return Err(format!("process {}: this runner has {core_count}, numbered from 0", call.process));
            }
            if let Some(core) = call.core.filter(|core| usize::from(*core) >= core_count) {
                return Err(format!("core {core}: this runner has {core_count}, numbered from 0"));
            }
        }
    }
    let mut taken = [false; CORE_LIMIT];
    let mut agents = Agents::default();
    for call in test.calls {
        let Place::Worker { process, core } = place_of(call) else { continue };
        if std::mem::replace(&mut taken[core], true) {
            return Err(format!("core {core}: two calls on one core"));
        }
        agents.add(if process == 0 { Place::Home { process } } else { place_of(call) });
    }
    for steps in [test.setup, test.observe] {
        for step in steps {
            agents.add(Place::Home { process: usize::from(step.process) });
        }
    }
    Ok(agents)
}

/// Finds the call with a shape's name and exactly its parameters, in whatever order.
fn resolve(signatures: &[Signature], shape: &Shape<'_>) -> Result<Resolved, String> {
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
