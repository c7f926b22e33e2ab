//! Requests with reserved replies, notices that cannot be lost, posts.
//!
//! **Framing.** A request, a prepare and a reply begin with a number of four bytes: replies have that of what they answer,
//! and number 0 wants no reply. A notice is what its sender makes of it; one byte alone, [`NOTICE_FORGET_ALL`], is the
//! endpoint's own.
//!
//! **Reserved replies.** Replies from a domain are sent only for what was asked of it, so the one that asks knows how
//! many lines of that ring are spoken for. It asks only if its reply will find room at its longest.
//!
//! **Notices.** The last place of a ring of notices is for "forget all". A notice that finds only that place is replaced by
//! it. If not even that is free, a "forget all" is still unread: one that reads it does so before it uses what it
//! keeps, and everything that it was answered before is older.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

use sync::mutant::planted;

use crate::counts::Counts;
use crate::transport::{Class, DomainNumber, SendError, Transport};

/// The notice "forget all that I have answered", by itself.
pub const NOTICE_FORGET_ALL: u8 = 0xff;

/// Bytes before what a request or reply says.
const HEADER_BYTES: usize = 4;
/// What is looked at, in this order.
const SERVED: [Class; 3] = [Class::Replies, Class::Prepares, Class::Requests];

/// A reply that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a reply that is not taken stays in memory"]
pub struct Ticket {
    number: u32,
}

/// Who has asked, and what to answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Who.
    pub from: DomainNumber,
    /// 0 if no reply is wanted.
    number: u32,
}

impl Asked {
    /// Whether a reply is wanted.
    #[must_use]
    pub fn wants_reply(self) -> bool {
        self.number != 0
    }
}

/// What [`Endpoint::next_message`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// Nothing.
    Nothing,
    /// A reply, which waits for the one that has its ticket.
    Reply,
    /// Something is asked of this domain.
    Asked(Asked),
}

/// A reply is longer than what was reserved for it, or no one has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTooLong;

/// What a reply that was asked for holds, or will.
#[derive(Debug)]
struct Expected {
    from: DomainNumber,
    lines: usize,
    reply: Option<Vec<u8>>,
}

/// A domain's end of all conversations.
#[derive(Debug)]
pub struct Endpoint<T> {
    transport: T,
    last_number: Cell<u32>,
    /// By domain: lines of its ring of replies to us that are spoken for.
    reserved_lines: RefCell<Vec<usize>>,
    /// By number of the request.
    expected: RefCell<BTreeMap<u32, Expected>>,
    /// Posts that found no room, the oldest first.
    outbox: RefCell<VecDeque<(DomainNumber, Class, Vec<u8>)>>,
    counts: Cell<Counts>,
}

impl<T: Transport> Endpoint<T> {
    /// Over a transport that no one has used.
    pub fn new(transport: T) -> Endpoint<T> {
        let domains = transport.domain_count();
        Endpoint {
            transport,
            last_number: Cell::new(0),
            reserved_lines: RefCell::new(vec![0; domains]),
            expected: RefCell::default(),
            outbox: RefCell::default(),
            counts: Cell::default(),
        }
    }

    /// What carries the messages.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// What was sent so far.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Counts a wait for replies.
    pub fn count_round_trip(&self) {
        self.count(|counts| counts.round_trips += 1);
    }

    /// Counts what has found no room, and is asked again.
    pub fn count_held_back(&self) {
        self.count(|counts| counts.held_back += 1);
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    fn send(&self, to: DomainNumber, class: Class, message: &[u8]) -> Result<(), SendError> {
        self.transport.send(to, class, message)?;
        let lines = self.transport.lines_of(message.len()) as u64;
        self.count(|counts| {
            counts.messages[class as usize] += 1;
            counts.bytes += message.len() as u64;
            counts.lines += lines;
        });
        Ok(())
    }

    /// Asks a domain, in one of the two classes that are answered, and reserves room for a reply of this many bytes.
    ///
    /// # Errors
    /// `Full` if the request, or its reply, has no room now: serve, wait, ask again. `TooLong` if it never has.
    pub fn ask(
        &self,
        to: DomainNumber,
        class: Class,
        request: &[u8],
        longest_reply_bytes: usize,
    ) -> Result<Ticket, SendError> {
        let lines = self.transport.lines_of(HEADER_BYTES + longest_reply_bytes);
        let ring = self.transport.ring_lines(Class::Replies);
        if lines > ring {
            return Err(SendError::TooLong);
        }
        if !self.has_place(to, lines) {
            // Replies that have come give their places back.
            self.collect_replies();
        }
        if !self.has_place(to, lines) && !planted("messages: a request reserves no place for its reply") {
            return Err(SendError::Full);
        }
        self.flush();
        if self.holds_back(to, class) {
            return Err(SendError::Full);
        }
        let number = self.next_number();
        self.send(to, class, &framed(number, request))?;
        self.reserved_lines.borrow_mut()[to.index()] += lines;
        self.expected.borrow_mut().insert(number, Expected { from: to, lines, reply: None });
        Ok(Ticket { number })
    }

    fn has_place(&self, to: DomainNumber, lines: usize) -> bool {
        self.reserved_lines.borrow()[to.index()] + lines <= self.transport.ring_lines(Class::Replies)
    }

    fn next_number(&self) -> u32 {
        let expected = self.expected.borrow();
        loop {
            let number = self.last_number.get().wrapping_add(1).max(1);
            self.last_number.set(number);
            if !expected.contains_key(&number) {
                return number;
            }
        }
    }

    /// The reply, if it has come.
    pub fn take_reply(&self, ticket: Ticket) -> Option<Vec<u8>> {
        if !self.has_reply(ticket) {
            self.collect_replies();
        }
        let mut expected = self.expected.borrow_mut();
        expected.get(&ticket.number)?.reply.as_ref()?;
        expected.remove(&ticket.number)?.reply
    }

    /// Whose reply is on its way.
    pub fn answerer(&self, ticket: Ticket) -> Option<DomainNumber> {
        Some(self.expected.borrow().get(&ticket.number)?.from)
    }

    /// Whether a reply was found when somebody looked.
    pub fn has_reply(&self, ticket: Ticket) -> bool {
        self.expected.borrow().get(&ticket.number).is_some_and(|expected| expected.reply.is_some())
    }

    /// Takes all replies out of their rings, which gives their places back.
    fn collect_replies(&self) {
        let mut message = Vec::new();
        while let Some((_, from)) = self.transport.receive(&[Class::Replies], &mut message) {
            self.keep_reply(from, &message);
        }
    }

    fn keep_reply(&self, from: DomainNumber, message: &[u8]) {
        // A reply that no one expects from there, or one without a number, is noise of a peer.
        let Some((number, reply)) = unframed(message) else { return };
        let mut all = self.expected.borrow_mut();
        let Some(expected) = all.get_mut(&number).filter(|it| it.from == from && it.reply.is_none()) else { return };
        expected.reply = Some(reply.to_vec());
        self.reserved_lines.borrow_mut()[from.index()] -= expected.lines;
    }

    /// Looks at all rings but those of notices, and takes what has come: replies first, prepares before requests.
    pub fn next_message(&self, message: &mut Vec<u8>) -> Came {
        self.flush();
        loop {
            let Some(received) = self.transport.receive(&SERVED, message) else { return Came::Nothing };
            if let Some(came) = self.sorted(received, message) {
                return came;
            }
        }
    }

    /// The same, of one domain.
    pub fn next_message_of(&self, from: DomainNumber, message: &mut Vec<u8>) -> Came {
        loop {
            let class = SERVED.into_iter().find(|class| self.transport.receive_from(from, *class, message));
            let Some(class) = class else { return Came::Nothing };
            if let Some(came) = self.sorted((class, from), message) {
                return came;
            }
        }
    }

    fn sorted(&self, (class, from): (Class, DomainNumber), message: &mut Vec<u8>) -> Option<Came> {
        if class == Class::Replies {
            self.keep_reply(from, message);
            return Some(Came::Reply);
        }
        // What has no number is noise.
        let (number, _) = unframed(message)?;
        message.drain(..HEADER_BYTES);
        Some(Came::Asked(Asked { from, number }))
    }

    /// Answers. There is room, as it was reserved.
    ///
    /// # Errors
    /// If the reply is longer than what was reserved: an error of the protocol above.
    pub fn reply(&self, asked: Asked, reply: &[u8]) -> Result<(), ReplyTooLong> {
        if asked.number == 0 {
            return Ok(());
        }
        self.send(asked.from, Class::Replies, &framed(asked.number, reply)).map_err(|_| ReplyTooLong)
    }

    /// Sends what wants no reply, in one of the two classes that are served; at once, or when there is room. What is asked
    /// afterwards of that domain in that class comes after it.
    pub fn post(&self, to: DomainNumber, class: Class, message: &[u8]) {
        let framed = framed(0, message);
        let is_first = self.outbox.borrow().iter().all(|(domain, held, _)| (*domain, *held) != (to, class));
        if is_first && self.send(to, class, &framed).is_ok() {
            return;
        }
        self.count(|counts| counts.held_back += 1);
        self.outbox.borrow_mut().push_back((to, class, framed));
    }

    /// Whether posts of a class to a domain wait for room.
    pub fn holds_back(&self, to: DomainNumber, class: Class) -> bool {
        self.outbox.borrow().iter().any(|(domain, held, _)| (*domain, *held) == (to, class))
    }

    /// Sends posts that were held back, as far as there is room now.
    pub fn flush(&self) {
        if self.outbox.borrow().is_empty() {
            return;
        }
        let mut waiting = VecDeque::new();
        let held: Vec<_> = self.outbox.borrow_mut().drain(..).collect();
        for (to, class, message) in held {
            let is_first = waiting.iter().all(|(domain, other, _)| (*domain, *other) != (to, class));
            if !is_first || self.send(to, class, &message) == Err(SendError::Full) {
                waiting.push_back((to, class, message));
            }
        }
        self.outbox.replace(waiting);
    }

    /// Tells a domain that what it was answered is not so any more. The notice, or "forget all", is in the ring when this
    /// returns.
    pub fn notify(&self, to: DomainNumber, notice: &[u8]) {
        let free = self.transport.free_lines(to, Class::Notices);
        let forget_all = self.transport.lines_of(1);
        let sent = if free >= self.transport.lines_of(notice.len()) + forget_all {
            self.send(to, Class::Notices, notice)
        } else {
            self.count(|counts| counts.held_back += 1);
            if free < forget_all || planted("messages: a full ring of notices loses one") {
                return;
            }
            self.send(to, Class::Notices, &[NOTICE_FORGET_ALL])
        };
        debug_assert_eq!(sent, Ok(()), "free lines stay free for the one who writes");
    }

    /// The next notice of a domain, into `notice`; false if there is none.
    pub fn next_notice(&self, from: DomainNumber, notice: &mut Vec<u8>) -> bool {
        self.transport.receive_from(from, Class::Notices, notice)
    }
}

fn framed(number: u32, message: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(HEADER_BYTES + message.len());
    framed.extend_from_slice(&number.to_le_bytes());
    framed.extend_from_slice(message);
    framed
}

fn unframed(message: &[u8]) -> Option<(u32, &[u8])> {
    let (number, message) = message.split_first_chunk::<HEADER_BYTES>()?;
    Some((u32::from_le_bytes(*number), message))
}
