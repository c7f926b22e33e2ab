//! The operations on processes: children in the same domain, and those that have gone to another.

use messages::Transport;
use posix_calls::{
    AnswerOf, ChildState, Credentials, DataOperations, Errno, FileAction, ObjectOperations, OnExec, ProcessNumber,
    ProcessOperations,
};

use super::call::Call;
use super::process::Process;
use crate::identity::ObjectNumber;
use crate::wire::{Reply, Request};

impl<T: Transport> Call<'_, T> {
    /// The process's number, which is given to it when somebody asks.
    pub(super) fn process_number(&self) -> ObjectNumber {
        if let Some(number) = self.process.number.get() {
            return number;
        }
        let number = self.domain.with_server(|server| server.new_process());
        self.process.number.set(Some(number));
        number
    }

    /// The number of the process that calls (POSIX `getpid`).
    pub fn number_of_caller(&self) -> ProcessNumber {
        ProcessNumber(self.process_number().inode().0)
    }

    /// Asks who keeps a process's children.
    fn ask_family(&self, request: impl FnOnce(ObjectNumber) -> Request) -> Reply {
        let number = self.process_number();
        self.domain.ask(number.home(), request(number))
    }

    fn children(&self) -> AnswerOf<(bool, Option<ObjectNumber>), Self> {
        match self.ask_family(|parent| Request::Children { parent }) {
            Reply::Children { has_one, ended } => Ok((has_one, ended)),
            reply => Err(self.failed(&reply)),
        }
    }
}

impl<T: Transport> ProcessOperations for Call<'_, T> {
    type Process = Process;
    type CallOf<'v>
        = Call<'v, T>
    where
        Self: 'v;

    fn make_process(&self, credentials: Option<&Credentials>) -> Result<Process, Errno> {
        let kept = self.retain(self.working_directory())?;
        let child = Process::new(*credentials.unwrap_or(&self.process.credentials));
        child.working_directory.set(kept.0);
        child.umask.set(self.process.umask.get());
        Ok(child)
    }

    fn call_of<'v>(&'v self, child: &'v Process) -> Call<'v, T> {
        self.domain.begin(child)
    }

    fn pass_descriptor(&self, number: u32, child: &Process, target: u32, on_exec: OnExec) -> Result<(), Errno> {
        let (file, _) = self.leads_to(number)?;
        self.call_of(child).put(target, file, on_exec);
        Ok(())
    }

    fn pass_surviving(&self, child: &Process, actions: &[FileAction<'_>]) -> Result<(), Errno> {
        for number in self.process.descriptors() {
            let on_exec = self.on_exec(number)?;
            if on_exec == OnExec::Keep && !FileAction::change(actions, number) {
                self.pass_descriptor(number, child, number, on_exec)?;
            }
        }
        Ok(())
    }

    fn adopt(&self, child: &mut Process) -> Result<(), Errno> {
        match self.ask_family(|parent| Request::Adopt { parent }) {
            Reply::Made { number } => {
                child.number.set(Some(number));
                Ok(())
            }
            reply => Err(self.failed(&reply).into()),
        }
    }

    fn discard(&self, child: Process) {
        child.exit(self.domain);
    }

    fn ended_child(&self) -> AnswerOf<Option<ProcessNumber>, Self> {
        let (_, ended) = self.children()?;
        Ok(ended.map(|number| ProcessNumber(number.inode().0)))
    }

    fn has_child(&self) -> AnswerOf<bool, Self> {
        Ok(self.children()?.0)
    }

    fn take_ended(&self, child: ProcessNumber) -> AnswerOf<ChildState, Self> {
        let child = ObjectNumber::of_inode(child.0);
        match self.ask_family(|parent| Request::TakeEnded { parent, child }) {
            Reply::Child { is_one: false, .. } => Ok(ChildState::NoChild),
            Reply::Child { ended: None, .. } => Ok(ChildState::Running),
            Reply::Child { ended: Some(ended), .. } => Ok(ChildState::Ended(ended)),
            reply => Err(self.failed(&reply)),
        }
    }
}
