//! Processes: who calls, where relative paths start, and descriptors.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use posix_calls::{Credentials, DataOperations, Ended, OnExec, ProcessNumber, SPACE_PAGES};

use crate::object::Number;
use crate::state::{Plain, ROOT, State};

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
    /// Its number; zero until it is adopted.
    pub(crate) number: u64,
    /// The number of its parent.
    pub(crate) parent: Option<u64>,
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
        let number = file_system.state.borrow_mut().add_process();
        Process { number, ..Process::unnumbered(file_system, credentials, 0o022, ROOT) }
    }

    /// A process that has no number yet.
    pub(crate) fn unnumbered(
        file_system: &Plain,
        credentials: Credentials,
        umask: u32,
        working_directory: Number,
    ) -> Process {
        let mut state = file_system.state.borrow_mut();
        state.get_mut(working_directory).references += 1;
        Process {
            credentials,
            umask: Cell::new(umask),
            working_directory: Cell::new(working_directory),
            descriptors: RefCell::default(),
            space: state.add_space(),
            number: 0,
            parent: None,
        }
    }

    /// Its number.
    pub fn number(&self) -> ProcessNumber {
        ProcessNumber(self.number)
    }

    /// The number of its parent, while that runs.
    pub fn parent(&self, file_system: &Plain) -> Option<ProcessNumber> {
        let parent = self.parent?;
        file_system.state.borrow().children.contains_key(&parent).then_some(ProcessNumber(parent))
    }

    /// Sets the mask of new files' permissions and returns the old one (POSIX `umask`).
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.replace(mask & 0o777)
    }

    /// The numbers of the open descriptors.
    pub fn descriptors(&self) -> Vec<u32> {
        self.descriptors.borrow().keys().copied().collect()
    }

    /// Another process with the same descriptors, working directory and memory (POSIX `fork`). It takes pages for what was stored,
    /// even if there are none.
    pub fn fork(&self, file_system: &Plain) -> Process {
        let mut state = file_system.state.borrow_mut();
        state.get_mut(self.working_directory.get()).references += 1;
        for (open_file, _) in self.descriptors.borrow().values() {
            state.count_descriptor(*open_file);
        }
        let mut child = Process { space: state.copy_space(self.space), ..self.clone() };
        child.adopted_by(self, &mut state);
        child
    }

    /// Gets a number as a child of a process.
    pub(crate) fn adopted_by(&mut self, parent: &Process, state: &mut State) {
        (self.number, self.parent) = (state.add_process(), Some(parent.number));
        state.children.entry(parent.number).or_default().insert(self.number, None);
    }

    /// Closes the descriptors that do not survive `exec`, and gives up all memory.
    pub fn exec(&self, file_system: &Plain) {
        file_system.state.borrow_mut().unmap_pages(self.space, 0..SPACE_PAGES);
        let closed = |(number, (_, on_exec)): (&u32, &(u64, OnExec))| (*on_exec == OnExec::Close).then_some(*number);
        let numbers: Vec<u32> = self.descriptors.borrow().iter().filter_map(closed).collect();
        self.close(file_system, numbers);
    }

    /// [`Process::exit_with`] success.
    pub fn exit(self, file_system: &Plain) {
        self.exit_with(file_system, Ended::Exited(0));
    }

    /// Closes all descriptors, leaves the working directory, and tells the parent (POSIX `_exit`).
    pub fn exit_with(self, file_system: &Plain, ended: Ended) {
        self.close(file_system, self.descriptors());
        let mut state = file_system.state.borrow_mut();
        state.unmap_pages(self.space, 0..SPACE_PAGES);
        state.spaces.remove(&self.space);
        state.release(self.working_directory.get());
        state.children.remove(&self.number);
        let siblings = self.parent.and_then(|parent| state.children.get_mut(&parent));
        if let Some(me) = siblings.and_then(|siblings| siblings.get_mut(&self.number)) {
            *me = Some(ended);
        }
    }

    fn close(&self, file_system: &Plain, numbers: Vec<u32>) {
        let call = file_system.begin(self);
        for number in numbers {
            let _ = call.uninstall(number);
        }
    }
}
