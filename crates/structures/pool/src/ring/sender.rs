//! The end of a ring that sends.

use sync::mutant::planted;

use super::line::{self, PAYLOAD_BYTES};
use super::{Layout, RingError, Suspicion};
use crate::line::LINE_BYTES;
use crate::memory::Memory;

/// Sends messages; there is one sender of a ring.
#[derive(Debug)]
pub struct Sender<M> {
    memory: M,
    layout: Layout,
    /// Lines sent so far, and number of the next one.
    next: u64,
    /// Number of lines that the receiver has taken, as far as is known.
    taken: u64,
    /// Lines were written, and not waited for.
    is_put: bool,
    suspicion: Suspicion,
}

impl<M: Memory> Sender<M> {
    /// The sender of a new ring, whose lines are all zero.
    ///
    /// # Errors
    /// [`RingError::Layout`], and faults of memory.
    pub fn new(memory: M, layout: Layout) -> Result<Sender<M>, RingError> {
        layout.declare(&memory)?;
        Ok(Sender { memory, layout, next: 0, taken: 0, is_put: false, suspicion: Suspicion::default() })
    }

    /// Lines that were sent.
    pub fn sent_lines(&self) -> u64 {
        self.next
    }

    /// Lines that the receiver has taken, as far as is known here.
    pub fn taken_lines(&self) -> u64 {
        self.taken
    }

    /// Where the ring lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Sends a message: when the call returns, the receiver's next look finds it.
    ///
    /// # Errors
    /// [`RingError::Full`], [`RingError::TooLong`], [`RingError::Damaged`] for what the receiver says, and faults of memory.
    pub fn send(&mut self, message: &[u8]) -> Result<(), RingError> {
        self.put(message)?;
        self.end_put()
    }

    /// As [`Sender::send`], but the receiver finds the message for certain only after a [`Sender::drain`]: several messages,
    /// also of several rings of one memory, share one.
    ///
    /// # Errors
    /// As for [`Sender::send`].
    pub fn put(&mut self, message: &[u8]) -> Result<(), RingError> {
        let limit = self.layout.longest_message_bytes();
        if message.len() > limit {
            return Err(RingError::TooLong { length: message.len(), limit });
        }
        let count = message.len().div_ceil(PAYLOAD_BYTES).max(1) as u64;
        if !planted("pool: room in a ring is not looked at") {
            self.find_room(count)?;
        }
        self.is_put = true;
        for index in 0..count {
            let start = index as usize * PAYLOAD_BYTES;
            let part = &message[start..message.len().min(start + PAYLOAD_BYTES)];
            let number = self.next + index;
            let bytes = line::encode(self.layout.salt, number, part, index + 1 == count);
            let at = self.layout.slot(number);
            if planted("pool: a ring's line is written back before it is whole") {
                self.memory.write_version(at, &bytes[..LINE_BYTES / 2], number + 1)?;
                self.memory.write_back(at, LINE_BYTES)?;
                self.memory.write_version(at + LINE_BYTES / 2, &bytes[LINE_BYTES / 2..], number + 1)?;
                continue;
            }
            self.memory.write_version(at, &bytes, number + 1)?;
            let forgotten = index + 1 == count && planted("pool: the last line of a message is not written back");
            if !forgotten && !planted("pool: a ring's line is not written back") {
                // Each line at once: what is on its way early arrives early.
                self.memory.write_back(at, LINE_BYTES)?;
            }
        }
        self.next += count;
        Ok(())
    }

    /// Waits until all that was put has reached memory.
    ///
    /// # Errors
    /// Faults of memory.
    pub fn drain(&mut self) -> Result<(), RingError> {
        self.end_put()
    }

    fn end_put(&mut self) -> Result<(), RingError> {
        if !planted("pool: lines of a ring are not drained") {
            self.memory.drain()?;
        }
        self.memory.promise();
        self.is_put = false;
        Ok(())
    }

    /// Lines that are free, at least: all that the receiver had said when it sent what was received last are counted.
    ///
    /// # Errors
    /// As for [`Sender::send`].
    pub fn free_lines(&mut self) -> Result<u64, RingError> {
        let line_count = self.layout.line_count as u64;
        match self.find_room(line_count) {
            Ok(()) | Err(RingError::Full) => Ok(line_count - (self.next - self.taken)),
            Err(error) => Err(error),
        }
    }

    /// Makes sure that there is room; looks at what the receiver says if they are fewer than `wanted`.
    fn find_room(&mut self, wanted: u64) -> Result<(), RingError> {
        let line_count = self.layout.line_count as u64;
        let room = |taken: u64, next: u64| line_count - (next - taken);
        if room(self.taken, self.next) >= wanted {
            return Ok(());
        }
        if self.is_put {
            // Who waits must first let others have what they may be waiting for.
            self.end_put()?;
        }
        let at = self.layout.at;
        let mut bytes = [0; LINE_BYTES];
        if !planted("pool: what a ring's receiver has taken is not invalidated") {
            self.memory.invalidate(at, LINE_BYTES)?;
        }
        self.memory.read(at, &mut bytes)?;
        if line::is_unwritten(&bytes) {
            return Err(RingError::Full);
        }
        let taken = line::number_from(&bytes, self.taken);
        if !line::is_valid(self.layout.salt, &bytes, taken)
            && !planted("pool: the checksum of what was taken is not looked at")
        {
            self.suspicion.look(&bytes, at, self.layout.patience)?;
            return Err(RingError::Full);
        }
        self.suspicion.clear();
        if taken > self.next {
            return Err(RingError::Damaged { at });
        }
        self.memory.accept(at, LINE_BYTES, taken);
        self.taken = taken;
        if room(taken, self.next) >= wanted { Ok(()) } else { Err(RingError::Full) }
    }
}
