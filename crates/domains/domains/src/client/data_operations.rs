//! The operations on descriptors and data.

use std::marker::PhantomData;

use messages::Transport;
use posix_calls::{
    AccessMode, AnswerOf, Credentials, DESCRIPTOR_LIMIT, DataOperations, Errno, Extent, Failed, Fields, Kind,
    NumberChoice, ObjectOperations, Offset, OnExec, OperationError, Outcome, Permissions, PipeEnd, PipeState, Received,
    SocketName, SocketOrder, SocketState, Sought, StatusFlags, Use, Whence, WriteAt, Written, data,
};

use super::call::{Call, Fault, Handle, Node};
use super::domain::Domain;
use super::open_files::{OpenFile, Place, end_of};
use super::pipes::PipeError;
use crate::identity::ObjectNumber;
use crate::server::{PAGE_BYTES, STAGED_BYTES};
use crate::wire::{Bytes, Caller, DescriptionState, Refusal, Reply, Request, StoredKind};

/// An open file description during a call.
#[derive(Clone, Copy, Debug)]
pub struct Description<'v> {
    pub(super) number: u64,
    file: OpenFile,
    call: PhantomData<&'v ()>,
}

/// The right to move a description's offset: no other call of its domain is under way, and none of others moves it.
pub struct OffsetLock<'v, T: Transport> {
    domain: &'v Domain<T>,
    number: u64,
    bytes: u64,
    /// The number by which its owner knows what is locked there, until it is unlocked.
    shared: Option<ObjectNumber>,
}

impl<T: Transport> Drop for OffsetLock<'_, T> {
    fn drop(&mut self) {
        if let Some(description) = self.shared {
            self.domain.post(description.home(), Request::Unlock { description, offset: None });
        }
    }
}

/// Where descriptors of what a process has made lead.
const READS: AccessMode = AccessMode { read: true, write: false };
const WRITES: AccessMode = AccessMode { read: false, write: true };

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
    pub(super) fn put(&self, number: u32, file: u64, on_exec: OnExec) {
        self.domain.open_files.borrow_mut().count_descriptor(file);
        let old = self.process.descriptors.borrow_mut().insert(number, (file, on_exec));
        if let Some((old, _)) = old {
            // Who replaces a descriptor hears of no error, as on Linux.
            let _ = self.let_others_know(old);
            self.drop_descriptor(old);
        }
    }

    /// Lets others know what was written where a description leads (POSIX `close`).
    fn let_others_know(&self, file: u64) -> AnswerOf<(), Self> {
        let file = self.domain.open_files.borrow().get(file).map(|file| file.target);
        match file.filter(|target| self.domain.has_copy(target.number)) {
            Some(target) => self.domain.release_written(target.number).map_err(|why| self.refused(why)),
            None => Ok(()),
        }
    }

    /// Lets others know what was written here (POSIX `fsync`): at level `close-to-open` who opens the file from now on reads it.
    ///
    /// # Errors
    /// EBADF if the descriptor is not open, EINVAL if it is a pipe's; ENOSPC if what was written found no space: it is lost.
    pub fn synchronize(&self, fd: u32) -> Result<(), Errno> {
        let (file, _) = self.leads_to(fd)?;
        let opened = self.domain.open_files.borrow().get(file).ok_or(Errno::EBADF)?;
        if opened.target.kind == Kind::Pipe {
            return Err(Errno::EINVAL);
        }
        Ok(self.let_others_know(file)?)
    }

    fn drop_descriptor(&self, file: u64) {
        let last = self.domain.open_files.borrow_mut().drop_descriptor(file);
        if let Some(file) = last {
            self.domain.let_go_of_file(file);
        }
    }

    pub(super) fn leads_to(&self, number: u32) -> Result<(u64, OnExec), Errno> {
        self.process.descriptors.borrow().get(&number).copied().ok_or(Errno::EBADF)
    }

    fn open_file(&self, description: Description<'_>) -> OpenFile {
        self.domain.open_files.borrow().get(description.number).unwrap_or(description.file)
    }

    fn refused(&self, why: Refusal) -> Failed<Fault> {
        Failed(self.fault(why))
    }

    fn of_pipe(&self, error: PipeError) -> Errno {
        match error {
            PipeError::Call(errno) => errno,
            PipeError::Refused(why) => self.refused(why).into(),
        }
    }

    /// Offset and flags of a description, which may be locked at its owner.
    fn state(&self, description: Description<'_>, locks: bool) -> AnswerOf<DescriptionState, Self> {
        let request = |description| vec![Request::DescriptionState { description, locks }];
        match self.domain.ask_shared(description.number, request) {
            Ok(None) => Ok(self.own_state(description)),
            Ok(Some(Reply::Description { state })) => Ok(state),
            Ok(Some(reply)) => Err(self.failed(&reply)),
            Err(why) => Err(self.refused(why)),
        }
    }

    /// Those of a description that is the domain's own.
    fn own_state(&self, description: Description<'_>) -> DescriptionState {
        match self.open_file(description).place {
            Place::Own(state) => state,
            Place::Shared(_) => DescriptionState::default(),
        }
    }

    fn move_own(&self, description: Description<'_>, offset: u64) {
        self.domain.open_files.borrow_mut().change(description.number, |state| state.move_to(offset));
    }

    fn is_shared(&self, description: Description<'_>) -> bool {
        matches!(self.open_file(description).place, Place::Shared(_))
    }

    /// Lets the owner know what was written here before it does something by a description that domains share.
    fn prepare_shared(&self, description: Description<'_>) -> Result<(), Refusal> {
        let file = description.file.target.number;
        if self.is_shared(description) && self.domain.has_copy(file) {
            self.domain.release_written(file)?;
        }
        Ok(())
    }

    fn read_regular(&self, description: Description<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        self.prepare_shared(description).map_err(|why| self.refused(why))?;
        let length = bytes.len() as u32;
        let request = |description| vec![Request::ReadShared { description, length }];
        match self.domain.ask_shared(description.number, request).map_err(|why| self.refused(why))? {
            None => {
                let state = self.own_state(description);
                let (start, length) = data::check_range(state.offset as i64, bytes.len())?;
                let read = self.domain.read(description.file.target.number, start, &mut bytes[..length]);
                let read = read.map_err(|why| self.refused(why))?;
                self.move_own(description, start + read as u64);
                Ok(read)
            }
            Some(Reply::Bytes { bytes: Bytes(read) }) => {
                let count = read.len().min(bytes.len());
                bytes[..count].copy_from_slice(&read[..count]);
                Ok(count)
            }
            Some(Reply::Failed { errno }) => Err(errno),
            Some(reply) => Err(self.failed(&reply).into()),
        }
    }

    fn write_regular(&self, description: Description<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        self.prepare_shared(description).map_err(|why| self.refused(why))?;
        let written = self.write_regular_once(description, bytes);
        let file = description.file.target.number;
        if self.is_shared(description) && self.domain.has_copy(file) {
            self.domain.acquire(file, None).map_err(|reply| self.failed(&reply))?;
        }
        written
    }

    fn write_regular_once(&self, description: Description<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        let credentials = self.credentials();
        let request = |description: ObjectNumber| {
            let caller = Caller(*credentials);
            let of_part = |bytes, more| Request::WriteShared { description, bytes, more, caller };
            self.domain.in_parts(description.home(), bytes, of_part)
        };
        match self.domain.ask_shared(description.number, request).map_err(|why| self.refused(why))? {
            None => {
                let state = self.own_state(description);
                let (start, length) = data::check_range(state.offset as i64, bytes.len())?;
                let offset = (!state.status().contains(StatusFlags::APPEND)).then_some(start);
                let file = description.file.target.number;
                let written = self.domain.write(file, offset, &bytes[..length], credentials);
                let written = data::check_written(written.map_err(|why| self.refused(why))?)?;
                self.move_own(description, written.offset + written.length as u64);
                Ok(written.length)
            }
            Some(Reply::Written { offset, length }) => {
                data::check_written(Written { offset, length: length as usize }).map(|written| written.length)
            }
            Some(Reply::Failed { errno }) => Err(errno),
            Some(reply) => Err(self.failed(&reply).into()),
        }
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
        = OffsetLock<'v, T>
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
        let Handle(target) = object;
        if let Some(end) = end_of(target, mode) {
            let opened = self.domain.ask(target.number.home(), Request::OpenEnd { pipe: target.number, end });
            if opened != (Reply::Done {}) {
                return Err(self.failed(&opened).into());
            }
        }
        let state = DescriptionState { offset: 0, moves: 0, status: status.bits() };
        let file = OpenFile { target, mode, place: Place::Own(state), descriptors: 0 };
        let file = self.domain.open_files.borrow_mut().add(file);
        self.put(number, file, on_exec);
        Ok(number)
    }

    fn install_pipe(&self, status: StatusFlags, number: (NumberChoice, OnExec)) -> Result<(u32, u32), Errno> {
        let Credentials { user, group, .. } = *self.credentials();
        let pipe = self.domain.with_server(|server| server.make_pipe(Permissions { mode: 0o600, user, group }));
        let read_end = self.install(Handle(pipe), READS, status, number).inspect_err(|_| self.domain.let_go(pipe))?;
        let write_end = self.install(Handle(pipe), WRITES, status, number).inspect_err(|_| {
            let _ = self.uninstall(read_end);
        })?;
        Ok((read_end, write_end))
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
        let Some((file, _)) = closed else { return Ok(false) };
        // It is closed whatever comes of what was written, as on Linux.
        let known = self.let_others_know(file);
        self.drop_descriptor(file);
        known.map(|()| true)
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
        Ok(self.state(description, false)?.status())
    }

    fn set_status(&self, description: Description<'_>, status: StatusFlags) -> AnswerOf<(), Self> {
        let status = status.bits();
        let request = |description| vec![Request::SetStatus { description, status }];
        match self.domain.ask_shared(description.number, request).map_err(|why| self.refused(why))? {
            None => self.domain.open_files.borrow_mut().change(description.number, |state| state.status = status),
            Some(Reply::Done {}) => {}
            Some(reply) => return Err(self.failed(&reply)),
        }
        Ok(())
    }

    fn offset(&self, description: Description<'_>) -> AnswerOf<Offset, Self> {
        let DescriptionState { offset: bytes, moves, .. } = self.state(description, false)?;
        Ok(Offset { bytes, moves })
    }

    fn offset_stays(&self, description: Description<'_>, offset: Offset) -> AnswerOf<bool, Self> {
        Ok(self.state(description, false)?.moves == offset.moves)
    }

    fn lock_offset<'v>(&'v self, description: Description<'v>) -> AnswerOf<OffsetLock<'v, T>, Self> {
        let bytes = self.state(description, true)?.offset;
        let shared = match self.open_file(description).place {
            Place::Own(_) => None,
            Place::Shared(description) => Some(description),
        };
        Ok(OffsetLock { domain: self.domain, number: description.number, bytes, shared })
    }

    fn locked_offset(&self, lock: &OffsetLock<'_, T>) -> u64 {
        lock.bytes
    }

    fn unlock_offset(&self, mut lock: OffsetLock<'_, T>, bytes: u64) -> AnswerOf<(), Self> {
        match lock.shared.take() {
            None => self.domain.open_files.borrow_mut().change(lock.number, |state| state.move_to(bytes)),
            Some(description) => {
                self.domain.post(description.home(), Request::Unlock { description, offset: Some(bytes) });
            }
        }
        Ok(())
    }

    fn ends_at(&self, file: Node<'_>, offset: u64) -> AnswerOf<bool, Self> {
        Ok(self.size_of(file)? <= offset)
    }

    fn is_shorter_than(&self, file: Node<'_>, length: u64) -> AnswerOf<bool, Self> {
        Ok(self.size(file)? < length)
    }

    fn read_range(&self, file: Node<'_>, offset: u64, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        self.domain.read(file.target.number, offset, bytes).map_err(|why| self.refused(why))
    }

    fn write_range(&self, file: Node<'_>, at: WriteAt, bytes: &[u8]) -> AnswerOf<Written, Self> {
        let offset = match at {
            WriteAt::Offset(offset) => Some(offset),
            WriteAt::End => None,
        };
        self.domain.write(file.target.number, offset, bytes, self.credentials()).map_err(|why| self.refused(why))
    }

    fn resize(&self, file: Node<'_>, size_bytes: u64) -> Outcome<(), Self> {
        let file = file.target.number;
        match self.ask_about(file, Request::Resize { file, size_bytes }) {
            Reply::Done {} => Ok(()),
            reply => Err(OperationError::Fault(self.failed(&reply).0)),
        }
    }

    /// As the owner has it.
    fn size(&self, file: Node<'_>) -> AnswerOf<u64, Self> {
        let object = file.target.number;
        match self.ask_about(object, Request::Attributes { object, fields: Fields::SIZE.bits() }) {
            Reply::Attributes { attributes } => Ok(attributes.size_bytes),
            reply => Err(self.failed(&reply)),
        }
    }

    fn extent(&self, file: Node<'_>, offset: u64) -> AnswerOf<Extent, Self> {
        let file = file.target.number;
        match self.ask_about(file, Request::Extent { file, offset }) {
            Reply::Extent { kind: StoredKind::Data, end } => Ok(Extent { kind: Sought::Data, end }),
            Reply::Extent { kind: StoredKind::Hole, end } => Ok(Extent { kind: Sought::Hole, end }),
            reply => Err(self.failed(&reply)),
        }
    }

    fn read_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        self.domain.read_pipe(pipe.target.number, bytes).map_err(|error| self.of_pipe(error))
    }

    fn peek_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        self.domain.peek_pipe(pipe.target.number, bytes).map_err(|error| match error {
            PipeError::Call(_) => Failed(Fault::Garbled),
            PipeError::Refused(why) => self.refused(why),
        })
    }

    fn pipe_state(&self, pipe: Node<'_>, end: PipeEnd) -> AnswerOf<PipeState, Self> {
        self.domain.pipe_state(pipe.target.number, end).map_err(|why| self.refused(why))
    }

    fn write_pipe(&self, pipe: Node<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        self.domain.write_pipe(pipe.target.number, bytes).map_err(|error| self.of_pipe(error))
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
        let is_one_message = !self.is_shared(description) || bytes.len() as u64 <= PAGE_BYTES;
        let is_regular = description.file.target.kind == Kind::Regular;
        (is_regular && is_one_message).then(|| self.read_regular(description, bytes))
    }

    fn write_next(&self, description: Description<'_>, bytes: &[u8]) -> Option<Result<usize, Errno>> {
        // One that is longer is written in steps, under the offset's lock.
        let is_one_step = !self.is_shared(description) || bytes.len() <= STAGED_BYTES;
        let is_regular = description.file.target.kind == Kind::Regular;
        (is_regular && is_one_step && !bytes.is_empty()).then(|| self.write_regular(description, bytes))
    }

    fn seek(&self, description: Description<'_>, offset: i64, whence: Whence) -> Option<Result<u64, Errno>> {
        if let Err(why) = self.prepare_shared(description) {
            return Some(Err(self.refused(why).into()));
        }
        let request = |description| vec![Request::SeekShared { description, offset, whence }];
        match self.domain.ask_shared(description.number, request) {
            Ok(None) => None,
            Ok(Some(Reply::Number { number })) => Some(Ok(number)),
            Ok(Some(Reply::Failed { errno })) => Some(Err(errno)),
            Ok(Some(reply)) => Some(Err(self.failed(&reply).into())),
            Err(why) => Some(Err(self.refused(why).into())),
        }
    }
}
