//! Local datagram sockets, as calls speak of them.

/// Longest name in bytes (`sun_path` of Linux less the byte that says "abstract").
pub const MAX_SOCKET_NAME_BYTES: usize = 107;

/// Longest message in bytes (Linux: as many as the send buffer holds).
pub const MAX_MESSAGE_BYTES: usize = 3968;

/// Whether messages arrive in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketOrder {
    /// They do.
    Ordered,
    /// Any may come next (section 4 of the paper).
    Unordered,
}

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the message. What did not fit into the buffer is lost (POSIX `recv`).
    pub length_bytes: usize,
    /// The name of the socket that sent it, or [`SocketName::NONE`].
    pub from: SocketName,
}

/// What a socket sees of itself and of its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketState {
    /// A message waits.
    pub has_message: bool,
    /// It has a peer, of which the last descriptor was closed.
    pub peer_gone: bool,
}

/// A socket's name in Linux's abstract namespace (unix(7)): from 1 to [`MAX_SOCKET_NAME_BYTES`] bytes, of any value; or none.
#[derive(Clone, Copy)]
pub struct SocketName {
    length: u8,
    bytes: [u8; MAX_SOCKET_NAME_BYTES],
}

impl SocketName {
    /// No name.
    pub const NONE: SocketName = SocketName { length: 0, bytes: [0; MAX_SOCKET_NAME_BYTES] };

    /// A name of these bytes; `None` for none of them or too many.
    pub fn new(bytes: &[u8]) -> Option<SocketName> {
        let length = u8::try_from(bytes.len()).ok().filter(|&length| length > 0)?;
        let mut name = SocketName { length, ..SocketName::NONE };
        name.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(name)
    }

    /// The bytes; none if there is no name.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl PartialEq for SocketName {
    fn eq(&self, other: &SocketName) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for SocketName {}

impl core::fmt::Debug for SocketName {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{:?}", self.bytes().escape_ascii())
    }
}
