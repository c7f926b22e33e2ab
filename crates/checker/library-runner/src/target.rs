//! An adapter's library as a target of the interpreter: a fresh object for each window, unless the adapter can empty one.
//!
//! Processes are only names: a thread per core makes the calls under test, the coordinator set-up and observation, so that
//! what a call gives back is often another thread's block, as in life.

use std::ffi::c_void;
use std::ptr;

use program_runner::planted;
use runner::arguments::Arguments;
use runner::crew::Crew;
use runner::marker;
use runner::place::Place;
use runner::target::{Agents, Execution, Marks, Signature, Target};
use wire::results::ResultsWriter;

use crate::adapter::{Adapter, Function};
use crate::values::{Exchange, Members, Object};

const COORDINATOR: Place = Place::Home { process: 0 };

/// What a thread does.
#[derive(Clone, Copy, Default)]
enum Work {
    #[default]
    Nothing,
    Make(&'static Adapter),
    Empty(&'static Adapter, Object),
    GiveUp(&'static Adapter, Object),
    Settle(&'static Adapter, Object),
    Call(Function, Object),
    CountShared,
    CountPerCore(usize),
}

/// What stands in a thread's slot.
#[derive(Default)]
pub struct Operation {
    work: Work,
    exchange: Exchange,
    made: Option<Result<Object, String>>,
}

impl Operation {
    fn perform(&mut self) -> i64 {
        match self.work {
            Work::Nothing => {}
            Work::Make(adapter) => self.made = Some(adapter.make().map(Object)),
            Work::Empty(adapter, object) => return i64::from(adapter.reset(object.0)),
            Work::GiveUp(adapter, object) => adapter.give_up(object.0),
            Work::Settle(adapter, object) => adapter.settle(object.0),
            Work::Call(function, object) => {
                let (arguments, result) = self.exchange.parts();
                // SAFETY: the adapter's function for a call with these arguments; object, arguments and result are
                // what commutant.h promises.
                unsafe { function(object.0, arguments, result) };
            }
            Work::CountShared => planted::count_shared(),
            Work::CountPerCore(core) => planted::count_per_core(core),
        }
        0
    }
}

/// A library as a target.
pub struct LibraryTarget {
    adapter: &'static Adapter,
    signatures: Vec<Signature>,
    workers: usize,
    members: Members,
    object: *mut c_void,
}

impl LibraryTarget {
    /// Over an adapter, with `workers` workers.
    #[must_use]
    pub fn new(adapter: &'static Adapter, workers: usize, seed: u64) -> Self {
        let signatures = adapter.signatures.iter().copied().chain(planted::SIGNATURES).collect();
        Self { adapter, signatures, workers, members: Members::new(seed), object: ptr::null_mut() }
    }
}

fn run(crew: &mut Crew<LibraryTarget>, place: Place, work: Work) -> i64 {
    crew.operation(place).work = work;
    crew.run(place, Marks::None)
}

impl Execution for LibraryTarget {
    type Operation = Operation;

    fn actor(place: Place) -> Place {
        match place {
            Place::Home { .. } => COORDINATOR,
            Place::Worker { core, .. } => Place::Worker { process: 0, core },
        }
    }

    fn execute(operation: &mut Operation, marks: Marks) -> i64 {
        if marks == Marks::None {
            marker::step_begin();
            let result = operation.perform();
            marker::step_end();
            return result;
        }
        marker::call_begin();
        let result = operation.perform();
        marker::call_end();
        result
    }
}

impl Target for LibraryTarget {
    const FRESH_IS_PROMISED: bool = true;

    fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    fn fresh(&mut self, crew: &mut Crew<Self>, _: Agents, _: impl Iterator<Item = usize>) -> Result<(), String> {
        self.members.clear();
        let emptied =
            !self.object.is_null() && run(crew, COORDINATOR, Work::Empty(self.adapter, Object(self.object))) != 0;
        if !emptied {
            self.give_up(crew);
            run(crew, COORDINATOR, Work::Make(self.adapter));
            self.object = crew.operation(COORDINATOR).made.take().ok_or("no object was made")??.0;
        }
        if self.adapter.settles() {
            for core in 0..self.workers {
                run(crew, Place::Worker { process: 0, core }, Work::Settle(self.adapter, Object(self.object)));
            }
        }
        Ok(())
    }

    fn begin_again(&mut self) {
        self.members.take_back();
    }

    fn place(&self, _: usize, home: Place, _: Place) -> Place {
        home
    }

    fn prepare(
        &mut self,
        operation: &mut Operation,
        place: Place,
        call: usize,
        arguments: &Arguments<'_>,
    ) -> Result<(), String> {
        let core = if let Place::Worker { core, .. } = place { core } else { self.workers };
        operation.exchange.prepare(arguments, self.signatures[call].parameters.len(), &mut self.members)?;
        operation.work = match self.adapter.functions.get(call) {
            Some(function) => Work::Call(*function, Object(self.object)),
            None if call == self.adapter.functions.len() => Work::CountShared,
            None => Work::CountPerCore(core),
        };
        Ok(())
    }

    fn finish(
        &mut self,
        crew: &mut Crew<Self>,
        place: Place,
        call: usize,
        result: i64,
        results: &mut ResultsWriter,
    ) -> Result<(), String> {
        if call >= self.adapter.functions.len() {
            results.number(result); // a planted one
            return Ok(());
        }
        let value = crew.operation(place).exchange.value(&self.members)?;
        results.value(&value);
        Ok(())
    }

    fn clean(&mut self, crew: &mut Crew<Self>, _: Agents) -> Result<(), String> {
        if !self.adapter.resets() {
            self.give_up(crew);
        }
        Ok(())
    }
}

impl LibraryTarget {
    fn give_up(&mut self, crew: &mut Crew<Self>) {
        let object = std::mem::replace(&mut self.object, ptr::null_mut());
        if !object.is_null() {
            run(crew, COORDINATOR, Work::GiveUp(self.adapter, Object(object)));
        }
    }
}
