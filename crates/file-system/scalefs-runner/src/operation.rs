//! What an actor is to do, with all that it needs, and what came back: no pointer leads to the heap in a recorded call.

use posix_calls::data::{DescriptorOptions, Whence};
use posix_calls::{Attributes, DataOperations, Errno, Fields, OpenFlags, Protection};
use program_runner::planted;
use transact::Transaction;
use wire::value::Value;

use crate::calls::{self, Map};
use crate::file_calls::{self, FileCall};
use crate::memory;
use crate::name_calls::NameCall;
use crate::outside::{self, Look};
use crate::paths::{Named, Path};
use crate::process_calls::{self, ProcessWork};
use crate::socket_calls::{self, Came, SocketWork};
use crate::subject::Subject;
use crate::transacted::{self, Stage};
use crate::transacting::Staged;
use crate::values::PAGE_BYTES;

/// What an actor is to do.
#[derive(Debug, Clone, Copy, Default)]
pub enum Work {
    #[default]
    Nothing,
    // Calls under test.
    Open {
        flags: OpenFlags,
        options: DescriptorOptions,
    },
    Close(u32),
    Name(NameCall),
    Fstat {
        fd: u32,
        fields: Fields,
    },
    Lseek {
        fd: u32,
        offset: i64,
        whence: Whence,
    },
    Pipe(DescriptorOptions),
    Read {
        fd: u32,
    },
    Write {
        fd: u32,
    },
    Pread {
        fd: u32,
        offset: i64,
    },
    Pwrite {
        fd: u32,
        offset: i64,
    },
    ReadPages {
        fd: u32,
    },
    WritePages {
        fd: u32,
    },
    /// Of the file at the path, or of a descriptor.
    File(FileCall),
    Map(Map),
    Unmap(u64),
    Synchronize(u64),
    Discard(u64),
    Protect {
        address: u64,
        protection: Protection,
    },
    Load(u64),
    Store(u64),
    Socket(SocketWork),
    Process(ProcessWork),
    ProcessNumber,
    CountShared,
    CountPerCore,
    // Set-up and observation.
    MakeFile {
        file: u32,
        pages: i64,
    },
    FillPage {
        file: u32,
        page: i64,
        byte: u8,
    },
    EnterDirectory,
    OpenFile {
        flags: OpenFlags,
        fd: u32,
        page: i64,
    },
    ForgetFile {
        file: u32,
    },
    MakePipe {
        pipe: u32,
    },
    FillPipe {
        pipe: u32,
        byte: u8,
    },
    OpenPipe {
        fd: u32,
        pipe: u32,
        write_end: bool,
    },
    ForgetPipe {
        pipe: u32,
        kept: [bool; 2],
    },
    MapFile {
        map: Map,
        may_write: bool,
    },
    PeekDirectory(Look),
    PeekDescriptors {
        times: bool,
    },
    /// Gives what is at the path away.
    Own {
        user: u32,
        mode: u32,
    },
    PeekPath {
        times: bool,
    },
    PeekSlots,
    PeekMemory,
    ProbeMemory {
        first: u8,
    },
    // Between windows.
    /// What the call before has opened.
    CloseNode,
    CloseAll,
    /// A name, and all that is below it.
    RemoveTree,
    EndChildren,
    UnmapAll,
    TouchAll,
    /// So many rounds of calls on a file of the core's own.
    Warm(usize),
    Maintain {
        idle_cores_too: bool,
    },
    /// The thread acts as this worker's core from now on, and maintains it.
    TakeSeat(usize),
}

impl Work {
    /// Whether it is a call on descriptors and data.
    fn is_on_data(self) -> bool {
        use Work::{Close, File, Fstat, Lseek, Open, Pipe, Pread, Pwrite, Read, ReadPages, Write, WritePages};
        matches!(
            self,
            Open { .. }
                | Close(_)
                | File(_)
                | Fstat { .. }
                | Lseek { .. }
                | Pipe(_)
                | Read { .. }
                | Write { .. }
                | Pread { .. }
                | Pwrite { .. }
                | ReadPages { .. }
                | WritePages { .. }
        )
    }
}

/// What came back.
#[derive(Debug, Default)]
pub enum Outcome<H> {
    #[default]
    Success,
    /// A number, an offset or a count in bytes, or a descriptor.
    Number(u64),
    Opened(H),
    Ends(u32, u32),
    Status(Attributes),
    /// Where a symbolic link leads: so many bytes of the page.
    Leads(usize),
    /// The signal that an access raised.
    Raised(u8),
    /// Of a call that is never recorded.
    Outside(Value<'static>),
}

/// One operation with all that it needs.
#[repr(align(128))]
pub struct Operation<H> {
    pub work: Work,
    /// Whether it is part of a transaction.
    pub stage: Stage,
    /// The transaction that the actor has open, until it ends it.
    pub transaction: Option<Transaction<H>>,
    /// For which process.
    pub process: usize,
    /// The core of a call under test.
    pub core: Option<usize>,
    pub paths: [Path; 2],
    /// The end of all names of the window.
    pub suffix: Path,
    /// What is written, or was read: most calls move the first page. The actor's own.
    pub pages: [[u8; PAGE_BYTES]; 2],
    pub outcome: Outcome<H>,
    /// Descriptors that the implementation chose, with what they are called.
    pub handles: Vec<(u32, Value<'static>)>,
    /// Addresses that the implementation chose, in the order of the calls.
    pub chosen: Vec<u64>,
}

impl<H> Default for Operation<H> {
    fn default() -> Self {
        Self {
            work: Work::Nothing,
            stage: Stage::Alone,
            transaction: None,
            process: 0,
            core: None,
            paths: Default::default(),
            suffix: Path::default(),
            pages: [[0; PAGE_BYTES]; 2],
            outcome: Outcome::Success,
            handles: Vec::new(),
            chosen: Vec::new(),
        }
    }
}

impl<H> Staged for Operation<H> {
    fn stage(&mut self) -> &mut Stage {
        &mut self.stage
    }
}

impl<H> From<Named<H>> for Outcome<H> {
    fn from(named: Named<H>) -> Outcome<H> {
        match named {
            Named::Done => Outcome::Success,
            Named::Opened(handle) => Outcome::Opened(handle),
            Named::Status(attributes) => Outcome::Status(attributes),
            Named::Leads(length) => Outcome::Leads(length),
        }
    }
}

impl<H> Operation<H> {
    /// Returns 0, a negative error number, or what comes instead of a result in a transaction ([`crate::transacted`]).
    pub fn perform<S: Subject<Handle = H>>(&mut self, actor: &S) -> i64 {
        // Descriptors and memory are where their process is.
        actor.acts_from(self.core.filter(|_| matches!(self.work, Work::Name(_))));
        match self.stage {
            Stage::Alone => self.perform_alone(actor),
            Stage::Begin => transacted::begin(actor, self.process, &mut self.transaction),
            Stage::Within => match self.transaction.take() {
                Some(transaction) => {
                    let result = self.perform_within(actor, &transaction);
                    self.transaction = Some(transaction);
                    result
                }
                None => transacted::NOT_TRANSACTIONAL,
            },
            Stage::End => transacted::end(actor, self.process, &mut self.transaction),
        }
    }

    /// Whether it is a step of a set-up or observation, if it is no call under test.
    pub fn is_step(&self) -> bool {
        // Behind rounds of calls, that maintenance is due is what the next window is to find.
        let is_between = matches!(self.work, Work::Nothing | Work::Warm(_) | Work::Maintain { .. } | Work::TakeSeat(_));
        !is_between && matches!(self.stage, Stage::Alone)
    }

    fn perform_alone<S: Subject<Handle = H>>(&mut self, actor: &S) -> i64 {
        let process = self.process;
        let first = self.paths[0].bytes();
        let done = |()| Outcome::Success;
        let outcome = match self.work {
            Work::Nothing => Ok(Outcome::Success),
            work if work.is_on_data() => self.perform_data(&actor.enter(process)),
            Work::Name(call) => {
                call.perform(actor.enter(process).objects(), &self.paths, &mut self.pages[0]).map(Outcome::from)
            }
            Work::Map(map) => calls::mmap(actor, process, map).map(Outcome::Number),
            Work::Unmap(address) => calls::munmap(actor, process, address).map(done),
            Work::Synchronize(address) => calls::msync(actor, process, address).map(done),
            Work::Discard(address) => calls::madvise(actor, process, address).map(done),
            Work::Protect { address, protection } => calls::mprotect(actor, process, address, protection).map(done),
            Work::Load(address) => Ok(match calls::memread(actor, process, address) {
                Ok(byte) => Outcome::Number(byte.into()),
                Err(fault) => Outcome::Raised(memory::signal(fault)),
            }),
            Work::Store(address) => Ok(match calls::memwrite(actor, process, address, &self.pages[0]) {
                Ok(()) => Outcome::Success,
                Err(fault) => Outcome::Raised(memory::signal(fault)),
            }),
            Work::Socket(work) => socket_calls::perform(actor, work, first).map(|came| match came {
                Came::Nothing => Outcome::Success,
                Came::Number(number) => Outcome::Number(number),
                Came::Outside(value) => Outcome::Outside(value),
            }),
            Work::Process(work) => match process_calls::perform(actor, work) {
                Ok(process_calls::Came::Nothing) => Ok(Outcome::Success),
                Ok(process_calls::Came::Number(number)) => Ok(Outcome::Number(number)),
                Ok(process_calls::Came::Outside(value)) => Ok(Outcome::Outside(value)),
                Err(number) => return -number,
            },
            Work::ProcessNumber => Ok(Outcome::Number(calls::getpid(actor, process).0)),
            Work::CountShared => {
                planted::count_shared();
                Ok(Outcome::Success)
            }
            Work::CountPerCore => {
                planted::count_per_core(actor.core());
                Ok(Outcome::Success)
            }
            Work::Warm(rounds) => outside::warm(actor, rounds).map(done),
            Work::TakeSeat(worker) => {
                S::take_seat(worker);
                S::actor().maintain(false);
                Ok(Outcome::Success)
            }
            work => self.perform_outside(actor, work).map(Outcome::Outside),
        };
        self.finish(outcome)
    }

    fn finish(&mut self, outcome: Result<Outcome<H>, Errno>) -> i64 {
        match outcome {
            Ok(outcome) => {
                self.outcome = outcome;
                0
            }
            Err(errno) => -i64::from(errno.number()),
        }
    }

    /// A call of a transaction. What is not offered in one leaves it as it was.
    fn perform_within<S: Subject<Handle = H>>(&mut self, actor: &S, transaction: &Transaction<H>) -> i64 {
        let before = transaction.savepoint();
        let call = transacted::call(actor, self.process, transaction);
        let outcome = match self.work {
            Work::Name(name) => transacted::name(&call, name, &self.paths, &mut self.pages[0]).map(Outcome::from),
            work if work.is_on_data() => self.perform_data(&call),
            _ => Err(Errno::EOPNOTSUPP),
        };
        drop(call);
        if matches!(outcome, Err(Errno::EOPNOTSUPP)) {
            transaction.go_back(before).expect("a savepoint of this call");
            return transacted::NOT_TRANSACTIONAL;
        }
        self.finish(outcome)
    }

    /// A call on descriptors and data.
    fn perform_data<D: DataOperations>(&mut self, process: &D) -> Result<Outcome<H>, Errno> {
        let count = |bytes: usize| Outcome::Number(bytes as u64);
        match self.work {
            Work::Open { flags, options } => {
                calls::open(process, self.paths[0].bytes(), flags, options).map(|fd| Outcome::Number(fd.into()))
            }
            Work::Close(fd) => calls::close(process, fd).map(|()| Outcome::Success),
            Work::File(call) => call
                .perform(process, self.paths[0].bytes())
                .map(|number| number.map_or(Outcome::Success, Outcome::Number)),
            Work::Fstat { fd, fields } => calls::fstat(process, fd, fields).map(Outcome::Status),
            Work::Lseek { fd, offset, whence } => calls::lseek(process, fd, offset, whence).map(Outcome::Number),
            Work::Pipe(options) => calls::pipe(process, options).map(|(read, write)| Outcome::Ends(read, write)),
            Work::Read { fd } => calls::read(process, fd, &mut self.pages[0]).map(count),
            Work::Write { fd } => calls::write(process, fd, &self.pages[0]).map(count),
            Work::Pread { fd, offset } => calls::pread(process, fd, &mut self.pages[0], offset).map(count),
            Work::Pwrite { fd, offset } => calls::pwrite(process, fd, &self.pages[0], offset).map(count),
            Work::ReadPages { fd } => calls::readv(process, fd, &mut self.pages).map(count),
            Work::WritePages { fd } => calls::writev(process, fd, &self.pages).map(count),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// What is never recorded.
    fn perform_outside<S: Subject<Handle = H>>(&mut self, actor: &S, work: Work) -> Result<Value<'static>, Errno> {
        let process = self.process;
        let path = self.paths[0].bytes();
        match work {
            Work::MakeFile { file, pages } => outside::make_file(actor, path, file, pages),
            Work::FillPage { file, page, byte } => outside::fill_page(actor, file, page, byte),
            Work::EnterDirectory => outside::enter_directory(actor, process, path),
            Work::OpenFile { flags, fd, page } => outside::open_file(actor, process, path, flags, fd, page),
            Work::ForgetFile { file } => outside::forget_file(actor, path, file),
            Work::MakePipe { pipe } => outside::make_pipe(actor, pipe),
            Work::FillPipe { pipe, byte } => outside::fill_pipe(actor, pipe, byte),
            Work::OpenPipe { fd, pipe, write_end } => outside::open_pipe(actor, process, fd, pipe, write_end),
            Work::ForgetPipe { pipe, kept } => outside::forget_pipe(actor, pipe, kept),
            Work::MapFile { map, may_write } => memory::map_file(actor, process, path, map, may_write),
            Work::Own { user, mode } => outside::own(actor, path, user, mode),
            Work::PeekPath { times } => outside::peek_path(actor, path, times),
            Work::PeekSlots => {
                let open: Vec<u32> =
                    actor.descriptors(process).into_iter().filter(|&fd| outside::is_numbered(fd)).collect();
                file_calls::peek_slots(&actor.enter(process), &open)
            }
            Work::PeekMemory => memory::peek(actor, process, &self.chosen),
            Work::ProbeMemory { first } => memory::probe(actor, process, &self.chosen, first),
            Work::UnmapAll => memory::unmap_all(actor, process),
            Work::TouchAll => memory::touch_all(actor, process),
            Work::PeekDirectory(look) => outside::peek_directory(actor, path, self.suffix.bytes(), look),
            Work::PeekDescriptors { times } => outside::peek_descriptors(actor, process, times, |fd| {
                let chosen = self.handles.iter().find(|handle| handle.0 == fd).map(|handle| handle.1.clone());
                chosen.or_else(|| outside::is_numbered(fd).then_some(Value::Int(fd.into())))
            }),
            Work::CloseNode => {
                if let Outcome::Opened(opened) = std::mem::take(&mut self.outcome) {
                    calls::close_node(actor.enter(process).objects(), opened);
                }
                Ok(Value::Null)
            }
            Work::CloseAll => outside::close_all(actor, process),
            Work::RemoveTree => outside::remove_tree(actor, path).map(|()| Value::Null),
            Work::EndChildren => {
                process_calls::end_all(actor);
                Ok(Value::Null)
            }
            Work::Maintain { idle_cores_too } => {
                actor.maintain(idle_cores_too);
                Ok(Value::Null)
            }
            _ => Ok(Value::Null),
        }
    }
}
