//! Benchmarks of up to 256 cores in one thread, for the counter of transfers (crate `transfers-plugin`).
//!
//! ```text
//! commutant-scale-runner --list                              the benchmarks, one a line: name, what an operation is
//! commutant-scale-runner BENCHMARK CORES OPERATIONS WARM-UP SEED RATE EVERY LISTING
//! ```
//! Each core makes so many operations to warm up, and then as many as are counted. Of 1,024 accesses to atomics RATE hand over
//! to another core. After each EVERY operations a core does its maintenance, the cores one after the other. At the end the list of
//! what lies where in memory goes to the file LISTING.
//!
//! Cores hand over inside their operations if all crates are built with `--cfg virtual_cores`, and else between them.
#![warn(missing_docs)]

mod benchmark;
mod benchmarks;
mod cores;
mod own_code;
mod world;

use std::cell::Cell;
use std::fs::File;
use std::panic;
use std::process::{self, ExitCode};

use transfer_marks as mark;

use crate::benchmark::{Benchmark, Operation};
use crate::cores::Turns;
use crate::world::World;

/// An operation could not be made.
const FAILED: i32 = 3;

struct Options {
    benchmark: &'static Benchmark,
    cores: usize,
    operations: u64,
    warm_up: u64,
    turns: Turns,
    every: u64,
    listing: String,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--list"] {
        benchmarks::all().for_each(|benchmark| println!("{} {}", benchmark.name, benchmark.operation));
        return ExitCode::SUCCESS;
    }
    panic::set_hook(Box::new(|failed| {
        let place = failed.location().map_or_else(String::new, ToString::to_string);
        let payload = failed.payload();
        let said = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref().copied());
        eprintln!("commutant-scale-runner: {}", failure(said.unwrap_or("an operation failed"), &place));
        // Not through coroutines, of which others are in the middle of something.
        process::exit(FAILED);
    }));
    match parse(&arguments).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("commutant-scale-runner: {why}");
            ExitCode::from(2)
        }
    }
}

/// What an operation says that could not be made, which all benchmarks expect.
fn failure(said: &str, place: &str) -> String {
    if ["ENOSPC", "ENOMEM"].iter().any(|errno| said.ends_with(errno)) {
        return format!(
            "{said}: the file system is too small for this benchmark on that many cores; what was removed comes back sooner with a \
             smaller --maintain-every"
        );
    }
    format!("{said} ({place})")
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let [name, cores, operations, warm_up, seed, rate, every, listing] = arguments else {
        return Err(format!("expected --list or eight arguments, got {}", arguments.len()));
    };
    let benchmark = benchmarks::all().find(|benchmark| benchmark.name == *name);
    let number = |text: &String, what: &str, least: u64, most: u64| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("expected {least} to {most} for {what}, got {text}"))
    };
    Ok(Options {
        benchmark: benchmark.ok_or_else(|| format!("expected a benchmark of --list, got {name}"))?,
        cores: number(cores, "the cores", 1, percpu::MAX_CORES as u64)? as usize,
        operations: number(operations, "the operations", 1, u64::from(u32::MAX))?,
        warm_up: number(warm_up, "the operations to warm up", 0, u64::from(u32::MAX))?,
        turns: Turns {
            seed: number(seed, "the seed", 0, u64::MAX)?,
            rate: number(rate, "the rate of handing over", 0, 1024)?,
        },
        every: number(every, "the operations from maintenance to maintenance", 1, u64::from(u32::MAX))?,
        listing: listing.clone(),
    })
}

fn run(options: &Options) -> Result<(), String> {
    for range in own_code::ranges()? {
        mark::own_code(range);
    }
    mark::own_memory(own_code::thread_locals());
    mark::own_memory(World::own_memory());
    // Kept for ever: coroutines use it.
    let world: &World = Box::leak(Box::new(World::create(options.cores, options.turns.seed)?));
    let make: &Maker = Box::leak(Box::new(Maker::new(options, world)));
    mark::cores(options.cores);
    let turns = |phase| Turns { seed: cores::stream(options.turns.seed, phase), ..options.turns };
    cores::run(options.cores, turns(0), make.life(options.warm_up))?;
    mark::count();
    cores::run(options.cores, turns(1), make.life(options.operations))?;
    mark::end();
    let listing = File::create(&options.listing).and_then(|file| world.list(file));
    listing.map_err(|error| format!("{}: {error}", options.listing))
}

/// Makes operations of cores, and their maintenance.
struct Maker {
    world: &'static World,
    operation: Operation<'static>,
    /// How many operations each core has made: of no interest to the counter, since each has a line of its own.
    made: Vec<Made>,
    /// From maintenance to maintenance, if there is any.
    every: Option<u64>,
}

#[repr(align(64))]
struct Made(Cell<u64>);

impl Maker {
    fn new(options: &Options, world: &'static World) -> Maker {
        let made = (0..options.cores).map(|_| Made(Cell::new(0))).collect();
        let benchmark = options.benchmark;
        let every = benchmark.maintains.then_some(options.every);
        Maker { world, operation: (benchmark.prepare)(world), made, every }
    }

    /// What each core does to make so many operations.
    fn life(&'static self, count: u64) -> impl Fn(usize) + Copy + 'static {
        move |core| {
            for _ in 0..count {
                let made = self.made[core].0.get();
                (self.operation)(core, made);
                self.made[core].0.set(made + 1);
                if self.every.is_some_and(|every| (made + core as u64).is_multiple_of(every)) {
                    cores::begin_work(mark::MAINTENANCE);
                    self.world.maintain(core);
                    cores::begin_work(mark::OPERATION);
                }
                cores::end_operation();
            }
        }
    }
}
