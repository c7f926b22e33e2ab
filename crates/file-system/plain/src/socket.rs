//! What becomes of local datagram sockets, their names and messages.

use posix_calls::{Errno, MAX_MESSAGE_BYTES, SocketName, SocketState};

use crate::object::{Body, Message, Number, Socket};
use crate::state::State;

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
        if receiver.is_full() {
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
