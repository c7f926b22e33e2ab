//! The discipline: what must lie between a write of one domain and a read of another, whatever caches happened to do.
//!
//! ```text
//! writer   write ─ write back ─ drain ─ message ─►
//! reader                                  ─► message ─ invalidate ─ read
//! ```
//!
//! Time is counted by domain, one tick a call. A message carries what its sender knows of all domains (vector clocks), so that
//! the checker knows whether the write-back had ended before the message that led the reader there, and whether the reader has
//! invalidated the line after it. It judges the order of calls alone, never the bytes: a fault is found on the first run that
//! has it, also if all values were right.

use std::boxed::Box;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

use super::caches::{Clock, Version};
use super::report::{Kind, Place, Report};
use crate::line::LINE_BYTES;
use crate::memory::Use;

/// How far the write-back of a line's last write has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteBack {
    /// Not begun.
    None,
    /// Begun, and not waited for.
    Begun,
    /// Over since this time of the writer.
    Ended(u64),
}

/// The last write of a line.
#[derive(Clone, Copy, Debug)]
struct Write {
    domain: usize,
    time: u64,
    step: u64,
    place: Option<Place>,
    id: u64,
    write_back: WriteBack,
    /// A write-back was begun before this write and not waited for.
    was_early: bool,
}

/// What a domain last did with a line.
#[derive(Clone, Debug, Default)]
struct Touch {
    /// Step and time of its last read.
    read: Option<(u64, u64, Option<Place>)>,
    /// Step of its last invalidation; the writer then, and what the domain knew of it.
    invalidated: Option<(u64, usize, u64)>,
    /// The bytes that it read last, and the versions that they are of.
    bytes: Bytes,
    seen: Vec<Arc<Version>>,
}

#[derive(Clone, Debug)]
struct Bytes([u8; LINE_BYTES]);

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes([0; LINE_BYTES])
    }
}

#[derive(Debug, Default)]
struct State {
    used: Use,
    write: Option<Write>,
    /// The write that the reader of a message has taken, and when.
    accepted: Option<(u64, u64)>,
    /// The newest write that a reader has taken: it has reached memory, by itself or not.
    arrived: u64,
    /// Its newest versions, if they may be read at any time.
    versions: VecDeque<Arc<Version>>,
    touches: Box<[Touch]>,
}

/// Versions of a line that are kept, for readers that are late.
const VERSIONS: usize = 8;

/// Reports of more places than these are only counted.
const KEPT: usize = 64;

/// Judges calls.
#[derive(Debug)]
pub(super) struct Checker {
    seed: u64,
    clocks: Vec<Vec<u64>>,
    lines: Vec<State>,
    /// By domain: lines that it has written for others to read at any time, and that have not reached memory.
    unwritten: Vec<Vec<usize>>,
    /// By domain: lines whose write-back was begun.
    begun: Vec<Vec<usize>>,
    messages: HashMap<(u64, u64), Clock>,
    pub step: u64,
    pub reports: Vec<Report>,
    pub count: u64,
}

impl Checker {
    pub fn new(seed: u64, line_count: usize, domain_count: usize) -> Checker {
        Checker {
            seed,
            clocks: vec![vec![0; domain_count]; domain_count],
            lines: (0..line_count).map(|_| State::default()).collect(),
            unwritten: vec![Vec::new(); domain_count],
            begun: vec![Vec::new(); domain_count],
            messages: HashMap::new(),
            step: 0,
            reports: Vec::new(),
            count: 0,
        }
    }

    fn report(
        &mut self,
        kind: Kind,
        domain: usize,
        line: usize,
        place: Option<Place>,
        other: Option<(usize, Option<Place>)>,
    ) {
        self.count += 1;
        let same = |kept: &&mut Report| {
            kept.kind == kind && kept.domain == domain && kept.place == place && kept.other == other
        };
        if let Some(kept) = self.reports.iter_mut().find(same) {
            kept.count += 1;
        } else if self.reports.len() < KEPT {
            let (seed, step) = (self.seed, self.step);
            self.reports.push(Report { kind, seed, step, domain, line, place, other, count: 1 });
        }
    }

    /// A call of the domain begins.
    pub fn tick(&mut self, domain: usize) {
        self.clocks[domain][domain] += 1;
        self.step += 1;
    }

    pub fn declare(&mut self, line: usize, used: Use) {
        self.lines[line].used = used;
    }

    /// Whether the line may be read at any time, so that its versions matter.
    pub fn has_versions(&self, line: usize) -> bool {
        matches!(self.lines[line].used, Use::Messages { .. } | Use::Register { .. })
    }

    /// A new version of the line, which the domain writes.
    pub fn version(
        &mut self,
        domain: usize,
        line: usize,
        id: u64,
        number: u64,
        bytes: [u8; LINE_BYTES],
    ) -> Arc<Version> {
        let version = Arc::new(Version { id, number, bytes, clock: Arc::from(self.clocks[domain].as_slice()) });
        let versions = &mut self.lines[line].versions;
        versions.truncate(VERSIONS - 1);
        versions.push_front(Arc::clone(&version));
        version
    }

    fn touch(&mut self, domain: usize, line: usize) -> &mut Touch {
        let count = self.clocks.len();
        let touches = &mut self.lines[line].touches;
        if touches.is_empty() {
            *touches = vec![Touch::default(); count].into_boxed_slice();
        }
        &mut touches[domain]
    }

    /// The domain begins to read the line.
    pub fn read(&mut self, domain: usize, line: usize, place: Option<Place>) {
        let used = self.lines[line].used;
        let write = self.lines[line].write.filter(|write| write.domain != domain);
        let known = write.is_some_and(|write| self.clocks[domain][write.domain] >= write.time);
        match used {
            Use::Unchecked => {}
            Use::Data => {
                if let Some(write) = write {
                    if known {
                        self.must_be_fresh(domain, line, &write, place, true);
                    } else {
                        self.report(Kind::Race, domain, line, place, Some((write.domain, write.place)));
                    }
                }
            }
            Use::Messages { writer, .. } | Use::Register { writer } if writer != domain => {
                self.waits(domain, place);
                let touch = self.touch(domain, line);
                let invalidated = touch.invalidated.map(|(step, ..)| step);
                let read = touch.read.map(|(step, ..)| step);
                if invalidated.is_none() || invalidated < read {
                    self.report(
                        Kind::MissingInvalidate,
                        domain,
                        line,
                        place,
                        write.map(|write| (write.domain, write.place)),
                    );
                } else if let Some(write) = write.filter(|_| known) {
                    self.must_be_fresh(domain, line, &write, place, true);
                }
            }
            Use::Messages { .. } | Use::Register { .. } => {}
        }
        let (step, time) = (self.step, self.clocks[domain][domain]);
        let touch = self.touch(domain, line);
        touch.read = Some((step, time, place));
        touch.seen.clear();
    }

    /// The domain has read these bytes of the line, from `start`.
    pub fn saw(&mut self, domain: usize, line: usize, start: usize, bytes: &[u8], version: Option<&Arc<Version>>) {
        let touch = self.touch(domain, line);
        touch.bytes.0[start..start + bytes.len()].copy_from_slice(bytes);
        if let Some(version) = version
            && touch.seen.last().is_none_or(|seen| seen.id != version.id)
        {
            touch.seen.push(Arc::clone(version));
        }
    }

    /// The domain knows of the write: had it been written back before, and has the domain invalidated the line since?
    fn must_be_fresh(
        &mut self,
        domain: usize,
        line: usize,
        write: &Write,
        place: Option<Place>,
        needs_invalidate: bool,
    ) {
        let known = self.clocks[domain][write.domain];
        let write_back = match write.write_back {
            WriteBack::Ended(time) if time <= known => WriteBack::Ended(time),
            _ if write.id <= self.lines[line].arrived => WriteBack::Ended(write.time),
            other => other,
        };
        let kind = match write_back {
            WriteBack::None if write.was_early => Kind::EarlyWriteBack,
            WriteBack::None => Kind::MissingWriteBack,
            WriteBack::Begun => Kind::MissingDrain,
            WriteBack::Ended(time) if time > known => Kind::LateWriteBack,
            WriteBack::Ended(_) if !needs_invalidate => return,
            WriteBack::Ended(ended) => match self.touch(domain, line).invalidated {
                Some((_, writer, heard)) if writer == write.domain && heard >= ended => return,
                Some((step, ..)) if step > write.step => Kind::EarlyInvalidate,
                _ => Kind::MissingInvalidate,
            },
        };
        self.report(kind, domain, line, place, Some((write.domain, write.place)));
    }

    /// Others rely on the domain, or it looks at what they write and may wait: what it owes them must be in memory.
    pub fn waits(&mut self, domain: usize, place: Option<Place>) {
        for line in std::mem::take(&mut self.unwritten[domain]) {
            if let Some(write) = self.lines[line].write.filter(|write| !matches!(write.write_back, WriteBack::Ended(_)))
            {
                self.report(Kind::LeftUnwritten, domain, line, write.place.or(place), None);
            }
        }
    }

    /// The run ends: nothing may be owed.
    pub fn end(&mut self) {
        for domain in 0..self.clocks.len() {
            self.waits(domain, None);
        }
    }

    /// The domain begins to write the line; `is_all`: each of its bytes.
    pub fn write(&mut self, domain: usize, line: usize, is_all: bool, id: u64, place: Option<Place>) {
        let used = self.lines[line].used;
        let last = self.lines[line].write;
        let time = self.clocks[domain][domain];
        let others = last.filter(|write| write.domain != domain);
        match used {
            Use::Unchecked => return,
            Use::Data => {
                if let Some(write) = others {
                    if self.clocks[domain][write.domain] < write.time {
                        self.report(Kind::TwoWriters, domain, line, place, Some((write.domain, write.place)));
                    } else {
                        self.must_be_fresh(domain, line, &write, place, !is_all);
                    }
                }
                for reader in (0..self.clocks.len()).filter(|reader| *reader != domain) {
                    let read = self.lines[line].touches.get(reader).and_then(|touch| touch.read);
                    if let Some((_, time, read_place)) = read
                        && self.clocks[domain][reader] < time
                    {
                        self.report(Kind::Race, domain, line, place, Some((reader, read_place)));
                    }
                }
            }
            Use::Messages { writer, .. } | Use::Register { writer } if writer != domain => {
                self.report(Kind::TwoWriters, domain, line, place, Some((writer, last.and_then(|write| write.place))));
            }
            Use::Messages { reader, .. } => {
                if let Some(write) = last.filter(|write| write.id != id) {
                    let taken = self.lines[line].accepted;
                    let is_taken =
                        taken.is_some_and(|(id, time)| id == write.id && time <= self.clocks[domain][reader]);
                    // Another part of the same version, written by a call of its own, overwrites nothing.
                    if !is_taken && is_all {
                        self.report(Kind::OverwrittenUnread, domain, line, place, Some((reader, write.place)));
                    }
                }
            }
            Use::Register { .. } => {}
        }
        if matches!(used, Use::Messages { .. } | Use::Register { .. }) && !self.unwritten[domain].contains(&line) {
            self.unwritten[domain].push(line);
        }
        let was_early = last.is_some_and(|write| {
            write.domain == domain
                && (write.write_back == WriteBack::Begun || write.was_early && write.write_back == WriteBack::None)
        });
        let step = self.step;
        self.lines[line].write = Some(Write { domain, time, step, place, id, write_back: WriteBack::None, was_early });
    }

    /// The domain begins to write the line back.
    pub fn write_back(&mut self, domain: usize, line: usize, place: Option<Place>) {
        let State { used, write, .. } = &mut self.lines[line];
        match write {
            Some(write) if write.domain == domain && write.write_back == WriteBack::None => {
                write.write_back = WriteBack::Begun;
                self.begun[domain].push(line);
            }
            _ if *used == Use::Unchecked => {}
            _ => self.report(Kind::NeedlessWriteBack, domain, line, place, None),
        }
    }

    /// The domain has waited for its write-backs.
    pub fn drain(&mut self, domain: usize) {
        let time = self.clocks[domain][domain];
        for line in std::mem::take(&mut self.begun[domain]) {
            if let Some(write) = &mut self.lines[line].write
                && write.domain == domain
                && write.write_back == WriteBack::Begun
            {
                write.write_back = WriteBack::Ended(time);
            }
        }
        let lines = &self.lines;
        self.unwritten[domain]
            .retain(|line| lines[*line].write.is_some_and(|write| !matches!(write.write_back, WriteBack::Ended(_))));
    }

    /// The domain invalidates the line.
    pub fn invalidate(&mut self, domain: usize, line: usize, place: Option<Place>) {
        let (used, write) = (self.lines[line].used, self.lines[line].write);
        let step = self.step;
        let before = self.touch(domain, line).invalidated;
        let writer = write.map_or(domain, |write| write.domain);
        if used != Use::Unchecked {
            let is_own =
                write.is_some_and(|write| write.domain == domain && !matches!(write.write_back, WriteBack::Ended(_)));
            let reads_any_time =
                matches!(used, Use::Messages { writer, .. } | Use::Register { writer } if writer != domain);
            let is_news =
                write.is_some_and(|write| write.domain != domain && before.is_none_or(|(step, ..)| step < write.step));
            if is_own {
                self.report(Kind::InvalidatedWhileDirty, domain, line, place, None);
            } else if !reads_any_time && !is_news && !self.was_early(domain, line) {
                self.report(Kind::NeedlessInvalidate, domain, line, place, None);
            }
        }
        let heard = self.clocks[domain][writer];
        self.touch(domain, line).invalidated = Some((step, writer, heard));
    }

    /// The last invalidation came before the message: a second one is not needless.
    fn was_early(&mut self, domain: usize, line: usize) -> bool {
        let Some(write) = self.lines[line].write else { return false };
        let WriteBack::Ended(ended) = write.write_back else { return true };
        let invalidated = self.touch(domain, line).invalidated;
        write.domain != domain && invalidated.is_some_and(|(_, _, heard)| heard < ended)
    }

    /// The domain takes what it last read of the lines for a version, and whole.
    pub fn accept(&mut self, domain: usize, lines: core::ops::Range<usize>, number: u64, place: Option<Place>) {
        let time = self.clocks[domain][domain];
        let mut first = None;
        for line in lines.filter(|line| self.has_versions(*line)).collect::<Vec<_>>() {
            let other = self.lines[line].write.map(|write| (write.domain, write.place));
            let touch = self.touch(domain, line);
            let (bytes, seen) = (touch.bytes.0, std::mem::take(&mut touch.seen));
            // Words that are equal in two versions tear nothing.
            let known = seen.iter().chain(&self.lines[line].versions);
            let of_number = known.clone().find(|version| number != 0 && version.number == number);
            let same = match of_number {
                Some(version) if version.bytes == bytes => Some(Arc::clone(version)),
                _ => known.clone().find(|version| version.bytes == bytes).cloned(),
            };
            let Some(version) = same else {
                let kind = if seen.is_empty() { Kind::OtherVersionAccepted } else { Kind::TornAccepted };
                self.report(kind, domain, line, place, other);
                continue;
            };
            if number == 0 && first.is_some_and(|id| id != version.id) {
                self.report(Kind::TornAccepted, domain, line, place, other);
            }
            first = Some(version.id);
            let is_message = matches!(self.lines[line].used, Use::Messages { .. });
            // A reader may look at a message again until all of it is there.
            let is_again = is_message && self.lines[line].accepted.is_some_and(|(id, _)| version.id < id);
            // Of a version that is too old to be kept, only a newer one with the same bytes may be left.
            let is_forgotten = self.lines[line].versions.back().is_some_and(|oldest| number < oldest.number);
            if is_again || number != 0 && version.number != number && !is_forgotten {
                self.report(Kind::OtherVersionAccepted, domain, line, place, other);
            }
            self.lines[line].arrived = self.lines[line].arrived.max(version.id);
            if is_message {
                self.lines[line].accepted = Some((version.id, time));
            }
            self.learn(domain, &version.clock);
        }
    }

    fn learn(&mut self, domain: usize, clock: &[u64]) {
        for (own, heard) in self.clocks[domain].iter_mut().zip(clock) {
            *own = (*own).max(*heard);
        }
    }

    /// A message that is not in memory leaves.
    pub fn sent(&mut self, domain: usize, channel: u64, number: u64) {
        let clock = Arc::from(self.clocks[domain].as_slice());
        self.messages.insert((channel, number), clock);
    }

    /// It arrives.
    pub fn received(&mut self, domain: usize, channel: u64, number: u64) {
        if let Some(clock) = self.messages.remove(&(channel, number)) {
            self.learn(domain, &clock);
        }
    }
}
