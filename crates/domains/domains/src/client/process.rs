//! Processes: who calls, where relative paths start, and descriptors.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use messages::Transport;
use posix_calls::{Credentials, DataOperations, Errno, ObjectOperations, OnExec};

use super::domain::Domain;
use crate::identity::Target;

/// A process of one domain.
#[derive(Debug)]
pub struct Process {
    pub(super) credentials: Credentials,
    pub(super) umask: Cell<u32>,
    pub(super) working_directory: Cell<Target>,
    /// By number: the open file description, and what becomes of the descriptor at `exec`.
    pub(super) descriptors: RefCell<BTreeMap<u32, (u64, OnExec)>>,
}

impl Process {
    /// A process without descriptors that works in the root directory.
    #[must_use]
    pub fn new(credentials: Credentials) -> Process {
        Process {
            credentials,
            umask: Cell::new(0o022),
            // It is always there: nobody need keep it.
            working_directory: Cell::new(Target::ROOT),
            descriptors: RefCell::default(),
        }
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

    /// Closes all descriptors and leaves the working directory (POSIX `_exit`).
    pub fn exit<T: Transport>(self, domain: &Domain<T>) {
        let call = domain.begin(&self);
        for number in self.descriptors() {
            let _ = call.uninstall(number);
        }
        domain.let_go(self.working_directory.replace(Target::ROOT));
    }
}
