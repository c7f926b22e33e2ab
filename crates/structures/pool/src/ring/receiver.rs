//! The end of a ring that receives.

use sync::mutant::planted;

use super::line::{self, Seen};
use super::{Layout, RingError, Suspicion};
use crate::line::LINE_BYTES;
use crate::memory::Memory;

/// Receives messages; there is one receiver of a ring.
#[derive(Debug)]
pub struct Receiver<M> {
    memory: M,
    layout: Layout,
    /// Lines taken so far, and number of the next one.
    next: u64,
    /// Number of lines of which the sender was informed.
    reported: u64,
    suspicion: Suspicion,
    /// What lay in the place of the next line when it was last found to be old: most looks find the same.
    old: Option<line::Bytes>,
}

impl<M: Memory> Receiver<M> {
    /// The receiver of a new ring, whose lines are all zero.
    ///
    /// # Errors
    /// [`RingError::Layout`], and faults of memory.
    pub fn new(memory: M, layout: Layout) -> Result<Receiver<M>, RingError> {
        layout.declare(&memory)?;
        Ok(Receiver { memory, layout, next: 0, reported: 0, suspicion: Suspicion::default(), old: None })
    }

    /// Lines that were taken.
    pub fn taken_lines(&self) -> u64 {
        self.next
    }

    /// Lines of which the sender was informed that they were taken.
    pub fn reported_lines(&self) -> u64 {
        self.reported
    }

    /// Where the ring lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Takes the next message into `into` and returns its length; `None` if there is none yet.
    ///
    /// # Errors
    /// [`RingError::TooLong`] if `into` is too short, and the message stays; [`RingError::Damaged`], and faults of memory.
    pub fn receive(&mut self, into: &mut [u8]) -> Result<Option<usize>, RingError> {
        let mut length = 0;
        self.receive_parts(into.len(), |part| {
            if let Some(place) = into.get_mut(length..length + part.len()) {
                place.copy_from_slice(part);
            }
            length += part.len();
        })
    }

    /// The same for who keeps no room ready: hands out the parts of the message, at most 56 bytes each, in their order, and returns its
    /// length. Without a message, and with an error, what was handed out is none.
    ///
    /// # Errors
    /// [`RingError::TooLong`] if the message has more than `limit` bytes, and the message stays; else as [`Receiver::receive`].
    pub fn receive_parts(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> Result<Option<usize>, RingError> {
        let (mut length, mut count) = (0, 0);
        loop {
            let number = self.next + count;
            let at = self.layout.slot(number);
            let bytes = self.look(at)?;
            if count == 0 && self.old == Some(bytes) {
                self.suspicion.clear();
                return Ok(None);
            }
            match line::decode(self.layout.salt, &bytes, number) {
                Seen::Old => {
                    self.old = if count == 0 { Some(bytes) } else { None };
                    self.suspicion.clear();
                    return Ok(None);
                }
                Seen::Torn => {
                    self.suspicion.look(&bytes, at, self.layout.patience)?;
                    return Ok(None);
                }
                Seen::Impossible => return Err(RingError::Damaged { at }),
                Seen::Whole { payload, is_last } => {
                    self.memory.accept(at, LINE_BYTES, number + 1);
                    take(payload);
                    length += payload.len();
                    count += 1;
                    if is_last {
                        break;
                    }
                }
            }
            if count > self.layout.line_count as u64 / 2 {
                return Err(RingError::Damaged { at });
            }
        }
        self.suspicion.clear();
        if length > limit {
            return Err(RingError::TooLong { length, limit });
        }
        self.next += count;
        self.old = None;
        if self.next - self.reported >= self.layout.tell_after() {
            self.tell()?;
        }
        Ok(Some(length))
    }

    fn look(&self, at: usize) -> Result<line::Bytes, RingError> {
        let mut bytes = [0; LINE_BYTES];
        let late = planted("pool: a ring's line is invalidated after it was read");
        if !late && !planted("pool: a ring's line is not invalidated") {
            self.memory.invalidate(at, LINE_BYTES)?;
        }
        self.memory.read(at, &mut bytes)?;
        if late {
            self.memory.invalidate(at, LINE_BYTES)?;
        }
        Ok(bytes)
    }

    /// Tells the sender how many lines were taken.
    fn tell(&mut self) -> Result<(), RingError> {
        let reported = if planted("pool: a ring's lines are given back before they are taken") {
            self.next + 1
        } else {
            self.next
        };
        let bytes = line::encode(self.layout.salt, reported, &[], true);
        self.memory.write_version(self.layout.at, &bytes, reported)?;
        if !planted("pool: what a ring's receiver has taken is not written back") {
            self.memory.write_back(self.layout.at, LINE_BYTES)?;
        }
        if !planted("pool: what a ring's receiver has taken is not drained") {
            self.memory.drain()?;
        }
        self.memory.promise();
        self.reported = reported;
        Ok(())
    }
}
