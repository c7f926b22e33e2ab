//! The calls on domains: a process of each user in each, calls from one domain after the other.

use std::rc::Rc;

use call_language::{Answer, Call, GROUPS, Operation, Outcome, USERS, perform};
use domains::{Decisions, Level, Limits, OneThread, OwnPages, PoolLines, Process, SharedPages, Techniques};
use messages::simulated::RingSizes;
use pool::emulated::{self, Emulated};
use posix_calls::{Credentials, Errno, ObjectOperations, attributes, directories};

use crate::systems::{System, Systems, left, remove_below};

/// File systems of this many domains.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub domain_count: usize,
    pub split_above: usize,
    pub split_after: u64,
    pub rings: RingSizes,
    pub techniques: Techniques,
    /// The lines of decisions lie in emulated memory without coherence, whose adversary has this seed.
    pub pool_seed: Option<u64>,
    /// Each call of a user comes from another domain. Else all calls of a user come from one, as those on descriptors
    /// must.
    pub wanders: bool,
    /// All calls come from this domain, at level `close-to-open`, with this many pages for data that domains share:
    /// within a domain that level is POSIX.
    pub alone: Option<(usize, u32)>,
}

impl Spread {
    pub fn new(domain_count: usize) -> Spread {
        Spread {
            domain_count,
            split_above: usize::MAX,
            split_after: u64::MAX,
            rings: RingSizes::default(),
            techniques: Techniques::default(),
            pool_seed: None,
            wanders: true,
            alone: None,
        }
    }
}

/// An instance with its users.
struct Users {
    file_system: OneThread,
    /// By domain, then by user; the last is the superuser, for what is no call that is compared.
    processes: Vec<Vec<Process>>,
    wanders: bool,
    alone: Option<usize>,
    memory: Option<Emulated>,
}

impl Systems for Spread {
    const NAME: &'static str = "Spread";

    fn with_empty<T>(
        &mut self,
        page_limit: Option<usize>,
        first_user: Credentials,
        test: impl FnOnce(Box<dyn System + '_>) -> T,
    ) -> T {
        let pages = page_limit.map_or(1 << 40, |pages| pages as u64);
        let limits = Limits { pages, inodes: 1 << 40, split_above: self.split_above, split_after: self.split_after };
        let memory = self.pool_seed.map(|seed| {
            let size_bytes = PoolLines::<emulated::Domain>::size_bytes(self.domain_count);
            Emulated::new(size_bytes, self.domain_count, seed).unwrap()
        });
        let file_system = match &memory {
            None => OneThread::with_rings(self.domain_count, self.rings, limits, || 0),
            Some(memory) => {
                let of_domain = |number| {
                    Rc::new(PoolLines::new(memory.domain(number), 0, self.domain_count).unwrap()) as Rc<dyn Decisions>
                };
                OneThread::with_decisions((0..self.domain_count).map(of_domain), self.rings, limits, || 0)
            }
        };
        let others = [1, 2].map(|index| Credentials::new(USERS[index], USERS[index], GROUPS[index]).unwrap());
        let users = [first_user, others[0], others[1], Credentials::SUPERUSER];
        let processes = (0..self.domain_count).map(|_| users.map(Process::new).into()).collect();
        if let Some((_, pages)) = self.alone {
            let pages: Rc<dyn SharedPages> = Rc::new(OwnPages::new(self.domain_count, pages));
            for domain in (0..self.domain_count).map(|number| file_system.domain(number)) {
                domain.use_level(Level::CloseToOpen);
                domain.use_pages(Rc::clone(&pages));
            }
        }
        let alone = self.alone.map(|(domain, _)| domain);
        let system = Users { file_system, processes, wanders: self.wanders, alone, memory };
        for domain in 0..self.domain_count {
            system.file_system.domain(domain).use_techniques(self.techniques);
        }
        let owner = Operation::ChangeOwner("/".into(), true, Some(first_user.user), Some(first_user.group));
        system.by_superuser(&owner).unwrap();
        system.by_superuser(&Operation::ChangeMode("/".into(), 0o777)).unwrap();
        test(Box::new(system))
    }
}

impl Users {
    fn make(&self, domain: usize, user: usize, operation: &Operation) -> Result<Answer, Errno> {
        let process = &self.processes[domain][user];
        let answer = self.file_system.domain(domain).call(process, |call| perform(call, operation))?;
        if let Operation::ChangeDirectory(_) = operation {
            // The users share the host's one working directory, wherever their calls come from.
            let place = self.file_system.domain(domain);
            let call = place.begin(process);
            let directory = call.working_directory();
            for (number, processes) in self.processes.iter().enumerate() {
                let other = self.file_system.domain(number);
                for process in processes {
                    let begun = other.begin(process);
                    let node = begun.of_other_call(directory);
                    directories::enter(&begun, node)?;
                }
            }
        }
        Ok(answer)
    }
}

impl System for Users {
    fn call(&self, index: usize, call: &Call) -> Outcome {
        let count = self.processes.len();
        // Not in turn: that calls of one domain follow each other matters, too.
        let domain = if let Some(domain) = self.alone {
            domain
        } else if self.wanders {
            (index * 7 + index / 3) % count
        } else {
            call.user % count
        };
        self.make(domain, call.user, &call.operation).map_err(Errno::number)
    }

    fn by_superuser(&self, operation: &Operation) -> Outcome {
        self.make(0, USERS.len(), operation).map_err(Errno::number)
    }

    fn remains(self: Box<Self>) -> Option<String> {
        remove_below(&*self, ".");
        let Users { file_system, processes, memory, .. } = *self;
        for (domain, processes) in processes.into_iter().enumerate() {
            processes.into_iter().for_each(|process| process.exit(&file_system.domain(domain)));
        }
        file_system.settle();
        let process = Process::new(Credentials::SUPERUSER);
        if let Some(report) = memory.and_then(|memory| wrong(&memory)) {
            return Some(report);
        }
        left(file_system.domain(0).call(&process, attributes::space).unwrap())
    }
}

/// What the checker of the memory says of a wrong value; what only costs time is no fault here: a line may be looked at twice.
fn wrong(memory: &Emulated) -> Option<String> {
    memory.reports().into_iter().find(|report| !report.kind.is_waste()).map(|report| report.to_string())
}
