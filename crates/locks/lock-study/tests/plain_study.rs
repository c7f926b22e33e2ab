//! The study held against a plain one, in which sections are sets of bytes and every count follows its definition.

use std::collections::{BTreeMap, BTreeSet};

use lock_study::{Exclusion, Fields, LockId, LockReport, Moment, Options, Study, WINDOWS, Word};
use proptest::prelude::*;

/// Every count of a report that is not zero, by name.
type Counts = BTreeMap<String, u64>;

/// Bytes from here on are data of the executing processor.
const PER_CPU: u64 = 256;
const LOCKS: u64 = 2;
const THREADS: u32 = 5;

struct Numbers;

impl Fields for Numbers {
    fn field(&mut self, _lock_address: u64, ours: &Word, _theirs: &Word) -> u64 {
        ours.number
    }
}

fn counts_of(report: &LockReport) -> Counts {
    let mut counts = Counts::new();
    let mut put = |name: String, count: u64| assert!(counts.insert(name, count).is_none());
    let names = [
        ("generations", report.generations),
        ("acquires", report.acquires),
        ("shared acquires", report.shared_acquires),
        ("contended", report.contended),
        ("contended compared", report.contended_compared),
        ("contended conflicts", report.contended_conflicts),
        ("sections", report.sections),
        ("gaps", report.gaps.count),
        ("gaps instructions", report.gaps.instructions),
        ("gaps squares", report.gaps.squares as u64),
        ("set bytes", report.set_bytes),
        ("written bytes", report.written_bytes),
        ("device sections", report.device_sections),
        ("handed over", report.handed_over),
        ("releases without acquire", report.releases_without_acquire),
        ("never released", report.never_released),
        ("compared sections", report.compared_sections),
        ("pairs", report.pairs.compared),
        ("pairs bytes", report.pairs.conflicting_bytes),
        ("pairs set bytes", report.pairs.set_bytes),
        ("outside reads", report.outside_reads),
        ("outside writes", report.outside_writes),
        ("fields", report.fields.compared),
    ];
    names.into_iter().for_each(|(name, count)| put(name.to_owned(), count));
    let kinds: Vec<String> = report
        .kinds
        .reports()
        .iter()
        .map(|report| kind_name(report.kind.caller, report.kind.shared, report.kind.writes))
        .collect();
    let spans = [("wait".to_owned(), report.wait), ("hold".to_owned(), report.hold)];
    let of_kinds = kinds.iter().zip(report.kinds.reports()).map(|(name, kind)| (format!("{name} hold"), kind.hold));
    for (name, spans) in spans.into_iter().chain(of_kinds) {
        put(format!("{name} instructions"), spans.total.instructions);
        put(format!("{name} nanoseconds"), spans.total.nanoseconds);
        put(format!("longest {name} instructions"), spans.longest.instructions);
        put(format!("longest {name} nanoseconds"), spans.longest.nanoseconds);
    }
    let mut put_each = |name: &str, counts: [u64; 3]| {
        for (unit_bytes, count) in [1, 8, 64].into_iter().zip(counts) {
            put(format!("{name} {unit_bytes}"), count);
        }
    };
    put_each("conflicting sections", report.conflicting_sections);
    put_each("conflicting pairs", report.pairs.conflicting);
    put_each("conflicting pairs without own data", report.pairs.conflicting_without_per_cpu);
    for (name, kind) in kinds.iter().zip(report.kinds.reports()) {
        put_each(&format!("{name} conflicting"), kind.conflicting);
    }
    for pair in report.kinds.pairs() {
        put_each(&pair_name(pair.kinds.map(|index| kinds[usize::from(index.0)].clone())), pair.conflicting);
    }
    for pair in report.kinds.pairs() {
        put(pair_name(pair.kinds.map(|index| kinds[usize::from(index.0)].clone())), pair.compared);
    }
    for (name, kind) in kinds.iter().zip(report.kinds.reports()) {
        put(format!("{name} sections"), kind.sections);
        put(format!("{name} squares"), kind.hold_squares as u64);
        put(format!("{name} compared"), kind.compared);
    }
    for thread in report.kinds.threads() {
        for (name, &sections) in kinds.iter().zip(&thread.sections) {
            put(format!("thread {} {name}", thread.thread), sections);
        }
    }
    for (size, window) in WINDOWS.into_iter().zip(report.windows) {
        put(format!("window {size} pairs"), window.pairs);
        put(format!("window {size} conflicting pairs"), window.conflicting_pairs);
        put(format!("window {size} sections"), window.sections);
        put(format!("window {size} conflicting sections"), window.conflicting_sections);
    }
    for field in report.fields.ranked() {
        put(format!("field {}", field.field), field.pairs);
        put(format!("field {} alone", field.field), field.pairs_on_it_alone);
    }
    counts.retain(|_, count| *count != 0);
    counts
}

fn kind_name(caller: u64, shared: bool, writes: bool) -> String {
    format!("kind {caller} {shared} {writes}")
}

fn pair_name(mut kinds: [String; 2]) -> String {
    kinds.sort();
    kinds.join(" with ")
}

/// What joined reports say: sums, and the longest of all.
fn joined(one: &Counts, other: &Counts) -> Counts {
    let mut sum = one.clone();
    for (name, &count) in other {
        let entry = sum.entry(name.clone()).or_default();
        *entry = if name.starts_with("longest") { count.max(*entry) } else { *entry + count };
    }
    sum
}

/// A section: the bytes that it read and wrote.
#[derive(Clone, Default)]
struct Section {
    thread: u32,
    shared: bool,
    caller: u64,
    device: bool,
    read: BTreeSet<u64>,
    written: BTreeSet<u64>,
}

impl Section {
    fn touched(&self) -> BTreeSet<u64> {
        self.read.union(&self.written).copied().collect()
    }

    fn kind(&self) -> String {
        kind_name(self.caller, self.shared, !self.written.is_empty())
    }

    /// The units of this many bytes, below an address, that one wrote in and the other touched.
    fn common(&self, other: &Self, unit_bytes: u64, below: u64) -> BTreeSet<u64> {
        let units = |bytes: &BTreeSet<u64>| -> BTreeSet<u64> {
            bytes.iter().filter(|&&byte| byte < below).map(|byte| byte / unit_bytes).collect()
        };
        let ours = &units(&self.written) & &units(&other.touched());
        &ours | &(&units(&other.written) & &units(&self.touched()))
    }

    /// Whether the two conflict, by bytes, words and lines.
    fn conflicts(&self, other: &Self, below: u64) -> [bool; 3] {
        [1, 8, 64].map(|unit| !self.common(other, unit, below).is_empty() || (self.device && other.device))
    }
}

/// A section that goes on.
#[derive(Default)]
struct Open {
    section: Section,
    words: Vec<Word>,
    since: Moment,
    has_waited: bool,
    nested: u32,
    handed_over: bool,
    waited_for: Vec<Section>,
}

#[derive(Default)]
struct Lock {
    counts: Counts,
    open: Vec<Open>,
    waiting: Vec<(u32, Moment, Vec<Section>)>,
    history: Vec<Section>,
    released_at: BTreeMap<u32, u64>,
    renewed: bool,
    /// Nothing lies there yet that counts.
    awaits_first: bool,
}

impl Lock {
    fn count(&mut self, name: &str, by: u64) {
        *self.counts.entry(name.to_owned()).or_default() += by;
    }

    fn uncount(&mut self, name: &str) {
        *self.counts.get_mut(name).expect("counted before") -= 1;
    }

    fn span(&mut self, name: &str, from: Moment, to: Moment) {
        let span = to.since(from);
        for (unit, length) in [("instructions", span.instructions), ("nanoseconds", span.nanoseconds)] {
            self.count(&format!("{name} {unit}"), length);
            let longest = self.counts.entry(format!("longest {name} {unit}")).or_default();
            *longest = length.max(*longest);
        }
    }

    fn each(&mut self, name: &str, conflicts: [bool; 3]) {
        for (unit_bytes, conflicts) in [1, 8, 64].into_iter().zip(conflicts) {
            self.count(&format!("{name} {unit_bytes}"), u64::from(conflicts));
        }
    }

    fn place_of(&self, thread: u32) -> Option<usize> {
        self.open.iter().position(|open| open.section.thread == thread)
    }

    fn acquire(&mut self, thread: u32, shared: bool, caller: u64, now: Moment) {
        let waited = self.waiting.iter().position(|waiter| waiter.0 == thread).map(|place| self.waiting.remove(place));
        self.count("acquires", 1);
        self.count("shared acquires", u64::from(shared));
        let wanted_at = waited.as_ref().map_or(now, |waiter| waiter.1);
        if let Some(released_at) = self.released_at.get(&thread) {
            let gap = wanted_at.instructions.saturating_sub(*released_at);
            self.count("gaps", 1);
            self.count("gaps instructions", gap);
            self.count("gaps squares", gap * gap);
        }
        let has_waited = waited.is_some();
        if has_waited {
            self.count("contended", 1);
            self.span("wait", wanted_at, now);
        }
        let waited_for = waited.map_or_else(Vec::new, |waiter| waiter.2);
        let section = Section { thread, shared, caller, ..Section::default() };
        self.open.push(Open { section, since: now, has_waited, waited_for, ..Open::default() });
    }

    /// A section that is taken back: as if it had not begun.
    fn take_back(&mut self, open: &Open) {
        self.uncount("acquires");
        if open.section.shared {
            self.uncount("shared acquires");
        }
        if open.has_waited {
            self.uncount("contended");
        }
    }

    fn release(&mut self, open: Open, now: Moment, options: Options) -> Section {
        let section = open.section;
        let kind = section.kind();
        let set_bytes = section.touched().len() as u64;
        let length = now.since(open.since).instructions;
        self.count("sections", 1);
        self.span("hold", open.since, now);
        self.count(&format!("{kind} sections"), 1);
        self.count(&format!("{kind} squares"), length * length);
        self.span(&format!("{kind} hold"), open.since, now);
        self.count(&format!("thread {} {kind}", section.thread), 1);
        self.count("set bytes", set_bytes);
        self.count("written bytes", section.written.len() as u64);
        self.count("device sections", u64::from(section.device));
        self.released_at.insert(section.thread, now.instructions);
        if open.handed_over {
            self.count("handed over", 1);
            return section;
        }
        self.waiting.iter_mut().for_each(|waiter| waiter.2.push(section.clone()));
        let kept_apart = |other: &&Section| section.thread != other.thread && !(section.shared && other.shared);
        let waited_for: Vec<&Section> = open.waited_for.iter().filter(kept_apart).collect();
        self.count("contended compared", u64::from(!waited_for.is_empty()));
        let conflicting = waited_for.iter().any(|other| section.conflicts(other, u64::MAX)[0]);
        self.count("contended conflicts", u64::from(conflicting));
        self.compare(&section, set_bytes, options);
        self.history.push(section.clone());
        section
    }

    fn compare(&mut self, section: &Section, set_bytes: u64, options: Options) {
        let (mut compared, mut any) = (0_u64, [false; 3]);
        let mut windows = WINDOWS.map(|_| (0_u64, 0_u64));
        let newest_first: Vec<Section> = self.history.iter().rev().cloned().collect();
        for (place, other) in newest_first.iter().enumerate() {
            let own = section.thread == other.thread;
            if if own { !options.compares_own_sections } else { section.shared && other.shared } {
                continue;
            }
            compared += 1;
            let conflicts = section.conflicts(other, u64::MAX);
            let bytes = section.common(other, 1, u64::MAX);
            self.count("pairs", 1);
            self.each("conflicting pairs", conflicts);
            self.each("conflicting pairs without own data", section.conflicts(other, PER_CPU));
            if conflicts[0] {
                self.count("pairs bytes", bytes.len() as u64);
                self.count("pairs set bytes", set_bytes);
            }
            let pair = pair_name([section.kind(), other.kind()]);
            self.count(&pair, 1);
            self.each(&pair, conflicts);
            if compared <= 8 {
                self.count("fields", 1);
                let fields: BTreeSet<u64> = bytes.iter().map(|byte| byte / 8).collect();
                for field in fields.iter().filter(|_| !(section.device && other.device)) {
                    self.count(&format!("field {field}"), 1);
                    self.count(&format!("field {field} alone"), u64::from(fields.len() == 1));
                }
            }
            for (window, size) in windows.iter_mut().zip(WINDOWS) {
                if place < size {
                    *window = (window.0 + 1, window.1 + u64::from(conflicts[0]));
                }
            }
            any = [0, 1, 2].map(|unit| any[unit] || conflicts[unit]);
        }
        for (size, (compared, conflicting)) in WINDOWS.into_iter().zip(windows) {
            self.count(&format!("window {size} pairs"), compared);
            self.count(&format!("window {size} conflicting pairs"), conflicting);
            self.count(&format!("window {size} sections"), u64::from(compared > 0));
            self.count(&format!("window {size} conflicting sections"), u64::from(conflicting > 0));
        }
        if compared > 0 {
            let kind = section.kind();
            self.count("compared sections", 1);
            self.count(&format!("{kind} compared"), 1);
            self.each("conflicting sections", any);
            self.each(&format!("{kind} conflicting"), any);
        }
    }

    fn expected(&self) -> Counts {
        let mut counts = self.counts.clone();
        *counts.entry("generations".to_owned()).or_default() += u64::from(!self.awaits_first);
        *counts.entry("never released".to_owned()).or_default() += self.open.len() as u64;
        counts.retain(|_, count| *count != 0);
        counts
    }
}

/// What a thread that holds no lock would conflict with, by word: lock, thread, section.
type Guarded = BTreeMap<u64, (u64, u32, Section)>;

/// Both studies, which are given the same.
struct Both {
    study: Study,
    options: Options,
    locks: Vec<Lock>,
    guarded: Option<Guarded>,
    now: Vec<Moment>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    what: u8,
    thread: u32,
    lock: u64,
    address: u64,
    size_bytes: u8,
    write: bool,
    passes: u64,
}

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u8..29, 0..THREADS, 0..LOCKS, 0_u64..384, 1_u8..17, any::<bool>(), 0_u64..9);
    let step = step.prop_map(|(what, thread, lock, address, size_bytes, write, passes)| Step {
        what,
        thread,
        lock,
        address,
        size_bytes,
        write,
        passes,
    });
    proptest::collection::vec(step, 0..count)
}

impl Both {
    fn new(options: Options) -> Self {
        let locks = (0..LOCKS).map(|_| Lock::default()).collect();
        let now = vec![Moment::default(); THREADS as usize];
        Self { study: Study::new(options), options, locks, guarded: None, now }
    }

    fn pass(&mut self, by: u64) {
        for (thread, now) in self.now.iter_mut().enumerate() {
            now.nanoseconds += by;
            now.instructions += by * (thread as u64 + 2);
        }
    }

    fn release(&mut self, id: LockId, lock: usize, place: usize, downgrades: bool) {
        let open = self.locks[lock].open.remove(place);
        let (thread, caller) = (open.section.thread, open.section.caller);
        let now = self.now[thread as usize];
        if downgrades {
            self.study.downgrade(id, thread, now, &open.words, &mut Numbers);
        } else {
            assert!(self.study.release(id, thread, now, &open.words, &mut Numbers));
        }
        let section = self.locks[lock].release(open, now, self.options);
        if let Some(guarded) = &mut self.guarded {
            for word in section.touched().iter().map(|byte| byte / 8) {
                guarded.insert(word, (lock as u64, thread, section.clone()));
            }
        }
        if downgrades {
            self.locks[lock].acquire(thread, true, caller, now);
            self.locks[lock].uncount("acquires");
        }
    }

    fn outside(&mut self, step: Step) {
        self.study.access_outside(step.thread, step.address, step.size_bytes, step.write);
        let guarded = self.guarded.get_or_insert_default();
        let mut by_word: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for byte in step.address..step.address + u64::from(step.size_bytes) {
            by_word.entry(byte / 8).or_default().push(byte);
        }
        for (word, bytes) in by_word {
            let Some((lock, thread, section)) = guarded.get(&word) else { continue };
            let meets = |byte: &u64| section.written.contains(byte) || (step.write && section.read.contains(byte));
            if *thread != step.thread && bytes.iter().any(meets) {
                let name = if step.write { "outside writes" } else { "outside reads" };
                self.locks[*lock as usize].count(name, 1);
                guarded.remove(&word);
            }
        }
    }

    fn take(&mut self, step: Step) {
        self.pass(step.passes);
        let lock = step.lock as usize;
        let (thread, now) = (step.thread, self.now[step.thread as usize]);
        let id = self.study.lock_at(0x10_0000 + step.lock * 64, 8, || 1);
        if std::mem::take(&mut self.locks[lock].renewed) {
            self.locks[lock].count("generations", 1);
        }
        let exclusion = if step.write { Exclusion::Exclusive } else { Exclusion::Shared };
        let held = self.locks[lock].place_of(thread);
        match (step.what, held) {
            (0..=4, None) => {
                self.study.acquire(id, thread, exclusion, step.address % 2, now);
                self.locks[lock].acquire(thread, !step.write, step.address % 2, now);
            }
            (5 | 6, None) => {
                self.study.wait(id, thread, now);
                if !self.locks[lock].waiting.iter().any(|waiter| waiter.0 == thread) {
                    self.locks[lock].waiting.push((thread, now, Vec::new()));
                }
            }
            (7, None) => {
                self.study.stop_waiting(id, thread);
                self.locks[lock].waiting.retain(|waiter| waiter.0 != thread);
            }
            (8, None) => {
                self.study.miss(id, thread, now, now);
                self.locks[lock].acquire(thread, false, 0, now);
                self.locks[lock].open.pop();
            }
            (9, None) => {
                assert!(!self.study.release(id, thread, now, &[], &mut Numbers));
                self.locks[lock].count("releases without acquire", 1);
            }
            (10..=14, None) => self.outside(step),
            (0..=8, Some(place)) => {
                let open = &mut self.locks[lock].open[place];
                let per_cpu = step.address >= PER_CPU;
                let last = if per_cpu { u64::MAX } else { PER_CPU };
                let size_bytes = u64::from(step.size_bytes).min(last - step.address) as u8;
                open.words.extend(Word::of_access(step.address, size_bytes, step.write, per_cpu, 0));
                let bytes = step.address..step.address + u64::from(size_bytes);
                if step.write { open.section.written.extend(bytes) } else { open.section.read.extend(bytes) }
            }
            (9, Some(place)) => {
                self.study.touch_device(id, thread);
                self.locks[lock].open[place].section.device = true;
            }
            (10, Some(place)) => {
                let open = &mut self.locks[lock].open[place];
                assert_eq!(self.study.nest(id, thread), !open.section.shared);
                open.nested += u32::from(!open.section.shared);
            }
            (11, Some(place)) => {
                let open = &mut self.locks[lock].open[place];
                assert_eq!(self.study.leave_nested(id, thread), open.nested > 0);
                open.nested = open.nested.saturating_sub(1);
            }
            (12..=20, Some(place)) => self.release(id, lock, place, false),
            (21, Some(place)) => self.release(id, lock, place, true),
            (22, Some(place)) => {
                let to = (thread + 1) % THREADS;
                if self.locks[lock].place_of(to).is_none() {
                    let there = self.now[to as usize];
                    self.study.hand_over(id, (thread, now), (to, there));
                    let open = &mut self.locks[lock].open[place];
                    let held = now.instructions - open.since.instructions;
                    open.section.thread = to;
                    open.since.instructions = there.instructions.saturating_sub(held);
                    open.handed_over = true;
                }
            }
            (23, Some(place)) => {
                self.study.retract(id, thread);
                let open = self.locks[lock].open.remove(place);
                self.locks[lock].take_back(&open);
                self.locks[lock].waiting.push((thread, open.since, open.waited_for));
            }
            (24, Some(place)) => {
                self.study.abandon(id, thread);
                self.locks[lock].open.remove(place);
                self.locks[lock].count("never released", 1);
            }
            (25 | 28, None) => {
                self.study.renew(0x10_0000 + step.lock * 64);
                let lock = &mut self.locks[lock];
                if lock.open.is_empty() && lock.waiting.is_empty() {
                    (lock.history, lock.released_at, lock.renewed) = (Vec::new(), BTreeMap::new(), true);
                    assert_eq!(self.study.present(0x10_0000 + step.lock * 64), None);
                }
            }
            (26, Some(_)) if step.passes == 0 => {
                self.study.suspend();
                for lock in &mut self.locks {
                    for open in std::mem::take(&mut lock.open) {
                        lock.take_back(&open);
                    }
                    lock.waiting.clear();
                    lock.released_at.clear();
                }
            }
            (27, _) if step.passes < 3 => {
                let acquires = |lock: &Lock| lock.counts.get("acquires").copied().unwrap_or(0) - lock.open.len() as u64;
                let seen: Vec<u64> = self.locks.iter().map(acquires).filter(|count| *count > 0).collect();
                assert_eq!(self.study.set_aside(), (seen.iter().sum(), seen.len() as u64));
                for lock in &mut self.locks {
                    *lock = Lock { renewed: lock.renewed, awaits_first: lock.renewed, ..Lock::default() };
                }
                self.guarded = None;
            }
            _ => {}
        }
        let open = &self.locks[lock].open;
        assert_eq!(self.study.is_held_by(id, thread), self.locks[lock].place_of(thread).is_some());
        let alone = if open.len() == 1 { Some(open[0].section.thread) } else { None };
        assert_eq!(self.study.holder(id), alone);
        let keeps_out = |open: &Open| open.section.thread != thread && (step.write || !open.section.shared);
        assert_eq!(self.study.keeps_out(id, thread, exclusion), open.iter().any(keeps_out));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_count_is_as_defined(steps in steps(300), compares_own_sections: bool) {
        let options = Options { compares_own_sections, window_sections: 1000, ..Options::default() };
        let mut both = Both::new(options);
        for &step in &steps {
            both.take(step);
        }
        let mut reports = Vec::new();
        for (number, lock) in both.locks.iter().enumerate() {
            if let Some(report) = both.study.reports().into_iter().find(|one| one.address == 0x10_0000 + number as u64 * 64) {
                prop_assert_eq!(counts_of(&report), lock.expected());
                reports.push(report);
            }
        }
        if let [one, other] = &reports[..] {
            let mut together = one.clone();
            together.join(other);
            prop_assert_eq!(counts_of(&together), joined(&counts_of(one), &counts_of(other)));
        }
    }
}
