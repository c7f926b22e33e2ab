//! Concurrent histories of calls on descriptors and data by two to four threads of one process: there must be an order of
//! their steps in which a plain reference returns the same.
//!
//! **The relaxed specification.** These are one step: the reading and the writing of one page, or of a pipe; an append
//! within one page; a cut or extension; the size; moving an offset, with what is read or written there; the removal of a
//! name, and its look-up or creation. A call takes several of them, in this order:
//!
//! - A call on a descriptor finds what it leads to, and then acts on that, whatever becomes of the descriptor meanwhile
//!   (Linux: `fdget`).
//! - A read or write over several pages goes from page to page; it ends at the first that is not whole. (POSIX.1-2017,
//!   2.9.7 wants it to be one step; file systems of Linux differ.)
//! - A new descriptor: every lower number was in use at some moment, one after the other; then its own was free.
//! - `open` finds or creates the file, cuts it for O_TRUNC, and takes a number. `dup` finds, and takes a number; `dup2`
//!   finds, and replaces.
//! - The end of a pipe goes after the last descriptor to it.
//!
//! Offsets and sizes are counted in units of a quarter page, each of one value, so that the reference stays small.
#![cfg(not(loom))]

mod data_calls;
mod instance;
mod set_ids;

use std::collections::{BTreeMap, VecDeque};

use data_calls::{
    Answer, Call, NAMES, Outcome, UNITS_PER_PAGE, any_call, any_call_on_pipes, call_near_the_end, call_of,
    call_on_numbers, make,
};
use history::threads::{self, Barrier, Clock};
use history::{
    Event, State, explore, is_linearisable, of_few_calls, of_few_kinds, overtake, overtake_and_repeat, play, rounds,
};
use instance::with_instance_for;
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::{DataOperations, Errno, OpenFlags};
use sync::Spin;

/// The end of a pipe, or a file, of which descriptors can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Object {
    File(usize),
    PipeRead,
    PipeWrite,
}

/// What is open: its object, and which of its descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Opened {
    object: Object,
    description: usize,
    append: bool,
}

/// A file's units, the names, one pipe, descriptors; and what each thread's call has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Reference {
    files: Vec<Vec<u8>>,
    names: [Option<usize>; NAMES.len()],
    pipe: VecDeque<u8>,
    /// Descriptors to read from the pipe, and to write to it.
    pipe_ends: [usize; 2],
    /// Offsets in units, by description.
    offsets: Vec<i64>,
    table: BTreeMap<u32, Opened>,
    found: [Option<Opened>; 4],
    /// Whether the thread's find is a file that it made.
    is_new: [bool; 4],
}

/// A step of a call, with what it returned.
#[derive(Clone, Debug)]
enum Step {
    /// What becomes of a name for `open`: the thread has found a file.
    FindName(usize, OpenFlags, bool),
    NameFails(usize, OpenFlags, Errno),
    /// Cuts what was found, unless it was made.
    CutFound,
    Unlink(usize, Outcome),
    IsUsed(u32),
    /// The thread's find gets the number.
    Take(u32),
    Find(u32),
    /// There is no descriptor, or one to this end of the pipe.
    FindFails(u32, Option<Object>),
    /// One descriptor more for what was found.
    CountEnd,
    /// What the number led to is found.
    Remove(u32),
    Replace(u32),
    ReleaseEnd,
    Read(usize, Outcome),
    Write(usize, u8, Outcome),
    /// Within a page: from a unit on, the units that were asked for, and those that came.
    ReadAt(usize, usize, Outcome),
    WriteAt(usize, usize, u8, Outcome),
    Seek(i64, Whence, Outcome),
    Resize(usize, Outcome),
    Size(Outcome),
}

fn whole(step: Step) -> Vec<Step> {
    vec![step]
}

/// Parts of a range of units that lie in one page each: start and length.
fn parts(start: usize, length: usize) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let mut at = start;
    while at < start + length {
        let end = (at / UNITS_PER_PAGE + 1) * UNITS_PER_PAGE;
        parts.push((at, end.min(start + length) - at));
        at = end;
    }
    parts
}

fn taking(number: &Outcome, before: Vec<Step>) -> Vec<Step> {
    let Ok(Answer::Number(number)) = number else { panic!("numbers do not run out: {number:?}") };
    let number = *number as u32;
    before.into_iter().chain((0..number).map(Step::IsUsed)).chain([Step::Take(number)]).collect()
}

/// The steps of a call that returned this.
fn steps(call: &Call, outcome: &Outcome) -> Vec<Step> {
    let fails = |fd: u32| whole(Step::FindFails(fd, None));
    let found = |fd: u32, step: Step| match (outcome, &step) {
        (Err(Errno::EBADF), Step::Read(..)) => whole(Step::FindFails(fd, Some(Object::PipeWrite))),
        (Err(Errno::EBADF), Step::Write(..)) => whole(Step::FindFails(fd, Some(Object::PipeRead))),
        (Err(Errno::EBADF), _) => fails(fd),
        _ => vec![Step::Find(fd), step],
    };
    match call {
        Call::Open(name, flags, append) => match outcome {
            Err(errno) => whole(Step::NameFails(*name, *flags, *errno)),
            Ok(_) => {
                let cut = flags.contains(OpenFlags::TRUNCATE).then_some(Step::CutFound);
                let find = Step::FindName(*name, *flags, *append);
                taking(outcome, [find].into_iter().chain(cut).collect())
            }
        },
        Call::Unlink(name) => whole(Step::Unlink(*name, outcome.clone())),
        Call::Close(fd) => match outcome {
            Ok(_) => vec![Step::Remove(*fd), Step::ReleaseEnd],
            Err(_) => fails(*fd),
        },
        Call::SetOnExec(fd) => match outcome {
            Ok(_) => whole(Step::Find(*fd)),
            Err(_) => fails(*fd),
        },
        Call::Duplicate(fd) => match outcome {
            Ok(_) => taking(outcome, vec![Step::Find(*fd), Step::CountEnd]),
            Err(_) => fails(*fd),
        },
        Call::DuplicateTo(fd, target) => match outcome {
            Ok(_) if fd == target => whole(Step::Find(*fd)),
            Ok(_) => vec![Step::Find(*fd), Step::CountEnd, Step::Replace(*target), Step::ReleaseEnd],
            Err(_) => fails(*fd),
        },
        Call::Read(fd, length) => found(*fd, Step::Read(*length, outcome.clone())),
        Call::Write(fd, length, fill) => found(*fd, Step::Write(*length, *fill, outcome.clone())),
        Call::ReadAt(fd, start, length) => {
            let Ok(Answer::Units(units)) = outcome else {
                return found(*fd, Step::ReadAt(*start, *length, outcome.clone()));
            };
            let (mut steps, mut units) = (vec![Step::Find(*fd)], &units[..]);
            for (start, length) in parts(*start, *length) {
                let (now, later) = units.split_at(units.len().min(length));
                steps.push(Step::ReadAt(start, length, Ok(Answer::Units(now.to_vec()))));
                if now.len() < length {
                    break;
                }
                units = later;
            }
            steps
        }
        Call::WriteAt(fd, start, length, fill) => match outcome {
            Ok(Answer::Number(written)) if *written == *length as u64 => {
                let write = |(start, length)| Step::WriteAt(start, length, *fill, Ok(Answer::Number(length as u64)));
                [Step::Find(*fd)].into_iter().chain(parts(*start, *length).into_iter().map(write)).collect()
            }
            _ => found(*fd, Step::WriteAt(*start, *length, *fill, outcome.clone())),
        },
        Call::Seek(fd, offset, whence) => found(*fd, Step::Seek(*offset, *whence, outcome.clone())),
        Call::Resize(fd, size) => found(*fd, Step::Resize(*size, outcome.clone())),
        Call::Size(fd) => found(*fd, Step::Size(outcome.clone())),
    }
}

/// A file's units from one on, at most so many.
fn range(file: &[u8], start: usize, length: usize) -> Vec<u8> {
    file[start.min(file.len())..(start + length).min(file.len())].to_vec()
}

fn fill(file: &mut Vec<u8>, start: usize, length: usize, value: u8) {
    file.resize(file.len().max(start + length), 0);
    file[start..start + length].fill(value);
}

impl Reference {
    fn release(&mut self, opened: Option<Opened>) {
        match opened.map(|opened| opened.object) {
            Some(Object::PipeRead) => self.pipe_ends[0] -= 1,
            Some(Object::PipeWrite) => self.pipe_ends[1] -= 1,
            _ => {}
        }
    }

    fn count(&mut self, opened: Opened) {
        match opened.object {
            Object::PipeRead => self.pipe_ends[0] += 1,
            Object::PipeWrite => self.pipe_ends[1] += 1,
            Object::File(_) => {}
        }
    }

    fn open(&mut self, object: Object, append: bool) -> Opened {
        self.offsets.push(0);
        Opened { object, description: self.offsets.len() - 1, append }
    }

    fn find_name(&mut self, name: usize, flags: OpenFlags) -> Result<usize, Errno> {
        match self.names[name] {
            Some(_) if flags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) => Err(Errno::EEXIST),
            Some(file) => Ok(file),
            None if flags.contains(OpenFlags::CREATE) => {
                self.files.push(Vec::new());
                self.names[name] = Some(self.files.len() - 1);
                Ok(self.files.len() - 1)
            }
            None => Err(Errno::ENOENT),
        }
    }

    fn read(&mut self, opened: Opened, length: usize) -> Outcome {
        match opened.object {
            Object::File(file) => {
                let offset = &mut self.offsets[opened.description];
                let units = range(&self.files[file], *offset as usize, length);
                *offset += units.len() as i64;
                Ok(Answer::Units(units))
            }
            Object::PipeRead if self.pipe.is_empty() && self.pipe_ends[1] > 0 => Err(Errno::EAGAIN),
            Object::PipeRead => Ok(Answer::Units(self.pipe.drain(..length.min(self.pipe.len())).collect())),
            Object::PipeWrite => Err(Errno::EBADF),
        }
    }

    fn write(&mut self, opened: Opened, length: usize, value: u8) -> Outcome {
        match opened.object {
            Object::File(file) => {
                let (file, offset) = (&mut self.files[file], &mut self.offsets[opened.description]);
                let at = if opened.append { file.len() } else { *offset as usize };
                fill(file, at, length, value);
                *offset = (at + length) as i64;
            }
            Object::PipeWrite if self.pipe_ends[0] == 0 => return Err(Errno::EPIPE),
            Object::PipeWrite => self.pipe.extend(std::iter::repeat_n(value, length)),
            Object::PipeRead => return Err(Errno::EBADF),
        }
        Ok(Answer::Number(length as u64))
    }

    fn seek(&mut self, opened: Opened, offset: i64, whence: Whence) -> Outcome {
        let Object::File(file) = opened.object else { return Err(Errno::ESPIPE) };
        let base = match whence {
            Whence::Start => 0,
            Whence::Current => self.offsets[opened.description],
            Whence::End => self.files[file].len() as i64,
        };
        let target = u64::try_from(base + offset).map_err(|_| Errno::EINVAL)?;
        self.offsets[opened.description] = target as i64;
        Ok(Answer::Number(target))
    }

    fn file(&mut self, opened: Opened, otherwise: Errno) -> Result<&mut Vec<u8>, Errno> {
        match opened.object {
            Object::File(file) => Ok(&mut self.files[file]),
            _ => Err(otherwise),
        }
    }
}

impl State for Reference {
    type Step = Step;

    fn take(&mut self, thread: usize, step: &Step) -> bool {
        let found = self.found[thread];
        let opened = || found.expect("a step before has found it");
        match step {
            Step::FindName(name, flags, append) => {
                self.is_new[thread] = self.names[*name].is_none();
                let Ok(file) = self.find_name(*name, *flags) else { return false };
                self.found[thread] = Some(self.open(Object::File(file), *append));
                true
            }
            Step::NameFails(name, flags, errno) => self.find_name(*name, *flags) == Err(*errno),
            Step::CutFound => {
                if let (Object::File(file), false) = (opened().object, self.is_new[thread]) {
                    self.files[file].clear();
                }
                true
            }
            Step::Unlink(name, outcome) => {
                let expected = if self.names[*name].take().is_some() { Ok(Answer::Done) } else { Err(Errno::ENOENT) };
                *outcome == expected
            }
            Step::IsUsed(number) => self.table.contains_key(number),
            Step::Take(number) => self.table.insert(*number, opened()).is_none(),
            Step::Find(fd) => {
                self.found[thread] = self.table.get(fd).copied();
                self.found[thread].is_some()
            }
            Step::FindFails(fd, wrong_end) => self.table.get(fd).is_none_or(|opened| Some(opened.object) == *wrong_end),
            Step::CountEnd => {
                self.count(opened());
                true
            }
            Step::Remove(fd) => {
                self.found[thread] = self.table.remove(fd);
                self.found[thread].is_some()
            }
            Step::Replace(target) => {
                self.found[thread] = self.table.insert(*target, opened());
                true
            }
            Step::ReleaseEnd => {
                self.release(found);
                true
            }
            Step::Read(length, outcome) => self.read(opened(), *length) == *outcome,
            Step::Write(length, value, outcome) => self.write(opened(), *length, *value) == *outcome,
            Step::ReadAt(start, length, outcome) => {
                let units = self.file(opened(), Errno::ESPIPE).map(|file| range(file, *start, *length));
                units.map(Answer::Units) == *outcome
            }
            Step::WriteAt(start, length, value, outcome) => {
                let append = opened().append;
                let written = self.file(opened(), Errno::ESPIPE).map(|file| {
                    let start = if append { file.len() } else { *start };
                    fill(file, start, *length, *value);
                    Answer::Number(*length as u64)
                });
                written == *outcome
            }
            Step::Seek(offset, whence, outcome) => self.seek(opened(), *offset, *whence) == *outcome,
            Step::Resize(size, outcome) => {
                let resized = self.file(opened(), Errno::EINVAL).map(|file| file.resize(*size, 0));
                resized.map(|()| Answer::Done) == *outcome
            }
            Step::Size(outcome) => {
                let size = self.file(opened(), Errno::EINVAL).map_or(0, |file| file.len());
                Ok(Answer::Number(size as u64)) == *outcome
            }
        }
    }
}

/// One file of six units, open twice, and a pipe with so many.
fn prepare<D: DataOperations>(verbs: &D, append: bool, piped: usize) -> Reference {
    let mut reference = Reference::default();
    for number in [0, 1] {
        assert_eq!(make(verbs, &Call::Open(0, OpenFlags::CREATE, append)), Ok(Answer::Number(number)));
        let file = reference.find_name(0, OpenFlags::CREATE).unwrap();
        let opened = reference.open(Object::File(file), append);
        reference.table.insert(number as u32, opened);
    }
    for _ in 0..6 {
        assert_eq!(make(verbs, &Call::Write(0, 1, 9)), reference.write(reference.table[&0], 1, 9));
    }
    assert_eq!(data::pipe(verbs, DescriptorOptions::PLAIN), Ok((2, 3)));
    for (number, object) in [(2, Object::PipeRead), (3, Object::PipeWrite)] {
        let opened = reference.open(object, false);
        reference.count(opened);
        reference.table.insert(number, opened);
    }
    for unit in 0..piped as u8 {
        assert_eq!(make(verbs, &Call::Write(3, 1, unit)), reference.write(reference.table[&3], 1, unit));
    }
    reference
}

#[test]
fn the_reference_refuses_impossible_histories() {
    let mut start = Reference::default();
    start.files.push(vec![9; 6]);
    let opened = start.open(Object::File(0), false);
    start.table.insert(0, opened);
    let event = |call: &Call, outcome: Outcome, began, ended| Event { steps: steps(call, &outcome), began, ended };
    let write = |began, ended| event(&Call::WriteAt(0, 2, 4, 7), Ok(Answer::Number(4)), began, ended);
    let read = |seen: &[u8], began, ended| {
        event(&Call::ReadAt(0, 0, seen.len()), Ok(Answer::Units(seen.to_vec())), began, ended)
    };
    let during = |seen: &[u8]| is_linearisable(&[vec![write(1, 4)], vec![read(seen, 2, 3)]], &start);
    assert!(during(&[9; 6]) && during(&[9, 9, 7, 7, 7, 7]));
    assert!(during(&[9, 9, 7, 7, 9, 9]), "pages one after the other");
    assert!(during(&[9, 9, 9, 9, 7, 7]), "the reader may be overtaken");
    assert!(!during(&[9, 9, 7, 9, 9, 9]), "half a page");
    assert!(!is_linearisable(&[vec![write(1, 2)], vec![read(&[9; 6], 3, 4)]], &start), "an old page after the write");
    let duplicate = |number, began, ended| event(&Call::Duplicate(0), Ok(Answer::Number(number)), began, ended);
    assert!(!is_linearisable(&[vec![duplicate(2, 1, 2)]], &start), "1 was free all the time");
    let close = event(&Call::Close(1), Ok(Answer::Done), 4, 7);
    let crossing = [vec![duplicate(1, 1, 2), close], vec![duplicate(2, 3, 6), duplicate(1, 8, 9)]];
    assert!(is_linearisable(&crossing, &start));
}

#[test]
fn concurrent_calls_on_data_have_an_order() {
    let plans = |number: u64| {
        let (thread_count, append) = (2 + number as usize % 3, number % 2 == 1);
        (vec(vec(any_call(append), 12 / thread_count), thread_count), Just(append))
    };
    explore(rounds(250).longer(3), plans, explain);
}

/// Calls of few kinds on the two descriptors of one file.
fn few_kinds(number: u64) -> impl Strategy<Value = Plan> {
    let append = number % 2 == 1;
    let call = call_of(append, || (0..2_u32).boxed());
    (of_few_kinds(call, std::mem::discriminant, 2 + number as usize / 2 % 2, 3), Just(append))
}

#[test]
fn few_kinds_of_calls_on_one_file_have_an_order() {
    explore(rounds(250).longer(3), few_kinds, explain);
}

#[test]
fn calls_that_are_overtaken_have_an_order() {
    let plans = |number: u64| {
        let append = number / 8 % 2 == 1;
        let of_one_file = call_near_the_end(append).boxed();
        let call =
            [any_call(append).boxed(), of_one_file, call_on_numbers(append).boxed(), any_call_on_pipes(4).boxed()]
                [number as usize / 2 % 4]
                .clone();
        (of_few_calls(call), Just(append))
    };
    overtake(history::plans(40).longer(80), plans, explain_calls_alone);
}

#[test]
fn concurrent_calls_on_pipes_have_an_order() {
    let plans = |number: u64| {
        let thread_count = 2 + number as usize % 3;
        (vec(vec(any_call_on_pipes(1), 12 / thread_count), thread_count), Just(false))
    };
    explore(rounds(250).longer(3), plans, explain);
}

/// The last byte that a file can have is appended once: the other call is told so, and not that there is no space.
#[test]
fn of_two_appends_at_the_limit_one_is_too_large() {
    overtake_and_repeat(50, vec![vec![()]; 2], |_, plan| {
        with_instance_for(1, 8, |instance| {
            let (fs, core) = (instance.fs, instance.core(3));
            let owned = instance.process(&core);
            let process = &owned;
            for number in [0, 1] {
                let opened = make(&fs.enter(&core, process, &Spin), &Call::Open(0, OpenFlags::CREATE, true));
                assert_eq!(opened, Ok(Answer::Number(number)));
            }
            data::truncate(&fs.enter(&core, process, &Spin), 0, i64::MAX - 1).unwrap();
            let made = play(plan, |thread| {
                let core = instance.core(thread);
                move |(): &()| data::write(&fs.enter(&core, process, &Spin), thread as u32, &[7])
            });
            let mut outcomes: Vec<_> = made.iter().map(|made| made[0].outcome).collect();
            outcomes.sort_by_key(Result::is_err);
            assert_eq!(outcomes, [Ok(1), Err(Errno::EFBIG)]);
            make(&fs.enter(&core, process, &Spin), &Call::Unlink(0)).unwrap();
            owned.exit(fs, &core, &Spin);
        });
    });
}

/// What each thread calls, and whether descriptors append.
type Plan = (Vec<Vec<Call>>, bool);

/// Histories that had no order once, each with the fault that made them.
fn found_once() -> Vec<(&'static str, Plan)> {
    vec![
        // A read of the second page found a hole, when only the first was gone.
        (
            "scalefs: a page without a value is looked at once",
            (vec![vec![Call::Resize(0, 0)], vec![Call::ReadAt(1, 1, 1)]], false),
        ),
        // The append wrote before an end behind which somebody had already read.
        (
            "scalefs: an append looks at the end before its change",
            (vec![vec![Call::Write(0, 1, 7), Call::Size(0)], vec![Call::Resize(1, 9), Call::ReadAt(1, 6, 1)]], true),
        ),
        // A read found the end of the file where a hole had been, and the last page of a cut was about to be.
        (
            "scalefs: a page without a value is looked at once",
            (
                vec![vec![Call::Resize(1, 4), Call::Resize(1, 10), Call::ReadAt(1, 5, 1)], vec![Call::Resize(0, 7)]],
                false,
            ),
        ),
        // A read found a hole: no page before the write, and one behind it during that.
        (
            "scalefs: a page without a value is looked at once",
            (vec![vec![Call::ReadAt(1, 8, 1)], vec![Call::WriteAt(0, 8, 5, 7), Call::Resize(0, 6)]], false),
        ),
        // The size was seen before the page that a read needs to find below it.
        (
            "radix: a first value is not awaited",
            (vec![vec![Call::Resize(1, 24), Call::Resize(1, 14)], vec![Call::Size(0), Call::ReadAt(0, 8, 1)]], false),
        ),
        // EPIPE, though an end was open: it was counted after the last one had gone.
        (
            "scalefs: an end is counted without the lock of its number",
            (vec![vec![Call::Duplicate(2), Call::Write(3, 1, 7)], vec![Call::Close(2)]], false),
        ),
        // EAGAIN of a pipe that was not full: a slot had been filled, of which the writer did not know.
        (
            "scalefs: a pipe's slot is looked at whosever turn it is",
            (vec![vec![Call::Write(3, 4, 7)], vec![Call::Write(3, 4, 8)]], false),
        ),
        // The size of a write was seen before the offset that it left.
        (
            "scalefs: an offset that is being moved stays",
            (vec![vec![Call::Write(0, 1, 7)], vec![Call::Size(1), Call::Seek(0, 0, Whence::Current)]], false),
        ),
        // The same of an error.
        (
            "scalefs: an offset that is being moved stays",
            (vec![vec![Call::Write(0, 1, 7)], vec![Call::Size(1), Call::Seek(0, -7, Whence::Current)]], false),
        ),
        // The same of a read at the end.
        (
            "scalefs: an offset that is being moved stays",
            (
                vec![
                    vec![Call::Resize(1, 0), Call::Write(0, 1, 7)],
                    vec![Call::WriteAt(1, 0, 1, 8), Call::ReadAt(1, 0, 2), Call::Read(0, 1)],
                ],
                true,
            ),
        ),
        // A read found the end where its offset had been, was not, and is again.
        (
            "scalefs: an offset that comes back never went",
            (
                vec![
                    vec![Call::Size(0), Call::Read(0, 1)],
                    vec![
                        Call::Resize(1, 9),
                        Call::Seek(0, 2, Whence::Start),
                        Call::Resize(1, 6),
                        Call::Resize(1, 9),
                        Call::Seek(0, 6, Whence::Start),
                    ],
                ],
                false,
            ),
        ),
        // EAGAIN in the middle of a read that then went on with what came.
        (
            "scalefs: the middle of a pipe's call is seen",
            (
                vec![vec![Call::Read(2, 4)], vec![Call::Write(3, 4, 8)], vec![Call::Write(3, 1, 7), Call::Read(2, 2)]],
                false,
            ),
        ),
        // EAGAIN of a pipe that was not empty.
        (
            "scalefs: a pipe's slot is looked at whosever turn it is",
            (vec![vec![Call::Write(3, 4, 7), Call::Write(3, 4, 8), Call::Read(2, 4)], vec![Call::Read(2, 4)]], false),
        ),
        // A write behind the end had a lock that a cut to nothing did not wait for: its page stayed, and its size did not.
        (
            "radix: a slot that is locked is taken to stay empty",
            (
                vec![vec![Call::Resize(0, 0)], vec![Call::WriteAt(1, 8, 4, 7), Call::Size(1), Call::ReadAt(1, 8, 1)]],
                false,
            ),
        ),
        // The same of a write that locked after the cut had gone past.
        (
            "scalefs: who extends looks for cuts before the lock",
            (
                vec![vec![Call::Resize(0, 0)], vec![Call::WriteAt(1, 8, 4, 7), Call::Size(1), Call::ReadAt(1, 8, 1)]],
                false,
            ),
        ),
        // A cut that came too late set the size that it had seen; what was written meanwhile had made it larger.
        (
            "scalefs: a cut sets the size that it saw",
            (vec![vec![Call::Resize(0, 5)], vec![Call::Resize(1, 1), Call::WriteAt(1, 0, 3, 7), Call::Size(1)]], false),
        ),
        // The size of a write was seen before how far the offset reached.
        (
            "scalefs: an offset's reach is told after the move",
            (
                vec![
                    vec![Call::Seek(0, 8, Whence::Start), Call::Write(0, 1, 7)],
                    vec![Call::Size(1), Call::Seek(0, -9, Whence::Current)],
                ],
                false,
            ),
        ),
        // Zeros were not written, since there was no page once and the file went on behind it later: in between there was a page.
        (
            "scalefs: a hole is looked at once",
            (
                vec![
                    vec![Call::WriteAt(0, 4, 4, 0), Call::ReadAt(0, 4, 1)],
                    vec![Call::Resize(1, 0), Call::WriteAt(1, 4, 1, 7), Call::Size(1), Call::Resize(1, 9)],
                ],
                false,
            ),
        ),
    ]
}

#[test]
fn what_was_found_once_has_an_order() {
    let rounds = if cfg!(shuttle) { 2_000 } else { 50 };
    for (_, plan) in found_once() {
        overtake_and_repeat(rounds, plan, explain);
    }
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for (fault, plan) in found_once() {
        sync::mutant::must_be_caught(fault, || overtake_and_repeat(100_000, plan, explain));
    }
    let fault = "scalefs: cuts do not exclude each other";
    sync::mutant::must_be_caught(fault, || explore(0..20_000, few_kinds, explain));
}

/// As `explain`, every second time with bytes in the pipe, but that no core maintains meanwhile: words that all maintain are where threads would be overtaken most.
fn explain_calls_alone(round: u64, plan: &Plan) {
    explain_if(false, [0, 5][round as usize % 2], round, plan);
}

fn explain(round: u64, plan: &Plan) {
    explain_if(true, 0, round, plan);
}

/// Lets a thread make each list of calls, and looks for their order.
fn explain_if(maintains: bool, piped: usize, round: u64, (plan, append): &Plan) {
    with_instance_for(1, 64, |instance| {
        let fs = instance.fs;
        let core = instance.core(3);
        let owned = instance.process(&core);
        let process = &owned;
        let start = prepare(&fs.enter(&core, process, &Spin), *append, piped);
        drop(core);
        let (clock, barrier) = (Clock::new(1), Barrier::new(plan.len()));
        let run = |number: usize, calls: &[Call]| {
            let core = instance.core(number);
            let mut made = Vec::new();
            barrier.wait();
            for call in calls {
                let began = clock.now();
                let outcome = make(&fs.enter(&core, process, &Spin), call);
                made.push((call.clone(), outcome, began, clock.now()));
                if maintains {
                    fs.maintain(&core, &Spin);
                }
            }
            made
        };
        let made: Vec<Vec<_>> = threads::scope(|scope| {
            let run = &run;
            let running: Vec<_> =
                plan.iter().enumerate().map(|(number, calls)| scope.spawn(move || run(number, calls))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut told = Vec::new();
        let mut events = vec![Vec::new(); plan.len()];
        for (thread, (call, outcome, began, ended)) in
            made.into_iter().enumerate().flat_map(|(thread, made)| made.into_iter().map(move |one| (thread, one)))
        {
            told.push(format!("{began:3} to {ended:3} thread {thread} {call:?} = {outcome:?}"));
            events[thread].push(Event { steps: steps(&call, &outcome), began, ended });
        }
        told.sort();
        // What is left is looked at in the end: no plan has to do so.
        let core = instance.core(3);
        let verbs = fs.enter(&core, process, &Spin);
        let of = |fd| [Call::Size(fd), Call::Seek(fd, 0, Whence::Current)];
        let last = [Call::ReadAt(0, 0, 24), Call::Read(2, 24), Call::Duplicate(0)];
        let looks = [0, 1].into_iter().flat_map(of).chain(last);
        let look = |call: Call| {
            let outcome = make(&verbs, &call);
            told.push(format!("in the end {call:?} = {outcome:?}"));
            Event { steps: steps(&call, &outcome), began: u64::MAX - 1, ended: u64::MAX }
        };
        events[0].extend(looks.map(look));
        drop(verbs);
        drop(core);
        assert!(is_linearisable(&events, &start), "no order explains round {round}:\n{}", told.join("\n"));
        let core = instance.core(3);
        let verbs = fs.enter(&core, process, &Spin);
        for name in 0..NAMES.len() {
            let _ = make(&verbs, &Call::Unlink(name));
        }
        drop(verbs);
        owned.exit(fs, &core, &Spin);
    });
}
