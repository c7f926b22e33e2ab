//! What came of the windows of a batch, in their order.
//!
//! Binary form, version 2:
//!
//! ```text
//! "CMTRESLT" version:u32 texts_offset:u32
//! windows:u32  { 0:u8 set-up:u16 { value } calls:u8 { value } observe:u16 { value } aborted:u8
//!              | 1:u8 why:text
//!              | 2:u8 why:text }
//! texts:u16    { length:u16 bytes }
//! ```
//! `aborted` has bit *i* set if the transaction of call *i* was aborted, and the call made again.

use serde_json::json;

use crate::bytes::{Reader, TEXT_LIMIT_BYTES, WireError, Writer};
use crate::value::{self, Value};

const MAGIC: [u8; 8] = *b"CMTRESLT";
const VERSION: u32 = 2;
const RAN: u8 = 0;
const REFUSED: u8 = 1;
const UNSUPPORTED: u8 = 2;

/// What one window gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowResult<'a> {
    /// The window was run.
    Ran {
        /// Results of the set-up steps.
        setup: Vec<Value<'a>>,
        /// Results of the calls, in the order of the test's calls (not of execution).
        calls: Vec<Value<'a>>,
        /// Results of the observation.
        observation: Vec<Value<'a>>,
        /// Bit *i*: the transaction of call *i* was aborted, and the call made again.
        aborted: u8,
    },
    /// The runner could not run it: an unknown call, an argument of the wrong kind, a limit.
    Refused(String),
    /// The target does not offer what the window needs.
    Unsupported(String),
}

impl WindowResult<'_> {
    /// What came of a sequence (see [`crate::case`]) as JSON text: `{"results": [...], "observation": [...]}`, or
    /// `{"refused": "why"}`, or `{"unsupported": "why"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let list = |values: &[Value<'_>]| values.iter().map(Value::to_json).collect::<Vec<_>>();
        match self {
            Self::Ran { setup, observation, .. } => {
                json!({ "results": list(setup), "observation": list(observation) })
            }
            Self::Refused(why) => json!({ "refused": why }),
            Self::Unsupported(why) => json!({ "unsupported": why }),
        }
        .to_string()
    }
}

/// Writes the results of one batch as they come: window by window, in each the values of set-up, calls and observation.
///
/// Values are written one by one, without being built first; a structure announces its fields, each of which is a name and
/// a value. What cannot be written is reported at the end.
pub struct ResultsWriter {
    writer: Writer,
    /// Where the window under way begins.
    window: usize,
    problem: Option<WireError>,
}

/// Items of a sequence that is being written.
pub struct Items {
    place: usize,
    count: usize,
}

impl Items {
    /// An item follows.
    pub fn next(&mut self) {
        self.count += 1;
    }
}

impl ResultsWriter {
    /// Starts results of `windows` windows in `buffer`, whose memory is used again.
    ///
    /// # Panics
    /// If there are 2^32 windows or more.
    #[must_use]
    pub fn start(buffer: Vec<u8>, windows: usize) -> Self {
        let mut writer = Writer::start(buffer, MAGIC, VERSION);
        writer.u32(u32::try_from(windows).expect("a batch has fewer than 2^32 windows"));
        Self { window: writer.place(), writer, problem: None }
    }

    fn note(&mut self, written: Result<(), WireError>) {
        if let Err(problem) = written {
            self.problem.get_or_insert(problem);
        }
    }

    /// Begins a window that is run; this many values of its set-up follow.
    pub fn setup(&mut self, count: usize) {
        self.window = self.writer.place();
        self.writer.u8(RAN);
        let written = self.writer.length_u16(count, "results of a set-up");
        self.note(written);
    }

    /// This many results of calls follow, in the order of the test's calls.
    pub fn calls(&mut self, count: usize) {
        let written = self.writer.length_u8(count, "results of calls");
        self.note(written);
    }

    /// This many values of the observation follow.
    pub fn observation(&mut self, count: usize) {
        let written = self.writer.length_u16(count, "results of an observation");
        self.note(written);
    }

    /// Ends a window that was run; bit *i* says that the transaction of call *i* was aborted.
    pub fn end(&mut self, aborted: u8) {
        self.writer.u8(aborted);
    }

    /// The window was not run after all: takes back what was written since [`ResultsWriter::setup`].
    pub fn refused(&mut self, why: &str) {
        self.not_run(REFUSED, why);
    }

    /// As [`ResultsWriter::refused`], since the target does not offer what the window needs.
    pub fn unsupported(&mut self, why: &str) {
        self.not_run(UNSUPPORTED, why);
    }

    fn not_run(&mut self, kind: u8, why: &str) {
        let mut end = why.len().min(TEXT_LIMIT_BYTES);
        while !why.is_char_boundary(end) {
            end -= 1;
        }
        self.writer.back_to(self.window);
        self.writer.u8(kind);
        let written = self.writer.text(&why[..end]);
        self.note(written);
    }

    /// The place of the next value, for [`ResultsWriter::value_at`].
    #[must_use]
    pub fn place(&self) -> usize {
        self.writer.place()
    }

    /// The value that was written at a place.
    ///
    /// # Errors
    /// No value was written there.
    pub fn value_at(&self, place: usize) -> Result<Value<'_>, WireError> {
        Value::read(&mut self.writer.read_from(place))
    }

    /// Writes a value that has been built.
    pub fn value(&mut self, value: &Value<'_>) {
        let written = value.write(&mut self.writer);
        self.note(written);
    }

    /// Writes [`Value::Null`].
    pub fn null(&mut self) {
        self.writer.u8(value::NULL);
    }

    /// Writes a truth value.
    pub fn flag(&mut self, flag: bool) {
        self.writer.u8(if flag { value::TRUE } else { value::FALSE });
    }

    /// Writes a number.
    pub fn number(&mut self, number: i64) {
        self.writer.u8(value::INT);
        self.writer.i64(number);
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.writer.u8(value::TEXT);
        let written = self.writer.text(text);
        self.note(written);
    }

    /// Writes an error number.
    pub fn errno(&mut self, number: u16) {
        self.writer.u8(value::ERRNO);
        self.writer.u16(number);
    }

    /// Writes a signal's number.
    pub fn signal(&mut self, number: u8) {
        self.writer.u8(value::SIGNAL);
        self.writer.u8(number);
    }

    /// Writes what the implementation chose.
    pub fn opaque(&mut self, sort: &'static str, id: u64) {
        self.writer.u8(value::OPAQUE);
        let written = self.writer.static_text(sort);
        self.note(written);
        self.writer.u64(id);
    }

    /// Writes a point in time.
    pub fn time(&mut self, nanoseconds: i64) {
        self.writer.u8(value::TIME);
        self.writer.i64(nanoseconds);
    }

    /// Begins a structure; this many fields follow, each by [`ResultsWriter::field`] and a value.
    pub fn structure(&mut self, fields: u8) {
        self.writer.u8(value::STRUCT);
        self.writer.u8(fields);
    }

    /// Names the value that follows.
    pub fn field(&mut self, name: &'static str) {
        let written = self.writer.static_text(name);
        self.note(written);
    }

    /// Begins a sequence, whose values follow; [`Items::next`] is to be called for each.
    #[must_use]
    pub fn sequence(&mut self) -> Items {
        self.writer.u8(value::SEQ);
        self.writer.u16(0);
        Items { place: self.writer.place() - 2, count: 0 }
    }

    /// Ends a sequence.
    #[allow(clippy::needless_pass_by_value, reason = "a sequence ends once")]
    pub fn end_sequence(&mut self, items: Items) {
        match u16::try_from(items.count) {
            Ok(count) => self.writer.set_u16(items.place, count),
            Err(_) => self.note(Err(WireError::new(format!("{} items: at most 65535 fit", items.count)))),
        }
    }

    /// Ends the document; all windows must have been written.
    ///
    /// # Errors
    /// A result has more parts, or longer texts, than a record can count.
    pub fn finish(self) -> Result<Vec<u8>, WireError> {
        self.problem.map_or_else(|| self.writer.finish(), Err)
    }
}

/// Reads results.
///
/// # Errors
/// Anything that [`ResultsWriter`] does not write.
pub fn decode(bytes: &[u8]) -> Result<Vec<WindowResult<'_>>, WireError> {
    let mut reader = Reader::start(bytes, MAGIC, VERSION, "results")?;
    let mut windows = Vec::new();
    for _ in 0..reader.count_u32(3)? {
        windows.push(match reader.u8()? {
            RAN => {
                let count = reader.u16()?;
                let setup = (0..count).map(|_| Value::read(&mut reader)).collect::<Result<_, _>>()?;
                let count = reader.u8()?;
                let calls = (0..count).map(|_| Value::read(&mut reader)).collect::<Result<_, _>>()?;
                let count = reader.u16()?;
                let observation = (0..count).map(|_| Value::read(&mut reader)).collect::<Result<_, _>>()?;
                WindowResult::Ran { setup, calls, observation, aborted: reader.u8()? }
            }
            REFUSED => WindowResult::Refused(reader.text()?.into_owned()),
            UNSUPPORTED => WindowResult::Unsupported(reader.text()?.into_owned()),
            kind => return Err(reader.error(format!("a window of unknown kind {kind}"))),
        });
    }
    reader.finish()?;
    Ok(windows)
}
