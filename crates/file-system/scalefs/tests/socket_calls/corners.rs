//! Corners that the random calls avoid or do not reach: full sockets push back, and what nobody can do with a socket fails as on
//! the host.

use std::ffi::CString;
use std::io;
use std::sync::PoisonError;

use plain::Plain;
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::{
    Credentials, DataOperations, Errno, MAX_MESSAGE_BYTES, MemoryOperations, Protection, Sharing, SocketOrder,
    StatusFlags, sockets,
};
use sync::Spin;

use crate::host::PROCESSES_OF_HOST;
use crate::instance::with_instance;

/// What was seen of a pair by its descriptors.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// The error of a send into a full socket, and of the second send after one message was taken.
    full: [Option<i32>; 2],
    /// A send after one message was taken, and how many messages fewer came than were sent.
    after_one: Result<usize, i32>,
    lost: usize,
    /// A message of no bytes, and one that is too long.
    sent: [Result<usize, i32>; 2],
    received: Result<usize, i32>,
    mapped: Option<i32>,
    reopened: Option<i32>,
    /// Whether a message waits in an empty socket, and in a full one.
    polled: [bool; 2],
    /// A send to a peer that was closed.
    refused: Option<i32>,
}

/// What acts on one pair of descriptors: sends, receives, and tells of the rest.
trait Pair {
    fn send(&mut self, length: usize) -> Result<usize, i32>;
    fn receive(&mut self) -> Result<usize, i32>;
    /// The error of mapping the end that receives, and of opening it anew.
    fn refusals(&mut self) -> [Option<i32>; 2];
    /// Whether a message waits.
    fn poll(&mut self) -> bool;
    fn close_receiver(&mut self);
    fn too_long(&self) -> usize;
}

fn look(pair: &mut impl Pair) -> Seen {
    let no_message = pair.poll();
    let mut sent = 0;
    let full = loop {
        match pair.send(1) {
            Ok(_) => sent += 1,
            Err(errno) => break errno,
        }
        assert!(sent < 100_000, "a socket takes what comes");
    };
    let has_message = pair.poll();
    let mut received = usize::from(pair.receive() == Ok(1));
    let after_one = pair.send(1);
    sent += usize::from(after_one.is_ok());
    let full = [Some(full), pair.send(1).err()];
    while pair.receive() == Ok(1) {
        received += 1;
    }
    let too_long = pair.too_long();
    let seen = [pair.send(0), pair.send(too_long)];
    let empty = pair.receive();
    let [mapped, reopened] = pair.refusals();
    pair.close_receiver();
    Seen {
        full,
        after_one,
        lost: sent - received,
        sent: seen,
        received: empty,
        mapped,
        reopened,
        polled: [no_message, has_message],
        refused: pair.send(1).err(),
    }
}

/// Ends of a pair in a process of an implementation.
struct Ours<'c, D> {
    call: &'c D,
    ends: (u32, u32),
}

impl<D: DataOperations + MemoryOperations> Pair for Ours<'_, D> {
    fn send(&mut self, length: usize) -> Result<usize, i32> {
        sockets::send(self.call, self.ends.0, None, &vec![7; length]).map_err(Errno::number)
    }

    fn receive(&mut self) -> Result<usize, i32> {
        let received = sockets::receive(self.call, self.ends.1, &mut [0; 4]);
        received.map(|received| received.length_bytes).map_err(Errno::number)
    }

    fn refusals(&mut self) -> [Option<i32>; 2] {
        let file = MappedObject::File { fd: self.ends.1, offset: 0, sharing: Sharing::Shared };
        let mapped = memory::map(self.call, Address::Any, 4096, Protection::ReadWrite, file);
        let reopened = data::reopen(self.call, (self.call, self.ends.1), DescriptorOptions::PLAIN);
        [mapped.err(), reopened.err()].map(|error| error.map(Errno::number))
    }

    fn poll(&mut self) -> bool {
        data::poll(self.call, self.ends.1).unwrap().is_ready
    }

    fn close_receiver(&mut self) {
        data::close(self.call, self.ends.1).unwrap();
    }

    fn too_long(&self) -> usize {
        MAX_MESSAGE_BYTES + 1
    }
}

fn look_at<D: DataOperations + MemoryOperations>(call: &D, order: SocketOrder) -> Seen {
    let options = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
    let ends = sockets::pair(call, order, options).unwrap();
    let seen = look(&mut Ours { call, ends });
    // Linux tells it of streams alone (`unix_dgram_poll`).
    assert!(data::poll(call, ends.0).unwrap().other_end_gone);
    data::close(call, ends.0).unwrap();
    seen
}

/// Two datagram sockets of the host.
struct Host([libc::c_int; 2]);

fn error() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap()
}

impl Pair for Host {
    fn send(&mut self, length: usize) -> Result<usize, i32> {
        let message = vec![7_u8; length];
        // SAFETY: so many bytes.
        let sent = unsafe { libc::send(self.0[0], message.as_ptr().cast(), length, libc::MSG_NOSIGNAL) };
        usize::try_from(sent).map_err(|_| error())
    }

    fn receive(&mut self) -> Result<usize, i32> {
        let mut bytes = [0_u8; 4];
        // SAFETY: room for so many.
        let received = unsafe { libc::recv(self.0[1], bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_TRUNC) };
        usize::try_from(received).map_err(|_| error())
    }

    fn refusals(&mut self) -> [Option<i32>; 2] {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, of what cannot be mapped.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, self.0[1], 0) };
        let mapped = (mapped == libc::MAP_FAILED).then(error);
        let path = CString::new(format!("/proc/self/fd/{}", self.0[1])).unwrap();
        // SAFETY: a path that ends with a zero.
        let opened = unsafe { libc::open(path.as_ptr(), libc::O_RDWR) };
        [mapped, (opened < 0).then(error)]
    }

    fn poll(&mut self) -> bool {
        let mut asked = libc::pollfd { fd: self.0[1], events: libc::POLLIN, revents: 0 };
        // SAFETY: one of them, which does not wait.
        assert!(unsafe { libc::poll(&raw mut asked, 1, 0) } >= 0);
        asked.revents & libc::POLLIN != 0
    }

    fn close_receiver(&mut self) {
        // SAFETY: ours, and not used afterwards.
        assert_eq!(unsafe { libc::close(self.0[1]) }, 0);
    }

    fn too_long(&self) -> usize {
        8 << 20
    }
}

fn look_at_host() -> Seen {
    let _alone = PROCESSES_OF_HOST.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ends = [0; 2];
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: room for two numbers.
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) }, 0);
    let seen = look(&mut Host(ends));
    // SAFETY: ours, and not used afterwards.
    unsafe { libc::close(ends[0]) };
    seen
}

#[test]
fn corners_are_as_on_the_host() {
    let expected = look_at_host();
    assert_eq!((expected.full, expected.lost), ([Some(libc::EAGAIN); 2], 0));
    assert_eq!((expected.mapped, expected.reopened), (Some(libc::ENODEV), Some(libc::ENXIO)));
    assert_eq!((expected.received, expected.refused), (Ok(0), Some(libc::ECONNREFUSED)));
    for order in [SocketOrder::Ordered, SocketOrder::Unordered] {
        let file_system = Plain::default();
        let process = plain::Process::new(&file_system, Credentials::SUPERUSER);
        assert_eq!(look_at(&file_system.begin(&process), order), expected, "crate `plain`, {order:?}");
        with_instance(128, |instance| {
            let core = instance.core(0);
            let process = instance.process(&core);
            assert_eq!(look_at(&instance.fs.enter(&core, &process, &Spin), order), expected, "ScaleFS, {order:?}");
            process.exit(instance.fs, &core, &Spin);
        });
    }
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for fault in ["sockets: a full ring loses what it gets", "calls: a socket can be opened again"] {
        sync::mutant::must_be_caught(fault, corners_are_as_on_the_host);
    }
}
