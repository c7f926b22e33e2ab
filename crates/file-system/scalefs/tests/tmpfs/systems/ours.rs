//! The calls on ScaleFS: two cores in turn, maintenance now and then, tables that have to grow.

use std::ptr::NonNull;

use call_language::{Answer, Call, GROUPS, Operation, Outcome, USERS, perform};
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::{
    Credentials, DataOperations, Errno, Follow, ObjectOperations, Process, ScaleFs, ScaleFsConfig, Start, attributes,
    directories,
};
use sync::Spin;

use super::{System, Systems, left, remove_below};

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

impl Systems for Memory {
    const NAME: &'static str = "ScaleFS";

    fn with_empty<T>(
        &mut self,
        page_limit: Option<usize>,
        first_user: Credentials,
        test: impl FnOnce(Box<dyn System + '_>) -> T,
    ) -> T {
        let arena = Arena::create(&mut self.arena, ArenaConfig { core_count: 2, chunk_bytes: 4096 }).unwrap();
        let cores = [0, 1].map(|number| arena.claim(number, OwnerId::new(1).unwrap()).unwrap());
        let config = ScaleFsConfig {
            root_bucket_count: 2,
            directory_bucket_count: 1,
            count_slots_per_core: 8,
            ..ScaleFsConfig::default()
        };
        let base = NonNull::new(self.pages.as_mut_ptr()).unwrap();
        let page_count = page_limit.unwrap_or(AMPLE_PAGES) as u32;
        // SAFETY: the pages are this instance's as long as it is used.
        let pool = unsafe { PagePool::create(arena, base, page_count) }.unwrap();
        let fs = ScaleFs::create_with_pages(&cores[0], pool, config).unwrap();
        let others = [1, 2].map(|index| Credentials::new(USERS[index], USERS[index], GROUPS[index]).unwrap());
        let users = [first_user, others[0], others[1]];
        let processes = users.map(|user| Process::new(fs, &cores[0], user).unwrap()).into();
        let superuser = Process::new(fs, &cores[0], Credentials::SUPERUSER).unwrap();
        let verbs = fs.begin(&cores[0], superuser.context(), &Spin);
        let owner = (Some(first_user.user), Some(first_user.group));
        attributes::change_owner(&verbs, Start::WorkingDirectory, b"/", Follow::Symlinks, owner).unwrap();
        attributes::change_mode(&verbs, Start::WorkingDirectory, b"/", 0o777).unwrap();
        drop(verbs);
        test(Box::new(Ours { fs, cores, processes, superuser, is_bounded: page_limit.is_some() }))
    }
}

impl Ours<'_> {
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

    fn make(&self, core: &Core, process: &Process, operation: &Operation) -> Result<Answer, Errno> {
        let call = self.fs.enter(core, process, &Spin);
        let answer = perform(&call, operation)?;
        if let Operation::ChangeDirectory(_) = operation {
            // The users share the host's one working directory.
            for process in &self.processes {
                let other = self.fs.begin(core, process.context(), &Spin);
                directories::enter(&other, call.objects().working_directory())?;
            }
        }
        Ok(answer)
    }
}

impl System for Ours<'_> {
    fn call(&self, index: usize, call: &Call) -> Outcome {
        self.act(index, &self.processes[call.user], &call.operation)
    }

    fn by_superuser(&self, operation: &Operation) -> Outcome {
        self.act(0, &self.superuser, operation)
    }

    fn remains(mut self: Box<Self>) -> Option<String> {
        remove_below(&*self, ".");
        let processes = std::mem::take(&mut self.processes);
        let [core, _] = &self.cores;
        for process in processes {
            process.exit(self.fs, core, &Spin);
        }
        // A directory's end lets the one above it go, each behind a grace period of its own.
        (0..24).for_each(|_| self.settle());
        let space = attributes::space(&self.fs.begin(core, self.superuser.context(), &Spin)).unwrap();
        left(space)
    }
}
