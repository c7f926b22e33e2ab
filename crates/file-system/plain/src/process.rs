//! Processes: who calls, where relative paths start, and descriptors.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use posix_calls::{Credentials, DataOperations, OnExec, SPACE_PAGES};

use crate::object::Number;
use crate::state::{Plain, ROOT};

/// A process. It belongs to one instance, or to copies that were made together with copies of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub(crate) credentials: Credentials,
    pub(crate) umask: Cell<u32>,
    pub(crate) working_directory: Cell<Number>,
    /// By number: the open file description, and what becomes of the descriptor at `exec`.
    pub(crate) descriptors: RefCell<BTreeMap<u32, (u64, OnExec)>>,
    /// The number of its memory.
    pub(crate) space: u64,
}

impl Hash for Process {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.credentials, self.umask.get(), self.working_directory.get()).hash(hasher);
        self.descriptors.borrow().hash(hasher);
    }
}

impl Process {
    /// A process without descriptors that works in the root directory.
    pub fn new(file_system: &Plain, credentials: Credentials) -> Process {
        let mut state = file_system.state.borrow_mut();
        state.get_mut(ROOT).references += 1;
        Process {
            credentials,
            umask: Cell::new(0o022),
            working_directory: Cell::new(ROOT),
            descriptors: RefCell::default(),
            space: state.add_space(),
        }
    }

    /// Sets the mask of new files' permissions and returns the old one (POSIX `umask`).
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.replace(mask & 0o777)
    }

    /// The numbers of the open descriptors.
    pub fn descriptors(&self) -> Vec<u32> {
        self.descriptors.borrow().keys().copied().collect()
    }

    /// Another process with the same descriptors and working directory (POSIX `fork`), and without memory, as in ScaleFS.
    pub fn fork(&self, file_system: &Plain) -> Process {
        let mut state = file_system.state.borrow_mut();
        state.get_mut(self.working_directory.get()).references += 1;
        for (open_file, _) in self.descriptors.borrow().values() {
            state.count_descriptor(*open_file);
        }
        Process { space: state.add_space(), ..self.clone() }
    }

    /// Closes the descriptors that do not survive `exec`.
    pub fn exec(&self, file_system: &Plain) {
        let closed = |(number, (_, on_exec)): (&u32, &(u64, OnExec))| (*on_exec == OnExec::Close).then_some(*number);
        let numbers: Vec<u32> = self.descriptors.borrow().iter().filter_map(closed).collect();
        self.close(file_system, numbers);
    }

    /// Closes all descriptors and leaves the working directory (POSIX `_exit`).
    pub fn exit(self, file_system: &Plain) {
        self.close(file_system, self.descriptors());
        let mut state = file_system.state.borrow_mut();
        state.unmap_pages(self.space, 0..SPACE_PAGES);
        state.spaces.remove(&self.space);
        state.release(self.working_directory.get());
    }

    fn close(&self, file_system: &Plain, numbers: Vec<u32>) {
        let call = file_system.begin(self);
        for number in numbers {
            let _ = call.uninstall(number);
        }
    }
}
