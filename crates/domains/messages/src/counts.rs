//! What a domain has sent and waited for.

use crate::transport::CLASSES;

/// Messages, bytes, lines, and waits, since an endpoint was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages sent, by class.
    pub messages: [u64; CLASSES.len()],
    /// Bytes in them.
    pub bytes: u64,
    /// Lines of the rings that they took.
    pub lines: u64,
    /// How often the domain has waited for replies; replies that were waited for together count once.
    pub round_trips: u64,
    /// How often something was sent later, or replaced by "forget all", as a ring had no room.
    pub held_back: u64,
}

impl Counts {
    /// What came after an earlier count.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut messages = self.messages;
        for (now, then) in messages.iter_mut().zip(earlier.messages) {
            *now -= then;
        }
        Counts {
            messages,
            bytes: self.bytes - earlier.bytes,
            lines: self.lines - earlier.lines,
            round_trips: self.round_trips - earlier.round_trips,
            held_back: self.held_back - earlier.held_back,
        }
    }
}
