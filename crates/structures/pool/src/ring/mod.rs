//! A ring from one domain to another, of lines that validate themselves.
//!
//! **Idea.** Each line of 64 bytes carries a checksum of itself and of its number in the ring's whole life. Lines of one message may
//! reach memory in any order, early, or half: a reader takes a line only if it is whole and has the number that comes
//! next. So nothing has to be ordered but the end: a message is there for certain once its lines are written back and drained.
//!
//! ```text
//! line of the pool:   0          1        2        3        4
//!                     taken: 5   line 5   line 6   line 7   line 4    ring of 4 lines, the next to be read is 6
//!                     (reader)   └───────────── writer ──────────┘
//! line: checksum 4 │ low bytes of the number 3 │ length, and whether it is the last 1 │ bytes of the message 56
//! ```
//!
//! **Flow control.** The reader writes how many lines it has taken into a line of its own, each time half a ring has been. The
//! writer looks there only if it has no room that it knows of.
//!
//! **Damage.** A line that is neither whole nor old is on its way, or a bit of it is wrong. If it stays the same for
//! [`Layout::patience`] looks, it is wrong.

mod line;
mod receiver;
mod sender;

use core::fmt;

pub use receiver::Receiver;
pub use sender::Sender;

use crate::line::LINE_BYTES;
use crate::memory::{Fault, Memory, Use};

/// Bytes of a message in one line.
pub const PAYLOAD_BYTES: usize = line::PAYLOAD_BYTES;

/// Where a ring lies, and what its two ends agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset of its first line, a multiple of [`LINE_BYTES`].
    pub at: usize,
    /// Lines for messages, at least 2.
    pub line_count: usize,
    /// A number of the ring's own, part of every checksum: what another ring has left here is not valid.
    pub salt: u32,
    /// Number of the domain that sends.
    pub sender: usize,
    /// Number of the domain that receives.
    pub receiver: usize,
    /// After this number of looks at a line that is not whole and does not change, it counts as damaged.
    pub patience: u32,
}

impl Layout {
    /// Bytes of a ring with this number of lines for messages.
    pub const fn bytes(line_count: usize) -> usize {
        (line_count + 1) * LINE_BYTES
    }

    /// Bytes of the longest message.
    pub const fn longest_message_bytes(&self) -> usize {
        self.line_count / 2 * PAYLOAD_BYTES
    }

    /// After this number of taken lines the sender is informed: there is always room for the longest message in the end.
    const fn tell_after(&self) -> u64 {
        let half = self.line_count as u64 / 2;
        if half == 0 { 1 } else { half }
    }

    fn slot(&self, number: u64) -> usize {
        self.at + LINE_BYTES * (1 + (number % self.line_count as u64) as usize)
    }

    fn declare(&self, memory: &impl Memory) -> Result<(), RingError> {
        if self.line_count < 2 || !self.at.is_multiple_of(LINE_BYTES) {
            return Err(RingError::Layout { at: self.at, line_count: self.line_count });
        }
        let (writer, reader) = (self.sender, self.receiver);
        memory.declare(self.at, LINE_BYTES, Use::Register { writer: reader })?;
        memory.declare(self.at + LINE_BYTES, self.line_count * LINE_BYTES, Use::Messages { writer, reader })?;
        Ok(())
    }
}

/// Why a ring did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingError {
    /// There is no room yet: the receiver has to take messages first.
    Full,
    /// The message is longer than the ring, or the buffer, takes.
    TooLong {
        /// Its bytes.
        length: usize,
        /// What is taken.
        limit: usize,
    },
    /// A line is wrong and stays so.
    Damaged {
        /// Offset in the pool.
        at: usize,
    },
    /// The ring's place or number of lines is impossible.
    Layout {
        /// Offset of the ring.
        at: usize,
        /// Its lines.
        line_count: usize,
    },
    /// Memory failed.
    Memory(Fault),
}

impl From<Fault> for RingError {
    fn from(fault: Fault) -> RingError {
        RingError::Memory(fault)
    }
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingError::Full => f.write_str("the ring is full: send again once the other domain has taken messages"),
            RingError::TooLong { length, limit } => {
                write!(f, "expected a message of at most {limit} bytes, got {length}")
            }
            RingError::Damaged { at } => write!(
                f,
                "expected a ring's line at offset {at}, got one with wrong bits or from a stranger: make the ring again"
            ),
            RingError::Layout { at, line_count } => write!(
                f,
                "expected a ring of at least 2 lines at a multiple of {LINE_BYTES} bytes, got {line_count} lines at {at}"
            ),
            RingError::Memory(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for RingError {}

/// Counts looks at a line that is neither whole nor old.
#[derive(Clone, Copy, Debug, Default)]
struct Suspicion {
    seen: u32,
    looks: u32,
}

impl Suspicion {
    /// The line at `at` is not whole; whether that has been so for too long.
    fn look(&mut self, bytes: &[u8; LINE_BYTES], at: usize, patience: u32) -> Result<(), RingError> {
        // Of the whole line, its own checksum included: any change restarts the count.
        let seen = crate::checksum::checksum(at as u32, bytes);
        self.looks = if seen == self.seen { self.looks.saturating_add(1) } else { 1 };
        self.seen = seen;
        if self.looks >= patience { Err(RingError::Damaged { at }) } else { Ok(()) }
    }

    fn clear(&mut self) {
        self.looks = 0;
    }
}
