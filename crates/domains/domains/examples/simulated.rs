//! Workloads on simulated domains: how they scale, and what each technique is worth.
//!
//! ```text
//! simulated scale MACHINE DOMAINS ROUNDS [WORKLOAD]         MACHINE: x86, cxl, scc or hare
//! simulated techniques MACHINE DOMAINS ROUNDS [WORKLOAD]
//! ```
//! Each domain makes that many rounds of each workload, after some that fill its caches. `scale` prints virtual time
//! per call with one domain and with all, the speed-up, how often a call waits and sends, and what a domain's time goes
//! to; `techniques` prints how many times as long a call takes without each.

use std::cell::Cell;
use std::ops::Range;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use domains::simulated::{Setup, SimulatedDomain, simulate};
use domains::{Limits, Process, Techniques};
use messages::Transport;
use messages::simulated::{Latencies, Simulated, Spent};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, OpenFlags, Start, attributes, directories};

type Call<'c, 'w> = domains::Call<'c, Simulated<'w>>;

/// A workload: its name, and how many calls a round has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workload {
    /// All create, close and remove names in one directory.
    Creates,
    /// The same, with names that never come again.
    NewNames,
    /// The same as the first, each in a directory of its own.
    OwnCreates,
    /// All rename files in one directory.
    Renames,
    /// All make and remove directories in one directory.
    Directories,
    /// Each writes and reads files of its own.
    Writes,
}

const WORKLOADS: [Workload; 6] = [
    Workload::Creates,
    Workload::NewNames,
    Workload::OwnCreates,
    Workload::Renames,
    Workload::Directories,
    Workload::Writes,
];

const CREATE: OpenFlags = OpenFlags::CREATE.union(OpenFlags::WRITE).union(OpenFlags::READ);

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn open(call: &Call<'_, '_>, path: &str) -> Result<u32, Errno> {
    data::open(call, at(), path.as_bytes(), CREATE, 0o644, DescriptorOptions::PLAIN)
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Workload::Creates => "creates, one directory",
            Workload::NewNames => "new names, one directory",
            Workload::OwnCreates => "creates, own directories",
            Workload::Renames => "renames, one directory",
            Workload::Directories => "mkdir and rmdir, one directory",
            Workload::Writes => "writes and reads of own files",
        }
    }

    fn calls_of_round(self) -> u64 {
        match self {
            Workload::Creates | Workload::NewNames | Workload::OwnCreates => 3,
            Workload::Renames => 1,
            Workload::Directories => 2,
            Workload::Writes => 2,
        }
    }

    fn prepare(self, domain: &SimulatedDomain<'_>, process: &Process, own: u16) -> Result<(), Errno> {
        match self {
            Workload::OwnCreates | Workload::Writes => {
                let path = format!("own-{own}");
                domain.call(process, |call| directories::make_directory(call, at(), path.as_bytes(), 0o755))?;
            }
            Workload::Renames => {
                let path = format!("name-{own}-0");
                domain.call(process, |call| open(call, &path).and_then(|fd| data::close(call, fd)))?;
            }
            Workload::Creates | Workload::NewNames | Workload::Directories => {}
        }
        if self == Workload::Writes {
            let path = format!("own-{own}/data");
            domain.call(process, |call| open(call, &path).map(|fd| assert_eq!(fd, 0)))?;
        }
        Ok(())
    }

    fn round(self, domain: &SimulatedDomain<'_>, process: &Process, own: u16, round: u64) -> Result<(), Errno> {
        match self {
            Workload::Creates | Workload::NewNames | Workload::OwnCreates => {
                let directory = if self == Workload::OwnCreates { format!("own-{own}/") } else { String::new() };
                let number = if self == Workload::NewNames { round } else { round % 16 };
                let path = format!("{directory}name-{own}-{number}");
                let fd = domain.call(process, |call| open(call, &path))?;
                domain.call(process, |call| data::close(call, fd))?;
                domain.call(process, |call| names::unlink(call, at(), path.as_bytes()))
            }
            Workload::Renames => {
                let [old, new] = [round, round + 1].map(|round| format!("name-{own}-{}", round % 16));
                domain.call(process, |call| {
                    names::rename(call, (at(), old.as_bytes()), (at(), new.as_bytes()), RenameMode::Replace)
                })
            }
            Workload::Directories => {
                let path = format!("directory-{own}-{}", round % 16);
                domain.call(process, |call| directories::make_directory(call, at(), path.as_bytes(), 0o755))?;
                domain.call(process, |call| directories::remove_directory(call, at(), path.as_bytes()))
            }
            Workload::Writes => {
                let offset = (round % 16 * 4096) as i64;
                domain.call(process, |call| data::write_at(call, 0, &[1; 4096], offset))?;
                domain.call(process, |call| data::read_at(call, 0, &mut [0; 4096], offset)).map(drop)
            }
        }
    }
}

/// Rounds before those that count, twice: a domain that owns the directory has made the first before others' changes split it.
/// Names come again after 16.
const WARM_ROUNDS: u64 = 32;

/// What a run has shown, per call.
struct Measured {
    ns_per_call: f64,
    round_trips: f64,
    messages: f64,
    /// What a domain's time went to, in nanoseconds: calls, serving, sending, receiving, looks in vain, lines, waiting.
    shares: [f64; 7],
}

/// Where all domains have come to a place of their programs, and when the last has.
#[derive(Clone, Copy, Default)]
struct Meeting {
    come: usize,
    last_ns: u64,
}

/// Waits until all have come.
fn meet(domain: &SimulatedDomain<'_>, meeting: &Cell<Meeting>, domain_count: usize) {
    let now_ns = || domain.transport().now_ns();
    let Meeting { come, last_ns } = meeting.get();
    meeting.set(Meeting { come: come + 1, last_ns: last_ns.max(now_ns()) });
    while meeting.get().come < domain_count || now_ns() < meeting.get().last_ns {
        if !domain.serve() {
            domain.transport().pause(1_000);
        }
    }
}

/// What was done and spent by one domain.
fn seen(domain: &SimulatedDomain<'_>) -> (messages::Counts, Spent) {
    (domain.counts(), domain.transport().network().spent(domain.own()))
}

fn measure(workload: Workload, setup: &Setup, rounds: u64) -> Result<Measured, String> {
    let meetings: Rc<[Cell<Meeting>; 4]> = Rc::default();
    let sums: Rc<Cell<[f64; 9]>> = Rc::default();
    let program = |own: usize| {
        let (meetings, sums, domain_count) = (Rc::clone(&meetings), Rc::clone(&sums), setup.domain_count);
        move |domain: &SimulatedDomain<'_>| {
            let process = Process::new(Credentials::SUPERUSER);
            if own == 0 {
                domain.call(&process, |call| attributes::change_mode(call, at(), b"/", 0o777)).unwrap();
            }
            workload.prepare(domain, &process, own as u16).unwrap();
            let make = |rounds: Range<u64>| {
                for round in rounds {
                    workload.round(domain, &process, own as u16, round).unwrap();
                }
            };
            meet(domain, &meetings[0], domain_count);
            make(0..WARM_ROUNDS);
            meet(domain, &meetings[1], domain_count);
            make(WARM_ROUNDS..2 * WARM_ROUNDS);
            meet(domain, &meetings[2], domain_count);
            let ((counts_before, before), began_ns) = (seen(domain), domain.transport().now_ns());
            make(2 * WARM_ROUNDS..2 * WARM_ROUNDS + rounds);
            let (counts, after) = seen(domain);
            let counts = counts.since(&counts_before);
            let elapsed_ns = domain.transport().now_ns() - began_ns;
            let shares: [fn(&Spent) -> u64; 6] = [
                |spent| spent.calls_ns,
                |spent| spent.served_ns,
                |spent| spent.send_ns,
                |spent| spent.receive_ns,
                |spent| spent.look_ns,
                |spent| spent.pool_ns,
            ];
            let mut all = sums.get();
            for (sum, share) in all.iter_mut().zip(shares) {
                *sum += (share(&after) - share(&before)) as f64;
            }
            all[6] += (elapsed_ns - (after.total_ns() - before.total_ns())) as f64;
            all[7] += counts.round_trips as f64;
            all[8] += counts.messages.iter().sum::<u64>() as f64;
            sums.set(all);
            meet(domain, &meetings[3], domain_count);
        }
    };
    simulate(setup, (0..setup.domain_count).map(program).collect()).map_err(|stall| stall.to_string())?;
    let calls = (rounds * workload.calls_of_round() * setup.domain_count as u64) as f64;
    let [all @ .., round_trips, messages] = sums.get().map(|sum| sum / calls);
    let (began, ended) = (meetings[2].get().last_ns, meetings[3].get().last_ns);
    Ok(Measured { ns_per_call: (ended - began) as f64 / calls, round_trips, messages, shares: all })
}

/// What is printed.
#[derive(Clone, Copy)]
enum What {
    Scale,
    Techniques,
}

fn run(machine: &str, domain_count: usize, rounds: u64, (what, workload): (What, &str)) -> Result<(), String> {
    let chosen: Vec<Workload> = WORKLOADS.into_iter().filter(|it| it.name().starts_with(workload)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = WORKLOADS.iter().map(|it| it.name()).collect();
        return Err(format!("workload {workload}: expected the beginning of one of {}", known.join("; ")));
    }
    let workloads = &chosen;
    let latencies = Latencies::of_machine(machine).map_err(|error| error.to_string())?;
    let setup =
        Setup { limits: Limits { split_after: 100, ..Limits::default() }, ..Setup::new(domain_count, latencies) };
    match what {
        What::Scale => scale(&setup, rounds, workloads),
        What::Techniques => worth(&setup, rounds, workloads),
    }
}

/// How each workload scales.
fn scale(setup: &Setup, rounds: u64, workloads: &[Workload]) -> Result<(), String> {
    println!(
        "{:32} {:>6} {:>8} {:>8} {:>10} {:>6} {:>6} {:>8} {:>6} | of a domain's ns: {:>6} {:>6} {:>6} {:>7} {:>6} {:>6} {:>7}",
        "workload",
        "ns, 1",
        "ns, all",
        "speed-up",
        "efficiency",
        "waits",
        "sends",
        "calls",
        "host s",
        "calls",
        "serve",
        "send",
        "receive",
        "look",
        "lines",
        "waiting"
    );
    for workload in workloads {
        let one = measure(*workload, &Setup { domain_count: 1, ..*setup }, rounds)?;
        let started = Instant::now();
        let all = measure(*workload, setup, rounds)?;
        let took = started.elapsed().as_secs_f64();
        let speed_up = one.ns_per_call / all.ns_per_call;
        let [calls, serve, send, receive, look, lines, waiting] = all.shares;
        println!(
            "{:32} {:6.0} {:8.1} {:8.1} {:10.2} {:6.2} {:6.2} {:8} {:6.1} | {:17} {calls:6.0} {serve:6.0} {send:6.0} \
             {receive:7.0} {look:6.0} {lines:6.0} {waiting:7.0}",
            workload.name(),
            one.ns_per_call,
            all.ns_per_call,
            speed_up,
            speed_up / setup.domain_count as f64,
            all.round_trips,
            all.messages,
            rounds * workload.calls_of_round() * setup.domain_count as u64,
            took,
            "",
        );
    }
    Ok(())
}

/// How much longer a call takes without each technique.
fn worth(setup: &Setup, rounds: u64, workloads: &[Workload]) -> Result<(), String> {
    println!(
        "{:32} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "without", "split", "caches", "affinity", "broadc.", "coalesc.", "lending"
    );
    let all = setup.techniques;
    let whole = Limits { split_above: usize::MAX, split_after: u64::MAX, ..setup.limits };
    for workload in workloads {
        let ns = |other: Setup| Ok::<_, String>(measure(*workload, &other, rounds)?.ns_per_call);
        let with = |techniques: Techniques| ns(Setup { techniques, ..*setup });
        let base = with(all)?;
        let far = Techniques { affinity: false, ..all };
        println!(
            "{:32} {:8.2} {:8.2} {:8.2} {:8.2} {:8.2} {:8.2}",
            workload.name(),
            ns(Setup { limits: whole, ..*setup })? / base,
            with(Techniques { caches: false, ..all })? / base,
            with(far)? / base,
            with(Techniques { broadcast: false, ..all })? / base,
            // With affinity there is little left to coalesce.
            with(Techniques { coalesced: false, ..far })? / with(far)?,
            with(Techniques { lending: false, ..all })? / base,
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &str, most: u64| text.parse().ok().filter(|number: &u64| (1..=most).contains(number));
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [what @ ("scale" | "techniques"), machine, domains, rounds, ref rest @ ..] if rest.len() < 2 => {
            let what = if what == "scale" { What::Scale } else { What::Techniques };
            match (number(domains, 256), number(rounds, 1_000_000)) {
                (Some(domains), Some(rounds)) => {
                    run(machine, domains as usize, rounds, (what, rest.first().copied().unwrap_or("")))
                }
                _ => Err(format!("expected 1 to 256 domains and 1 to 1000000 rounds, got {domains} and {rounds}")),
            }
        }
        _ => Err(format!(
            "expected scale or techniques, MACHINE, DOMAINS, ROUNDS and, if not all, a workload, got {:?}",
            arguments.join(" ")
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("simulated: {why}");
            ExitCode::from(2)
        }
    }
}
