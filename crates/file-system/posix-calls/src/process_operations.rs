//! The operations through which the calls on processes reach what a process has, and its children.

use crate::credentials::Credentials;
use crate::data_operations::{AnswerOf, DataOperations};
use crate::descriptors::OnExec;
use crate::errno::Errno;
use crate::process::{Ended, FileAction, ProcessNumber};

/// What a process knows of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// It is no child's, or that of a child that was waited for.
    NoChild,
    /// A child's that goes on.
    Running,
    /// A child's that has ended.
    Ended(Ended),
}

/// What one call of a process does to processes.
pub trait ProcessOperations: DataOperations {
    /// A process.
    type Process;
    /// A call that a process which is being made makes before it runs, by the same core.
    type CallOf<'v>: DataOperations
    where
        Self: 'v;

    // A process that is being made: nobody else knows it.

    /// Makes a process with the caller's mask and working directory, without descriptors, memory or a number; with these
    /// credentials, or the caller's.
    ///
    /// # Errors
    /// ENOMEM.
    fn make_process(&self, credentials: Option<&Credentials>) -> Result<Self::Process, Errno>;

    /// Begins a call of it.
    fn call_of<'v>(&'v self, child: &'v Self::Process) -> Self::CallOf<'v>;

    /// Lets its number `target` lead to what the caller's `number` leads to.
    /// Steps: count the description; replace the number; release what it led to.
    ///
    /// # Errors
    /// EBADF if the caller's `number` is not open, ENOMEM.
    fn pass_descriptor(&self, number: u32, child: &Self::Process, target: u32, on_exec: OnExec) -> Result<(), Errno>;

    /// Passes all descriptors of the caller that survive `exec`, but those whose numbers these actions change. What is told
    /// apart from them is not looked at. A descriptor that another thread opens or closes meanwhile is passed or not.
    ///
    /// # Errors
    /// ENOMEM.
    fn pass_surviving(&self, child: &Self::Process, actions: &[FileAction<'_>]) -> Result<(), Errno>;

    /// Makes it a child of the caller: gives it a number, and room for how it ends.
    ///
    /// # Errors
    /// EAGAIN without a number, ENOMEM.
    fn adopt(&self, child: &mut Self::Process) -> Result<(), Errno>;

    /// Gives up all that it has. It was not adopted.
    fn discard(&self, child: Self::Process);

    // Children.

    /// A child that has ended and that nobody has waited for, if there is one. Children are looked at one after the other.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn ended_child(&self) -> AnswerOf<Option<ProcessNumber>, Self>;

    /// Whether there is a child that nobody has waited for. As above.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn has_child(&self) -> AnswerOf<bool, Self>;

    /// What becomes of a child; one that has ended is none afterwards.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn take_ended(&self, child: ProcessNumber) -> AnswerOf<ChildState, Self>;
}
