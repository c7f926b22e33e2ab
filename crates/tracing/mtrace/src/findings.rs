//! Findings of windows, each distinct one kept once and known by a number.
//!
//! Memory grows with the number of distinct findings, not with that of windows: a window's result is a list of numbers. A
//! finding that was met before is recognised by numbers alone (places, instructions, stacks), without making its names.

use std::collections::HashMap;
use std::io::Read;

use crate::conflict::{Conflict, Places, Sharing, conflicts};
use crate::decode::{TraceDecoder, TraceError};
use crate::names::Names;
use crate::pictures::{Fields, PictureStore, Touched, touched};
use crate::record::{Access, Event, MAX_CORES, SharedLine, Window};
use crate::rules::RULE_COUNT;
use crate::sections::{self, Step};

/// One core's part in a finding, named.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamedAccess {
    /// The core.
    pub core: u8,
    /// Whether it wrote (else read).
    pub write: bool,
    /// First byte touched, within the line.
    pub offset: u8,
    /// Bytes touched.
    pub size_bytes: u8,
    /// The accessing function, without what a compiler appends to a name.
    pub function: String,
    /// Frames `function+0xoffset`, the accessing instruction first.
    pub stack: Vec<String>,
}

/// One finding, named.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// Type or variable.
    pub object: String,
    /// Path within it, or empty.
    pub field: String,
    /// Whether the cores touched common bytes.
    pub sharing: Sharing,
    /// The outermost lock under which alone both cores touched them, by its name; empty if there is none.
    pub under: String,
    /// Which file or directory the object is about, as [`kernel_naming::ObjectCapture::of_whom`] tells; empty if unknown.
    pub owner: String,
    /// The lower core's access.
    pub first: NamedAccess,
    /// The higher core's access.
    pub second: NamedAccess,
}

/// The line at which a finding was met first: an example of what its 64 bytes hold and who touched them. Another object of
/// the same type has another address, so this is no part of what a finding is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineExample {
    /// Its address.
    pub address: u64,
    /// What its bytes are called, ascending; bytes without a name are in no range.
    pub fields: Fields,
    /// What each core touched of it, by core.
    pub touched: Vec<Touched>,
}

/// A window's findings and counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedWindow {
    /// As [`Window::sequence`].
    pub sequence: u64,
    /// As [`Window::lost_accesses`].
    pub lost_accesses: u64,
    /// As [`Window::counted_accesses`].
    pub counted_accesses: Vec<u64>,
    /// As [`Window::ignored_lines`].
    pub ignored_lines: [u32; RULE_COUNT],
    /// The findings' numbers, each with that of the picture that shows it ([`PictureStore`]); each pair once, ascending.
    pub findings: Vec<(u32, u32)>,
}

/// What recognises a finding without its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FindingKey {
    sharing: Sharing,
    places: (u32, u32),
    under: Option<u32>,
    of_whom: u32,
    first: Access,
    second: Access,
}

/// All findings of a trace so far.
pub struct FindingStore {
    names: Names,
    /// Numbers by what recognises a finding; void after a reset of the trace's stacks.
    known: HashMap<FindingKey, u32>,
    numbers: HashMap<Finding, u32>,
    findings: Vec<(Finding, LineExample)>,
    pictures: PictureStore,
    /// What functions do to locks, by the function's number.
    steps: HashMap<u32, Option<Step>>,
}

impl FindingStore {
    /// An empty store.
    pub fn new(names: Names) -> Self {
        Self {
            names,
            known: HashMap::new(),
            numbers: HashMap::new(),
            findings: Vec::new(),
            pictures: PictureStore::default(),
            steps: HashMap::new(),
        }
    }

    /// The finding of a number, with the line at which it was met first.
    pub fn get(&self, number: u32) -> Option<&(Finding, LineExample)> {
        self.findings.get(number as usize)
    }

    /// The pictures of all windows so far.
    pub fn pictures(&self) -> &PictureStore {
        &self.pictures
    }

    /// Numbers given out so far.
    pub fn len(&self) -> usize {
        self.findings.len()
    }

    /// Whether no finding was met yet.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Names what a window showed.
    pub fn window<R: Read>(&mut self, window: &Window, decoder: &TraceDecoder<R>) -> NamedWindow {
        if !window.lines.is_empty() {
            self.names.update();
        }
        let Self { names, steps, .. } = self;
        let step = |instruction| {
            let function = names.function(instruction);
            *steps.entry(function).or_insert_with(|| sections::step_of(names.function_name(function)))
        };
        let sections = sections::sections(window, step);
        let mut lines = Vec::new();
        let mut found = Vec::new();
        for (place, line) in window.lines.iter().enumerate() {
            let conflicts = conflicts(line, &mut self.names);
            let Some(first) = conflicts.first() else { continue };
            for conflict in &conflicts {
                let under = sections::held_by_both(&sections, place, line, conflict);
                let under = under.map(|lock| (&window.lines[lock.line], lock.bytes));
                found.push((self.number(line, conflict, under, decoder), lines.len()));
            }
            lines.push((line, line.accesses[first.first].offset));
        }
        let pictures = self.pictures.of_window(&lines, &mut self.names);
        let mut findings: Vec<(u32, u32)> = found.into_iter().map(|(number, line)| (number, pictures[line])).collect();
        findings.sort_unstable();
        findings.dedup();
        NamedWindow {
            sequence: window.sequence,
            lost_accesses: window.lost_accesses,
            counted_accesses: window.counted_accesses.clone(),
            ignored_lines: window.ignored_lines,
            findings,
        }
    }

    /// The trace's stack numbers start again.
    pub fn forget_stacks(&mut self) {
        self.known.clear();
    }

    fn number<R: Read>(
        &mut self,
        line: &SharedLine,
        conflict: &Conflict,
        under: Option<(&SharedLine, (u8, u8))>,
        decoder: &TraceDecoder<R>,
    ) -> u32 {
        let under = under.map(|(lock, (offset, size_bytes))| self.names.place(lock, offset, size_bytes));
        let (first, second) = (line.accesses[conflict.first], line.accesses[conflict.second]);
        let places = (conflict.place, conflict.other_place);
        let of_whom = self.names.of_whom(line, [first, second]);
        let key = FindingKey { sharing: conflict.sharing, places, under, of_whom, first, second };
        if let Some(&number) = self.known.get(&key) {
            return number;
        }
        let (object, field) = self.names.pair(line, [first, second], conflict.sharing);
        let finding = Finding {
            object,
            field,
            sharing: conflict.sharing,
            under: under.map_or_else(String::new, |place| self.names.place_name(place)),
            owner: self.names.of_whom_text(of_whom).to_owned(),
            first: self.named_access(first, decoder),
            second: self.named_access(second, decoder),
        };
        let next = self.findings.len() as u32;
        let number = *self.numbers.entry(finding.clone()).or_insert(next);
        if number == next {
            let fields = self.names.fields(line);
            self.findings.push((finding, LineExample { address: line.address, fields, touched: touched(line) }));
        }
        self.known.insert(key, number);
        number
    }

    fn named_access<R: Read>(&mut self, access: Access, decoder: &TraceDecoder<R>) -> NamedAccess {
        let function = self.names.function(access.instruction);
        let sites = std::iter::once(access.instruction).chain(decoder.stack(access.stack));
        NamedAccess {
            core: access.core,
            write: access.write,
            offset: access.offset,
            size_bytes: access.size_bytes,
            function: self.names.function_name(function).to_owned(),
            stack: sites.flat_map(|site| self.names.frames(site)).collect(),
        }
    }
}

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEnd {
    /// Everything that was traced so far has been read; more may follow.
    Flush,
    /// The traced system ended.
    End,
}

/// Why a trace cannot be analysed on.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// The trace is damaged, or ends too early.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The tracer gave up.
    #[error("the tracer says: {0}")]
    Tracer(String),
}

/// A trace that is read batch by batch, its windows named.
pub struct TraceAnalyzer<R> {
    decoder: TraceDecoder<R>,
    store: FindingStore,
    ended: bool,
}

impl<R: Read> TraceAnalyzer<R> {
    /// Reads the header; blocks until it is there.
    ///
    /// # Errors
    /// [`AnalysisError`] if the source is no trace.
    pub fn new(source: R, names: Names) -> Result<Self, AnalysisError> {
        let decoder = TraceDecoder::new(source)?;
        Ok(Self { decoder, store: FindingStore::new(names), ended: false })
    }

    /// The findings of all windows so far.
    pub fn findings(&self) -> &FindingStore {
        &self.store
    }

    /// The source.
    pub fn source(&mut self) -> &mut R {
        self.decoder.source()
    }

    /// Reads up to the end of the present batch, or of the trace; `None` behind the trace's end.
    ///
    /// # Errors
    /// [`AnalysisError`]; the windows before it are in `windows`.
    pub fn read_batch(&mut self, windows: &mut Vec<NamedWindow>) -> Result<Option<BatchEnd>, AnalysisError> {
        while !self.ended {
            match self.decoder.next_event()? {
                Some(Event::Window(window)) => {
                    let named = self.store.window(&window, &self.decoder);
                    debug_assert!(named.counted_accesses.len() <= MAX_CORES);
                    windows.push(named);
                }
                Some(Event::StackReset) => self.store.forget_stacks(),
                Some(Event::Flush(_)) => return Ok(Some(BatchEnd::Flush)),
                Some(Event::Message(text)) => return Err(AnalysisError::Tracer(text)),
                Some(Event::End(_)) => {
                    self.ended = true;
                    return Ok(Some(BatchEnd::End));
                }
                None => self.ended = true,
            }
        }
        Ok(None)
    }
}
