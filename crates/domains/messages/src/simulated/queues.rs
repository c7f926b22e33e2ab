//! The rings to one domain, as queues.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::transport::{CLASSES, Class, DomainNumber};

#[derive(Debug)]
struct Message {
    visible_ns: u64,
    sequence: u64,
    lines: usize,
    bytes: Vec<u8>,
}

/// From one domain, of one class.
#[derive(Debug, Default)]
struct Ring {
    messages: VecDeque<Message>,
    used_lines: usize,
}

/// All rings to one domain.
#[derive(Debug)]
pub(super) struct Queues {
    /// By class, then by sender.
    rings: Vec<Vec<Ring>>,
    /// By class: when each message is there, its number, and from whom. One that was taken otherwise stays in it.
    order: [BinaryHeap<Reverse<(u64, u64, u16)>>; CLASSES.len()],
}

impl Queues {
    pub(super) fn new(domain_count: usize) -> Queues {
        let rings = || (0..domain_count).map(|_| Ring::default()).collect();
        Queues { rings: CLASSES.iter().map(|_| rings()).collect(), order: Default::default() }
    }

    pub(super) fn used_lines(&self, from: DomainNumber, class: Class) -> usize {
        self.rings[class as usize][from.index()].used_lines
    }

    pub(super) fn put(
        &mut self,
        (from, class): (DomainNumber, Class),
        (visible_ns, sequence): (u64, u64),
        lines: usize,
        bytes: &[u8],
    ) {
        let ring = &mut self.rings[class as usize][from.index()];
        ring.used_lines += lines;
        ring.messages.push_back(Message { visible_ns, sequence, lines, bytes: bytes.to_vec() });
        self.order[class as usize].push(Reverse((visible_ns, sequence, from.0)));
    }

    /// Takes the oldest of a sender that is there; returns its lines.
    pub(super) fn take_from(
        &mut self,
        (from, class): (DomainNumber, Class),
        now_ns: u64,
        bytes: &mut Vec<u8>,
    ) -> Option<usize> {
        let ring = &mut self.rings[class as usize][from.index()];
        if ring.messages.front()?.visible_ns > now_ns {
            return None;
        }
        let message = ring.messages.pop_front()?;
        ring.used_lines -= message.lines;
        *bytes = message.bytes;
        Some(message.lines)
    }

    /// The next of a class from anybody, if one was sent: when it is there, and from whom.
    pub(super) fn next(&mut self, class: Class) -> Option<(u64, DomainNumber)> {
        let order = &mut self.order[class as usize];
        loop {
            let Reverse((visible_ns, sequence, from)) = *order.peek()?;
            let ring = &self.rings[class as usize][usize::from(from)];
            if ring.messages.front().is_some_and(|message| message.sequence == sequence) {
                return Some((visible_ns, DomainNumber(from)));
            }
            order.pop();
        }
    }

    /// When the next message is there that is answered or is an answer. No one waits for notices.
    pub(super) fn next_ns(&mut self) -> Option<u64> {
        let classes = CLASSES.into_iter().filter(|class| *class != Class::Notices);
        classes.filter_map(|class| self.next(class)).map(|(visible_ns, _)| visible_ns).min()
    }
}
