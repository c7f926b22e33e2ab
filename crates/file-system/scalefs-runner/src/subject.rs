//! What the calls under test are made on: an implementation of the border (crate `posix-calls`).

use posix_calls::{DataChanges, Ended, Errno, MemoryOperations, ProcessNumber, ProcessOperations};
use transact::Decided;

use crate::children::Children;

/// What a thread acts through.
pub trait Subject: 'static {
    /// Whether one thread alone may use it.
    const ONE_THREAD: bool = false;

    /// An object that a call has opened, and that has no descriptor.
    type Handle: Send + 'static;
    /// Why an operation cannot be done.
    type Fault: Into<Errno>;
    /// One call of a process.
    type Call<'a>: MemoryOperations<Objects = Self::Objects<'a>>
        + DataChanges<Objects = Self::Objects<'a>>
        + ProcessOperations<Process = Self::Process>;
    /// A process.
    type Process: Send + 'static;
    /// What such a call does to names and attributes.
    type Objects<'a>: Decided<Handle = Self::Handle, Fault = Self::Fault>;

    /// What the calling thread acts through.
    ///
    /// # Panics
    /// If it has not entered an instance: an error of this program.
    fn actor() -> &'static Self;

    /// From now on the calling thread acts through what the thread of this worker entered with. Nobody acts through that
    /// meanwhile.
    fn take_seat(_worker: usize) {}

    /// The next calls come from where this core is; from where their processes are if no core is given.
    fn acts_from(&self, _core: Option<usize>) {}

    /// Begins a call of a process.
    fn enter(&self, process: usize) -> Self::Call<'_>;

    /// Number of the core that it acts as.
    fn core(&self) -> usize;

    /// Descriptors of a process that are open.
    fn descriptors(&self, process: usize) -> Vec<u32>;

    /// Pages of a process that are mapped.
    fn mapped_pages(&self, process: usize) -> Vec<u64>;

    /// The children of process 0.
    fn children(&self) -> &Children<Self::Process>;

    /// Begins a call of a child.
    fn enter_child<'a>(&'a self, child: &'a Self::Process) -> Self::Call<'a>;

    /// The number of a child.
    fn number(child: &Self::Process) -> ProcessNumber;

    /// The number of a process.
    fn number_of(&self, process: usize) -> ProcessNumber;

    /// A child of a process, with all that it has.
    ///
    /// # Errors
    /// Those of `fork`.
    fn fork(&self, process: usize) -> Result<Self::Process, Errno>;

    /// A child executes a program.
    fn exec(&self, child: &Self::Process);

    /// A child ends.
    fn exit(&self, child: Self::Process, ended: Ended);

    /// What calls since the last look have asked for that is not offered, if they have.
    fn not_offered(&self) -> Option<&'static str> {
        None
    }

    /// What is done between windows.
    fn maintain(&self, idle_cores_too: bool);
}
