//! The operations on processes.

use posix_calls::{AnswerOf, ChildState, Credentials, Errno, FileAction, OnExec, ProcessNumber, ProcessOperations};

use crate::call::Call;
use crate::process::Process;

impl ProcessOperations for Call<'_> {
    type Process = Process;
    type CallOf<'v>
        = Call<'v>
    where
        Self: 'v;

    fn make_process(&self, credentials: Option<&Credentials>) -> Result<Process, Errno> {
        drop(self.change()?);
        let Process { credentials: own, umask, working_directory, .. } = self.process;
        let credentials = *credentials.unwrap_or(own);
        Ok(Process::unnumbered(self.file_system, credentials, umask.get(), working_directory.get()))
    }

    fn call_of<'v>(&'v self, child: &'v Process) -> Call<'v> {
        self.file_system.begin(child)
    }

    fn pass_descriptor(&self, number: u32, child: &Process, target: u32, on_exec: OnExec) -> Result<(), Errno> {
        let (open_file, _) = self.leads_to(number)?;
        let mut state = self.change()?;
        self.call_of(child).put(&mut state, target, open_file, on_exec);
        Ok(())
    }

    fn pass_surviving(&self, child: &Process, actions: &[FileAction<'_>]) -> Result<(), Errno> {
        for number in self.process.descriptors() {
            let (_, on_exec) = self.leads_to(number)?;
            if on_exec == OnExec::Keep && !FileAction::change(actions, number) {
                self.pass_descriptor(number, child, number, on_exec)?;
            }
        }
        Ok(())
    }

    fn adopt(&self, child: &mut Process) -> Result<(), Errno> {
        child.adopted_by(self.process, &mut *self.change()?);
        Ok(())
    }

    fn discard(&self, child: Process) {
        // Nothing fails that gives things back.
        let left = self.file_system.successes_left();
        self.file_system.fail_after(None);
        child.exit(self.file_system);
        self.file_system.fail_after(left);
    }

    fn ended_child(&self) -> AnswerOf<Option<ProcessNumber>, Self> {
        let state = self.ask()?;
        let children = state.children.get(&self.process.number).into_iter().flatten();
        Ok(children.filter(|(_, ended)| ended.is_some()).map(|(number, _)| ProcessNumber(*number)).next())
    }

    fn has_child(&self) -> AnswerOf<bool, Self> {
        Ok(self.ask()?.children.get(&self.process.number).is_some_and(|children| !children.is_empty()))
    }

    fn take_ended(&self, child: ProcessNumber) -> AnswerOf<ChildState, Self> {
        let mut state = self.change()?;
        let Some(children) = state.children.get_mut(&self.process.number) else { return Ok(ChildState::NoChild) };
        Ok(match children.get(&child.0) {
            None => ChildState::NoChild,
            Some(None) => ChildState::Running,
            Some(Some(ended)) => {
                let ended = *ended;
                children.remove(&child.0);
                ChildState::Ended(ended)
            }
        })
    }
}
