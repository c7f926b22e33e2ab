//! The verbs through which the calls on data reach descriptors, open file descriptions, and what objects hold.
//!
//! As in [`crate::verbs`], each is on one object. The compound ones stand with their steps.

use crate::description::{AccessMode, Offset, StatusFlags, Use};
use crate::errno::Errno;
use crate::pipe::PipeEnd;
use crate::process::{NumberChoice, OnExec};
use crate::verbs::{Refusal, Verbs};

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
    /// A call would not wait.
    pub is_ready: bool,
    /// The last descriptor of the other end was closed.
    pub other_end_gone: bool,
}

/// An object, as verbs on objects know it.
pub type NodeOf<D> = <<D as DataVerbs>::Objects as Verbs>::Node;

/// What one call of a process does to descriptors and data. A value of the type lasts for one call.
pub trait DataVerbs {
    /// The verbs on objects in the same call.
    type Objects: Verbs;
    /// An open file description, valid during the call.
    type Description: Copy;

    /// The verbs on objects.
    fn objects(&self) -> &Self::Objects;

    // Descriptors.

    /// What a descriptor leads to.
    fn description(&self, number: u32) -> Option<Self::Description>;

    /// Whether a descriptor may lead to what serves a use. `false` is certain, and is told without a look at what a
    /// descriptor of other uses is changed with.
    fn may_serve(&self, number: u32, usage: Use) -> bool;

    /// Makes a description of an object, whose reference it takes over, and gives it a number. On failure the reference
    /// is given up.
    /// Steps: make the description; take a number.
    fn install(
        &self,
        node: NodeOf<Self>,
        mode: AccessMode,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno>;

    /// Makes a pipe with a descriptor at each end, the one to read from first.
    /// Steps: make the pipe; install each end.
    fn install_pipe(&self, status: StatusFlags, number: (NumberChoice, OnExec)) -> Result<(u32, u32), Errno>;

    /// Closes a descriptor; false if it is not open.
    fn uninstall(&self, number: u32) -> bool;

    /// Another descriptor for what `number` leads to.
    /// Steps: count the description; take a number.
    fn duplicate(&self, number: u32, choice: (NumberChoice, OnExec)) -> Result<u32, Errno>;

    /// Lets `target` lead to what `number` leads to, in one step with closing what it led to.
    /// Steps: count the description; replace the number; release what it led to.
    fn duplicate_to(&self, number: u32, target: u32, on_exec: OnExec) -> Result<(), Errno>;

    /// Sets whether a descriptor survives `exec`; returns what was set before.
    fn set_on_exec(&self, number: u32, on_exec: OnExec) -> Result<OnExec, Errno>;

    // One description.

    /// The object.
    fn node(&self, description: Self::Description) -> NodeOf<Self>;

    /// What it is open for.
    fn mode(&self, description: Self::Description) -> AccessMode;

    /// Its flags.
    fn status(&self, description: Self::Description) -> StatusFlags;

    /// Sets its flags.
    fn set_status(&self, description: Self::Description, status: StatusFlags);

    /// Its offset.
    fn offset(&self, description: Self::Description) -> Offset;

    /// Whether the offset has stayed since it was looked at, and no call is about to move it.
    fn offset_stays(&self, description: Self::Description, offset: Offset) -> bool;

    /// Lets `change` turn the offset into another while no other call does.
    fn move_offset<R>(&self, description: Self::Description, change: impl FnOnce(u64) -> (u64, R)) -> R;

    // Data of one object.

    /// Whether a read at this offset finds the end.
    fn ends_at(&self, file: NodeOf<Self>, offset: u64) -> bool;

    /// Whether the file has fewer bytes than this, which is more than none.
    fn is_shorter_than(&self, file: NodeOf<Self>, length: u64) -> bool;

    /// Reads bytes; fewer than asked for only at the end. Atomic per page.
    fn read_range(&self, file: NodeOf<Self>, offset: u64, bytes: &mut [u8]) -> usize;

    /// Writes bytes, and marks the time of modification. Atomic per page.
    fn write_range(&self, file: NodeOf<Self>, at: WriteAt, bytes: &[u8]) -> Written;

    /// Makes the file this long, and marks the time of modification.
    fn resize(&self, file: NodeOf<Self>, size_bytes: u64) -> Result<(), Refusal>;

    /// The size in bytes.
    fn size(&self, file: NodeOf<Self>) -> u64;

    /// Takes bytes out of a pipe; none if all writers have gone, EAGAIN if there may be some later.
    fn read_pipe(&self, pipe: NodeOf<Self>, bytes: &mut [u8]) -> Result<usize, Errno>;

    /// Copies bytes that wait in a pipe, without taking them.
    fn peek_pipe(&self, pipe: NodeOf<Self>, bytes: &mut [u8]) -> usize;

    /// Whether a call on an end of a pipe would not wait, and whether the other end has gone.
    fn pipe_state(&self, pipe: NodeOf<Self>, end: PipeEnd) -> PipeState;

    /// Puts bytes into a pipe, and marks the time; EPIPE if all readers have gone, EAGAIN if there may be room later.
    fn write_pipe(&self, pipe: NodeOf<Self>, bytes: &[u8]) -> Result<usize, Errno>;

    /// The pipe's end that a description is.
    fn pipe_end(&self, description: Self::Description) -> PipeEnd {
        if self.mode(description).write { PipeEnd::Write } else { PipeEnd::Read }
    }
}
