//! The verbs on descriptors and data in shared memory.
//!
//! **Death of a process** in a verb: as in `direct_names`, the file, pipe or description that is locked was noted first.
//! Descriptors of a process that died are closed by whoever takes its place ([`Process::exit`]).
#![allow(unsafe_code)]

use core::ops::Deref;

use percpu::{Core, OutOfMemory};

use crate::data_verbs::{DataVerbs, PipeState, WriteAt, Written};
use crate::description::{AccessMode, DescriptionRef, Offset, StatusFlags, Use};
use crate::direct::{Direct, Node};
use crate::errno::Errno;
use crate::file::Access;
use crate::host::Host;
use crate::instance::{ScaleFs, Stamp};
use crate::pipe::PipeEnd;
use crate::process::{DESCRIPTOR_LIMIT, NumberChoice, OnExec, Process};
use crate::verbs::{Refusal, Verbs};

/// One call of one core on behalf of one process, with its descriptors.
pub struct InProcess<'c, H> {
    direct: Direct<'c, H>,
    process: &'c Process,
}

impl<'c, H> Deref for InProcess<'c, H> {
    type Target = Direct<'c, H>;

    #[inline]
    fn deref(&self) -> &Direct<'c, H> {
        &self.direct
    }
}

impl ScaleFs {
    /// Begins a call of this core on behalf of a process.
    #[inline]
    pub fn enter<'c, H: Host>(&'c self, core: &'c Core<'_>, process: &'c Process, host: &'c H) -> InProcess<'c, H> {
        InProcess { direct: self.begin(core, process.context(), host), process }
    }
}

impl<'c, H: Host> InProcess<'c, H> {
    #[inline]
    pub(crate) fn access(&self) -> Access<'_, H> {
        Access { fs: self.fs, guard: &self.guard, wait: self.host }
    }

    /// The process.
    #[inline]
    pub(crate) fn process(&self) -> &'c Process {
        self.process
    }

    /// Puts a description into the table, or gives all up.
    fn install_description(&self, description: DescriptionRef, number: (NumberChoice, OnExec)) -> Result<u32, Errno> {
        let hint = self.fs.number_hint(self.core());
        let node = description.get().opened.node;
        let end = description.pipe_end();
        if let Some(end) = end {
            node.pipe().open_end(self.fs, self.core(), end);
        }
        self.process.install(&self.guard, description, number, hint, self.host).inspect_err(|_| {
            if let Some(end) = end {
                node.pipe().close_end(self.fs, self.core(), end, self.host);
            }
            self.drop_reference(node);
            // SAFETY: no descriptor leads to the description.
            unsafe { description.free(self.core()) };
        })
    }

    fn make_description(&self, node: Node, mode: AccessMode, status: StatusFlags) -> Result<DescriptionRef, Errno> {
        DescriptionRef::make(self.core(), node, mode, status).map_err(|OutOfMemory| {
            self.drop_reference(node);
            Errno::ENOMEM
        })
    }
}

impl<'c, H: Host> DataVerbs for InProcess<'c, H> {
    type Objects = Direct<'c, H>;
    type Description = DescriptionRef;

    #[inline]
    fn objects(&self) -> &Direct<'c, H> {
        &self.direct
    }

    #[inline]
    fn description(&self, number: u32) -> Option<DescriptionRef> {
        self.process.descriptor(&self.guard, number).map(|descriptor| descriptor.description)
    }

    #[inline]
    fn may_serve(&self, number: u32, usage: Use) -> bool {
        self.process.may_serve(&self.guard, number, usage, self.host)
    }

    fn install(
        &self,
        node: Node,
        mode: AccessMode,
        status: StatusFlags,
        number: (NumberChoice, OnExec),
    ) -> Result<u32, Errno> {
        self.install_description(self.make_description(node, mode, status)?, number)
    }

    fn install_pipe(&self, status: StatusFlags, number: (NumberChoice, OnExec)) -> Result<(u32, u32), Errno> {
        let made = self.fs.make_pipe(self.core(), self.context, self.objects().now_ns());
        let pipe = made.map_err(|OutOfMemory| Errno::ENOMEM)?;
        // The pipe has one reference; each description wants one.
        self.take_reference(pipe);
        let read = AccessMode { read: true, write: false };
        let write = AccessMode { read: false, write: true };
        let read_number = self.install(pipe, read, status, number).inspect_err(|_| self.drop_reference(pipe))?;
        let write_number = self.install(pipe, write, status, number).inspect_err(|_| {
            self.uninstall(read_number);
        })?;
        Ok((read_number, write_number))
    }

    fn uninstall(&self, number: u32) -> bool {
        let Some(closed) = self.process.remove(&self.guard, number.into(), self.host) else {
            return false;
        };
        closed.release(self.fs, self.core(), self.host);
        if number / DESCRIPTOR_LIMIT == self.core().index().get() as u32 + 1 {
            self.fs.number_hint(self.core()).set(number % DESCRIPTOR_LIMIT);
        }
        true
    }

    fn duplicate(&self, number: u32, choice: (NumberChoice, OnExec)) -> Result<u32, Errno> {
        let hint = self.fs.number_hint(self.core());
        self.process.duplicate(self.fs, &self.guard, number, choice, hint, self.host)
    }

    fn duplicate_to(&self, number: u32, target: u32, on_exec: OnExec) -> Result<(), Errno> {
        self.process.duplicate_to(self.fs, &self.guard, (number, target), on_exec, self.host)
    }

    fn set_on_exec(&self, number: u32, on_exec: OnExec) -> Result<OnExec, Errno> {
        self.process.set_on_exec(&self.guard, number, on_exec, self.host)
    }

    #[inline]
    fn node(&self, description: DescriptionRef) -> Node {
        description.get().opened.node
    }

    #[inline]
    fn mode(&self, description: DescriptionRef) -> AccessMode {
        description.get().opened.mode
    }

    fn status(&self, description: DescriptionRef) -> StatusFlags {
        description.get().status()
    }

    fn set_status(&self, description: DescriptionRef, status: StatusFlags) {
        description.get().set_status(status);
    }

    #[inline]
    fn offset(&self, description: DescriptionRef) -> Offset {
        description.get().offset()
    }

    #[inline]
    fn offset_stays(&self, description: DescriptionRef, offset: Offset) -> bool {
        description.get().stays(offset)
    }

    fn move_offset<R>(&self, description: DescriptionRef, change: impl FnOnce(u64) -> (u64, R)) -> R {
        self.fs.moving_offset(self.core(), description.address());
        let result = description.get().move_offset(self.core(), self.host, change);
        self.fs.moving_offset(self.core(), 0);
        result
    }

    fn ends_at(&self, file: Node, offset: u64) -> bool {
        file.file().ends_at(self.access(), offset)
    }

    fn is_shorter_than(&self, file: Node, length: u64) -> bool {
        file.file().is_shorter_than(self.access(), length)
    }

    fn read_range(&self, file: Node, offset: u64, bytes: &mut [u8]) -> usize {
        file.file().read(self.access(), offset, bytes)
    }

    fn write_range(&self, file: Node, at: WriteAt, bytes: &[u8]) -> Written {
        self.working_on(&[file]);
        let (offset, length) = match at {
            WriteAt::Offset(offset) => (offset, file.file().write(self.access(), offset, bytes)),
            WriteAt::End => file.file().append(self.access(), bytes),
        };
        if length > 0 {
            self.mark(file, Stamp::Data);
        }
        Written { offset, length }
    }

    fn resize(&self, file: Node, size_bytes: u64) -> Result<(), Refusal> {
        self.working_on(&[file]);
        file.file().resize(self.access(), size_bytes).map_err(|OutOfMemory| Refusal::NoSpace)?;
        self.mark(file, Stamp::Data);
        Ok(())
    }

    fn size(&self, file: Node) -> u64 {
        file.file().size(self.fs, self.host)
    }

    fn read_pipe(&self, pipe: Node, bytes: &mut [u8]) -> Result<usize, Errno> {
        self.working_on(&[pipe]);
        pipe.pipe().read(self.fs, self.core(), bytes, self.host)
    }

    fn peek_pipe(&self, pipe: Node, bytes: &mut [u8]) -> usize {
        pipe.pipe().peek(self.fs, bytes)
    }

    fn pipe_state(&self, pipe: Node, end: PipeEnd) -> PipeState {
        let pipe = pipe.pipe();
        PipeState { is_ready: pipe.is_ready(end), other_end_gone: pipe.is_gone(end.other()) }
    }

    fn write_pipe(&self, pipe: Node, bytes: &[u8]) -> Result<usize, Errno> {
        self.working_on(&[pipe]);
        let written = pipe.pipe().write(self.fs, self.core(), bytes, self.host)?;
        if written > 0 {
            self.mark(pipe, Stamp::Data);
        }
        Ok(written)
    }
}
