//! Calls on sockets: what a test's pairs and names stand for, and the calls under test, each a function of its own.
//!
//! All are calls on descriptors of one process. The ends of a pair have numbers that follow from the pair's; a socket with a name
//! has any number, which stands in a table: a line for each name.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use percpu::CacheLine;
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::{DataOperations, Errno, NumberChoice, OnExec, SocketName, SocketOrder, sockets};
use runner::arguments::Arguments;
use wire::value::Value;

use crate::subject::Subject;

/// The process whose descriptors these are.
pub const PROCESS: usize = 0;
/// Pairs that tests can name; and names that a test can have.
const COUNT: usize = 8;
const ANY: DescriptorOptions = DescriptorOptions { number: NumberChoice::Any, ..DescriptorOptions::PLAIN };

/// The number of the end that receives.
fn receiver(pair: usize) -> u32 {
    2 * pair as u32
}

/// The number of the end that sends.
fn sender(pair: usize) -> u32 {
    receiver(pair) + 1
}

/// Where a socket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At a number; the end that receives.
    Pair(usize),
    /// Under a name, which is the operation's path.
    Name(usize),
}

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub enum SocketWork {
    Send {
        to: Place,
        byte: u8,
    },
    Receive(Place),
    Close(usize),
    Bind(usize),
    // Set-up and observation.
    Use(SocketOrder),
    MakePair {
        pair: usize,
        receives: bool,
    },
    /// Of the coordinator, which lets another core send.
    Deliver {
        to: Place,
        byte: u8,
        sender: usize,
    },
    Drain {
        from: Place,
        order: SocketOrder,
    },
}

/// What came back.
pub enum Came {
    /// Nothing but success.
    Nothing,
    /// A count in bytes, or a message.
    Number(u64),
    /// Of what is never recorded.
    Outside(Value<'static>),
}

/// By number of a name: one more than the descriptor of the socket that has it, or zero.
static NAMED: [CacheLine<AtomicU32>; COUNT] = [const { CacheLine(AtomicU32::new(0)) }; COUNT];
/// Whether the sockets of this test are ordered: written by the coordinator, between the calls.
static ORDERED: AtomicBool = AtomicBool::new(true);

fn order() -> SocketOrder {
    if ORDERED.load(Ordering::Relaxed) { SocketOrder::Ordered } else { SocketOrder::Unordered }
}

/// The descriptor of what receives in a place.
fn descriptor(place: Place) -> Result<u32, Errno> {
    match place {
        Place::Pair(pair) => Ok(receiver(pair)),
        Place::Name(number) => NAMED[number].load(Ordering::Acquire).checked_sub(1).ok_or(Errno::EBADF),
    }
}

/// What a window's names stand for, and whether it has sockets.
#[derive(Default)]
pub struct SocketTest {
    names: Vec<String>,
    used: bool,
}

impl SocketTest {
    fn order(arguments: &Arguments<'_>, parameter: usize) -> Result<SocketOrder, String> {
        Ok(if arguments.flag(parameter)? { SocketOrder::Ordered } else { SocketOrder::Unordered })
    }

    fn pair(arguments: &Arguments<'_>) -> Result<usize, String> {
        let number = arguments.number(0)?;
        let pair = usize::try_from(number).ok().filter(|pair| *pair < COUNT);
        pair.ok_or_else(|| format!("pair {number}: expected 0 to {}", COUNT - 1))
    }

    fn name(&mut self, text: &str) -> Result<usize, String> {
        if text.is_empty() || text.len() > 64 {
            return Err(format!("{text:?} is no name of a socket: expected 1 to 64 bytes"));
        }
        if let Some(number) = self.names.iter().position(|name| name == text) {
            return Ok(number);
        }
        if self.names.len() == COUNT {
            return Err(format!("a test with more than {COUNT} names of sockets"));
        }
        self.names.push(text.to_owned());
        Ok(self.names.len() - 1)
    }

    /// What a call is to do, and with which name, if it is one on sockets.
    ///
    /// # Errors
    /// An argument is out of range.
    pub fn prepare<'a>(
        &mut self,
        call: &str,
        parameters: &[&str],
        arguments: &Arguments<'a>,
    ) -> Result<Option<(SocketWork, &'a str)>, String> {
        let byte = |parameter| {
            let number = arguments.number(parameter)?;
            u8::try_from(number).map_err(|_| format!("message {number}: expected 0 to 255"))
        };
        let is_named = parameters.first() == Some(&"name");
        let is_ours = matches!(
            (call, parameters),
            ("send" | "receive" | "make_pair" | "deliver" | "drain", _)
                | ("close", ["pair"])
                | ("bind" | "sendto" | "recvfrom" | "make_named" | "deliver_to" | "drain_named", _)
                | ("use_sockets", _)
        );
        if !is_ours {
            return Ok(None);
        }
        self.used = true;
        if call == "use_sockets" {
            return Ok(Some((SocketWork::Use(SocketTest::order(arguments, 0)?), "")));
        }
        let (place, number, name) = if is_named {
            let name = arguments.text(0)?;
            let number = self.name(name)?;
            (Place::Name(number), number, name)
        } else {
            let pair = SocketTest::pair(arguments)?;
            (Place::Pair(pair), pair, "")
        };
        let work = match call {
            "send" | "sendto" => SocketWork::Send { to: place, byte: byte(1)? },
            "receive" | "recvfrom" => SocketWork::Receive(place),
            "close" => SocketWork::Close(number),
            "bind" | "make_named" => SocketWork::Bind(number),
            "make_pair" => SocketWork::MakePair { pair: number, receives: arguments.flag(1)? },
            "deliver" | "deliver_to" => {
                let sender = arguments.number(2)?;
                let sender = usize::try_from(sender).map_err(|_| format!("sender {sender}: expected 0 or more"))?;
                SocketWork::Deliver { to: place, byte: byte(1)?, sender }
            }
            _ => SocketWork::Drain { from: place, order: SocketTest::order(arguments, 1)? },
        };
        Ok(Some((work, name)))
    }

    /// The window is over, and all descriptors are closed.
    pub fn end(&mut self) {
        self.names.clear();
        if std::mem::take(&mut self.used) {
            NAMED.iter().for_each(|place| place.store(0, Ordering::Release));
        }
    }
}

/// See [`sockets::send`].
#[inline(never)]
fn send<D: DataOperations>(process: &D, fd: u32, message: &[u8]) -> Result<usize, Errno> {
    sockets::send(process, fd, None, message)
}

/// See [`sockets::send`]; from a socket that is made for it and closed again.
#[inline(never)]
fn sendto<D: DataOperations>(process: &D, name: &SocketName, message: &[u8]) -> Result<usize, Errno> {
    let from = sockets::socket(process, SocketOrder::Ordered, ANY)?;
    let sent = sockets::send(process, from, Some(name), message);
    data::close(process, from)?;
    sent
}

/// See [`sockets::receive`].
#[inline(never)]
fn receive<D: DataOperations>(process: &D, fd: u32) -> Result<u8, Errno> {
    let mut bytes = [0];
    sockets::receive(process, fd, &mut bytes).map(|_| bytes[0])
}

/// See [`data::close`].
#[inline(never)]
fn close<D: DataOperations>(process: &D, fd: u32) -> Result<(), Errno> {
    data::close(process, fd)
}

/// See [`sockets::bind`]; of a socket that is made for it, and closed again if the name is taken.
#[inline(never)]
fn bind<D: DataOperations>(process: &D, name: &SocketName) -> Result<u32, Errno> {
    let socket = sockets::socket(process, order(), ANY)?;
    let bound = sockets::bind(process, socket, name);
    bound.map(|()| socket).or_else(|errno| close(process, socket).and(Err(errno)))
}

/// Does it, or returns an error number. `name` is that of the call, if it has one.
///
/// # Errors
/// The error number.
pub fn perform<S: Subject>(actor: &S, work: SocketWork, name: &[u8]) -> Result<Came, Errno> {
    let process = &actor.enter(PROCESS);
    let name = || SocketName::new(name).ok_or(Errno::EINVAL);
    match work {
        SocketWork::Use(order) => {
            ORDERED.store(order == SocketOrder::Ordered, Ordering::Relaxed);
            Ok(Came::Outside(Value::Null))
        }
        SocketWork::Send { to: Place::Pair(pair), byte } => {
            send(process, sender(pair), &[byte]).map(|sent| Came::Number(sent as u64))
        }
        SocketWork::Send { to: Place::Name(_), byte } => {
            sendto(process, &name()?, &[byte]).map(|sent| Came::Number(sent as u64))
        }
        SocketWork::Receive(place) => receive(process, descriptor(place)?).map(|byte| Came::Number(byte.into())),
        SocketWork::Close(pair) => close(process, receiver(pair)).map(|()| Came::Nothing),
        SocketWork::Bind(number) => {
            let socket = bind(process, &name()?)?;
            NAMED[number].store(socket + 1, Ordering::Release);
            Ok(Came::Nothing)
        }
        SocketWork::MakePair { pair, receives } => make_pair(process, pair, receives),
        SocketWork::Deliver { .. } => Ok(Came::Nothing),
        SocketWork::Drain { from, order } => drain(process, descriptor(from)?, order).map(Came::Outside),
    }
}

fn make_pair<D: DataOperations>(process: &D, pair: usize, receives: bool) -> Result<Came, Errno> {
    let (from, to) = sockets::pair(process, order(), ANY)?;
    data::duplicate_to(process, from, sender(pair), OnExec::Keep)?;
    if receives {
        data::duplicate_to(process, to, receiver(pair), OnExec::Keep)?;
    }
    data::close(process, from)?;
    data::close(process, to)?;
    Ok(Came::Outside(Value::Null))
}

/// All messages that wait; sorted where there is no order.
fn drain<D: DataOperations>(process: &D, fd: u32, order: SocketOrder) -> Result<Value<'static>, Errno> {
    let mut messages = Vec::new();
    loop {
        match receive(process, fd) {
            Ok(message) => messages.push(message),
            Err(Errno::EAGAIN) => break,
            Err(errno) => return Err(errno),
        }
    }
    if order == SocketOrder::Unordered {
        messages.sort_unstable();
    }
    Ok(Value::Seq(messages.into_iter().map(|message| Value::Int(message.into())).collect()))
}
