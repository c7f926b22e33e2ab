//! A file system as a target of the interpreter.
//!
//! All windows run on one instance, with the same processes and directories. A window's files have its number behind their
//! name, so no name is used twice, and its names are removed and its descriptors closed afterwards. Hash collisions thus
//! fall on other tests each time. Cores maintain before each window, never within. What else surrounds the calls, from long
//! names to rounds of other calls before them, is told by [`crate::surroundings`].
//! Calls under test may be in transactions, and so may parts of a sequence ([`crate::transacting`]).

use std::marker::PhantomData;

use posix_calls::data::{DescriptorOptions, Whence};
use posix_calls::memory::{Address, MappedObject};
use posix_calls::{Fields, NumberChoice, OpenFlags};
use runner::arguments::Arguments;
use runner::crew::Crew;
use runner::marker;
use runner::place::{CORE_LIMIT, PROCESS_LIMIT, Place};
use runner::target::{Agents, Execution, Marks, Signature, Target};
use wire::results::ResultsWriter;
use wire::value::Value;

use crate::calls::Map;
use crate::file_calls;
use crate::memory;
use crate::name_calls::NameCall;
use crate::operation::{Operation, Outcome, Work};
use crate::outside::{self, CONSTRUCTION, Look};
use crate::process_calls::{self, PARENT};
use crate::seats::seats;
use crate::signatures::SIGNATURES;
use crate::socket_calls::{self, SocketTest, SocketWork};
use crate::subject::Subject;
use crate::surroundings::{SETUP_PROCESS, Surroundings, USERS_OF_TESTS, check_name};
use crate::transacted::Stage;
use crate::transacting::Transacting;
use crate::tree_arguments;
use crate::tree_calls::TreeCall;
use crate::values::{PAGE_BYTES, pages_of, small, status, uniform};

/// So often, in windows, the coordinator maintains cores that no thread has; more often with rounds of other calls, since
/// what these free comes back only when all cores have maintained.
const IDLE_CORES_PERIOD: u64 = 64;

const COORDINATOR: Place = Place::Home { process: 0 };

/// A file system as a target.
pub struct FileSystemTarget<S> {
    subject: PhantomData<S>,
    workers: usize,
    surroundings: Surroundings,
    /// Rounds of calls before this window.
    rounds: usize,
    /// By worker: whose core it acts as in this window.
    seats: [usize; CORE_LIMIT],
    /// Number of the window, for its names.
    window: u64,
    /// Paths of files that this window may have created.
    paths: Vec<String>,
    /// Directories that exist.
    directories: Vec<String>,
    /// Where each process works; none is the root, where the processes of interfaces without directories are.
    working: [Option<String>; PROCESS_LIMIT],
    /// Per process, descriptors that the implementation chose, in the order of the calls that returned them.
    handles: [Vec<u32>; PROCESS_LIMIT],
    /// Per process, addresses that the implementation chose, in the order of the calls that returned them.
    chosen: [Vec<u64>; PROCESS_LIMIT],
    /// Processes that may have descriptors or memory.
    touched: [bool; PROCESS_LIMIT],
    sockets: SocketTest,
    /// Whether the window may have made children.
    has_children: bool,
    /// Whether the window may have made directories.
    has_tree: bool,
    /// Whether the window has given the root of its names away.
    root_is_owned: bool,
    /// Per process, who makes its calls on names alone; 0 is the superuser.
    users: [u32; PROCESS_LIMIT],
    transacting: Transacting,
    /// Why the window asks for what is not offered.
    not_offered: Option<&'static str>,
}

impl<S: Subject> FileSystemTarget<S> {
    /// Over the instance that the threads have entered, with `workers` workers.
    #[must_use]
    pub fn new(workers: usize, surroundings: Surroundings) -> Self {
        Self {
            subject: PhantomData,
            workers,
            surroundings,
            rounds: 0,
            seats: Default::default(),
            window: 0,
            paths: Vec::new(),
            directories: Vec::new(),
            working: Default::default(),
            handles: Default::default(),
            chosen: Default::default(),
            touched: [false; PROCESS_LIMIT],
            sockets: SocketTest::default(),
            has_children: false,
            has_tree: false,
            root_is_owned: false,
            users: [0; PROCESS_LIMIT],
            transacting: Transacting::default(),
            not_offered: None,
        }
    }

    /// Ends alike in all windows: names that differ in their last byte alone lie in neighbouring buckets, so that two names
    /// which collide would collide in ten windows one after the other, and no window could outvote another.
    fn suffix(&self) -> String {
        format!("-{}.", self.window)
    }

    fn remember(&mut self, path: String) {
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }

    /// The directory that stands for the root.
    fn place_of_root(&self) -> String {
        self.surroundings.levels().last().map_or_else(|| "/".to_owned(), Clone::clone)
    }

    /// Where the names of a directory lie.
    fn place_of_names(&self, directory: &str) -> String {
        format!("{directory}{}", self.surroundings.levels().last().map_or("", String::as_str))
    }

    /// A file of this window, in a directory or below it.
    fn path(&mut self, directory: &str, text: &str) -> Result<String, String> {
        let name = self.surroundings.file_name(text, &self.suffix())?;
        let path = format!("{}/{name}", self.place_of_names(directory));
        self.remember(path.clone());
        Ok(path)
    }

    /// A name of this window from the working directory of a process; from the root if users make the calls.
    fn name(&mut self, process: usize, text: &str) -> Result<String, String> {
        let directory = self.working[process].clone().unwrap_or_default();
        let path = self.path(&directory, text)?;
        Ok(if self.surroundings.has_users() { path } else { path[directory.len() + 1..].to_owned() })
    }

    /// A path of one component or two, from the parameters that begin here.
    fn tree_path(&mut self, process: usize, arguments: &Arguments<'_>, from: usize) -> Result<String, String> {
        self.has_tree = true;
        if !arguments.flag(from)? {
            return self.name(process, arguments.text(from + 2)?);
        }
        let parent = self.name(process, arguments.text(from + 1)?)?;
        let name = self.surroundings.file_name(arguments.text(from + 2)?, &self.suffix())?;
        Ok(format!("{parent}/{name}"))
    }

    /// What the test calls the name that a symbolic link leads to.
    fn target_of(&self, path: &[u8]) -> Value<'static> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let name = name.strip_suffix(self.suffix().as_bytes()).unwrap_or(name);
        let shown = Surroundings::text_of(name, self.surroundings.long_names);
        Value::Text(String::from_utf8_lossy(shown).into_owned().into())
    }

    /// A file under construction.
    fn construction(&mut self, file: u32) -> String {
        let path = format!("{CONSTRUCTION}/f{file}{}", self.suffix());
        self.remember(path.clone());
        path
    }

    /// The path of a directory, which is made if need be.
    fn directory(&mut self, text: &str) -> Result<String, String> {
        let path = format!("/{}", check_name(text)?);
        if !self.directories.contains(&path) {
            make_directory::<S>(&path)?;
            self.make_levels(&path)?;
            self.directories.push(path.clone());
        }
        Ok(path)
    }

    /// The directories between one of tests and its names.
    fn make_levels(&self, directory: &str) -> Result<(), String> {
        self.surroundings.levels().iter().try_for_each(|level| make_directory::<S>(&format!("{directory}{level}")))
    }

    /// What is there before the first window.
    fn furnish(&self, crew: &mut Crew<Self>) -> Result<(), String> {
        make_directory::<S>(CONSTRUCTION)?;
        self.make_levels("")?;
        outside::share_directory(S::actor(), b"/").map_err(|error| format!("the root directory: {error}"))?;
        for process in 0..PROCESS_LIMIT {
            for core in 0..self.workers {
                let place = Place::Worker { process: 0, core };
                let operation = crew.operation(place);
                operation.work = Work::TouchAll;
                operation.process = process;
                crew.run(place, Marks::None);
            }
        }
        Ok(())
    }

    /// Whose process makes a call on names: with users, that of the core's user, and in a set-up that of the superuser.
    fn caller(&self, place: Place) -> usize {
        if let Some(user) = self.users[place.process()].checked_sub(tree_arguments::USERS) {
            return self.surroundings.process_of_user(user as usize);
        }
        match place {
            Place::Worker { core, process } => self.surroundings.caller(core).unwrap_or(process),
            Place::Home { .. } if self.surroundings.has_users() => SETUP_PROCESS,
            Place::Home { process } => process,
        }
    }

    /// What `stat` tells: all, but in interfaces without directories, whose calls leave no other trace, number and links.
    fn fields_of_stat(&self, process: usize) -> Fields {
        if self.working[process].is_some() { STAT } else { Fields::LINK_COUNT }
    }

    /// What came back as a call's result.
    fn result(
        &mut self,
        crew: &mut Crew<Self>,
        place: Place,
        call: usize,
        result: i64,
    ) -> Result<Value<'static>, String> {
        if result < 0 {
            return u16::try_from(-result).map(Value::Errno).map_err(|_| format!("error number {result}"));
        }
        let process = place.process();
        let operation = crew.operation(place);
        let work = operation.work;
        if let Work::Socket(SocketWork::Deliver { to, byte, sender }) = work {
            // Each message is sent by the next core, as messages are that many have sent.
            let place = Place::Worker { process: 0, core: sender % self.workers };
            let path = std::mem::take(&mut operation.paths[0]);
            let delivery = crew.operation(place);
            (delivery.work, delivery.paths[0]) = (Work::Socket(SocketWork::Send { to, byte }), path);
            let sent = crew.run(place, Marks::None);
            return if sent == 0 { Ok(Value::Null) } else { Err(format!("delivering: error number {}", -sent)) };
        }
        Ok(match std::mem::take(&mut operation.outcome) {
            Outcome::Success
                if matches!(
                    SIGNATURES[call].name,
                    "name_file" | "place_file" | "become" | "make_named" | "end_child" | "make_descriptor"
                ) =>
            {
                Value::Null
            }
            Outcome::Success => Value::Int(0),
            Outcome::Raised(signal) => Value::Signal(signal),
            Outcome::Number(number) => match work {
                Work::Map(map) => self.address(process, map, number),
                Work::Load(_) | Work::Socket(_) | Work::Process(_) => Value::Int(number.cast_signed()),
                Work::File(file_call) => file_call.value(number),
                Work::Open { options: ANY, .. } => self.handle(process, number as u32),
                Work::Open { .. } => Value::Int(number.cast_signed()),
                Work::Read { .. } | Work::Pread { .. } => {
                    let data = data(&operation.pages[0], number, 0);
                    Value::Struct(vec![("pages".into(), pages_of(number)), ("data".into(), data)])
                }
                Work::ReadPages { .. } => Value::Struct(vec![
                    ("pages".into(), pages_of(number)),
                    ("first".into(), data(&operation.pages[0], number, 0)),
                    ("second".into(), data(&operation.pages[1], number, PAGE_BYTES as u64)),
                ]),
                Work::ProcessNumber => Value::Int(0), // what it is, no test says
                _ => pages_of(number),
            },
            Outcome::Opened(opened) => {
                crew.operation(COORDINATOR).outcome = Outcome::Opened(opened);
                run(crew, process, Work::CloseNode);
                Value::Int(0)
            }
            Outcome::Ends(read, write) => {
                let mut value = |fd: u32| match work {
                    Work::Pipe(ANY) => self.handle(process, fd),
                    _ => Value::Int(fd.into()),
                };
                Value::Struct(vec![("read_end".into(), value(read)), ("write_end".into(), value(write))])
            }
            Outcome::Leads(length) => {
                let target = operation.pages[0][..length].to_vec();
                self.target_of(&target)
            }
            Outcome::Status(attributes) => {
                let fields = match work {
                    Work::Name(NameCall::Tree(TreeCall::Stat(_, fields))) => {
                        return Ok(tree_arguments::status(attributes, fields, true));
                    }
                    Work::Fstat { fields, .. } | Work::Name(NameCall::Stat(fields)) => fields,
                    _ => Fields::ALL,
                };
                status(attributes, fields, true)
            }
            Outcome::Outside(Value::Seq(mut views)) => {
                // Descriptors that the implementation chose stand behind the others, in the order of their calls.
                let chosen = |view: &Value| {
                    let Value::Struct(fields) = view else { return 0 };
                    let place = operation.handles.iter().position(|(_, handle)| fields[0].1 == *handle);
                    place.map_or(0, |place| place + 1)
                };
                views.sort_by_key(chosen);
                Value::Seq(views)
            }
            Outcome::Outside(Value::Struct(mut fields)) if matches!(work, Work::PeekPath { .. }) => {
                if let Some(Value::Text(leads)) = fields.get(1).map(|field| &field.1) {
                    let target = self.target_of(leads.as_bytes());
                    fields[1].1 = target;
                }
                Value::Struct(fields)
            }
            Outcome::Outside(value) => value,
        })
    }

    /// The value for an address that `mmap` returned.
    fn address(&mut self, process: usize, map: Map, address: u64) -> Value<'static> {
        if let Some(page) = memory::page_of(address) {
            return Value::Int(page);
        }
        if map.address == Address::Any {
            self.chosen[process].push(address);
        }
        memory::chosen(process, address)
    }

    /// The value for a descriptor that the implementation chose.
    fn handle(&mut self, process: usize, fd: u32) -> Value<'static> {
        self.handles[process].push(fd);
        handle(process, fd)
    }
}

/// What the models of POSIX know of a file.
const STAT: Fields = Fields::LINK_COUNT.union(Fields::SIZE).union(Fields::TIMES);

/// What a page holds of a read of so many bytes, if it comes after so many; nothing reads like a page of zeros.
fn data(page: &[u8; PAGE_BYTES], read_bytes: u64, before_bytes: u64) -> Value<'static> {
    Value::Int(if read_bytes <= before_bytes { 0 } else { uniform(page).map_or(-1, i64::from) })
}

/// Descriptors of different processes are different values.
fn handle(process: usize, fd: u32) -> Value<'static> {
    Value::Opaque { sort: "Handle".into(), id: (process as u64) << 56 | u64::from(fd) }
}

/// By this thread, at once: directories stay.
fn make_directory<S: Subject>(path: &str) -> Result<(), String> {
    outside::make_directory(S::actor(), path.as_bytes()).map(drop).map_err(|error| format!("making {path}: {error}"))
}

fn byte(arguments: &Arguments<'_>, parameter: usize) -> Result<u8, String> {
    let number = arguments.number(parameter)?;
    u8::try_from(number).map_err(|_| format!("data {number}: expected 0 to 255"))
}

/// An offset in bytes from an argument in pages.
fn offset(arguments: &Arguments<'_>, parameter: usize) -> Result<i64, String> {
    let pages = arguments.number(parameter)?;
    pages.checked_mul(PAGE_BYTES as i64).ok_or_else(|| format!("{pages} pages are more than a file can have"))
}

fn open_flags(arguments: &Arguments<'_>, flags: &[(usize, OpenFlags)]) -> Result<OpenFlags, String> {
    flags.iter().try_fold(OpenFlags::NONE, |all, (parameter, flag)| {
        Ok(if arguments.flag(*parameter)? { all | *flag } else { all })
    })
}

const OPEN_FLAGS: [(usize, OpenFlags); 5] = [
    (1, OpenFlags::CREATE),
    (2, OpenFlags::EXCLUSIVE),
    (3, OpenFlags::TRUNCATE),
    (4, OpenFlags::READ),
    (5, OpenFlags::WRITE),
];
const TREE_OPEN_FLAGS: [(usize, OpenFlags); 4] =
    [(3, OpenFlags::CREATE), (4, OpenFlags::EXCLUSIVE), (5, OpenFlags::TRUNCATE), (7, OpenFlags::READ)];
const PLAIN: DescriptorOptions = DescriptorOptions::PLAIN;
const ANY: DescriptorOptions = DescriptorOptions { number: NumberChoice::Any, ..PLAIN };

fn run<S: Subject>(crew: &mut Crew<FileSystemTarget<S>>, process: usize, work: Work) -> i64 {
    let operation = crew.operation(COORDINATOR);
    operation.work = work;
    operation.stage = Stage::Alone;
    operation.process = process;
    crew.run(COORDINATOR, Marks::None)
}

impl<S: Subject> Execution for FileSystemTarget<S> {
    type Operation = Operation<S::Handle>;

    const ONE_THREAD: bool = S::ONE_THREAD;

    /// One thread per core and one coordinator act for all processes: a process is what its calls have in common.
    fn actor(place: Place) -> Place {
        match place {
            Place::Home { .. } => COORDINATOR,
            Place::Worker { core, .. } => Place::Worker { process: 0, core },
        }
    }

    fn execute(operation: &mut Self::Operation, marks: Marks) -> i64 {
        let actor = S::actor();
        if marks == Marks::None {
            let result = operation.perform(actor);
            if operation.is_step() {
                // What a step left in its core's caches reaches the objects, as it does in time.
                actor.maintain(false);
            }
            return result;
        }
        marker::call_begin();
        let result = operation.perform(actor);
        marker::call_end();
        result
    }
}

impl<S: Subject> Target for FileSystemTarget<S> {
    fn signatures(&self) -> &[Signature] {
        SIGNATURES
    }

    fn begin_window(&mut self, order: &[u8], test: impl FnOnce() -> u64) {
        let test = test();
        self.seats = seats(order, test, self.workers);
        self.rounds = self.surroundings.rounds(order, test);
    }

    fn fresh(&mut self, crew: &mut Crew<Self>, _: Agents, _: impl Iterator<Item = usize>) -> Result<(), String> {
        if self.window == 0 {
            self.furnish(crew)?;
        }
        self.window += 1;
        self.paths.clear();
        self.handles.iter_mut().for_each(Vec::clear);
        self.chosen.iter_mut().for_each(Vec::clear);
        let period = (IDLE_CORES_PERIOD / self.surroundings.warm as u64).max(1);
        let idle_cores_too = self.window % period == 1 % period;
        run(crew, 0, Work::Maintain { idle_cores_too });
        for core in 0..self.workers {
            let place = Place::Worker { process: 0, core };
            crew.operation(place).work = Work::TakeSeat(self.seats[core]);
            crew.run(place, Marks::None);
            crew.operation(place).work = Work::Warm(self.rounds);
            match crew.run(place, Marks::None) {
                0 => {}
                result => {
                    return Err(format!("{} rounds of calls before a window: error number {}", self.rounds, -result));
                }
            }
        }
        Ok(())
    }

    fn place(&self, _: usize, home: Place, _: Place) -> Place {
        home
    }

    fn prepare(
        &mut self,
        operation: &mut Self::Operation,
        place: Place,
        call: usize,
        arguments: &Arguments<'_>,
    ) -> Result<(), String> {
        let process = place.process();
        operation.process = process;
        operation.core = if let Place::Worker { core, .. } = place { Some(core) } else { None };
        self.touched[process] = true;
        let Signature { name, parameters } = SIGNATURES[call];
        operation.stage = self.transacting.stage(place, name, arguments)?;
        let mut paths: [Option<String>; 2] = [None, None];
        if let Some((work, name)) = self.sockets.prepare(name, parameters, arguments)? {
            (operation.process, operation.work) = (socket_calls::PROCESS, Work::Socket(work));
            self.touched[socket_calls::PROCESS] = true;
            return operation.paths[0].set(&format!("{name}{}", self.suffix()));
        }
        if let Some(work) = process_calls::prepare(name, parameters, arguments)? {
            (operation.process, operation.work) = (PARENT, Work::Process(work));
            (self.touched[PARENT], self.has_children) = (true, true);
            return Ok(());
        }
        if let Some((call, at)) = tree_arguments::call(name, parameters, arguments)? {
            if parameters[0] == "target" {
                // In place of the root.
                let target = self.path("", arguments.text(0)?)?;
                operation.paths[0].set(&target)?;
            }
            let first = usize::from(parameters[0] == "target");
            for (path, parameter) in operation.paths[first..].iter_mut().zip(at) {
                path.set(&self.tree_path(process, arguments, *parameter)?)?;
            }
            (operation.process, operation.work) = (self.caller(place), Work::Name(call));
            return Ok(());
        }
        if let Some(call) = file_calls::prepare(name, arguments)? {
            operation.work = Work::File(call);
            if name == "truncate" {
                operation.paths[0].set(&self.tree_path(process, arguments, 0)?)?;
                operation.process = self.caller(place);
            }
            return Ok(());
        }
        operation.work = match (name, parameters.len()) {
            ("open", 8) => {
                if self.users[process] != 0 {
                    return Err("a process of ScaleFS keeps its user: descriptors are the superuser's".to_owned());
                }
                paths[0] = Some(self.tree_path(process, arguments, 0)?);
                let mut flags = open_flags(arguments, &TREE_OPEN_FLAGS)? | OpenFlags::WRITE;
                if !flags.contains(OpenFlags::CREATE) {
                    flags.remove(OpenFlags::EXCLUSIVE); // without O_CREAT, O_EXCL says nothing on Linux
                }
                Work::Open {
                    flags,
                    options: DescriptorOptions { status: file_calls::status(arguments.flag(6)?), ..PLAIN },
                }
            }
            ("place_file", _) => {
                paths[0] = Some(self.construction(small(arguments, 0)?));
                paths[1] = Some(self.tree_path(process, arguments, 1)?);
                Work::Name(NameCall::Link)
            }
            ("own_file", _) => {
                paths[0] = Some(self.construction(small(arguments, 0)?));
                Work::Own { user: tree_arguments::user(arguments, 1)?, mode: tree_arguments::mode(arguments, 2)? }
            }
            ("own_path", _) => {
                paths[0] = Some(self.tree_path(process, arguments, 0)?);
                Work::Own { user: tree_arguments::user(arguments, 3)?, mode: tree_arguments::mode(arguments, 4)? }
            }
            ("own_root", _) => {
                self.root_is_owned = true;
                paths[0] = Some(self.place_of_root());
                Work::Own { user: tree_arguments::user(arguments, 0)?, mode: tree_arguments::mode(arguments, 1)? }
            }
            ("become", _) => {
                let user = tree_arguments::user(arguments, 0)?;
                if user > tree_arguments::USERS + USERS_OF_TESTS as u32 {
                    return Err(format!("user {}: expected 0 to {USERS_OF_TESTS}", user - tree_arguments::USERS));
                }
                self.users[process] = user;
                operation.outcome = Outcome::Success;
                Work::Nothing
            }
            ("peek_path", _) => {
                paths[0] = Some(self.tree_path(process, arguments, 0)?);
                Work::PeekPath { times: arguments.flag(3)? }
            }
            ("peek_slots", _) => Work::PeekSlots,
            ("msync", _) => Work::Synchronize(memory::address(process, arguments, 0)?),
            ("madvise", _) => Work::Discard(memory::address(process, arguments, 0)?),
            ("open", 3) => {
                paths[0] = Some(self.name(process, arguments.text(0)?)?);
                Work::Name(NameCall::Open(open_flags(arguments, &OPEN_FLAGS[..2])?))
            }
            ("open", count) => {
                paths[0] = Some(self.name(process, arguments.text(0)?)?);
                let options = if count == 7 { ANY } else { PLAIN };
                Work::Open { flags: open_flags(arguments, &OPEN_FLAGS)?, options }
            }
            ("link" | "rename", _) => {
                for (parameter, path) in paths.iter_mut().enumerate() {
                    *path = Some(self.name(process, arguments.text(parameter)?)?);
                }
                Work::Name(if name == "link" { NameCall::Link } else { NameCall::Rename })
            }
            ("unlink" | "stat" | "access", _) => {
                paths[0] = Some(self.name(process, arguments.text(0)?)?);
                Work::Name(match name {
                    "unlink" => NameCall::Unlink,
                    "stat" => NameCall::Stat(self.fields_of_stat(process)),
                    _ => NameCall::Access,
                })
            }
            ("fstat", _) => Work::Fstat { fd: small(arguments, 0)?, fields: STAT },
            ("fstatx", _) => {
                let mut fields = Fields::IDENTITY;
                for (parameter, field) in [(1, Fields::LINK_COUNT), (2, Fields::SIZE), (3, Fields::TIMES)] {
                    if arguments.flag(parameter)? {
                        fields |= field;
                    }
                }
                Work::Fstat { fd: small(arguments, 0)?, fields }
            }
            ("lseek", _) => {
                let whence = match arguments.number(2)? {
                    0 => Whence::Start,
                    1 => Whence::Current,
                    2 => Whence::End,
                    other => return Err(format!("whence {other}: expected 0 to 2")),
                };
                Work::Lseek { fd: small(arguments, 0)?, offset: offset(arguments, 1)?, whence }
            }
            ("close", _) => Work::Close(small(arguments, 0)?),
            ("pipe", count) => Work::Pipe(if count == 1 { ANY } else { PLAIN }),
            ("read", _) => Work::Read { fd: small(arguments, 0)? },
            ("pread", _) => Work::Pread { fd: small(arguments, 0)?, offset: offset(arguments, 1)? },
            ("write", _) => {
                operation.pages[0].fill(byte(arguments, 1)?);
                Work::Write { fd: small(arguments, 0)? }
            }
            ("pwrite", _) => {
                operation.pages[0].fill(byte(arguments, 2)?);
                Work::Pwrite { fd: small(arguments, 0)?, offset: offset(arguments, 1)? }
            }
            ("readv", _) => Work::ReadPages { fd: small(arguments, 0)? },
            ("writev", _) => {
                for (parameter, page) in operation.pages.iter_mut().enumerate() {
                    page.fill(byte(arguments, 1 + parameter)?);
                }
                Work::WritePages { fd: small(arguments, 0)? }
            }
            ("getpid", _) => Work::ProcessNumber,
            ("mmap", _) => {
                let address = if arguments.flag(0)? {
                    Address::Fixed(memory::address(process, arguments, 1)?)
                } else {
                    Address::Any
                };
                let object = if arguments.flag(2)? {
                    MappedObject::Anonymous
                } else {
                    let sharing = memory::sharing(arguments.flag(3)?);
                    let offset = offset(arguments, 6)?.cast_unsigned();
                    MappedObject::File { fd: small(arguments, 5)?, offset, sharing }
                };
                Work::Map(Map { address, protection: memory::protection(arguments.flag(4)?), object })
            }
            ("munmap", _) => Work::Unmap(memory::address(process, arguments, 0)?),
            ("mprotect", _) => {
                let protection = memory::protection(arguments.flag(1)?);
                Work::Protect { address: memory::address(process, arguments, 0)?, protection }
            }
            ("memread", _) => Work::Load(memory::address(process, arguments, 0)?),
            ("memwrite", _) => {
                operation.pages[0].fill(byte(arguments, 1)?);
                Work::Store(memory::address(process, arguments, 0)?)
            }
            ("map_file", _) => {
                paths[0] = Some(self.construction(small(arguments, 1)?));
                let sharing = memory::sharing(arguments.flag(3)?);
                let offset = offset(arguments, 2)?.cast_unsigned();
                let object = MappedObject::File { fd: 0, offset, sharing };
                let address = Address::Fixed(memory::address(process, arguments, 0)?);
                let map = Map { address, protection: memory::protection(arguments.flag(4)?), object };
                Work::MapFile { map, may_write: arguments.flag(5)? }
            }
            ("make_file", _) => {
                let file = small(arguments, 0)?;
                paths[0] = Some(self.construction(file));
                Work::MakeFile { file, pages: arguments.number(1)? }
            }
            ("fill_page", _) => {
                Work::FillPage { file: small(arguments, 0)?, page: arguments.number(1)?, byte: byte(arguments, 2)? }
            }
            ("name_file", _) => {
                paths[0] = Some(self.construction(small(arguments, 0)?));
                let directory = self.directory(arguments.text(1)?)?;
                paths[1] = Some(self.path(&directory, arguments.text(2)?)?);
                Work::Name(NameCall::Link)
            }
            ("enter_directory", _) => {
                let directory = self.directory(arguments.text(0)?)?;
                self.working[process] = Some(directory.clone());
                paths[0] = Some(directory);
                Work::EnterDirectory
            }
            ("open_file", _) => {
                paths[0] = Some(self.construction(small(arguments, 1)?));
                let flags = open_flags(arguments, &[(2, OpenFlags::READ), (3, OpenFlags::WRITE)])?;
                Work::OpenFile { flags, fd: small(arguments, 0)?, page: arguments.number(4)? }
            }
            ("forget_file", _) => {
                let file = small(arguments, 0)?;
                paths[0] = Some(self.construction(file));
                Work::ForgetFile { file }
            }
            ("make_pipe", _) => Work::MakePipe { pipe: small(arguments, 0)? },
            ("fill_pipe", _) => Work::FillPipe { pipe: small(arguments, 0)?, byte: byte(arguments, 1)? },
            ("open_pipe", _) => {
                Work::OpenPipe { fd: small(arguments, 0)?, pipe: small(arguments, 1)?, write_end: arguments.flag(2)? }
            }
            ("forget_pipe", _) => {
                Work::ForgetPipe { pipe: small(arguments, 0)?, kept: [arguments.flag(1)?, arguments.flag(2)?] }
            }
            ("peek_directory", _) => {
                paths[0] = Some(self.place_of_names(&format!("/{}", check_name(arguments.text(0)?)?)));
                operation.suffix.set(&self.suffix())?;
                Work::PeekDirectory(Look { times: arguments.flag(1)?, long_names: self.surroundings.long_names })
            }
            ("peek_descriptors", _) => {
                operation.handles = self.handles[process].iter().map(|&fd| (fd, handle(process, fd))).collect();
                Work::PeekDescriptors { times: arguments.flag(0)? }
            }
            ("peek_memory", _) => {
                operation.chosen.clone_from(&self.chosen[process]);
                Work::PeekMemory
            }
            ("probe_memory", _) => {
                operation.chosen.clone_from(&self.chosen[process]);
                Work::ProbeMemory { first: byte(arguments, 0)? }
            }
            ("transactions" | "begin_transaction" | "end_transaction" | "count_transacted", _) => {
                operation.outcome = Outcome::Success;
                Work::Nothing
            }
            ("count_shared", _) => Work::CountShared,
            ("count_per_core", _) => Work::CountPerCore,
            (other, _) => return Err(format!("{other} is listed but not made")),
        };
        if matches!(operation.work, Work::Name(_)) && !matches!(name, "name_file" | "place_file") {
            operation.process = self.caller(place);
        }
        for (place, path) in operation.paths.iter_mut().zip(paths) {
            if let Some(path) = path {
                place.set(&path)?;
            }
        }
        Ok(())
    }

    fn begin_calls(&mut self, crew: &mut Crew<Self>, places: &[Place]) -> Result<(), String> {
        self.transacting.begin_calls(crew, places)
    }

    fn end_calls(&mut self, crew: &mut Crew<Self>, places: &[Place], results: &mut [i64]) -> Result<u8, String> {
        self.transacting.end_calls(crew, places, results)
    }

    fn not_offered(&mut self) -> Option<String> {
        self.not_offered.take().map(str::to_owned).or_else(|| self.transacting.not_offered())
    }

    fn finish(
        &mut self,
        crew: &mut Crew<Self>,
        place: Place,
        call: usize,
        result: i64,
        results: &mut ResultsWriter,
    ) -> Result<(), String> {
        self.not_offered = S::actor().not_offered();
        if let Some(why) = self.not_offered {
            return Err(why.to_owned());
        }
        let result = self.transacting.finish(crew, place, result)?;
        if SIGNATURES[call].name == "count_transacted" {
            results.value(&self.transacting.counted());
            return Ok(());
        }
        self.result(crew, place, call, result).map(|value| results.value(&value))
    }

    fn clean(&mut self, crew: &mut Crew<Self>, _: Agents) -> Result<(), String> {
        self.transacting.clean(crew);
        for (process, touched) in self.touched.iter_mut().enumerate() {
            if std::mem::take(touched) {
                run(crew, process, Work::CloseAll);
                run(crew, process, Work::UnmapAll);
            }
            if self.working[process].take().is_some() {
                crew.operation(COORDINATOR).paths[0].set("/")?;
                run(crew, process, Work::EnterDirectory);
            }
        }
        if std::mem::take(&mut self.has_children) {
            run(crew, SETUP_PROCESS, Work::EndChildren);
        }
        self.sockets.end();
        run(crew, SETUP_PROCESS, Work::CloseAll);
        self.users = [0; PROCESS_LIMIT];
        if std::mem::take(&mut self.root_is_owned) {
            crew.operation(COORDINATOR).paths[0].set(&self.place_of_root())?;
            run(crew, SETUP_PROCESS, Work::Own { user: 0, mode: 0o777 });
        }
        let has_tree = std::mem::take(&mut self.has_tree);
        for path in std::mem::take(&mut self.paths) {
            crew.operation(COORDINATOR).paths[0].set(&path)?;
            let work = if has_tree { Work::RemoveTree } else { Work::Name(NameCall::Unlink) };
            match run(crew, SETUP_PROCESS, work) {
                0 => {}
                result if result == -i64::from(libc::ENOENT) => {}
                result => return Err(format!("removing {path}: error number {}", -result)),
            }
        }
        Ok(())
    }
}
