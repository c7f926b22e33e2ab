//! The benchmarks by the clock: on two domains, on one, on ScaleFS and on tmpfs, one program each, in turns.

use std::time::{Duration, Instant};

use domains::Techniques;
use messages::{Came, Class, Counts, Endpoint, Transport};
use pool::Coherent;
use posix_calls::Errno;

use crate::benchmarks::{ALL, Benchmark};
use crate::client::{Calls, Client, KINDS};
use crate::effort::Effort;
use crate::over_domains::OverDomains;
use crate::over_scalefs::with_scalefs;
use crate::places::{Host, Processors, host, in_threads, rings};
use crate::row::{Row, say};
use crate::system::{How, System};
use crate::tmpfs::Tmpfs;

/// On what a benchmark runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Configuration {
    /// A server has made what was there before, and the client makes objects where it is.
    ServerAndClient,
    /// The same, and the server has all objects and names, as Hare's has.
    AllAtServer,
    /// As the first, on one processor.
    TimeShared,
    OneDomain,
    ScaleFs,
    Tmpfs,
}

const CONFIGURATIONS: [Configuration; 6] = [
    Configuration::Tmpfs,
    Configuration::ServerAndClient,
    Configuration::AllAtServer,
    Configuration::TimeShared,
    Configuration::OneDomain,
    Configuration::ScaleFs,
];

impl Configuration {
    fn name(self) -> &'static str {
        match self {
            Configuration::ServerAndClient => "server and client",
            Configuration::AllAtServer => "all at the server",
            Configuration::TimeShared => "time-shared",
            Configuration::OneDomain => "one domain",
            Configuration::ScaleFs => "ScaleFS",
            Configuration::Tmpfs => "tmpfs",
        }
    }

    fn processors(self) -> Processors {
        if self == Configuration::TimeShared { Processors::Shared } else { Processors::Own }
    }

    fn techniques(self) -> Techniques {
        match self {
            Configuration::AllAtServer => Techniques { affinity: false, lending: false, ..Techniques::default() },
            _ => Techniques::default(),
        }
    }
}

/// What a run has shown.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    elapsed_ns: f64,
    calls: Calls,
    /// Of all domains.
    counts: Counts,
}

impl Sample {
    fn call_count(&self) -> f64 {
        self.calls.iter().sum::<u64>() as f64
    }
}

/// The directories of the runs of a round. The first fills caches; of the others the quickest counts: no other program had a
/// processor that it wanted.
fn bases(effort: Effort) -> &'static [&'static str] {
    &["warm", "first", "second", "third", "fourth"][..effort.runs()]
}

/// The quicker one; that which fills caches is none.
fn quicker(one: Option<Sample>, other: Sample, run: usize) -> Option<Sample> {
    if run == 0 {
        return None;
    }
    Some(one.filter(|one| one.elapsed_ns <= other.elapsed_ns).unwrap_or(other))
}

fn alone() {}

fn client<'s, S: System>(system: &'s S, base: &str, effort: Effort) -> Client<'s, S> {
    Client::new(system, (0, 1), effort.percent(), base, &alone)
}

/// The measured part, by a client.
fn run<S: System>(benchmark: Benchmark, client: &Client<'_, S>) -> Result<Sample, Errno> {
    let start = Instant::now();
    benchmark.run(client)?;
    let elapsed_ns = start.elapsed().as_nanos() as f64;
    Ok(Sample { elapsed_ns, calls: client.calls(), counts: Counts::default() })
}

/// What is there before.
fn prepare<S: System>(benchmark: Benchmark, client: &Client<'_, S>) -> Result<(), Errno> {
    benchmark.prepare(client)?;
    benchmark.prepare_own(client)
}

/// On a system of one program, which makes also what is there before.
fn alone_on<S: System>(benchmark: Benchmark, system: &S, effort: Effort) -> Result<Sample, Errno> {
    let mut quickest = None;
    for (number, base) in bases(effort).iter().enumerate() {
        prepare(benchmark, &client(system, base, effort))?;
        let sample = run(benchmark, &client(system, base, effort))?;
        quickest = quicker(quickest, sample, number);
        client(system, base, effort).remove_all(base)?;
    }
    Ok(quickest.unwrap_or_default())
}

fn sum(one: &Counts, other: &Counts) -> Counts {
    let mut messages = one.messages;
    messages.iter_mut().zip(other.messages).for_each(|(sum, more)| *sum += more);
    Counts {
        messages,
        bytes: one.bytes + other.bytes,
        lines: one.lines + other.lines,
        round_trips: one.round_trips + other.round_trips,
        held_back: one.held_back + other.held_back,
    }
}

/// The server makes what is there before, up to odd stages, and serves up to even ones, to which the client comes.
fn on_two_domains(benchmark: Benchmark, configuration: Configuration, effort: Effort) -> Result<Sample, String> {
    let (processors, techniques) = (configuration.processors(), configuration.techniques());
    let explained = |errno: Errno| format!("{}: {errno:?}", benchmark.name());
    let (served, samples) = in_threads(
        processors,
        |pool, stage| {
            let domain = host(pool, techniques)?;
            let system = OverDomains::new(&domain);
            let mut counts = Vec::new();
            for (number, base) in bases(effort).iter().enumerate() {
                prepare(benchmark, &client(&system, base, effort)).map_err(explained)?;
                let before = domain.counts();
                stage.reach(2 * number + 1);
                processors.serve_until(&domain, stage, 2 * number + 2);
                counts.push(domain.counts().since(&before));
            }
            Ok(counts)
        },
        |pool, stage| {
            let domain = host(pool, techniques)?;
            let system = OverDomains::new(&domain);
            let mut samples = Vec::new();
            for (number, base) in bases(effort).iter().enumerate() {
                processors.serve_until(&domain, stage, 2 * number + 1);
                let before = domain.counts();
                let mut sample = run(benchmark, &client(&system, base, effort)).map_err(explained)?;
                sample.counts = domain.counts().since(&before);
                samples.push(sample);
                stage.reach(2 * number + 2);
            }
            Ok(samples)
        },
    )?;
    let both = samples.into_iter().zip(&served).enumerate();
    let quickest = both.fold(None, |quickest, (number, (sample, served))| {
        quicker(quickest, Sample { counts: sum(&sample.counts, served), ..sample }, number)
    });
    Ok(quickest.unwrap_or_default())
}

fn measure_one(benchmark: Benchmark, configuration: Configuration, effort: Effort) -> Result<Sample, String> {
    let explained = |errno: Errno| format!("{} on {}: {errno:?}", benchmark.name(), configuration.name());
    match configuration {
        Configuration::ServerAndClient | Configuration::AllAtServer | Configuration::TimeShared => {
            on_two_domains(benchmark, configuration, effort)
        }
        Configuration::OneDomain => {
            let file_system = domains::OneThread::new(1, domains::Limits::default(), crate::clock::now_ns);
            alone_on(benchmark, &OverDomains::new(&file_system.domain(0)), effort).map_err(explained)
        }
        Configuration::ScaleFs => with_scalefs(|system| alone_on(benchmark, system, effort))?.map_err(explained),
        Configuration::Tmpfs => alone_on(benchmark, &Tmpfs::new()?, effort).map_err(explained),
    }
}

/// A benchmark that has taken longer gets no more rounds: others want the processors, and its time is not worth more.
const LONGEST: Duration = Duration::from_secs(30);

/// Prints a row for each round of each benchmark on each configuration, and what calls benchmarks are made of.
pub fn measure(effort: Effort) -> Result<(), String> {
    for (number, benchmark) in ALL.into_iter().enumerate() {
        say(&format!("measuring {}, {} of {}", benchmark.name(), number + 1, ALL.len()));
        let began = Instant::now();
        for round in 0..effort.rounds() {
            if began.elapsed() > LONGEST {
                say(&format!("{} is slow, as others want the processors: {round} rounds", benchmark.name()));
                break;
            }
            for configuration in CONFIGURATIONS {
                // Programs alone run where the clients do.
                let sample = std::thread::scope(|scope| {
                    let measured = scope.spawn(|| {
                        crate::clock::stay_on(1);
                        measure_one(benchmark, configuration, effort)
                    });
                    measured.join().unwrap_or_else(|_| Err("a program has panicked".into()))
                })?;
                let calls = sample.call_count();
                Row::new("measured")
                    .text("benchmark", benchmark.name())
                    .text("configuration", configuration.name())
                    .number("round", round as f64)
                    .number("calls", calls)
                    .number("ns", sample.elapsed_ns / calls)
                    .number("messages", sample.counts.messages.iter().sum::<u64>() as f64 / calls)
                    .number("bytes", sample.counts.bytes as f64 / calls)
                    .number("lines", sample.counts.lines as f64 / calls)
                    .number("waits", sample.counts.round_trips as f64 / calls)
                    .print();
                if round == 0 && configuration == Configuration::Tmpfs {
                    for (kind, count) in KINDS.into_iter().zip(sample.calls).filter(|(_, count)| *count > 0) {
                        Row::new("calls")
                            .text("benchmark", benchmark.name())
                            .text("call", kind)
                            .number("share", count as f64 / calls)
                            .print();
                    }
                }
            }
        }
    }
    Ok(())
}

const TRIPS: usize = 1000;
const STRETCHES: usize = 10;
const MESSAGE: &[u8] = &[7; 40];

/// Nanoseconds of each of some steps in the quickest of some stretches of them, after one that fills caches.
fn quickest_ns(steps: usize, mut step: impl FnMut(usize) -> Result<(), String>) -> Result<f64, String> {
    let mut quickest = f64::INFINITY;
    for stretch in 0..=STRETCHES {
        let start = Instant::now();
        (0..steps).try_for_each(&mut step)?;
        let ns = start.elapsed().as_nanos() as f64 / steps as f64;
        quickest = if stretch == 0 { quickest } else { quickest.min(ns) };
    }
    Ok(quickest)
}

/// Nanoseconds of a question of one line and its answer of one line, and of nothing else.
fn bare_round_trip(processors: Processors, flushes: bool, effort: Effort) -> Result<f64, String> {
    let trips = (TRIPS * effort.percent() / 100).max(1);
    let ((), ns) = in_threads(
        processors,
        |pool, stage| {
            if flushes {
                answer(&Endpoint::new(rings(pool, pool)?), || stage.is_reached(1), processors)
            } else {
                answer(&Endpoint::new(rings(pool, &Coherent::new(pool.clone()))?), || stage.is_reached(1), processors)
            }
        },
        |pool, stage| {
            let asked = if flushes {
                ask(&Endpoint::new(rings(pool, pool)?), trips, processors)
            } else {
                ask(&Endpoint::new(rings(pool, &Coherent::new(pool.clone()))?), trips, processors)
            };
            stage.reach(1);
            asked
        },
    )?;
    Ok(ns)
}

fn answer<T: Transport>(
    endpoint: &Endpoint<T>,
    is_over: impl Fn() -> bool,
    processors: Processors,
) -> Result<(), String> {
    let (mut message, mut looks) = (Vec::new(), 0);
    while !is_over() {
        if let Came::Asked(asked) = endpoint.next_message(&mut message) {
            endpoint.reply(asked, MESSAGE).map_err(|_| "a reply has no room")?;
            looks = 0;
        } else {
            processors.relax(looks);
            looks += 1;
        }
    }
    Ok(())
}

fn ask<T: Transport>(endpoint: &Endpoint<T>, trips: usize, processors: Processors) -> Result<f64, String> {
    let server = messages::DomainNumber(0);
    let mut message = Vec::new();
    let mut trip = || -> Result<(), String> {
        let ticket = endpoint.ask(server, Class::Requests, MESSAGE, MESSAGE.len()).map_err(|_| "no room to ask")?;
        for looks in 0.. {
            endpoint.next_message(&mut message);
            if endpoint.take_reply(ticket).is_some() {
                break;
            }
            processors.relax(looks);
        }
        Ok(())
    };
    quickest_ns(trips, |_| trip())
}

/// Nanoseconds of a rename of a file within a directory of the server: one round trip, and what both do.
fn rename(processors: Processors, effort: Effort) -> Result<f64, String> {
    // An even number: each stretch ends where it began.
    let renames = 2 * (TRIPS * effort.percent() / 200).max(1);
    let explained = |errno: Errno| format!("rename: {errno:?}");
    let ((), ns) = in_threads(
        processors,
        |pool, stage| {
            let domain: Host = host(pool, Techniques::default())?;
            OverDomains::new(&domain).make_directory("d").map_err(explained)?;
            stage.reach(1);
            processors.serve_until(&domain, stage, 2);
            Ok(())
        },
        |pool, stage| {
            let domain: Host = host(pool, Techniques::default())?;
            processors.serve_until(&domain, stage, 1);
            let system = OverDomains::new(&domain);
            let fd = system.open("d/even", How::Create).map_err(explained)?;
            system.close(fd).map_err(explained)?;
            let turn = |number: usize| {
                let (old, new) = if number.is_multiple_of(2) { ("d/even", "d/odd") } else { ("d/odd", "d/even") };
                system.rename(old, new).map_err(explained)
            };
            let ns = quickest_ns(renames, turn)?;
            stage.reach(2);
            Ok(ns)
        },
    )?;
    Ok(ns)
}

/// Prints rows of bare round trips and renames, in turns.
pub fn measure_round_trips(effort: Effort) -> Result<(), String> {
    for round in 0..effort.rounds() {
        say(&format!("measuring round trips, {} of {}", round + 1, effort.rounds()));
        for (processors, configuration) in
            [(Processors::Own, Configuration::ServerAndClient), (Processors::Shared, Configuration::TimeShared)]
        {
            let row = |what: &str, ns: f64| {
                Row::new("round trip")
                    .text("configuration", configuration.name())
                    .text("what", what)
                    .number("round", round as f64)
                    .number("ns", ns)
                    .print();
            };
            row("bare", bare_round_trip(processors, false, effort)?);
            row("bare, flushed", bare_round_trip(processors, true, effort)?);
            row("rename", rename(processors, effort)?);
        }
    }
    Ok(())
}
