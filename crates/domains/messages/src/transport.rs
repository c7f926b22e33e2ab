//! What carries messages.

use std::fmt;

/// Bytes of a line of memory.
pub const LINE_BYTES: usize = 64;

/// The number of a domain, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainNumber(pub u16);

impl DomainNumber {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for DomainNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "domain {}", self.0)
    }
}

/// What a message is for. Each class has rings of its own, so that none waits for one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// What was answered before is not so any more. Looked at before an answer that was kept is used.
    Notices = 0,
    /// Answers, each to a request or a prepare that has reserved its place.
    Replies = 1,
    /// Steps of an operation on several owners that is under way: prepares, decisions, recalls.
    Prepares = 2,
    /// Everything that begins.
    Requests = 3,
}

/// All classes, the highest first.
pub const CLASSES: [Class; 4] = [Class::Notices, Class::Replies, Class::Prepares, Class::Requests];

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The ring has no room for it now.
    Full,
    /// The ring would have none if it were empty.
    TooLong,
}

/// What a domain does besides sending and receiving, for transports that count time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A program enters a call.
    Call,
    /// An operation on an object of the domain itself, or a look into what it keeps.
    Own,
    /// A request is served.
    Served,
    /// This many lines of the pool are read, after they were dropped from the domain's caches.
    PoolRead(u32),
    /// This many lines of the pool are written and written back, and have arrived.
    PoolWrite(u32),
    /// This many lines of data in the pool are read, after they were dropped from the domain's caches.
    DataRead(u32),
    /// This many lines of data in the pool are written, and begin to be written back.
    DataWrite(u32),
    /// What was written back has arrived.
    Drain,
}

/// One domain's end of all rings.
///
/// **What it must give.** Messages of one class from one domain to another arrive in their order, whole and once. When
/// [`Transport::send`] has returned, the message is there for those who look from then on: a receiver that looks later
/// (by any chain of messages) finds it. [`Transport::free_lines`] is at least as new as the last message received from
/// there: what had been taken when that was sent is free.
pub trait Transport {
    /// The domain whose end this is.
    fn own(&self) -> DomainNumber;

    /// How many domains there are.
    fn domain_count(&self) -> usize;

    /// Lines of a ring that a message of this many bytes takes.
    fn lines_of(&self, message_bytes: usize) -> usize {
        // Of each line eight bytes make it valid by itself.
        message_bytes.div_ceil(LINE_BYTES - 8).max(1)
    }

    /// Lines of each ring of a class.
    fn ring_lines(&self, class: Class) -> usize;

    /// Lines that are free in the ring of a class to a domain, at least.
    fn free_lines(&self, to: DomainNumber, class: Class) -> usize;

    /// Puts a message into the ring of a class to another domain.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    fn send(&self, to: DomainNumber, class: Class, message: &[u8]) -> Result<(), SendError>;

    /// Takes the oldest message of a class from a domain into `message`, which is cleared first; false if there is none.
    fn receive_from(&self, from: DomainNumber, class: Class, message: &mut Vec<u8>) -> bool;

    /// Takes a message of the first of some classes that has one, from any domain, none of which is passed over. It is one look.
    fn receive(&self, classes: &[Class], message: &mut Vec<u8>) -> Option<(Class, DomainNumber)>;

    /// Whether nothing will ever be sent or received again: what carries the messages has failed.
    fn has_ended(&self) -> bool {
        false
    }

    /// Whether a domain is known to have ended: it sends nothing any more, and all that it has sent can be received.
    fn has_left(&self, _domain: DomainNumber) -> bool {
        false
    }

    /// Lets others go on until a message other than a notice may have come.
    fn wait(&self);

    /// Lets others go on for about so long.
    fn pause(&self, nanoseconds: u64);

    /// Comes before a look at memory that others write: all that they had written by now is seen. For transports whose time
    /// is not that of the machine.
    fn observe(&self) {}

    /// Tells what the domain does besides, for transports that count time.
    fn spend(&self, _step: Step) {}

    /// The time in nanoseconds, from an arbitrary start.
    fn now_ns(&self) -> u64;
}
