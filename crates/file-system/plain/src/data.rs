//! The operations on descriptors and data.

use std::marker::PhantomData;

use posix_calls::{
    AccessMode, AnswerOf, DESCRIPTOR_LIMIT, DataOperations, Errno, Extent, Kind, NumberChoice, Offset, OnExec, Outcome,
    Permissions, PipeEnd, PipeState, Received, SocketName, SocketOrder, SocketState, StatusFlags, Use, WriteAt,
    Written,
};

use crate::call::{Call, Node};
use crate::object::{Body, Number, OpenNode, Pipe, Socket};
use crate::process_state::OpenFile;
use crate::state::State;

/// An open file description during a call.
#[derive(Clone, Copy, Debug)]
pub struct Description<'v> {
    pub(crate) number: u64,
    pub(crate) node: Node<'v>,
    mode: AccessMode,
}

/// The right to move a description's offset.
#[derive(Debug)]
pub struct OffsetLock<'v> {
    number: u64,
    bytes: u64,
    call: PhantomData<&'v ()>,
}

impl State {
    fn open_file(&self, number: u64) -> &OpenFile {
        self.open_files.get(&number).expect("descriptions stay while descriptors lead to them")
    }

    fn open_file_mut(&mut self, number: u64) -> &mut OpenFile {
        self.open_files.get_mut(&number).expect("descriptions stay while descriptors lead to them")
    }

    pub(crate) fn pipe_mut(&mut self, number: Number) -> &mut Pipe {
        match &mut self.get_mut(number).body {
            Body::Pipe(pipe) => pipe,
            other => panic!("only pipes have ends, and this is {:?}", other.kind()),
        }
    }

    /// Descriptors of the end of a pipe, or of the socket, that a description is.
    fn descriptors(&mut self, number: u64) -> Option<&mut u32> {
        let OpenFile { object, writes, .. } = *self.open_file(number);
        let end = if writes { PipeEnd::Write } else { PipeEnd::Read };
        match &mut self.get_mut(object).body {
            Body::Pipe(pipe) => Some(&mut pipe.ends[end as usize]),
            Body::Socket(socket) => Some(&mut socket.descriptors),
            _ => None,
        }
    }

    /// One descriptor more leads to a description.
    pub(crate) fn count_descriptor(&mut self, number: u64) {
        self.open_file_mut(number).descriptors += 1;
        if let Some(count) = self.descriptors(number) {
            *count += 1;
        }
    }

    /// One descriptor fewer does.
    fn drop_descriptor(&mut self, number: u64) {
        if let Some(count) = self.descriptors(number) {
            *count -= 1;
        }
        let object = self.open_file(number).object;
        if matches!(&self.get(object).body, Body::Socket(socket) if socket.descriptors == 0) {
            self.close_socket(object);
        }
        let open_file = self.open_file_mut(number);
        open_file.descriptors -= 1;
        if open_file.descriptors == 0 {
            self.open_files.remove(&number);
            self.unlock_of_description(number);
            self.release(object);
        }
    }
}

impl Call<'_> {
    /// A number that is free, unless there is none.
    fn free_number(&self, choice: NumberChoice) -> Result<u32, Errno> {
        let descriptors = self.process.descriptors.borrow();
        let (start, end) = match choice {
            NumberChoice::LowestFrom(lowest) => (lowest, DESCRIPTOR_LIMIT),
            NumberChoice::Any => (DESCRIPTOR_LIMIT, 2 * DESCRIPTOR_LIMIT),
        };
        (start..end).find(|number| !descriptors.contains_key(number)).ok_or(Errno::EMFILE)
    }

    /// Makes a socket that its first description keeps.
    fn make_socket(&self, order: SocketOrder) -> Result<Number, Errno> {
        let permissions =
            Permissions { mode: 0o777, user: self.process.credentials.user, group: self.process.credentials.group };
        let object = self.file_system.object(Body::Socket(Socket::new(order)), permissions);
        let mut state = self.change()?;
        let socket = state.add(object).ok_or(Errno::ENOMEM)?;
        let object = state.get_mut(socket);
        (object.links, object.references) = (0, 1);
        Ok(socket)
    }

    /// Lets a number lead to a description.
    pub(crate) fn put(&self, state: &mut State, number: u32, open_file: u64, on_exec: OnExec) {
        state.count_descriptor(open_file);
        let old = self.process.descriptors.borrow_mut().insert(number, (open_file, on_exec));
        if let Some((old, _)) = old {
            self.close_one(state, old);
        }
    }

    /// A descriptor of the process does not lead to a description any more.
    fn close_one(&self, state: &mut State, open_file: u64) {
        let object = state.open_file(open_file).object;
        state.unlock_of_process(object, self.process.number);
        state.drop_descriptor(open_file);
    }

    pub(crate) fn leads_to(&self, number: u32) -> Result<(u64, OnExec), Errno> {
        self.process.descriptors.borrow().get(&number).copied().ok_or(Errno::EBADF)
    }
}

/// What a socket's descriptor is open for.
const BOTH: AccessMode = AccessMode { read: true, write: true };

impl DataOperations for Call<'_> {
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
        let state = self.ask()?;
        Ok(self.leads_to(number).ok().map(|(number, _)| {
            let OpenFile { object, reads, writes, .. } = *state.open_file(number);
            Description { number, node: self.lend(object), mode: AccessMode { read: reads, write: writes } }
        }))
    }

    fn may_serve(&self, _: u32, _: Use) -> AnswerOf<bool, Self> {
        Ok(true)
    }

    fn install(
        &self,
        object: OpenNode,
        mode: AccessMode,
        status: StatusFlags,
        (choice, on_exec): (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        let number = self.free_number(choice);
        let changed = self.change().map_err(Errno::from).and_then(|state| Ok((state, number?)));
        let (mut state, number) = match changed {
            Ok(changed) => changed,
            Err(errno) => {
                self.file_system.state.borrow_mut().release(object.0);
                return Err(errno);
            }
        };
        let (reads, writes, status) = (mode.read, mode.write, status.bits());
        let open_file = OpenFile { object: object.0, reads, writes, status, offset: 0, descriptors: 0 };
        let open_file = state.add_open_file(open_file);
        self.put(&mut state, number, open_file, on_exec);
        Ok(number)
    }

    fn install_pipe(&self, status: StatusFlags, number: (NumberChoice, OnExec)) -> Result<(u32, u32), Errno> {
        let permissions =
            Permissions { mode: 0o600, user: self.process.credentials.user, group: self.process.credentials.group };
        let object = self.file_system.object(Body::Pipe(Pipe::default()), permissions);
        let pipe = {
            let mut state = self.change()?;
            let pipe = state.add(object).ok_or(Errno::ENOMEM)?;
            let object = state.get_mut(pipe);
            // A reference for each description, and no name.
            (object.links, object.references) = (0, 2);
            pipe
        };
        let read = AccessMode { read: true, write: false };
        let write = AccessMode { read: false, write: true };
        let read_end = self.install(OpenNode(pipe), read, status, number).inspect_err(|_| {
            self.file_system.state.borrow_mut().release(pipe);
        })?;
        let write_end = self.install(OpenNode(pipe), write, status, number).inspect_err(|_| {
            if let Some((open_file, _)) = self.process.descriptors.borrow_mut().remove(&read_end) {
                self.file_system.state.borrow_mut().drop_descriptor(open_file);
            }
        })?;
        Ok((read_end, write_end))
    }

    fn install_socket(
        &self,
        order: SocketOrder,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        let socket = self.make_socket(order)?;
        self.install(OpenNode(socket), BOTH, status, number)
    }

    fn install_socket_pair(
        &self,
        order: SocketOrder,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<(u32, u32), Errno> {
        let one = self.make_socket(order)?;
        let other = self.make_socket(order).inspect_err(|_| self.file_system.state.borrow_mut().release(one))?;
        {
            let mut state = self.file_system.state.borrow_mut();
            for (socket, peer) in [(one, other), (other, one)] {
                state.socket_mut(socket).peer = Some(peer);
                state.get_mut(peer).references += 1;
            }
        }
        let first = self.install(OpenNode(one), BOTH, status, number).inspect_err(|_| {
            let mut state = self.file_system.state.borrow_mut();
            // Neither has a descriptor that could be closed.
            state.close_socket(other);
            state.release(other);
            state.release(other);
        })?;
        let second = self.install(OpenNode(other), BOTH, status, number).inspect_err(|_| {
            let mut state = self.file_system.state.borrow_mut();
            state.close_socket(other);
            if let Some((open_file, _)) = self.process.descriptors.borrow_mut().remove(&first) {
                state.drop_descriptor(open_file);
            }
        })?;
        Ok((first, second))
    }

    fn uninstall(&self, number: u32) -> AnswerOf<bool, Self> {
        let mut state = self.change()?;
        let closed = self.process.descriptors.borrow_mut().remove(&number);
        if let Some((open_file, _)) = closed {
            self.close_one(&mut state, open_file);
        }
        Ok(closed.is_some())
    }

    fn duplicate(&self, number: u32, (choice, on_exec): (NumberChoice, OnExec)) -> Result<u32, Errno> {
        let (open_file, _) = self.leads_to(number)?;
        let duplicate = self.free_number(choice)?;
        self.put(&mut *self.change()?, duplicate, open_file, on_exec);
        Ok(duplicate)
    }

    fn duplicate_to(&self, number: u32, target: u32, on_exec: OnExec) -> Result<(), Errno> {
        let (open_file, _) = self.leads_to(number)?;
        self.put(&mut *self.change()?, target, open_file, on_exec);
        Ok(())
    }

    fn set_on_exec(&self, number: u32, on_exec: OnExec) -> Result<OnExec, Errno> {
        let _state = self.change()?;
        let mut descriptors = self.process.descriptors.borrow_mut();
        let (_, old) = descriptors.get_mut(&number).ok_or(Errno::EBADF)?;
        Ok(std::mem::replace(old, on_exec))
    }

    fn on_exec(&self, number: u32) -> Result<OnExec, Errno> {
        let _state = self.ask()?;
        self.process.descriptors.borrow().get(&number).map(|(_, on_exec)| *on_exec).ok_or(Errno::EBADF)
    }

    fn node<'v>(&'v self, description: Description<'v>) -> Node<'v> {
        description.node
    }

    fn mode(&self, description: Description<'_>) -> AccessMode {
        description.mode
    }

    fn status(&self, description: Description<'_>) -> AnswerOf<StatusFlags, Self> {
        Ok(StatusFlags::from_bits_truncate(self.ask()?.open_file(description.number).status))
    }

    fn set_status(&self, description: Description<'_>, status: StatusFlags) -> AnswerOf<(), Self> {
        self.change()?.open_file_mut(description.number).status = status.bits();
        Ok(())
    }

    fn offset(&self, description: Description<'_>) -> AnswerOf<Offset, Self> {
        Ok(Offset { bytes: self.ask()?.open_file(description.number).offset, moves: 0 })
    }

    fn offset_stays(&self, _: Description<'_>, _: Offset) -> AnswerOf<bool, Self> {
        Ok(true)
    }

    fn lock_offset<'v>(&'v self, description: Description<'v>) -> AnswerOf<OffsetLock<'v>, Self> {
        let bytes = self.ask()?.open_file(description.number).offset;
        Ok(OffsetLock { number: description.number, bytes, call: PhantomData })
    }

    fn locked_offset(&self, lock: &OffsetLock<'_>) -> u64 {
        lock.bytes
    }

    fn unlock_offset(&self, lock: OffsetLock<'_>, bytes: u64) -> AnswerOf<(), Self> {
        self.change()?.open_file_mut(lock.number).offset = bytes;
        Ok(())
    }

    fn ends_at(&self, file: Node<'_>, offset: u64) -> AnswerOf<bool, Self> {
        Ok(self.change()?.file_mut(file.number).0.size_bytes <= offset)
    }

    fn is_shorter_than(&self, file: Node<'_>, length: u64) -> AnswerOf<bool, Self> {
        Ok(self.change()?.file_mut(file.number).0.size_bytes < length)
    }

    fn read_range(&self, file: Node<'_>, offset: u64, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        Ok(self.change()?.file_mut(file.number).0.read(offset, bytes))
    }

    fn write_range(&self, file: Node<'_>, at: WriteAt, bytes: &[u8]) -> AnswerOf<Written, Self> {
        let mut state = self.change()?;
        let (data, used, limit) = state.file_mut(file.number);
        let offset = match at {
            WriteAt::Offset(offset) => offset,
            WriteAt::End => data.size_bytes,
        };
        // No file reaches behind the largest offset.
        let room = posix_calls::data::MAX_FILE_BYTES.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let length = data.write(offset, &bytes[..room], || State::take_pages(used, limit));
        if length > 0 {
            state.mark_data(file.number, self.now_ns());
        }
        Ok(Written { offset, length })
    }

    fn resize(&self, file: Node<'_>, size_bytes: u64) -> Outcome<(), Self> {
        let mut state = self.change()?;
        let (data, used, _) = state.file_mut(file.number);
        *used -= data.resize(size_bytes) as u64;
        state.drop_copies(file.number, size_bytes);
        state.mark_data(file.number, self.now_ns());
        Ok(())
    }

    fn size(&self, file: Node<'_>) -> AnswerOf<u64, Self> {
        Ok(self.change()?.file_mut(file.number).0.size_bytes)
    }

    fn extent(&self, file: Node<'_>, offset: u64) -> AnswerOf<Extent, Self> {
        Ok(self.change()?.file_mut(file.number).0.extent(offset))
    }

    fn read_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        let mut state = self.change()?;
        let pipe = state.pipe_mut(pipe.number);
        match pipe.read(bytes) {
            0 if !bytes.is_empty() && pipe.ends[PipeEnd::Write as usize] > 0 => Err(Errno::EAGAIN),
            read => Ok(read),
        }
    }

    fn peek_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        Ok(self.change()?.pipe_mut(pipe.number).peek(bytes))
    }

    fn pipe_state(&self, pipe: Node<'_>, end: PipeEnd) -> AnswerOf<PipeState, Self> {
        let mut state = self.change()?;
        let pipe = state.pipe_mut(pipe.number);
        let other_end_gone = pipe.ends[end.other() as usize] == 0;
        let is_ready = match end {
            PipeEnd::Read => !pipe.is_empty(),
            PipeEnd::Write => !pipe.is_full(),
        };
        Ok(PipeState { is_ready, other_end_gone })
    }

    fn write_pipe(&self, pipe: Node<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        let mut state = self.change()?;
        let ring = state.pipe_mut(pipe.number);
        if bytes.is_empty() {
            return Ok(0);
        }
        if ring.ends[PipeEnd::Read as usize] == 0 {
            return Err(Errno::EPIPE);
        }
        let written = ring.write(bytes);
        if written == 0 {
            return Err(Errno::EAGAIN);
        }
        state.mark_data(pipe.number, self.now_ns());
        Ok(written)
    }

    fn bind_socket(&self, socket: Node<'_>, name: &SocketName) -> Result<(), Errno> {
        self.change()?.bind_socket(socket.number, name)
    }

    fn socket_name(&self, socket: Node<'_>) -> AnswerOf<SocketName, Self> {
        Ok(SocketName::new(&self.ask()?.socket(socket.number).name).unwrap_or(SocketName::NONE))
    }

    fn socket_state(&self, socket: Node<'_>) -> AnswerOf<SocketState, Self> {
        Ok(self.ask()?.socket_state(socket.number))
    }

    fn send(&self, socket: Node<'_>, to: Option<&SocketName>, message: &[u8]) -> Result<(), Errno> {
        self.change()?.send(socket.number, to, message)
    }

    fn receive(&self, socket: Node<'_>, bytes: &mut [u8]) -> Result<Received, Errno> {
        self.change()?.socket_mut(socket.number).receive(bytes).ok_or(Errno::EAGAIN)
    }

    fn read_next(&self, description: Description<'_>, bytes: &mut [u8]) -> Option<Result<usize, Errno>> {
        let is_file = description.node.kind == Kind::Regular;
        (is_file && self.file_system.takes_shortcuts.get()).then(|| {
            let mut state = self.change()?;
            let offset = state.open_file(description.number).offset;
            let (_, length) = posix_calls::data::check_range(offset as i64, bytes.len())?;
            let read = state.file_mut(description.node.number).0.read(offset, &mut bytes[..length]);
            state.open_file_mut(description.number).offset = offset + read as u64;
            Ok(read)
        })
    }
}
