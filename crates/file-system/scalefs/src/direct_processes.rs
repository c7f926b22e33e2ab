//! The operations on processes in shared memory.

use posix_calls::{AnswerOf, ChildState, Credentials, Errno, FileAction, OnExec, ProcessNumber, ProcessOperations};

use crate::direct_data::InProcess;
use crate::host::Host;
use crate::lives::Process;
use crate::relatives::Relatives;

impl<H: Host> ProcessOperations for InProcess<'_, H> {
    type Process = Process;
    type CallOf<'v>
        = InProcess<'v, H>
    where
        Self: 'v;

    fn make_process(&self, credentials: Option<&Credentials>) -> Result<Process, Errno> {
        if sync::mutant::planted("scalefs: posix_spawn looks at memory") {
            self.process().memory.for_each_mapped(&self.guard, drop);
        }
        let context = self.context.duplicate(self.fs, self.core(), credentials);
        Process::begin(self.fs, &self.guard, context, Relatives::unknown(), self.host)
    }

    fn call_of<'v>(&'v self, child: &'v Process) -> InProcess<'v, H> {
        self.fs.enter(self.core(), child, self.host)
    }

    fn pass_descriptor(&self, number: u32, child: &Process, target: u32, on_exec: OnExec) -> Result<(), Errno> {
        self.process().pass(self.fs, &self.guard, number, (child.object(), target, on_exec), self.host)
    }

    fn pass_surviving(&self, child: &Process, actions: &[FileAction<'_>]) -> Result<(), Errno> {
        self.process().pass_surviving(self.fs, &self.guard, (child.object(), actions), self.host)
    }

    fn adopt(&self, child: &mut Process) -> Result<(), Errno> {
        self.process().relatives.adopt(self.fs, &self.guard, &child.object().relatives, self.host)
    }

    fn discard(&self, child: Process) {
        child.exit(self.fs, self.core(), self.host);
    }

    fn ended_child(&self) -> AnswerOf<Option<ProcessNumber>, Self> {
        Ok(self.process().relatives.family().and_then(|family| family.ended_child(&self.guard)))
    }

    fn has_child(&self) -> AnswerOf<bool, Self> {
        Ok(self.process().relatives.family().is_some_and(|family| family.has_child(&self.guard)))
    }

    fn take_ended(&self, child: ProcessNumber) -> AnswerOf<ChildState, Self> {
        Ok(self.process().relatives.take_ended(self.fs, &self.guard, child, self.host))
    }
}
