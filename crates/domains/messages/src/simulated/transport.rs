//! A domain's end of a simulated network.

use std::rc::Rc;

use corosensei::Yielder;

use super::network::Network;
use crate::transport::{Class, DomainNumber, SendError, Step, Transport};

/// What other domains do while one waits that is no coroutine.
pub trait Served {
    /// Lets each domain but this one serve what has come.
    fn serve_others(&self, waiting: DomainNumber);
}

/// How a domain lets others go on.
#[derive(Clone)]
enum Others<'w> {
    /// It is a coroutine of [`super::simulate`], and hands over.
    Coroutines(&'w Yielder<(), ()>),
    /// It lets them serve itself.
    Served(Rc<dyn Served>),
}

/// A domain's end. Copies are the same end.
#[derive(Clone)]
pub struct Simulated<'w> {
    network: Rc<Network>,
    own: DomainNumber,
    others: Others<'w>,
}

impl<'w> Simulated<'w> {
    pub(super) fn of_coroutine(network: Rc<Network>, own: DomainNumber, yielder: &'w Yielder<(), ()>) -> Simulated<'w> {
        Simulated { network, own, others: Others::Coroutines(yielder) }
    }

    /// The network.
    pub fn network(&self) -> &Rc<Network> {
        &self.network
    }

    /// Says that this domain's program has ended. It goes on serving while [`Simulated::has_programs`].
    pub fn end_program(&self) {
        self.network.end_program();
    }

    /// Whether some domain's program has not ended.
    pub fn has_programs(&self) -> bool {
        self.network.has_programs()
    }

    /// Hands over until no other domain has an earlier clock.
    fn look(&self) {
        let Others::Coroutines(yielder) = self.others else { return };
        self.network.pause_at_random(self.own);
        while !self.network.is_earliest(self.own) {
            self.network.make_ready(self.own);
            yielder.suspend(());
        }
        self.network.note_look(self.own);
    }
}

impl Simulated<'static> {
    /// The end of a domain that is no coroutine: whenever it waits, it lets others serve.
    pub fn outside(network: Rc<Network>, own: DomainNumber, others: Rc<dyn Served>) -> Simulated<'static> {
        Simulated { network, own, others: Others::Served(others) }
    }
}

impl Transport for Simulated<'_> {
    fn own(&self) -> DomainNumber {
        self.own
    }

    fn domain_count(&self) -> usize {
        self.network.domain_count()
    }

    fn ring_lines(&self, class: Class) -> usize {
        self.network.ring_lines(class)
    }

    fn free_lines(&self, to: DomainNumber, class: Class) -> usize {
        self.network.free_lines((self.own, to), class)
    }

    fn send(&self, to: DomainNumber, class: Class, message: &[u8]) -> Result<(), SendError> {
        self.network.send((self.own, to), class, self.lines_of(message.len()), message)
    }

    fn receive_from(&self, from: DomainNumber, class: Class, message: &mut Vec<u8>) -> bool {
        message.clear();
        self.look();
        if matches!(self.others, Others::Served(_)) {
            self.network.go_to(self.own, self.network.latest_ns());
        }
        self.network.take_from(self.own, from, class, message)
    }

    fn receive(&self, classes: &[Class], message: &mut Vec<u8>) -> Option<(Class, DomainNumber)> {
        message.clear();
        self.look();
        if matches!(self.others, Others::Served(_)) {
            self.network.go_to(self.own, self.network.latest_ns());
        }
        self.network.take(self.own, classes, message)
    }

    fn wait(&self) {
        match &self.others {
            Others::Served(others) => others.serve_others(self.own),
            Others::Coroutines(yielder) => {
                self.look();
                match self.network.next_message_ns(self.own) {
                    Some(visible_ns) => {
                        self.network.go_to(self.own, visible_ns);
                        self.look();
                    }
                    None if !self.has_programs() => {}
                    None => {
                        self.network.fall_asleep(self.own);
                        yielder.suspend(());
                    }
                }
            }
        }
    }

    fn pause(&self, nanoseconds: u64) {
        // At least one, so that two that pause for each other do not stand still.
        self.network.go_to(self.own, self.network.clock_ns(self.own) + nanoseconds.max(1));
        match &self.others {
            Others::Served(others) => others.serve_others(self.own),
            Others::Coroutines(_) => self.look(),
        }
    }

    fn observe(&self) {
        self.look();
    }

    fn spend(&self, step: Step) {
        self.network.spend_step(self.own, step);
    }

    fn now_ns(&self) -> u64 {
        self.network.clock_ns(self.own)
    }
}
