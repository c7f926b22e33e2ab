//! The target: every window has directories of its own. Its processes start in a fresh, empty one, unless the window enters
//! directories by itself, or finds no file by name at all.

use wire::results::ResultsWriter;

use super::calls::epolls::make_epolls;
use super::calls::{self, After, LinuxCall, Memory, Names};
use super::leftovers::{COORDINATOR, Leftovers};
use super::operation::Operation;
use super::system_call::{check, system_call};
use crate::arguments::Arguments;
use crate::crew::Crew;
use crate::place::Place;
use crate::target::{Agents, Execution, Marks, Signature, Target};

/// Linux, with directories under `root` on the file system under test.
pub struct Linux {
    calls: Vec<&'static LinuxCall>,
    signatures: Vec<Signature>,
    leftovers: Leftovers,
}

impl Linux {
    /// Windows' directories will be made in `root`, an absolute path.
    #[must_use]
    pub fn new(root: &str) -> Self {
        Self {
            calls: calls::all().collect(),
            signatures: calls::all().map(|call| call.signature).collect(),
            leftovers: Leftovers::new(root),
        }
    }
}

/// A system call that belongs to no call of the test.
pub(super) fn call<const N: usize>(crew: &mut Crew<Linux>, place: Place, number: i64, arguments: [u64; N]) -> i64 {
    if place == COORDINATOR {
        return system_call(number, arguments);
    }
    crew.operation(place).call(number, arguments);
    crew.run(place, Marks::None)
}

impl Execution for Linux {
    type Operation = Operation;

    fn execute(operation: &mut Operation, marks: Marks) -> i64 {
        operation.execute(marks)
    }
}

impl Target for Linux {
    fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    fn fresh(
        &mut self,
        crew: &mut Crew<Self>,
        agents: Agents,
        calls: impl Iterator<Item = usize>,
    ) -> Result<(), String> {
        self.leftovers.begin_window();
        self.leftovers.learn_process_ids(crew, agents);
        let (mut relative, mut enters, mut epolls) = (false, false, false);
        for call in calls {
            epolls |= self.calls[call].epolls;
            match self.calls[call].names {
                Names::Own => {}
                Names::Relative => relative = true,
                Names::Enters => enters = true,
            }
        }
        if epolls {
            self.leftovers.makes_epolls();
            for place in agents.iter() {
                crew.operation(place).steps(make_epolls, []);
                check("making epoll instances", crew.run(place, Marks::None))?;
            }
        }
        if !relative || enters {
            return Ok(());
        }
        self.leftovers.starting_directory();
        let path = &mut crew.operation(COORDINATOR).paths[0];
        path.set(&[self.leftovers.prefix()])?;
        check("making a directory", system_call(libc::SYS_mkdir, [path.address(), 0o777]))?;
        for place in agents.iter() {
            // The path goes by the actor's operation: other processes do not share the coordinator's memory.
            let path = &mut crew.operation(place).paths[0];
            path.set(&[self.leftovers.prefix()])?;
            let address = path.address();
            check("entering the directory", call(crew, place, libc::SYS_chdir, [address]))?;
        }
        Ok(())
    }

    /// The home of process 0 is the coordinator and executes on the spot. Those of other processes would have to be woken
    /// for each step, which takes longer than all else, while a worker is awake anyway.
    fn place(&self, call: usize, home: Place, worker: Place) -> Place {
        match self.calls[call].memory {
            Memory::Own if home == COORDINATOR => home,
            Memory::Own | Memory::Process => worker,
        }
    }

    fn prepare(
        &mut self,
        operation: &mut Operation,
        place: Place,
        call: usize,
        arguments: &Arguments<'_>,
    ) -> Result<(), String> {
        operation.process = place.process();
        self.leftovers.acting(place.process());
        (self.calls[call].prepare)(operation, arguments, &mut self.leftovers)
    }

    fn finish(
        &mut self,
        crew: &mut Crew<Self>,
        place: Place,
        number: usize,
        result: i64,
        results: &mut ResultsWriter,
    ) -> Result<(), String> {
        let definition = self.calls[number];
        definition.write(crew.operation(place), result, results);
        if result < 0 && crew.operation(place).is_of_steps() {
            self.leftovers.failed();
        }
        if definition.memory == Memory::Process {
            let picks = definition.after == After::Remember && calls::memory::has_picked(crew.operation(place), result);
            self.leftovers.mapped(place, picks.then_some(result.cast_unsigned()));
        }
        if definition.after == After::Close && result >= 0 {
            check("closing a descriptor", call(crew, place, libc::SYS_close, [result.cast_unsigned()]))?;
        }
        Ok(())
    }

    fn clean(&mut self, crew: &mut Crew<Self>, agents: Agents) -> Result<(), String> {
        self.leftovers.clean(crew, agents)
    }
}
