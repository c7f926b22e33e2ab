//! Writes a trace into a byte buffer. The caller brings the bytes to their file, so that nothing here can block.
//!
//! The tracer calls this once per window, on its own data: the window's lines are appended one by one, without an
//! intermediate [`crate::record::Window`].

use crate::record::{
    Access, HEADER_BYTES, Header, MAGIC, MAX_BODY_BYTES, Moments, RECORD_HEADER_BYTES, SharedLine, StackNode, VERSION,
    Window, kind,
};
use crate::rules::RULE_COUNT;

/// Marks an unknown physical address.
pub(crate) const NO_PHYSICAL_ADDRESS: u64 = u64::MAX;

/// The header's bytes.
pub fn header(header: &Header) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&(header.mode as u32).to_le_bytes());
    bytes[16..20].copy_from_slice(&header.capture_bytes.to_le_bytes());
    bytes
}

/// The checksum of a record: CRC-32 over kind, length and body.
pub(crate) fn checksum(kind_and_length: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(kind_and_length);
    hasher.update(body);
    hasher.finalize()
}

/// A record under construction at the end of a buffer; [`RecordWriter::finish`] fills in length and checksum.
struct RecordWriter<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> RecordWriter<'a> {
    fn begin(buffer: &'a mut Vec<u8>, kind: u32) -> Self {
        let start = buffer.len();
        buffer.extend_from_slice(&kind.to_le_bytes());
        buffer.extend_from_slice(&[0; RECORD_HEADER_BYTES - 4]);
        Self { buffer, start }
    }

    fn finish(self) {
        let body = self.start + RECORD_HEADER_BYTES;
        let length = self.buffer.len() - body;
        assert!(length <= MAX_BODY_BYTES, "a record's body must stay below {MAX_BODY_BYTES} bytes");
        self.buffer[self.start + 4..self.start + 8].copy_from_slice(&(length as u32).to_le_bytes());
        let checksum = checksum(&self.buffer[self.start..self.start + 8], &self.buffer[body..]);
        self.buffer[self.start + 8..body].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Appends the nodes `first_id..first_id + nodes.len()`; parents must be older than their children.
pub fn stack_nodes(buffer: &mut Vec<u8>, first_id: u32, nodes: &[StackNode]) {
    for chunk in 0..nodes.len().div_ceil(NODES_PER_RECORD) {
        let from = chunk * NODES_PER_RECORD;
        let part = &nodes[from..nodes.len().min(from + NODES_PER_RECORD)];
        let record = RecordWriter::begin(buffer, kind::STACK_NODES);
        record.buffer.extend_from_slice(&(first_id + from as u32).to_le_bytes());
        record.buffer.extend_from_slice(&(part.len() as u32).to_le_bytes());
        for node in part {
            record.buffer.extend_from_slice(&node.site.to_le_bytes());
            record.buffer.extend_from_slice(&node.parent.to_le_bytes());
        }
        record.finish();
    }
}

const NODES_PER_RECORD: usize = 1 << 16;

/// Says that all nodes defined so far are void.
pub fn stack_reset(buffer: &mut Vec<u8>) {
    RecordWriter::begin(buffer, kind::STACK_RESET).finish();
}

/// Ends a batch.
pub fn flush(buffer: &mut Vec<u8>, window_count: u64) {
    let record = RecordWriter::begin(buffer, kind::FLUSH);
    record.buffer.extend_from_slice(&window_count.to_le_bytes());
    record.finish();
}

/// Ends the trace.
pub fn end(buffer: &mut Vec<u8>, window_count: u64) {
    let record = RecordWriter::begin(buffer, kind::END);
    record.buffer.extend_from_slice(&window_count.to_le_bytes());
    record.finish();
}

/// Says why the tracer cannot go on.
pub fn message(buffer: &mut Vec<u8>, text: &str) {
    let record = RecordWriter::begin(buffer, kind::MESSAGE);
    record.buffer.extend_from_slice(text.as_bytes());
    record.finish();
}

/// A window's record under construction.
pub struct WindowWriter<'a> {
    record: RecordWriter<'a>,
    line_count: u32,
    line_count_at: usize,
}

/// What stands in front of a window's lines.
pub struct WindowSummary<'a> {
    /// As [`Window::sequence`].
    pub sequence: u64,
    /// As [`Window::lost_accesses`].
    pub lost_accesses: u64,
    /// As [`Window::counted_accesses`].
    pub counted_accesses: &'a [u64],
    /// As [`Window::logged_accesses`]; one for each core that `counted_accesses` has.
    pub logged_accesses: &'a [u32],
    /// As [`Window::ignored_lines`].
    pub ignored_lines: &'a [u32; RULE_COUNT],
}

impl<'a> WindowWriter<'a> {
    /// Begins a window's record at the end of `buffer`.
    pub fn begin(buffer: &'a mut Vec<u8>, summary: &WindowSummary<'_>) -> Self {
        let record = RecordWriter::begin(buffer, kind::WINDOW);
        record.buffer.extend_from_slice(&summary.sequence.to_le_bytes());
        record.buffer.extend_from_slice(&summary.lost_accesses.to_le_bytes());
        record.buffer.extend_from_slice(&(summary.counted_accesses.len() as u16).to_le_bytes());
        record.buffer.extend_from_slice(&(RULE_COUNT as u16).to_le_bytes());
        let line_count_at = record.buffer.len();
        record.buffer.extend_from_slice(&[0; 4]);
        for count in summary.counted_accesses {
            record.buffer.extend_from_slice(&count.to_le_bytes());
        }
        assert_eq!(summary.counted_accesses.len(), summary.logged_accesses.len(), "both are of the same cores");
        for count in summary.logged_accesses {
            record.buffer.extend_from_slice(&count.to_le_bytes());
        }
        for count in summary.ignored_lines {
            record.buffer.extend_from_slice(&count.to_le_bytes());
        }
        Self { record, line_count: 0, line_count_at }
    }

    /// Whether a line with this many captures and accesses still fits into the record.
    pub fn has_room(&self, capture_bytes: usize, access_count: usize) -> bool {
        let used = self.record.buffer.len() - self.record.start - RECORD_HEADER_BYTES;
        used + LINE_HEADER_BYTES + capture_bytes + access_count * ACCESS_BYTES <= MAX_BODY_BYTES
    }

    /// Appends a line; lines come by ascending address. `captures` holds whole captures one after the other.
    pub fn line(
        &mut self,
        address: u64,
        physical: Option<u64>,
        capture_count: usize,
        captures: &[u8],
        accesses: &[Access],
        moments: &[Moments],
    ) {
        let buffer = &mut self.record.buffer;
        buffer.extend_from_slice(&address.to_le_bytes());
        buffer.extend_from_slice(&physical.unwrap_or(NO_PHYSICAL_ADDRESS).to_le_bytes());
        buffer.extend_from_slice(&(capture_count as u16).to_le_bytes());
        buffer.extend_from_slice(&(accesses.len() as u16).to_le_bytes());
        buffer.extend_from_slice(captures);
        assert_eq!(accesses.len(), moments.len(), "each access has its moments");
        for (access, made) in accesses.iter().zip(moments) {
            buffer.extend_from_slice(&access.instruction.to_le_bytes());
            buffer.extend_from_slice(&access.stack.to_le_bytes());
            buffer.extend_from_slice(&[access.core, access.offset, access.size_bytes, access.kind as u8]);
            buffer.extend_from_slice(&made.first.to_le_bytes());
            buffer.extend_from_slice(&made.last.to_le_bytes());
        }
        self.line_count += 1;
    }

    /// Completes the record.
    pub fn finish(self) {
        self.record.buffer[self.line_count_at..self.line_count_at + 4].copy_from_slice(&self.line_count.to_le_bytes());
        self.record.finish();
    }
}

/// Bytes of a line in front of its captures.
pub(crate) const LINE_HEADER_BYTES: usize = 20;
/// Bytes of one access.
pub(crate) const ACCESS_BYTES: usize = 24;

/// Appends a whole window.
pub fn window(buffer: &mut Vec<u8>, window: &Window) {
    let summary = WindowSummary {
        sequence: window.sequence,
        lost_accesses: window.lost_accesses,
        counted_accesses: &window.counted_accesses,
        logged_accesses: &window.logged_accesses,
        ignored_lines: &window.ignored_lines,
    };
    let mut writer = WindowWriter::begin(buffer, &summary);
    for SharedLine { address, physical, captures, accesses, moments } in &window.lines {
        writer.line(*address, *physical, captures.len(), &captures.concat(), accesses, moments);
    }
    writer.finish();
}
