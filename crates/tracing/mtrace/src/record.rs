//! The records of a trace as plain data, with the limits that reader and writer keep to.
//!
//! Byte layout: `docs/reference/trace-format.md`.

use crate::rules::{RULE_COUNT, Rule};

/// First bytes of a trace. The high first byte and the line ends show a transfer that damaged the file as text.
pub const MAGIC: [u8; 8] = *b"\x89MTRACE\n";
/// Version of the format that this crate reads and writes.
pub const VERSION: u32 = 3;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 32;
/// Bytes in front of each record's body: kind, length of the body, checksum.
pub const RECORD_HEADER_BYTES: usize = 12;
/// Longest body of a record.
pub const MAX_BODY_BYTES: usize = 16 << 20;
/// Cores that a trace can tell apart.
pub const MAX_CORES: usize = 64;
/// Stack nodes that a trace may define between two resets, the root included.
pub const MAX_STACK_NODES: usize = 1 << 20;
/// Longest capture of an object that a header may announce.
pub const MAX_CAPTURE_BYTES: usize = 1024;
/// Captures of one line: no more than one object per eight bytes is distinguished.
pub const MAX_CAPTURES: usize = 16;
/// Distinct accesses to one line that a record may hold.
pub const MAX_ACCESSES: usize = u16::MAX as usize;
/// The empty call stack.
pub const ROOT_NODE: u32 = 0;

/// Kinds of record, as written.
pub(crate) mod kind {
    pub const STACK_NODES: u32 = 1;
    pub const WINDOW: u32 = 2;
    pub const STACK_RESET: u32 = 3;
    pub const FLUSH: u32 = 4;
    pub const END: u32 = 5;
    pub const MESSAGE: u32 = 6;
}

/// What was traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// A program under `qemu-x86_64`; addresses are the program's.
    User = 0,
    /// A machine under `qemu-system-x86_64`; addresses are the kernel's.
    System = 1,
}

/// The header of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What was traced.
    pub mode: Mode,
    /// Size of each object capture, 0 if the trace holds none.
    pub capture_bytes: u32,
}

/// One node of the tree of call stacks: a stack is a path to the root, innermost call first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The caller's node, [`ROOT_NODE`] at the end of the stack.
    pub parent: u32,
    /// Address of the call instruction, or of the entry point for a stack that an exception or an interrupt began.
    pub site: u64,
}

/// What an access does to its bytes, numbered as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum AccessKind {
    /// They are read.
    Read = 0,
    /// They are written.
    Write = 1,
    /// They are prefetched for writing (`prefetchw`): nothing changes, but the line is taken from the other cores.
    PrefetchForWrite = 2,
}

impl AccessKind {
    /// The kind of that number.
    pub fn from_number(number: u8) -> Option<AccessKind> {
        [AccessKind::Read, AccessKind::Write, AccessKind::PrefetchForWrite]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }

    /// Whether the line is taken from the other cores.
    pub fn takes_line(self) -> bool {
        self != AccessKind::Read
    }
}

impl From<bool> for AccessKind {
    /// A write or a read.
    fn from(write: bool) -> AccessKind {
        if write { AccessKind::Write } else { AccessKind::Read }
    }
}

/// One distinct access of a core to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Address of the accessing instruction.
    pub instruction: u64,
    /// The calls that led to it; the instruction itself is not part of it.
    pub stack: u32,
    /// The core, counted from 0.
    pub core: u8,
    /// First byte touched, within the line.
    pub offset: u8,
    /// Number of bytes touched; the access ends within the line.
    pub size_bytes: u8,
    /// What it does to them.
    pub kind: AccessKind,
}

impl Access {
    /// The touched bytes, bit *i* for byte *i* of the line.
    pub fn byte_mask(&self) -> u64 {
        let ones = if self.size_bytes >= 64 { u64::MAX } else { (1u64 << self.size_bytes) - 1 };
        ones << self.offset
    }
}

/// When a core made an access: how many of the accesses of its log that count came before it, the first time and the last
/// time. An access that a border of lines cuts in two was made at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// The first time.
    pub first: u32,
    /// The last time, no earlier.
    pub last: u32,
}

/// A line that two cores touched in a window, at least one of them writing; or, where the tracer was asked for neighbours, one
/// of two lines of a pair that are so touched between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLine {
    /// Virtual address of the line, a multiple of 64.
    pub address: u64,
    /// Physical address of the line, where the tracer knew it.
    pub physical: Option<u64>,
    /// Captures of the objects in the line, each of the size that the header announces.
    pub captures: Vec<Vec<u8>>,
    /// The distinct accesses: core by core, each core's in order of first occurrence.
    pub accesses: Vec<Access>,
    /// When each of them was made: one for each access.
    pub moments: Vec<Moments>,
}

/// What one window showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Number of the window since the tracer was attached, from 0, without gaps.
    pub sequence: u64,
    /// Accesses that found no room in the tracer's buffers. Anything but 0 makes the window worthless.
    pub lost_accesses: u64,
    /// Accesses that count, per core.
    pub counted_accesses: Vec<u64>,
    /// Accesses that count, per core, exact repetitions of the same instruction left out: all [`Moments`] lie below. 0 in a
    /// window without shared lines.
    pub logged_accesses: Vec<u32>,
    /// Conflicting lines that each rule removed, in the order of [`Rule::ALL`].
    pub ignored_lines: [u32; RULE_COUNT],
    /// The shared lines, by ascending address (virtual, then physical: two processes may use one virtual address).
    pub lines: Vec<SharedLine>,
}

impl Window {
    /// Conflicting lines that one rule removed.
    pub fn ignored_by(&self, rule: Rule) -> u32 {
        self.ignored_lines[rule as usize]
    }
}

/// What a reader meets, one at a time. New stack nodes are kept by the reader and not reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A window ended.
    Window(Window),
    /// All nodes of call stacks known so far are void; numbering starts again.
    StackReset,
    /// A batch ended after this many windows: all that was traced so far has been read.
    Flush(u64),
    /// The traced system ended after this many windows; nothing follows.
    End(u64),
    /// The tracer cannot go on; one line that says why.
    Message(String),
}
