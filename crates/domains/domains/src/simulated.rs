//! Domains as coroutines in virtual time, each with a program: for tests of what happens when, and for figures of machines that
//! are not at hand.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use messages::simulated::{Disorder, Latencies, Network, RingSizes, Simulated, Stall};
use messages::{Counts, DomainNumber, Step, Transport};

use crate::client::{Domain, Techniques};
use crate::decisions::{Decisions, LINES};
use crate::level::Level;
use crate::server::Limits;
use crate::shared_pages::{Lines, OwnPages, SharedPage, SharedPages, lines_at};
use crate::wire::OperationNumber;

/// A domain of a simulation.
pub type SimulatedDomain<'w> = Domain<Simulated<'w>>;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// 1 to 256.
    pub domain_count: usize,
    /// How long steps take.
    pub latencies: Latencies,
    /// Lines of the rings.
    pub rings: RingSizes,
    /// What makes one schedule of another.
    pub disorder: Disorder,
    /// Of each domain.
    pub limits: Limits,
    /// Which techniques calls use.
    pub techniques: Techniques,
    /// What others see of data, and when.
    pub level: Level,
    /// Pages of each domain in memory that all share, for direct access to data. With none, data travel in messages.
    pub pages_per_domain: u32,
}

impl Setup {
    /// This many domains of a machine, with what is usual: rings, limits, all techniques, level `posix`, no disorder,
    /// no shared pages.
    #[must_use]
    pub fn new(domain_count: usize, latencies: Latencies) -> Setup {
        Setup {
            domain_count,
            latencies,
            rings: RingSizes::default(),
            disorder: Disorder::default(),
            limits: Limits::default(),
            techniques: Techniques::default(),
            level: Level::default(),
            pages_per_domain: 0,
        }
    }
}

/// What a simulation has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// When the last program ended, in virtual nanoseconds.
    pub ended_ns: u64,
    /// What each domain has sent and waited for.
    pub counts: Vec<Counts>,
}

/// Lines of decisions as they are at a time: what another domain has written is seen from when it had written it.
#[derive(Debug)]
struct DecisionLines {
    network: Rc<Network>,
    /// The number that stands on each, and since when.
    lines: Vec<Cell<(u64, u64)>>,
}

/// The lines as one domain sees them.
#[derive(Debug)]
struct LinesOf {
    lines: Rc<DecisionLines>,
    own: DomainNumber,
}

impl LinesOf {
    fn line(&self, operation: OperationNumber) -> Option<&Cell<(u64, u64)>> {
        let place = operation.coordinator.index() * usize::from(LINES) + usize::from(operation.line);
        (operation.line < LINES).then(|| self.lines.lines.get(place))?
    }
}

impl Decisions for LinesOf {
    fn commit(&self, operation: OperationNumber) -> bool {
        let now_ns = self.lines.network.clock_ns(self.own);
        self.line(operation).inspect(|line| line.set((operation.number, now_ns))).is_some()
    }

    fn is_committed(&self, operation: OperationNumber) -> bool {
        let now_ns = self.lines.network.looked_ns(self.own);
        self.line(operation).map(Cell::get).is_some_and(|(number, at_ns)| number == operation.number && at_ns <= now_ns)
    }
}

/// Shared pages as one domain sees them. What a page holds stays as it is while others may read it, so only the time that lines
/// take is simulated, and which of them the domain's caches hold.
#[derive(Debug)]
struct PagesOf {
    network: Rc<Network>,
    own: DomainNumber,
    pages: Rc<OwnPages>,
    cached: RefCell<HashMap<SharedPage, Lines>>,
}

impl PagesOf {
    fn spend(&self, step: Step) {
        self.network.spend_step(self.own, step);
    }
}

impl SharedPages for PagesOf {
    fn pages_per_domain(&self) -> u32 {
        self.pages.pages_per_domain()
    }

    fn write(&self, page: SharedPage, start: usize, bytes: &[u8]) -> bool {
        self.pages.write(page, start, bytes)
    }

    fn write_back(&self, page: SharedPage, start: usize, length: usize) -> bool {
        self.spend(Step::DataWrite(lines_at(start, length).count_ones()));
        self.pages.write_back(page, start, length)
    }

    fn drain(&self) -> bool {
        self.spend(Step::Drain);
        self.pages.drain()
    }

    fn invalidate(&self, page: SharedPage, start: usize, length: usize) -> bool {
        *self.cached.borrow_mut().entry(page).or_default() &= !lines_at(start, length);
        self.pages.invalidate(page, start, length)
    }

    fn read(&self, page: SharedPage, start: usize, into: &mut [u8]) -> bool {
        let wanted = lines_at(start, into.len());
        let mut cached = self.cached.borrow_mut();
        let cached = cached.entry(page).or_default();
        let missed = wanted & !*cached;
        *cached |= wanted;
        self.spend(Step::DataRead(missed.count_ones()));
        self.pages.read(page, start, into)
    }
}

/// Runs a program in each domain, on an empty file system whose root belongs to user 0. Domains serve until all programs have
/// ended.
///
/// # Errors
/// [`Stall`]: no program goes on.
///
/// # Panics
/// Unless each domain has a program; if one panics.
pub fn simulate<P>(setup: &Setup, programs: Vec<P>) -> Result<Finished, Stall>
where
    P: FnOnce(&SimulatedDomain<'_>) + 'static,
{
    let Setup { domain_count, latencies, rings, disorder, limits, techniques, level, pages_per_domain } = *setup;
    let network = Rc::new(Network::new(domain_count, latencies, rings, disorder));
    let lines = vec![Cell::new((0, 0)); domain_count * usize::from(LINES)];
    let lines = Rc::new(DecisionLines { network: Rc::clone(&network), lines });
    let pages = Rc::new(OwnPages::new(domain_count, pages_per_domain));
    let finished = Rc::new(RefCell::new(Finished { ended_ns: 0, counts: vec![Counts::default(); domain_count] }));
    let life = |program: P| {
        let (network, lines, finished) = (Rc::clone(&network), Rc::clone(&lines), Rc::clone(&finished));
        let pages = (pages_per_domain > 0).then(|| Rc::clone(&pages));
        move |transport: Simulated<'_>| {
            let own = transport.own();
            let domain = Domain::new(transport, Rc::new(LinesOf { lines, own }), || 0, limits);
            domain.use_techniques(techniques);
            domain.use_level(level);
            if let Some(pages) = pages {
                domain.use_pages(Rc::new(PagesOf { network, own, pages, cached: RefCell::default() }));
            }
            program(&domain);
            let ended_ns = domain.transport().now_ns();
            domain.transport().end_program();
            while domain.transport().has_programs() {
                if !domain.serve() {
                    domain.transport().wait();
                }
            }
            let mut finished = finished.borrow_mut();
            finished.ended_ns = finished.ended_ns.max(ended_ns);
            finished.counts[own.index()] = domain.counts();
        }
    };
    messages::simulated::simulate(&network, programs.into_iter().map(life).collect())?;
    let finished = finished.borrow().clone();
    Ok(finished)
}
