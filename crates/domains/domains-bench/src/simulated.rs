//! The benchmarks on simulated machines: every domain runs a program and serves the others, in virtual time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use domains::simulated::{Setup, SimulatedDomain, simulate};
use domains::{Level, Limits};
use messages::Transport;
use messages::simulated::Latencies;

use crate::benchmarks::{ALL, Benchmark};
use crate::client::{Client, ROOT};
use crate::effort::Effort;
use crate::over_domains::OverDomains;
use crate::row::{Row, say};
use crate::system::{How, System};

/// Where programs wait for each other.
#[derive(Default)]
struct Meeting {
    come: Cell<usize>,
    number: Cell<u64>,
    /// When the last of those that have come did, and when the last of the meeting before had.
    latest_ns: Cell<u64>,
    ended_ns: Cell<u64>,
}

impl Meeting {
    /// Serves until all programs have come.
    fn meet(&self, domain: &SimulatedDomain<'_>, count: usize) {
        let now_ns = || domain.transport().now_ns();
        self.latest_ns.set(self.latest_ns.get().max(now_ns()));
        self.come.set(self.come.get() + 1);
        let number = self.number.get();
        if self.come.get() == count {
            self.come.set(0);
            self.number.set(number + 1);
            self.ended_ns.set(self.latest_ns.replace(0));
        }
        while self.number.get() == number || now_ns() < self.ended_ns.get() {
            if !domain.serve() {
                domain.transport().pause(1_000);
            }
        }
    }
}

/// What a run has come to: all calls, virtual time, and what all domains have sent and waited for.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    calls: u64,
    began_ns: u64,
    ended_ns: u64,
    messages: u64,
    waits: u64,
}

impl Outcome {
    fn ns_per_call(&self) -> f64 {
        (self.ended_ns - self.began_ns) as f64 / self.calls as f64
    }
}

/// What programs do: what one makes for all, and what each does and is measured.
trait Work: Clone + 'static {
    fn prepare<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno>;
    /// What each makes for itself, or does to fill caches.
    fn warm<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno>;
    fn run<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno>;
}

impl Work for Benchmark {
    fn prepare<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno> {
        Benchmark::prepare(*self, client)
    }

    fn warm<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno> {
        self.prepare_own(client)
    }

    fn run<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno> {
        Benchmark::run(*self, client)
    }
}

fn simulate_work<W: Work>(work: W, setup: &Setup, percent: usize) -> Result<Outcome, String> {
    let meeting: Rc<Meeting> = Rc::default();
    let outcome: Rc<RefCell<Outcome>> = Rc::default();
    let count = setup.domain_count;
    let program = |own: usize| {
        let (meeting, outcome, work) = (Rc::clone(&meeting), Rc::clone(&outcome), work.clone());
        move |domain: &SimulatedDomain<'_>| {
            let meet = || meeting.meet(domain, count);
            let system = OverDomains::new(domain);
            let client = || Client::new(&system, (own, count), percent, ROOT, &meet);
            // A call that fails is an error of this program: there is no one to tell, so it ends.
            if own == 0 {
                work.prepare(&client()).expect("what is there before can be made");
            }
            meet();
            work.warm(&client()).expect("the calls that fill caches succeed");
            meet();
            let (before, began_ns) = (domain.counts(), domain.transport().now_ns());
            let client = client();
            work.run(&client).expect("the calls of a benchmark succeed");
            let counts = domain.counts().since(&before);
            let mut outcome = outcome.borrow_mut();
            outcome.calls += client.calls().iter().sum::<u64>();
            outcome.began_ns = if own == 0 { began_ns } else { outcome.began_ns.max(began_ns) };
            outcome.ended_ns = outcome.ended_ns.max(domain.transport().now_ns());
            outcome.messages += counts.messages.iter().sum::<u64>();
            outcome.waits += counts.round_trips;
        }
    };
    simulate(setup, (0..count).map(program).collect()).map_err(|stall| stall.to_string())?;
    let outcome = *outcome.borrow();
    Ok(outcome)
}

/// Runs are short: directories split after a tenth of the usual number of changes.
const LIMITS: Limits = Limits { inodes: u64::MAX, pages: u64::MAX, split_above: 256, split_after: 100 };

fn setup(machine: &str, domain_count: usize) -> Result<Setup, String> {
    let latencies = Latencies::of_machine(machine).map_err(|error| error.to_string())?;
    Ok(Setup { limits: LIMITS, ..Setup::new(domain_count, latencies) })
}

/// Of each domain: more than any benchmark has open in others.
const SHARED_PAGES: u32 = 2048;

/// Hare's machine, and its level: data are read and written where they lie from open to close.
fn setup_of_hare(domain_count: usize) -> Result<Setup, String> {
    Ok(Setup { level: Level::CloseToOpen, pages_per_domain: SHARED_PAGES, ..setup("hare", domain_count)? })
}

/// Sizes of the benchmarks on many domains, of those on two.
fn percent(effort: Effort) -> usize {
    if effort == Effort::Full { 20 } else { 1 }
}

fn domains_of_hare(effort: Effort) -> usize {
    if effort == Effort::Full { 40 } else { 3 }
}

type Technique = (&'static str, fn(&mut Setup));

/// Each left out: Hare's five, and two of ours.
const TECHNIQUES: [Technique; 7] = [
    ("distribution", |setup| {
        setup.limits = Limits { split_above: usize::MAX, split_after: u64::MAX, ..setup.limits };
    }),
    ("broadcast", |setup| setup.techniques.broadcast = false),
    ("direct access", |setup| setup.techniques.direct = false),
    ("caches", |setup| setup.techniques.caches = false),
    ("affinity", |setup| setup.techniques.affinity = false),
    ("lending", |setup| setup.techniques.lending = false),
    // Then every read and write of another's file is a message.
    ("close-to-open", |setup| setup.level = Level::Posix),
];

/// What a benchmark shows at Hare's number of cores: its speed-up, and what each technique is worth there.
fn rows_of_hare(benchmark: Benchmark, effort: Effort) -> Result<Vec<Row>, String> {
    let (percent, domain_count) = (percent(effort), domains_of_hare(effort));
    let explained = |what: String| format!("{}: {what}", benchmark.name());
    let one = simulate_work(benchmark, &setup_of_hare(1)?, percent).map_err(explained)?;
    let usual = setup_of_hare(domain_count)?;
    let all = simulate_work(benchmark, &usual, percent).map_err(explained)?;
    let scale = Row::new("scale")
        .text("benchmark", benchmark.name())
        .number("domains", domain_count as f64)
        .number("calls", all.calls as f64)
        .number("ns_one", one.ns_per_call())
        .number("ns_all", all.ns_per_call())
        .number("speed_up", one.ns_per_call() / all.ns_per_call())
        .number("messages", all.messages as f64 / all.calls as f64)
        .number("waits", all.waits as f64 / all.calls as f64);
    let techniques = TECHNIQUES.into_iter().map(|(technique, leave_out)| {
        let mut without = usual;
        leave_out(&mut without);
        let other =
            simulate_work(benchmark, &without, percent).map_err(|what| explained(format!("no {technique}: {what}")))?;
        Ok(Row::new("technique")
            .text("benchmark", benchmark.name())
            .text("technique", technique)
            .number("domains", domain_count as f64)
            .number("gain", other.ns_per_call() / all.ns_per_call()))
    });
    std::iter::once(Ok(scale)).chain(techniques).collect()
}

/// The rows of all benchmarks. Virtual time does not depend on what else runs, so as many are simulated at a time as there are
/// processors.
pub fn measure_hare(effort: Effort) -> Result<(), String> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut found = Vec::new();
        while let Some(benchmark) = ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.push((benchmark.name(), rows_of_hare(*benchmark, effort)));
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            say(&format!("simulated {}, {done} of {}", benchmark.name(), ALL.len()));
        }
        found
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found: HashMap<_, _> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    for benchmark in ALL {
        let rows = found.remove(benchmark.name()).ok_or_else(|| format!("{}: has panicked", benchmark.name()))?;
        rows?.into_iter().for_each(Row::print);
    }
    Ok(())
}

/// Creations in one directory or in one of each program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Creations {
    /// Names come again after 16.
    OneDirectory,
    /// The same where each program is already: its paths lead through no other directory.
    WorkingDirectory,
    /// No name comes again.
    OneDirectoryNew,
    OwnDirectories,
}

impl Creations {
    fn name(self) -> &'static str {
        match self {
            Creations::OneDirectory => "creates, one directory",
            Creations::WorkingDirectory => "creates, working directory",
            Creations::OneDirectoryNew => "creates, one directory, new names",
            Creations::OwnDirectories => "creates, own directories",
        }
    }

    /// What caches hold when the time begins.
    fn warm_state(self) -> &'static str {
        match self {
            Creations::OneDirectoryNew => "the path to the directory; no name that is made",
            _ => "the path to the directory, and all names",
        }
    }

    fn make<S: System>(
        self,
        client: &Client<'_, S>,
        numbers: std::ops::Range<usize>,
    ) -> Result<(), posix_calls::Errno> {
        let directory = match self {
            Creations::OwnDirectories => client.path(&format!("own{}", client.own)),
            Creations::WorkingDirectory => client.base.clone(),
            _ => client.path("d"),
        };
        for number in numbers {
            let number = if self == Creations::OneDirectoryNew { number } else { number % 16 };
            let path = format!("{directory}/p{}.{number}", client.own);
            let fd = client.open(&path, How::Create)?;
            client.close(fd)?;
            client.unlink(&path)?;
        }
        Ok(())
    }
}

/// Rounds that fill caches, in two parts: a domain that owns the directory has made the first before others' changes split it.
/// Names come again after 16.
const WARM_ROUNDS: usize = 64;

impl Work for Creations {
    fn prepare<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno> {
        client.make_directory(&client.path("d"))
    }

    fn warm<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno> {
        if *self == Creations::OwnDirectories {
            client.make_directory(&client.path(&format!("own{}", client.own)))?;
        }
        for rounds in [0..WARM_ROUNDS / 2, WARM_ROUNDS / 2..WARM_ROUNDS] {
            client.meet();
            self.make(client, rounds)?;
        }
        Ok(())
    }

    fn run<S: System>(&self, client: &Client<'_, S>) -> Result<(), posix_calls::Errno> {
        self.make(client, WARM_ROUNDS..WARM_ROUNDS + client.times(1000))
    }
}

/// Efficiency of as many hosts as can be, over a CXL pool whose lines are read in 300 ns.
pub fn measure_cxl(effort: Effort) -> Result<(), String> {
    let (percent, domain_count) = if effort == Effort::Full { (20, 256) } else { (1, 4) };
    for creations in
        [Creations::OwnDirectories, Creations::WorkingDirectory, Creations::OneDirectory, Creations::OneDirectoryNew]
    {
        let explained = |what: String| format!("{}: {what}", creations.name());
        let one = simulate_work(creations, &setup("cxl", 1)?, percent).map_err(explained)?;
        let start = Instant::now();
        let all = simulate_work(creations, &setup("cxl", domain_count)?, percent).map_err(explained)?;
        Row::new("cxl")
            .text("workload", creations.name())
            .text("warm", creations.warm_state())
            .number("domains", domain_count as f64)
            .number("calls", all.calls as f64)
            .number("efficiency", one.ns_per_call() / all.ns_per_call() / domain_count as f64)
            .number("waits", all.waits as f64 / all.calls as f64)
            .number("seconds_of_million", start.elapsed().as_secs_f64() * 1e6 / all.calls as f64)
            .print();
        say(&format!("simulated {}", creations.name()));
    }
    Ok(())
}
