//! The operations through which the calls on data reach descriptors, open file descriptions, and what objects hold.
//!
//! As in [`crate::object_operations`], each is on one object, every one may fail, and the compound ones stand with their
//! steps.

use crate::descriptors::{AccessMode, Extent, NumberChoice, Offset, OnExec, PipeEnd, StatusFlags, Use, Whence};
use crate::errno::Errno;
use crate::object_operations::{Answer, ObjectOperations, Outcome};
use crate::socket::{Received, SocketName, SocketOrder, SocketState};

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAt {
    /// To this offset in bytes.
    Offset(u64),
    /// To the end, wherever that is then.
    End,
}

/// What was written: from which offset in bytes, and how much. Less than asked for if space ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Offset of the first byte.
    pub offset: u64,
    /// Bytes written.
    pub length: usize,
}

/// What one end of a pipe sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeState {
    /// Something waits, or there is room for a byte.
    pub is_ready: bool,
    /// The last descriptor of the other end was closed.
    pub other_end_gone: bool,
}

/// An object, as operations on objects know it.
pub type NodeOf<'v, D> = <<D as DataOperations>::Objects as ObjectOperations>::Node<'v>;

/// An object that is kept over calls.
pub type HandleOf<D> = <<D as DataOperations>::Objects as ObjectOperations>::Handle;

/// Why an operation cannot be done.
pub type FaultOf<D> = <<D as DataOperations>::Objects as ObjectOperations>::Fault;

/// What an operation answers.
pub type AnswerOf<T, D> = Answer<T, <D as DataOperations>::Objects>;

/// What one call of a process does to descriptors and data. A value of the type lasts for one call.
pub trait DataOperations: Sized {
    /// The operations on objects in the same call.
    type Objects: ObjectOperations;
    /// An open file description, valid during the call.
    type Description<'v>: Copy
    where
        Self: 'v;
    /// The right to move a description's offset, which nobody else has meanwhile. Dropped, it leaves the offset.
    type OffsetLock<'v>
    where
        Self: 'v;

    /// The operations on objects.
    fn objects(&self) -> &Self::Objects;

    // Descriptors.

    /// What a descriptor leads to.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn description(&self, number: u32) -> AnswerOf<Option<Self::Description<'_>>, Self>;

    /// Whether a descriptor may lead to what serves a use. `false` is certain, and is told without a look at what a
    /// descriptor of other uses is changed with.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn may_serve(&self, number: u32, usage: Use) -> AnswerOf<bool, Self>;

    /// Makes a description of an object, which it keeps from now on, and gives it a number. On failure the object is
    /// released.
    /// Steps: make the description; take a number.
    ///
    /// # Errors
    /// EMFILE without a number, ENOMEM.
    fn install(
        &self,
        object: HandleOf<Self>,
        mode: AccessMode,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno>;

    /// Makes a pipe with a descriptor at each end, the one to read from first.
    /// Steps: make the pipe; install each end.
    ///
    /// # Errors
    /// EMFILE without two numbers, ENOMEM.
    fn install_pipe(&self, status: StatusFlags, number: (NumberChoice, OnExec)) -> Result<(u32, u32), Errno>;

    /// Makes a socket that has neither name nor peer, and gives it a number.
    /// Steps: make the socket; install it.
    ///
    /// # Errors
    /// EMFILE without a number, ENOMEM.
    fn install_socket(
        &self,
        order: SocketOrder,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno>;

    /// Makes two sockets, each the other's peer, and gives them numbers.
    /// Steps: make both; install each.
    ///
    /// # Errors
    /// EMFILE without two numbers, ENOMEM.
    fn install_socket_pair(
        &self,
        order: SocketOrder,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<(u32, u32), Errno>;

    /// Closes a descriptor; false if it is not open.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn uninstall(&self, number: u32) -> AnswerOf<bool, Self>;

    /// Another descriptor for what `number` leads to.
    /// Steps: count the description; take a number.
    ///
    /// # Errors
    /// EBADF if `number` is not open, EMFILE, ENOMEM.
    fn duplicate(&self, number: u32, choice: (NumberChoice, OnExec)) -> Result<u32, Errno>;

    /// Lets `target` lead to what `number` leads to, in one step with closing what it led to.
    /// Steps: count the description; replace the number; release what it led to.
    ///
    /// # Errors
    /// EBADF if `number` is not open, ENOMEM.
    fn duplicate_to(&self, number: u32, target: u32, on_exec: OnExec) -> Result<(), Errno>;

    /// Sets whether a descriptor survives `exec`; returns what was set before.
    ///
    /// # Errors
    /// EBADF if `number` is not open, ENOMEM.
    fn set_on_exec(&self, number: u32, on_exec: OnExec) -> Result<OnExec, Errno>;

    /// Whether a descriptor survives `exec`.
    ///
    /// # Errors
    /// EBADF if `number` is not open.
    fn on_exec(&self, number: u32) -> Result<OnExec, Errno>;

    // One description.

    /// The object.
    fn node<'v>(&'v self, description: Self::Description<'v>) -> NodeOf<'v, Self>;

    /// What it is open for.
    fn mode(&self, description: Self::Description<'_>) -> AccessMode;

    /// Its flags.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn status(&self, description: Self::Description<'_>) -> AnswerOf<StatusFlags, Self>;

    /// Sets its flags.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn set_status(&self, description: Self::Description<'_>, status: StatusFlags) -> AnswerOf<(), Self>;

    /// Its offset.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn offset(&self, description: Self::Description<'_>) -> AnswerOf<Offset, Self>;

    /// Whether the offset has stayed since it was looked at, and no call is about to move it.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn offset_stays(&self, description: Self::Description<'_>, offset: Offset) -> AnswerOf<bool, Self>;

    /// Whether the offset may be so many bytes or more; it was less at some moment of the call if not. Lets an implementation tell
    /// without a look at the offset, which others move.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn may_reach(&self, _: Self::Description<'_>, _bytes: u64) -> AnswerOf<bool, Self> {
        Ok(true)
    }

    /// Waits until no other call moves the offset, and keeps others from it.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn lock_offset<'v>(&'v self, description: Self::Description<'v>) -> AnswerOf<Self::OffsetLock<'v>, Self>;

    /// The offset in bytes that is locked.
    fn locked_offset(&self, lock: &Self::OffsetLock<'_>) -> u64;

    /// Says how far the offset may move before it is unlocked, and so before anybody can know of what moves it.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn will_reach(&self, _: &Self::OffsetLock<'_>, _most_bytes: u64) -> AnswerOf<(), Self> {
        Ok(())
    }

    /// Moves the offset and unlocks it.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn unlock_offset(&self, lock: Self::OffsetLock<'_>, bytes: u64) -> AnswerOf<(), Self>;

    // Data of one object.

    /// Whether a read at this offset finds the end.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn ends_at(&self, file: NodeOf<'_, Self>, offset: u64) -> AnswerOf<bool, Self>;

    /// Whether the file has fewer bytes than this, which is more than none.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn is_shorter_than(&self, file: NodeOf<'_, Self>, length: u64) -> AnswerOf<bool, Self>;

    /// Reads bytes; fewer than asked for only at the end. Atomic per page.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn read_range(&self, file: NodeOf<'_, Self>, offset: u64, bytes: &mut [u8]) -> AnswerOf<usize, Self>;

    /// Writes bytes, and marks the time of modification. Atomic per page.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn write_range(&self, file: NodeOf<'_, Self>, at: WriteAt, bytes: &[u8]) -> AnswerOf<Written, Self>;

    /// Makes the file this long, and marks the time of modification.
    ///
    /// # Errors
    /// `NoSpace`, and nothing has changed; or the implementation's fault.
    fn resize(&self, file: NodeOf<'_, Self>, size_bytes: u64) -> Outcome<(), Self::Objects>;

    /// The size in bytes.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn size(&self, file: NodeOf<'_, Self>) -> AnswerOf<u64, Self>;

    /// What lies at an offset of a file, and how far at least: by pages, of which zeros need not be written.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn extent(&self, file: NodeOf<'_, Self>, offset: u64) -> AnswerOf<Extent, Self>;

    /// Takes bytes out of a pipe; none if all writers have gone, EAGAIN if there may be some later.
    ///
    /// # Errors
    /// EAGAIN.
    fn read_pipe(&self, pipe: NodeOf<'_, Self>, bytes: &mut [u8]) -> Result<usize, Errno>;

    /// Copies bytes that wait in a pipe, without taking them.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn peek_pipe(&self, pipe: NodeOf<'_, Self>, bytes: &mut [u8]) -> AnswerOf<usize, Self>;

    /// Whether something waits in a pipe for its end to read from, or there is room for the other end; and whether the other
    /// end has gone, which is looked at first: what comes last is not missed.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn pipe_state(&self, pipe: NodeOf<'_, Self>, end: PipeEnd) -> AnswerOf<PipeState, Self>;

    /// Puts bytes into a pipe, and marks the time; EPIPE if all readers have gone, EAGAIN if there may be room later.
    ///
    /// # Errors
    /// EPIPE, EAGAIN, ENOMEM without a page.
    fn write_pipe(&self, pipe: NodeOf<'_, Self>, bytes: &[u8]) -> Result<usize, Errno>;

    /// Names a socket.
    ///
    /// # Errors
    /// EINVAL if it has a name, EADDRINUSE if another has this one, ENOMEM.
    fn bind_socket(&self, socket: NodeOf<'_, Self>, name: &SocketName) -> Result<(), Errno>;

    /// The name of a socket, or [`SocketName::NONE`].
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn socket_name(&self, socket: NodeOf<'_, Self>) -> AnswerOf<SocketName, Self>;

    /// Whether a message waits, and whether the peer has gone.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn socket_state(&self, socket: NodeOf<'_, Self>) -> AnswerOf<SocketState, Self>;

    /// Sends a message to the socket that has a name, or to the peer.
    ///
    /// # Errors
    /// ENOTCONN without a peer; ECONNREFUSED if nobody receives there, EPERM if who does hears another; EMSGSIZE, EAGAIN if
    /// there is no room, ENOMEM.
    fn send(&self, socket: NodeOf<'_, Self>, to: Option<&SocketName>, message: &[u8]) -> Result<(), Errno>;

    /// Takes a message: of an ordered socket that which was sent first, of another one any.
    ///
    /// # Errors
    /// EAGAIN if there is none.
    fn receive(&self, socket: NodeOf<'_, Self>, bytes: &mut [u8]) -> Result<Received, Errno>;

    /// The pipe's end that a description is.
    fn pipe_end(&self, description: Self::Description<'_>) -> PipeEnd {
        if self.mode(description).write { PipeEnd::Write } else { PipeEnd::Read }
    }

    // Compound operations for whoever is far away. By default they do nothing (`None`), and the call takes the steps.

    /// Reads a file at a description's offset and moves that.
    /// Steps: lock the offset; read; unlock it.
    ///
    /// # Errors
    /// As [`data::read`](crate::data::read).
    fn read_next(&self, _description: Self::Description<'_>, _bytes: &mut [u8]) -> Option<Result<usize, Errno>> {
        None
    }

    /// Writes a file at a description's offset, or at its end, and moves the offset.
    /// Steps: lock the offset; drop set-id bits; write; drop set-id bits that came meanwhile; unlock the offset.
    ///
    /// # Errors
    /// As [`data::write`](crate::data::write).
    fn write_next(&self, _description: Self::Description<'_>, _bytes: &[u8]) -> Option<Result<usize, Errno>> {
        None
    }

    /// Moves a description's offset.
    /// Steps: lock the offset; ask for the size if that is where it is counted from; unlock the offset.
    ///
    /// # Errors
    /// As [`data::seek`](crate::data::seek).
    fn seek(&self, _description: Self::Description<'_>, _offset: i64, _whence: Whence) -> Option<Result<u64, Errno>> {
        None
    }
}

/// Who makes calls of one process: how one begins, and what is done between two of which the first would wait.
pub trait Calls {
    /// A call.
    type Call<'c>: DataOperations
    where
        Self: 'c;

    /// Begins a call.
    fn begin(&self) -> Self::Call<'_>;

    /// Spends a little time, while no call of the caller is under way; `round` counts from 0.
    fn wait(&self, round: u32);
}
