//! Runs batches of windows over one instance of ScaleFS.
//!
//! A program for `qemu-x86_64` with the tracer: the library under test lies in this process, its memory in one arena at a
//! fixed address, and everything that two cores touch in a traced call counts, whoever's it is. Batches come on standard
//! input and results go to standard output, both as frames ([`frames`]); whatever goes wrong is a line on standard error
//! and the end of the process.
//!
//! **Threads.** The tracer numbers threads in the order in which they start. So the main thread is the worker of core 0,
//! the next ones are the other workers, and the coordinator comes last: core *i* of a test is core *i* of the trace.
//!
//! ```text
//! commutant-scalefs-runner --cores N --workers N --seed N    run batches until standard input ends
//! commutant-scalefs-runner ... --objects FILE                and list in it what lies where in the arena ([`objects`])
//! commutant-scalefs-runner ... --regions                     list the parts of such an instance's arena
//! commutant-scalefs-runner --calls                           list the calls
//! commutant-scalefs-runner --symbols                         list this program's functions and data, for names
//! ```

mod calls;
mod frames;
mod instance;
mod objects;
mod operation;
mod options;
mod outside;
mod symbols;
mod target;

use std::io;
use std::process::ExitCode;

use runner::crew::{Crew, Slots};
use runner::place::{CORE_LIMIT, Place};
use runner::slot::{Slot, Waiting, yield_while_spinning};
use runner::target::Marks;
use runner::window::Interpreter;
use wire::plan::Plan;

use crate::instance::Instance;
use crate::objects::ObjectList;
use crate::operation::Operation;
use crate::options::{Mode, Options};
use crate::target::ScaleFsTarget;

fn main() -> ExitCode {
    match options::parse(std::env::args().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain(&why);
            ExitCode::from(2)
        }
    }
}

fn complain(why: &str) {
    eprintln!("commutant-scalefs-runner: {why}");
}

fn run(mode: Mode) -> Result<(), String> {
    match mode {
        Mode::Calls => target::SIGNATURES.iter().for_each(|signature| println!("{signature}")),
        Mode::Symbols => print!("{}", symbols::of_this_program()?),
        Mode::Regions(options) => {
            print!("{}", Instance::create(options.cores, options.hash_seed)?.regions());
        }
        Mode::Batches { options, objects } => serve(options, objects)?,
    }
    Ok(())
}

/// Starts all threads; the calling one becomes the worker of core 0. Returns only if the instance cannot be made.
fn serve(options: Options, objects: Option<String>) -> Result<(), String> {
    // A thread that panics would leave the others waiting for it.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
    let instance = Instance::create(options.cores, options.hash_seed)?;
    let slots: &'static Slots<Operation> = Box::leak(Box::new(std::array::from_fn(|_| Slot::default())));
    yield_while_spinning();
    for core in 1..options.workers {
        start(&format!("core-{core}"), move || work(instance, slots, core))?;
    }
    start("coordinator", move || {
        let code = match coordinate(instance, slots, options, objects) {
            Ok(()) => 0,
            Err(why) => {
                complain(&why);
                3
            }
        };
        std::process::exit(code);
    })?;
    work(instance, slots, 0)
}

fn start(name: &str, life: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(life);
    started.map(drop).map_err(|error| format!("starting a thread: {error}"))
}

/// The life of the worker of a core.
fn work(instance: &'static Instance, slots: &'static Slots<Operation>, core: usize) -> ! {
    if let Err(why) = instance.enter(core) {
        complain(&why);
        std::process::exit(3);
    }
    slots[Place::Worker { process: 0, core }.index()].serve::<ScaleFsTarget>(Waiting::Spinning)
}

/// Runs batches until standard input ends.
fn coordinate(
    instance: &'static Instance,
    slots: &'static Slots<Operation>,
    options: Options,
    objects: Option<String>,
) -> Result<(), String> {
    instance.enter(options.cores)?;
    // SAFETY: made once, here; the workers serve their slots and command nobody.
    let mut crew = unsafe { Crew::new(slots, options.workers.min(CORE_LIMIT)) };
    for core in 0..options.workers {
        crew.run(Place::Worker { process: 0, core }, Marks::None);
    }
    crew.rest();
    let mut interpreter = Interpreter::new(ScaleFsTarget::new(options.workers), crew);
    let listing = |error: io::Error| format!("listing the arena's objects: {error}");
    let mut objects = objects.map(|path| ObjectList::begin(&path, instance)).transpose().map_err(listing)?;
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut buffer = Vec::new();
    while let Some(bytes) = frames::read(&mut input).map_err(|error| format!("reading a batch: {error}"))? {
        let plan = Plan::decode(&bytes).map_err(|error| format!("a batch: {error}"))?;
        buffer = interpreter.run(&plan, buffer, |_| ()).map_err(|error| error.to_string())?;
        if let Some(objects) = &mut objects {
            objects.update(instance).map_err(listing)?;
        }
        frames::write(&mut output, &buffer).map_err(|error| format!("writing results: {error}"))?;
    }
    Ok(())
}
