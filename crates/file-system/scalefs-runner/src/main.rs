//! Runs batches of windows over one instance of ScaleFS.
//!
//! A program for `qemu-x86_64` with the tracer: the library under test lies in this process, its memory in one arena at a
//! fixed address, and everything that two cores touch in a traced call counts, whoever's it is. Batches come on standard
//! input and results go to standard output (crate `program-runner`).
//!
//! ```text
//! commutant-scalefs-runner --cores N --workers N --seed N    run batches until standard input ends
//! commutant-scalefs-runner ... --warm N                      after cores have made 0 to N - 1 rounds of calls before a window
//! commutant-scalefs-runner ... --names long --depth N --users N   with names, paths and users that tests lack ([`surroundings`])
//! commutant-scalefs-runner ... --objects FILE                and list in it what lies where in the arena ([`objects`])
//! commutant-scalefs-runner ... --regions                     list the parts of such an instance's arena
//! commutant-scalefs-runner --plain --workers N               run batches over the crate `plain`, without a tracer
//! commutant-scalefs-runner --domains N --level LEVEL --workers N   run batches over domains (crate `domains`), without a tracer
//! commutant-scalefs-runner --calls                           list the calls
//! commutant-scalefs-runner --symbols                         list this program's functions and data, for names
//! ```

mod calls;
mod children;
mod domains;
mod file_calls;
mod instance;
mod memory;
mod name_calls;
mod objects;
mod operation;
mod options;
mod outside;
mod own_memory;
mod paths;
mod plain;
mod process_calls;
mod seats;
mod signatures;
mod socket_calls;
mod subject;
mod surroundings;
mod target;
mod transacted;
mod transacting;
mod tree_arguments;
mod tree_calls;
mod values;

use std::process::ExitCode;
use std::sync::Mutex;

use program_runner::serve::{Program, complain, serve};
use program_runner::symbols;

use crate::domains::DomainsProgram;
use crate::instance::{Actor, Instance};
use crate::objects::ObjectList;
use crate::options::{Mode, Options};
use crate::plain::PlainProgram;
use crate::target::FileSystemTarget;

#[global_allocator]
static MEMORY: own_memory::OwnMemory = own_memory::OwnMemory;

fn main() -> ExitCode {
    #[cfg(feature = "planted-causes")]
    if let Some(planted) = std::env::var("COMMUTANT_PLANTED_CAUSES").ok().and_then(|text| text.parse().ok()) {
        scalefs::planted_causes::PLANTED.store(planted, std::sync::atomic::Ordering::Relaxed);
    }
    match options::parse(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain::<ScaleFsProgram>(&why);
            ExitCode::from(2)
        }
    }
}

fn run(mode: Mode) -> Result<(), String> {
    match mode {
        Mode::Calls => signatures::SIGNATURES.iter().for_each(|signature| println!("{signature}")),
        Mode::Symbols => print!("{}", symbols::of_this_program()?),
        Mode::Regions(options) => {
            print!("{}", Instance::create(&options)?.regions());
        }
        Mode::Batches { options, objects } => {
            let program = Box::leak(Box::new(ScaleFsProgram::create(options, objects)?));
            serve(program, std::io::stdin(), std::io::stdout())?;
        }
        Mode::Domains { domain_count, level, workers, surroundings } => {
            let program = Box::leak(Box::new(DomainsProgram { domain_count, level, workers, surroundings }));
            serve(program, std::io::stdin(), std::io::stdout())?;
        }
        Mode::Plain { workers, surroundings } => {
            let program = Box::leak(Box::new(PlainProgram { workers, surroundings }));
            serve(program, std::io::stdin(), std::io::stdout())?;
        }
    }
    Ok(())
}

/// One instance, and the list of what lies in its arena.
struct ScaleFsProgram {
    instance: &'static Instance,
    options: Options,
    /// Guarded by its mutex, which the coordinator alone takes.
    objects: Mutex<Option<ObjectList>>,
}

impl ScaleFsProgram {
    fn create(options: Options, objects: Option<String>) -> Result<Self, String> {
        let instance = Instance::create(&options)?;
        let objects = objects.map(|path| ObjectList::begin(&path, instance)).transpose();
        let objects = objects.map_err(|error| format!("listing the arena's objects: {error}"))?;
        Ok(Self { instance, options, objects: Mutex::new(objects) })
    }
}

impl Program for ScaleFsProgram {
    type Target = FileSystemTarget<Actor>;

    const NAME: &'static str = "commutant-scalefs-runner";

    fn workers(&self) -> usize {
        self.options.workers
    }

    fn enter(&self, core: Option<usize>) -> Result<(), String> {
        self.instance.enter(core.map_or(self.options.cores, |worker| self.options.core_of(worker)), core)
    }

    fn target(&self) -> Result<Self::Target, String> {
        Ok(FileSystemTarget::new(self.options.workers, self.options.surroundings))
    }

    fn batch_ended(&self) -> Result<(), String> {
        let mut objects = self.objects.lock().map_err(|_| "a thread panicked".to_owned())?;
        let updated = objects.as_mut().map_or(Ok(()), |objects| objects.update(self.instance));
        updated.map_err(|error| format!("listing the arena's objects: {error}"))
    }
}
