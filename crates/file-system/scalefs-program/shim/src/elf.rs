//! Programs as files: what their headers say.

use crate::constants::ENOEXEC;

/// Bytes of the header, and of an entry of the table of segments.
pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const SEGMENT_BYTES: usize = 56;
/// Segments of one program at most.
pub(crate) const MAX_SEGMENTS: usize = 64;

const CLASS_64: u8 = 2;
const X86_64: u16 = 62;
const EXECUTABLE: u16 = 2;
const SHARED_OBJECT: u16 = 3;

pub(crate) const LOAD: u32 = 1;
pub(crate) const INTERPRETER: u32 = 3;
pub(crate) const TABLE: u32 = 6;

/// The header of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// Whether it lies where its segments say, and nowhere else.
    pub(crate) is_fixed: bool,
    pub(crate) entry: u64,
    pub(crate) table_offset: u64,
    pub(crate) segment_count: usize,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) file_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) align: u64,
}

fn word<const COUNT: usize>(bytes: &[u8], at: usize) -> [u8; COUNT] {
    bytes[at..at + COUNT].try_into().unwrap_or([0; COUNT])
}

/// Whether these first bytes are of a program for this processor.
///
/// # Errors
/// ENOEXEC, also for one of 32 bits.
pub(crate) fn check_head(head: &[u8]) -> Result<(), i32> {
    let is_program = head.len() >= HEADER_BYTES && head.starts_with(b"\x7fELF") && head[4] == CLASS_64;
    if is_program && header(head).is_some() { Ok(()) } else { Err(ENOEXEC) }
}

/// The header in these bytes, if it is of a program for this processor.
pub(crate) fn header(bytes: &[u8]) -> Option<Header> {
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(b"\x7fELF") || bytes[4] != CLASS_64 {
        return None;
    }
    let kind = u16::from_le_bytes(word(bytes, 16));
    let segment_count = usize::from(u16::from_le_bytes(word(bytes, 56)));
    let is_known = matches!(kind, EXECUTABLE | SHARED_OBJECT)
        && u16::from_le_bytes(word(bytes, 18)) == X86_64
        && usize::from(u16::from_le_bytes(word(bytes, 54))) == SEGMENT_BYTES
        && (1..=MAX_SEGMENTS).contains(&segment_count);
    is_known.then(|| Header {
        is_fixed: kind == EXECUTABLE,
        entry: u64::from_le_bytes(word(bytes, 24)),
        table_offset: u64::from_le_bytes(word(bytes, 32)),
        segment_count,
    })
}

/// The segment in these bytes.
pub(crate) fn segment(bytes: &[u8; SEGMENT_BYTES]) -> Segment {
    let word_at = |at| u64::from_le_bytes(word(bytes, at));
    Segment {
        kind: u32::from_le_bytes(word(bytes, 0)),
        flags: u32::from_le_bytes(word(bytes, 4)),
        offset: word_at(8),
        address: word_at(16),
        file_bytes: word_at(32),
        memory_bytes: word_at(40),
        align: word_at(48).max(1),
    }
}
