//! The calls made by real processes of the host.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use libc::c_int;
use scalefs::OnExec;

use crate::worker::{Name, Reply, Request, TOO_LONG, What, serve};
use crate::{Call, FIRST, Got, Length, NAMES, NUMBERS, Operation, Outcome, PROCESSES, System};

/// The other ends of processes' sockets have these numbers in all of them.
const SERVED: c_int = 200;

/// A family of processes; all end when this is dropped.
pub struct Host {
    /// Of each process the end of its socket that is ours.
    sockets: [c_int; PROCESSES],
    first: libc::pid_t,
    prefix: Vec<u8>,
}

fn checked(result: c_int) -> c_int {
    assert!(result >= 0, "{}", io::Error::last_os_error());
    result
}

fn flags(on_exec: OnExec) -> c_int {
    if on_exec == OnExec::Close { libc::O_CLOEXEC } else { 0 }
}

/// Closes all descriptors from a number on.
unsafe fn close_from(number: c_int) {
    // SAFETY: the child's own, of which it uses none.
    unsafe { libc::syscall(libc::SYS_close_range, number, c_int::MAX, 0) };
}

/// Held while processes of the host are made and live, or while a test closes descriptors of its own: a process that is made
/// in between has them for a moment, too, so that no end is gone.
pub static PROCESSES_OF_HOST: Mutex<()> = Mutex::new(());

impl Host {
    pub fn new(prefix: &str) -> Host {
        let mut ours = [0; PROCESSES];
        let mut theirs = [0; PROCESSES];
        for place in 0..PROCESSES {
            let mut pair = [0; 2];
            let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
            let limit = libc::timeval { tv_sec: 20, tv_usec: 0 };
            // SAFETY: room for two numbers; a limit of its type.
            unsafe {
                checked(libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()));
                let (limit, length) = ((&raw const limit).cast(), size_of::<libc::timeval>() as u32);
                checked(libc::setsockopt(pair[0], libc::SOL_SOCKET, libc::SO_RCVTIMEO, limit, length));
            }
            [ours[place], theirs[place]] = pair;
        }
        // SAFETY: the child makes system calls alone. No number of the test program is as high as those that it keeps.
        let first = unsafe {
            let first = checked(libc::fork());
            if first == 0 {
                (0..PROCESSES).for_each(|place| _ = libc::dup2(theirs[place], SERVED + place as c_int));
                // The standard streams stay, so that what is made gets other numbers.
                libc::syscall(libc::SYS_close_range, 3, SERVED - 1, 0);
                close_from(SERVED + PROCESSES as c_int);
                serve(SERVED);
            }
            theirs.into_iter().for_each(|end| _ = libc::close(end));
            first
        };
        Host { sockets: ours, first, prefix: prefix.as_bytes().to_vec() }
    }

    fn name(&self, name: Option<usize>) -> Name {
        let Some(name) = name else { return Name::NONE };
        let bytes = [self.prefix.as_slice(), NAMES[name]].concat();
        let mut told = Name { length: bytes.len(), ..Name::NONE };
        told.bytes[..bytes.len()].copy_from_slice(&bytes);
        told
    }

    fn send(&self, process: usize, request: &Request) {
        // SAFETY: a request of plain bytes, as large as is said.
        let sent = unsafe {
            let bytes = (&raw const *request).cast();
            libc::send(self.sockets[process], bytes, size_of::<Request>(), libc::MSG_NOSIGNAL)
        };
        assert_eq!(sent, size_of::<Request>() as isize, "{}", io::Error::last_os_error());
    }

    fn ask(&self, process: usize, request: &Request) -> Reply {
        self.send(process, request);
        let mut reply = Reply { result: 0, name: Name::NONE, bytes: [0; crate::worker::ROOM] };
        // SAFETY: room for a reply, of plain bytes.
        let received = unsafe { libc::recv(self.sockets[process], (&raw mut reply).cast(), size_of::<Reply>(), 0) };
        assert_eq!(received, size_of::<Reply>() as isize, "{}", io::Error::last_os_error());
        reply
    }
}

impl System for Host {
    fn call(&mut self, number: usize, call: &Call) -> Outcome {
        let what = |what| Request { what, a: 0, b: 0, flags: 0, length: 0, byte: number as u8, name: Name::NONE };
        let at = |number: u32| number as c_int;
        let length = |length| match length {
            Length::Bytes(bytes) => bytes,
            Length::TooLong => TOO_LONG,
        };
        let mut room = 0;
        let request = match call.operation {
            Operation::Socket(fd, _, on_exec) => Request { a: at(fd), flags: flags(on_exec), ..what(What::Socket) },
            Operation::Pair([one, other], _, on_exec) => {
                Request { a: at(one), b: at(other), flags: flags(on_exec), ..what(What::Pair) }
            }
            Operation::File(fd) => Request { a: at(fd), ..what(What::File) },
            Operation::Bind(fd, name) => Request { a: at(fd), name: self.name(Some(name)), ..what(What::Bind) },
            Operation::Name(fd) => Request { a: at(fd), ..what(What::Name) },
            Operation::Send(fd, to, bytes) => {
                Request { a: at(fd), name: self.name(to), length: length(bytes), ..what(What::Send) }
            }
            Operation::Receive(fd, asked) => {
                room = asked;
                Request { a: at(fd), length: asked, ..what(What::Receive) }
            }
            Operation::Write(fd, bytes) => Request { a: at(fd), length: bytes, ..what(What::Write) },
            Operation::Read(fd, asked) => {
                room = asked;
                Request { a: at(fd), length: asked, ..what(What::Read) }
            }
            Operation::WriteAt(fd) => Request { a: at(fd), length: 1, ..what(What::WriteAt) },
            Operation::ReadAt(fd) => {
                room = 1;
                Request { a: at(fd), length: 1, ..what(What::ReadAt) }
            }
            Operation::Seek(fd) => Request { a: at(fd), ..what(What::Seek) },
            Operation::Resize(fd) => Request { a: at(fd), length: 3, ..what(What::Resize) },
            Operation::Mode(fd) => Request { a: at(fd), ..what(What::Mode) },
            Operation::Duplicate(fd, target, on_exec) => {
                Request { a: at(fd), b: at(target), flags: flags(on_exec), ..what(What::Duplicate) }
            }
            Operation::Close(fd) => Request { a: at(fd), ..what(What::Close) },
            Operation::SetOnExec(fd, on_exec) => Request { a: at(fd), flags: flags(on_exec), ..what(What::SetOnExec) },
            Operation::Fork(child) | Operation::Spawn(child) => {
                Request { a: SERVED + child as c_int, ..what(What::Fork) }
            }
            Operation::Exec => {
                self.ask(call.process, &what(What::Exec));
                return Ok(Got::default());
            }
            Operation::Exit => what(What::Exit),
        };
        let reply = self.ask(call.process, &request);
        if let (Operation::Spawn(child), true) = (call.operation, reply.result >= 0) {
            self.ask(child, &what(What::Exec));
        }
        if reply.result < 0 {
            return Err(-reply.result as i32);
        }
        let name = &reply.name.bytes[..reply.name.length];
        let name = name.strip_prefix(self.prefix.as_slice()).unwrap_or(name).to_vec();
        let number = match call.operation {
            // Files of the host have other permissions, and no name.
            Operation::Mode(_) if reply.result as u32 & libc::S_IFMT == libc::S_IFREG => i64::from(libc::S_IFREG),
            Operation::Mode(_) => reply.result,
            _ if room > 0 || matches!(call.operation, Operation::Send(..) | Operation::Write(..)) => reply.result,
            _ => 0,
        };
        let bytes = reply.bytes[..room.min(number as usize)].to_vec();
        Ok(Got { number, bytes, name })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.sockets.into_iter().for_each(|end| {
            // SAFETY: ours, and open. Whoever serves its other end, ends.
            unsafe { libc::close(end) };
        });
        let mut status = 0;
        // SAFETY: our own child.
        unsafe { libc::waitpid(self.first, &raw mut status, 0) };
    }
}

/// All numbers that tests use.
pub fn numbers() -> impl Iterator<Item = u32> {
    FIRST..FIRST + NUMBERS as u32
}

/// How often each error came.
pub type Errors = BTreeMap<i32, usize>;
