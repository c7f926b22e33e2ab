//! Reads a trace from a file or a pipe, record by record, and believes nothing of it.
//!
//! Every count is checked against the bytes that are there before anything is allocated for it, every reference (stack
//! nodes, cores, bytes within the line) against what it refers to, every record against its checksum. What does not
//! hold gives a [`TraceError`] with the position of the offending byte; the reader is then at its end.

use std::io::{ErrorKind, Read};

use crate::OBJECT_ALIGNMENT_BYTES;
use crate::encode::{ACCESS_BYTES, LINE_HEADER_BYTES, NO_PHYSICAL_ADDRESS};
use crate::record::{
    Access, AccessKind, Event, HEADER_BYTES, Header, MAGIC, MAX_BODY_BYTES, MAX_CAPTURE_BYTES, MAX_CAPTURES, MAX_CORES,
    MAX_STACK_NODES, Mode, Moments, RECORD_HEADER_BYTES, ROOT_NODE, SharedLine, StackNode, VERSION, Window, kind,
};
use crate::rules::RULE_COUNT;

/// Why a trace cannot be read on, and where.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The bytes are not what the format says.
    #[error("trace damaged at byte {position}: {problem}")]
    Damaged {
        /// Position of the first byte of the part that is wrong, from the start of the trace.
        position: u64,
        /// What was expected and what came.
        problem: String,
    },
    /// The bytes end too early.
    #[error("trace cut off at byte {position}: expected {expected}")]
    CutOff {
        /// Number of bytes that there are.
        position: u64,
        /// What should have followed.
        expected: &'static str,
    },
    /// The file or pipe cannot be read.
    #[error("trace unreadable at byte {position}: {source}")]
    Unreadable {
        /// Number of bytes read before.
        position: u64,
        /// What the operating system says.
        source: std::io::Error,
    },
}

fn damaged(position: u64, problem: String) -> TraceError {
    TraceError::Damaged { position, problem }
}

/// Reads the records of one trace in their order.
pub struct TraceDecoder<R> {
    source: R,
    position: u64,
    header: Header,
    nodes: Vec<StackNode>,
    body: Vec<u8>,
    window_count: u64,
    ended: bool,
}

impl<R: Read> TraceDecoder<R> {
    /// Reads the header; blocks until it is there.
    ///
    /// # Errors
    /// [`TraceError`] if the source is no trace, or one of another version.
    pub fn new(mut source: R) -> Result<Self, TraceError> {
        let mut bytes = [0; HEADER_BYTES];
        let mut position = 0;
        if !read_exactly(&mut source, &mut bytes, &mut position, "a header of 32 bytes")? {
            return Err(TraceError::CutOff { position: 0, expected: "a header of 32 bytes" });
        }
        let header = parse_header(&bytes)?;
        let root = StackNode { parent: ROOT_NODE, site: 0 };
        Ok(Self { source, position, header, nodes: vec![root], body: Vec::new(), window_count: 0, ended: false })
    }

    /// The header.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The source.
    pub fn source(&mut self) -> &mut R {
        &mut self.source
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The call sites of a stack, innermost first; valid until the next [`Event::StackReset`].
    pub fn stack(&self, node: u32) -> impl Iterator<Item = u64> + '_ {
        let mut at = node;
        std::iter::from_fn(move || {
            let node = (at != ROOT_NODE).then(|| self.nodes[at as usize])?;
            at = node.parent;
            Some(node.site)
        })
    }

    /// The next event; `None` after [`Event::End`]. Blocks while a pipe is empty.
    ///
    /// # Errors
    /// [`TraceError`]; also where the source ends without [`Event::End`]. No further event follows an error.
    pub fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        if self.ended {
            return Ok(None);
        }
        let result = self.read_event();
        self.ended = matches!(result, Err(_) | Ok(Event::End(_)));
        result.map(Some)
    }

    fn read_event(&mut self) -> Result<Event, TraceError> {
        loop {
            let (record_kind, at) = self.read_record()?;
            let mut body = Body { bytes: &self.body, taken: 0, start: at };
            let event = match record_kind {
                kind::STACK_NODES => {
                    parse_stack_nodes(&mut body, &mut self.nodes)?;
                    body.finish()?;
                    continue;
                }
                kind::WINDOW => {
                    let window = parse_window(&mut body, &self.header, self.nodes.len(), self.window_count)?;
                    self.window_count += 1;
                    Event::Window(window)
                }
                kind::STACK_RESET => {
                    self.nodes.truncate(1);
                    Event::StackReset
                }
                kind::FLUSH | kind::END => {
                    let position = body.position();
                    let count = body.u64()?;
                    if count != self.window_count {
                        let expected = self.window_count;
                        return Err(damaged(position, format!("expected a count of {expected} windows, got {count}")));
                    }
                    if record_kind == kind::END { Event::End(count) } else { Event::Flush(count) }
                }
                kind::MESSAGE => match std::str::from_utf8(body.rest()) {
                    Ok(text) => Event::Message(text.to_owned()),
                    Err(error) => return Err(damaged(at, format!("expected a message in UTF-8: {error}"))),
                },
                other => {
                    let at = at - RECORD_HEADER_BYTES as u64;
                    return Err(damaged(at, format!("expected a record of kind 1 to 6, got kind {other}")));
                }
            };
            body.finish()?;
            return Ok(event);
        }
    }

    /// Reads one record's body into `self.body`; gives its kind and the position of the body's first byte.
    fn read_record(&mut self) -> Result<(u32, u64), TraceError> {
        let start = self.position;
        let mut head = [0; RECORD_HEADER_BYTES];
        let what = "a further record (the traced system ended without closing its trace)";
        if !read_exactly(&mut self.source, &mut head, &mut self.position, "the rest of a record's header")? {
            return Err(TraceError::CutOff { position: start, expected: what });
        }
        let [record_kind, length, checksum] =
            [0, 4, 8].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        if length as usize > MAX_BODY_BYTES {
            let problem = format!("expected a record of at most {MAX_BODY_BYTES} bytes, got a length of {length}");
            return Err(damaged(start + 4, problem));
        }
        let at = self.position;
        self.body.clear();
        while self.body.len() < length as usize {
            // In steps, so that a wrong length costs no more memory than bytes are really there.
            let from = self.body.len();
            self.body.resize((length as usize).min(from + (64 << 10)), 0);
            if !read_exactly(&mut self.source, &mut self.body[from..], &mut self.position, "the rest of a record")? {
                return Err(TraceError::CutOff { position: self.position, expected: "the rest of a record" });
            }
        }
        let actual = crate::encode::checksum(&head[..8], &self.body);
        if actual != checksum {
            let problem = format!("expected a record with checksum {checksum:08x}, got one with {actual:08x}");
            return Err(damaged(start, problem));
        }
        Ok((record_kind, at))
    }
}

/// Fills `bytes`; `false` if the source ended before the first of them.
fn read_exactly(
    source: &mut impl Read,
    bytes: &mut [u8],
    position: &mut u64,
    expected: &'static str,
) -> Result<bool, TraceError> {
    let mut filled = 0;
    while filled < bytes.len() {
        match source.read(&mut bytes[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(TraceError::CutOff { position: *position, expected }),
            Ok(count) => {
                filled += count;
                *position += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(TraceError::Unreadable { position: *position, source }),
        }
    }
    Ok(true)
}

fn parse_header(bytes: &[u8; HEADER_BYTES]) -> Result<Header, TraceError> {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes[..8] != MAGIC {
        return Err(damaged(0, "expected the first eight bytes of a trace; this file is something else".to_owned()));
    }
    if word(8) != VERSION {
        let problem = format!("expected format version {VERSION}, got {}; trace again with this release", word(8));
        return Err(damaged(8, problem));
    }
    let mode = match word(12) {
        0 => Mode::User,
        1 => Mode::System,
        other => return Err(damaged(12, format!("expected mode 0 (user) or 1 (system), got {other}"))),
    };
    let capture_bytes = word(16);
    if capture_bytes as usize > MAX_CAPTURE_BYTES {
        let problem = format!("expected captures of at most {MAX_CAPTURE_BYTES} bytes, got {capture_bytes}");
        return Err(damaged(16, problem));
    }
    if let Some(at) = (20..HEADER_BYTES).find(|&at| bytes[at] != 0) {
        return Err(damaged(at as u64, format!("expected a zero byte, got {}", bytes[at])));
    }
    Ok(Header { mode, capture_bytes })
}

/// The body of a record, taken from front to back.
struct Body<'a> {
    bytes: &'a [u8],
    taken: usize,
    start: u64,
}

impl<'a> Body<'a> {
    fn position(&self) -> u64 {
        self.start + self.taken as u64
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.taken
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], TraceError> {
        if self.left() < count {
            let problem = format!("expected {count} further bytes in this record, got {}", self.left());
            return Err(damaged(self.position(), problem));
        }
        let bytes = &self.bytes[self.taken..self.taken + count];
        self.taken += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], TraceError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, TraceError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, TraceError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, TraceError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn rest(&mut self) -> &'a [u8] {
        let bytes = &self.bytes[self.taken..];
        self.taken = self.bytes.len();
        bytes
    }

    fn finish(&self) -> Result<(), TraceError> {
        match self.left() {
            0 => Ok(()),
            left => Err(damaged(self.position(), format!("expected the end of this record, got {left} further bytes"))),
        }
    }
}

fn parse_stack_nodes(body: &mut Body<'_>, nodes: &mut Vec<StackNode>) -> Result<(), TraceError> {
    let position = body.position();
    let first = body.u32()? as usize;
    if first != nodes.len() {
        let problem = format!("expected stack nodes from number {}, got number {first}", nodes.len());
        return Err(damaged(position, problem));
    }
    let position = body.position();
    let count = body.u32()? as usize;
    if count > MAX_STACK_NODES - nodes.len() {
        let problem = format!("expected at most {MAX_STACK_NODES} stack nodes, got {count} more than {}", nodes.len());
        return Err(damaged(position, problem));
    }
    if count * 12 != body.left() {
        let problem = format!("expected {count} stack nodes of 12 bytes, got {} bytes", body.left());
        return Err(damaged(position, problem));
    }
    nodes.reserve(count);
    for _ in 0..count {
        let site = body.u64()?;
        let position = body.position();
        let parent = body.u32()?;
        if parent as usize >= nodes.len() {
            let problem = format!("expected the parent of stack node {} before it, got {parent}", nodes.len());
            return Err(damaged(position, problem));
        }
        nodes.push(StackNode { parent, site });
    }
    Ok(())
}

fn parse_window(
    body: &mut Body<'_>,
    header: &Header,
    node_count: usize,
    expected_sequence: u64,
) -> Result<Window, TraceError> {
    let position = body.position();
    let sequence = body.u64()?;
    if sequence != expected_sequence {
        return Err(damaged(position, format!("expected window {expected_sequence}, got {sequence}")));
    }
    let lost_accesses = body.u64()?;
    let position = body.position();
    let core_count = usize::from(body.u16()?);
    if core_count > MAX_CORES {
        return Err(damaged(position, format!("expected at most {MAX_CORES} cores, got {core_count}")));
    }
    let position = body.position();
    let rule_count = usize::from(body.u16()?);
    if rule_count != RULE_COUNT {
        return Err(damaged(position, format!("expected {RULE_COUNT} rules, got {rule_count}")));
    }
    let position = body.position();
    let line_count = body.u32()? as usize;
    let counted_accesses = (0..core_count).map(|_| body.u64()).collect::<Result<Vec<_>, _>>()?;
    let logged_accesses = (0..core_count).map(|_| body.u32()).collect::<Result<Vec<_>, _>>()?;
    let mut ignored_lines = [0; RULE_COUNT];
    for count in &mut ignored_lines {
        *count = body.u32()?;
    }
    if line_count > body.left() / LINE_HEADER_BYTES {
        return Err(damaged(position, format!("expected {line_count} lines, got {} bytes", body.left())));
    }
    let mut lines: Vec<SharedLine> = Vec::with_capacity(line_count);
    for _ in 0..line_count {
        let position = body.position();
        let line = parse_line(body, header, &logged_accesses, node_count)?;
        if lines.last().is_some_and(|last| (last.address, last.physical) >= (line.address, line.physical)) {
            return Err(damaged(position, format!("expected lines by ascending address, got {:#x}", line.address)));
        }
        lines.push(line);
    }
    Ok(Window { sequence, lost_accesses, counted_accesses, logged_accesses, ignored_lines, lines })
}

fn parse_line(
    body: &mut Body<'_>,
    header: &Header,
    logged_accesses: &[u32],
    node_count: usize,
) -> Result<SharedLine, TraceError> {
    let position = body.position();
    let address = body.u64()?;
    let physical = body.u64()?;
    if !address.is_multiple_of(OBJECT_ALIGNMENT_BYTES) {
        return Err(damaged(position, format!("expected a line's address, got {address:#x}")));
    }
    if !physical.is_multiple_of(OBJECT_ALIGNMENT_BYTES) && physical != NO_PHYSICAL_ADDRESS {
        return Err(damaged(position + 8, format!("expected a line's physical address, got {physical:#x}")));
    }
    let position = body.position();
    let capture_count = usize::from(body.u16()?);
    if capture_count > MAX_CAPTURES {
        return Err(damaged(position, format!("expected at most {MAX_CAPTURES} captures, got {capture_count}")));
    }
    let access_count = usize::from(body.u16()?);
    let mut captures = Vec::with_capacity(capture_count);
    for _ in 0..capture_count {
        captures.push(body.take(header.capture_bytes as usize)?.to_vec());
    }
    let position = body.position();
    if body.left() < access_count * ACCESS_BYTES {
        return Err(damaged(position, format!("expected {access_count} accesses, got {} bytes", body.left())));
    }
    let mut accesses = Vec::with_capacity(access_count);
    let mut moments = Vec::with_capacity(access_count);
    for _ in 0..access_count {
        let position = body.position();
        let instruction = body.u64()?;
        let stack = body.u32()?;
        let [core, offset, size_bytes, kind] = body.array()?;
        if stack as usize >= node_count {
            let problem = format!("expected a stack node below {node_count}, got {stack}");
            return Err(damaged(position + 8, problem));
        }
        let Some(&logged) = logged_accesses.get(usize::from(core)) else {
            let core_count = logged_accesses.len();
            return Err(damaged(position + 12, format!("expected a core below {core_count}, got {core}")));
        };
        if size_bytes == 0 || u16::from(offset) + u16::from(size_bytes) > 64 {
            let problem = format!("expected bytes within a line, got {size_bytes} bytes from byte {offset}");
            return Err(damaged(position + 13, problem));
        }
        let Some(kind) = AccessKind::from_number(kind) else {
            let problem = format!("expected 0 (read), 1 (write) or 2 (prefetch for writing), got {kind}");
            return Err(damaged(position + 15, problem));
        };
        let made = Moments { first: body.u32()?, last: body.u32()? };
        if made.last < made.first {
            let problem = format!("expected a last time from {} on, got {}", made.first, made.last);
            return Err(damaged(position + 20, problem));
        }
        if made.last >= logged {
            return Err(damaged(position + 20, format!("expected times below {logged}, got {}", made.last)));
        }
        moments.push(made);
        accesses.push(Access { instruction, stack, core, offset, size_bytes, kind });
    }
    let physical = (physical != NO_PHYSICAL_ADDRESS).then_some(physical);
    Ok(SharedLine { address, physical, captures, accesses, moments })
}
