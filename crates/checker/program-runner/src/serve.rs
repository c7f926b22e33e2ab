//! A program's threads, and its life from the first batch to the last.
//!
//! The tracer numbers threads in the order in which they start. So the main thread is the worker of core 0, the next ones
//! are the other workers, and the coordinator comes last: core *i* of a test is core *i* of the trace.

use std::io::{Read, Write};

use runner::crew::{Crew, Slots};
use runner::place::{CORE_LIMIT, Place};
use runner::slot::{Slot, Waiting, yield_while_spinning};
use runner::target::{Execution, Marks, Target};
use runner::window::Interpreter;
use wire::plan::Plan;

use crate::frames;

/// What a program brings. Errors are lines for people; each ends the process.
pub trait Program: Send + Sync + 'static {
    /// What it runs windows on; made and used by the coordinator.
    type Target: Target + 'static;

    /// The name in front of its messages.
    const NAME: &'static str;

    /// How many cores have a thread.
    fn workers(&self) -> usize;

    /// The calling thread becomes the worker of a core; `None`: the coordinator.
    ///
    /// # Errors
    /// It cannot.
    fn enter(&self, core: Option<usize>) -> Result<(), String>;

    /// The target, once all threads have entered.
    ///
    /// # Errors
    /// It cannot be made.
    fn target(&self) -> Result<Self::Target, String>;

    /// A window begins.
    fn window_begins(&self) {}

    /// All windows of a batch have run, and no core works.
    ///
    /// # Errors
    /// What belongs to a batch cannot be done.
    fn batch_ended(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Prints a message of the program.
pub fn complain<P: Program>(why: &str) {
    eprintln!("{}: {why}", P::NAME);
}

/// Starts all threads; the calling one becomes the worker of core 0. Returns only if they cannot be started.
///
/// # Errors
/// A thread cannot be started.
pub fn serve<P: Program>(
    program: &'static P,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), String> {
    // A thread that panics would leave the others waiting for it.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
    let slots: &'static Slots<<P::Target as Execution>::Operation> =
        Box::leak(Box::new(std::array::from_fn(|_| Slot::default())));
    yield_while_spinning();
    enter(program, Some(0));
    for core in 1..program.workers() {
        start(&format!("core-{core}"), move |entered| {
            enter(program, Some(core));
            entered();
            work::<P>(slots, core)
        })?;
    }
    start("coordinator", move |entered| {
        enter(program, None);
        entered();
        let code = match coordinate(program, slots, input, output) {
            Ok(()) => 0,
            Err(why) => {
                complain::<P>(&why);
                3
            }
        };
        std::process::exit(code);
    })?;
    work::<P>(slots, 0)
}

/// Starts a thread and waits until it says that it has entered: what threads get first, such as memory, they get in the
/// same order in each run.
fn start(name: &str, life: impl FnOnce(&dyn Fn()) + Send + 'static) -> Result<(), String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let entered = move || {
        let _ = sender.send(()); // the program that started us waits for it
    };
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || life(&entered));
    started.map_err(|error| format!("starting a thread: {error}"))?;
    receiver.recv().map_err(|_| format!("the thread {name} ended"))
}

/// The calling thread becomes the worker of a core, or the coordinator; if it cannot, the process ends.
fn enter<P: Program>(program: &'static P, core: Option<usize>) {
    if let Err(why) = program.enter(core) {
        complain::<P>(&why);
        std::process::exit(3);
    }
}

/// The life of the worker of a core.
fn work<P: Program>(slots: &'static Slots<<P::Target as Execution>::Operation>, core: usize) -> ! {
    // SAFETY: each core has one thread, which serves its slot.
    unsafe { slots[Place::Worker { process: 0, core }.index()].serve::<P::Target>(Waiting::Spinning) }
}

/// Runs batches until the input ends.
fn coordinate<P: Program>(
    program: &'static P,
    slots: &'static Slots<<P::Target as Execution>::Operation>,
    mut input: impl Read,
    mut output: impl Write,
) -> Result<(), String> {
    // SAFETY: made once, here; the workers serve their slots and command no one.
    let mut crew = unsafe { Crew::new(slots, program.workers().min(CORE_LIMIT)) };
    for core in 0..program.workers() {
        crew.run(Place::Worker { process: 0, core }, Marks::None);
    }
    crew.rest();
    let mut interpreter = Interpreter::new(program.target()?, crew);
    let mut buffer = Vec::new();
    while let Some(bytes) = frames::read(&mut input).map_err(|error| format!("reading a batch: {error}"))? {
        let plan = Plan::decode(&bytes).map_err(|error| format!("a batch: {error}"))?;
        buffer = interpreter.run(&plan, buffer, |_| program.window_begins()).map_err(|error| error.to_string())?;
        program.batch_ended()?;
        frames::write(&mut output, &buffer).map_err(|error| format!("writing results: {error}"))?;
    }
    Ok(())
}
