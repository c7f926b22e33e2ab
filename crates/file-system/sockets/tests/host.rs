//! The same calls on Linux's own sockets: AF_UNIX, SOCK_DGRAM, names of the abstract namespace. Random sequences give the same
//! results, messages and senders' names.
#![cfg(target_os = "linux")]

mod support;

use std::io;

use proptest::collection::vec;
use proptest::prelude::*;
use sockets::{Name, Order, Socket};
use support::Instance;
use sync::Spin;

const NAMES: [&[u8]; 3] = [b"a", b"b", b"\0c"];
const NUMBERS: usize = 5;
/// Linux refuses when about so many wait (`max_dgram_qlen` is 10).
const MOST_WAITING: usize = 8;

#[derive(Clone, Debug)]
enum Call {
    Socket(usize),
    Pair(usize, usize),
    Bind(usize, usize),
    Send(usize, usize),
    SendTo(usize, usize, usize),
    Receive(usize, usize),
    Close(usize),
}

fn any_call() -> impl Strategy<Value = Call> {
    let (socket, name, length) = (|| 0..NUMBERS, || 0..NAMES.len(), || 0..6_usize);
    prop_oneof![
        2 => socket().prop_map(Call::Socket),
        2 => (socket(), socket()).prop_map(|(one, other)| Call::Pair(one, other)),
        3 => (socket(), name()).prop_map(|(socket, name)| Call::Bind(socket, name)),
        5 => (socket(), length()).prop_map(|(socket, length)| Call::Send(socket, length)),
        5 => (socket(), name(), length()).prop_map(|(socket, name, length)| Call::SendTo(socket, name, length)),
        6 => (socket(), length()).prop_map(|(socket, length)| Call::Receive(socket, length)),
        2 => socket().prop_map(Call::Close),
    ]
}

/// What a call gave: bytes of the message, as many as were asked for, its length, and the sender's name.
type Outcome = Result<(Vec<u8>, usize, Vec<u8>), i32>;

fn nothing() -> Outcome {
    Ok((Vec::new(), 0, Vec::new()))
}

/// Linux's sockets.
struct Host {
    fds: [Option<i32>; NUMBERS],
    prefix: Vec<u8>,
}

fn checked(result: isize) -> Result<usize, i32> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

impl Host {
    fn address(&self, name: usize) -> (libc::sockaddr_un, libc::socklen_t) {
        // SAFETY: zeros are an address.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let name = [&[0], self.prefix.as_slice(), NAMES[name]].concat();
        address.sun_path.iter_mut().zip(&name).for_each(|(place, byte)| *place = *byte as libc::c_char);
        (address, (size_of::<libc::sa_family_t>() + name.len()) as libc::socklen_t)
    }

    fn make(&mut self, call: &Call, message: &[u8]) -> Outcome {
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: each call gets memory of ours, as large as it is told.
        unsafe {
            match *call {
                Call::Socket(number) => self.fds[number] = Some(libc::socket(libc::AF_UNIX, kind, 0)),
                Call::Pair(one, other) => {
                    let mut ends = [0; 2];
                    checked(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) as isize)?;
                    (self.fds[one], self.fds[other]) = (Some(ends[0]), Some(ends[1]));
                }
                Call::Bind(number, name) => {
                    let (address, length) = self.address(name);
                    let fd = self.fds[number].expect("open");
                    checked(libc::bind(fd, (&raw const address).cast(), length) as isize)?;
                }
                Call::Send(number, _) => {
                    let fd = self.fds[number].expect("open");
                    checked(libc::send(fd, message.as_ptr().cast(), message.len(), 0))?;
                }
                Call::SendTo(number, name, _) => {
                    let (address, length) = self.address(name);
                    let fd = self.fds[number].expect("open");
                    let bytes = message.as_ptr().cast();
                    checked(libc::sendto(fd, bytes, message.len(), 0, (&raw const address).cast(), length))?;
                }
                Call::Receive(number, room) => {
                    let (mut address, mut length) = self.address(0);
                    length = length.max(size_of_val(&address) as libc::socklen_t);
                    let mut bytes = vec![0; room];
                    let fd = self.fds[number].expect("open");
                    let (buffer, address_place) = (bytes.as_mut_ptr().cast(), (&raw mut address).cast());
                    let whole =
                        checked(libc::recvfrom(fd, buffer, room, libc::MSG_TRUNC, address_place, &raw mut length))?;
                    bytes.truncate(whole);
                    let skipped = size_of::<libc::sa_family_t>() + 1 + self.prefix.len();
                    let name = (skipped..length as usize)
                        .map(|place| address.sun_path[place - size_of::<libc::sa_family_t>()] as u8);
                    return Ok((bytes, whole, name.collect()));
                }
                Call::Close(number) => {
                    checked(libc::close(self.fds[number].take().expect("open")) as isize)?;
                }
            }
        }
        nothing()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for fd in self.fds.iter().flatten() {
            // SAFETY: ours, and open.
            unsafe { libc::close(*fd) };
        }
    }
}

/// Ours.
struct Ours<'a> {
    instance: &'a Instance,
    core: percpu::Core<'a>,
    sockets: [Option<Socket>; NUMBERS],
}

impl Ours<'_> {
    fn make(&mut self, call: &Call, message: &[u8]) -> Outcome {
        let (all, core) = (self.instance.sockets(), &self.core);
        let open = |number: usize| self.sockets[number].as_ref().expect("open");
        let name = |name: usize| Name::new(NAMES[name]).expect("a name");
        let failed = |error: sockets::SocketError| error.number();
        match *call {
            Call::Socket(number) => self.sockets[number] = Some(all.socket(core, Order::Ordered).map_err(failed)?),
            Call::Pair(one, other) => {
                let [first, second] = all.pair(core, Order::Ordered).map_err(failed)?;
                (self.sockets[one], self.sockets[other]) = (Some(first), Some(second));
            }
            Call::Bind(number, to) => all.bind(core, open(number), &name(to), &Spin).map_err(failed)?,
            Call::Send(number, _) => all.send(core, open(number), message, &Spin).map_err(failed)?,
            Call::SendTo(number, to, _) => {
                all.send_to(core, open(number), &name(to), message, &Spin).map_err(failed)?
            }
            Call::Receive(number, room) => {
                let mut bytes = vec![0; room];
                let received = all.receive(core, open(number), &mut bytes, &Spin).map_err(failed)?;
                bytes.truncate(received.length_bytes);
                return Ok((bytes, received.length_bytes, received.from.bytes().to_vec()));
            }
            Call::Close(number) => {
                let socket = self.sockets[number].take().expect("open");
                all.close(core, socket, &Spin);
            }
        }
        nothing()
    }
}

fn compare(calls: &[Call]) {
    let instance = Instance::new(1, 128);
    let prefix = format!("commutant-{}-{:?}-", std::process::id(), std::thread::current().id()).into_bytes();
    let mut host = Host { fds: [None; NUMBERS], prefix };
    let mut ours = Ours { instance: &instance, core: instance.core(0), sockets: Default::default() };
    let mut sent = 0;
    // Linux tells the name that the sender has when its message is received, ours that of when it was sent.
    let mut has_sent = [false; NUMBERS];
    for (number, call) in calls.iter().enumerate() {
        let is_open = |socket: usize| ours.sockets[socket].is_some();
        let makes_sense = match *call {
            Call::Socket(socket) => !is_open(socket),
            Call::Pair(one, other) => one != other && !is_open(one) && !is_open(other),
            Call::Bind(socket, _) => is_open(socket) && !has_sent[socket],
            Call::Send(socket, _) | Call::SendTo(socket, ..) => is_open(socket),
            Call::Receive(socket, _) | Call::Close(socket) => is_open(socket),
        };
        if !makes_sense {
            continue;
        }
        let length = match *call {
            Call::Send(socket, length) | Call::SendTo(socket, _, length) => {
                has_sent[socket] = true;
                length
            }
            Call::Close(socket) => {
                has_sent[socket] = false;
                0
            }
            _ => 0,
        };
        let message = vec![number as u8; length];
        if matches!(call, Call::Send(..) | Call::SendTo(..)) {
            sent += 1;
            if sent % MOST_WAITING == 0 {
                // Both are emptied, so that neither refuses.
                let open: Vec<usize> = (0..NUMBERS).filter(|&socket| ours.sockets[socket].is_some()).collect();
                for socket in open {
                    let drain = Call::Receive(socket, 8);
                    loop {
                        let drained = ours.make(&drain, &[]);
                        assert_eq!(drained, host.make(&drain, &[]), "{number}: {drain:?} of {calls:?}");
                        if drained.is_err() {
                            break;
                        }
                    }
                }
            }
        }
        let (found, expected) = (ours.make(call, &message), host.make(call, &message));
        assert_eq!(found, expected, "{number}: {call:?} of {calls:?}");
        if let (Call::Send(socket, _), Err(libc::ECONNREFUSED)) = (call, found) {
            // Linux now forgets the peer, and what it had sent (`unix_dgram_disconnected`); ours refuses again.
            let close = Call::Close(*socket);
            assert_eq!(ours.make(&close, &[]), host.make(&close, &[]));
        }
    }
    for socket in 0..NUMBERS {
        if ours.sockets[socket].is_some() {
            assert_eq!(ours.make(&Call::Close(socket), &[]), nothing());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn calls_do_what_linux_does(calls in vec(any_call(), 1..80)) {
        compare(&calls);
    }
}
