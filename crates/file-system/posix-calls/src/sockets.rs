//! The calls on local datagram sockets: socket, socketpair, bind, send, recv, getsockname, with Linux's semantics.
//!
//! A message arrives whole, or as much of it as the receiver has room for. Sockets are *ordered* as in POSIX, or *unordered*:
//! then sends and receives on different cores have nothing to do with each other (section 4 of the paper, "permit weak
//! ordering"). Names are those of Linux's abstract namespace.
//!
//! A descriptor of a socket is passed on, kept over `exec` and closed as every other. The last one that is closed closes the
//! socket: nobody can send to it any more, and what waits in it is lost.
//!
//! **Waiting** is [`data::read_waiting`](crate::data::read_waiting)'s and its like; these calls fail with EAGAIN.

use crate::data::{DescriptorOptions, description};
use crate::data_operations::{DataOperations, NodeOf};
use crate::errno::Errno;
use crate::kind::Kind;
use crate::object_operations::ObjectOperations;
use crate::socket::{Received, SocketName, SocketOrder};

/// A socket that has neither name nor peer.
///
/// POSIX `socket`; Linux `unix_create` (net/unix/af_unix.c).
///
/// # Errors
/// EMFILE without a number, ENOMEM.
pub fn socket<D: DataOperations>(process: &D, order: SocketOrder, options: DescriptorOptions) -> Result<u32, Errno> {
    process.install_socket(order, options.status, (options.number, options.on_exec))
}

/// Two sockets, each the other's peer.
///
/// POSIX `socketpair`; Linux `unix_socketpair`.
///
/// # Errors
/// EMFILE without two numbers, ENOMEM.
pub fn pair<D: DataOperations>(
    process: &D,
    order: SocketOrder,
    options: DescriptorOptions,
) -> Result<(u32, u32), Errno> {
    process.install_socket_pair(order, options.status, (options.number, options.on_exec))
}

/// The socket that a descriptor leads to.
fn socket_of<D: DataOperations>(process: &D, fd: u32) -> Result<NodeOf<'_, D>, Errno> {
    let node = process.node(description(process, fd)?);
    match process.objects().kind(node) {
        Kind::Socket => Ok(node),
        _ => Err(Errno::ENOTSOCK),
    }
}

/// Names a socket. A name lasts as long as the socket.
///
/// POSIX `bind`; Linux `unix_bind_abstract`.
///
/// # Errors
/// EBADF if the descriptor is not open, ENOTSOCK if it leads to something else; EINVAL if the socket has a name,
/// EADDRINUSE if another has this one, ENOMEM.
pub fn bind<D: DataOperations>(process: &D, fd: u32, name: &SocketName) -> Result<(), Errno> {
    process.bind_socket(socket_of(process, fd)?, name)
}

/// The name of a socket, or [`SocketName::NONE`].
///
/// POSIX `getsockname`.
///
/// # Errors
/// EBADF, ENOTSOCK as [`bind`].
pub fn name<D: DataOperations>(process: &D, fd: u32) -> Result<SocketName, Errno> {
    Ok(process.socket_name(socket_of(process, fd)?)?)
}

/// Sends a message to the socket that has a name, or to the peer.
///
/// POSIX `sendto`, `send`; Linux `unix_dgram_sendmsg`: whether the message is too long is said before whether anybody
/// receives there.
///
/// # Errors
/// EBADF, ENOTSOCK as [`bind`]; ENOTCONN without a peer; ECONNREFUSED if nobody receives there, EPERM if who does hears
/// another; EMSGSIZE for more than [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES), EAGAIN if there is no room, ENOMEM.
pub fn send<D: DataOperations>(process: &D, fd: u32, to: Option<&SocketName>, message: &[u8]) -> Result<usize, Errno> {
    let socket = socket_of(process, fd)?;
    process.send(socket, to, message)?;
    Ok(message.len())
}

/// Takes a message.
///
/// POSIX `recvfrom`; Linux `unix_dgram_recvmsg`.
///
/// # Errors
/// EBADF, ENOTSOCK as [`bind`]; EAGAIN if there is none.
pub fn receive<D: DataOperations>(process: &D, fd: u32, bytes: &mut [u8]) -> Result<Received, Errno> {
    process.receive(socket_of(process, fd)?, bytes)
}
