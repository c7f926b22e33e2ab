//! Memory whose caches are software: each domain has its own, and old data is really returned.
//!
//! **Idea.** Testing on a coherent machine shows nothing, as each forgotten flush is made good by the hardware. Here a domain
//! reads its own copy of a line until it invalidates it, and what it writes stays with it until it is written back. Whole lines
//! go to memory: of two domains that write one line, one loses. An **adversary** does what caches may do by themselves (it
//! evicts, writes back early, fetches ahead), from a seed. A **checker** judges the order of calls, so that a fault is found also
//! in a run in which all values were right. Each report names the seed.
//!
//! ```
//! use pool::Memory;
//! use pool::emulated::{Emulated, Kind};
//!
//! let pool = Emulated::new(4096, 2, 7)?;
//! let (writer, reader) = (pool.domain(0), pool.domain(1));
//! writer.write(0, b"data")?;
//! writer.sent(1, 0);                  // forgotten: write_back and drain
//! reader.received(1, 0);
//! reader.invalidate(0, 4)?;
//! reader.read(0, &mut [0; 4])?;
//! assert_eq!(pool.reports()[0].kind, Kind::MissingWriteBack);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An access is made of **steps** of up to eight bytes; between them other domains may run, if tests let them ([`turns`]), and
//! the adversary moves. [`explore`] tries every order of steps and moves of a small program.

mod adversary;
mod caches;
mod checker;
pub mod explore;
mod report;
pub mod turns;

use core::fmt;
use core::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec;
use std::vec::Vec;

pub use adversary::{Move, Numbers};
pub use report::{Kind, Place, Report};

use crate::line::{LINE_BYTES, line_of, lines_of};
use crate::memory::{Fault, Memory, Use, in_bounds};
use adversary::Adversary;
use caches::{Caches, Version};
use checker::Checker;

/// What cannot be emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible {
    size_bytes: usize,
    domain_count: usize,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a multiple of {LINE_BYTES} bytes, more than 0, and 1 to 256 domains, got {} bytes and {} domains",
            self.size_bytes, self.domain_count
        )
    }
}

impl std::error::Error for Impossible {}

#[derive(Debug)]
struct State {
    caches: Caches,
    checker: Checker,
    adversary: Option<Adversary>,
    has_crashed: Vec<bool>,
    /// By domain: a fingerprint of what it has done and seen since it was at rest.
    positions: Vec<u64>,
    writes: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    size_bytes: usize,
    domain_count: usize,
    step_bytes: usize,
}

/// Emulated memory of several domains. Copies stand for the same memory.
#[derive(Clone, Debug)]
pub struct Emulated(Arc<Shared>);

impl Emulated {
    /// Memory of zeros, with an adversary that this seed determines.
    ///
    /// # Errors
    /// Sizes that are not possible.
    pub fn new(size_bytes: usize, domain_count: usize, seed: u64) -> Result<Emulated, Impossible> {
        Emulated::with(size_bytes, domain_count, Some(seed), 8)
    }

    /// Memory of zeros whose caches do only what they are asked for.
    ///
    /// # Errors
    /// Sizes that are not possible.
    pub fn calm(size_bytes: usize, domain_count: usize) -> Result<Emulated, Impossible> {
        Emulated::with(size_bytes, domain_count, None, 8)
    }

    /// As [`Emulated::calm`], in steps of `step_bytes` (a divisor of [`LINE_BYTES`]): larger ones make fewer orders to explore.
    ///
    /// # Errors
    /// Sizes that are not possible.
    pub fn in_steps(size_bytes: usize, domain_count: usize, step_bytes: usize) -> Result<Emulated, Impossible> {
        Emulated::with(size_bytes, domain_count, None, step_bytes)
    }

    fn with(
        size_bytes: usize,
        domain_count: usize,
        seed: Option<u64>,
        step_bytes: usize,
    ) -> Result<Emulated, Impossible> {
        let line_count = size_bytes / LINE_BYTES;
        if line_count == 0 || !size_bytes.is_multiple_of(LINE_BYTES) || !(1..=256).contains(&domain_count) {
            return Err(Impossible { size_bytes, domain_count });
        }
        assert!(step_bytes != 0 && LINE_BYTES.is_multiple_of(step_bytes), "a line has whole steps");
        let state = State {
            caches: Caches::new(line_count, domain_count),
            checker: Checker::new(seed.unwrap_or(0), line_count, domain_count),
            adversary: seed.map(Adversary::new),
            has_crashed: vec![false; domain_count],
            positions: vec![0; domain_count],
            writes: 0,
        };
        Ok(Emulated(Arc::new(Shared { state: Mutex::new(state), size_bytes, domain_count, step_bytes })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A domain that panics leaves no step half done.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory as this domain sees it.
    ///
    /// # Panics
    /// If there is no such domain.
    pub fn domain(&self, number: usize) -> Domain {
        assert!(number < self.0.domain_count, "expected a domain below {}, got {number}", self.0.domain_count);
        Domain { memory: self.clone(), number }
    }

    /// Domains that it has.
    pub fn domain_count(&self) -> usize {
        self.0.domain_count
    }

    /// What the checker found so far.
    pub fn reports(&self) -> Vec<Report> {
        self.state().checker.reports.clone()
    }

    /// How many faults it found, the same ones counted again.
    pub fn report_count(&self) -> u64 {
        self.state().checker.count
    }

    /// Calls so far.
    pub fn step(&self) -> u64 {
        self.state().checker.step
    }

    /// The run ends: what still had to reach memory is reported.
    pub fn end(&self) {
        self.state().checker.end();
    }

    /// A domain crashes: what its cache held is lost, and its accesses fail until it joins again ([`Emulated::revive`]).
    pub fn crash(&self, domain: usize) {
        let mut state = self.state();
        state.caches.lose(domain);
        state.has_crashed[domain] = true;
    }

    /// A domain that has crashed begins again, with an empty cache.
    pub fn revive(&self, domain: usize) {
        self.state().has_crashed[domain] = false;
    }

    /// The bytes of memory itself, below all caches.
    pub fn below(&self, line: usize) -> [u8; LINE_BYTES] {
        self.state().caches.memory[line].bytes
    }

    /// A bit of memory itself goes wrong: bit `bit` of the byte at `at`.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn damage(&self, at: usize, bit: u32) {
        self.state().caches.memory[line_of(at)].bytes[at % LINE_BYTES] ^= 1 << bit;
    }

    /// All moves that caches could make now on these lines.
    pub fn moves(&self, lines: core::ops::Range<usize>) -> Vec<Move> {
        let state = self.state();
        let mut found = Vec::new();
        for domain in 0..self.0.domain_count {
            for line in lines.clone() {
                found.push(match state.caches.domains[domain].get(line) {
                    Some(held) if held.is_dirty => Move::WriteBack { domain, line },
                    Some(_) => Move::Evict { domain, line },
                    None => Move::Fetch { domain, line },
                });
            }
        }
        found
    }

    /// A cache makes this move.
    pub fn make(&self, one: Move) {
        adversary::make(&mut self.state().caches, one);
    }

    /// A number that stands for all that is in memory and caches, and for how far each domain has come ([`Domain::at_rest`]).
    pub fn fingerprint(&self) -> u64 {
        let state = self.state();
        let mut print = 0xCBF2_9CE4_8422_2325;
        for line in &state.caches.memory {
            mix(&mut print, &line.bytes);
        }
        for (domain, cache) in state.caches.domains.iter().enumerate() {
            mix(&mut print, &state.positions[domain].to_le_bytes());
            for (line, held) in cache.lines() {
                let flags = u64::from(held.is_dirty) | u64::from(held.is_leaving) << 1;
                mix(&mut print, &(((domain * state.caches.memory.len() + line) as u64) << 2 | flags).to_le_bytes());
                mix(&mut print, &held.line.bytes);
            }
        }
        print
    }
}

/// Adds bytes to a fingerprint.
fn mix(print: &mut u64, bytes: &[u8]) {
    for part in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        *print = (*print ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        *print ^= *print >> 29;
    }
}

/// One domain's view of emulated memory.
#[derive(Clone, Debug)]
pub struct Domain {
    memory: Emulated,
    number: usize,
}

impl Domain {
    /// Its number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The memory of all.
    pub fn memory(&self) -> &Emulated {
        &self.memory
    }

    /// Says that between two calls all that this domain keeps is what `state` stands for: explored runs that meet here are one.
    pub fn at_rest(&self, state: u64) {
        self.memory.state().positions[self.number] = state;
    }

    /// Lets others run, then begins a call on these bytes.
    fn begin(&self, at: usize, length: usize) -> Result<MutexGuard<'_, State>, Fault> {
        turns::hand_over();
        in_bounds(at, length, self.memory.0.size_bytes)?;
        let mut state = self.standing()?;
        state.checker.tick(self.number);
        mix(&mut state.positions[self.number], &(at as u64).to_le_bytes());
        Ok(state)
    }

    fn standing(&self) -> Result<MutexGuard<'_, State>, Fault> {
        let state = self.memory.state();
        if state.has_crashed[self.number] { Err(Fault::Crashed) } else { Ok(state) }
    }

    /// The parts of an access that are one step each: offset in the pool, and in the caller's bytes.
    fn steps(&self, at: usize, length: usize) -> impl Iterator<Item = (usize, core::ops::Range<usize>)> + use<> {
        let step_bytes = self.memory.0.step_bytes;
        let mut start = 0;
        core::iter::from_fn(move || {
            let place = at + start;
            let end = (start + step_bytes - place % step_bytes).min(length);
            let part = start..end;
            start = end;
            (!part.is_empty()).then_some((place, part))
        })
    }

    fn store(&self, at: usize, bytes: &[u8], number: u64, place: Place) -> Result<(), Fault> {
        drop(self.begin(at, bytes.len())?);
        let mut id = 0;
        let mut version: Option<Arc<Version>> = None;
        for (place_of_step, part) in self.steps(at, bytes.len()) {
            let line = line_of(place_of_step);
            let is_first = part.start == 0;
            if !is_first {
                turns::hand_over();
            }
            let mut guard = self.standing()?;
            let state = &mut *guard;
            if is_first {
                state.writes += 1;
                id = state.writes;
            }
            if is_first || place_of_step % LINE_BYTES == 0 {
                let is_all = at <= line * LINE_BYTES && at + bytes.len() >= (line + 1) * LINE_BYTES;
                state.checker.write(self.number, line, is_all, id, Some(place));
                version = state.checker.has_versions(line).then(|| {
                    let mut whole = state.caches.fetch(self.number, line).line.bytes;
                    let start = place_of_step % LINE_BYTES;
                    let count = (LINE_BYTES - start).min(bytes.len() - part.start);
                    whole[start..start + count].copy_from_slice(&bytes[part.start..part.start + count]);
                    state.checker.version(self.number, line, id, number, whole)
                });
            }
            let held = state.caches.fetch(self.number, line);
            let start = place_of_step % LINE_BYTES;
            held.line.bytes[start..start + part.len()].copy_from_slice(&bytes[part.clone()]);
            held.line.version.clone_from(&version);
            held.is_dirty = true;
            self.end_step(state, line, &[]);
        }
        Ok(())
    }

    /// A step is over: the domain is further, and the adversary may move.
    fn end_step(&self, state: &mut State, line: usize, seen: &[u8]) {
        mix(&mut state.positions[self.number], &[1]);
        if !seen.is_empty() {
            mix(&mut state.positions[self.number], seen);
        }
        if let Some(adversary) = &mut state.adversary {
            adversary.after_step(&mut state.caches, line);
        }
    }
}

impl Memory for Domain {
    fn has_left(&self, domain: usize) -> bool {
        self.memory.state().has_crashed.get(domain).copied().unwrap_or(false)
    }

    fn size_bytes(&self) -> usize {
        self.memory.0.size_bytes
    }

    #[track_caller]
    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        let place = Location::caller();
        let mut state = self.begin(at, into.len())?;
        for line in lines_of(at, into.len()) {
            state.checker.read(self.number, line, Some(place));
        }
        drop(state);
        for (place_of_step, part) in self.steps(at, into.len()) {
            if part.start != 0 {
                turns::hand_over();
            }
            let line = line_of(place_of_step);
            let mut guard = self.standing()?;
            let state = &mut *guard;
            let held = state.caches.fetch(self.number, line);
            let start = place_of_step % LINE_BYTES;
            into[part.clone()].copy_from_slice(&held.line.bytes[start..start + part.len()]);
            state.checker.saw(self.number, line, start, &into[part.clone()], held.line.version.as_ref());
            self.end_step(state, line, &into[part]);
        }
        Ok(())
    }

    #[track_caller]
    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        self.store(at, bytes, 0, Location::caller())
    }

    #[track_caller]
    fn write_back(&self, at: usize, length: usize) -> Result<(), Fault> {
        let place = Location::caller();
        let mut guard = self.begin(at, length)?;
        let state = &mut *guard;
        for line in lines_of(at, length) {
            state.checker.write_back(self.number, line, Some(place));
            state.caches.begin_write_back(self.number, line);
            self.end_step(state, line, &[2]);
        }
        Ok(())
    }

    #[track_caller]
    fn invalidate(&self, at: usize, length: usize) -> Result<(), Fault> {
        let place = Location::caller();
        let mut guard = self.begin(at, length)?;
        let state = &mut *guard;
        for line in lines_of(at, length) {
            state.checker.invalidate(self.number, line, Some(place));
            state.caches.drop_line(self.number, line);
            self.end_step(state, line, &[3]);
        }
        Ok(())
    }

    fn drain(&self) -> Result<(), Fault> {
        let mut state = self.begin(0, 0)?;
        state.checker.drain(self.number);
        state.caches.drain(self.number);
        mix(&mut state.positions[self.number], &[4]);
        Ok(())
    }

    fn declare(&self, at: usize, length: usize, used: Use) -> Result<(), Fault> {
        in_bounds(at, length, self.memory.0.size_bytes)?;
        let mut state = self.standing()?;
        lines_of(at, length).for_each(|line| state.checker.declare(line, used));
        Ok(())
    }

    #[track_caller]
    fn write_version(&self, at: usize, bytes: &[u8], version: u64) -> Result<(), Fault> {
        self.store(at, bytes, version, Location::caller())
    }

    #[track_caller]
    fn accept(&self, at: usize, length: usize, version: u64) {
        let place = Location::caller();
        let mut state = self.memory.state();
        state.checker.tick(self.number);
        state.checker.accept(self.number, lines_of(at, length), version, Some(place));
    }

    #[track_caller]
    fn promise(&self) {
        self.memory.state().checker.waits(self.number, Some(Location::caller()));
    }

    fn sent(&self, channel: u64, number: u64) {
        let mut state = self.memory.state();
        state.checker.tick(self.number);
        state.checker.sent(self.number, channel, number);
    }

    fn received(&self, channel: u64, number: u64) {
        let mut state = self.memory.state();
        state.checker.tick(self.number);
        state.checker.received(self.number, channel, number);
    }
}
