//! The state of an instance, and what becomes of objects that nothing leads to.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use posix_calls::Permissions;

use crate::lock_state::Locks;
use crate::object::{Body, Directory, Number, Object, PAGE_BYTES};
use crate::process_state::{Children, OpenFile, Space};

pub(crate) const ROOT: Number = 1;

/// How much there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Files, directories and symbolic links beside the root.
    pub inodes: u64,
    /// Pages of 4 KiB for data.
    pub pages: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { inodes: u64::MAX, pages: u64::MAX }
    }
}

/// All objects and open file descriptions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<Number, Object>,
    /// The number made last.
    made: Number,
    pub(crate) open_files: BTreeMap<u64, OpenFile>,
    opened: u64,
    next_cookie: u64,
    /// Sockets by name.
    pub(crate) socket_names: BTreeMap<Vec<u8>, Number>,
    /// The memory of processes.
    pub(crate) spaces: BTreeMap<u64, Space>,
    made_spaces: u64,
    /// Of processes that run, by number.
    pub(crate) children: BTreeMap<u64, Children>,
    made_processes: u64,
    /// Of files that have any.
    pub(crate) locks: BTreeMap<Number, Vec<Locks>>,
    /// By process that waits for a lock: the process that has it, and of which file.
    pub(crate) waits: BTreeMap<u64, (u64, Number)>,
    pub(crate) limits: Limits,
    pub(crate) used: Limits,
}

/// A file system in ordinary maps. A value is one state of it.
#[derive(Clone, Debug)]
pub struct Plain {
    pub(crate) state: RefCell<State>,
    pub(crate) clock: fn() -> u64,
    /// Operations that still succeed, if there is a limit.
    pub(crate) successes_left: Cell<Option<u32>>,
    pub(crate) takes_shortcuts: Cell<bool>,
}

impl PartialEq for Plain {
    fn eq(&self, other: &Plain) -> bool {
        self.state == other.state
    }
}

impl Eq for Plain {}

impl Hash for Plain {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.borrow().hash(hasher);
    }
}

impl Default for Plain {
    /// Without limits, at a time that stands still.
    fn default() -> Plain {
        Plain::new(Limits::default(), || 0)
    }
}

impl Plain {
    /// An empty file system, whose root belongs to user 0; `clock` tells nanoseconds since 1970.
    pub fn new(limits: Limits, clock: fn() -> u64) -> Plain {
        let directory = Directory { names: BTreeMap::new(), parent: ROOT, moves: 0 };
        let permissions = Permissions { mode: 0o755, user: 0, group: 0 };
        let state = State {
            objects: BTreeMap::new(),
            made: ROOT,
            open_files: BTreeMap::new(),
            opened: 0,
            next_cookie: 2,
            socket_names: BTreeMap::new(),
            spaces: BTreeMap::new(),
            made_spaces: 0,
            children: BTreeMap::new(),
            made_processes: 0,
            locks: BTreeMap::new(),
            waits: BTreeMap::new(),
            limits,
            used: Limits { inodes: 0, pages: 0 },
        };
        let file_system = Plain {
            state: RefCell::new(state),
            clock,
            successes_left: Cell::new(None),
            takes_shortcuts: Cell::new(false),
        };
        let mut root = file_system.object(Body::Directory(directory), permissions);
        root.references = 1;
        file_system.state.borrow_mut().objects.insert(ROOT, root);
        file_system
    }

    /// Lets so many operations succeed, and no other afterwards; `None`: all.
    pub fn fail_after(&self, successes: Option<u32>) {
        self.successes_left.set(successes);
    }

    /// How many operations still succeed, if there is a limit.
    pub fn successes_left(&self) -> Option<u32> {
        self.successes_left.get()
    }

    /// Whether calls take the compound operations that an implementation may leave out.
    pub fn take_shortcuts(&self, takes: bool) {
        self.takes_shortcuts.set(takes);
    }

    /// An object of one link, made now.
    pub(crate) fn object(&self, body: Body, permissions: Permissions) -> Object {
        let now = self.now_ns() as i64;
        let [accessed_ns, modified_ns, changed_ns] = [now; 3];
        Object {
            body,
            permissions,
            links: 1,
            is_named: true,
            references: 0,
            accessed_ns,
            modified_ns,
            changed_ns,
            extended: BTreeMap::new(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        (self.clock)()
    }
}

impl State {
    pub(crate) fn get(&self, number: Number) -> &Object {
        self.objects.get(&number).expect("objects stay while something leads to them")
    }

    pub(crate) fn get_mut(&mut self, number: Number) -> &mut Object {
        self.objects.get_mut(&number).expect("objects stay while something leads to them")
    }

    pub(crate) fn directory(&self, number: Number) -> &Directory {
        match &self.get(number).body {
            Body::Directory(directory) => directory,
            other => panic!("only directories have names, and this is {:?}", other.kind()),
        }
    }

    pub(crate) fn directory_mut(&mut self, number: Number) -> &mut Directory {
        match &mut self.get_mut(number).body {
            Body::Directory(directory) => directory,
            other => panic!("only directories have names, and this is {:?}", other.kind()),
        }
    }

    /// Adds an object if there may be one more.
    pub(crate) fn add(&mut self, object: Object) -> Option<Number> {
        if object.body.is_limited() {
            if self.used.inodes == self.limits.inodes {
                return None;
            }
            self.used.inodes += 1;
        }
        if let Body::Directory(directory) = &object.body {
            let parent = directory.parent;
            self.get_mut(parent).references += 1;
        }
        self.made += 1;
        self.objects.insert(self.made, object);
        Some(self.made)
    }

    /// Takes a page out of those that are free.
    pub(crate) fn take_pages(used: &mut u64, limit: u64) -> bool {
        let is_free = *used < limit;
        *used += u64::from(is_free);
        is_free
    }

    /// The data of a file, and what it takes pages from.
    pub(crate) fn file_mut(&mut self, number: Number) -> (&mut crate::object::File, &mut u64, u64) {
        let object = self.objects.get_mut(&number).expect("objects stay while something leads to them");
        match &mut object.body {
            Body::File(file) => (file, &mut self.used.pages, self.limits.pages),
            other => panic!("only regular files have data, and this is {:?}", other.kind()),
        }
    }

    pub(crate) fn cookie(&mut self) -> u64 {
        self.next_cookie += 1;
        self.next_cookie - 1
    }

    pub(crate) fn add_open_file(&mut self, open_file: OpenFile) -> u64 {
        self.opened += 1;
        self.open_files.insert(self.opened, open_file);
        self.opened
    }

    /// Memory for a process.
    pub(crate) fn add_space(&mut self) -> u64 {
        self.made_spaces += 1;
        self.spaces.insert(self.made_spaces, Space::new());
        self.made_spaces
    }

    /// A number for a process.
    pub(crate) fn add_process(&mut self) -> u64 {
        self.made_processes += 1;
        self.children.insert(self.made_processes, BTreeMap::new());
        self.made_processes
    }

    /// Gives a reference up.
    pub(crate) fn release(&mut self, number: Number) {
        self.get_mut(number).references -= 1;
        self.forget_unused(number);
    }

    /// Gives a link up.
    pub(crate) fn unlink(&mut self, number: Number) {
        self.get_mut(number).links -= 1;
        self.forget_unused(number);
    }

    /// Forgets an object to which nothing leads, and then those that it kept.
    fn forget_unused(&mut self, mut number: Number) {
        while self.objects.get(&number).is_some_and(|object| object.links == 0 && object.references == 0) {
            let object = self.objects.remove(&number).expect("looked at just now");
            self.used.inodes -= u64::from(object.body.is_limited());
            match object.body {
                Body::File(file) => self.used.pages -= file.pages.len() as u64,
                Body::Directory(Directory { parent, .. }) => {
                    self.get_mut(parent).references -= 1;
                    number = parent;
                }
                Body::Symlink(_) | Body::Pipe(_) | Body::Socket(_) | Body::Outside(..) => {}
            }
        }
    }

    pub(crate) fn space(&self) -> posix_calls::Space {
        posix_calls::Space {
            block_bytes: PAGE_BYTES as u64,
            blocks: self.limits.pages,
            free_blocks: self.limits.pages - self.used.pages,
            inodes: self.limits.inodes,
            free_inodes: self.limits.inodes - self.used.inodes,
        }
    }
}
