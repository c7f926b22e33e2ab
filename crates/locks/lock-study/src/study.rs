//! The study of all locks: what happens to a lock comes in, statistics of each lock come out.

use std::collections::HashMap;

use crate::address_set::{AddressSet, Overlap, Word};
use crate::guarded::Guarded;
use crate::history::{History, Section};
use crate::kinds::Kind;
use crate::lock_words::LockWords;
use crate::measures::{GRANULARITIES, Span};
use crate::report::{LockReport, WINDOWS};

/// How the study compares.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Sections of a lock that a new one is compared with (the paper: 128).
    pub window_sections: usize,
    /// Whether words of locks are left out of address sets.
    pub filters_lock_words: bool,
    /// Whether sections of one thread are compared too.
    pub compares_own_sections: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { window_sections: 128, filters_lock_words: true, compares_own_sections: false }
    }
}

/// What names a conflicting address: the recorder's number for a field of a type, a variable, or a piece of code.
pub trait Fields {
    /// The field of a conflicting word, as two sections of the lock at `lock_address` touched it.
    fn field(&mut self, lock_address: u64, ours: &Word, theirs: &Word) -> u64;
}

/// When something happened to a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Instructions that the thread had executed.
    pub instructions: u64,
    /// Nanoseconds since the recorder's start.
    pub nanoseconds: u64,
}

impl Moment {
    /// From an earlier moment of the same thread to this one.
    #[must_use]
    pub fn since(self, earlier: Moment) -> Span {
        Span {
            instructions: self.instructions.saturating_sub(earlier.instructions),
            nanoseconds: self.nanoseconds.saturating_sub(earlier.nanoseconds),
        }
    }
}

/// Whether a section keeps all others out, or only writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// A mutex, or a writer.
    Exclusive,
    /// A reader.
    Shared,
}

/// One lock from its first acquire until its memory is made into something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockId(pub u32);

/// A section that is under way.
#[derive(Debug)]
struct Holder {
    thread: u32,
    exclusion: Exclusion,
    /// The recorder's number for the code that acquired the lock.
    caller: u64,
    acquired_at: Moment,
    /// Whether it waited before.
    has_waited: bool,
    touched_device: bool,
    /// How often the thread took it again without having released it: a recursive mutex.
    nested: u32,
    /// Handed to another thread while held: belongs to two threads, and is compared with none (section 3 of the paper).
    handed_over: bool,
    /// Sections that it waited for and that ended in the meantime.
    waited_for: Vec<Section>,
}

#[derive(Debug)]
struct Waiter {
    thread: u32,
    since: Moment,
    waited_for: Vec<Section>,
}

#[derive(Debug)]
struct Lock {
    report: LockReport,
    history: History,
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
    /// When each thread released it last, in the thread's instructions.
    released_at: Vec<(u32, u64)>,
}

/// The study.
#[derive(Debug, Default)]
pub struct Study {
    options: Options,
    words: LockWords,
    /// The lock that lies at an address now.
    present: HashMap<u64, LockId>,
    /// The locks of each class that lay at an address before. The report goes on with the next one there, which has a
    /// history of its own all the same: where memory is used again without end there is no other bound.
    retired: HashMap<(u64, u64), LockId>,
    locks: Vec<Lock>,
    /// Kept from the first question about it on.
    guarded: Option<Guarded>,
}

/// Pairs of each section whose conflicts are reported by field: the newest.
const NAMED_PAIRS: u64 = 8;

/// Threads of each lock whose last release is remembered, the newest: a program may start threads without end.
const RELEASER_LIMIT: usize = 256;

/// Most sections that are remembered for one that waits: more than any crowd has threads.
const WAITED_FOR_LIMIT: usize = 64;

impl Study {
    /// A study without locks.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Whether a thread holds a lock.
    #[must_use]
    pub fn is_held_by(&self, id: LockId, thread: u32) -> bool {
        self.locks[id.0 as usize].holders.iter().any(|holder| holder.thread == thread)
    }

    /// The thread that holds a lock, if exactly one does.
    #[must_use]
    pub fn holder(&self, id: LockId) -> Option<u32> {
        match self.locks[id.0 as usize].holders.as_slice() {
            [holder] => Some(holder.thread),
            _ => None,
        }
    }

    /// The lock at an address; `class` is the recorder's number for locks of its kind, asked for at its first use.
    pub fn lock_at(&mut self, address: u64, size_bytes: u32, class: impl FnOnce() -> u64) -> LockId {
        if let Some(&id) = self.present.get(&address) {
            return id;
        }
        let class = class();
        self.words.add(address, size_bytes);
        if let Some(id) = self.retired.remove(&(address, class))
            && let Some(lock) = self.locks.get_mut(id.0 as usize)
        {
            lock.report.generations += 1;
            self.present.insert(address, id);
            return id;
        }
        let id = LockId(self.locks.len() as u32);
        self.locks.push(Lock {
            report: LockReport::new(address, class),
            history: History::default(),
            holders: Vec::new(),
            waiters: Vec::new(),
            released_at: Vec::new(),
        });
        self.present.insert(address, id);
        id
    }

    /// The memory at an address is given back or made into a new lock: the next lock there is another one. Nothing happens
    /// while somebody holds or awaits it.
    pub fn renew(&mut self, address: u64) {
        if let Some(id) = self.present.get(&address)
            && let Some(lock) = self.locks.get_mut(id.0 as usize)
            && lock.holders.is_empty()
            && lock.waiters.is_empty()
        {
            lock.history = History::default();
            lock.released_at = Vec::new();
            lock.report.density.begin_anew();
            let (id, class) = (*id, lock.report.class);
            self.present.remove(&address);
            self.retired.insert((address, class), id);
        }
    }

    /// The lock that lies at an address now, if there is one.
    #[must_use]
    pub fn present(&self, address: u64) -> Option<LockId> {
        self.present.get(&address).copied()
    }

    /// More memory of a lock, which does not lie next to its first part.
    pub fn add_lock_words(&mut self, address: u64, size_bytes: u32) {
        self.words.add(address, size_bytes);
    }

    /// Whether somebody holds a lock in a way that keeps a thread out that asks for it like this.
    #[must_use]
    pub fn keeps_out(&self, id: LockId, thread: u32, exclusion: Exclusion) -> bool {
        self.locks[id.0 as usize].holders.iter().any(|holder| {
            holder.thread != thread && (holder.exclusion == Exclusion::Exclusive || exclusion == Exclusion::Exclusive)
        })
    }

    /// A thread begins to wait for a lock.
    pub fn wait(&mut self, id: LockId, thread: u32, now: Moment) {
        let lock = &mut self.locks[id.0 as usize];
        if !lock.waiters.iter().any(|waiter| waiter.thread == thread) {
            lock.waiters.push(Waiter { thread, since: now, waited_for: Vec::new() });
        }
    }

    /// A thread gives up waiting.
    pub fn stop_waiting(&mut self, id: LockId, thread: u32) {
        self.locks[id.0 as usize].waiters.retain(|waiter| waiter.thread != thread);
    }

    /// A thread got a lock; `caller` is the recorder's number for the code that asked for it.
    pub fn acquire(&mut self, id: LockId, thread: u32, exclusion: Exclusion, caller: u64, now: Moment) {
        let lock = &mut self.locks[id.0 as usize];
        let waited = lock.waiters.iter().position(|waiter| waiter.thread == thread).map(|at| lock.waiters.remove(at));
        // One that spins executes instructions while it waits: the gap ends where it began to.
        let wanted_at = waited.as_ref().map_or(now, |waiter| waiter.since);
        lock.report.acquires += 1;
        lock.report.shared_acquires += u64::from(exclusion == Exclusion::Shared);
        let has_waited = waited.is_some();
        let waited_for = waited.map_or_else(Vec::new, |waiter| {
            lock.report.contended += 1;
            lock.report.wait.add(now.since(waiter.since));
            waiter.waited_for
        });
        if let Some(&(_, released_at)) = lock.released_at.iter().find(|&&(releaser, _)| releaser == thread) {
            lock.report.gaps.add(wanted_at.instructions.saturating_sub(released_at));
        }
        let (touched_device, handed_over) = (false, false);
        lock.holders.push(Holder {
            thread,
            exclusion,
            caller,
            acquired_at: now,
            has_waited,
            touched_device,
            nested: 0,
            handed_over,
            waited_for,
        });
    }

    /// A thread that may hold a lock alone takes it: whether it did hold it, so that no section begins (a recursive mutex).
    pub fn nest(&mut self, id: LockId, thread: u32) -> bool {
        let holders = &mut self.locks[id.0 as usize].holders;
        let own = holders.iter_mut().find(|one| one.thread == thread && one.exclusion == Exclusion::Exclusive);
        own.map(|holder| holder.nested += 1).is_some()
    }

    /// A thread releases a lock: whether it had taken it more than once, so that its section goes on.
    pub fn leave_nested(&mut self, id: LockId, thread: u32) -> bool {
        let holders = &mut self.locks[id.0 as usize].holders;
        let own = holders.iter_mut().find(|one| one.thread == thread && one.nested > 0);
        own.map(|holder| holder.nested -= 1).is_some()
    }

    /// A thread that was reported to have got a lock did not: it waits, as from then on. Nothing happens if it holds
    /// none.
    pub fn retract(&mut self, id: LockId, thread: u32) {
        let lock = &mut self.locks[id.0 as usize];
        let Some(index) = lock.holders.iter().rposition(|holder| holder.thread == thread) else { return };
        let Holder { exclusion, acquired_at, has_waited, waited_for, .. } = lock.holders.remove(index);
        lock.report.acquires -= 1;
        lock.report.shared_acquires -= u64::from(exclusion == Exclusion::Shared);
        lock.report.contended -= u64::from(has_waited);
        lock.waiters.push(Waiter { thread, since: acquired_at, waited_for });
    }

    /// A thread is found to have held a lock alone, since it tried to take it last, when it has released it: what it did with
    /// it is not known.
    pub fn miss(&mut self, id: LockId, thread: u32, since: Moment, now: Moment) {
        self.acquire(id, thread, Exclusion::Exclusive, 0, since);
        let lock = &mut self.locks[id.0 as usize];
        lock.holders.pop();
        lock.report.hold.add(now.since(since));
    }

    /// A section under way touched a device.
    pub fn touch_device(&mut self, id: LockId, thread: u32) {
        if let Some(holder) = self.locks[id.0 as usize].holders.iter_mut().find(|holder| holder.thread == thread) {
            holder.touched_device = true;
        }
    }

    /// A section under way goes on in another thread, which will release the lock (a run queue's lock in a task switch); the
    /// moments are the same one, as either thread counts.
    pub fn hand_over(&mut self, id: LockId, from: (u32, Moment), to: (u32, Moment)) {
        if let Some(holder) = self.locks[id.0 as usize].holders.iter_mut().find(|holder| holder.thread == from.0) {
            let held = from.1.since(holder.acquired_at);
            holder.thread = to.0;
            holder.acquired_at.instructions = to.1.instructions.saturating_sub(held.instructions);
            holder.handed_over = true;
        }
    }

    /// A writer lets readers in: what it touched so far counts as its section, the rest as a reader's.
    pub fn downgrade(&mut self, id: LockId, thread: u32, now: Moment, touched: &[Word], fields: &mut impl Fields) {
        let caller = self.caller_of(id, thread);
        if self.release(id, thread, now, touched, fields) {
            self.acquire(id, thread, Exclusion::Shared, caller, now);
            self.locks[id.0 as usize].report.acquires -= 1; // it was counted when it began
        }
    }

    /// A section under way turns out to belong to other code than what acquired the lock.
    pub fn set_caller(&mut self, id: LockId, thread: u32, caller: u64) {
        if let Some(holder) = self.locks[id.0 as usize].holders.iter_mut().rfind(|holder| holder.thread == thread) {
            holder.caller = caller;
        }
    }

    fn caller_of(&self, id: LockId, thread: u32) -> u64 {
        let holders = &self.locks[id.0 as usize].holders;
        holders.iter().rfind(|holder| holder.thread == thread).map_or(0, |holder| holder.caller)
    }

    /// A thread released a lock, having touched these words. False if it does not hold the lock; then it is only counted.
    pub fn release(
        &mut self,
        id: LockId,
        thread: u32,
        now: Moment,
        touched: &[Word],
        fields: &mut impl Fields,
    ) -> bool {
        let Self { options, words, locks, guarded, .. } = self;
        let lock = &mut locks[id.0 as usize];
        let Some(index) = lock.holders.iter().rposition(|holder| holder.thread == thread) else {
            lock.report.releases_without_acquire += 1;
            return false;
        };
        let holder = lock.holders.remove(index);
        let set = AddressSet::collect(touched, |word| !options.filters_lock_words || words.filter(word));
        let report = &mut lock.report;
        let hold = now.since(holder.acquired_at);
        let shared = holder.exclusion == Exclusion::Shared;
        let kind = Kind { caller: holder.caller, shared, writes: set.written_byte_count() > 0 };
        let kind = report.kinds.add(thread, kind, hold);
        let section = Section { thread, shared, kind, touched_device: holder.touched_device, set };
        report.sections += 1;
        report.hold.add(hold);
        match lock.released_at.iter_mut().find(|(releaser, _)| *releaser == thread) {
            Some((_, released_at)) => *released_at = now.instructions,
            None => {
                if lock.released_at.len() >= RELEASER_LIMIT {
                    lock.released_at.remove(0);
                }
                lock.released_at.push((thread, now.instructions));
            }
        }
        report.set_bytes += u64::from(section.set.byte_count());
        report.written_bytes += u64::from(section.set.written_byte_count());
        report.device_sections += u64::from(section.touched_device);
        if let Some(guarded) = guarded {
            guarded.add(id.0, thread, &section.set);
        }
        if holder.handed_over {
            report.handed_over += 1;
            return true;
        }
        for waiter in &mut lock.waiters {
            if waiter.waited_for.len() < WAITED_FOR_LIMIT {
                waiter.waited_for.push(section.clone());
            }
        }
        compare_with_waited_for(report, &section, &holder.waited_for);
        compare_with_history(report, &section, &lock.history, *options, fields);
        lock.history.push(section, options.window_sections);
        true
    }

    /// A thread that holds no lock touches memory: counted if a section of another thread did something that conflicts.
    pub fn access_outside(&mut self, thread: u32, address: u64, size_bytes: u8, write: bool) {
        let guarded = self.guarded.get_or_insert_default();
        for word in Word::of_access(address, size_bytes, write, false, 0) {
            if let Some(lock) = guarded.meets(&word, thread) {
                let report = &mut self.locks[lock as usize].report;
                let count = if write { &mut report.outside_writes } else { &mut report.outside_reads };
                *count += 1;
            }
        }
    }

    /// A thread has ended, or what it held cannot be known any more: its open sections are forgotten and counted.
    pub fn abandon(&mut self, id: LockId, thread: u32) {
        let lock = &mut self.locks[id.0 as usize];
        let before = lock.holders.len();
        lock.holders.retain(|holder| holder.thread != thread);
        lock.report.never_released += (before - lock.holders.len()) as u64;
    }

    /// Nothing is reported for a while: sections under way are taken back, and no one knows what the threads did in the
    /// meantime.
    pub fn suspend(&mut self) {
        for lock in &mut self.locks {
            for holder in lock.holders.drain(..) {
                lock.report.acquires -= 1;
                lock.report.shared_acquires -= u64::from(holder.exclusion == Exclusion::Shared);
                lock.report.contended -= u64::from(holder.has_waited);
            }
            lock.waiters.clear();
            lock.released_at.clear();
        }
    }

    /// What was seen until now is no part of the study: sections under way are taken back, all others are counted here, and
    /// each lock begins with nothing. Tells how many acquires there were, and of how many locks.
    pub fn set_aside(&mut self) -> (u64, u64) {
        self.suspend();
        let (mut acquires, mut locks) = (0, 0);
        for lock in &mut self.locks {
            acquires += lock.report.acquires;
            locks += u64::from(lock.report.acquires > 0);
            lock.report = LockReport::new(lock.report.address, lock.report.class);
            lock.history = History::default();
        }
        for id in self.retired.values() {
            self.locks[id.0 as usize].report.generations = 0; // the next lock there is the first
        }
        self.guarded = None;
        (acquires, locks)
    }

    /// Statistics of a lock; sections still under way are counted as never released.
    #[must_use]
    pub fn report(&self, id: LockId) -> LockReport {
        let lock = &self.locks[id.0 as usize];
        LockReport { never_released: lock.report.never_released + lock.holders.len() as u64, ..lock.report.clone() }
    }

    /// Statistics of every lock, in the order of their first use; sections still under way are counted as never released.
    #[must_use]
    pub fn reports(&self) -> Vec<LockReport> {
        (0..self.locks.len() as u32).map(|id| self.report(LockId(id))).collect()
    }
}

/// Compares a section with those that it waited for (Table 2 of the paper).
fn compare_with_waited_for(report: &mut LockReport, section: &Section, waited_for: &[Section]) {
    let mut conflicts = false;
    let mut compared = false;
    for other in waited_for.iter().filter(|other| section.is_kept_from(other)) {
        compared = true;
        conflicts |= overlap_of(section, other, |_, _| ()).all.bytes > 0 || touches_device(section, other);
    }
    report.contended_compared += u64::from(compared);
    report.contended_conflicts += u64::from(conflicts);
}

fn touches_device(one: &Section, other: &Section) -> bool {
    one.touched_device && other.touched_device
}

fn overlap_of(one: &Section, other: &Section, conflict: impl FnMut(&Word, &Word)) -> Overlap {
    one.set.overlap(&other.set, conflict)
}

/// Compares a section with the last ones of other threads (Table 3 of the paper).
fn compare_with_history(
    report: &mut LockReport,
    section: &Section,
    history: &History,
    options: Options,
    fields: &mut impl Fields,
) {
    let mut newest: Vec<(u32, bool)> = Vec::new(); // per other thread, whether its newest section conflicts
    let mut fields_of_pair: Vec<u64> = Vec::new();
    let mut compared = 0_u64;
    let mut any = [false; GRANULARITIES];
    let mut windows = [(0_u64, 0_u64); WINDOWS.len()];
    for (place, other) in history.newest_first().enumerate() {
        let own = options.compares_own_sections && section.thread == other.thread;
        if !own && !section.is_kept_from(other) {
            continue;
        }
        compared += 1;
        fields_of_pair.clear();
        // Naming what conflicts takes longer than all else; the newest pairs of each section tell as much as all.
        let named = compared <= NAMED_PAIRS;
        let overlap = overlap_of(section, other, |ours, theirs| {
            if named {
                let field = fields.field(report.address, ours, theirs);
                if !fields_of_pair.contains(&field) {
                    fields_of_pair.push(field);
                }
            }
        });
        report.fields.compared += u64::from(named);
        let device = touches_device(section, other);
        let conflicts = report.pairs.add(section, overlap, device);
        report.kinds.add_pair(section.kind, other.kind, conflicts);
        if named && conflicts[0] && !device {
            report.fields.add(&fields_of_pair);
        }
        for (window, _) in windows.iter_mut().zip(WINDOWS).filter(|&(_, size)| place < size) {
            window.0 += 1;
            window.1 += u64::from(conflicts[0]);
        }
        any.iter_mut().zip(conflicts).for_each(|(any, conflict)| *any |= conflict);
        if !newest.iter().any(|&(thread, _)| thread == other.thread) {
            newest.push((other.thread, conflicts[0]));
        }
    }
    report
        .windows
        .iter_mut()
        .zip(windows)
        .for_each(|(tally, (compared, conflicting))| tally.add(compared, conflicting));
    if compared > 0 {
        report.compared_sections += 1;
        report.conflicting_sections.iter_mut().zip(any).for_each(|(count, any)| *count += u64::from(any));
        report.kinds.add_compared(section.kind, any);
    }
    report.density.add(section.thread, |thread| newest.iter().any(|&(other, conflicts)| other == thread && conflicts));
}
