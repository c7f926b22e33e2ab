//! What a window leaves behind, noted as it comes, so that it is removed with few system calls afterwards.

use std::fmt::Write;

use super::family::end_all;
use super::operation::{Operation, Path, check_name};
use super::signals::take_all;
use super::system_call::{check, system_call};
use super::{held, reserved};
use crate::crew::Crew;
use crate::execution::{Execution, Marks};
use crate::place::{PROCESS_LIMIT, Place};
use crate::target::Agents;

/// The coordinator's own system calls are those of its process.
pub(super) const COORDINATOR: Place = Place::Home { process: 0 };

/// A set of a few short texts, which keeps its memory when it is emptied.
#[derive(Default)]
struct Texts {
    all: String,
    ends: Vec<usize>,
}

impl Texts {
    fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.all[std::mem::replace(&mut start, *end)..*end])
    }

    /// Adds a text, and says whether it is new.
    fn add(&mut self, text: &str) -> bool {
        let is_new = !self.iter().any(|known| known == text);
        if is_new {
            self.all.push_str(text);
            self.ends.push(self.all.len());
        }
        is_new
    }
}

/// What the window under way leaves behind. Between windows only its memory stays: allocating takes longer than all else.
pub struct Leftovers {
    /// Absolute path of the directory that holds the directories of all windows.
    root: String,
    /// Number of the window.
    window: u64,
    /// What the paths of this window's directories begin with.
    prefix: String,
    /// Directories of the window that have been made, as the test calls them.
    directories: Texts,
    /// Names that may have been created in the working directory of some process.
    names: Texts,
    /// Descriptors with which the set-up holds files and pipes in process 0, one bit each.
    held: u64,
    /// Whether a step of the runner's own has failed, and so may have left any descriptor open.
    failed: bool,
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
    /// Per process, the user who makes its calls; 0 is the superuser.
    users: [u32; PROCESS_LIMIT],
    /// Whether a process may have sent itself a signal.
    signalled: bool,
    /// Whether a process may have children that a test forked.
    forked: bool,
    /// Whether processes have epoll instances.
    has_epolls: bool,
    /// The number of each process to the kernel, once it has been asked for.
    process_ids: [u64; PROCESS_LIMIT],
}

impl Leftovers {
    /// Nothing yet; the directories of windows will be made in `root`, an absolute path.
    #[must_use]
    pub fn new(root: &str) -> Self {
        Self {
            root: root.to_owned(),
            window: 0,
            prefix: String::new(),
            directories: Texts::default(),
            names: Texts::default(),
            held: 0,
            failed: false,
            named_descriptors: 0,
            picked_descriptors: 0,
            pages: Vec::new(),
            picked: [const { Vec::new() }; PROCESS_LIMIT],
            mapped: [None; PROCESS_LIMIT],
            process: 0,
            users: [0; PROCESS_LIMIT],
            signalled: false,
            forked: false,
            has_epolls: false,
            process_ids: [0; PROCESS_LIMIT],
        }
    }

    /// A window begins; what the last one left has been removed.
    pub fn begin_window(&mut self) {
        self.window += 1;
        self.prefix.clear();
        // Writing to a text does not fail.
        let _ = write!(self.prefix, "{}/{}.", self.root, self.window);
        self.directories.clear();
        self.names.clear();
        self.held = 0;
        self.failed = false;
        self.named_descriptors = 0;
        self.picked_descriptors = 0;
        self.pages.clear();
        self.picked.iter_mut().for_each(Vec::clear);
        self.mapped = [None; PROCESS_LIMIT];
        self.users = [0; PROCESS_LIMIT];
        self.signalled = false;
        self.forked = false;
        self.has_epolls = false;
    }

    /// A user makes the calls of the acting process from now on.
    pub fn becomes(&mut self, user: u32) {
        self.users[self.process] = user;
    }

    /// The user who makes the calls of the acting process; 0 is the superuser.
    #[must_use]
    pub fn user(&self) -> u32 {
        self.users[self.process]
    }

    /// A process sends itself a signal that stays pending.
    pub fn signalled(&mut self) {
        self.signalled = true;
    }

    /// A process forks a child.
    pub fn forks(&mut self) {
        self.forked = true;
    }

    /// A process gets an epoll instance.
    pub fn makes_epolls(&mut self) {
        self.has_epolls = true;
    }

    /// The number of the acting process.
    #[must_use]
    pub fn process_id(&self) -> u64 {
        self.process_ids[self.process]
    }

    /// Asks each process for its number, unless it has said it before: homes are children of theirs.
    pub(super) fn learn_process_ids(&mut self, crew: &mut Crew<impl Execution<Operation = Operation>>, agents: Agents) {
        for place in agents.iter() {
            if self.process_ids[place.process()] != 0 {
                continue;
            }
            let number = if matches!(place, Place::Home { .. }) { libc::SYS_getppid } else { libc::SYS_getpid };
            let answer = if place == COORDINATOR {
                system_call(number, [])
            } else {
                crew.operation(place).call(number, []);
                crew.run(place, Marks::None)
            };
            self.process_ids[place.process()] = answer.cast_unsigned();
        }
    }

    /// The directory that holds the directories of all windows, on the file system under test.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.root
    }

    /// What the paths of this window's directories begin with; the name that the test calls one by follows at once. No
    /// other window has such paths, so no dentry or inode outlives its window by name.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
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
        Ok(self.directories.add(name))
    }

    /// The directory in which processes start that enter none has been made; it is called by no name.
    pub fn starting_directory(&mut self) {
        self.directories.add("");
    }

    /// A name may be created.
    pub fn name(&mut self, name: &str) {
        self.names.add(name);
    }

    /// The set-up holds something in process 0 with this descriptor from now on.
    pub fn holds(&mut self, descriptor: u64) {
        self.held |= 1 << descriptor;
    }

    /// The set-up lets go of what it held with this descriptor.
    pub fn lets_go(&mut self, descriptor: u64) {
        self.held &= !(1 << descriptor);
    }

    /// A step of the runner's own has failed.
    pub fn failed(&mut self) {
        self.failed = true;
    }

    /// A test's descriptor of this number may stay open.
    pub fn names_descriptor(&mut self, descriptor: u64) {
        self.named_descriptors = self.named_descriptors.max(descriptor + 1);
    }

    /// This many descriptors may stay open whose numbers the kernel picks, each the lowest that is free.
    pub fn picks_descriptors(&mut self, count: u64) {
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
    pub fn pages(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().chain(&self.picked[self.process]).copied()
    }

    /// The descriptors of a process that may be open: all below the first number, and from the second up to before the
    /// third.
    fn open_descriptors(&self, process: usize) -> [u64; 3] {
        match self.held {
            _ if self.failed => [held::FIRST_PERMANENT, 0, 0],
            held if process == 0 && held != 0 => {
                [self.descriptor_limit(), held.trailing_zeros().into(), u64::from(held.ilog2()) + 1]
            }
            _ => [self.descriptor_limit(), 0, 0],
        }
    }

    /// Removes everything.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub(super) fn clean(
        &self,
        crew: &mut Crew<impl Execution<Operation = Operation>>,
        agents: Agents,
    ) -> Result<(), String> {
        for agent in agents.iter() {
            let worker = match agent {
                Place::Home { process } => Place::Worker { process, core: 0 },
                worker @ Place::Worker { .. } => worker,
            };
            if self.signalled {
                steps(crew, worker, [], take_all);
            }
            if self.forked {
                crew.operation(worker).process = agent.process();
                steps(crew, worker, [], end_all);
            }
            if self.has_epolls && !self.failed {
                check("closing epoll instances", steps(crew, agent, [], close_epolls))?;
            }
            let open = self.open_descriptors(agent.process());
            if let Some(worker) = self.mapped[agent.process()] {
                let result = steps(crew, worker, open, |operation| unmap_all().min(close_open(operation)));
                check("unmapping, or closing descriptors", result)?;
            } else if open != [0; 3] {
                check("closing descriptors", steps(crew, agent, open, close_open))?;
            }
        }
        let path = &mut crew.operation(COORDINATOR).paths[0];
        self.directories.iter().try_for_each(|directory| self.remove_directory(path, directory))
    }

    /// Unlinks the names that the test could have created; only if something is left is the directory read.
    fn remove_directory(&self, scratch: &mut Path, directory: &str) -> Result<(), String> {
        for name in self.names.iter() {
            scratch.set(&[&self.prefix, directory, "/", name])?;
            match system_call(libc::SYS_unlink, [scratch.address()]) {
                result if result == -i64::from(libc::ENOENT) => {}
                result => check("removing a file", result)?,
            }
        }
        scratch.set(&[&self.prefix, directory])?;
        match system_call(libc::SYS_rmdir, [scratch.address()]) {
            result if result == -i64::from(libc::ENOTEMPTY) => {
                let path = [&self.prefix, directory].concat();
                std::fs::remove_dir_all(&path).map_err(|error| format!("removing {path}: {error}"))
            }
            result => check("removing a directory", result),
        }
    }
}

fn steps<const N: usize>(
    crew: &mut Crew<impl Execution<Operation = Operation>>,
    place: Place,
    arguments: [u64; N],
    steps: fn(&mut Operation) -> i64,
) -> i64 {
    crew.operation(place).steps(steps, arguments);
    crew.run(place, Marks::None)
}

/// Closes what [`Leftovers::open_descriptors`] says.
fn close_open(operation: &mut Operation) -> i64 {
    let [limit, first, end, ..] = operation.arguments;
    let mut result = 0;
    for (first, end) in [(0, limit), (first, end)] {
        if first < end {
            result = system_call(libc::SYS_close_range, [first, end - 1, 0]).min(result);
        }
    }
    result
}

/// As many as there may be; those of a window with a failed step are closed with all else.
fn close_epolls(_: &mut Operation) -> i64 {
    system_call(libc::SYS_close_range, [held::EPOLLS.start, held::EPOLLS.end - 1, 0])
}

fn unmap_all() -> i64 {
    system_call(libc::SYS_munmap, [reserved::BASE, reserved::SIZE_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_looked_for_as_far_as_the_lowest_free_ones_reach() {
        let mut leftovers = Leftovers::new("/w");
        assert_eq!(leftovers.descriptor_limit(), 0);
        leftovers.picks_descriptors(2);
        assert_eq!(leftovers.descriptor_limit(), 2);
        for descriptor in [3, 1] {
            leftovers.names_descriptor(descriptor);
        }
        // 0 to 3 may be taken by those that were named, and the two that were picked lie after.
        assert_eq!(leftovers.descriptor_limit(), 6);
        leftovers.picks_descriptors(100);
        assert_eq!(leftovers.descriptor_limit(), held::TEST_DESCRIPTORS);
    }

    #[test]
    fn only_what_may_be_open_is_closed() {
        let mut leftovers = Leftovers::new("/w");
        assert_eq!(leftovers.open_descriptors(0), [0; 3]);
        leftovers.names_descriptor(2);
        for descriptor in [43, 41, 48] {
            leftovers.holds(descriptor);
        }
        leftovers.lets_go(48);
        assert_eq!(leftovers.open_descriptors(0), [3, 41, 44]);
        assert_eq!(leftovers.open_descriptors(1), [3, 0, 0]);
        leftovers.failed();
        assert_eq!(leftovers.open_descriptors(1), [held::FIRST_PERMANENT, 0, 0]);
        leftovers.begin_window();
        assert_eq!(leftovers.open_descriptors(0), [0; 3]);
    }

    #[test]
    fn texts_are_held_once_and_forgotten() {
        let mut texts = Texts::default();
        assert!(texts.add("n0") && texts.add("") && texts.add("n") && !texts.add("n0") && !texts.add(""));
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["n0", "", "n"]);
        texts.clear();
        assert!(texts.iter().next().is_none() && texts.add("n0"));
    }

    #[test]
    fn paths_of_a_window_begin_with_its_number() {
        let mut leftovers = Leftovers::new("/w");
        leftovers.begin_window();
        leftovers.begin_window();
        assert_eq!(leftovers.prefix(), "/w/2.");
    }
}
