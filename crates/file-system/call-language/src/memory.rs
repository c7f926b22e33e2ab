//! The calls on memory as values, how they are drawn, and how they are made on an implementation of the border.
//!
//! Addresses lie in a window of [`WINDOW_PAGES`] pages at [`WINDOW`], but for some that no call takes. So that Linux can be
//! held against it, three things are not drawn. Stores to the second half of a page: behind the end of a shared file they are left
//! open (POSIX.1-2017, `mmap`), and files end in the middle of a page or at its end. Lengths of gigabytes, which hosts refuse or not.
//! And [`Remapped`] says which ranges must not be remapped.

use std::collections::BTreeMap;
use std::ops::Range;

use posix_calls::memory::{self, Address, Destination, MappedObject};
use posix_calls::{AccessError, Errno, MemoryOperations, Protection, Sharing, data};

use crate::data::bytes;
use crate::random::Random;

/// Where the window begins: where neither ScaleFS nor Linux puts what may be anywhere.
pub const WINDOW: u64 = 1 << 44;
/// Its pages.
pub const WINDOW_PAGES: u64 = 16;
/// Processes that may be there.
pub const PROCESSES: usize = 3;
/// What a process's descriptors are for, by their place: file 0 for reading and writing, for reading, for writing; file 1 for reading
/// and writing, for reading; a pipe for reading, for writing. The place behind them is no descriptor.
pub const DESCRIPTORS: usize = 7;
const PAGE: u64 = 4096;
const HALF: u64 = PAGE / 2;
/// Pages of the longest files.
const FILE_PAGES: u64 = 5;

/// One call of one of the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryCall {
    /// Who calls; if there is no such process, nothing happens.
    pub process: usize,
    /// What.
    pub operation: MemoryOperation,
}

/// What is called, with its arguments. Descriptors are places among [`DESCRIPTORS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryOperation {
    /// Address, bytes; if the address is anywhere, it is unmapped at once.
    Map(Address, u64, Protection, Option<(usize, u64, Sharing)>),
    /// Address, bytes.
    Unmap(u64, u64),
    /// Address, bytes.
    Protect(u64, u64, Protection),
    /// Address, old bytes, new bytes, where to, and where from there if that may be anywhere.
    Remap(u64, u64, u64, Destination, u64),
    /// Address, bytes (MADV_DONTNEED).
    Discard(u64, u64),
    /// Address, bytes (`msync`).
    Synchronize(u64, u64),
    /// Address, bytes.
    Load(u64, usize),
    /// Address, bytes, which byte.
    Store(u64, usize, u8),
    /// Descriptor, bytes.
    Resize(usize, u64),
    /// Descriptor, bytes, of which the first one comes last here, offset.
    WriteAt(usize, usize, u8, u64),
    /// Descriptor, bytes, offset.
    ReadAt(usize, usize, u64),
    /// Makes this process, if there is none.
    Fork(usize),
    /// Ends, unless it is the first process.
    Exit,
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryAnswer {
    /// Nothing, or an address that need not be the same.
    Done,
    /// An address or a count.
    Number(u64),
    /// What was loaded or read.
    Bytes(Vec<u8>),
    /// What a load or a store raised.
    Signal(i32),
}

/// An answer, or an error number.
pub type MemoryOutcome = Result<MemoryAnswer, i32>;

/// Linux's SIGBUS, SIGSEGV and SIGKILL.
const SIGNALS: [i32; 3] = [7, 11, 9];

impl MemoryCall {
    /// A call.
    pub fn any(random: &mut Random) -> MemoryCall {
        let process = [0, 0, 1, 2][random.below(4)];
        MemoryCall { process, operation: MemoryOperation::any(random) }
    }
}

fn address(random: &mut Random) -> u64 {
    // Mostly one of few, so that calls meet.
    let pages = if random.below(4) == 0 { WINDOW_PAGES as usize } else { 5 };
    let page = random.below(pages) as u64;
    match random.below(80) {
        0 => WINDOW + page * PAGE + 1,
        1 => 1 << 47,
        2 => u64::MAX - PAGE + 1,
        _ => WINDOW + page * PAGE,
    }
}

fn length(random: &mut Random) -> u64 {
    match random.below(80) {
        0 => 0,
        1 => 1 << 63,
        2 => u64::MAX,
        3 => u64::MAX - PAGE + 1,
        4 | 5 => 1,
        6 => PAGE + 1,
        number => [1, 1, 1, 2, 2, 3, 5][number % 7] * PAGE,
    }
}

fn protection(random: &mut Random) -> Protection {
    random.pick(&[
        Protection::None,
        Protection::Read,
        Protection::ReadWrite,
        Protection::ReadWrite,
        Protection::ReadWrite,
    ])
}

impl MemoryOperation {
    /// A call.
    pub fn any(random: &mut Random) -> MemoryOperation {
        match random.below(44) {
            0..=7 | 40 => {
                let here = address(random);
                let place = match random.below(12) {
                    0 => Address::Any,
                    1 | 2 => Address::FixedNoReplace(here),
                    _ => Address::Fixed(here),
                };
                let sharing = random.pick(&[Sharing::Shared, Sharing::Private]);
                let object = match random.below(3) {
                    0 => None,
                    _ => {
                        let descriptor = match random.below(8) {
                            0 => random.pick(&[2, 5, 6, DESCRIPTORS]),
                            number => [0, 0, 0, 1, 3, 3, 4][number - 1],
                        };
                        let offset = match random.below(30) {
                            0 => 1,
                            1 => u64::MAX - PAGE + 1,
                            number if number % 3 != 0 => number as u64 % 2 * PAGE,
                            number => number as u64 % (FILE_PAGES + 1) * PAGE,
                        };
                        Some((descriptor, offset, sharing))
                    }
                };
                MemoryOperation::Map(place, length(random), protection(random), object)
            }
            8 | 9 => MemoryOperation::Unmap(address(random), length(random)),
            10..=12 => MemoryOperation::Protect(address(random), length(random), protection(random)),
            13..=15 => {
                let destination = match random.below(4) {
                    0 => Destination::Same,
                    1 => Destination::Any,
                    _ => Destination::Fixed(address(random)),
                };
                let to = WINDOW + random.below(WINDOW_PAGES as usize) as u64 * PAGE;
                MemoryOperation::Remap(address(random), length(random), length(random), destination, to)
            }
            16 | 42 | 43 => {
                // Linux goes on behind holes, to the stack and the program of the process that calls.
                let length = Some(length(random)).filter(|length| *length != 1 << 63);
                MemoryOperation::Discard(address(random), length.unwrap_or(PAGE))
            }
            17 => MemoryOperation::Synchronize(address(random), length(random)),
            18..=24 => {
                let within = random.pick(&[0, 0, 100, HALF - 8, HALF, PAGE - 8]);
                MemoryOperation::Load(address(random).wrapping_add(within), random.pick(&[1, 8, 16]))
            }
            25..=33 => {
                let within = random.pick(&[0, 0, 100, HALF - 8]);
                MemoryOperation::Store(address(random).wrapping_add(within), 8, 1 + random.below(250) as u8)
            }
            34 | 35 => {
                MemoryOperation::Resize(random.pick(&[0, 3]), random.below(2 * FILE_PAGES as usize + 1) as u64 * HALF)
            }
            36 => {
                let offset = random.below(2 * FILE_PAGES as usize - 1) as u64 * HALF;
                let length = random.pick(&[HALF, PAGE]) as usize;
                MemoryOperation::WriteAt(random.pick(&[0, 3]), length, 1 + random.below(200) as u8, offset)
            }
            37 => {
                MemoryOperation::ReadAt(random.pick(&[0, 3]), 100, random.below(2 * FILE_PAGES as usize) as u64 * HALF)
            }
            38 | 41 => MemoryOperation::Fork(1 + random.below(PROCESSES - 1)),
            _ if random.below(4) == 0 => MemoryOperation::Exit,
            _ => MemoryOperation::Load(WINDOW + random.below(WINDOW_PAGES as usize) as u64 * PAGE, PAGE as usize),
        }
    }
}

fn accessed<F>(access: Result<(), AccessError<F>>) -> Result<(), MemoryAnswer> {
    access.map_err(|error| {
        MemoryAnswer::Signal(match error {
            AccessError::Bus => SIGNALS[0],
            AccessError::Segment => SIGNALS[1],
            AccessError::OutOfMemory | AccessError::Fault(_) => SIGNALS[2],
        })
    })
}

/// Makes a call that is neither `fork` nor `exit`; `descriptors` are those of the process.
///
/// # Errors
/// Those of the call.
///
/// # Panics
/// For `fork` and `exit`, which are calls on processes.
pub fn perform_memory<V: MemoryOperations>(
    call: &V,
    descriptors: &[u32],
    operation: &MemoryOperation,
) -> Result<MemoryAnswer, Errno> {
    let fd = |place: usize| descriptors.get(place).copied().unwrap_or(crate::data::NO_DESCRIPTOR);
    let done = |()| MemoryAnswer::Done;
    match *operation {
        MemoryOperation::Map(address, length, protection, object) => {
            let object = match object {
                None => MappedObject::Anonymous,
                Some((place, offset, sharing)) => MappedObject::File { fd: fd(place), offset, sharing },
            };
            let mapped = memory::map(call, address, length, protection, object)?;
            if address == Address::Any {
                return memory::unmap(call, mapped, length).map(done);
            }
            Ok(MemoryAnswer::Number(mapped))
        }
        MemoryOperation::Unmap(address, length) => memory::unmap(call, address, length).map(done),
        MemoryOperation::Protect(address, length, protection) => {
            memory::protect(call, address, length, protection).map(done)
        }
        MemoryOperation::Remap(address, old, new, destination, to) => {
            let place = memory::remap(call, address, old, new, destination)?;
            if destination == Destination::Any && place != address {
                return memory::remap(call, place, new, new, Destination::Fixed(to)).map(MemoryAnswer::Number);
            }
            Ok(MemoryAnswer::Number(place))
        }
        MemoryOperation::Discard(address, length) => memory::discard(call, address, length).map(done),
        MemoryOperation::Synchronize(address, length) => memory::synchronize(call, address, length).map(done),
        MemoryOperation::Load(address, length) => {
            let mut loaded = vec![0xee; length];
            let outcome = accessed(call.load(address, &mut loaded));
            Ok(outcome.map_or_else(|signal| signal, |()| MemoryAnswer::Bytes(loaded)))
        }
        MemoryOperation::Store(address, length, byte) => {
            let outcome = accessed(call.store(address, &vec![byte; length]));
            Ok(outcome.map_or_else(|signal| signal, done))
        }
        MemoryOperation::Resize(place, size) => data::truncate(call, fd(place), size as i64).map(done),
        MemoryOperation::WriteAt(place, length, fill, offset) => {
            let written = data::write_at(call, fd(place), &bytes(length, fill), offset as i64)?;
            Ok(MemoryAnswer::Number(written as u64))
        }
        MemoryOperation::ReadAt(place, length, offset) => {
            let mut read = vec![0xee; length];
            let count = data::read_at(call, fd(place), &mut read, offset as i64)?;
            read.truncate(count);
            Ok(MemoryAnswer::Bytes(read))
        }
        MemoryOperation::Fork(_) | MemoryOperation::Exit => panic!("{operation:?} is no call on memory"),
    }
}

/// Which pages belong together for sure, so that a range of them may be remapped: mapped by one call, and changed together since.
/// What lies side by side otherwise Linux takes for one mapping or not, by what was stored there before.
#[derive(Clone, Debug, Default)]
pub struct Remapped {
    pages: Vec<BTreeMap<u64, u64>>,
    made: u64,
}

impl Remapped {
    /// Of a first process without memory.
    #[must_use]
    pub fn new() -> Remapped {
        Remapped { pages: vec![BTreeMap::new(); PROCESSES], made: 0 }
    }

    fn range(address: u64, length: u64) -> Range<u64> {
        let start = address / PAGE;
        start..start.saturating_add(length.div_ceil(PAGE))
    }

    fn is_one(&self, process: usize, address: u64, length: u64) -> bool {
        let range = Self::range(address, length);
        let mut ids = range.clone().take(WINDOW_PAGES as usize * 4).map(|page| self.pages[process].get(&page));
        let first = ids.next().flatten();
        first.is_some() && ids.all(|id| id == first)
    }

    /// Whether a call is to be left out.
    #[must_use]
    pub fn leaves_out(&self, call: &MemoryCall) -> bool {
        let MemoryOperation::Remap(address, old, new, ..) = call.operation else { return false };
        let is_absent = !self.pages[call.process].contains_key(&(address / PAGE));
        // Of a first page that is not mapped nothing else is asked, if the call asks about pages at all.
        let is_answered_at_once = is_absent && old.min(new) <= WINDOW_PAGES * PAGE;
        !is_answered_at_once && !self.is_one(call.process, address, old)
    }

    /// Notes what a call did that has returned this.
    pub fn note(&mut self, call: &MemoryCall, outcome: &MemoryOutcome) {
        self.made += 1;
        let id = self.made;
        let process = call.process;
        match (&call.operation, outcome) {
            (MemoryOperation::Map(_, length, ..), Ok(MemoryAnswer::Number(address))) => {
                self.pages[process].extend(Self::range(*address, *length).map(|page| (page, id)));
            }
            (MemoryOperation::Unmap(address, length), Ok(_)) => {
                let range = Self::range(*address, *length);
                self.pages[process].retain(|page, _| !range.contains(page));
            }
            // Also of a part.
            (MemoryOperation::Protect(address, length, _), _) => {
                let range = Self::range(*address, *length);
                let mut parts = BTreeMap::new();
                for (_, old) in self.pages[process].range_mut(range) {
                    self.made += u64::from(!parts.contains_key(old));
                    *old = *parts.entry(*old).or_insert(self.made);
                }
            }
            (MemoryOperation::Remap(address, old, new, ..), Ok(MemoryAnswer::Number(place))) => {
                let (from, to) = (Self::range(*address, *old), Self::range(*place, *new));
                let pages = &mut self.pages[process];
                pages.retain(|page, _| !from.contains(page) && !to.contains(page));
                pages.extend(to.map(|page| (page, id)));
            }
            (MemoryOperation::Fork(child), Ok(_)) => self.pages[*child] = self.pages[process].clone(),
            (MemoryOperation::Exit, Ok(_)) => self.pages[process].clear(),
            _ => {}
        }
    }
}
