//! Waits that take long: what for is said, and whether that has ended is looked at.
//!
//! **Idea.** A domain that waits asks again and again, so the beginning of a wait costs nothing here. Every few of them
//! it looks at the clock. Once it has waited for long it asks who is in the way, and says that. If that domain is known
//! to have ended ([`Transport::has_left`]), what it had begun is brought to an end where it is in the way, and no
//! answer of it is waited for.

use messages::{DomainNumber, Ticket, Transport};

use super::domain::Domain;
use super::waits::{Awaited, Wait, Waiting};
use crate::wire::{Reply, Request};

impl<T: Transport> Domain<T> {
    /// Lets `say` hear of each wait that lasts that long, and again whenever it has lasted twice as long; without this, a line on standard
    /// error has what lasts a second.
    pub fn watch_waits(&self, long_ns: u64, say: impl Fn(&Waiting) + 'static) {
        self.watch.set(long_ns, say);
    }

    /// A domain has ended, and sends nothing any more: what it had begun is brought to an end, shared pages that were kept for it are
    /// free, and calls that need it fail with EIO. Domains that see in their waits that it has ended need not hear of it.
    pub fn note_end_of(&self, ended: DomainNumber) {
        if ended == self.own() || !self.ended.borrow_mut().insert(ended) {
            return;
        }
        // What it had sent comes first, and nothing else: others may go on calling.
        while self.serve_from(ended) {}
        self.with_server(|server| server.note_end_of(ended));
        self.cache.borrow_mut().forget_all_of(ended);
    }

    /// Whether a domain is known to have ended.
    pub(super) fn has_noted_end_of(&self, domain: DomainNumber) -> bool {
        self.ended.borrow().contains(&domain)
    }

    /// Whether an answer that has not come never will.
    pub(super) fn is_in_vain(&self, ticket: Ticket) -> bool {
        let of = self.endpoint.answerer(ticket);
        self.transport().has_ended() || of.is_some_and(|of| self.has_noted_end_of(of))
    }

    /// Where a domain that has ended was in the way of the asker's last request that was refused as busy, it is no more.
    pub(super) fn look_after_obstacle_of(&self, asker: DomainNumber) {
        let obstacle = self.server.borrow().obstacle_of(asker);
        obstacle.and_then(|obstacle| obstacle.by()).into_iter().for_each(|by| self.look_after(by));
    }

    /// Brings what a domain had begun to an end, if it has left.
    pub(super) fn look_after(&self, domain: DomainNumber) {
        if domain != self.own() && self.transport().has_left(domain) {
            self.note_end_of(domain);
        }
    }

    /// An answer has not come.
    pub(super) fn wait_longer(&self, wait: &mut Wait, ticket: Ticket) {
        if let Some(of) = self.endpoint.answerer(ticket) {
            self.note_wait(wait, || Some(Awaited::Answer { of }));
        }
        self.go_on();
    }

    /// There is no room for a message, or for its answer.
    pub(super) fn wait_for_room(&self, wait: &mut Wait, to: DomainNumber) {
        if wait.is_new() {
            self.endpoint.count_held_back();
        }
        self.note_wait(wait, || Some(Awaited::Room { to }));
        self.go_on();
    }

    /// An owner was busy.
    pub(super) fn pause_at(&self, wait: &mut Wait, at: DomainNumber) {
        self.note_wait(wait, || {
            if at == self.own() {
                self.look_after_obstacle_of(at);
            }
            match self.ask(at, Request::InTheWay {}) {
                Reply::InTheWay { obstacle: Some(obstacle) } => Some(Awaited::Obstacle { at, obstacle }),
                // It has just gone out of the way.
                _ => None,
            }
        });
        self.pause();
    }

    fn note_wait(&self, wait: &mut Wait, awaited: impl FnOnce() -> Option<Awaited>) {
        let Some(waited_ns) = wait.lasted(|| self.transport().now_ns(), &self.watch) else { return };
        let Some(awaited) = awaited() else { return };
        awaited.by().into_iter().for_each(|by| self.look_after(by));
        let is_in_vain = match &awaited {
            Awaited::Answer { of: by } | Awaited::Room { to: by } => self.has_noted_end_of(*by),
            Awaited::Obstacle { .. } => false,
        };
        if !is_in_vain {
            self.watch.say(&Waiting { domain: self.own(), waited_ns, awaited });
        }
    }
}
