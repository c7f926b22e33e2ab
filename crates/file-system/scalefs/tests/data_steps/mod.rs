//! The calls on descriptors and data as steps, and a plain reference that takes them: see the specification of
//! `data_histories.rs`.

use std::collections::{BTreeMap, VecDeque};

use history::State;
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::{DataOperations, Errno, OpenFlags};

use crate::data_calls::{Answer, Call, NAMES, Outcome, UNITS_PER_PAGE, make};

/// The end of a pipe, or a file, of which descriptors can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    File(usize),
    PipeRead,
    PipeWrite,
}

/// What is open: its object, and which of its descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opened {
    pub object: Object,
    description: usize,
    append: bool,
}

/// A file's units, the names, one pipe, descriptors; and what each thread's call has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reference {
    pub files: Vec<Vec<u8>>,
    names: [Option<usize>; NAMES.len()],
    pipe: VecDeque<u8>,
    /// Descriptors to read from the pipe, and to write to it.
    pipe_ends: [usize; 2],
    /// Offsets in units, by description.
    offsets: Vec<i64>,
    pub table: BTreeMap<u32, Opened>,
    found: [Option<Opened>; 4],
    /// Whether the thread's find is a file that it made.
    is_new: [bool; 4],
}

/// A step of a call, with what it returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
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
pub fn steps(call: &Call, outcome: &Outcome) -> Vec<Step> {
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

    pub fn open(&mut self, object: Object, append: bool) -> Opened {
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

/// What there is in the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beginning {
    /// Whether descriptors of files append.
    pub append: bool,
    /// Units in the pipe.
    pub piped: usize,
    /// Whether the file has a page without bytes, and an end in the middle of another one.
    pub has_hole: bool,
}

impl Beginning {
    pub const PLAIN: Beginning = Beginning { append: false, piped: 0, has_hole: false };
    pub const APPENDING: Beginning = Beginning { append: true, ..Beginning::PLAIN };
    pub const WITH_BYTES_IN_THE_PIPE: Beginning = Beginning { piped: 5, ..Beginning::PLAIN };
    /// From which a read takes some.
    pub const WITH_BYTES_IN_ONE_SLOT: Beginning = Beginning { piped: 3, ..Beginning::PLAIN };
    pub const WITH_A_HOLE: Beginning = Beginning { has_hole: true, ..Beginning::PLAIN };
}

/// One file of six units or, with a hole, of ten, open twice; and a pipe.
pub fn prepare<D: DataOperations>(verbs: &D, beginning: Beginning) -> Reference {
    let mut reference = Reference::default();
    for number in [0, 1] {
        assert_eq!(make(verbs, &Call::Open(0, OpenFlags::CREATE, beginning.append)), Ok(Answer::Number(number)));
        let file = reference.find_name(0, OpenFlags::CREATE).unwrap();
        let opened = reference.open(Object::File(file), beginning.append);
        reference.table.insert(number as u32, opened);
    }
    for _ in 0..6 {
        assert_eq!(make(verbs, &Call::Write(0, 1, 9)), reference.write(reference.table[&0], 1, 9));
    }
    for size in [4, 10].into_iter().filter(|_| beginning.has_hole) {
        assert_eq!(make(verbs, &Call::Resize(0, size)), Ok(Answer::Done));
        reference.files[0].resize(size, 0);
    }
    assert_eq!(data::pipe(verbs, DescriptorOptions::PLAIN), Ok((2, 3)));
    for (number, object) in [(2, Object::PipeRead), (3, Object::PipeWrite)] {
        let opened = reference.open(object, false);
        reference.count(opened);
        reference.table.insert(number, opened);
    }
    for unit in 0..beginning.piped as u8 {
        assert_eq!(make(verbs, &Call::Write(3, 1, unit)), reference.write(reference.table[&3], 1, unit));
    }
    reference
}
