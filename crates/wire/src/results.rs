//! What came of the windows of a batch, in their order.
//!
//! Binary form, version 1:
//!
//! ```text
//! "CMTRESLT" version:u32 texts_offset:u32
//! windows:u32  { 0:u8 set-up:u16 { value } calls:u8 { value } observe:u16 { value }
//!              | 1:u8 why:text }
//! texts:u16    { length:u16 bytes }
//! ```

use serde_json::json;

use crate::bytes::{Reader, TEXT_LIMIT_BYTES, WireError, Writer};
use crate::value::Value;

const MAGIC: [u8; 8] = *b"CMTRESLT";
const VERSION: u32 = 1;
const RAN: u8 = 0;
const REFUSED: u8 = 1;

/// What one window gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowResult {
    /// The window was run.
    Ran {
        /// Results of the set-up steps.
        setup: Vec<Value>,
        /// Results of the calls, in the order of the test's calls (not of execution).
        calls: Vec<Value>,
        /// Results of the observation.
        observation: Vec<Value>,
    },
    /// The runner could not run it: an unknown call, an argument of the wrong kind, a limit.
    Refused(String),
}

impl WindowResult {
    /// What came of a sequence (see [`crate::case`]) as JSON text: `{"results": [...], "observation": [...]}`, or
    /// `{"refused": "why"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let list = |values: &[Value]| values.iter().map(Value::to_json).collect::<Vec<_>>();
        match self {
            Self::Ran { setup, observation, .. } => {
                json!({ "results": list(setup), "observation": list(observation) })
            }
            Self::Refused(why) => json!({ "refused": why }),
        }
        .to_string()
    }
}

/// Writes the results of one batch, window by window.
pub struct ResultsWriter {
    writer: Writer,
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
        Self { writer }
    }

    /// Adds the next window.
    ///
    /// # Errors
    /// More results than a record can count.
    pub fn push(&mut self, result: &WindowResult) -> Result<(), WireError> {
        match result {
            WindowResult::Ran { setup, calls, observation } => {
                self.writer.u8(RAN);
                self.writer.length_u16(setup.len(), "results of a set-up")?;
                setup.iter().try_for_each(|value| value.write(&mut self.writer))?;
                self.writer.length_u8(calls.len(), "results of calls")?;
                calls.iter().try_for_each(|value| value.write(&mut self.writer))?;
                self.writer.length_u16(observation.len(), "results of an observation")?;
                observation.iter().try_for_each(|value| value.write(&mut self.writer))
            }
            WindowResult::Refused(why) => {
                let mut end = why.len().min(TEXT_LIMIT_BYTES);
                while !why.is_char_boundary(end) {
                    end -= 1;
                }
                self.writer.u8(REFUSED);
                self.writer.text(&why[..end])
            }
        }
    }

    /// Ends the document; all windows must have been added.
    ///
    /// # Errors
    /// More texts than the table can count.
    pub fn finish(self) -> Result<Vec<u8>, WireError> {
        self.writer.finish()
    }
}

/// Reads results.
///
/// # Errors
/// Anything that [`ResultsWriter`] does not write.
pub fn decode(bytes: &[u8]) -> Result<Vec<WindowResult>, WireError> {
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
                WindowResult::Ran { setup, calls, observation }
            }
            REFUSED => WindowResult::Refused(reader.text()?.into_owned()),
            kind => return Err(reader.error(format!("a window of unknown kind {kind}"))),
        });
    }
    reader.finish()?;
    Ok(windows)
}
