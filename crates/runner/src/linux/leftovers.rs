//! What a window leaves behind, noted as it comes, so that it is removed with few system calls afterwards.

use super::operation::{Operation, Path, check_name};
use super::system_call::system_call;
use super::target::{Linux, check};
use super::{held, reserved};
use crate::crew::Crew;
use crate::place::{PROCESS_LIMIT, Place};
use crate::target::{Agents, Marks};

/// The coordinator's own system calls are those of its process.
pub(super) const COORDINATOR: Place = Place::Home { process: 0 };

/// What the window under way leaves behind.
pub struct Leftovers {
    /// Absolute path of the directory that holds the directories of all windows.
    root: String,
    /// Number of the window, which its directories' names begin with.
    window: u64,
    /// Directories of the window that have been made, as the test calls them.
    directories: Vec<String>,
    /// Names that may have been created in the working directory of some process.
    names: Vec<String>,
    /// Whether descriptors below [`super::held::FIRST_PERMANENT`] may be open.
    descriptors: bool,
    /// One more than the highest descriptor that the window has named.
    named_descriptors: u64,
    /// Descriptors that the kernel may have picked, each the lowest that was free.
    picked_descriptors: u64,
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
    /// Nothing yet; the directories of this window will be made in `root`, an absolute path.
    #[must_use]
    pub fn new(root: &str, window: u64) -> Self {
        Self {
            root: root.to_owned(),
            window,
            directories: Vec::new(),
            names: Vec::new(),
            descriptors: false,
            named_descriptors: 0,
            picked_descriptors: 0,
            pages: Vec::new(),
            picked: [const { Vec::new() }; PROCESS_LIMIT],
            mapped: [None; PROCESS_LIMIT],
            process: 0,
        }
    }

    /// The directory that holds the directories of all windows, on the file system under test.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The path of a directory of this window. No other window has it, so no dentry or inode outlives its window by name.
    #[must_use]
    pub fn path(&self, directory: &str) -> String {
        format!("{}/{}.{directory}", self.root, self.window)
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

    /// The directory in which processes start that enter none has been made; it is called by no name.
    pub fn starting_directory(&mut self) {
        self.directories.push(String::new());
    }

    /// A name may be created.
    pub fn name(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    /// Descriptors of the runner may stay open.
    pub fn descriptors(&mut self) {
        self.descriptors = true;
    }

    /// A test's descriptor of this number may stay open.
    pub fn names_descriptor(&mut self, descriptor: u64) {
        self.descriptors = true;
        self.named_descriptors = self.named_descriptors.max(descriptor + 1);
    }

    /// So many descriptors may stay open whose numbers the kernel picks, each the lowest that is free.
    pub fn picks_descriptors(&mut self, count: u64) {
        self.descriptors = true;
        self.picked_descriptors += count;
    }

    /// All descriptors of tests that may be open are below this.
    #[must_use]
    pub fn descriptor_limit(&self) -> u64 {
        (self.named_descriptors + self.picked_descriptors).min(held::TEST_DESCRIPTORS)
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

    /// Removes everything.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub(super) fn clean(&self, crew: &mut Crew<Linux>, agents: Agents) -> Result<(), String> {
        if self.descriptors {
            check("closing descriptors", close_all())?; // process 0 may hold some without being among the agents
        }
        let others = agents.iter().filter(|place| place.process() != 0);
        for place in others.filter(|place| self.descriptors && self.mapped[place.process()].is_none()) {
            check("closing descriptors", steps(crew, place, |_| close_all()))?;
        }
        for worker in self.mapped.into_iter().flatten() {
            let result = if self.descriptors && worker.process() != 0 {
                steps(crew, worker, |_| unmap_all().min(close_all()))
            } else {
                steps(crew, worker, |_| unmap_all())
            };
            check("unmapping, or closing descriptors", result)?;
        }
        let path = &mut crew.operation(COORDINATOR).paths[0];
        self.directories.iter().try_for_each(|directory| self.remove_directory(path, directory))
    }

    /// Unlinks the names that the test could have created; only if something is left is the directory read.
    fn remove_directory(&self, scratch: &mut Path, directory: &str) -> Result<(), String> {
        let path = self.path(directory);
        for name in &self.names {
            scratch.set(&[&path, name])?;
            match system_call(libc::SYS_unlink, [scratch.address()]) {
                result if result == -i64::from(libc::ENOENT) => {}
                result => check("removing a file", result)?,
            }
        }
        scratch.set(&[&path])?;
        match system_call(libc::SYS_rmdir, [scratch.address()]) {
            result if result == -i64::from(libc::ENOTEMPTY) => {
                std::fs::remove_dir_all(&path).map_err(|error| format!("removing {path}: {error}"))
            }
            result => check("removing a directory", result),
        }
    }
}

fn steps(crew: &mut Crew<Linux>, place: Place, steps: fn(&mut Operation) -> i64) -> i64 {
    crew.operation(place).steps(steps, []);
    crew.run(place, Marks::None)
}

fn close_all() -> i64 {
    system_call(libc::SYS_close_range, [0, held::FIRST_PERMANENT - 1, 0])
}

fn unmap_all() -> i64 {
    system_call(libc::SYS_munmap, [reserved::BASE, reserved::SIZE_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_looked_for_as_far_as_the_lowest_free_ones_reach() {
        let mut leftovers = Leftovers::new("/w", 1);
        assert_eq!(leftovers.descriptor_limit(), 0);
        leftovers.picks_descriptors(2);
        assert_eq!(leftovers.descriptor_limit(), 2);
        for descriptor in [3, 1] {
            leftovers.names_descriptor(descriptor);
        }
        // 0 to 3 may be taken by those that were named, and the two that were picked lie behind.
        assert_eq!(leftovers.descriptor_limit(), 6);
        leftovers.picks_descriptors(100);
        assert_eq!(leftovers.descriptor_limit(), held::TEST_DESCRIPTORS);
    }
}
