//! The verbs on descriptors and data in shared memory.
//!
//! **Death of a process** in a verb: as in `direct_names`, the file, pipe or description that is locked was noted first.
//! Descriptors of a process that died are closed by its heir ([`ScaleFs::end_processes_of`]).
#![allow(unsafe_code)]

use core::ops::{Deref, Range};

use percpu::{Core, OutOfMemory};
use posix_calls::allocation::AllocationOperations;
use posix_calls::{
    AccessMode, AnswerOf, DESCRIPTOR_LIMIT, DataOperations, Errno, Extent, NumberChoice, ObjectOperations, Offset,
    OnExec, PipeEnd, PipeState, Received, SocketName, SocketOrder, SocketState, StatusFlags, Use, WriteAt, Written,
};
use sockets::SocketError;

use crate::description::{DescriptionPtr, DescriptionRef, LockedOffset};
use crate::direct::{Direct, OperationError};
use crate::host::Host;
use crate::inode_ref::InodeRef;
use crate::instance::{ScaleFs, Stamp};
use crate::lives::Process;
use crate::node::{Node, OpenNode};
use crate::process::ProcessObject;

/// What a socket's descriptor is open for.
pub(crate) const BOTH: AccessMode = AccessMode { read: true, write: true };

/// One call of one core on behalf of one process, with its descriptors.
pub struct InProcess<'c, H> {
    direct: Direct<'c, H>,
    process: &'c ProcessObject,
}

impl<'c, H> Deref for InProcess<'c, H> {
    type Target = Direct<'c, H>;

    #[inline]
    fn deref(&self) -> &Direct<'c, H> {
        &self.direct
    }
}

impl ScaleFs {
    /// Begins a call of this core on behalf of a process.
    ///
    /// # Panics
    /// If the process or the core is of another instance.
    #[inline]
    pub fn enter<'c, H: Host>(&'c self, core: &'c Core<'_>, process: &'c Process, host: &'c H) -> InProcess<'c, H> {
        InProcess::of(self, core, process.object(), host)
    }
}

/// The right to move a description's offset.
pub struct OffsetLock<'v> {
    offset: LockedOffset<'v>,
    // Dropped after the lock.
    _note: OffsetNote<'v>,
}

/// What the core notes for its heir while it moves an offset.
struct OffsetNote<'v> {
    fs: &'v ScaleFs,
    core: &'v Core<'v>,
}

impl Drop for OffsetNote<'_> {
    fn drop(&mut self) {
        self.fs.moving_offset(self.core, 0);
    }
}

impl<'c, H: Host> InProcess<'c, H> {
    /// A call of this core on behalf of a process.
    #[inline]
    fn of(fs: &'c ScaleFs, core: &'c Core<'_>, process: &'c ProcessObject, host: &'c H) -> InProcess<'c, H> {
        InProcess { direct: fs.begin(core, &process.context, host), process }
    }

    /// The same call with other credentials than the process's: those of a thread.
    #[inline]
    pub fn acting_as(mut self, credentials: &'c posix_calls::Credentials) -> Self {
        self.direct.act_as(credentials);
        self
    }

    /// The process.
    #[inline]
    pub(crate) fn process(&self) -> &'c ProcessObject {
        self.process
    }

    /// Puts a description into the table, or gives all up.
    fn install_description(&self, description: DescriptionPtr, number: (NumberChoice, OnExec)) -> Result<u32, Errno> {
        let hint = self.fs.number_hint(self.core());
        let node = description.get().opened.node;
        description.open_end(self.fs, self.core());
        self.process.install(self.fs, &self.guard, description, number, hint, self.host).inspect_err(|_| {
            description.close_end(self.fs, self.core(), self.host);
            self.drop_reference(node);
            // SAFETY: no descriptor leads to the description.
            unsafe { description.free(self.core()) };
        })
    }

    fn make_description(&self, node: InodeRef, mode: AccessMode, status: StatusFlags) -> Result<DescriptionPtr, Errno> {
        DescriptionPtr::make(self.core(), node, mode, status).map_err(|OutOfMemory| {
            self.drop_reference(node);
            Errno::ENOMEM
        })
    }

    /// Makes a description of an object, whose reference it takes over, and gives it a number.
    pub(crate) fn install_node(
        &self,
        node: InodeRef,
        mode: AccessMode,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        self.install_description(self.make_description(node, mode, status)?, number)
    }

    pub(crate) fn close_number(&self, number: u32) -> bool {
        let Some(closed) = self.process.remove(self.fs, &self.guard, number.into(), self.host) else {
            return false;
        };
        closed.description.release(self.fs, self.core(), self.host);
        if number / DESCRIPTOR_LIMIT == self.core().index().get() as u32 + 1 {
            self.fs.number_hint(self.core()).set(number % DESCRIPTOR_LIMIT);
        }
        true
    }

    /// Lets `target` lead to the same description as `number` if it is open, and else leaves it so. Whether it was.
    ///
    /// This is for hosts that give numbers themselves, of which some are on their way: about to be opened, or to be free.
    ///
    /// # Errors
    /// EBADF if `number` is not open; ENOMEM.
    pub fn duplicate_over(&self, number: u32, target: u32, on_exec: OnExec) -> Result<bool, Errno> {
        self.process.duplicate_over(self.fs, &self.guard, (number, target), on_exec, self.host)
    }
}

impl<H: Host> AllocationOperations for InProcess<'_, H> {
    fn reserve(&self, file: Node<'_>, bytes: Range<u64>, grows: bool) -> Result<(), OperationError> {
        let file = file.at;
        self.working_on(&[file]);
        let reserved = file.file().reserve(self.access(), bytes, grows);
        reserved.map_err(|OutOfMemory| OperationError::NoSpace)?;
        self.mark(file, Stamp::Data);
        Ok(())
    }

    fn punch(&self, file: Node<'_>, bytes: Range<u64>) -> Result<(), OperationError> {
        let file = file.at;
        self.working_on(&[file]);
        file.file().punch(self.access(), &bytes).map_err(|OutOfMemory| OperationError::NoSpace)?;
        self.mark(file, Stamp::Data);
        Ok(())
    }
}

impl<'c, H: Host> DataOperations for InProcess<'c, H> {
    type Objects = Direct<'c, H>;
    type Description<'v>
        = DescriptionRef<'v>
    where
        Self: 'v;
    type OffsetLock<'v>
        = OffsetLock<'v>
    where
        Self: 'v;

    #[inline]
    fn objects(&self) -> &Direct<'c, H> {
        &self.direct
    }

    #[inline]
    fn description(&self, number: u32) -> AnswerOf<Option<DescriptionRef<'_>>, Self> {
        let descriptor = self.process.descriptor(&self.guard, number);
        Ok(descriptor.map(|descriptor| descriptor.description.lent()))
    }

    #[inline]
    fn may_serve(&self, number: u32, usage: Use) -> AnswerOf<bool, Self> {
        Ok(self.process.may_serve(&self.guard, number, usage, self.host))
    }

    fn install(
        &self,
        object: OpenNode,
        mode: AccessMode,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        self.install_node(object.of(self.fs), mode, status, number)
    }

    fn install_pipe(&self, status: StatusFlags, number: (NumberChoice, OnExec)) -> Result<(u32, u32), Errno> {
        let made = self.fs.make_pipe(self.core(), self.context, self.objects().now_ns());
        let pipe = made.map_err(|OutOfMemory| Errno::ENOMEM)?;
        // The pipe has one reference; each description wants one.
        self.take_reference(pipe);
        let read = AccessMode { read: true, write: false };
        let write = AccessMode { read: false, write: true };
        let read_number = self.install_node(pipe, read, status, number).inspect_err(|_| self.drop_reference(pipe))?;
        let write_number = self.install_node(pipe, write, status, number).inspect_err(|_| {
            self.close_number(read_number);
        })?;
        Ok((read_number, write_number))
    }

    fn install_socket(
        &self,
        order: SocketOrder,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        self.make_socket(order, status, number)
    }

    fn install_socket_pair(
        &self,
        order: SocketOrder,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<(u32, u32), Errno> {
        self.make_socket_pair(order, status, number)
    }

    fn uninstall(&self, number: u32) -> AnswerOf<bool, Self> {
        Ok(self.close_number(number))
    }

    fn duplicate(&self, number: u32, choice: (NumberChoice, OnExec)) -> Result<u32, Errno> {
        let hint = self.fs.number_hint(self.core());
        self.process.duplicate(self.fs, &self.guard, number, choice, hint, self.host)
    }

    fn duplicate_to(&self, number: u32, target: u32, on_exec: OnExec) -> Result<(), Errno> {
        self.process.duplicate_to(self.fs, &self.guard, (number, target), on_exec, self.host)
    }

    fn set_on_exec(&self, number: u32, on_exec: OnExec) -> Result<OnExec, Errno> {
        self.process.set_on_exec(&self.guard, number, on_exec, self.host)
    }

    fn on_exec(&self, number: u32) -> Result<OnExec, Errno> {
        self.process.descriptor(&self.guard, number).map(|found| found.on_exec).ok_or(Errno::EBADF)
    }

    #[inline]
    fn node<'v>(&'v self, description: DescriptionRef<'v>) -> Node<'v> {
        Node::lent(description.get().opened.node)
    }

    #[inline]
    fn mode(&self, description: DescriptionRef<'_>) -> AccessMode {
        description.get().opened.mode
    }

    fn status(&self, description: DescriptionRef<'_>) -> AnswerOf<StatusFlags, Self> {
        Ok(description.get().status())
    }

    fn set_status(&self, description: DescriptionRef<'_>, status: StatusFlags) -> AnswerOf<(), Self> {
        description.get().set_status(status);
        Ok(())
    }

    #[inline]
    fn offset(&self, description: DescriptionRef<'_>) -> AnswerOf<Offset, Self> {
        Ok(description.get().offset())
    }

    #[inline]
    fn offset_stays(&self, description: DescriptionRef<'_>, offset: Offset) -> AnswerOf<bool, Self> {
        Ok(description.get().stays(offset))
    }

    #[inline]
    fn may_reach(&self, description: DescriptionRef<'_>, bytes: u64) -> AnswerOf<bool, Self> {
        Ok(description.get().may_reach(bytes))
    }

    fn lock_offset<'v>(&'v self, description: DescriptionRef<'v>) -> AnswerOf<OffsetLock<'v>, Self> {
        let core: &'v Core<'v> = self.core();
        self.fs.moving_offset(core, description.address());
        let note = OffsetNote { fs: self.fs, core };
        Ok(OffsetLock { offset: description.get().lock_offset(core, self.host), _note: note })
    }

    #[inline]
    fn locked_offset(&self, lock: &OffsetLock<'_>) -> u64 {
        lock.offset.bytes()
    }

    #[inline]
    fn will_reach(&self, lock: &OffsetLock<'_>, most_bytes: u64) -> AnswerOf<(), Self> {
        lock.offset.will_reach(most_bytes);
        Ok(())
    }

    fn unlock_offset(&self, lock: OffsetLock<'_>, bytes: u64) -> AnswerOf<(), Self> {
        lock.offset.move_to(bytes);
        Ok(())
    }

    fn ends_at(&self, file: Node<'_>, offset: u64) -> AnswerOf<bool, Self> {
        Ok(file.at.file().ends_at(self.access(), offset))
    }

    fn is_shorter_than(&self, file: Node<'_>, length: u64) -> AnswerOf<bool, Self> {
        Ok(file.at.file().is_shorter_than(self.access(), length))
    }

    fn read_range(&self, file: Node<'_>, offset: u64, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        Ok(file.at.file().read(self.access(), offset, bytes))
    }

    fn write_range(&self, file: Node<'_>, at: WriteAt, bytes: &[u8]) -> AnswerOf<Written, Self> {
        let file = file.at;
        self.working_on(&[file]);
        let (offset, length) = match at {
            WriteAt::Offset(offset) => (offset, file.file().write(self.access(), offset, bytes)),
            WriteAt::End => file.file().append(self.access(), bytes),
        };
        if length > 0 {
            self.mark(file, Stamp::Data);
        }
        Ok(Written { offset, length })
    }

    fn resize(&self, file: Node<'_>, size_bytes: u64) -> Result<(), OperationError> {
        let file = file.at;
        self.working_on(&[file]);
        file.file().resize(self.access(), size_bytes).map_err(|OutOfMemory| OperationError::NoSpace)?;
        self.mark(file, Stamp::Data);
        Ok(())
    }

    fn size(&self, file: Node<'_>) -> AnswerOf<u64, Self> {
        Ok(file.at.file().size(self.access()))
    }

    fn extent(&self, file: Node<'_>, offset: u64) -> AnswerOf<Extent, Self> {
        Ok(file.at.file().extent(self.access(), offset))
    }

    fn read_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        self.working_on(&[pipe.at]);
        pipe.at.pipe().read(self.fs, self.core(), bytes, self.host)
    }

    fn peek_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        Ok(pipe.at.pipe().peek(self.fs, bytes))
    }

    fn pipe_state(&self, pipe: Node<'_>, end: PipeEnd) -> AnswerOf<PipeState, Self> {
        let pipe = pipe.at.pipe();
        let other_end_gone = pipe.is_gone(end.other());
        Ok(PipeState { is_ready: pipe.is_ready(end), other_end_gone })
    }

    fn write_pipe(&self, pipe: Node<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        let pipe = pipe.at;
        self.working_on(&[pipe]);
        let written = pipe.pipe().write(self.fs, self.core(), bytes, self.host)?;
        if written > 0 {
            self.mark(pipe, Stamp::Data);
        }
        Ok(written)
    }

    fn bind_socket(&self, socket: Node<'_>, name: &SocketName) -> Result<(), Errno> {
        let socket = socket.at.socket().socket();
        self.fs.sockets.bind(self.core(), &socket, name, self.host).map_err(SocketError::into)
    }

    fn socket_name(&self, socket: Node<'_>) -> AnswerOf<SocketName, Self> {
        Ok(self.fs.sockets.name(&socket.at.socket().socket()))
    }

    fn socket_state(&self, socket: Node<'_>) -> AnswerOf<SocketState, Self> {
        Ok(self.fs.sockets.state(&socket.at.socket().socket()))
    }

    fn send(&self, socket: Node<'_>, to: Option<&SocketName>, message: &[u8]) -> Result<(), Errno> {
        let (sockets, socket) = (&self.fs.sockets, socket.at.socket().socket());
        let sent = match to {
            Some(name) => sockets.send_to(self.core(), &socket, name, message, self.host),
            None => sockets.send(self.core(), &socket, message, self.host),
        };
        sent.map_err(SocketError::into)
    }

    fn receive(&self, socket: Node<'_>, bytes: &mut [u8]) -> Result<Received, Errno> {
        let socket = socket.at.socket().socket();
        self.fs.sockets.receive(self.core(), &socket, bytes, self.host).map_err(SocketError::into)
    }
}
