//! What is not done across domains yet: changes of many names and data under one decision, for transactions. Each is refused with
//! EOPNOTSUPP.

use std::convert::Infallible;

use messages::Transport;
use posix_calls::{
    Answer, AnswerOf, AttributeChanges, DataChanges, Decision, Failed, FileChanges, Moment, NameChange, NameChanges,
    NewObject, OperationError, Outcome, Permissions, PreparedOf, ReservedPages, Urgency,
};

use super::call::{Call, Fault, Handle, Key, Node};
use super::data_operations::Description;

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
    type Operation<'o> = Infallible;
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
