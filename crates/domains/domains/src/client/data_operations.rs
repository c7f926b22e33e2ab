//! The operations on descriptors and data.

use std::marker::PhantomData;

use messages::Transport;
use posix_calls::{
    AccessMode, AnswerOf, DESCRIPTOR_LIMIT, DataOperations, Errno, Extent, Failed, Kind, NumberChoice, Offset, OnExec,
    OperationError, Outcome, PipeEnd, PipeState, Received, SocketName, SocketOrder, SocketState, Sought, StatusFlags,
    Use, WriteAt, Written,
};

use super::call::{Call, Fault, Handle, Node};
use super::open_files::OpenFile;
use crate::wire::{Refusal, Reply, Request, StoredKind};

/// An open file description during a call.
#[derive(Clone, Copy, Debug)]
pub struct Description<'v> {
    pub(super) number: u64,
    file: OpenFile,
    call: PhantomData<&'v ()>,
}

/// The right to move a description's offset: no other call of its domain is under way.
#[derive(Debug)]
pub struct OffsetLock<'v> {
    number: u64,
    bytes: u64,
    call: PhantomData<&'v ()>,
}

impl<T: Transport> Call<'_, T> {
    /// A number that is free, unless there is none.
    fn free_number(&self, choice: NumberChoice) -> Result<u32, Errno> {
        let descriptors = self.process.descriptors.borrow();
        let (start, end) = match choice {
            NumberChoice::LowestFrom(lowest) => (lowest, DESCRIPTOR_LIMIT),
            NumberChoice::Any => (DESCRIPTOR_LIMIT, 2 * DESCRIPTOR_LIMIT),
        };
        (start..end).find(|number| !descriptors.contains_key(number)).ok_or(Errno::EMFILE)
    }

    /// Lets a number lead to a description.
    fn put(&self, number: u32, file: u64, on_exec: OnExec) {
        self.domain.open_files.borrow_mut().change(file, |file| file.descriptors += 1);
        let old = self.process.descriptors.borrow_mut().insert(number, (file, on_exec));
        if let Some((old, _)) = old {
            self.drop_descriptor(old);
        }
    }

    fn drop_descriptor(&self, file: u64) {
        let last = self.domain.open_files.borrow_mut().drop_descriptor(file);
        if let Some(target) = last {
            self.domain.let_go(target);
        }
    }

    fn leads_to(&self, number: u32) -> Result<(u64, OnExec), Errno> {
        self.process.descriptors.borrow().get(&number).copied().ok_or(Errno::EBADF)
    }

    fn open_file(&self, description: Description<'_>) -> OpenFile {
        self.domain.open_files.borrow().get(description.number).unwrap_or(description.file)
    }

    fn refused(&self, why: Refusal) -> Failed<Fault> {
        Failed(self.fault(why))
    }

    fn size_of(&self, file: Node<'_>) -> AnswerOf<u64, Self> {
        self.domain.size_of(file.target.number).map_err(|reply| self.failed(&reply))
    }
}

const NOT_ACROSS_DOMAINS: Errno = Errno::EOPNOTSUPP;

impl<T: Transport> DataOperations for Call<'_, T> {
    type Objects = Self;
    type Description<'v>
        = Description<'v>
    where
        Self: 'v;
    type OffsetLock<'v>
        = OffsetLock<'v>
    where
        Self: 'v;

    fn objects(&self) -> &Self {
        self
    }

    fn description(&self, number: u32) -> AnswerOf<Option<Description<'_>>, Self> {
        let Ok((number, _)) = self.leads_to(number) else { return Ok(None) };
        let file = self.domain.open_files.borrow().get(number);
        Ok(file.map(|file| Description { number, file, call: PhantomData }))
    }

    fn may_serve(&self, _: u32, _: Use) -> AnswerOf<bool, Self> {
        Ok(true)
    }

    fn install(
        &self,
        object: Handle,
        mode: AccessMode,
        status: StatusFlags,
        (choice, on_exec): (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        let number = match self.free_number(choice) {
            Ok(number) => number,
            Err(errno) => {
                self.domain.let_go(object.0);
                return Err(errno);
            }
        };
        let file = OpenFile { target: object.0, mode, status, offset: 0, moves: 0, descriptors: 0 };
        let file = self.domain.open_files.borrow_mut().add(file);
        self.put(number, file, on_exec);
        Ok(number)
    }

    fn install_pipe(&self, _: StatusFlags, _: (NumberChoice, OnExec)) -> Result<(u32, u32), Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn install_socket(&self, _: SocketOrder, _: StatusFlags, _: (NumberChoice, OnExec)) -> Result<u32, Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn install_socket_pair(
        &self,
        _: SocketOrder,
        _: StatusFlags,
        _: (NumberChoice, OnExec),
    ) -> Result<(u32, u32), Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn uninstall(&self, number: u32) -> AnswerOf<bool, Self> {
        let closed = self.process.descriptors.borrow_mut().remove(&number);
        if let Some((file, _)) = closed {
            self.drop_descriptor(file);
        }
        Ok(closed.is_some())
    }

    fn duplicate(&self, number: u32, (choice, on_exec): (NumberChoice, OnExec)) -> Result<u32, Errno> {
        let (file, _) = self.leads_to(number)?;
        let duplicate = self.free_number(choice)?;
        self.put(duplicate, file, on_exec);
        Ok(duplicate)
    }

    fn duplicate_to(&self, number: u32, target: u32, on_exec: OnExec) -> Result<(), Errno> {
        let (file, _) = self.leads_to(number)?;
        self.put(target, file, on_exec);
        Ok(())
    }

    fn set_on_exec(&self, number: u32, on_exec: OnExec) -> Result<OnExec, Errno> {
        let mut descriptors = self.process.descriptors.borrow_mut();
        let (_, old) = descriptors.get_mut(&number).ok_or(Errno::EBADF)?;
        Ok(std::mem::replace(old, on_exec))
    }

    fn on_exec(&self, number: u32) -> Result<OnExec, Errno> {
        self.leads_to(number).map(|(_, on_exec)| on_exec)
    }

    fn node<'v>(&'v self, description: Description<'v>) -> Node<'v> {
        self.lend(description.file.target)
    }

    fn mode(&self, description: Description<'_>) -> AccessMode {
        description.file.mode
    }

    fn status(&self, description: Description<'_>) -> AnswerOf<StatusFlags, Self> {
        Ok(self.open_file(description).status)
    }

    fn set_status(&self, description: Description<'_>, status: StatusFlags) -> AnswerOf<(), Self> {
        self.domain.open_files.borrow_mut().change(description.number, |file| file.status = status);
        Ok(())
    }

    fn offset(&self, description: Description<'_>) -> AnswerOf<Offset, Self> {
        let OpenFile { offset, moves, .. } = self.open_file(description);
        Ok(Offset { bytes: offset, moves })
    }

    fn offset_stays(&self, description: Description<'_>, offset: Offset) -> AnswerOf<bool, Self> {
        Ok(self.open_file(description).moves == offset.moves)
    }

    fn lock_offset<'v>(&'v self, description: Description<'v>) -> AnswerOf<OffsetLock<'v>, Self> {
        let bytes = self.open_file(description).offset;
        Ok(OffsetLock { number: description.number, bytes, call: PhantomData })
    }

    fn locked_offset(&self, lock: &OffsetLock<'_>) -> u64 {
        lock.bytes
    }

    fn unlock_offset(&self, lock: OffsetLock<'_>, bytes: u64) -> AnswerOf<(), Self> {
        self.domain.open_files.borrow_mut().change(lock.number, |file| {
            file.offset = bytes;
            file.moves += 1;
        });
        Ok(())
    }

    fn ends_at(&self, file: Node<'_>, offset: u64) -> AnswerOf<bool, Self> {
        Ok(self.size_of(file)? <= offset)
    }

    fn is_shorter_than(&self, file: Node<'_>, length: u64) -> AnswerOf<bool, Self> {
        Ok(self.size_of(file)? < length)
    }

    fn read_range(&self, file: Node<'_>, offset: u64, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        self.domain.read(file.target.number, offset, bytes).map_err(|why| self.refused(why))
    }

    fn write_range(&self, file: Node<'_>, at: WriteAt, bytes: &[u8]) -> AnswerOf<Written, Self> {
        let offset = match at {
            WriteAt::Offset(offset) => Some(offset),
            WriteAt::End => None,
        };
        self.domain.write(file.target.number, offset, bytes).map_err(|why| self.refused(why))
    }

    fn resize(&self, file: Node<'_>, size_bytes: u64) -> Outcome<(), Self> {
        let file = file.target.number;
        match self.domain.ask(file.home(), Request::Resize { file, size_bytes }) {
            Reply::Done {} => Ok(()),
            reply => Err(OperationError::Fault(self.failed(&reply).0)),
        }
    }

    fn size(&self, file: Node<'_>) -> AnswerOf<u64, Self> {
        self.size_of(file)
    }

    fn extent(&self, file: Node<'_>, offset: u64) -> AnswerOf<Extent, Self> {
        let file = file.target.number;
        match self.domain.ask(file.home(), Request::Extent { file, offset }) {
            Reply::Extent { kind: StoredKind::Data, end } => Ok(Extent { kind: Sought::Data, end }),
            Reply::Extent { kind: StoredKind::Hole, end } => Ok(Extent { kind: Sought::Hole, end }),
            reply => Err(self.failed(&reply)),
        }
    }

    fn read_pipe(&self, _: Node<'_>, _: &mut [u8]) -> Result<usize, Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn peek_pipe(&self, _: Node<'_>, _: &mut [u8]) -> AnswerOf<usize, Self> {
        Err(Failed(Fault::Unsupported))
    }

    fn pipe_state(&self, _: Node<'_>, _: PipeEnd) -> AnswerOf<PipeState, Self> {
        Err(Failed(Fault::Unsupported))
    }

    fn write_pipe(&self, _: Node<'_>, _: &[u8]) -> Result<usize, Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn bind_socket(&self, _: Node<'_>, _: &SocketName) -> Result<(), Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn socket_name(&self, _: Node<'_>) -> AnswerOf<SocketName, Self> {
        Err(Failed(Fault::Unsupported))
    }

    fn socket_state(&self, _: Node<'_>) -> AnswerOf<SocketState, Self> {
        Err(Failed(Fault::Unsupported))
    }

    fn send(&self, _: Node<'_>, _: Option<&SocketName>, _: &[u8]) -> Result<(), Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn receive(&self, _: Node<'_>, _: &mut [u8]) -> Result<Received, Errno> {
        Err(NOT_ACROSS_DOMAINS)
    }

    fn read_next(&self, description: Description<'_>, bytes: &mut [u8]) -> Option<Result<usize, Errno>> {
        let file = self.open_file(description);
        (file.target.kind == Kind::Regular).then(|| {
            let read = self.domain.read(file.target.number, file.offset, bytes);
            let read = read.map_err(|why| Errno::from(self.refused(why)))?;
            self.unlock_offset(
                OffsetLock { number: description.number, bytes: file.offset, call: PhantomData },
                file.offset + read as u64,
            )?;
            Ok(read)
        })
    }
}
