//! Domains under test: one file system over several that share no coherent memory (crate `domains`), all played by the thread
//! that coordinates, which also makes all calls; results are all that there is to see.
//!
//! A call on names comes from the domain of its core, any other from that of its process: descriptors stay in one. At level
//! `close-to-open` all calls come from their process's, as what a process has written may be seen in its domain alone.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use domains::{Level, Limits, OfOneThread, OneThread, OwnPages, Process, SharedPages};
use messages::simulated::Simulated;
use posix_calls::{Ended, Errno, ProcessNumber};
use program_runner::serve::Program;

use crate::children::Children;
use crate::process_calls::PARENT;
use crate::subject::Subject;
use crate::surroundings::Surroundings;
use crate::target::FileSystemTarget;

/// What a test's processes have together, beyond the limits of tests: a directory of a few names is split.
const SPLIT_ABOVE: usize = 4;

/// Pages of each domain through which data go at level `close-to-open`; what finds none travels in messages.
const SHARED_PAGES: u32 = 64;

/// An instance and its processes.
pub struct DomainsActor {
    /// By domain.
    domains: Vec<Rc<OfOneThread>>,
    /// By process, then by domain: what makes its calls from there.
    processes: Vec<Vec<Process>>,
    /// Which domain the next call comes from, if not its process's own.
    caller: Cell<Option<usize>>,
    level: Level,
    children: Children<Process>,
    /// How many mappings were refused when somebody last looked.
    refused_mappings: Cell<u64>,
}

thread_local! {
    static ACTOR: Cell<Option<&'static DomainsActor>> = const { Cell::new(None) };
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}

impl DomainsActor {
    /// The calling thread acts on an empty instance from now on.
    fn enter_new(domain_count: usize, level: Level, surroundings: &Surroundings) {
        let limits = Limits { inodes: 1 << 40, pages: 1 << 40, split_above: SPLIT_ABOVE, ..Limits::default() };
        let file_system = OneThread::new(domain_count, limits, now_ns);
        let pages: Rc<dyn SharedPages> = Rc::new(OwnPages::new(domain_count, SHARED_PAGES));
        for domain in (0..domain_count).map(|number| file_system.domain(number)) {
            domain.use_level(level);
            domain.use_pages(Rc::clone(&pages));
        }
        let process = |credentials| {
            let process = Process::new(credentials);
            if surroundings.has_users() {
                process.set_umask(0);
            }
            process
        };
        let in_each = |credentials: posix_calls::Credentials| (0..domain_count).map(|_| process(credentials)).collect();
        let actor = DomainsActor {
            domains: (0..domain_count).map(|number| file_system.domain(number)).collect(),
            processes: surroundings.credentials().into_iter().map(in_each).collect(),
            caller: Cell::new(None),
            level,
            children: Children::none(),
            refused_mappings: Cell::new(0),
        };
        ACTOR.set(Some(Box::leak(Box::new(actor))));
    }

    /// The domain in which a process is.
    fn home(&self, process: usize) -> usize {
        process % self.domains.len()
    }
}

impl Subject for DomainsActor {
    const ONE_THREAD: bool = true;

    type Handle = domains::Handle;
    type Fault = domains::Fault;
    type Call<'a> = domains::Call<'a, Simulated<'static>>;
    type Objects<'a> = domains::Call<'a, Simulated<'static>>;
    type Process = Process;

    fn actor() -> &'static DomainsActor {
        ACTOR.get().expect("the coordinator enters before it serves")
    }

    fn acts_from(&self, core: Option<usize>) {
        let may_differ = self.level == Level::Posix;
        self.caller.set(core.filter(|_| may_differ).map(|core| core % self.domains.len()));
    }

    fn enter(&self, process: usize) -> Self::Call<'_> {
        let home = self.home(process);
        let from = self.caller.get().unwrap_or(home);
        let (domain, caller) = (&self.domains[from], &self.processes[process][from]);
        if from != home {
            let followed = caller.follow(domain, &self.processes[process][home]);
            followed.expect("where the process works is there: it keeps that");
        }
        domain.begin(caller)
    }

    fn core(&self) -> usize {
        self.caller.get().unwrap_or(0)
    }

    fn descriptors(&self, process: usize) -> Vec<u32> {
        self.processes[process][self.home(process)].descriptors()
    }

    fn mapped_pages(&self, process: usize) -> Vec<u64> {
        let home = self.home(process);
        self.domains[home].begin(&self.processes[process][home]).mapped_pages()
    }

    fn children(&self) -> &Children<Process> {
        &self.children
    }

    fn enter_child<'a>(&'a self, child: &'a Process) -> Self::Call<'a> {
        self.domains[self.home(PARENT)].begin(child)
    }

    fn number(child: &Process) -> ProcessNumber {
        child.number().expect("a child has a number")
    }

    fn number_of(&self, process: usize) -> ProcessNumber {
        let home = self.home(process);
        self.domains[home].begin(&self.processes[process][home]).number_of_caller()
    }

    fn fork(&self, process: usize) -> Result<Process, Errno> {
        let home = self.home(process);
        self.processes[process][home].fork(&self.domains[home])
    }

    fn exec(&self, child: &Process) {
        child.exec(&self.domains[self.home(PARENT)]);
    }

    fn exit(&self, child: Process, ended: Ended) {
        child.exit_with(&self.domains[self.home(PARENT)], ended);
    }

    fn not_offered(&self) -> Option<&'static str> {
        let refused = self.domains.iter().map(|domain| domain.refused_mappings()).sum();
        let is_new = self.refused_mappings.replace(refused) != refused;
        is_new.then_some("a file is mapped by a process of another domain than its own")
    }

    fn maintain(&self, _: bool) {
        while self.domains.iter().any(|domain| domain.serve()) {}
    }
}

/// Runs batches over domains.
pub struct DomainsProgram {
    /// How many.
    pub domain_count: usize,
    /// What they see of each other's data.
    pub level: Level,
    /// As many as a test has calls; their threads do nothing.
    pub workers: usize,
    /// What surrounds the tests' calls.
    pub surroundings: Surroundings,
}

impl Program for DomainsProgram {
    type Target = FileSystemTarget<DomainsActor>;

    const NAME: &'static str = "commutant-scalefs-runner --domains";

    fn workers(&self) -> usize {
        self.workers
    }

    fn enter(&self, core: Option<usize>) -> Result<(), String> {
        if core.is_none() {
            DomainsActor::enter_new(self.domain_count, self.level, &self.surroundings);
        }
        Ok(())
    }

    fn target(&self) -> Result<Self::Target, String> {
        Ok(FileSystemTarget::new(self.workers, self.surroundings))
    }
}
