//! Findings of windows, each distinct one kept once and known by a number.
//!
//! Memory grows with the number of distinct findings, not with that of windows: a window's result is a list of numbers. A
//! finding that was met before is recognised by numbers alone (places, instructions, stacks), without making its names.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use crate::conflict::{Conflict, Places, Sharing, conflicts, neighbours};
use crate::courses::{CourseAccess, course};
use crate::decode::{TraceDecoder, TraceError};
use crate::names::Names;
use crate::pictures::{Fields, PictureStore, Touched, touched};
use crate::record::{Access, AccessKind, Event, MAX_CORES, SharedLine, Window};
use crate::rules::RULE_COUNT;
use crate::sections::{self, Section, Step};
use crate::{LINE_BYTES, PAIR_BYTES};

/// One core's part in a finding, named.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamedAccess {
    /// The core.
    pub core: u8,
    /// What it did.
    pub kind: AccessKind,
    /// First byte touched, within the line; of neighbours within the pair of lines.
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
    /// What that lock is about, as `owner` says it of the object; empty if there is none, or it is unknown.
    pub under_owner: String,
    /// Which of several locks of one name and owner it lies under, or is: from 0 on, in the order in which they were taken.
    pub lock_number: u32,
    /// Which file or directory the object is about, as [`kernel_naming::ObjectCapture::of_whom`] tells; empty if unknown.
    pub owner: String,
    /// The lower core's access.
    pub first: NamedAccess,
    /// The higher core's access.
    pub second: NamedAccess,
}

/// The line, of neighbours the pair of lines, at which a finding was met first: an example of what its bytes hold and who
/// touched them. Another object of the same type has another address, so this is no part of what a finding is.
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
    /// As [`Window::logged_accesses`].
    pub logged_accesses: Vec<u32>,
    /// The objects that show findings: the number of each one's picture, and the courses of its lines.
    pub objects: Vec<(u32, Vec<Vec<CourseAccess>>)>,
    /// The findings' numbers, each with that of the picture that shows it ([`PictureStore`]); each pair once, ascending.
    pub findings: Vec<(u32, u32)>,
}

/// What a lock is called: its place, and what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LockName {
    place: u32,
    of_whom: u32,
}

/// What recognises a finding without its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FindingKey {
    sharing: Sharing,
    places: (u32, u32),
    under: Option<LockName>,
    lock_number: u32,
    of_whom: u32,
    /// Where the accesses' lines begin in their pair, of neighbours; else 0.
    starts: [u8; 2],
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
    /// What instructions do to locks.
    steps: HashMap<u64, Option<Step>>,
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
        let step = |instruction| *steps.entry(instruction).or_insert_with(|| names.step(instruction));
        let sections = sections::sections(window, step);
        let mut found: Vec<([usize; 2], Conflict)> = Vec::new();
        let mut alone = Vec::new();
        for (place, line) in window.lines.iter().enumerate() {
            let before = found.len();
            found.extend(conflicts(line, names).into_iter().map(|conflict| ([place; 2], conflict)));
            if found.len() == before {
                alone.push(place);
            }
        }
        for pair in pairs(&window.lines, alone) {
            let conflict = neighbours(pair.map(|place| &window.lines[place]), names);
            found.extend(conflict.map(|(conflict, at)| (at.map(|side| pair[side]), conflict)));
        }
        let mut drawn: BTreeMap<usize, u8> = BTreeMap::new();
        for (places, conflict) in &found {
            for (place, index) in [(places[0], conflict.first), (places[1], conflict.second)] {
                drawn.entry(place).or_insert(window.lines[place].accesses[index].offset);
            }
        }
        let locks = locks(&sections, &window.lines, names);
        let numbered = found.iter().map(|(places, conflict)| {
            let under = sections::held_by_both(&sections, &window.lines, *places, conflict);
            // Members of a lock that are called as it is are the lock, not what lies under it.
            let is_member = |section: &Section, name: LockName| {
                *places == [section.line; 2] && [conflict.place, conflict.other_place] == [name.place; 2]
            };
            let lock = under
                .and_then(|section| locks.get(&section.lock()).copied().filter(|(name, _)| !is_member(section, *name)));
            let own = under.filter(|_| lock.is_none());
            let itself = || own.or_else(|| sections::is_lock(&sections, &window.lines, *places, conflict));
            let number = lock.or_else(|| itself().and_then(|section| locks.get(&section.lock())).copied());
            let under = (lock.map(|(name, _)| name), number.map_or(0, |(_, number)| number));
            self.number(places.map(|place| &window.lines[place]), conflict, under, decoder)
        });
        let numbers: Vec<u32> = numbered.collect();
        let lines: Vec<(&SharedLine, u8)> =
            drawn.iter().map(|(&place, &offset)| (&window.lines[place], offset)).collect();
        let objects = self.pictures.of_window(&lines, &mut self.names);
        let places: Vec<usize> = drawn.into_keys().collect();
        let pictures: HashMap<usize, u32> = objects
            .iter()
            .flat_map(|(number, members)| members.iter().map(|&index| (places[index], *number)))
            .collect();
        let courses = |members: &[usize]| members.iter().map(|&index| course(lines[index].0)).collect();
        let objects = objects.iter().map(|(number, members)| (*number, courses(members))).collect();
        let shown = numbers.into_iter().zip(&found).map(|(number, (places, _))| (number, pictures[&places[0]]));
        let mut findings: Vec<(u32, u32)> = shown.collect();
        findings.sort_unstable();
        findings.dedup();
        NamedWindow {
            sequence: window.sequence,
            lost_accesses: window.lost_accesses,
            counted_accesses: window.counted_accesses.clone(),
            logged_accesses: window.logged_accesses.clone(),
            objects,
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
        lines: [&SharedLine; 2],
        conflict: &Conflict,
        (under, lock_number): (Option<LockName>, u32),
        decoder: &TraceDecoder<R>,
    ) -> u32 {
        let (first, second) = (lines[0].accesses[conflict.first], lines[1].accesses[conflict.second]);
        let sides = [(lines[0], first), (lines[1], second)];
        let places = (conflict.place, conflict.other_place);
        let of_whom = self.names.of_whom(sides);
        let starts = match conflict.sharing {
            Sharing::True | Sharing::False => [0, 0],
            Sharing::Neighbour => lines.map(start_in_pair),
        };
        let key = FindingKey { sharing: conflict.sharing, places, under, lock_number, of_whom, starts, first, second };
        if let Some(&number) = self.known.get(&key) {
            return number;
        }
        let (object, field) = self.names.pair(sides, conflict.sharing);
        let finding = Finding {
            object,
            field,
            sharing: conflict.sharing,
            under: under.map_or_else(String::new, |lock| self.names.place_name(lock.place)),
            under_owner: under.map_or("", |lock| self.names.of_whom_text(lock.of_whom)).to_owned(),
            lock_number,
            owner: self.names.of_whom_text(of_whom).to_owned(),
            first: self.named_access(first, starts[0], decoder),
            second: self.named_access(second, starts[1], decoder),
        };
        let next = self.findings.len() as u32;
        let number = *self.numbers.entry(finding.clone()).or_insert(next);
        if number == next {
            let example = match conflict.sharing {
                Sharing::True | Sharing::False => self.example(lines[0]),
                Sharing::Neighbour => self.example_of_pair(lines),
            };
            self.findings.push((finding, example));
        }
        self.known.insert(key, number);
        number
    }

    fn example(&mut self, line: &SharedLine) -> LineExample {
        LineExample { address: line.address, fields: self.names.fields(line), touched: touched(line) }
    }

    /// Both lines as one of twice the size.
    fn example_of_pair(&mut self, lines: [&SharedLine; 2]) -> LineExample {
        let [lower, upper] = if start_in_pair(lines[0]) == 0 { lines } else { [lines[1], lines[0]] };
        let mut example = self.example(lower);
        let behind = self.example(upper);
        let moved = |(start, size): (u8, u8)| (start + LINE_BYTES as u8, size);
        example.fields.extend(behind.fields.into_iter().map(|(range, name)| (moved(range), name)));
        for Touched { core, read, written } in behind.touched {
            let place = example.touched.partition_point(|one| one.core < core);
            if example.touched.get(place).is_none_or(|one| one.core != core) {
                example.touched.insert(place, Touched { core, read: Vec::new(), written: Vec::new() });
            }
            let one = &mut example.touched[place];
            one.read.extend(read.into_iter().map(moved));
            one.written.extend(written.into_iter().map(moved));
        }
        example
    }

    fn named_access<R: Read>(&mut self, access: Access, start: u8, decoder: &TraceDecoder<R>) -> NamedAccess {
        let function = self.names.function(access.instruction);
        let sites = std::iter::once(access.instruction).chain(decoder.stack(access.stack));
        NamedAccess {
            core: access.core,
            kind: access.kind,
            offset: start + access.offset,
            size_bytes: access.size_bytes,
            function: self.names.function_name(function).to_owned(),
            stack: sites.flat_map(|site| self.names.frames(site)).collect(),
        }
    }
}

/// The locks that several cores took, each with a number that tells it from others that are called the same: from 0 on, in
/// the order in which the lowest of the cores took them first.
fn locks(sections: &[Section], lines: &[SharedLine], names: &mut Names) -> HashMap<(usize, u8), (LockName, u32)> {
    let mut cores: HashMap<(usize, u8), (u8, bool)> = HashMap::new();
    for section in sections {
        let (first, several) = cores.entry(section.lock()).or_insert((section.core(), false));
        *several |= *first != section.core();
    }
    let mut numbers: HashMap<LockName, u32> = HashMap::new();
    let mut found = HashMap::new();
    for section in sections.iter().filter(|section| cores[&section.lock()].1) {
        found.entry(section.lock()).or_insert_with(|| {
            let (offset, size_bytes) = section.bytes;
            let line = &lines[section.line];
            let name =
                LockName { place: names.place(line, offset, size_bytes), of_whom: names.of_whom_at(line, offset) };
            let next = numbers.entry(name).or_default();
            *next += 1;
            (name, *next - 1)
        });
    }
    found
}

/// Where a line begins in its pair.
fn start_in_pair(line: &SharedLine) -> u8 {
    (line.address % PAIR_BYTES) as u8
}

/// The lines among these, by their places, that make up a pair, the lower first. The tracer writes lines that share
/// nothing by themselves only where it was asked for neighbours.
fn pairs(lines: &[SharedLine], mut places: Vec<usize>) -> Vec<[usize; 2]> {
    let memory = |place: usize| lines[place].physical.unwrap_or(lines[place].address);
    places.sort_unstable_by_key(|&place| memory(place));
    let is_pair = |&[one, other]: &[usize; 2]| {
        memory(one).is_multiple_of(PAIR_BYTES) && memory(one) + LINE_BYTES == memory(other)
    };
    places.windows(2).map(|pair| [pair[0], pair[1]]).filter(is_pair).collect()
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

    /// Reads up to the end of the present batch, or of the trace; `None` after the trace's end.
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
