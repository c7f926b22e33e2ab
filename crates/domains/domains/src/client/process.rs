//! Processes: who calls, where relative paths start, and descriptors.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use messages::Transport;
use posix_calls::{
    Credentials, DataOperations, Ended, Errno, ObjectOperations, OnExec, ProcessNumber, ProcessOperations,
};

use super::domain::Domain;
use crate::identity::{ObjectNumber, Target};
use crate::wire::Request;

/// A process of one domain.
#[derive(Debug)]
pub struct Process {
    pub(super) credentials: Credentials,
    pub(super) umask: Cell<u32>,
    pub(super) working_directory: Cell<Target>,
    /// By number: the open file description, and what becomes of the descriptor at `exec`.
    pub(super) descriptors: RefCell<BTreeMap<u32, (u64, OnExec)>>,
    /// Its memory, if it has mapped some.
    pub(super) space: Cell<Option<u64>>,
    /// Its number, if somebody has asked for it.
    pub(super) number: Cell<Option<ObjectNumber>>,
}

impl Process {
    /// A process without descriptors that works in the root directory.
    #[must_use]
    pub fn new(credentials: Credentials) -> Process {
        Process {
            credentials,
            umask: Cell::new(0o022),
            // It is always there: no one need keep it.
            working_directory: Cell::new(Target::ROOT),
            descriptors: RefCell::default(),
            space: Cell::new(None),
            number: Cell::new(None),
        }
    }

    /// Its number, if it is a child or has one.
    pub fn number(&self) -> Option<ProcessNumber> {
        self.number.get().map(|number| ProcessNumber(number.inode().0))
    }

    /// Sets the mask of new files' permissions and returns the old one (POSIX `umask`).
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.replace(mask & 0o777)
    }

    /// Works from now on where another process of any domain works.
    ///
    /// # Errors
    /// EIO if that directory has gone.
    pub fn follow<T: Transport>(&self, domain: &Domain<T>, other: &Process) -> Result<(), Errno> {
        let place = other.working_directory.get();
        if place == self.working_directory.get() {
            return Ok(());
        }
        let call = domain.begin(self);
        Ok(call.set_working_directory(call.lend(place))?)
    }

    /// The numbers of the open descriptors.
    pub fn descriptors(&self) -> Vec<u32> {
        self.descriptors.borrow().keys().copied().collect()
    }

    /// A child of the same domain, with the same descriptors, working directory and memory (POSIX `fork`). It takes pages for
    /// what was stored, even if there are none.
    ///
    /// # Errors
    /// EIO if the working directory has gone.
    pub fn fork<T: Transport>(&self, domain: &Domain<T>) -> Result<Process, Errno> {
        let call = domain.begin(self);
        let mut child = call.make_process(None)?;
        for (number, (file, on_exec)) in self.descriptors.borrow().iter() {
            domain.begin(&child).put(*number, *file, *on_exec);
        }
        if let Some(space) = self.space.get() {
            child.space.set(Some(domain.with_server(|server| server.copy_space(space))));
        }
        match call.adopt(&mut child) {
            Ok(()) => Ok(child),
            Err(errno) => {
                child.exit(domain);
                Err(errno)
            }
        }
    }

    /// Closes the descriptors that do not survive `exec`, and gives up all memory.
    pub fn exec<T: Transport>(&self, domain: &Domain<T>) {
        self.close(domain, |on_exec| on_exec == OnExec::Close);
        self.give_up_memory(domain);
    }

    /// [`Process::exit_with`] success.
    pub fn exit<T: Transport>(self, domain: &Domain<T>) {
        self.exit_with(domain, Ended::Exited(0));
    }

    /// Closes all descriptors, leaves the working directory, gives up all memory, and tells the parent (POSIX `_exit`).
    pub fn exit_with<T: Transport>(self, domain: &Domain<T>, ended: Ended) {
        self.close(domain, |_| true);
        domain.let_go(self.working_directory.replace(Target::ROOT));
        self.give_up_memory(domain);
        if let Some(process) = self.number.get() {
            domain.post(process.home(), Request::End { process, ended });
        }
    }

    fn close<T: Transport>(&self, domain: &Domain<T>, is_closed: impl Fn(OnExec) -> bool) {
        let closed = |(number, (_, on_exec)): (&u32, &(u64, OnExec))| is_closed(*on_exec).then_some(*number);
        let numbers: Vec<u32> = self.descriptors.borrow().iter().filter_map(closed).collect();
        let call = domain.begin(self);
        for number in numbers {
            let _ = call.uninstall(number);
        }
    }

    pub(super) fn give_up_memory<T: Transport>(&self, domain: &Domain<T>) {
        if let Some(space) = self.space.take() {
            domain.with_server(|server| server.end_space(space));
        }
    }
}
