//! The calls on ScaleFS: two cores in turn, maintenance now and then, tables that have to grow.

use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::attributes::{self, Access};
use scalefs::data::{self, DescriptorOptions};
use scalefs::{
    Credentials, DataOperations, Errno, Fields, Follow, Kind, ObjectOperations, OpenFlags, Process, ScaleFs,
    ScaleFsConfig, Start,
};
use scalefs::{directories, names};
use sync::Spin;

use crate::calls::{Answer, Call, GROUPS, Operation, Outcome, USERS};
use crate::ours_data::{self, answer_status};

/// An instance with a process of every user, which all work in one directory.
pub struct Ours<'a> {
    fs: &'a ScaleFs,
    cores: [Core<'a>; 2],
    processes: Vec<Process>,
    /// For what is no call that is compared.
    superuser: Process,
    is_bounded: bool,
}

/// Pages of an instance that is not to run out of them.
const AMPLE_PAGES: usize = 4096;

/// Memory for one instance after the other.
pub struct Memory {
    arena: HeapRegion,
    pages: HeapRegion,
}

impl Memory {
    pub fn new() -> Memory {
        let [arena, pages] = [32 << 20, AMPLE_PAGES * PAGE_BYTES].map(|bytes| HeapRegion::new(bytes).unwrap());
        Memory { arena, pages }
    }
}

/// Runs `test` on an empty instance whose root everybody may write and the first user owns. If it has a limit of pages,
/// space that a call gives up is free for the next one.
pub fn with_instance<T>(
    memory: &mut Memory,
    page_limit: Option<usize>,
    first_user: Credentials,
    test: impl FnOnce(Ours) -> T,
) -> T {
    let arena = Arena::create(&mut memory.arena, ArenaConfig { core_count: 2, chunk_bytes: 4096 }).unwrap();
    let cores = [0, 1].map(|number| arena.claim(number, OwnerId::new(1).unwrap()).unwrap());
    let config = ScaleFsConfig {
        root_bucket_count: 2,
        directory_bucket_count: 1,
        count_slots_per_core: 8,
        ..ScaleFsConfig::default()
    };
    let base = NonNull::new(memory.pages.as_mut_ptr()).unwrap();
    let page_count = page_limit.unwrap_or(AMPLE_PAGES) as u32;
    // SAFETY: the pages are this instance's as long as it is used.
    let pool = unsafe { PagePool::create(arena, base, page_count) }.unwrap();
    let fs = ScaleFs::create_with_pages(&cores[0], pool, config).unwrap();
    let others = [1, 2].map(|index| Credentials::new(USERS[index], USERS[index], GROUPS[index]).unwrap());
    let users = [first_user, others[0], others[1]];
    let processes = users.map(|user| Process::new(fs, &cores[0], user)).into();
    let superuser = Process::new(fs, &cores[0], Credentials::SUPERUSER);
    let verbs = fs.begin(&cores[0], superuser.context(), &Spin);
    let owner = (Some(first_user.user), Some(first_user.group));
    attributes::change_owner(&verbs, Start::WorkingDirectory, b"/", Follow::Symlinks, owner).unwrap();
    attributes::change_mode(&verbs, Start::WorkingDirectory, b"/", 0o777).unwrap();
    drop(verbs);
    test(Ours { fs, cores, processes, superuser, is_bounded: page_limit.is_some() })
}

fn follow(follow: bool) -> Follow {
    if follow { Follow::Symlinks } else { Follow::Nothing }
}

impl Ours<'_> {
    /// The call with this number in its sequence.
    pub fn call(&self, index: usize, call: &Call) -> Outcome {
        self.act(index, &self.processes[call.user], &call.operation)
    }

    fn act(&self, index: usize, process: &Process, operation: &Operation) -> Outcome {
        let core = &self.cores[index / 3 % 2];
        let outcome = self.make(core, process, operation).map_err(Errno::number);
        if self.is_bounded {
            self.settle();
        } else if index.is_multiple_of(8) {
            self.fs.maintain(core, &Spin);
        }
        outcome
    }

    /// Lets all that is deferred happen.
    fn settle(&self) {
        for _ in 0..6 {
            self.cores.iter().for_each(|core| self.fs.maintain(core, &Spin));
        }
    }

    /// Closes and removes everything; what then is left, if there is something.
    pub fn remains(mut self) -> Option<String> {
        self.remove_below(".");
        let processes = std::mem::take(&mut self.processes);
        let [core, _] = &self.cores;
        for process in processes {
            process.exit(self.fs, core, &Spin);
        }
        // A directory's end lets the one above it go, each behind a grace period of its own.
        (0..24).for_each(|_| self.settle());
        let space = attributes::space(&self.fs.begin(core, self.superuser.context(), &Spin)).unwrap();
        let (inodes, pages) = (space.inodes - space.free_inodes, space.blocks - space.free_blocks);
        (inodes + pages > 0).then(|| format!("{inodes} inodes and {pages} pages are left when all is removed"))
    }

    fn remove_below(&self, path: &str) {
        let by_root = |operation| self.act(0, &self.superuser, &operation);
        let Ok(Answer::Names(names)) = by_root(Operation::List(path.into())) else { panic!("{path} is a directory") };
        for (name, kind) in names {
            let below = format!("{path}/{name}");
            let removed = if kind == Kind::Directory as u8 {
                self.remove_below(&below);
                by_root(Operation::RemoveDirectory(below))
            } else {
                by_root(Operation::Unlink(below))
            };
            removed.unwrap();
        }
    }

    fn make(&self, core: &Core, process: &Process, operation: &Operation) -> Result<Answer, Errno> {
        let in_process = self.fs.enter(core, process, &Spin);
        let verbs = in_process.objects();
        let at = Start::WorkingDirectory;
        let done = |()| Answer::Done;
        match operation {
            Operation::Open(path, flags, mode) => {
                let fd = data::open(&in_process, at, path.as_bytes(), *flags, *mode, DescriptorOptions::PLAIN)?;
                data::close(&in_process, fd).map(done)
            }
            Operation::MakeDirectory(path, mode) => {
                directories::make_directory(verbs, at, path.as_bytes(), *mode).map(done)
            }
            Operation::RemoveDirectory(path) => directories::remove_directory(verbs, at, path.as_bytes()).map(done),
            Operation::Symlink(target, path) => names::symlink(verbs, target.as_bytes(), at, path.as_bytes()).map(done),
            Operation::ReadLink(path) => {
                names::read_link(verbs, at, path.as_bytes()).map(|target| Answer::Text(target.to_vec()))
            }
            Operation::Link(old, new, follows) => {
                names::link(verbs, (at, old.as_bytes()), (at, new.as_bytes()), follow(*follows)).map(done)
            }
            Operation::Unlink(path) => names::unlink(verbs, at, path.as_bytes()).map(done),
            Operation::Rename(old, new, mode) => {
                names::rename(verbs, (at, old.as_bytes()), (at, new.as_bytes()), *mode).map(done)
            }
            Operation::Stat(path, follows) => {
                let status = attributes::stat(verbs, at, path.as_bytes(), follow(*follows), Fields::ALL)?;
                Ok(answer_status(&status))
            }
            Operation::Access(path, bits) => {
                let wanted = Access { read: bits & 4 != 0, write: bits & 2 != 0, execute: bits & 1 != 0 };
                attributes::access(verbs, at, path.as_bytes(), Follow::Symlinks, wanted).map(done)
            }
            Operation::ChangeMode(path, mode) => attributes::change_mode(verbs, at, path.as_bytes(), *mode).map(done),
            Operation::ChangeOwner(path, follows, user, group) => {
                attributes::change_owner(verbs, at, path.as_bytes(), follow(*follows), (*user, *group)).map(done)
            }
            Operation::ChangeDirectory(path) => {
                directories::change_directory(verbs, at, path.as_bytes())?;
                // The users share the host's one working directory.
                for process in &self.processes {
                    let other = self.fs.begin(core, process.context(), &Spin);
                    directories::enter(&other, verbs.working_directory())?;
                }
                Ok(Answer::Done)
            }
            Operation::WorkingDirectory => {
                let mut buffer = [0; 4096];
                directories::working_directory_path(verbs, &mut buffer).map(|path| Answer::Text(path.to_vec()))
            }
            Operation::List(path) => {
                let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
                let node = names::open(verbs, at, path.as_bytes(), flags, 0)?.handle;
                let mut listed = Vec::new();
                directories::read_directory(verbs, verbs.held(&node), 0, |entry| {
                    listed.push((String::from_utf8(entry.name.to_vec()).unwrap(), entry.kind as u8));
                    true
                })?;
                names::close(verbs, node);
                listed.retain(|(name, _)| name != "." && name != "..");
                listed.sort();
                Ok(Answer::Names(listed))
            }
            Operation::Data(operation) => ours_data::make(&in_process, operation),
            Operation::DirectoryLinks(path) => {
                let status = attributes::stat(verbs, at, path.as_bytes(), Follow::Symlinks, Fields::LINK_COUNT)?;
                Ok(Answer::Text(status.link_count.to_string().into_bytes()))
            }
        }
    }
}
