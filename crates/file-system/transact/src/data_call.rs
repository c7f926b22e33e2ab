//! A call inside a transaction, on descriptors and data: the layer over the log, by ranges of bytes.

use alloc::vec::Vec;
use core::cell::Cell;

use posix_calls::{
    AccessMode, AnswerOf, DataChanges, DataOperations, Errno, Extent, Failed, NumberChoice, ObjectOperations, Offset,
    OnExec, OperationError, Outcome, PAGE_BYTES, PipeEnd, PipeState, Received, SocketName, SocketOrder, SocketState,
    StatusFlags, Use, WriteAt, Written,
};
use sync::mutant::planted;

use crate::base::WithData;
use crate::call::{Call, Node, OpenNode};
use crate::decided::Decided;
use crate::descriptors::OwnDescriptor;
use crate::file::{OwnData, Part};
use crate::question::{About, AboutData, Described, Question, Reply};
use crate::transaction::{Fault, Within, from_base};

/// An open file description during a call.
#[derive(Clone, Copy, Debug)]
pub struct Description<'v> {
    identity: u64,
    /// A number of the base that leads to it.
    real: u32,
    node: Node<'v>,
    mode: AccessMode,
}

/// The right to move a description's offset.
#[derive(Debug)]
pub struct OffsetLock<'v> {
    description: Description<'v>,
    bytes: u64,
}

type FaultOf<D> = <<D as DataOperations>::Objects as ObjectOperations>::Fault;

impl<D: DataChanges<Objects: Decided>> Call<'_, WithData<D>> {
    fn data(&self) -> &D {
        &self.base.0
    }

    fn known_data(&self, node: Node<'_>, about: AboutData) -> Within<crate::question::Reply, D::Objects> {
        self.known(node.number, About::Data(about))
    }

    /// A description of the base, by a number that leads to it.
    fn described(&self, number: u32) -> Within<Option<Described>, D::Objects> {
        Ok(self.known_data(self.root(), AboutData::Descriptor(number))?.description())
    }

    /// What an own descriptor leads to, which nobody else changes.
    fn describe_own(&self, own: OwnDescriptor) -> Within<Option<Description<'_>>, D::Objects> {
        let Some(description) = self.data().description(own.real).map_err(from_base)? else { return Ok(None) };
        let node = self.data().node(description);
        let number = crate::question::number(self.data().objects(), node).map_err(from_base)?;
        let mode = self.data().mode(description);
        Ok(Some(Description { identity: own.identity, real: own.real, node: self.lend(number), mode }))
    }

    /// Gives a number of the base that was just taken to the description to which it leads, or a lower one that the
    /// transaction has made free.
    fn place(&self, mut real: u32, (choice, on_exec): (NumberChoice, OnExec)) -> Result<u32, Errno> {
        self.transaction.state().layer.descriptors.take(real);
        // The base does not know yet that the transaction uses this number for something else.
        while self.transaction.state().layer.descriptors.is_own(real) {
            real = self.data().duplicate(real, (choice, on_exec))?;
            self.transaction.state().layer.descriptors.take(real);
        }
        let description = self.data().description(real)?.ok_or(Errno::EBADF)?;
        let identity = self.data().identity(description);
        let mut number = real;
        if let NumberChoice::LowestFrom(lowest) = choice {
            let free = self.transaction.state().layer.descriptors.lowest_free(lowest);
            number = free.map_or(real, |free| free.min(real));
            for below in lowest..number {
                // That it is the lowest rests on these.
                let is_own = self.transaction.state().layer.descriptors.get(below).is_some();
                if !is_own && self.described(below)?.is_none() {
                    // Others have closed it since.
                    return Err(self.transaction.state().doom::<FaultOf<D>>().into());
                }
            }
        }
        let own = OwnDescriptor { identity, real, on_exec };
        self.transaction.state().layer.set_descriptor(number, Some(own));
        Ok(number)
    }

    /// The flags of each descriptor of an end of a pipe that the transaction has made: nobody else has one.
    fn own_ends(&self, pipe: Node<'_>, end: PipeEnd) -> Within<Vec<StatusFlags>, D::Objects> {
        let numbers: Vec<u32> = self.state()?.layer.descriptors.changed().map(|(number, _)| number).collect();
        let mut flags = Vec::new();
        for number in numbers {
            if let Some(description) = self.description(number)?
                && description.node == pipe
                && self.pipe_end(description) == end
            {
                flags.push(self.status(description)?);
            }
        }
        Ok(flags)
    }

    /// What a call on an end of an own pipe comes to that finds nothing to read, or no room: who would wait would do so for
    /// ever.
    fn stuck_alone(&self, pipe: Node<'_>, end: PipeEnd) -> Result<usize, Errno> {
        if self.own_ends(pipe, end.other())?.is_empty() {
            return if end == PipeEnd::Read { Ok(0) } else { Err(Errno::EPIPE) };
        }
        let waits = |flags: &StatusFlags| !flags.contains(StatusFlags::NONBLOCK);
        Err(if self.own_ends(pipe, end)?.iter().any(waits) { Errno::EDEADLK } else { Errno::EAGAIN })
    }

    fn in_base<R>(&self, node: Node<'_>, with: impl FnOnce(&D, <D::Objects as ObjectOperations>::Node<'_>) -> R) -> R {
        let state = self.transaction.state();
        with(self.data(), self.data().objects().held(&state.objects[&node.number].handle))
    }

    /// Takes space for the pages of a range of a file of the base; returns how many bytes of the range have it.
    fn reserve(&self, file: Node<'_>, offset: u64, length: usize) -> Within<usize, D::Objects> {
        let end = offset + length as u64;
        for page in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            let place = (file.number, page);
            if self.state()?.reserved_for.contains(&place) {
                continue;
            }
            let Some(reserved) = self.data().reserve_page().map_err(from_base)? else {
                return Ok((page * PAGE_BYTES).saturating_sub(offset) as usize);
            };
            let mut state = self.state()?;
            state.reserved_for.insert(place);
            state.reserved.push(Cell::new(Some(reserved)));
        }
        Ok(length)
    }
}

impl<D: DataChanges<Objects: Decided>> DataOperations for Call<'_, WithData<D>> {
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
        let own = self.state()?.layer.descriptors.get(number);
        if let Some(own) = own {
            return own.map_or(Ok(None), |own| self.describe_own(own));
        }
        Ok(self.described(number)?.map(|Described { identity, node, mode }| Description {
            identity,
            real: number,
            node: self.lend(node),
            mode,
        }))
    }

    fn may_serve(&self, number: u32, usage: Use) -> AnswerOf<bool, Self> {
        let is_own = self.state()?.layer.descriptors.get(number).is_some();
        // That it may rests on what it leads to, which is asked for next.
        if is_own || self.data().may_serve(number, usage).map_err(from_base)? {
            return Ok(true);
        }
        Ok(self.known_data(self.root(), AboutData::MayServe(number, usage))?.truth())
    }

    fn install(
        &self,
        object: OpenNode,
        mode: AccessMode,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        let node = self.held(&object);
        let handle = self.in_base(node, |data, node| data.objects().retain(node))?;
        let real = self.data().install(handle, mode, status, number)?;
        self.place(real, number)
    }

    fn install_pipe(&self, status: StatusFlags, number: (NumberChoice, OnExec)) -> Result<(u32, u32), Errno> {
        let (read, write) = self.data().install_pipe(status, number)?;
        for end in [read, write] {
            self.transaction.state().layer.descriptors.take(end);
        }
        let description = self.data().description(read)?.ok_or(Errno::EBADF)?;
        self.state()?.meet_made(self.data().objects(), self.data().node(description))?;
        Ok((self.place(read, number)?, self.place(write, number)?))
    }

    fn install_socket(&self, _: SocketOrder, _: StatusFlags, _: (NumberChoice, OnExec)) -> Result<u32, Errno> {
        Err(Fault::<FaultOf<D>>::NotTransactional.into())
    }

    fn install_socket_pair(
        &self,
        _: SocketOrder,
        _: StatusFlags,
        _: (NumberChoice, OnExec),
    ) -> Result<(u32, u32), Errno> {
        Err(Fault::<FaultOf<D>>::NotTransactional.into())
    }

    fn uninstall(&self, number: u32) -> AnswerOf<bool, Self> {
        let is_open = self.description(number)?.is_some();
        if is_open {
            self.state()?.layer.set_descriptor(number, None);
        }
        Ok(is_open)
    }

    fn duplicate(&self, number: u32, choice: (NumberChoice, OnExec)) -> Result<u32, Errno> {
        let description = self.description(number)?.ok_or(Errno::EBADF)?;
        self.place(self.data().duplicate(description.real, choice)?, choice)
    }

    fn duplicate_to(&self, number: u32, target: u32, on_exec: OnExec) -> Result<(), Errno> {
        let description = self.description(number)?.ok_or(Errno::EBADF)?;
        // Whether it was open before is nobody's matter. A number from the target on, so that at the commit it is free to go there;
        // or any, and a spare one for that.
        let duplicate =
            |lowest, on_exec| self.data().duplicate(description.real, (NumberChoice::LowestFrom(lowest), on_exec));
        let real = match duplicate(target, on_exec) {
            Err(Errno::EMFILE) => {
                if self.state()?.layer.descriptors.spare().is_none() {
                    let spare = duplicate(0, OnExec::Close)?;
                    self.transaction.state().layer.descriptors.keep_spare(spare);
                }
                duplicate(0, on_exec)?
            }
            outcome => outcome?,
        };
        let mut state = self.transaction.state();
        state.layer.descriptors.take(real);
        let own = OwnDescriptor { identity: description.identity, real, on_exec };
        state.layer.set_descriptor(target, Some(own));
        Ok(())
    }

    fn set_on_exec(&self, number: u32, on_exec: OnExec) -> Result<OnExec, Errno> {
        let own = self.state()?.layer.descriptors.get(number);
        match own {
            Some(Some(own)) => {
                let old = self.data().set_on_exec(own.real, on_exec)?;
                self.state()?.layer.set_descriptor(number, Some(OwnDescriptor { on_exec, ..own }));
                Ok(old)
            }
            Some(None) => Err(Errno::EBADF),
            None => Err(Fault::<FaultOf<D>>::NotTransactional.into()),
        }
    }

    fn on_exec(&self, number: u32) -> Result<OnExec, Errno> {
        match self.state()?.layer.descriptors.get(number) {
            Some(Some(own)) => Ok(own.on_exec),
            Some(None) => Err(Errno::EBADF),
            None => Err(Fault::<FaultOf<D>>::NotTransactional.into()),
        }
    }

    fn node<'v>(&'v self, description: Description<'v>) -> Node<'v> {
        description.node
    }

    fn mode(&self, description: Description<'_>) -> AccessMode {
        description.mode
    }

    fn status(&self, description: Description<'_>) -> AnswerOf<StatusFlags, Self> {
        let own = self.state()?.layer.descriptors.status(description.identity);
        match own {
            Some(status) => Ok(status),
            None => {
                let status = self.known_data(self.root(), AboutData::Status(description.real))?.status();
                status.ok_or_else(|| Failed(self.transaction.state().doom()))
            }
        }
    }

    fn set_status(&self, description: Description<'_>, status: StatusFlags) -> AnswerOf<(), Self> {
        self.state()?.layer.set_status((description.identity, description.real), status);
        Ok(())
    }

    fn offset(&self, description: Description<'_>) -> AnswerOf<Offset, Self> {
        let own = self.state()?.layer.descriptors.offset(description.identity);
        let bytes = match own {
            Some(bytes) => bytes,
            None => {
                let offset = self.known_data(self.root(), AboutData::Offset(description.real))?.offset();
                offset.ok_or_else(|| Failed(self.transaction.state().doom()))?
            }
        };
        Ok(Offset { bytes, moves: 0 })
    }

    fn offset_stays(&self, _: Description<'_>, _: Offset) -> AnswerOf<bool, Self> {
        self.state()?.recheck(&self.base).map(|()| true)
    }

    fn may_reach(&self, description: Description<'_>, bytes: u64) -> AnswerOf<bool, Self> {
        let state = self.state()?;
        let about = About::Data(AboutData::Offset(description.real));
        let told = state.told(&Question { subject: state.root, about });
        let known = state.layer.descriptors.offset(description.identity).or_else(|| told.and_then(Reply::offset));
        drop(state);
        match known {
            Some(offset) => Ok(offset >= bytes),
            None if planted("transact: an offset that is not reached is kept as what it is") => Ok(true),
            None => Ok(self.known_data(self.root(), AboutData::Reaches(description.real, bytes))?.truth()),
        }
    }

    fn lock_offset<'v>(&'v self, description: Description<'v>) -> AnswerOf<OffsetLock<'v>, Self> {
        let bytes = self.offset(description)?.bytes;
        Ok(OffsetLock { description, bytes })
    }

    fn locked_offset(&self, lock: &OffsetLock<'_>) -> u64 {
        lock.bytes
    }

    fn unlock_offset(&self, lock: OffsetLock<'_>, bytes: u64) -> AnswerOf<(), Self> {
        let Description { identity, real, .. } = lock.description;
        if bytes != lock.bytes {
            self.state()?.layer.set_offset((identity, real), bytes);
        }
        Ok(())
    }

    fn ends_at(&self, file: Node<'_>, offset: u64) -> AnswerOf<bool, Self> {
        let own = self.own_object(file, |own| (own.data.exact_size(), own.data.least_size())).unwrap_or_default();
        match own {
            (Some(size), _) => Ok(size <= offset),
            (None, least) if least > offset => Ok(false),
            (None, least) if self.is_made(file) => Ok(least <= offset),
            _ => Ok(self.known_data(file, AboutData::EndsAt(offset))?.truth()),
        }
    }

    fn is_shorter_than(&self, file: Node<'_>, length: u64) -> AnswerOf<bool, Self> {
        let own = self.own_object(file, |own| (own.data.exact_size(), own.data.least_size())).unwrap_or_default();
        match own {
            (Some(size), _) => Ok(size < length),
            (None, least) if least >= length => Ok(false),
            (None, least) if self.is_made(file) => Ok(least < length),
            _ => Ok(self.known_data(file, AboutData::IsShorterThan(length))?.truth()),
        }
    }

    fn read_range(&self, file: Node<'_>, offset: u64, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        let is_made = self.is_made(file);
        let own = self.own_object(file, |own| (own.data.exact_size(), own.data.least_size())).unwrap_or_default();
        let exact = own.0.or_else(|| is_made.then_some(own.1));
        let length = exact.map_or(bytes.len() as u64, |size| size.saturating_sub(offset).min(bytes.len() as u64));
        let bytes = &mut bytes[..length as usize];
        let (mut done, mut of_base) = (0, Vec::new());
        let mut lay = |part: Part<'_>| match part {
            Part::Own(run) => {
                bytes[done..done + run.len()].copy_from_slice(run);
                done += run.len();
            }
            Part::Zero(count) => {
                bytes[done..done + count as usize].fill(0);
                done += count as usize;
            }
            Part::Base(range) => {
                let count = (range.end - range.start) as usize;
                of_base.push((done, range));
                done += count;
            }
        };
        let range = offset..offset + length;
        if self.own_object(file, |own| own.data.parts(range.clone()).into_iter().for_each(&mut lay)).is_none() {
            OwnData::default().parts(range).into_iter().for_each(lay);
        }
        // The base ends before this.
        let mut ended = None;
        for (start, range) in of_base {
            let wanted = (range.end - range.start) as usize;
            let seen = match is_made {
                true => [].into(),
                false => self.known_data(file, AboutData::Bytes(range.start, wanted))?.bytes(),
            };
            bytes[start..start + seen.len()].copy_from_slice(&seen);
            bytes[start + seen.len()..start + wanted].fill(0);
            ended = if seen.len() < wanted { Some(range.start + seen.len() as u64) } else { None };
        }
        // Behind the end of the base there is what the transaction has written, and holes before it.
        let end = ended.filter(|_| exact.is_none()).map_or(u64::MAX, |end| end.max(own.1));
        Ok(done.min(end.saturating_sub(offset) as usize))
    }

    fn write_range(&self, file: Node<'_>, at: WriteAt, bytes: &[u8]) -> AnswerOf<Written, Self> {
        let offset = match at {
            WriteAt::Offset(offset) => offset,
            WriteAt::End => self.size_of(file)?,
        };
        let room = posix_calls::data::MAX_FILE_BYTES.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let mut bytes = &bytes[..room];
        if self.is_made(file) {
            // Nobody else sees it, and without space the call says so.
            let written = self.in_base(file, |data, node| data.write_range(node, WriteAt::Offset(offset), bytes));
            bytes = &bytes[..written.map_err(from_base)?.length];
        } else {
            bytes = &bytes[..self.reserve(file, offset, bytes.len())?];
        }
        if !bytes.is_empty() {
            let mut state = self.state()?;
            state.layer.write(file.number, offset, bytes);
        }
        Ok(Written { offset, length: bytes.len() })
    }

    fn resize(&self, file: Node<'_>, size_bytes: u64) -> Outcome<(), Self> {
        if self.is_made(file) {
            self.in_base(file, |data, node| data.resize(node, size_bytes)).map_err(|_| OperationError::NoSpace)?;
        } else if !size_bytes.is_multiple_of(PAGE_BYTES) && self.reserve(file, size_bytes, 1)? == 0 {
            // For what stays of the page in which the file will end.
            return Err(OperationError::NoSpace);
        }
        self.state()?.layer.resize(file.number, size_bytes);
        Ok(())
    }

    fn size(&self, file: Node<'_>) -> AnswerOf<u64, Self> {
        self.size_of(file)
    }

    fn extent(&self, _: Node<'_>, _: u64) -> AnswerOf<Extent, Self> {
        Err(Failed(Fault::NotTransactional))
    }

    fn read_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        if !self.is_made(pipe) {
            return self.read_base_pipe(pipe, bytes);
        }
        match self.in_base(pipe, |data, node| data.read_pipe(node, bytes)) {
            Err(Errno::EAGAIN) => self.stuck_alone(pipe, PipeEnd::Read),
            outcome => outcome,
        }
    }

    fn peek_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> AnswerOf<usize, Self> {
        if !self.is_made(pipe) {
            return self.peek_base_pipe(pipe, bytes);
        }
        self.in_base(pipe, |data, node| data.peek_pipe(node, bytes)).map_err(from_base)
    }

    fn pipe_state(&self, pipe: Node<'_>, end: PipeEnd) -> AnswerOf<PipeState, Self> {
        if !self.is_made(pipe) {
            return self.base_pipe_state(pipe, end);
        }
        // The base does not know what the transaction has closed.
        let other_end_gone = self.own_ends(pipe, end.other())?.is_empty();
        let state = self.in_base(pipe, |data, node| data.pipe_state(node, end)).map_err(from_base)?;
        Ok(PipeState { is_ready: state.is_ready, other_end_gone })
    }

    fn write_pipe(&self, pipe: Node<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        if !self.is_made(pipe) {
            return self.write_base_pipe(pipe, bytes);
        }
        if !bytes.is_empty() && self.own_ends(pipe, PipeEnd::Read)?.is_empty() {
            return Err(Errno::EPIPE);
        }
        match self.in_base(pipe, |data, node| data.write_pipe(node, bytes)) {
            Err(Errno::EAGAIN) => self.stuck_alone(pipe, PipeEnd::Write),
            outcome => outcome,
        }
    }

    // What others have received cannot be taken back: sockets are outside of transactions.

    fn bind_socket(&self, _: Node<'_>, _: &SocketName) -> Result<(), Errno> {
        Err(Fault::<FaultOf<D>>::NotTransactional.into())
    }

    fn socket_name(&self, _: Node<'_>) -> AnswerOf<SocketName, Self> {
        Err(Failed(Fault::NotTransactional))
    }

    fn socket_state(&self, _: Node<'_>) -> AnswerOf<SocketState, Self> {
        Err(Failed(Fault::NotTransactional))
    }

    fn send(&self, _: Node<'_>, _: Option<&SocketName>, _: &[u8]) -> Result<(), Errno> {
        Err(Fault::<FaultOf<D>>::NotTransactional.into())
    }

    fn receive(&self, _: Node<'_>, _: &mut [u8]) -> Result<Received, Errno> {
        Err(Fault::<FaultOf<D>>::NotTransactional.into())
    }
}
