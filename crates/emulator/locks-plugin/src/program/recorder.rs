//! What all threads share: the study, and who is known to hold what. One lock guards it, taken by lock events only.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::time::{Duration, Instant};

use lock_annotation::Event;
use lock_study::{Exclusion, LockId, Moment, Options, Study};

use super::addresses::{self, Mapping};
use super::names::{FieldNames, Key};
use super::thread::Thread;
use super::words::{Change, Place, Step, Words, is_taken};
use crate::arguments::Arguments;
use crate::report::{FieldRecord, LockRecord, Record, Source, StackMemory, StackRecord, StartUp};

/// Bytes of a lock that was found by its instructions.
const INLINED_LOCK_BYTES: u16 = 4;
/// What the library in front of pthread's locks is called.
const PRELOADED: &str = "lock_preload";
/// Beginnings of the names of files that have pthread's locks, or whose stores to them are part of it.
const PTHREADS: [&str; 4] = ["libc.so", "libc-", "libpthread", "ld-linux"];
/// Reports while the program runs take at most one part in this many of its time.
const REPORT_SHARE: u32 = 20;

/// A lock of which somebody tells.
#[derive(Debug, Clone, Copy)]
pub struct Lock {
    /// Its first address.
    pub address: u64,
    /// Its size in bytes.
    pub size_bytes: u16,
    /// Who tells of it.
    pub teller: Teller,
}

/// Who tells of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Teller {
    /// The program, of a lock of its own.
    Annotation = 0,
    /// The library in front of pthread's locks: besides pthread no one changes one, but to make it new.
    Preloaded = 1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Annotated {
    /// First address after it.
    end: u64,
    teller: Teller,
    /// False for what was reported to keep no one out: its events and its words mean nothing.
    keeps_out: bool,
}

fn is_in(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

/// How much of the run was recorded.
#[derive(Debug, Clone, Copy)]
struct SpanClock {
    /// The present span's number; 0 before the first.
    number: u32,
    /// Since when, by the clock and by all threads' instructions; None outside of spans.
    since: Option<(Instant, u64)>,
    /// Of earlier spans.
    before: (Duration, u64),
}

impl SpanClock {
    fn new(is_on: bool) -> Self {
        Self { number: 0, since: is_on.then(|| (Instant::now(), 0)), before: (Duration::ZERO, 0) }
    }

    fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// How long the spans took until now, when all threads have executed this many instructions.
    fn total(&self, instructions: u64) -> (Duration, u64) {
        let (time, count) = self.before;
        self.since
            .map_or((time, count), |(began, base)| (time + began.elapsed(), count + instructions.saturating_sub(base)))
    }

    fn switch(&mut self, on: bool, instructions: u64) {
        self.before = self.total(instructions);
        self.since = on.then(|| (Instant::now(), instructions));
        self.number += 1;
    }

    /// Counts from nothing, while it is on.
    fn restart(&mut self, instructions: u64) {
        self.switch(true, instructions);
        self.before = (Duration::ZERO, 0);
    }
}

/// The state behind the lock.
pub struct Recorder {
    options: Options,
    study: Study,
    names: FieldNames,
    words: Words,
    /// Annotated locks, by their first address.
    annotated: BTreeMap<u64, Annotated>,
    /// How each lock was found.
    sources: Vec<Source>,
    /// The stack that began the first section of each lock that has ended one, without what the section outlived: functions of
    /// the program's own around a lock.
    owners: HashMap<LockId, u32>,
    /// Inlined locks that have been given back as locks are, to no one or to the next, with the instruction that took
    /// them: a count that only grows, or a flag that is set once, never is, and is not reported.
    given_back: HashMap<LockId, Option<u64>>,
    /// Code of the library in front of pthread's locks.
    preloaded: Vec<Range<u64>>,
    /// Code of that library and of those whose stores to a lock of pthread's are what pthread does with it.
    plumbing: Vec<Range<u64>>,
    /// The stacks that began the sections under way.
    begun_by: HashMap<(LockId, u32), u32>,
    /// Sections that others found to be none, or of no use, by thread: it forgets them at its next event.
    void: HashMap<u32, Vec<LockId>>,
    mappings: Vec<Mapping>,
    /// The threads of stacks, by the lowest address, and where each ends.
    stack_memory: BTreeMap<u64, (u64, u32)>,
    started: Instant,
    span: SpanClock,
    /// Whether the program has had one thread only, of which no one said when to look at it.
    is_starting: bool,
    start_up: Option<StartUp>,
    reported: Instant,
    every: Duration,
    /// How long the last report took.
    took: Duration,
    out: std::path::PathBuf,
    process_id: u32,
    events: u64,
}

impl Recorder {
    /// A recorder that has seen nothing.
    pub fn new(arguments: &Arguments) -> Self {
        Self {
            options: arguments.options,
            study: Study::new(arguments.options),
            names: FieldNames::default(),
            words: Words::default(),
            annotated: BTreeMap::new(),
            sources: Vec::new(),
            owners: HashMap::new(),
            given_back: HashMap::new(),
            preloaded: Vec::new(),
            plumbing: Vec::new(),
            begun_by: HashMap::new(),
            void: HashMap::new(),
            mappings: Vec::new(),
            stack_memory: BTreeMap::new(),
            started: Instant::now(),
            span: SpanClock::new(arguments.span.is_none()),
            is_starting: arguments.span.is_none(),
            start_up: None,
            reported: Instant::now(),
            every: Duration::from_secs(arguments.every_seconds),
            took: Duration::ZERO,
            out: arguments.out.clone(),
            process_id: std::process::id(),
            events: 0,
        }
    }

    /// An instruction of `thread` tells an event of a lock. Whether its words are worth watching for plain stores from now on.
    pub fn tell(&mut self, thread: &mut Thread, event: Event, lock: Lock, instructions: u64) -> bool {
        let now = self.catch_up(thread, instructions);
        let Lock { address, teller, .. } = lock;
        let is_news = self.annotate(lock, event != Event::NoLock);
        let keeps_out = self.annotated.get(&address).is_some_and(|known| known.keeps_out);
        match event {
            Event::Destroy => {
                self.study.renew(address);
                self.annotated.remove(&address);
                return false;
            }
            Event::Attempt | Event::NoLock => {}
            _ if !self.span.is_on() => {}
            _ if keeps_out => self.tell_of_use(thread, event, lock, now),
            _ => {}
        }
        is_news && teller == Teller::Preloaded
    }

    fn tell_of_use(&mut self, thread: &mut Thread, event: Event, lock: Lock, now: Moment) {
        let Lock { address, size_bytes, .. } = lock;
        let stack = thread.stack_number(self.names.stacks_mut());
        let id = self.lock(stack, address, size_bytes, Source::Annotated);
        match event {
            Event::Attempt | Event::Destroy | Event::NoLock | Event::SpanBegin | Event::SpanEnd => {}
            Event::Wait => self.study.wait(id, thread.number, now),
            // A recursive mutex that is taken again begins no section.
            Event::AcquireExclusive if self.study.nest(id, thread.number) => {}
            Event::AcquireExclusive => self.acquire(thread, id, stack, Exclusion::Exclusive, now),
            Event::AcquireShared => self.acquire(thread, id, stack, Exclusion::Shared, now),
            Event::Release | Event::ReleaseForAny if self.study.leave_nested(id, thread.number) => {}
            Event::ReleaseForAny if !self.study.is_held_by(id, thread.number) => {
                if let Some(holder) = self.study.holder(id) {
                    self.study.abandon(id, holder);
                    self.forget_section(thread, holder, id);
                }
            }
            Event::Release | Event::ReleaseForAny => self.release(thread, id, now),
            Event::GiveUp => self.study.stop_waiting(id, thread.number),
        }
    }

    /// A thread's instruction left `value` at a place; None if it is no word. Whether the word is worth watching for plain stores.
    pub fn change(
        &mut self,
        thread: &mut Thread,
        change: Change,
        place: Place,
        value: Option<u64>,
        instructions: u64,
    ) -> bool {
        let Place { address, site, size_bytes } = place;
        if let Some((start, teller)) = self.annotated_at(address) {
            // C++ makes a mutex by storing zeros: no one reports it.
            if change == Change::Store && teller == Teller::Preloaded && !is_in(&self.plumbing, site) {
                self.study.renew(start);
            }
            return false;
        }
        let Some(value) = value else { return false };
        if matches!(change, Change::Take | Change::Exchange) {
            thread.tries(address, Moment { instructions, nanoseconds: self.started.elapsed().as_nanos() as u64 });
        }
        let steps = self.words.change(thread.number, change, place, value);
        if steps.is_empty() {
            return false;
        }
        let now = self.catch_up(thread, instructions);
        if !self.span.is_on() {
            if steps.iter().any(|step| matches!(step, Step::Renew)) {
                self.study.renew(address);
            }
            return true;
        }
        let stack = thread.stack_number(self.names.stacks_mut());
        let stack = self.names.stacks_mut().child(stack, site);
        let is_mark = value == 0 || is_taken(value) || size_bytes == 1;
        self.follow(thread, (address, is_mark), stack, steps, now);
        true
    }

    /// A thread has returned to where it tried to take or to give back the word of a lock.
    pub fn returned(&mut self, thread: &mut Thread, address: u64, instructions: u64) {
        let steps = self.words.returned(thread.number, address);
        if steps.is_empty() || !self.span.is_on() {
            return;
        }
        let now = self.catch_up(thread, instructions);
        let stack = thread.stack_number(self.names.stacks_mut());
        self.follow(thread, (address, true), stack, steps, now);
    }

    /// What an instruction, or a return, turned out to mean for the word at an address, in which a mark of a lock was left or not.
    fn follow(&mut self, thread: &mut Thread, word: (u64, bool), stack: u32, steps: Vec<Step>, now: Moment) {
        let (address, is_mark) = word;
        for step in steps {
            let id = self.lock(stack, address, INLINED_LOCK_BYTES, Source::Inlined);
            match step {
                Step::Acquire => {
                    thread.await_no_return(address);
                    self.acquire(thread, id, stack, Exclusion::Exclusive, now);
                }
                Step::Wait => {
                    thread.await_return(address);
                    self.study.wait(id, thread.number, now);
                }
                Step::Doubt => thread.await_return(address),
                Step::Release => {
                    thread.await_no_return(address);
                    if is_mark {
                        self.given_back.insert(id, self.words.taken_at(address));
                    }
                    self.release(thread, id, now);
                }
                Step::Miss => {
                    thread.await_no_return(address);
                    self.given_back.insert(id, self.words.taken_at(address));
                    let since = thread.tried_at(address).unwrap_or(now);
                    self.study.miss(id, thread.number, since, now);
                }
                Step::Retract(number) => {
                    self.study.retract(id, number);
                    self.forget_section(thread, number, id);
                }
                Step::Abandon(number) => {
                    self.study.abandon(id, number);
                    self.forget_section(thread, number, id);
                }
                Step::Renew => self.study.renew(address),
            }
        }
    }

    /// Has the thread forget the sections that others found to be none. Gives the present moment.
    fn catch_up(&mut self, thread: &mut Thread, instructions: u64) -> Moment {
        if std::process::id() != self.process_id {
            self.begin_anew();
            thread.abandon();
        }
        if let Some(stack) = thread.new_stack() {
            self.stack_memory.insert(stack.start, (stack.end, thread.number));
        }
        if thread.span != self.span.number {
            thread.span = self.span.number;
            thread.abandon();
        }
        for id in self.void.remove(&thread.number).unwrap_or_default() {
            thread.forget(id.0);
        }
        self.events += 1;
        if self.events.is_power_of_two() || self.mappings.is_empty() {
            self.learn();
        }
        Moment { instructions, nanoseconds: self.started.elapsed().as_nanos() as u64 }
    }

    /// The process is a child that was forked: what its parent did is the parent's to report.
    fn begin_anew(&mut self) {
        self.process_id = std::process::id();
        self.is_starting |= self.start_up.take().is_some();
        self.study = Study::new(self.options);
        self.sources.clear();
        self.given_back.clear();
        self.owners.clear();
        self.begun_by.clear();
        self.words = Words::default();
        self.void.clear();
        let mut out = std::mem::take(&mut self.out).into_os_string();
        out.push(format!(".{}", self.process_id));
        self.out = out.into();
    }

    /// A span begins or ends, when all threads have executed this many instructions.
    pub fn switch(&mut self, on: bool, instructions: u64) {
        self.span.switch(on, instructions);
        self.void.clear();
        self.study.suspend();
    }

    /// A thread begins next to others, when all have executed this many instructions. At the first one, what the
    /// program did alone is set aside, with the names of who did it.
    pub fn has_company(&mut self, instructions: u64) {
        if std::process::id() != self.process_id {
            self.begin_anew();
        }
        if std::mem::take(&mut self.is_starting) {
            let (time, instructions_alone) = self.span.total(instructions);
            self.void.clear();
            self.owners.clear();
            let (acquires, locks) = self.study.set_aside();
            let nanoseconds = time.as_nanos() as u64;
            self.start_up = Some(StartUp { instructions: instructions_alone, nanoseconds, acquires, locks });
            self.span.restart(instructions);
        }
    }

    /// Looks at the program's mappings again: libraries may have been loaded.
    fn learn(&mut self) {
        self.mappings = addresses::with_earlier(addresses::read(), std::mem::take(&mut self.mappings));
        self.names.learn(&self.mappings);
        self.preloaded = self.code_of(|name| name.contains(PRELOADED));
        self.plumbing = self.code_of(|name| name.contains(PRELOADED) || PTHREADS.iter().any(|of| name.starts_with(of)));
    }

    /// Where the files lie whose name, without the folder, fits.
    fn code_of(&self, fits: impl Fn(&str) -> bool) -> Vec<Range<u64>> {
        let name = |mapping: &&Mapping| fits(mapping.path.rsplit('/').next().unwrap_or_default());
        self.mappings.iter().filter(name).map(|mapping| mapping.start..mapping.end).collect()
    }

    /// Who tells events by the instruction at `site`.
    pub fn teller_at(&mut self, site: u64) -> Teller {
        if !is_in(&self.preloaded, site) {
            self.learn();
        }
        if is_in(&self.preloaded, site) { Teller::Preloaded } else { Teller::Annotation }
    }

    /// A thread does something that its memory does not show: its open sections are marked.
    pub fn touch_device(&mut self, thread: &Thread) {
        for lock in thread.open() {
            self.study.touch_device(LockId(lock), thread.number);
        }
    }

    fn lock(&mut self, stack: u32, address: u64, size_bytes: u16, source: Source) -> LockId {
        let id = self.study.lock_at(address, u32::from(size_bytes), || u64::from(stack));
        if id.0 as usize == self.sources.len() {
            self.sources.push(source);
        }
        id
    }

    fn acquire(&mut self, thread: &mut Thread, id: LockId, stack: u32, exclusion: Exclusion, now: Moment) {
        let caller = self.caller(stack);
        self.study.acquire(id, thread.number, exclusion, caller, now);
        self.begun_by.insert((id, thread.number), stack);
        thread.begin(id.0);
    }

    fn release(&mut self, thread: &mut Thread, id: LockId, now: Moment) {
        if let (Some(stack), Some(depth)) = (self.begun_by.remove(&(id, thread.number)), thread.shallowest(id.0)) {
            let length = self.names.stacks().addresses(stack).len();
            let owner = self.names.stacks().outer(stack, length.saturating_sub(depth + 1));
            // Of a system library's own locks no one wants to hear who used them.
            let innermost = self.names.stacks().innermost(stack);
            if is_in(&self.preloaded, innermost) || !is_in(&self.plumbing, innermost) {
                self.owners.entry(id).or_insert(owner);
            }
            self.study.set_caller(id, thread.number, self.caller(owner));
        }
        let words = thread.end(id.0, self.names.stacks_mut()).unwrap_or_default();
        let Self { study, names, .. } = self;
        study.release(id, thread.number, now, &words, names);
    }

    /// A section of the thread with this number was none.
    fn forget_section(&mut self, thread: &mut Thread, number: u32, id: LockId) {
        if number == thread.number {
            thread.forget(id.0);
        } else {
            self.void.entry(number).or_default().push(id);
        }
    }

    /// The innermost call of a stack that the program itself made.
    fn caller(&self, stack: u32) -> u64 {
        let addresses = self.names.stacks().addresses(stack);
        let own = addresses.iter().find(|&&address| !is_in(&self.preloaded, address));
        own.or(addresses.first()).copied().unwrap_or(0)
    }

    /// The annotated lock that an address belongs to: its start, and who tells of it.
    fn annotated_at(&self, address: u64) -> Option<(u64, Teller)> {
        let (&start, lock) = self.annotated.range(..=address).next_back()?;
        (address < lock.end).then_some((start, lock.teller))
    }

    /// From now on only annotations tell of this lock. Whether they did not before.
    fn annotate(&mut self, Lock { address, size_bytes, teller }: Lock, keeps_out: bool) -> bool {
        let end = address.saturating_add(u64::from(size_bytes));
        let before = self.annotated.get(&address);
        let keeps_out = keeps_out && before.is_none_or(|known| known.keeps_out);
        let lock = Annotated { end, teller, keeps_out };
        if self.annotated.insert(address, lock) == Some(lock) {
            return false;
        }
        for (word, owner) in self.words.forget(address..end) {
            let id = self.lock(super::names::Stacks::EMPTY, word, INLINED_LOCK_BYTES, Source::Inlined);
            self.study.abandon(id, owner);
            self.void.entry(owner).or_default().push(id);
        }
        true
    }

    /// Whether it is time for a report while the program runs.
    pub fn is_due(&self) -> bool {
        self.every > Duration::ZERO && self.reported.elapsed() >= self.every.max(self.took * REPORT_SHARE)
    }

    /// Writes the report; `instructions` is the number that all threads executed, `thread_count` that of threads ever.
    pub fn write_report(&mut self, instructions: u64, thread_count: u32) {
        if std::process::id() != self.process_id {
            return; // a forked child that did nothing with locks
        }
        let begun = Instant::now();
        self.learn();
        let record = self.record(instructions, thread_count);
        if let Err(error) = record.write(&self.out) {
            eprintln!("commutant lock recorder: cannot write '{}': {error}", self.out.display());
        }
        self.reported = Instant::now();
        self.took = begun.elapsed();
    }

    fn record(&self, instructions: u64, thread_count: u32) -> Record<'_> {
        let stacks = self.names.stacks();
        let locks = self.study.reports().into_iter().zip(&self.sources).enumerate();
        let behaves = |number: usize| {
            let taken_at = self.given_back.get(&LockId(number as u32));
            taken_at.is_some_and(|site| !site.is_some_and(|site| self.words.counts_down(site)))
        };
        let locks = locks.filter(|(number, (report, source))| {
            report.sections > 0 && (**source == Source::Annotated || behaves(*number))
        });
        let locks = locks.map(|(number, (report, &source))| LockRecord {
            source,
            class: None,
            instances: 1,
            first_stack: stacks
                .addresses(self.owners.get(&LockId(number as u32)).copied().unwrap_or(report.class as u32)),
            field_numbers: report.fields.ranked().into_iter().map(|field| field.field).collect(),
            fields: report.fields.ranked().into_iter().map(|field| self.field_record(field)).collect(),
            report,
        });
        let (time, instructions) = self.span.total(instructions);
        Record {
            process_id: self.process_id,
            thread_count,
            instructions,
            nanoseconds: time.as_nanos() as u64,
            start_up: self.start_up,
            mappings: &self.mappings,
            stacks: self
                .stack_memory
                .iter()
                .map(|(&start, &(end, thread))| StackMemory { thread, addresses: start..end })
                .collect(),
            locks: locks.collect(),
            kernel: serde_json::Value::Null,
        }
    }

    fn field_record(&self, counted: lock_study::FieldReport) -> FieldRecord {
        let field = self.names.fields()[counted.field as usize];
        let (kind, offset) = match field.key {
            Key::Variable(_) => ("variable", None),
            Key::BesideLock(offset) => ("beside_lock", Some(offset)),
            Key::Code(..) => ("code", None),
        };
        let stacks = [0, 1].map(|side| StackRecord {
            write: field.writes[side],
            addresses: self.names.stacks().addresses(field.stacks[side]),
        });
        FieldRecord { kind, name: None, address: field.address, offset, counted, stacks }
    }
}
