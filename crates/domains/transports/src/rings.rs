//! Messages over rings in a pool: for each pair of domains and each class one, of lines that validate themselves.
//!
//! **Room.** A ring has twice the lines that it is said to have. The receiver says what it has taken each half of the ring,
//! so what it has not said never takes the place of what was reserved. And if a sender finds no place at all, more than half of the lines
//! are really there, so that its newest message is unread: of notices, this is "forget all".
//!
//! **Memory that fails** (a file that was made shorter, a damaged line) ends the rings: nothing is sent or received any more, and
//! [`Rings::error`] says why.

use std::cell::{Cell, RefCell};

use messages::{CLASSES, Class, DomainNumber, SendError, Transport};
use pool::Memory;
use pool::ring::{Layout, PAYLOAD_BYTES, Receiver, RingError, Sender};
use sync::mutant::planted;

use crate::clock::Clock;

/// Where the rings of all domains lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Offset of the first one, at the beginning of a line.
    pub at: usize,
    /// Domains.
    pub domain_count: usize,
    /// Lines of each ring, by class.
    pub ring_lines: [usize; CLASSES.len()],
    /// A number of this use of the memory: what an earlier one has left is not valid.
    pub salt: u32,
    /// As of [`Layout::patience`].
    pub patience: u32,
}

impl Plan {
    /// Lines that a ring really has.
    fn lines_below(&self, class: Class) -> usize {
        let times = if planted("transports: a ring has only the lines that it is said to have") { 1 } else { 2 };
        times * self.ring_lines[class as usize]
    }

    fn bytes_of_pair(&self) -> usize {
        CLASSES.iter().map(|class| Layout::bytes(self.lines_below(*class))).sum()
    }

    /// Bytes of all rings. They must be zero, or of another salt.
    pub fn bytes(&self) -> usize {
        self.domain_count * self.domain_count * self.bytes_of_pair()
    }

    fn ring(&self, from: usize, to: usize, class: Class) -> Layout {
        let pair = from * self.domain_count + to;
        let before =
            CLASSES[..class as usize].iter().map(|class| Layout::bytes(self.lines_below(*class))).sum::<usize>();
        Layout {
            at: self.at + pair * self.bytes_of_pair() + before,
            line_count: self.lines_below(class),
            salt: self.salt.wrapping_add((pair * CLASSES.len() + class as usize) as u32),
            sender: from,
            receiver: to,
            patience: self.patience,
        }
    }
}

/// The rings between a domain and another one.
#[derive(Debug)]
struct Peer<M> {
    senders: [RefCell<Sender<M>>; CLASSES.len()],
    receivers: [RefCell<Receiver<M>>; CLASSES.len()],
}

/// A domain's end of all rings.
#[derive(Debug)]
pub struct Rings<M> {
    memory: M,
    own: usize,
    plan: Plan,
    /// By domain; none for its own number.
    peers: Vec<Option<Peer<M>>>,
    /// By class: the domain that is looked at first.
    turns: [Cell<usize>; CLASSES.len()],
    clock: Clock,
    error: Cell<Option<RingError>>,
}

impl<M: Memory + Clone> Rings<M> {
    /// The end of domain `own`, over rings that were not used before.
    ///
    /// # Errors
    /// Impossible rings, and memory that is too small.
    pub fn new(memory: &M, plan: Plan, own: DomainNumber) -> Result<Rings<M>, RingError> {
        let own = own.index();
        let mut peers = Vec::new();
        for other in 0..plan.domain_count {
            if other == own {
                peers.push(None);
                continue;
            }
            let [a, b, c, d] = CLASSES.map(|class| Sender::new(memory.clone(), plan.ring(own, other, class)));
            let senders = [a?, b?, c?, d?].map(RefCell::new);
            let [a, b, c, d] = CLASSES.map(|class| Receiver::new(memory.clone(), plan.ring(other, own, class)));
            let receivers = [a?, b?, c?, d?].map(RefCell::new);
            peers.push(Some(Peer { senders, receivers }));
        }
        let (turns, clock) = (Default::default(), Clock::default());
        Ok(Rings { memory: memory.clone(), own, plan, peers, turns, clock, error: Cell::new(None) })
    }
}

impl<M: Memory> Rings<M> {
    /// Why nothing goes any more, if that is so.
    pub fn error(&self) -> Option<RingError> {
        self.error.get()
    }

    /// Says that all domains run on this thread, and take turns inside of their accesses: waiting never sleeps.
    pub fn share_thread(&self) {
        self.clock.share();
    }

    fn peer(&self, number: DomainNumber) -> Option<&Peer<M>> {
        if self.error.get().is_some() { None } else { self.peers.get(number.index())?.as_ref() }
    }

    fn keep<T>(&self, outcome: Result<T, RingError>) -> Option<T> {
        outcome.inspect_err(|error| self.error.set(Some(*error))).ok()
    }
}

impl<M: Memory> Transport for Rings<M> {
    fn own(&self) -> DomainNumber {
        DomainNumber(self.own as u16)
    }

    fn domain_count(&self) -> usize {
        self.plan.domain_count
    }

    fn lines_of(&self, message_bytes: usize) -> usize {
        message_bytes.div_ceil(PAYLOAD_BYTES).max(1)
    }

    fn ring_lines(&self, class: Class) -> usize {
        self.plan.ring_lines[class as usize]
    }

    fn free_lines(&self, to: DomainNumber, class: Class) -> usize {
        let Some(peer) = self.peer(to) else { return 0 };
        let free = peer.senders[class as usize].borrow_mut().free_lines();
        self.keep(free).unwrap_or(0) as usize
    }

    fn send(&self, to: DomainNumber, class: Class, message: &[u8]) -> Result<(), SendError> {
        let peer = self.peer(to).ok_or(SendError::Full)?;
        match peer.senders[class as usize].borrow_mut().send(message) {
            Ok(()) => Ok(()),
            Err(RingError::TooLong { .. }) => Err(SendError::TooLong),
            Err(RingError::Full) => Err(SendError::Full),
            Err(error) => {
                self.error.set(Some(error));
                Err(SendError::Full)
            }
        }
    }

    fn receive_from(&self, from: DomainNumber, class: Class, message: &mut Vec<u8>) -> bool {
        message.clear();
        let Some(peer) = self.peer(from) else { return false };
        let mut receiver = peer.receivers[class as usize].borrow_mut();
        let limit = receiver.layout().longest_message_bytes();
        // Most looks find nothing, so no room is made before something is there.
        let received = receiver.receive_parts(limit, |part| message.extend_from_slice(part));
        let has_come = self.keep(received).flatten().is_some();
        if has_come {
            self.clock.has_come();
        } else {
            message.clear();
        }
        has_come
    }

    fn receive(&self, classes: &[Class], message: &mut Vec<u8>) -> Option<(Class, DomainNumber)> {
        let count = self.plan.domain_count;
        for class in classes {
            let turn = &self.turns[*class as usize];
            for step in 0..count {
                let from = DomainNumber(((turn.get() + step) % count) as u16);
                if self.receive_from(from, *class, message) {
                    turn.set((from.index() + 1) % count);
                    return Some((*class, from));
                }
            }
        }
        None
    }

    fn has_ended(&self) -> bool {
        self.error.get().is_some()
    }

    fn has_left(&self, domain: DomainNumber) -> bool {
        self.memory.has_left(domain.index())
    }

    fn wait(&self) {
        self.clock.wait();
    }

    fn pause(&self, nanoseconds: u64) {
        self.clock.pause(nanoseconds);
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }
}
