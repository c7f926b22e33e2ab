//! Random calls through the C library, one at a time by threads that take turns, of several users, in and out of transactions,
//! compared with `plain` call by call. Then the trees, and what is left when all is removed.
//!
//! `SCALEFS_DOOR_CALLS=10000000 cargo test --release -p scalefs-c --test random` makes so many calls, `SCALEFS_DOOR_SEED` says which. With
//! `RUSTFLAGS="--cfg fuzzing"` a fault is planted that leaves something behind, and must be found.
#![cfg(not(any(loom, shuttle, miri)))]

mod door;
mod more;
mod threads;

use call_language::{
    Answer, Bijection, Call, DataOperation, GROUPS, Operation, Outcome, Random, USERS, WINDOWS, data_scene, perform,
    scene, told,
};
use plain::{Limits, Plain, Process};
use posix_calls::{Credentials, Errno, Kind, ObjectOperations, Start, attributes, directories};
use scalefs_c::*;

use more::More;
use threads::{Job, Shared, Thread};

/// Calls of one sequence, on an instance of its own.
const CALLS_PER_SEQUENCE: usize = 200;
const THREADS: usize = 3;
/// More than threads: some cores are nobody's.
const CORES: u32 = 5;
const PAGES: u32 = 8192;
/// Maintenances after which all that was removed is free.
const ROUNDS: usize = 200;

/// One step of a sequence.
#[derive(Clone, Debug)]
enum Step {
    Call(Call, bool),
    More(usize, More),
    /// Calls on names of one user in a transaction, and whether it happens.
    Transaction(usize, Vec<Operation>, bool),
    Move(u32),
    Maintain,
}

/// Whether the library has a call for transactions: on names, by a path from the working directory.
fn is_offered_in_transactions(operation: &Operation) -> bool {
    let is_on_data = matches!(operation, Operation::Open(..) | Operation::List(_) | Operation::Data(_));
    let is_by_other_calls =
        matches!(operation, Operation::WorkingDirectory | Operation::ChangeOwner(..) | Operation::Link(_, _, true));
    !is_on_data && !is_by_other_calls
}

fn steps(random: &mut Random) -> Vec<(usize, Step)> {
    let owner = random.below(2);
    let begun = [data_scene(random, owner), scene(random, true)].concat();
    let mut steps: Vec<_> = begun.into_iter().map(|call| (0, Step::Call(call, false))).collect();
    while steps.len() < CALLS_PER_SEQUENCE {
        let step = match random.below(40) {
            0 => Step::Move(random.below(CORES as usize) as u32),
            1 => Step::Maintain,
            2..=4 => Step::More(owner, More::any(random)),
            5 | 6 => {
                let user = random.below(3);
                let (count, happens) = (1 + random.below(8), random.below(3) > 0);
                let calls = std::iter::repeat_with(|| Call::any(random, true).operation);
                // A number that `plain` gave out in what did not happen it gives out again.
                let is_told = |operation: &Operation| happens || !matches!(operation, Operation::Stat(..));
                let calls = calls.filter(is_offered_in_transactions).filter(is_told).take(count).collect();
                Step::Transaction(user, calls, happens)
            }
            _ => Step::Call(Call::of_names_and_data(random, true, owner, false), random.below(2) == 0),
        };
        steps.push((random.below(THREADS), step));
    }
    steps
}

/// `plain` with the same users.
#[derive(Clone)]
struct Reference {
    file_system: Plain,
    users: Vec<Process>,
}

impl Reference {
    fn new() -> Reference {
        let file_system = Plain::new(Limits::default(), || 0);
        let users = [0, 1, 2].map(|user| {
            let credentials = Credentials::new(USERS[user], USERS[user], GROUPS[user]).unwrap();
            Process::new(&file_system, credentials)
        });
        let reference = Reference { file_system, users: users.into() };
        let call = reference.file_system.begin(&reference.users[0]);
        attributes::change_mode(&call, Start::WorkingDirectory, b"/", 0o777).unwrap();
        reference
    }

    fn call(&self, user: usize, operation: &Operation) -> Outcome {
        perform(&self.file_system.begin(&self.users[user]), operation).map_err(Errno::number)
    }
}

/// The library's instance with its threads and users.
struct Library {
    shared: Shared,
    threads: Vec<Thread>,
    free_blocks: u64,
    free_inodes: u64,
    /// Which core each thread is.
    cores: Vec<u32>,
}

impl Library {
    fn new(seed: u64) -> Library {
        // SAFETY: handles are of the calls that give them out, here and below.
        let shared = unsafe {
            let instance = scalefs_create(24 << 20, PAGES, CORES, seed);
            assert!(!instance.is_null(), "{:?}", std::ffi::CStr::from_ptr(scalefs_reason()));
            let first = scalefs_attach(instance, 0);
            let users = [0, 1, 2].map(|user| {
                let groups = GROUPS[user];
                let (user, group_count) = (USERS[user], groups.len() as u32);
                let who = scalefs_credentials { user, group: user, group_count, groups: groups.as_ptr() };
                scalefs_process_new_as(first, &who)
            });
            assert_eq!(scalefs_chmod(first, users[0], c"/".as_ptr(), 0o777), 0);
            scalefs_detach(first);
            Shared { instance, users }
        };
        let cores: Vec<u32> = (0..THREADS as u32).collect();
        let threads = cores.iter().map(|core| Thread::start(shared, *core)).collect();
        let mut library = Library { shared, threads, free_blocks: 0, free_inodes: 0, cores };
        (library.free_blocks, library.free_inodes) = library.space();
        library
    }

    /// What is free. What one core gives up waits for all others, and a directory for those that were in it.
    fn space(&self) -> (u64, u64) {
        for thread in &self.threads {
            let _ = thread.ask(Job::Maintain);
        }
        // SAFETY: one core is nobody's; the threads wait for jobs.
        unsafe {
            let free = (0..CORES).find(|core| !self.cores.contains(core)).unwrap();
            let thread = scalefs_attach(self.shared.instance, free);
            let mut space = scalefs_space { struct_size: size_of::<scalefs_space>() as u32, ..Default::default() };
            assert_eq!(scalefs_statvfs(thread, self.shared.users[0], &mut space), 0);
            scalefs_detach(thread);
            (space.free_blocks, space.free_inodes)
        }
    }

    fn call(&self, thread: usize, user: usize, operation: &Operation, is_other_way: bool) -> Outcome {
        self.threads[thread].ask(Job::Call(user, operation.clone(), is_other_way))
    }

    /// Another core for a thread, unless one of them is it.
    fn go_on_as(&mut self, thread: usize, core: u32) {
        if !self.cores.contains(&core) {
            self.threads[thread].ask(Job::Move(core)).unwrap();
            self.cores[thread] = core;
        }
    }

    /// Removes all, gives all up, and says whether nothing is left.
    fn end(self) -> Option<String> {
        let by = |operation: &Operation| self.call(0, 0, operation, false);
        by(&Operation::ChangeDirectory("/".into())).unwrap();
        remove_below(".", &by);
        // SAFETY: the users' calls are over.
        unsafe {
            let free = (0..CORES).find(|core| !self.cores.contains(core)).unwrap();
            let thread = scalefs_attach(self.shared.instance, free);
            for user in &self.shared.users[1..] {
                assert_eq!(scalefs_process_exit(thread, *user), 0);
            }
            // The first has descriptors, which it gives up so.
            for fd in 0..1 << 12 {
                let _ = scalefs_close(thread, self.shared.users[0], fd);
            }
            scalefs_detach(thread);
        }
        let before = (self.free_blocks, self.free_inodes);
        let left = (0..ROUNDS).map(|_| self.space()).find(|left| *left == before).unwrap_or_else(|| self.space());
        let Library { shared, threads, .. } = self;
        drop(threads);
        // SAFETY: all threads have detached.
        assert_eq!(unsafe { scalefs_destroy(shared.instance) }, 0);
        (left != before)
            .then(|| format!("free blocks and inodes were {before:?}, and are {left:?} when all is removed"))
    }
}

fn remove_below(path: &str, by: &impl Fn(&Operation) -> Outcome) {
    let Ok(Answer::Names(names)) = by(&Operation::List(path.into())) else { return };
    for (name, kind) in names {
        let below = format!("{path}/{name}");
        if kind == Kind::Directory as u8 {
            remove_below(&below, by);
            let _ = by(&Operation::RemoveDirectory(below));
        } else {
            let _ = by(&Operation::Unlink(below));
        }
    }
}

/// Both, and which number of a file on one is which on the other.
struct Comparison {
    library: Library,
    reference: Reference,
    numbers: Bijection,
}

impl Comparison {
    fn differ(&mut self, ours: &Outcome, theirs: &Outcome) -> Option<String> {
        let is_same = self.numbers.same(ours, theirs);
        (!is_same).then(|| format!("gives {} through C, {} on plain", told(ours), told(theirs)))
    }

    fn both(&mut self, thread: usize, user: usize, operation: &Operation, is_other_way: bool) -> Option<String> {
        let ours = self.library.call(thread, user, operation, is_other_way);
        let theirs = self.reference.call(user, operation);
        self.differ(&ours, &theirs).map(|how| format!("{} of user {user} {how}", short(operation)))
    }

    fn step(&mut self, thread: usize, step: &Step) -> Option<String> {
        match step {
            Step::Call(call, is_other_way) => self.both(thread, call.user, &call.operation, *is_other_way),
            Step::More(user, operation) => {
                let ours = self.library.threads[thread].ask(Job::More(*user, operation.clone()));
                let Reference { file_system, users } = &self.reference;
                let theirs = operation.on_plain(file_system, &users[*user]).map_err(Errno::number);
                match (&ours, &theirs) {
                    (Ok(ours), Ok(theirs)) if ours != theirs && operation.is_of_the_clock(ours, theirs) => None,
                    _ => self.differ(&ours, &theirs).map(|how| format!("{operation:?} {how}")),
                }
            }
            Step::Transaction(user, operations, happens) => {
                let before = self.reference.clone();
                self.library.threads[thread].ask(Job::Begin(*user)).unwrap();
                for operation in operations {
                    if let Some(difference) = self.both(thread, *user, operation, false) {
                        return Some(format!("in a transaction {difference}"));
                    }
                }
                let end = if *happens { Job::Commit(*user) } else { Job::Abort(*user) };
                let ended = self.library.threads[thread].ask(end);
                if !happens {
                    self.reference = before;
                }
                (ended != Ok(Answer::Done)).then(|| format!("a transaction ends with {ended:?}"))
            }
            Step::Move(core) => {
                self.library.go_on_as(thread, *core);
                None
            }
            Step::Maintain => {
                let _ = self.library.threads[thread].ask(Job::Maintain);
                None
            }
        }
    }

    /// What is below a directory.
    fn trees(&mut self, path: &str) -> Option<String> {
        let theirs = self.reference.call(0, &Operation::List(path.into()));
        if let Some(difference) = self.both(0, 0, &Operation::List(path.into()), false) {
            return Some(difference);
        }
        let Ok(Answer::Names(names)) = theirs else { return None };
        names.iter().find_map(|(name, kind)| {
            let below = format!("{path}/{name}");
            let mut looks = vec![Operation::Stat(below.clone(), false), Operation::ReadLink(below.clone())];
            if *kind == Kind::Regular as u8 {
                looks.extend(WINDOWS.map(|at| Operation::Data(DataOperation::Contents(below.clone(), at))));
            }
            let differing = looks.iter().find_map(|look| self.both(1, 0, look, false));
            differing.or_else(|| if *kind == Kind::Directory as u8 { self.trees(&below) } else { None })
        })
    }
}

/// Makes the steps; what differs first, if something does.
fn difference(seed: u64, steps: &[(usize, Step)]) -> Option<String> {
    let mut comparison =
        Comparison { library: Library::new(seed), reference: Reference::new(), numbers: Bijection::default() };
    for (index, (thread, step)) in steps.iter().enumerate() {
        if let Some(difference) = comparison.step(*thread, step) {
            return Some(format!("step {index} of thread {thread}: {difference}"));
        }
    }
    let root = |user: &Process, file_system: &Plain| {
        let call = file_system.begin(user);
        directories::enter(&call, call.root()).unwrap();
    };
    root(&comparison.reference.users[0], &comparison.reference.file_system);
    comparison.library.call(0, 0, &Operation::ChangeDirectory("/".into()), false).unwrap();
    if let Some(difference) = comparison.trees(".") {
        return Some(format!("in the end {difference}"));
    }
    comparison.library.end()
}

/// A call for people: of names and paths that are long the start.
fn short(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}").replace(&"x/".repeat(100), "x/x..").replace(&"x".repeat(250), "x..");
    if text.len() <= 1000 { text } else { format!("{}...", text.chars().take(1000).collect::<String>()) }
}

fn number(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, expected a number")))
}

/// The first difference of some sequences, with the fewest steps that show it.
fn first_difference(seeds: std::ops::Range<u64>) -> Option<String> {
    for seed in seeds {
        let mut steps = steps(&mut Random::new(seed));
        if difference(seed, &steps).is_none() {
            continue;
        }
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.remove(at);
            if difference(seed, &fewer).is_some() { steps = fewer } else { at += 1 }
        }
        let lines: Vec<String> = steps.iter().map(|step| format!("  {}", short(step))).collect();
        let how = difference(seed, &steps).unwrap_or_default();
        return Some(format!("SCALEFS_DOOR_SEED={seed}: {how}\n{}", lines.join("\n")));
    }
    None
}

#[test]
fn calls_through_c_are_those_of_plain() {
    let calls = number("SCALEFS_DOOR_CALLS").unwrap_or(4_000);
    let first = number("SCALEFS_DOOR_SEED").unwrap_or(1) as u64;
    let sequences = calls.div_ceil(CALLS_PER_SEQUENCE) as u64;
    if let Some(difference) = first_difference(first..first + sequences) {
        panic!("{difference}");
    }
}

#[cfg(fuzzing)]
#[test]
fn what_is_left_behind_is_found() {
    sync::mutant::plant("refcache: a first count stays in the cache");
    let difference = first_difference(1..20).expect("a planted fault was missed");
    assert!(difference.contains("when all is removed"), "{difference}");
}
