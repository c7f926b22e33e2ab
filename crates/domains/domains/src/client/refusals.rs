//! What is not done across domains yet: memory of processes, children, transactions. Each is refused with EOPNOTSUPP.

use std::convert::Infallible;
use std::ops::Range;

use messages::Transport;
use posix_calls::{
    AccessError, Answer, AnswerOf, AttributeChanges, ChildState, Credentials, DataChanges, Decision, Errno, Failed,
    FaultOf, FileAction, FileChanges, Growth, MemoryOperations, Moment, NameChange, NameChanges, NewObject, OnExec,
    OperationError, Outcome, Permissions, Place, PreparedOf, ProcessNumber, ProcessOperations, Protection,
    ReservedPages, Source, Urgency,
};

use super::call::{Call, Fault, Handle, Key, Node};
use super::data_operations::Description;
use super::process::Process;

const NOT_ACROSS_DOMAINS: Errno = Errno::EOPNOTSUPP;
const REFUSED: OperationError<Fault> = OperationError::Fault(Fault::Unsupported);

impl<T: Transport> NameChanges for Call<'_, T> {
    type Room<'v>
        = ()
    where
        Self: 'v;
    type Prepared<'p, 'v>
        = Infallible
    where
        Self: 'v,
        'v: 'p;
    type AttributeRoom<'v>
        = ()
    where
        Self: 'v;
    type Looks<'v>
        = Self
    where
        Self: 'v;

    fn name_version(&self, directory: Node<'_>, key: &Key<'_>, _: bool) -> u64 {
        self.domain.look_up(directory.target.number, key.0).map_or(0, |(_, stamp)| stamp)
    }

    fn is_locked(&self, _: Node<'_>, _: &Key<'_>) -> bool {
        false
    }

    fn make(&self, _: Node<'_>, _: NewObject<'_>, _: Permissions) -> Outcome<Handle, Self> {
        Err(REFUSED)
    }

    fn set_times_of_made(&self, _: Node<'_>, _: [i64; 3]) -> Answer<(), Self> {
        Err(Failed(Fault::Unsupported))
    }

    fn prepare<'p, 'v, 'n: 'p>(
        &'v self,
        _: &'p [NameChange<'p, Node<'v>, Key<'n>>],
        _: Moment<'p, Node<'v>>,
        _: &'p mut [()],
    ) -> Result<Infallible, OperationError<Fault>>
    where
        'v: 'p,
    {
        Err(REFUSED)
    }

    fn prepare_attributes<'p, 'v>(
        &'v self,
        prepared: &mut Infallible,
        _: &[AttributeChanges<'_, Node<'v>>],
        _: &'p mut [()],
    ) -> Outcome<(), Self>
    where
        'v: 'p,
    {
        match *prepared {}
    }

    fn open(&self, prepared: &mut Infallible, _: Urgency) -> Self {
        match *prepared {}
    }

    fn decide(&self, prepared: &mut Infallible) -> Answer<bool, Self> {
        match *prepared {}
    }

    fn finish(&self, prepared: Infallible, _: Decision) -> Answer<(), Self> {
        match prepared {}
    }
}

impl<T: Transport> DataChanges for Call<'_, T> {
    type FileRoom<'v>
        = ()
    where
        Self: 'v;
    type PageRoom<'v>
        = ()
    where
        Self: 'v;
    type PipeLock<'v>
        = Infallible
    where
        Self: 'v;

    fn reserve_page(&self) -> AnswerOf<Option<u64>, Self> {
        Err(Failed(Fault::Unsupported))
    }

    fn give_page_back(&self, _: u64) -> AnswerOf<(), Self> {
        Err(Failed(Fault::Unsupported))
    }

    fn pipe_room(&self, _: Node<'_>, _: usize) -> AnswerOf<usize, Self> {
        Err(Failed(Fault::Unsupported))
    }

    fn pipe_place(&self, pipe: Node<'_>) -> u64 {
        pipe.target.number.inode().0
    }

    fn lock_pipe<'v>(&'v self, _: Node<'v>, _: usize) -> Outcome<Infallible, Self> {
        Err(REFUSED)
    }

    fn finish_pipe(&self, lock: Infallible, _: usize, _: &[u8]) -> AnswerOf<(), Self> {
        match lock {}
    }

    fn identity(&self, description: Description<'_>) -> u64 {
        description.number
    }

    fn prepare_data<'p, 'v>(
        &'v self,
        prepared: &mut PreparedOf<'p, 'v, Self>,
        _: &'p [FileChanges<'p, Node<'v>>],
        _: &ReservedPages<'_>,
        _: (&'p mut [()], &'p mut [()]),
    ) -> Outcome<(), Self>
    where
        'v: 'p,
    {
        match *prepared {}
    }
}

impl<T: Transport> MemoryOperations for Call<'_, T> {
    fn map(&self, _: Place, _: u64, _: Protection, _: Source<Node<'_>>) -> Outcome<u64, Self> {
        Err(REFUSED)
    }

    fn unmap(&self, _: Range<u64>) -> Outcome<(), Self> {
        Err(REFUSED)
    }

    fn protect(&self, _: Range<u64>, _: Protection) -> Result<(), Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn is_mapped(&self, _: Range<u64>) -> AnswerOf<bool, Self> {
        Ok(false)
    }

    fn is_free(&self, _: Range<u64>) -> AnswerOf<bool, Self> {
        Ok(true)
    }

    fn discard(&self, _: Range<u64>) -> Outcome<(), Self> {
        Err(REFUSED)
    }

    fn grow(&self, _: Range<u64>, _: u64) -> Result<Growth, Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn relocate(&self, _: Range<u64>, _: Option<u64>, _: u64) -> Result<u64, Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn load(&self, _: u64, _: &mut [u8]) -> Result<(), AccessError<FaultOf<Self>>> {
        Err(AccessError::Segment)
    }

    fn store(&self, _: u64, _: &[u8]) -> Result<(), AccessError<FaultOf<Self>>> {
        Err(AccessError::Segment)
    }
}

impl<T: Transport> ProcessOperations for Call<'_, T> {
    type Process = Process;
    type CallOf<'v>
        = Call<'v, T>
    where
        Self: 'v;

    fn make_process(&self, _: Option<&Credentials>) -> Result<Process, Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn call_of<'v>(&'v self, child: &'v Process) -> Call<'v, T> {
        self.domain.begin(child)
    }

    fn pass_descriptor(&self, _: u32, _: &Process, _: u32, _: OnExec) -> Result<(), Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn pass_surviving(&self, _: &Process, _: &[FileAction<'_>]) -> Result<(), Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn adopt(&self, _: &mut Process) -> Result<(), Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn discard(&self, child: Process) {
        child.exit(self.domain);
    }

    fn ended_child(&self) -> AnswerOf<Option<ProcessNumber>, Self> {
        Ok(None)
    }

    fn has_child(&self) -> AnswerOf<bool, Self> {
        Ok(false)
    }

    fn take_ended(&self, _: ProcessNumber) -> AnswerOf<ChildState, Self> {
        Ok(ChildState::NoChild)
    }
}
