//! A log of one domain that all others read: entries with checksums and sequence numbers, as a shared-memory file system keeps
//! its changes (famfs has one; nothing here is from its sources).
//!
//! **Idea.** The writer appends an entry, lets it reach memory, and only then says in the head that there is one more. A reader
//! looks at the head, then takes entries up to there. The log is a circle: the writer waits for no reader, so one that is
//! slow finds newer entries where its own were, or halves of them. It knows by checksum and number, and learns what it lost.
//! The writer can also discard entries that count no more, such as those before a snapshot.
//!
//! ```text
//! write   entry 7 ─ write back ─ drain ─ head: 8 entries ─ write back ─ drain
//! read                                   invalidate head, 8 ─ invalidate entry 7 ─ whole, and number 7: taken
//! ```

use core::fmt;

use sync::mutant::planted;

use crate::checksum::checksum;
use crate::line::LINE_BYTES;
use crate::memory::{Fault, Memory, Use};

/// Bytes of an entry: two lines, so that forgetting one of them matters.
const ENTRY_BYTES: usize = 2 * LINE_BYTES;
const HEAD_BYTES: usize = 16;

/// Bytes that the caller has in an entry, at most.
pub const RECORD_BYTES: usize = ENTRY_BYTES - HEAD_BYTES;

/// Where a log lies, and what all of its users agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLayout {
    /// Offset of its head, a multiple of [`LINE_BYTES`].
    pub at: usize,
    /// Entries that it keeps.
    pub entry_count: usize,
    /// A number of the log's own, part of every checksum.
    pub salt: u32,
    /// Number of the domain that writes.
    pub writer: usize,
    /// After this number of looks at a head that is not whole and does not change, it counts as damaged.
    pub patience: u32,
}

impl LogLayout {
    /// Bytes of a log with this number of entries.
    pub const fn bytes(entry_count: usize) -> usize {
        LINE_BYTES + entry_count * ENTRY_BYTES
    }

    fn entry(&self, number: u64) -> usize {
        self.at + LINE_BYTES + (number % self.entry_count as u64) as usize * ENTRY_BYTES
    }

    fn declare(&self, memory: &impl Memory) -> Result<(), LogError> {
        if self.entry_count == 0 || !self.at.is_multiple_of(LINE_BYTES) {
            return Err(LogError::Layout { at: self.at, entry_count: self.entry_count });
        }
        Ok(memory.declare(self.at, LogLayout::bytes(self.entry_count), Use::Register { writer: self.writer })?)
    }
}

/// Why a log gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The writer has overwritten or discarded entries that this reader had not taken.
    Overtaken {
        /// How many are lost; the next one that is read comes after them.
        lost: u64,
    },
    /// A record is longer than an entry, or than the buffer.
    TooLong {
        /// Its bytes.
        length: usize,
        /// What is taken.
        limit: usize,
    },
    /// The head, or an entry that the head says is there, is wrong.
    Damaged {
        /// Offset in the pool.
        at: usize,
    },
    /// The log's place or number of entries is impossible.
    Layout {
        /// Offset of the log.
        at: usize,
        /// Its entries.
        entry_count: usize,
    },
    /// Memory failed.
    Memory(Fault),
}

impl From<Fault> for LogError {
    fn from(fault: Fault) -> LogError {
        LogError::Memory(fault)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Overtaken { lost } => {
                write!(
                    f,
                    "the log's writer has overwritten or discarded {lost} entries that were not read: read more often"
                )
            }
            LogError::TooLong { length, limit } => {
                write!(f, "expected a record of at most {limit} bytes, got {length}")
            }
            LogError::Damaged { at } => {
                write!(f, "expected a log's entry or head at offset {at}, got wrong bits: make the log again")
            }
            LogError::Layout { at, entry_count } => write!(
                f,
                "expected a log of at least one entry at a multiple of {LINE_BYTES} bytes, got {entry_count} entries at {at}"
            ),
            LogError::Memory(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for LogError {}

fn seal(salt: u32, bytes: &mut [u8]) {
    let sum = checksum(salt, &bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
}

fn is_sealed(salt: u32, bytes: &[u8]) -> bool {
    bytes[..4] == checksum(salt, &bytes[4..]).to_le_bytes()
}

fn number_at(bytes: &[u8], start: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[start..start + 8]);
    u64::from_le_bytes(number)
}

/// In an entry: its number.
const NUMBER: usize = 8;
/// In the head: number of the entry that comes next, and of the first one that counts.
const NEXT: usize = 8;
const FIRST: usize = LINE_BYTES - 8;

/// Appends to a log; there is one writer.
#[derive(Debug)]
pub struct LogWriter<M> {
    memory: M,
    layout: LogLayout,
    first: u64,
    next: u64,
}

impl<M: Memory> LogWriter<M> {
    /// The writer of a new log, whose bytes are all zero.
    ///
    /// # Errors
    /// [`LogError::Layout`], and faults of memory.
    pub fn new(memory: M, layout: LogLayout) -> Result<LogWriter<M>, LogError> {
        layout.declare(&memory)?;
        Ok(LogWriter { memory, layout, first: 0, next: 0 })
    }

    /// Entries that were appended.
    pub fn appended(&self) -> u64 {
        self.next
    }

    /// Appends a record: when the call returns, every reader's next look finds it.
    ///
    /// # Errors
    /// [`LogError::TooLong`], and faults of memory.
    pub fn append(&mut self, record: &[u8]) -> Result<(), LogError> {
        if record.len() > RECORD_BYTES {
            return Err(LogError::TooLong { length: record.len(), limit: RECORD_BYTES });
        }
        let mut entry = [0; ENTRY_BYTES];
        entry[4..6].copy_from_slice(&(record.len() as u16).to_le_bytes());
        entry[NUMBER..NUMBER + 8].copy_from_slice(&self.next.to_le_bytes());
        entry[HEAD_BYTES..HEAD_BYTES + record.len()].copy_from_slice(record);
        seal(self.layout.salt, &mut entry);
        let at = self.layout.entry(self.next);
        self.memory.write_version(at, &entry, self.next + 1)?;
        let late = planted("pool: a log's entry is written back after the head");
        if !late {
            self.write_entry_back(at)?;
        }
        if !planted("pool: the head of a log does not wait for the entry") {
            self.memory.drain()?;
        }
        self.next += 1;
        self.write_head()?;
        if late {
            self.write_entry_back(at)?;
            self.memory.drain()?;
        }
        Ok(())
    }

    /// Entries before the one with this number, of those that were appended, count no more.
    ///
    /// # Errors
    /// Faults of memory.
    pub fn discard_before(&mut self, number: u64) -> Result<(), LogError> {
        self.first = number.clamp(self.first, self.next);
        self.write_head()
    }

    fn write_head(&mut self) -> Result<(), LogError> {
        let mut head = [0; LINE_BYTES];
        head[FIRST..FIRST + 8].copy_from_slice(&self.first.to_le_bytes());
        head[NEXT..NEXT + 8].copy_from_slice(&self.next.to_le_bytes());
        seal(self.layout.salt, &mut head);
        self.memory.write_version(self.layout.at, &head, 0)?;
        if !planted("pool: the head of a log is not written back") {
            self.memory.write_back(self.layout.at, LINE_BYTES)?;
        }
        if !planted("pool: the head of a log is not drained") {
            self.memory.drain()?;
        }
        self.memory.promise();
        Ok(())
    }

    fn write_entry_back(&self, at: usize) -> Result<(), Fault> {
        if planted("pool: a log's entry is not written back") {
            return Ok(());
        }
        let length =
            if planted("pool: one line of a log's entry is not written back") { LINE_BYTES } else { ENTRY_BYTES };
        self.memory.write_back(at, length)
    }
}

/// What a look at the head has shown.
#[derive(PartialEq, Eq)]
enum Head {
    /// There are entries that were not read.
    Newer,
    /// There are none.
    Same,
    /// It is being written.
    Torn,
}

/// Reads a log from its beginning, or from where it is now.
#[derive(Debug)]
pub struct LogReader<M> {
    memory: M,
    layout: LogLayout,
    /// Number of the entry that is read next.
    position: u64,
    /// Number of the first entry that counts, and of the one that comes next, as far as is known.
    first: u64,
    known: u64,
    looks: u32,
}

impl<M: Memory> LogReader<M> {
    /// A reader that begins with the first entry.
    ///
    /// # Errors
    /// [`LogError::Layout`], and faults of memory.
    pub fn new(memory: M, layout: LogLayout) -> Result<LogReader<M>, LogError> {
        layout.declare(&memory)?;
        Ok(LogReader { memory, layout, position: 0, first: 0, known: 0, looks: 0 })
    }

    /// Number of the entry that is read next.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads the next record into `into` and returns its length; `None` if there is none yet.
    ///
    /// # Errors
    /// [`LogError::Overtaken`], after which reading goes on; [`LogError::TooLong`] if `into` is too short, and the record stays;
    /// [`LogError::Damaged`], and faults of memory.
    pub fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, LogError> {
        let early = planted("pool: a log's entry is invalidated before the head is read");
        if self.position == self.known && self.look_at_head()? != Head::Newer {
            return Ok(None);
        }
        self.skip_what_is_lost()?;
        let at = self.layout.entry(self.position);
        let mut entry = [0; ENTRY_BYTES];
        if !early && !planted("pool: a log's entry is not invalidated") {
            self.memory.invalidate(at, ENTRY_BYTES)?;
        }
        self.memory.read(at, &mut entry)?;
        let length = usize::from(u16::from_le_bytes([entry[4], entry[5]]));
        let is_whole =
            is_sealed(self.layout.salt, &entry) || planted("pool: the checksum of a log's entry is not looked at");
        let is_wanted =
            number_at(&entry, NUMBER) == self.position || planted("pool: the number of a log's entry is not looked at");
        if !is_whole || !is_wanted || length > RECORD_BYTES {
            // Either the writer is a circle ahead, or about to be, or the entry is wrong.
            if self.look_at_head()? == Head::Torn {
                return Ok(None);
            }
            self.skip_what_is_lost()?;
            return match self.known - self.position == self.layout.entry_count as u64 {
                true => Err(self.skip(1)),
                false => Err(LogError::Damaged { at }),
            };
        }
        if length > into.len() {
            return Err(LogError::TooLong { length, limit: into.len() });
        }
        into[..length].copy_from_slice(&entry[HEAD_BYTES..HEAD_BYTES + length]);
        self.memory.accept(at, ENTRY_BYTES, self.position + 1);
        self.position += 1;
        if early {
            self.memory.invalidate(self.layout.entry(self.position), ENTRY_BYTES)?;
        }
        Ok(Some(length))
    }

    /// Reads the head.
    fn look_at_head(&mut self) -> Result<Head, LogError> {
        let (at, mut head) = (self.layout.at, [0; LINE_BYTES]);
        if !planted("pool: the head of a log is not invalidated") {
            self.memory.invalidate(at, LINE_BYTES)?;
        }
        self.memory.read(at, &mut head)?;
        if head == [0; LINE_BYTES] {
            return Ok(Head::Same);
        }
        if !is_sealed(self.layout.salt, &head) && !planted("pool: the checksum of a log's head is not looked at") {
            self.looks += 1;
            return if self.looks < self.layout.patience { Ok(Head::Torn) } else { Err(LogError::Damaged { at }) };
        }
        self.looks = 0;
        let (first, next) = (number_at(&head, FIRST), number_at(&head, NEXT));
        self.memory.accept(at, LINE_BYTES, 0);
        if next < self.known || first < self.first || first > next {
            return Err(LogError::Damaged { at });
        }
        (self.first, self.known) = (first, next);
        Ok(if self.position < next { Head::Newer } else { Head::Same })
    }

    /// Whether entries that are not read yet have been overwritten or discarded.
    fn skip_what_is_lost(&mut self) -> Result<(), LogError> {
        let oldest = self.first.max(self.known.saturating_sub(self.layout.entry_count as u64));
        if oldest > self.position { Err(self.skip(oldest - self.position)) } else { Ok(()) }
    }

    fn skip(&mut self, lost: u64) -> LogError {
        self.position += lost;
        LogError::Overtaken { lost }
    }
}
