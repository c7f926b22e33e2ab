//! What one domain owns, and what it does for others: steps of calls, each at once.
//!
//! **Nothing waits here.** A request is answered from what the owner has, or refused ([`Refusal::Busy`]) if an operation that is not
//! decided is in the way. What it brings with it, notices and posts, the owner sends before the answer.
//!
//! **Marks.** A prepared operation leaves a mark at each name and object that it changes. Who meets a mark looks at the line that
//! decides ([`Decisions`]): what is committed takes effect then and there, what is not yet is as if it were not.

mod deaths;
mod description;
mod descriptions;
mod families;
mod family;
mod file;
mod grants;
mod lending;
mod memory;
mod names;
mod object;
mod objects;
mod operations;
mod pipe;
mod pipes;
mod readers;
mod shard;
mod space;
mod split;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use messages::DomainNumber;
use posix_calls::{Kind, Permissions};

use crate::decisions::Decisions;
use crate::identity::{ObjectNumber, Target, domain_of_name, name_hash};
use crate::shared_pages::{OwnPage, Part};
use crate::wire::{NoticeKind, Obstacle, OperationNumber, Refusal, Reply, Request};

pub(crate) use crate::shared_pages::PAGE_BYTES;
use description::SharedDescription;
use family::Families;
use file::{File, Pages};
pub(crate) use grants::PAGES_PER_GRANT;
use object::{Body, Directory, Object};
pub(crate) use objects::{STAGED_BYTES, sum};
pub(crate) use pipe::most_that_fits;
use shard::Shard;
pub(crate) use space::FilePage;
use space::Space;

/// How much an owner has, and when it splits a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Objects with names in addition to the root, of each domain.
    pub inodes: u64,
    /// Pages of 4 KiB for data, of each domain.
    pub pages: u64,
    /// A directory of more names than this is split over all domains.
    pub split_above: usize,
    /// So is one that other domains than its home have changed more often than this.
    pub split_after: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { inodes: u64::MAX, pages: u64::MAX, split_above: 256, split_after: 1000 }
    }
}

/// What goes out before the answer.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// To readers.
    pub(crate) notices: Vec<(DomainNumber, NoticeKind)>,
    /// To other owners, or this one.
    pub(crate) posts: Vec<(DomainNumber, Request)>,
    /// Directories that are to be split, once it is clear that all domains are there.
    pub(crate) splits: Vec<ObjectNumber>,
    /// Lines of the pool that were looked at.
    pub(crate) lines_read: u32,
}

/// Where an operation has left a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Name(ObjectNumber, Vec<u8>),
    Held(ObjectNumber, Vec<u8>),
    Object(ObjectNumber),
    Closing(ObjectNumber),
}

/// An owner.
pub(crate) struct Server {
    own: DomainNumber,
    domain_count: usize,
    decisions: Rc<dyn Decisions>,
    clock: fn() -> u64,
    limits: Limits,
    objects: HashMap<ObjectNumber, Object>,
    shards: HashMap<ObjectNumber, Shard>,
    /// Parts of directories that are on their way here.
    arriving: HashMap<ObjectNumber, Vec<(Vec<u8>, Target)>>,
    marks: HashMap<OperationNumber, Vec<Place>>,
    last_number: u64,
    last_stamp: u64,
    pages: Pages,
    inodes: u64,
    /// Who moves directories, at domain 0.
    mover: Option<DomainNumber>,
    /// Bytes of writes whose end has not come.
    staged: HashMap<(DomainNumber, ObjectNumber), Vec<u8>>,
    /// Of files here that several domains have open.
    descriptions: HashMap<ObjectNumber, SharedDescription>,
    families: Families,
    /// The memory of this domain's processes.
    spaces: BTreeMap<u64, Space>,
    last_space: u64,
    /// Where data lie for others, if domains share memory.
    part: Option<Rc<Part>>,
    /// Pages that a domain reads of a file here.
    grants: HashMap<(ObjectNumber, DomainNumber), Vec<Rc<OwnPage>>>,
    /// What is in the way of the request that is served.
    obstacle: Option<Obstacle>,
    /// By asker: what is in the way of its last request, if that was refused as busy.
    obstacles: HashMap<DomainNumber, Obstacle>,
    /// Domains that are known to have ended.
    ended: HashSet<DomainNumber>,
    pub(crate) outgoing: Outgoing,
}

/// An answer, or why there is none.
type Served = Result<Reply, Refusal>;

impl Server {
    pub(crate) fn new(
        own: DomainNumber,
        domain_count: usize,
        decisions: Rc<dyn Decisions>,
        clock: fn() -> u64,
        limits: Limits,
    ) -> Server {
        let mut server = Server {
            own,
            domain_count,
            decisions,
            clock,
            limits,
            objects: HashMap::new(),
            shards: HashMap::new(),
            arriving: HashMap::new(),
            marks: HashMap::new(),
            // The root has 1.
            last_number: 1,
            last_stamp: 0,
            pages: Pages { used: 0, limit: limits.pages },
            inodes: 0,
            mover: None,
            staged: HashMap::new(),
            descriptions: HashMap::new(),
            families: Families::default(),
            spaces: BTreeMap::new(),
            last_space: 0,
            part: None,
            grants: HashMap::new(),
            obstacle: None,
            obstacles: HashMap::new(),
            ended: HashSet::new(),
            outgoing: Outgoing::default(),
        };
        if ObjectNumber::ROOT.home() == own {
            let directory = Directory { parent: ObjectNumber::ROOT, moves: 0, is_split: false };
            let permissions = Permissions { mode: 0o755, user: 0, group: 0 };
            let mut root = Object::new(Body::Directory(directory), permissions, server.now_ns());
            root.references = 1;
            server.objects.insert(ObjectNumber::ROOT, root);
            server.shards.insert(ObjectNumber::ROOT, Shard::new(ObjectNumber::ROOT, domain_count));
        }
        server
    }

    /// Whether some operation has left marks that it has not taken away.
    pub(crate) fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether an operation was committed: by a look at its line.
    fn is_committed(&mut self, operation: OperationNumber) -> bool {
        self.outgoing.lines_read += 1;
        self.decisions.is_committed(operation)
    }

    fn now_ns(&self) -> i64 {
        (self.clock)() as i64
    }

    /// The names of a directory here, if that of a name is among them and not lent.
    fn shard_of(&mut self, directory: ObjectNumber, name: &[u8]) -> Result<&mut Shard, Refusal> {
        let is_split = self.is_split_here(directory);
        let is_elsewhere = || domain_of_name(name_hash(directory, name), self.domain_count) != self.own;
        if is_split == Some(true) && is_elsewhere() && !self.has_borrowed(directory, name) {
            return Err(Refusal::Elsewhere);
        }
        self.claim(directory, name)?;
        self.shards.get_mut(&directory).ok_or(Refusal::Elsewhere)
    }

    /// Whether a directory whose home is here is split.
    fn is_split_here(&self, directory: ObjectNumber) -> Option<bool> {
        Some(self.objects.get(&directory)?.directory()?.is_split)
    }

    /// A number that no name of any domain has had.
    fn next_stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp * self.domain_count as u64 + u64::from(self.own.0)
    }

    /// Serves a request of a domain, which may be this one.
    pub(crate) fn serve(&mut self, from: DomainNumber, request: Request) -> Reply {
        let reply = self.answer(from, request).unwrap_or_else(|why| Reply::Refused { why });
        match self.obstacle.take() {
            Some(obstacle) if reply == (Reply::Refused { why: Refusal::Busy }) => {
                self.obstacles.insert(from, obstacle);
            }
            // Who asks what is in the way asks about the request before.
            _ if matches!(reply, Reply::InTheWay { .. }) => {}
            _ => {
                self.obstacles.remove(&from);
            }
        }
        reply
    }

    /// Refuses what is asked until something is out of the way.
    fn busy(&mut self, obstacle: Obstacle) -> Refusal {
        self.obstacle = Some(obstacle);
        Refusal::Busy
    }

    /// Refuses what is asked until an operation is decided.
    fn undecided(&mut self, operation: OperationNumber) -> Refusal {
        self.busy(Obstacle::Operation { operation })
    }

    /// What was in the way of a domain's last request that was refused as busy.
    pub(crate) fn obstacle_of(&self, asker: DomainNumber) -> Option<Obstacle> {
        self.obstacles.get(&asker).cloned()
    }

    /// Refuses what is asked until a directory is split, or what is under way in it is decided.
    fn until_quiet(&mut self, directory: ObjectNumber) -> Refusal {
        let is_of = |place: &Place| match place {
            Place::Name(of, _) | Place::Held(of, _) | Place::Closing(of) => *of == directory,
            Place::Object(_) => false,
        };
        let under_way =
            self.marks.iter().filter(|(_, places)| places.iter().any(is_of)).map(|(operation, _)| *operation);
        match under_way.min() {
            Some(operation) => self.undecided(operation),
            None => self.busy(Obstacle::Split {}),
        }
    }

    fn answer(&mut self, from: DomainNumber, request: Request) -> Served {
        match request {
            Request::LookUp { directory, name, keeps, borrows } => {
                self.look_up(from, (directory, &name.0), keeps, borrows)
            }
            Request::Attributes { object, fields } => self.attributes(object, fields),
            Request::Permissions { object, keeps } => self.permissions(from, object, keeps),
            Request::LinkTarget { object } => self.link_target(object),
            Request::Device { object } => self.device(object),
            Request::State { directory, keeps } => self.state(from, directory, keeps),
            Request::Retain { object, need } => self.retain(object, need),
            Request::Release { object, end } => self.release(object, end),
            Request::ChangePermissions { object, change, caller } => {
                self.change_permissions(from, object, change, &caller)
            }
            Request::SetTimes { object, right, times, caller } => self.set_times(object, right, times, &caller),
            Request::Create { directory, name, kind, target, device, permissions, retain } => {
                let object = NewParts { kind, target: target.0, device, permissions };
                self.create(from, directory, &name.0, object, retain)
            }
            Request::List { directory, from, most_bytes, is_split } => self.list(directory, from, most_bytes, is_split),
            Request::Apply { parts, borrows } => self.apply(from, parts, borrows),
            Request::Prepare { operation, parts } => self.prepare(from, operation, parts),
            Request::Decide { operation, commit } => self.decide(from, operation, commit),
            Request::TakeMoves {} => self.take_moves(from),
            Request::GiveMoves {} => self.give_moves(from),
            Request::TakePart { directory, names, is_last } => self.take_part(directory, names, is_last),
            Request::Read { file, offset, length } => self.read(file, offset, length),
            Request::Write { file, offset, bytes, more, caller } => {
                self.write(from, (file, offset), (bytes.0, more), &caller)
            }
            Request::Resize { file, size_bytes } => self.resize(file, size_bytes),
            Request::Extent { file, offset } => self.extent(file, offset),
            Request::Space {} => Ok(self.space()),
            Request::OpenEnd { pipe, end } => self.open_end(pipe, end),
            Request::ReadPipe { pipe, length } => self.read_pipe(pipe, length),
            Request::PeekPipe { pipe, skip, length } => self.peek_pipe(pipe, skip, length),
            Request::WritePipe { pipe, bytes, more } => self.write_pipe(from, pipe, bytes.0, more),
            Request::PipeState { pipe, end } => self.pipe_state(pipe, end),
            Request::Share { file, end, state } => self.share(file, end, state),
            Request::Join { description } => self.join(description),
            Request::Leave { description } => self.leave(description),
            Request::TakeBack { description } => self.take_back(description),
            Request::DescriptionState { description, locks } => self.description_state(from, description, locks),
            Request::Unlock { description, offset } => self.unlock(from, description, offset),
            Request::SetStatus { description, status } => self.set_status(description, status),
            Request::ReadShared { description, length } => self.read_shared(description, length),
            Request::WriteShared { description, bytes, more, caller } => {
                self.write_shared(from, description, (bytes.0, more), &caller)
            }
            Request::SeekShared { description, offset, whence } => self.seek_shared(description, offset, whence),
            Request::Adopt { parent } => Ok(self.adopt_child(parent)),
            Request::End { process, ended } => Ok(self.end_child(process, ended)),
            Request::Children { parent } => Ok(self.children(parent)),
            Request::Recall { directory, name } => self.recall(from, directory, &name.0),
            Request::GiveBack { directory, name, target, stamp } => {
                self.take_name_back(from, directory, &name.0, (target, stamp))
            }
            Request::Acquire { file, keep, direct } => self.acquire(from, file, keep, direct),
            Request::Grant { file, first } => self.grant(from, file, first, true),
            Request::EndGrant { file } => self.end_grant(from, file),
            Request::LetKnow { file, pages, end, modified_ns, caller } => {
                self.take_released(from, file, pages, (end, modified_ns), &caller)
            }
            Request::InTheWay {} => Ok(Reply::InTheWay { obstacle: self.obstacle_of(from) }),
            Request::TakeEnded { parent, child } => Ok(self.take_ended(parent, child)),
        }
    }

    /// A number that nothing here has had.
    fn next_number(&mut self) -> ObjectNumber {
        self.last_number += 1;
        ObjectNumber::new(self.own, self.last_number)
    }

    /// Makes an object here that nothing leads to yet; `None` without an inode.
    pub(crate) fn make(&mut self, parent: ObjectNumber, parts: NewParts) -> Option<Target> {
        if self.inodes == self.limits.inodes {
            return None;
        }
        let kind = parts.kind;
        let body = match kind {
            Kind::Regular => Body::File(File::default()),
            Kind::Directory => Body::Directory(Directory { parent, moves: 0, is_split: false }),
            Kind::Symlink => Body::Symlink(parts.target),
            kind => Body::Outside(kind, parts.device),
        };
        self.inodes += 1;
        let number = self.next_number();
        self.objects.insert(number, Object::new(body, parts.permissions, self.now_ns()));
        if kind == Kind::Directory {
            self.shards.insert(number, Shard::new(number, self.domain_count));
        }
        Some(Target { number, kind })
    }

    /// An object that was made here gets no name.
    pub(crate) fn unmake(&mut self, number: ObjectNumber) {
        if let Some(object) = self.objects.get_mut(&number) {
            (object.links, object.references) = (0, 0);
        }
        // No one has known of a directory above it.
        self.forget_unused(number, false);
    }

    /// Forgets an object if nothing leads to it. A directory that had a name lets its parent go.
    fn forget_unused(&mut self, number: ObjectNumber, keeps_parent: bool) {
        if !self.objects.get(&number).is_some_and(Object::is_unused) {
            return;
        }
        let Some(object) = self.objects.remove(&number) else { return };
        self.inodes -= u64::from(object.body.kind() != Kind::Pipe);
        match object.body {
            Body::File(file) => self.pages.used -= file.page_count(),
            Body::Directory(directory) => {
                self.shards.remove(&number);
                if keeps_parent && directory.parent != ObjectNumber::ROOT {
                    let release = Request::Release { object: directory.parent, end: None };
                    self.outgoing.posts.push((directory.parent.home(), release));
                }
            }
            Body::Symlink(_) | Body::Pipe(_) | Body::Outside(..) => {}
        }
    }
}

/// What an object is made of.
#[derive(Clone, Debug)]
pub(crate) struct NewParts {
    pub(crate) kind: Kind,
    /// Of a symbolic link.
    pub(crate) target: Vec<u8>,
    /// Of a name for what lies outside.
    pub(crate) device: u64,
    pub(crate) permissions: Permissions,
}
