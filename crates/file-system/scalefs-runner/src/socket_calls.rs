//! Calls on sockets: what a test's pairs and names stand for, and the calls under test, each a function of its own.
//!
//! A socket stands in a table, at the number of its pair, or at one that its name gets in the test: a line for each, as a
//! table of descriptors has.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use percpu::{CacheLine, Core};
use runner::arguments::Arguments;
use sockets::{Name, Order, Received, Socket, SocketError, Sockets};
use sync::Spin;
use wire::value::Value;

/// Pairs that tests can name; and names that a test can have.
const COUNT: usize = 8;
const EBADF: i64 = 9;
/// Of an implementation that has no sockets.
const ENOSYS: i64 = 38;

/// The sockets of an implementation, and the core that acts.
pub type Actor<'a> = (&'a Sockets, &'a Core<'a>);

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
    Use(Order),
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
        order: Order,
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

type Table = [CacheLine<AtomicUsize>; COUNT];
const fn empty() -> Table {
    [const { CacheLine(AtomicUsize::new(0)) }; COUNT]
}

/// Sockets by number, or zero: the ends of pairs that receive, those that send, and named ones.
static RECEIVERS: Table = empty();
static SENDERS: Table = empty();
static NAMED: Table = empty();
/// Whether the sockets of this test are ordered: written by the coordinator, between the calls.
static ORDERED: AtomicBool = AtomicBool::new(true);

fn order() -> Order {
    if ORDERED.load(Ordering::Relaxed) { Order::Ordered } else { Order::Unordered }
}

fn table(place: Place) -> &'static AtomicUsize {
    match place {
        Place::Pair(number) => &RECEIVERS[number],
        Place::Name(number) => &NAMED[number],
    }
}

/// The socket in a place.
fn socket(place: &AtomicUsize) -> Option<Socket> {
    // SAFETY: what stands in a table was open when we looked: who closes it takes it out first. If it is closed meanwhile
    // it is freed only after this core too has maintained, which it does between operations.
    unsafe { Socket::from_address(place.load(Ordering::Acquire)) }
}

/// The socket in a place, for whoever closes it: of several only one gets it.
fn take(place: &AtomicUsize) -> Option<Socket> {
    // Look without writing first.
    if place.load(Ordering::Acquire) == 0 {
        return None;
    }
    // SAFETY: what stood in the table was open, and nobody else gets it to close it.
    unsafe { Socket::from_address(place.swap(0, Ordering::AcqRel)) }
}

/// What a window's names stand for, and whether it has sockets.
#[derive(Default)]
pub struct SocketTest {
    names: Vec<String>,
    used: bool,
}

impl SocketTest {
    fn order(arguments: &Arguments<'_>, parameter: usize) -> Result<Order, String> {
        Ok(if arguments.flag(parameter)? { Order::Ordered } else { Order::Unordered })
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

    /// Whether the window had sockets; it is over.
    pub fn end(&mut self) -> bool {
        self.names.clear();
        std::mem::take(&mut self.used)
    }
}

/// See [`sockets::Sockets::send`].
#[inline(never)]
fn send(actor: Actor<'_>, from: &Socket, message: &[u8]) -> Result<(), SocketError> {
    actor.0.send(actor.1, from, message, &Spin)
}

/// See [`sockets::Sockets::send_to`]; from a socket that is made for it and closed again.
#[inline(never)]
fn sendto(actor: Actor<'_>, name: &Name, message: &[u8]) -> Result<(), SocketError> {
    let from = actor.0.socket(actor.1, Order::Ordered)?;
    let sent = actor.0.send_to(actor.1, &from, name, message, &Spin);
    actor.0.close(actor.1, from, &Spin);
    sent
}

/// See [`sockets::Sockets::receive`].
#[inline(never)]
fn receive(actor: Actor<'_>, from: &Socket, bytes: &mut [u8]) -> Result<Received, SocketError> {
    actor.0.receive(actor.1, from, bytes, &Spin)
}

/// See [`sockets::Sockets::close`].
#[inline(never)]
fn close(actor: Actor<'_>, socket: Socket) {
    actor.0.close(actor.1, socket, &Spin);
}

/// See [`sockets::Sockets::bind`]; of a socket that is made for it, and closed again if the name is taken.
#[inline(never)]
fn bind(actor: Actor<'_>, name: &Name) -> Result<Socket, SocketError> {
    let socket = actor.0.socket(actor.1, order())?;
    match actor.0.bind(actor.1, &socket, name, &Spin) {
        Ok(()) => Ok(socket),
        Err(error) => {
            close(actor, socket);
            Err(error)
        }
    }
}

/// Does it, or returns an error number. `name` is that of the call, if it has one.
///
/// # Errors
/// The error number.
pub fn perform(actor: Option<Actor<'_>>, work: SocketWork, name: &[u8]) -> Result<Came, i64> {
    let actor = actor.ok_or(ENOSYS)?;
    let done = match work {
        SocketWork::Use(order) => {
            ORDERED.store(order == Order::Ordered, Ordering::Relaxed);
            Ok(Came::Outside(Value::Null))
        }
        SocketWork::Send { to: Place::Pair(pair), byte } => match socket(&SENDERS[pair]) {
            Some(from) => send(actor, &from, &[byte]).map(|()| Came::Number(1)),
            None => return Err(EBADF),
        },
        SocketWork::Send { to: Place::Name(_), byte } => match Name::new(name) {
            Some(name) => sendto(actor, &name, &[byte]).map(|()| Came::Number(1)),
            None => return Err(EBADF),
        },
        SocketWork::Receive(place) => match socket(table(place)) {
            Some(from) => {
                let mut bytes = [0];
                receive(actor, &from, &mut bytes).map(|_| Came::Number(bytes[0].into()))
            }
            None => return Err(EBADF),
        },
        SocketWork::Close(pair) => match take(&RECEIVERS[pair]) {
            Some(socket) => {
                close(actor, socket);
                Ok(Came::Nothing)
            }
            None => return Err(EBADF),
        },
        SocketWork::Bind(number) => match Name::new(name) {
            Some(name) => bind(actor, &name).map(|socket| {
                NAMED[number].store(socket.address(), Ordering::Release);
                Came::Nothing
            }),
            None => return Err(EBADF),
        },
        SocketWork::MakePair { pair, receives } => make_pair(actor, pair, receives),
        SocketWork::Deliver { .. } => Ok(Came::Nothing),
        SocketWork::Drain { from, order } => match socket(table(from)) {
            Some(from) => Ok(Came::Outside(drain(actor, &from, order))),
            None => return Err(EBADF),
        },
    };
    done.map_err(|error| error.number().into())
}

fn make_pair(actor: Actor<'_>, pair: usize, receives: bool) -> Result<Came, SocketError> {
    let [sender, receiver] = actor.0.pair(actor.1, order())?;
    SENDERS[pair].store(sender.address(), Ordering::Release);
    if receives {
        RECEIVERS[pair].store(receiver.address(), Ordering::Release);
    } else {
        close(actor, receiver);
    }
    Ok(Came::Outside(Value::Null))
}

/// All messages that wait; sorted where there is no order.
fn drain(actor: Actor<'_>, from: &Socket, order: Order) -> Value<'static> {
    let mut messages = Vec::new();
    let mut bytes = [0];
    while receive(actor, from, &mut bytes).is_ok() {
        messages.push(bytes[0]);
    }
    if order == Order::Unordered {
        messages.sort_unstable();
    }
    Value::Seq(messages.into_iter().map(|message| Value::Int(message.into())).collect())
}

/// Closes all sockets of the test.
pub fn close_all(actor: Option<Actor<'_>>) {
    let Some(actor) = actor else { return };
    for place in RECEIVERS.iter().chain(&SENDERS).chain(&NAMED) {
        if let Some(socket) = take(place) {
            close(actor, socket);
        }
    }
}
