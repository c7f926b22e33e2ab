//! All domains in one thread, without coroutines: who waits lets the others serve. For programs that make one call at a time.

use std::cell::OnceCell;
use std::rc::{Rc, Weak};

use messages::DomainNumber;
use messages::simulated::{Disorder, Latencies, Network, RingSizes, Served, Simulated};

use crate::client::Domain;
use crate::decisions::{Decisions, OwnLines};
use crate::server::Limits;

/// A domain of [`OneThread`].
pub type OfOneThread = Domain<Simulated<'static>>;

/// The domains, for those among them that wait.
#[derive(Default)]
struct Others {
    domains: OnceCell<Vec<Weak<OfOneThread>>>,
}

impl Served for Others {
    fn serve_others(&self, waiting: DomainNumber) {
        let domains = self.domains.get().map_or(&[][..], Vec::as_slice);
        for domain in domains.iter().filter_map(Weak::upgrade).filter(|domain| domain.own() != waiting) {
            while domain.serve() {}
        }
    }
}

/// A file system of some domains, of which one thread plays all.
pub struct OneThread {
    domains: Vec<Rc<OfOneThread>>,
}

impl OneThread {
    /// An empty file system whose root belongs to user 0; `clock` tells nanoseconds since 1970.
    ///
    /// # Panics
    /// Unless there are 1 to 256 domains.
    #[must_use]
    pub fn new(domain_count: usize, limits: Limits, clock: fn() -> u64) -> OneThread {
        OneThread::with_rings(domain_count, RingSizes::default(), limits, clock)
    }

    /// The same, with rings of other sizes.
    ///
    /// # Panics
    /// Unless there are 1 to 256 domains.
    #[must_use]
    pub fn with_rings(domain_count: usize, rings: RingSizes, limits: Limits, clock: fn() -> u64) -> OneThread {
        let decisions = Rc::new(OwnLines::new(domain_count));
        OneThread::with_decisions(
            (0..domain_count).map(|_| decisions.clone() as Rc<dyn Decisions>),
            rings,
            limits,
            clock,
        )
    }

    /// The same, with the lines of decisions as each domain sees them.
    ///
    /// # Panics
    /// Unless there are 1 to 256 domains.
    #[must_use]
    pub fn with_decisions(
        decisions: impl ExactSizeIterator<Item = Rc<dyn Decisions>>,
        rings: RingSizes,
        limits: Limits,
        clock: fn() -> u64,
    ) -> OneThread {
        let domain_count = decisions.len();
        let network = Rc::new(Network::new(domain_count, Latencies::NONE, rings, Disorder::default()));
        let others = Rc::new(Others::default());
        let domain = |(number, decisions)| {
            let end = Simulated::outside(Rc::clone(&network), DomainNumber(number as u16), others.clone());
            Rc::new(Domain::new(end, decisions, clock, limits))
        };
        let domains: Vec<_> = decisions.enumerate().map(domain).collect();
        let _ = others.domains.set(domains.iter().map(Rc::downgrade).collect());
        OneThread { domains }
    }

    /// A domain.
    ///
    /// # Panics
    /// If there is none of this number.
    #[must_use]
    pub fn domain(&self, number: usize) -> Rc<OfOneThread> {
        Rc::clone(&self.domains[number])
    }

    /// Lets all domains serve until no message is left.
    pub fn settle(&self) {
        while self.domains.iter().any(|domain| domain.serve()) {}
    }
}
