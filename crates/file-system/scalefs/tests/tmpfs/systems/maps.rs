//! The calls on crate `plain`.

use call_language::{Answer, Call, GROUPS, Operation, Outcome, USERS, perform};
use plain::{Limits, Plain, Process};
use posix_calls::{Credentials, Errno, Follow, ObjectOperations, Start, attributes, directories};

use super::{System, Systems, left, remove_below};

/// Instances of `plain`, which need no memory of ours.
pub struct Maps;

/// An instance with its users.
struct Users {
    file_system: Plain,
    processes: Vec<Process>,
    /// For what is no call that is compared.
    superuser: Process,
}

impl Systems for Maps {
    const NAME: &'static str = "Plain";

    fn with_empty<T>(
        &mut self,
        page_limit: Option<usize>,
        first_user: Credentials,
        test: impl FnOnce(Box<dyn System + '_>) -> T,
    ) -> T {
        let pages = page_limit.map_or(u64::MAX, |pages| pages as u64);
        let file_system = Plain::new(Limits { pages, ..Limits::default() }, || 0);
        let others = [1, 2].map(|index| Credentials::new(USERS[index], USERS[index], GROUPS[index]).unwrap());
        let users = [first_user, others[0], others[1]];
        let processes = users.map(|user| Process::new(&file_system, user)).into();
        let superuser = Process::new(&file_system, Credentials::SUPERUSER);
        let call = file_system.begin(&superuser);
        let owner = (Some(first_user.user), Some(first_user.group));
        attributes::change_owner(&call, Start::WorkingDirectory, b"/", Follow::Symlinks, owner).unwrap();
        attributes::change_mode(&call, Start::WorkingDirectory, b"/", 0o777).unwrap();
        test(Box::new(Users { file_system, processes, superuser }))
    }
}

impl Users {
    fn make(&self, process: &Process, operation: &Operation) -> Result<Answer, Errno> {
        let call = self.file_system.begin(process);
        let answer = perform(&call, operation)?;
        if let Operation::ChangeDirectory(_) = operation {
            // The users share the host's one working directory.
            for process in &self.processes {
                directories::enter(&self.file_system.begin(process), call.working_directory())?;
            }
        }
        Ok(answer)
    }
}

impl System for Users {
    fn call(&self, _: usize, call: &Call) -> Outcome {
        self.make(&self.processes[call.user], &call.operation).map_err(Errno::number)
    }

    fn by_superuser(&self, operation: &Operation) -> Outcome {
        self.make(&self.superuser, operation).map_err(Errno::number)
    }

    fn remains(self: Box<Self>) -> Option<String> {
        remove_below(&*self, ".");
        let Users { file_system, processes, superuser } = *self;
        processes.into_iter().for_each(|process| process.exit(&file_system));
        left(attributes::space(&file_system.begin(&superuser)).unwrap())
    }
}
