//! Sockets as objects that descriptors lead to: an inode, and beside it the socket (crate `sockets`), which is closed with the last
//! descriptor.
//!
//! ```text
//! │ inode 320 │ descriptors 384 │ socket, closed 448 │
//! ```
//! A call reads the last line alone, which nothing but the end of the socket writes. The inode is there for `fstat` and its like.
//!
//! **Death of a process** in a call on a socket: crate `sockets`. One that dies while it closes the last descriptor leaves the socket
//! open for ever, as descriptors of a dead process are until somebody closes them.
#![allow(unsafe_code)]

use percpu::{ArenaObject, CacheLine, Core, ObjectKind, OutOfMemory};
use posix_calls::{
    DataOperations, Errno, Kind, NumberChoice, ObjectOperations, OnExec, Permissions, SocketOrder, StatusFlags,
};
use sockets::Socket;
use sync::Wait;
use sync::atomic::{AtomicU32, Ordering};
use sync::mutant::planted;

use crate::direct_data::{BOTH, InProcess};
use crate::ends::Ends;
use crate::host::Host;
use crate::inode::{Inode, Named, inode_kind};
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;

/// What tools call its parts.
pub(crate) const SOCKET_INODE: ObjectKind = inode_kind!(15, SocketInode as "socket's inode" {
    "descriptors" = descriptors,
    "socket" = opened.0.address,
    "closed" = opened.0.closed,
});

/// An inode of a socket, in the arena.
#[repr(C)]
pub(crate) struct SocketInode {
    pub(crate) inode: Inode,
    descriptors: Ends,
    opened: CacheLine<Opened>,
}

struct Opened {
    /// Immutable: of the socket.
    address: usize,
    /// Atomic: whether the socket was closed.
    closed: AtomicU32,
}

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for SocketInode {
    const KIND: ObjectKind = SOCKET_INODE;
}

impl SocketInode {
    /// The socket, during a call that has found the inode.
    #[inline]
    pub(crate) fn socket(&self) -> Socket {
        // SAFETY: the address is that of the socket with which the inode was made. If it was closed since, it was in this call, or
        // before the call found the inode by a descriptor that was closed then: not freed before every core has maintained.
        let socket = unsafe { Socket::from_address(self.opened.address) };
        socket.expect("an inode of a socket has one")
    }

    /// One descriptor more.
    pub(crate) fn open_end(&self, fs: &ScaleFs, core: &Core<'_>) {
        self.descriptors.open(fs, core);
    }

    /// One descriptor less; with the last one the socket is closed.
    pub(crate) fn close_end(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        if self.descriptors.close(fs, core, wait) {
            self.close(fs, core, wait);
        }
    }

    /// A dead core was about to close a descriptor, or had done so.
    pub(crate) fn end_closed(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        if self.descriptors.are_closed(fs, wait) {
            self.close(fs, core, wait);
        }
    }

    /// Closes the socket, to which no descriptor leads, if nobody else does.
    fn close(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        let is_first = self.opened.closed.swap(1, Ordering::AcqRel) == 0;
        if is_first || planted("scalefs: a socket is closed by each of its last descriptors") {
            fs.sockets.close(core, self.socket(), wait);
        }
    }
}

impl<H: Host> InProcess<'_, H> {
    /// Makes an inode with one reference for a socket, which is closed if that fails.
    fn make_socket_inode(&self, socket: Socket) -> Result<InodeRef, Errno> {
        let (fs, core) = (self.fs, self.core());
        let credentials = self.context.credentials();
        let permissions = Permissions { mode: 0o777, user: credentials.user, group: credentials.group };
        let number = fs.next_number(core);
        let inode = Inode::new(number, Kind::Socket, permissions, self.objects().now_ns(), Named::AtOnce);
        let opened = CacheLine(Opened { address: socket.address(), closed: AtomicU32::new(0) });
        match core.allocate_object(SocketInode { inode, descriptors: Ends::new(), opened }) {
            Ok(made) => Ok(InodeRef::new(made.cast(), Kind::Socket)),
            Err(OutOfMemory) => {
                fs.sockets.close(core, socket, self.host);
                Err(Errno::ENOMEM)
            }
        }
    }

    /// Gives a socket's inode, with the reference to it, a number; or gives both up.
    fn install_socket_inode(
        &self,
        node: InodeRef,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        self.install_node(node, BOTH, status, number).inspect_err(|_| {
            // Its memory is there until this core maintains.
            node.socket().close(self.fs, self.core(), self.host);
        })
    }

    /// A socket with a number.
    pub(crate) fn make_socket(
        &self,
        order: SocketOrder,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        let socket = self.fs.sockets.socket(self.core(), order)?;
        self.install_socket_inode(self.make_socket_inode(socket)?, status, number)
    }

    /// Two sockets with numbers.
    pub(crate) fn make_socket_pair(
        &self,
        order: SocketOrder,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<(u32, u32), Errno> {
        let [one, other] = self.fs.sockets.pair(self.core(), order)?;
        let one = match self.make_socket_inode(one) {
            Ok(one) => self.install_socket_inode(one, status, number),
            Err(errno) => Err(errno),
        };
        let other = self.make_socket_inode(other);
        match (one, other) {
            (Ok(one), other) => {
                let other = other.and_then(|other| self.install_socket_inode(other, status, number));
                match other {
                    Ok(other) => Ok((one, other)),
                    Err(errno) => {
                        self.close_number(one);
                        Err(errno)
                    }
                }
            }
            (Err(errno), other) => {
                if let Ok(other) = other {
                    other.socket().close(self.fs, self.core(), self.host);
                    self.drop_reference(other);
                }
                Err(errno)
            }
        }
    }
}
