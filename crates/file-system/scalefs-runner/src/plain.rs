//! `Plain` under test: ordinary maps, of which one thread knows. Whoever makes a call in a test, the coordinator makes it
//! for them, so results are all that there is to see.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use plain::{Limits, Plain, Process, Unreachable};
use posix_calls::{Ended, Errno, ProcessNumber};
use program_runner::serve::Program;

use crate::children::Children;
use crate::subject::Subject;
use crate::surroundings::Surroundings;
use crate::target::FileSystemTarget;

/// An instance and its processes.
pub struct PlainActor {
    file_system: Plain,
    processes: Vec<Process>,
    children: Children<Process>,
}

thread_local! {
    static ACTOR: Cell<Option<&'static PlainActor>> = const { Cell::new(None) };
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}

impl PlainActor {
    /// The calling thread acts on an empty instance from now on.
    fn enter_new(surroundings: &Surroundings) {
        let file_system = Plain::new(Limits::default(), now_ns);
        let process = |credentials| {
            let process = Process::new(&file_system, credentials);
            process.set_umask(0);
            process
        };
        let processes = surroundings.credentials().into_iter().map(process).collect();
        ACTOR.set(Some(Box::leak(Box::new(PlainActor { file_system, processes, children: Children::none() }))));
    }
}

impl Subject for PlainActor {
    const ONE_THREAD: bool = true;

    type Handle = plain::OpenNode;
    type Fault = Unreachable;
    type Call<'a> = plain::Call<'a>;
    type Objects<'a> = plain::Call<'a>;
    type Process = Process;

    fn actor() -> &'static PlainActor {
        ACTOR.get().expect("the coordinator enters before it serves")
    }

    fn enter(&self, process: usize) -> plain::Call<'_> {
        self.file_system.begin(&self.processes[process])
    }

    fn core(&self) -> usize {
        0
    }

    fn descriptors(&self, process: usize) -> Vec<u32> {
        self.processes[process].descriptors()
    }

    fn mapped_pages(&self, process: usize) -> Vec<u64> {
        self.enter(process).mapped_pages().expect("no operation was asked to fail")
    }

    fn children(&self) -> &Children<Process> {
        &self.children
    }

    fn enter_child<'a>(&'a self, child: &'a Process) -> plain::Call<'a> {
        self.file_system.begin(child)
    }

    fn number(child: &Process) -> ProcessNumber {
        child.number()
    }

    fn number_of(&self, process: usize) -> ProcessNumber {
        self.processes[process].number()
    }

    fn fork(&self, process: usize) -> Result<Process, Errno> {
        Ok(self.processes[process].fork(&self.file_system))
    }

    fn exec(&self, child: &Process) {
        child.exec(&self.file_system);
    }

    fn exit(&self, child: Process, ended: Ended) {
        child.exit_with(&self.file_system, ended);
    }

    fn maintain(&self, _: bool) {}
}

/// Runs batches over `Plain`.
pub struct PlainProgram {
    /// As many as a test has calls; their threads do nothing.
    pub workers: usize,
    /// What surrounds the tests' calls.
    pub surroundings: Surroundings,
}

impl Program for PlainProgram {
    type Target = FileSystemTarget<PlainActor>;

    const NAME: &'static str = "commutant-scalefs-runner --plain";

    fn workers(&self) -> usize {
        self.workers
    }

    fn enter(&self, core: Option<usize>) -> Result<(), String> {
        if core.is_none() {
            PlainActor::enter_new(&self.surroundings);
        }
        Ok(())
    }

    fn target(&self) -> Result<Self::Target, String> {
        Ok(FileSystemTarget::new(self.workers, self.surroundings))
    }
}
