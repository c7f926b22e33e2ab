//! Messages over TCP, for domains that share no memory: a connection for each pair, and data travels. It is for a few domains,
//! since what a message says of others grows with the square of their number.
//!
//! **Order.** A message must be found by each domain that hears of it by any chain of messages, and connections overtake each other. So
//! each message says how many messages from each domain to each other one its sender knows of, and it is kept back until all
//! that were sent to its receiver before have come (causal order after Raynal, Schiper and Toueg, 1991).
//!
//! **Room** is counted by the sender, by class, as if there were rings. Each message says how many lines its sender has taken from
//! its receiver; if half a ring was taken and there is nothing else to say, a message without a class says so.
//!
//! ```text
//! length 4 │ class 1 │ taken lines by class 4 × 4 │ known messages 8 × domains² │ message
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use messages::{CLASSES, Class, DomainNumber, SendError, Transport};
use sync::mutant::planted;

use crate::clock::Clock;

/// The class of what only says what was taken.
const NO_CLASS: u8 = 0xff;

/// The first bytes of a connection: what this is, and of which version.
const GREETING: [u8; 8] = *b"domains1";

/// Why there is no connection, or none any more.
#[derive(Debug)]
pub enum TcpError {
    /// The operating system refused something.
    System(io::Error),
    /// A peer did not greet as a domain of this version, or with a number that is not expected.
    Stranger,
    /// A domain said what none of ours says.
    Damaged(DomainNumber),
    /// A domain has ended its connection.
    Ended(DomainNumber),
}

impl fmt::Display for TcpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpError::System(error) => write!(f, "connection between domains: {error}"),
            TcpError::Stranger => f.write_str(
                "expected a domain of this version that is not connected yet, got another greeting: check the addresses",
            ),
            TcpError::Damaged(domain) => {
                write!(f, "expected a message of {domain}, got impossible lengths or numbers: end it and join again")
            }
            TcpError::Ended(domain) => write!(f, "{domain} has ended its connection: join again once it is there"),
        }
    }
}

impl std::error::Error for TcpError {}

impl From<io::Error> for TcpError {
    fn from(error: io::Error) -> TcpError {
        TcpError::System(error)
    }
}

/// A message that has come, and may have to wait.
#[derive(Debug)]
struct Come {
    class: usize,
    known: Vec<u64>,
    bytes: Vec<u8>,
}

/// The connection to another domain.
#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// In order; the first waits for messages of others, if for anything.
    come: VecDeque<Come>,
    /// By class: what was delivered and not received yet.
    there: [VecDeque<Vec<u8>>; CLASSES.len()],
    /// By class, in lines since the beginning: sent, taken by the other one, taken here, and what was said of these.
    sent: [u32; CLASSES.len()],
    taken_there: [u32; CLASSES.len()],
    taken: [u32; CLASSES.len()],
    reported: [u32; CLASSES.len()],
}

#[derive(Debug)]
struct State {
    peers: Vec<Option<Peer>>,
    /// Of each domain, messages to each: as many as this one knows of.
    known: Vec<u64>,
    /// Of each domain: messages that were delivered here.
    delivered: Vec<u64>,
    has_ended: bool,
    /// Why, until it was said.
    error: Option<TcpError>,
}

/// A domain's end of all connections.
#[derive(Debug)]
pub struct Tcp {
    own: usize,
    ring_lines: [usize; CLASSES.len()],
    state: RefCell<State>,
    turns: [Cell<usize>; CLASSES.len()],
    clock: Clock,
}

impl Tcp {
    /// Connects with all other domains: with those of lower numbers at their addresses, with those of higher ones as they come.
    /// Waits until all are there.
    ///
    /// # Errors
    /// What the system refuses, and strangers.
    pub fn connect(
        own: DomainNumber,
        listener: &TcpListener,
        addresses: &[SocketAddr],
        ring_lines: [usize; CLASSES.len()],
    ) -> Result<Tcp, TcpError> {
        let (own, count) = (own.index(), addresses.len());
        let mut streams: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
        for (number, address) in addresses.iter().enumerate().take(own) {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(&GREETING)?;
            stream.write_all(&(own as u16).to_le_bytes())?;
            streams[number] = Some(stream);
        }
        while streams.iter().flatten().count() + 1 < count {
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
            let mut greeting = [0; 10];
            let is_ours = stream.read_exact(&mut greeting).is_ok() && greeting[..8] == GREETING;
            let number = usize::from(u16::from_le_bytes([greeting[8], greeting[9]]));
            if !is_ours || number <= own || number >= count || streams[number].is_some() {
                return Err(TcpError::Stranger);
            }
            streams[number] = Some(stream);
        }
        let peer = |stream: TcpStream| -> Result<Peer, TcpError> {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            Ok(Peer {
                stream,
                incoming: Vec::new(),
                outgoing: Vec::new(),
                come: VecDeque::new(),
                there: Default::default(),
                sent: Default::default(),
                taken_there: Default::default(),
                taken: Default::default(),
                reported: Default::default(),
            })
        };
        let peers = streams.into_iter().map(|stream| stream.map(peer).transpose()).collect::<Result<_, _>>()?;
        let state =
            State { peers, known: vec![0; count * count], delivered: vec![0; count], has_ended: false, error: None };
        Ok(Tcp { own, ring_lines, state: RefCell::new(state), turns: Default::default(), clock: Clock::default() })
    }

    /// Why nothing goes any more, if that is so; said once.
    pub fn take_error(&self) -> Option<TcpError> {
        self.state.borrow_mut().error.take()
    }

    fn with<R>(&self, step: impl FnOnce(&mut State) -> Result<R, TcpError>) -> Option<R> {
        let mut state = self.state.borrow_mut();
        if state.has_ended {
            return None;
        }
        match step(&mut state) {
            Ok(result) => Some(result),
            Err(error) => {
                (state.has_ended, state.error) = (true, Some(error));
                None
            }
        }
    }

    /// Sends and receives what can be sent and received, and delivers what waits for nothing.
    fn pump(&self, state: &mut State) -> Result<(), TcpError> {
        let count = state.peers.len();
        let longest = 4 * CLASSES.len() + 8 * count * count + 64 * self.ring_lines.iter().max().unwrap_or(&0) + 1;
        for number in 0..count {
            let Some(peer) = &mut state.peers[number] else { continue };
            let domain = DomainNumber(number as u16);
            peer.write()?;
            peer.read(domain, longest)?;
            while let Some(frame) = peer.next_frame(count, longest).map_err(|()| TcpError::Damaged(domain))? {
                peer.come.extend(frame);
            }
        }
        while state.deliver_one(self.own) {}
        for peer in state.peers.iter_mut().flatten() {
            let is_due = |class: usize| {
                peer.taken[class].wrapping_sub(peer.reported[class]) as usize * 2 >= self.ring_lines[class]
            };
            if (0..CLASSES.len()).any(|class| peer.taken[class] != peer.reported[class] && is_due(class)) {
                peer.queue(NO_CLASS, &state.known, &[]);
                peer.write()?;
            }
        }
        Ok(())
    }
}

impl State {
    /// Delivers a message that everything before has come of; whether there was one.
    fn deliver_one(&mut self, own: usize) -> bool {
        let count = self.peers.len();
        for from in 0..count {
            let Some(come) = self.peers[from].as_ref().and_then(|peer| peer.come.front()) else { continue };
            let is_next = |other: usize| other == from || come.known[other * count + own] <= self.delivered[other];
            if !(0..count).all(is_next) && !planted("transports: a message waits for none that was sent before") {
                continue;
            }
            let Some(peer) = &mut self.peers[from] else { continue };
            let Some(come) = peer.come.pop_front() else { continue };
            for (own, theirs) in self.known.iter_mut().zip(&come.known) {
                *own = (*own).max(*theirs);
            }
            self.delivered[from] += 1;
            peer.there[come.class].push_back(come.bytes);
            return true;
        }
        false
    }
}

impl Peer {
    /// Adds a message to what is to be sent.
    fn queue(&mut self, class: u8, known: &[u64], message: &[u8]) {
        let length = 1 + 4 * CLASSES.len() + 8 * known.len() + message.len();
        self.outgoing.extend((length as u32).to_le_bytes());
        self.outgoing.push(class);
        self.outgoing.extend(self.taken.iter().flat_map(|number| number.to_le_bytes()));
        self.outgoing.extend(known.iter().flat_map(|number| number.to_le_bytes()));
        self.outgoing.extend(message);
        self.reported = self.taken;
    }

    fn write(&mut self) -> Result<(), TcpError> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read(&mut self, domain: DomainNumber, longest: usize) -> Result<(), TcpError> {
        let mut part = [0; 16384];
        while self.incoming.len() <= longest + 4 {
            match self.stream.read(&mut part) {
                Ok(0) => return Err(TcpError::Ended(domain)),
                Ok(count) => self.incoming.extend(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes a whole message out of what has come: `Some(None)` if it only says what was taken.
    fn next_frame(&mut self, count: usize, longest: usize) -> Result<Option<Option<Come>>, ()> {
        let Some(head) = self.incoming.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        let head_bytes = 1 + 4 * CLASSES.len() + 8 * count * count;
        if length < head_bytes || length > longest {
            return Err(());
        }
        if self.incoming.len() < 4 + length {
            return Ok(None);
        }
        let frame: Vec<u8> = self.incoming.drain(..4 + length).skip(4).collect();
        let (head, bytes) = frame.split_at(head_bytes);
        let (taken, known) = head[1..].split_at(4 * CLASSES.len());
        let mut words = taken.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let known = known.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        for class in 0..CLASSES.len() {
            let taken = words.next().unwrap_or_default();
            // It can only have taken what was sent, and takes nothing back.
            if self.sent[class].wrapping_sub(taken) > self.sent[class].wrapping_sub(self.taken_there[class]) {
                return Err(());
            }
            self.taken_there[class] = taken;
        }
        match usize::from(head[0]) {
            class if class < CLASSES.len() => {
                Ok(Some(Some(Come { class, known: known.collect(), bytes: bytes.to_vec() })))
            }
            _ if head[0] == NO_CLASS && bytes.is_empty() => Ok(Some(None)),
            _ => Err(()),
        }
    }
}

impl Transport for Tcp {
    fn own(&self) -> DomainNumber {
        DomainNumber(self.own as u16)
    }

    fn domain_count(&self) -> usize {
        self.state.borrow().peers.len()
    }

    fn ring_lines(&self, class: Class) -> usize {
        self.ring_lines[class as usize]
    }

    fn free_lines(&self, to: DomainNumber, class: Class) -> usize {
        let free = self.with(|state| {
            let Some(Some(peer)) = state.peers.get(to.index()) else { return Ok(0) };
            let used = peer.sent[class as usize].wrapping_sub(peer.taken_there[class as usize]) as usize;
            Ok(self.ring_lines[class as usize].saturating_sub(used))
        });
        free.unwrap_or(0)
    }

    fn send(&self, to: DomainNumber, class: Class, message: &[u8]) -> Result<(), SendError> {
        let lines = self.lines_of(message.len());
        if lines > self.ring_lines[class as usize] {
            return Err(SendError::TooLong);
        }
        if self.free_lines(to, class) < lines {
            self.with(|state| self.pump(state));
        }
        if self.free_lines(to, class) < lines {
            return Err(SendError::Full);
        }
        let sent = self.with(|state| {
            let count = state.peers.len();
            let Some(Some(peer)) = state.peers.get_mut(to.index()) else { return Ok(()) };
            // What it says of itself is not counted: connections keep their order.
            peer.queue(class as u8, &state.known, message);
            state.known[self.own * count + to.index()] += 1;
            peer.sent[class as usize] = peer.sent[class as usize].wrapping_add(lines as u32);
            peer.write()
        });
        sent.ok_or(SendError::Full)
    }

    fn receive_from(&self, from: DomainNumber, class: Class, message: &mut Vec<u8>) -> bool {
        message.clear();
        let received = self.with(|state| {
            self.pump(state)?;
            let Some(Some(peer)) = state.peers.get_mut(from.index()) else { return Ok(false) };
            let Some(bytes) = peer.there[class as usize].pop_front() else { return Ok(false) };
            let taken = &mut peer.taken[class as usize];
            *taken = taken.wrapping_add(self.lines_of(bytes.len()) as u32);
            *message = bytes;
            Ok(true)
        });
        if received == Some(true) {
            self.clock.has_come();
        }
        received.unwrap_or(false)
    }

    fn receive(&self, classes: &[Class], message: &mut Vec<u8>) -> Option<(Class, DomainNumber)> {
        let count = self.domain_count();
        for class in classes {
            let turn = &self.turns[*class as usize];
            for step in 0..count {
                let from = DomainNumber(((turn.get() + step) % count) as u16);
                if self.receive_from(from, *class, message) {
                    turn.set((from.index() + 1) % count);
                    return Some((*class, from));
                }
            }
        }
        None
    }

    fn has_ended(&self) -> bool {
        self.state.borrow().has_ended
    }

    fn wait(&self) {
        self.clock.wait();
    }

    fn pause(&self, nanoseconds: u64) {
        self.clock.pause(nanoseconds);
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }
}
