//! What a window leaves behind, noted as it comes, so that it is removed with few system calls afterwards.

use super::operation::check_name;
use super::reserved;
use super::system_call::system_call;
use super::target::{Linux, call, check};
use crate::crew::Crew;
use crate::place::{PROCESS_LIMIT, Place};
use crate::target::Agents;

/// The coordinator's own system calls are those of its process.
pub(super) const COORDINATOR: Place = Place::Home { process: 0 };

/// What the window under way leaves behind.
pub struct Leftovers {
    /// Absolute path of the window's directory.
    path: String,
    /// Directories below it that have been made.
    directories: Vec<String>,
    /// Names that may have been created in the working directory of some process.
    names: Vec<String>,
    /// Whether descriptors below [`super::held::FIRST_PERMANENT`] may be open.
    descriptors: bool,
    /// Addresses of tests that may have been mapped, ascending.
    pages: Vec<u64>,
    /// Per process, addresses that the kernel picked, in the order of the last calls that had them picked.
    picked: [Vec<u64>; PROCESS_LIMIT],
    /// Per process, a worker that can empty its reserved range, if something was mapped there.
    mapped: [Option<Place>; PROCESS_LIMIT],
    /// The process whose call is being prepared.
    process: usize,
}

impl Leftovers {
    /// Nothing, in a window's directory.
    #[must_use]
    pub fn new(path: String) -> Self {
        Self {
            path,
            directories: Vec::new(),
            names: Vec::new(),
            descriptors: false,
            pages: Vec::new(),
            picked: [const { Vec::new() }; PROCESS_LIMIT],
            mapped: [None; PROCESS_LIMIT],
            process: 0,
        }
    }

    /// The window's directory.
    #[must_use]
    pub fn directory_path(&self) -> &str {
        &self.path
    }

    /// A process is about to make a call.
    pub fn acting(&mut self, process: usize) {
        self.process = process;
    }

    /// A directory is used; true if it has to be made first.
    ///
    /// # Errors
    /// The text is no name.
    pub fn directory(&mut self, name: &str) -> Result<bool, String> {
        check_name(name)?;
        let is_new = !self.directories.iter().any(|known| known == name);
        if is_new {
            self.directories.push(name.to_owned());
        }
        Ok(is_new)
    }

    /// A name may be created.
    pub fn name(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    /// Descriptors may stay open.
    pub fn descriptors(&mut self) {
        self.descriptors = true;
    }

    /// A page of tests may be mapped, in some process. What is out of range is refused elsewhere.
    pub fn page(&mut self, page: i64) {
        if let Ok(address) = reserved::address(page)
            && let Err(place) = self.pages.binary_search(&address)
        {
            self.pages.insert(place, address);
        }
    }

    /// A worker has made a call on its process's memory, and the kernel has picked an address if that is not one of the
    /// test's.
    pub fn mapped(&mut self, worker: Place, picked: Option<u64>) {
        self.mapped[worker.process()] = Some(worker);
        if let Some(address) = picked {
            let known = &mut self.picked[worker.process()];
            known.retain(|other| *other != address); // one that was unmapped may be picked again
            known.push(address);
        }
    }

    /// Addresses that may be mapped in the acting process: those of tests, ascending, then those that the kernel picked.
    #[must_use]
    pub fn pages(&self) -> Vec<u64> {
        [&self.pages[..], &self.picked[self.process]].concat()
    }

    /// Removes everything but the window's directory.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub(super) fn clean(&self, crew: &mut Crew<Linux>, agents: Agents) -> Result<(), String> {
        for worker in self.mapped.into_iter().flatten() {
            check("unmapping", call(crew, worker, libc::SYS_munmap, [reserved::BASE, reserved::SIZE_BYTES]))?;
        }
        if self.descriptors {
            let last = super::held::FIRST_PERMANENT - 1;
            // Process 0 may hold files and pipes of the set-up without being among the agents.
            let others = agents.iter().filter(|place| place.process() != 0);
            for place in std::iter::once(COORDINATOR).chain(others) {
                check("closing descriptors", call(crew, place, libc::SYS_close_range, [0, last, 0]))?;
            }
        }
        self.remove_names(crew)
    }

    fn remove_names(&self, crew: &mut Crew<Linux>) -> Result<(), String> {
        let path = &mut crew.operation(COORDINATOR).paths[0];
        if self.directories.is_empty() {
            return self.names.iter().try_for_each(|name| {
                path.set(&[&self.path, name])?;
                unlink(path.address())
            });
        }
        for directory in &self.directories {
            for name in &self.names {
                path.set(&[&self.path, directory, name])?;
                unlink(path.address())?;
            }
            path.set(&[&self.path, directory])?;
            match system_call(libc::SYS_rmdir, [path.address()]) {
                result if result == -i64::from(libc::ENOTEMPTY) => {} // the sweep of the window's directory takes it
                result => check("removing a directory", result)?,
            }
        }
        Ok(())
    }
}

fn unlink(path: u64) -> Result<(), String> {
    match system_call(libc::SYS_unlink, [path]) {
        result if result == -i64::from(libc::ENOENT) => Ok(()),
        result => check("removing a file", result),
    }
}
