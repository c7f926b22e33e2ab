//! Local datagram sockets: messages in the order in which they were sent, which is one of those that an unordered socket may have.

use std::collections::VecDeque;

use posix_calls::{Errno, MAX_MESSAGE_BYTES, Received, SocketName, SocketOrder, SocketState};

use crate::object::{Body, Number};
use crate::state::State;

/// Messages that wait in a socket at most: those of one ring of crate `sockets`.
const MESSAGE_LIMIT: usize = 16;

/// A socket, which keeps its peer while it is open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Socket {
    pub(crate) order: SocketOrder,
    pub(crate) peer: Option<Number>,
    /// Its name, or no bytes.
    pub(crate) name: Vec<u8>,
    pub(crate) descriptors: u32,
    /// Whether the last descriptor was closed.
    pub(crate) is_gone: bool,
    messages: VecDeque<Message>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Message {
    bytes: Vec<u8>,
    from: Vec<u8>,
}

impl Socket {
    /// A socket without descriptors, name and peer.
    pub(crate) fn new(order: SocketOrder) -> Socket {
        let (name, messages) = (Vec::new(), VecDeque::new());
        Socket { order, peer: None, name, descriptors: 0, is_gone: false, messages }
    }

    /// Takes the message that was sent first.
    pub(crate) fn receive(&mut self, bytes: &mut [u8]) -> Option<Received> {
        let message = self.messages.pop_front()?;
        bytes.iter_mut().zip(&message.bytes).for_each(|(to, from)| *to = *from);
        let from = SocketName::new(&message.from).unwrap_or(SocketName::NONE);
        Some(Received { length_bytes: message.bytes.len(), from })
    }
}

impl State {
    pub(crate) fn socket(&self, number: Number) -> &Socket {
        match &self.get(number).body {
            Body::Socket(socket) => socket,
            other => panic!("only sockets have messages, and this is {:?}", other.kind()),
        }
    }

    pub(crate) fn socket_mut(&mut self, number: Number) -> &mut Socket {
        match &mut self.get_mut(number).body {
            Body::Socket(socket) => socket,
            other => panic!("only sockets have messages, and this is {:?}", other.kind()),
        }
    }

    /// The last descriptor was closed: nobody can send there, and what waits is lost.
    pub(crate) fn close_socket(&mut self, number: Number) {
        let socket = self.socket_mut(number);
        socket.is_gone = true;
        socket.messages.clear();
        let (name, peer) = (std::mem::take(&mut socket.name), socket.peer);
        self.socket_names.remove(&name);
        if let Some(peer) = peer {
            self.release(peer);
        }
    }

    pub(crate) fn bind_socket(&mut self, number: Number, name: &SocketName) -> Result<(), Errno> {
        if !self.socket(number).name.is_empty() {
            return Err(Errno::EINVAL);
        }
        let name = name.bytes().to_vec();
        if self.socket_names.contains_key(&name) {
            return Err(Errno::EADDRINUSE);
        }
        self.socket_names.insert(name.clone(), number);
        self.socket_mut(number).name = name;
        Ok(())
    }

    pub(crate) fn send(&mut self, from: Number, to: Option<&SocketName>, message: &[u8]) -> Result<(), Errno> {
        let peer = self.socket(from).peer;
        if to.is_none() && peer.is_none() {
            return Err(Errno::ENOTCONN);
        }
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(Errno::EMSGSIZE);
        }
        let named = to.map(|name| self.socket_names.get(name.bytes()).copied().ok_or(Errno::ECONNREFUSED));
        let there = named.transpose()?.or(peer).ok_or(Errno::ENOTCONN)?;
        let sender = self.socket(from).name.clone();
        let receiver = self.socket_mut(there);
        if receiver.peer.is_some_and(|peer| peer != from) {
            return Err(Errno::EPERM);
        }
        if receiver.is_gone {
            return Err(Errno::ECONNREFUSED);
        }
        if receiver.messages.len() == MESSAGE_LIMIT {
            return Err(Errno::EAGAIN);
        }
        receiver.messages.push_back(Message { bytes: message.to_vec(), from: sender });
        Ok(())
    }

    pub(crate) fn socket_state(&self, number: Number) -> SocketState {
        let Socket { peer, messages, .. } = self.socket(number);
        // A peer is kept as long as the socket has descriptors.
        let peer_gone = peer.is_some_and(|peer| self.socket(peer).is_gone);
        SocketState { has_message: !messages.is_empty(), peer_gone }
    }
}
