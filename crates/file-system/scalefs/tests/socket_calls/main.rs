//! Random calls on sockets by descriptors of processes, on ScaleFS, on crate `plain`, and on the host's AF_UNIX datagram sockets in
//! real processes: socket, socketpair, bind, getsockname, send, receive, read, write, and those that sockets refuse; dup, close,
//! fork, posix_spawn, exec, exit. Every result, error, message and sender must be the same.
//!
//! Where both differ on purpose (`docs/reference/sockets.md`), the sequence avoids it: rings are emptied before one of the host
//! is full; a socket is closed everywhere once it was told that its peer has gone; a socket that has sent gets no name.
#![cfg(all(not(loom), not(miri), target_os = "linux"))]

mod corners;
mod host;
#[path = "../instance/mod.rs"]
mod instance;
mod worker;

use std::collections::BTreeSet;
use std::sync::PoisonError;

use call_language::Random;
use host::{Errors, Host, PROCESSES_OF_HOST, numbers};
use instance::with_instance;
use plain::Plain;
use scalefs::data::{self, DescriptorOptions};
use scalefs::{
    Credentials, DataOperations, Errno, Fields, Kind, MAX_MESSAGE_BYTES, OnExec, OpenFlags, ScaleFs, SocketName,
    SocketOrder, SpawnOptions, Start, StatusFlags, Whence, processes, sockets,
};
use sync::Spin;

/// Numbers that only this test uses, in all processes.
const FIRST: u32 = 100;
const NUMBERS: usize = 5;
const PROCESSES: usize = 3;
const NAMES: [&[u8]; 3] = [b"a", b"b", b"\0c"];
/// The host refuses when about so many wait (`max_dgram_qlen` is 10); rings are small where schedules are chosen.
const MOST_WAITING: usize = if cfg!(shuttle) { 2 } else { 8 };
const CALLS: usize = 120;
const EAGAIN: i32 = 11;

/// Bytes of a message.
#[derive(Clone, Copy, Debug)]
enum Length {
    Bytes(usize),
    /// More than the system takes.
    TooLong,
}

/// One call of one process.
#[derive(Clone, Copy, Debug)]
struct Call {
    process: usize,
    operation: Operation,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Socket(u32, SocketOrder, OnExec),
    Pair([u32; 2], SocketOrder, OnExec),
    /// A file in memory.
    File(u32),
    Bind(u32, usize),
    Name(u32),
    Send(u32, Option<usize>, Length),
    Receive(u32, usize),
    Write(u32, usize),
    Read(u32, usize),
    WriteAt(u32),
    ReadAt(u32),
    Seek(u32),
    Resize(u32),
    Mode(u32),
    Duplicate(u32, u32, OnExec),
    Close(u32),
    SetOnExec(u32, OnExec),
    Fork(usize),
    Spawn(usize),
    Exec,
    Exit,
}

/// What a call gave: a count, bytes of a message, as many as were asked for, and a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Got {
    number: i64,
    bytes: Vec<u8>,
    name: Vec<u8>,
}

type Outcome = Result<Got, i32>;

/// A family of processes that makes calls.
trait System {
    /// Makes the call with this number, of a process that there is.
    fn call(&mut self, number: usize, call: &Call) -> Outcome;
}

fn any(random: &mut Random) -> Call {
    let process = random.below(PROCESSES);
    let fd = |random: &mut Random| FIRST + random.below(NUMBERS) as u32;
    let on_exec = |random: &mut Random| random.pick(&[OnExec::Keep, OnExec::Close]);
    let order = |random: &mut Random| random.pick(&[SocketOrder::Ordered, SocketOrder::Unordered]);
    let length = |random: &mut Random| random.pick(&[0, 1, 2, 3, 5, MAX_MESSAGE_BYTES]);
    let number = fd(random);
    let operation = match random.below(64) {
        0..4 => Operation::Socket(number, order(random), on_exec(random)),
        4..9 => Operation::Pair([number, fd(random)], order(random), on_exec(random)),
        9 => Operation::File(number),
        10..15 => Operation::Bind(number, random.below(NAMES.len())),
        15 => Operation::Name(number),
        16..26 => {
            let to = random.pick(&[None, Some(0), Some(1), Some(2)]);
            let long = random.below(12) == 0;
            Operation::Send(number, to, if long { Length::TooLong } else { Length::Bytes(length(random)) })
        }
        26..34 => Operation::Receive(number, random.below(6)),
        34..40 => Operation::Write(number, length(random)),
        40..45 => Operation::Read(number, random.below(4)),
        45 => Operation::WriteAt(number),
        46 => Operation::ReadAt(number),
        47 => Operation::Seek(number),
        48 => Operation::Resize(number),
        49 => Operation::Mode(number),
        50..54 => Operation::Duplicate(number, fd(random), on_exec(random)),
        54..57 => Operation::Close(number),
        57 => Operation::SetOnExec(number, on_exec(random)),
        58..61 => Operation::Fork(random.below(PROCESSES)),
        61 => Operation::Spawn(random.below(PROCESSES)),
        62 => Operation::Exec,
        _ => Operation::Exit,
    };
    Call { process, operation }
}

/// Gives what was made the number that was asked for.
fn place<D: DataOperations>(call: &D, made: u32, number: u32, on_exec: OnExec) -> Result<(), Errno> {
    data::duplicate_to(call, made, number, on_exec)?;
    data::close(call, made)
}

/// Makes a call that concerns the process alone.
fn perform<D: DataOperations>(call: &D, number: usize, operation: &Operation) -> Result<Got, Errno> {
    let options = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
    let nothing = |()| Got::default();
    let count = |count: usize| Got { number: count as i64, ..Got::default() };
    let message = |length: usize| vec![number as u8; length];
    let got = |bytes: &[u8], length: usize| Got {
        number: length as i64,
        bytes: bytes[..length.min(bytes.len())].to_vec(),
        name: Vec::new(),
    };
    let named = |name: usize| SocketName::new(NAMES[name]).unwrap();
    match *operation {
        Operation::Socket(fd, order, on_exec) => {
            place(call, sockets::socket(call, order, options)?, fd, on_exec).map(nothing)
        }
        Operation::Pair([one, other], order, on_exec) => {
            let ends = sockets::pair(call, order, options)?;
            place(call, ends.0, one, on_exec)?;
            place(call, ends.1, other, on_exec).map(nothing)
        }
        Operation::File(fd) => {
            let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
            let opened = data::open(call, Start::WorkingDirectory, b"f", flags, 0o600, options)?;
            // A new one, as in memory.
            data::truncate(call, opened, 0)?;
            unlink_file(call)?;
            place(call, opened, fd, OnExec::Keep).map(nothing)
        }
        Operation::Bind(fd, name) => sockets::bind(call, fd, &named(name)).map(nothing),
        Operation::Name(fd) => {
            sockets::name(call, fd).map(|name| Got { name: name.bytes().to_vec(), ..Got::default() })
        }
        Operation::Send(fd, to, length) => {
            let length = match length {
                Length::Bytes(length) => length,
                Length::TooLong => MAX_MESSAGE_BYTES + 1,
            };
            sockets::send(call, fd, to.map(named).as_ref(), &message(length)).map(count)
        }
        Operation::Receive(fd, room) => {
            let mut bytes = vec![0; room];
            let received = sockets::receive(call, fd, &mut bytes)?;
            let number = if room > 0 { received.length_bytes as i64 } else { 0 };
            Ok(Got { number, name: received.from.bytes().to_vec(), ..got(&bytes, received.length_bytes) })
        }
        Operation::Write(fd, length) => data::write(call, fd, &message(length)).map(count),
        Operation::Read(fd, room) => {
            let mut bytes = vec![0; room];
            let length = data::read(call, fd, &mut bytes)?;
            Ok(got(&bytes, length))
        }
        Operation::WriteAt(fd) => data::write_at(call, fd, &message(1), 0).map(|_| Got::default()),
        Operation::ReadAt(fd) => {
            let mut bytes = [0];
            let length = data::read_at(call, fd, &mut bytes, 0)?;
            Ok(got(&bytes, length))
        }
        Operation::Seek(fd) => data::seek(call, fd, 0, Whence::Current).map(|_| Got::default()),
        Operation::Resize(fd) => data::truncate(call, fd, 3).map(nothing),
        Operation::Mode(fd) => {
            let status = data::stat(call, fd, Fields::ALL)?;
            let bits = if status.kind == Kind::Socket { status.mode } else { 0 };
            Ok(Got { number: i64::from(status.kind.mode_bits() | bits), ..Got::default() })
        }
        Operation::Duplicate(fd, target, on_exec) => {
            data::duplicate_to(call, fd, target, on_exec).map(|_| Got::default())
        }
        Operation::Close(fd) => data::close(call, fd).map(nothing),
        Operation::SetOnExec(fd, on_exec) => data::set_on_exec(call, fd, on_exec).map(nothing),
        Operation::Fork(_) | Operation::Spawn(_) | Operation::Exec | Operation::Exit => unreachable!("of processes"),
    }
}

fn unlink_file<D: DataOperations>(call: &D) -> Result<(), Errno> {
    scalefs::names::unlink(call.objects(), Start::WorkingDirectory, b"f")
}

/// ScaleFS, as one core.
struct Ours<'a> {
    fs: &'a ScaleFs,
    core: percpu::Core<'a>,
    processes: [Option<scalefs::Process>; PROCESSES],
}

impl System for Ours<'_> {
    fn call(&mut self, number: usize, call: &Call) -> Outcome {
        let (fs, core) = (self.fs, &self.core);
        if number.is_multiple_of(5) {
            fs.maintain_with_idle_cores(core, &Spin);
        }
        let process = self.processes[call.process].as_ref().expect("a process");
        let call_of = || fs.enter(core, process, &Spin);
        let made = match call.operation {
            Operation::Fork(child) => process.fork(fs, core, &Spin).map(|made| Some((child, made))),
            Operation::Spawn(child) => {
                processes::spawn(&call_of(), &[], SpawnOptions::default()).map(|made| Some((child, made)))
            }
            Operation::Exec => {
                process.exec(fs, core, &Spin);
                Ok(None)
            }
            Operation::Exit => {
                self.processes[call.process].take().expect("a process").exit(fs, core, &Spin);
                Ok(None)
            }
            other => return perform(&call_of(), number, &other).map_err(Errno::number),
        };
        if let Some((child, made)) = made.map_err(Errno::number)? {
            self.processes[child] = Some(made);
        }
        Ok(Got::default())
    }
}

/// Crate `plain`.
struct Maps {
    file_system: Plain,
    processes: [Option<plain::Process>; PROCESSES],
}

impl Maps {
    /// What a number leads to, if it is a socket.
    fn socket(&self, process: usize, fd: u32) -> Option<u64> {
        let process = self.processes[process].as_ref()?;
        let status = data::stat(&self.file_system.begin(process), fd, Fields::IDENTITY).ok()?;
        (status.kind == Kind::Socket).then_some(status.number.0)
    }
}

impl Maps {
    /// Whether a socket has a peer: without one, it has nobody to send to.
    fn has_peer(&self, process: usize, fd: u32) -> bool {
        let Some(process) = &self.processes[process] else { return false };
        let copy = self.file_system.clone();
        sockets::send(&copy.begin(process), fd, None, b"") != Err(Errno::ENOTCONN)
    }
}

impl System for Maps {
    fn call(&mut self, number: usize, call: &Call) -> Outcome {
        let fs = &self.file_system;
        let process = self.processes[call.process].as_ref().expect("a process");
        let made = match call.operation {
            Operation::Fork(child) => Some((child, process.fork(fs))),
            Operation::Spawn(child) => {
                let spawned = processes::spawn(&fs.begin(process), &[], SpawnOptions::default());
                Some((child, spawned.map_err(Errno::number)?))
            }
            Operation::Exec => {
                process.exec(fs);
                None
            }
            Operation::Exit => {
                self.processes[call.process].take().expect("a process").exit(fs);
                None
            }
            other => return perform(&fs.begin(process), number, &other).map_err(Errno::number),
        };
        if let Some((child, made)) = made {
            self.processes[child] = Some(made);
        }
        Ok(Got::default())
    }
}

/// What was reached: messages that were received, errors by number, and processes that were made.
#[derive(Debug, Default)]
struct Reached {
    received: usize,
    made: usize,
    errors: Errors,
}

/// All three systems.
struct All<'a> {
    ours: Ours<'a>,
    maps: Maps,
    host: Host,
    /// Sockets that have sent, as crate `plain` numbers them.
    have_sent: BTreeSet<u64>,
}

impl All<'_> {
    /// Makes a call everywhere.
    fn make(&mut self, number: usize, call: &Call) -> Outcome {
        let expected = self.host.call(number, call);
        assert_eq!(self.ours.call(number, call), expected, "{number}: {call:?} on ScaleFS");
        assert_eq!(self.maps.call(number, call), expected, "{number}: {call:?} on crate `plain`");
        expected
    }

    fn lives(&self, process: usize) -> bool {
        self.maps.processes[process].is_some()
    }

    /// Descriptors of sockets that are open.
    fn open(&self) -> Vec<(usize, u32, u64)> {
        let of = |process| numbers().filter_map(move |fd| Some((process, fd, self.maps.socket(process, fd)?)));
        (0..PROCESSES).flat_map(of).collect()
    }

    /// Takes all messages.
    fn drain(&mut self, number: usize) {
        for (process, fd, _) in self.open() {
            let receive = Call { process, operation: Operation::Receive(fd, 4) };
            while self.make(number, &receive) != Err(EAGAIN) {}
        }
    }

    fn makes_sense(&self, Call { process, operation }: &Call) -> bool {
        self.lives(*process)
            && match *operation {
                Operation::Fork(child) | Operation::Spawn(child) => !self.lives(child),
                Operation::Exit => (0..PROCESSES).filter(|process| self.lives(*process)).count() > 1,
                // The host tells the name that the sender has when its message is received.
                Operation::Bind(fd, _) => {
                    self.maps.socket(*process, fd).is_none_or(|socket| !self.have_sent.contains(&socket))
                }
                // Which of two errors comes first differs among versions of Linux.
                Operation::Send(fd, None, Length::TooLong) => {
                    self.maps.socket(*process, fd).is_none_or(|_| self.maps.has_peer(*process, fd))
                }
                // Linux's dup3 refuses equal numbers, dup2 does not.
                Operation::Pair([one, other], ..) | Operation::Duplicate(one, other, _) => one != other,
                _ => true,
            }
    }

    fn step(&mut self, number: usize, call: &Call, sent: &mut usize, reached: &mut Reached) {
        let process = call.process;
        let from = match call.operation {
            Operation::Send(fd, ..) | Operation::Write(fd, _) => self.maps.socket(process, fd),
            _ => None,
        };
        if let Some(from) = from {
            *sent += 1;
            if sent.is_multiple_of(MOST_WAITING) {
                self.drain(number);
            }
            self.have_sent.insert(from);
        }
        let outcome = self.make(number, call);
        match (&call.operation, &outcome) {
            (Operation::Receive(..) | Operation::Read(..), Ok(_)) => reached.received += 1,
            (Operation::Fork(_) | Operation::Spawn(_), Ok(_)) => reached.made += 1,
            (Operation::Send(_, None, _) | Operation::Write(..), Err(libc::ECONNREFUSED)) => {
                // The host forgets the peer now, and what it had sent (`unix_dgram_disconnected`).
                for (process, fd, socket) in self.open() {
                    if Some(socket) == from {
                        assert!(self.make(number, &Call { process, operation: Operation::Close(fd) }).is_ok());
                    }
                }
            }
            _ => {}
        }
        if let Err(errno) = outcome {
            *reached.errors.entry(errno).or_default() += 1;
        }
    }
}

/// Makes the calls of a seed.
fn compare(seed: u64, reached: &mut Reached) {
    let _alone = PROCESSES_OF_HOST.lock().unwrap_or_else(PoisonError::into_inner);
    let random = &mut Random::new(seed);
    // Most sequences would come to sockets late otherwise.
    let first = [
        Operation::Pair([FIRST, FIRST + 1], SocketOrder::Ordered, OnExec::Keep),
        Operation::Socket(FIRST + 2, SocketOrder::Unordered, OnExec::Keep),
        Operation::Bind(FIRST + 2, 0),
    ];
    let first = first.map(|operation| Call { process: 0, operation });
    let calls: Vec<Call> = first.into_iter().chain((0..CALLS).map(|_| any(random))).collect();
    with_instance(128, |instance| {
        let core = instance.core(0);
        let first = instance.process(&core);
        let mut processes = [const { None }; PROCESSES];
        processes[0] = Some(first);
        let ours = Ours { fs: instance.fs, core, processes };
        let file_system = Plain::default();
        let mut processes = [const { None }; PROCESSES];
        processes[0] = Some(plain::Process::new(&file_system, Credentials::SUPERUSER));
        let maps = Maps { file_system, processes };
        let host = Host::new(&format!("scalefs-{}-{seed}-", std::process::id()));
        let mut all = All { ours, maps, host, have_sent: BTreeSet::new() };
        let mut sent = 0;
        for (number, call) in calls.iter().enumerate() {
            if all.makes_sense(call) {
                all.step(number, call, &mut sent, reached);
            }
        }
        let All { mut ours, .. } = all;
        for process in ours.processes.iter_mut().filter_map(Option::take) {
            process.exit(ours.fs, &ours.core, &Spin);
        }
    });
}

fn compare_all(seeds: u64) -> Reached {
    let mut reached = Reached::default();
    (0..seeds).for_each(|seed| compare(seed, &mut reached));
    reached
}

fn seeds() -> u64 {
    std::env::var("SCALEFS_FUZZ_SEQUENCES").map_or(100, |number| number.parse().expect("a number of sequences"))
}

#[test]
fn descriptors_of_sockets_do_what_linux_does() {
    let reached = compare_all(seeds());
    println!("{} messages received, {} processes made, {:?}", reached.received, reached.made, reached.errors);
    assert!(reached.received > 100 && reached.made > 30, "{} {}", reached.received, reached.made);
    for errno in [
        libc::EPERM,
        libc::EBADF,
        libc::EAGAIN,
        libc::EINVAL,
        libc::ESPIPE,
        libc::ENOTSOCK,
        libc::EMSGSIZE,
        libc::EADDRINUSE,
        libc::ENOTCONN,
        libc::ECONNREFUSED,
    ] {
        assert!(reached.errors.contains_key(&errno), "no call failed with {errno}");
    }
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("calls: a read of no bytes takes a message", || compare_all(60));
}

/// Not a test: what a process of the host is after `exec`.
#[test]
fn serves() {
    if let Some(served) = std::env::var_os(worker::SERVED) {
        let served = served.to_str().and_then(|number| number.parse().ok()).expect("a number");
        // SAFETY: the program was executed for it.
        unsafe { worker::serve_anew(served) };
    }
}
