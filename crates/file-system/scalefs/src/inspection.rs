//! Whether an instance is whole: a look at all of it, while no one is in a call.
//!
//! ```text
//! cores          are all the caller's: no call is under way, and what was given up is free
//! from the root  each name leads to an inode │ an inode has as many names as it counts │ a directory knows its parent
//! from processes descriptors and working directories keep inodes without a name
//! then           inodes, open files and processes that are there are those that were reached; pages are free or a file's
//! everywhere     no one holds a lock
//! ```
//! An address is looked at only where such an object can lie. What lies there can still be anything after a wild store: who looks at an
//! instance that may be damaged so does that in a process of its own.
//!
//! Pages and inodes of pipes, sockets and mapped memory are not told apart: where an instance has such, less is said of what is lost.
#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::string::String;
use std::vec::Vec;

use address_space::Mapping;
use epoch::Guard;
use hashdir::FIRST_COOKIE;
use percpu::{ArenaObject, Core, CoreIndex, OwnerId};
use posix_calls::Kind;
use sync::Wait;

use crate::annex::Annex;
use crate::description::{Description, DescriptionPtr};
use crate::directory::Directory;
use crate::file::File;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;
use crate::pipe::Pipe;
use crate::process::ProcessObject;
use crate::socket::SocketInode;

/// So often what was given up is looked for; it is found after a few.
const ROUNDS: usize = 64;
/// Damage that is said, and no more: one wild store can do much.
const MOST_DAMAGE: usize = 100;

/// What is not as it must be.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A name leads to no inode.
    Name {
        /// The number of the directory in which it is.
        directory: u64,
        /// The name.
        name: Vec<u8>,
    },
    /// An inode has not as many names as it counts.
    Links {
        /// Its number.
        inode: u64,
        /// How many names lead to it.
        names: i64,
        /// How many it counts.
        counted: i64,
    },
    /// A directory takes another one for its parent than the one in which it has its name.
    Parent {
        /// Its number.
        directory: u64,
    },
    /// What a process has open, or works in, is no such object.
    Kept {
        /// The process's number in the instance.
        process: u64,
        /// What it is not.
        what: &'static str,
    },
    /// More or fewer objects are there than are reached.
    Unreached {
        /// What they are.
        what: &'static str,
        /// As many are there.
        there: i64,
        /// As many are reached.
        reached: i64,
    },
    /// A page is no page of the instance, or another file's as well.
    Page {
        /// The number of the inode.
        inode: u64,
        /// The page's.
        page: u32,
    },
    /// Used and free pages are not all pages.
    Pages {
        /// In all.
        total: u64,
        /// Free.
        free: u64,
        /// In files.
        used: u64,
    },
    /// A lock is held, although no one is in a call.
    Lock {
        /// Of what.
        of: &'static str,
        /// The number of the inode or process.
        number: u64,
        /// By which core.
        core: usize,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Name { directory, name } => {
                let name = String::from_utf8_lossy(name);
                write!(formatter, "the name {name:?} in directory {directory} leads to no inode")
            }
            Damage::Links { inode, names, counted } => {
                write!(formatter, "inode {inode} has {names} names, and counts {counted}")
            }
            Damage::Parent { directory } => {
                write!(
                    formatter,
                    "directory {directory} takes another one for its parent than the one that has its name"
                )
            }
            Damage::Kept { process, what } => write!(formatter, "process {process} keeps what is no {what}"),
            Damage::Unreached { what, there, reached } => {
                write!(formatter, "{there} {what} are there, and {reached} are reached")
            }
            Damage::Page { inode, page } => {
                write!(formatter, "page {page} of inode {inode} is none of the instance, or another file's as well")
            }
            Damage::Pages { total, free, used } => {
                write!(formatter, "of {total} pages {free} are free, and {used} in files: expected that these are all")
            }
            Damage::Lock { of, number, core } => {
                write!(formatter, "core {core} holds a lock of {of} {number}, and no one is in a call")
            }
        }
    }
}

/// What was found, as far as it can be counted.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Names in directories.
    pub names: u64,
    /// Inodes, the root's included.
    pub inodes: u64,
    /// Open file descriptions.
    pub open_files: u64,
    /// Processes of the instance.
    pub processes: u64,
    /// Pages in files.
    pub pages: u64,
}

/// What came of a look at an instance.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// What is there.
    pub counts: Counts,
    /// What is wrong, up to a hundred.
    pub damage: Vec<Damage>,
    /// The owners of cores that run the processes.
    pub runners: Vec<OwnerId>,
}

/// An inode that was reached.
struct Seen {
    names: i64,
    node: InodeRef,
}

/// A look that is under way.
struct Look<'l, W> {
    fs: &'l ScaleFs,
    guard: &'l Guard<'l>,
    wait: &'l W,
    /// Parts of the arena in which objects of a kind lie, by address.
    chunks: Vec<(Range<usize>, u8)>,
    arena: Range<usize>,
    inodes: HashMap<u64, Seen>,
    descriptions: HashSet<u64>,
    pages: HashSet<u32>,
    found: Inspection,
}

impl ScaleFs {
    /// Looks whether all is whole. `cores` are all that were ever claimed, each the caller's: so no one is in a call, and none begins
    /// before they are given back.
    ///
    /// # Panics
    /// If a core is missing.
    pub fn inspect(&self, cores: &[Core<'_>], wait: &impl Wait) -> Inspection {
        let first = cores.first().expect("an instance has cores");
        assert!(cores.len() >= first.arena().core_limit(), "all cores are the caller's");
        self.settle(cores, wait);
        let arena = first.arena();
        let start = arena.tables()[0].memory.start;
        let guard = self.epochs().pin(first);
        let mut look = Look {
            fs: self,
            guard: &guard,
            wait,
            chunks: arena.kinds().collect(),
            arena: start..start + arena.size_bytes(),
            inodes: HashMap::new(),
            descriptions: HashSet::new(),
            pages: HashSet::new(),
            found: Inspection::default(),
        };
        look.walk_names();
        look.walk_processes();
        for core in cores {
            for place in self.own.get(core).growing.iter().filter(|place| place.get() != 0) {
                look.keep(InodeRef::from_bits(place.get()));
            }
        }
        look.compare_inodes();
        look.compare_pages();
        look.found
    }

    /// Lets all become free that was given up.
    fn settle(&self, cores: &[Core<'_>], wait: &impl Wait) {
        for _ in 0..ROUNDS {
            let maintained = cores.iter().map(|core| self.maintain_core(core, wait));
            if maintained.fold(true, |is_quiet, done| is_quiet && done.freed == 0 && !done.is_pending) {
                break;
            }
        }
    }
}

impl<W: Wait> Look<'_, W> {
    fn note(&mut self, damage: Damage) {
        if self.found.damage.len() < MOST_DAMAGE {
            self.found.damage.push(damage);
        }
    }

    /// The kind of the chunk in which an address lies; zero for what lies in none.
    fn kind_at(&self, address: u64) -> u8 {
        let address = address as usize;
        let after = self.chunks.partition_point(|(memory, _)| memory.start <= address);
        let before = after.checked_sub(1).map(|index| &self.chunks[index]);
        before.filter(|(memory, _)| memory.contains(&address)).map_or(0, |(_, kind)| *kind)
    }

    /// Whether an object of a kind can lie at an address.
    fn may_be<T: ArenaObject>(&self, address: u64) -> bool {
        address.is_multiple_of(T::KIND.stride_bytes as u64) && self.kind_at(address) == T::KIND.number
    }

    /// Whether a node leads to an inode of its kind.
    fn is_inode(&self, node: InodeRef) -> bool {
        let address = node.address().as_ptr() as usize as u64;
        let can_lie = match node.kind() {
            _ if node == self.fs.root_node() => true,
            Kind::Regular => self.may_be::<File>(address),
            Kind::Directory => self.may_be::<Directory>(address),
            Kind::Pipe => self.may_be::<Pipe>(address),
            Kind::Socket => self.may_be::<SocketInode>(address),
            _ => {
                let end = address.saturating_add(256) as usize;
                self.arena.contains(&(address as usize)) && self.arena.contains(&end) && self.kind_at(address) == 0
            }
        };
        can_lie && node.inode().header.kind() == node.kind() && node.inode().header.number().0 != 0
    }

    /// All that names lead to, from the root on.
    fn walk_names(&mut self) {
        let root = self.fs.root_node();
        self.inodes.insert(root.to_bits(), Seen { names: 1, node: root });
        let mut left = Vec::from([root]);
        while let Some(directory) = left.pop() {
            let number = directory.inode().header.number().0;
            let mut entries: Vec<(Vec<u8>, InodeRef)> = Vec::new();
            directory.directory().names.list(self.guard, FIRST_COOKIE, |listed| {
                entries.push((listed.name.to_vec(), InodeRef::from_bits(listed.value)));
                true
            });
            for (name, node) in entries {
                self.found.counts.names += 1;
                if !self.is_inode(node) {
                    self.note(Damage::Name { directory: number, name });
                    continue;
                }
                let seen = self.inodes.entry(node.to_bits()).or_insert(Seen { names: 0, node });
                seen.names += 1;
                if seen.names == 1 && node.kind() == Kind::Directory {
                    if node.directory().place.unnamed_parent() != directory {
                        self.note(Damage::Parent { directory: node.inode().header.number().0 });
                    }
                    left.push(node);
                }
            }
        }
    }

    /// An inode that is kept, whether it has a name or not. A directory keeps its parent.
    fn keep(&mut self, mut node: InodeRef) {
        while !self.inodes.contains_key(&node.to_bits()) {
            self.inodes.insert(node.to_bits(), Seen { names: 0, node });
            if node.kind() != Kind::Directory {
                return;
            }
            let parent = node.directory().place.unnamed_parent();
            if !self.is_inode(parent) {
                self.note(Damage::Parent { directory: node.inode().header.number().0 });
                return;
            }
            node = parent;
        }
    }

    /// What processes have open, and work in.
    fn walk_processes(&mut self) {
        let mut addresses = Vec::new();
        self.fs.processes.for_each(self.guard, |place, address| addresses.push((place.start, address)));
        let fs = self.fs;
        self.note_locks("the table of processes", 0, |guard, each| fs.processes.for_each_held(guard, each));
        for (place, address) in addresses {
            if !self.may_be::<ProcessObject>(address) {
                self.note(Damage::Kept { process: place, what: "process" });
                continue;
            }
            self.found.counts.processes += 1;
            // SAFETY: processes lie there, and the table says so of this one, whom no one ends meanwhile.
            let process = unsafe { &*(address as usize as *const ProcessObject) };
            let number = process.relatives.number().0;
            self.found.runners.extend(process.life.runner());
            self.note_locks("process", number, |guard, each| process.for_each_held(guard, each));
            let working_directory = process.context.working_directory();
            match self.is_inode(working_directory) {
                true => self.keep(working_directory),
                false => self.note(Damage::Kept { process: number, what: "directory" }),
            }
            let mut numbers = Vec::new();
            process.for_each_descriptor(self.guard, |descriptor| numbers.push(descriptor));
            for descriptor in numbers {
                if let Some(found) = process.descriptor(self.guard, descriptor) {
                    self.look_at_open(number, found.description);
                }
            }
        }
    }

    fn look_at_open(&mut self, process: u64, description: DescriptionPtr) {
        if !self.may_be::<Description>(description.address()) {
            self.note(Damage::Kept { process, what: "open file" });
            return;
        }
        if !self.descriptions.insert(description.address()) {
            return;
        }
        let (node, moved_by) = (description.get().opened.node, description.get().moved_by());
        if let Some(core) = moved_by {
            self.note(Damage::Lock { of: "an open file of process", number: process, core: core.get() });
        }
        match self.is_inode(node) {
            true => self.keep(node),
            false => self.note(Damage::Kept { process, what: "open file's inode" }),
        }
    }

    /// Notes locks that are held, of what tells of its own.
    fn note_locks(&mut self, of: &'static str, number: u64, look: impl FnOnce(&Guard<'_>, &mut dyn FnMut(CoreIndex))) {
        let mut held = Vec::new();
        look(self.guard, &mut |core| held.push(core.get()));
        held.into_iter().for_each(|core| self.note(Damage::Lock { of, number, core }));
    }

    /// Counts of names, locks and pages of all inodes that were reached, and how many there are.
    fn compare_inodes(&mut self) {
        let (mut files, mut directories, mut nameless) = (0, 0, 0);
        for (_, Seen { names, node }) in core::mem::take(&mut self.inodes) {
            let inode = node.inode();
            let number = inode.header.number().0;
            self.found.counts.inodes += 1;
            // SAFETY: it was reached, and no one gives it up meanwhile.
            let counted = unsafe { self.fs.counts().exact(&inode.links, self.wait) };
            if matches!(node.kind(), Kind::Pipe | Kind::Socket) {
                nameless += 1;
            } else if counted != names {
                self.note(Damage::Links { inode: number, names, counted });
            }
            self.note_locks("inode", number, |_, each| inode.header.writer().into_iter().for_each(each));
            let changes = Annex::of(inode).and_then(|annex| annex.extended.holder());
            self.note_locks("extended attributes", number, |_, each| changes.into_iter().for_each(each));
            match node.kind() {
                Kind::Regular => {
                    files += 1;
                    self.note_locks("file", number, |guard, each| node.file().for_each_held(guard, each));
                    self.look_at_pages(number, node.file());
                }
                Kind::Directory => {
                    directories += 1;
                    let Directory { names, place, .. } = node.directory();
                    self.note_locks("directory", number, |guard, each| {
                        names.for_each_held(guard, &mut *each);
                        place.moving.holder().into_iter().for_each(each);
                    });
                }
                _ => {}
            }
        }
        // The root lies apart from all others, and is not counted with them.
        let named = self.found.counts.inodes as i64 - nameless - 1;
        let there = (self.fs.inodes.total() - self.fs.inodes.left()) as i64;
        self.found.counts.open_files = self.descriptions.len() as u64;
        let open_files = self.descriptions.len() as i64;
        let processes = self.found.counts.processes as i64;
        let is_simple = self.is_simple();
        for (what, there, reached) in [
            ("inodes", there, named),
            ("files", self.live::<File>(), files),
            ("directories", self.live::<Directory>(), directories - 1),
            ("open files", self.live::<Description>(), open_files),
            ("processes", self.live::<ProcessObject>(), processes),
        ] {
            if there < reached || there > reached && is_simple {
                self.note(Damage::Unreached { what, there, reached });
            }
        }
    }

    fn live<T: ArenaObject>(&self) -> i64 {
        self.guard.core().arena().live_objects(T::CLASS)
    }

    /// Whether files alone have pages, and what is open is a descriptor of a process's.
    fn is_simple(&self) -> bool {
        self.live::<Pipe>() == 0 && self.live::<SocketInode>() == 0 && self.live::<Mapping>() == 0
    }

    fn look_at_pages(&mut self, inode: u64, file: &File) {
        let mut pages = Vec::new();
        file.for_each_page(self.guard, |page| pages.push(page.get()));
        for page in pages {
            if u64::from(page) >= self.fs.pages().total() || !self.pages.insert(page) {
                self.note(Damage::Page { inode, page });
            }
        }
    }

    fn compare_pages(&mut self) {
        let (total, free, used) = (self.fs.pages().total(), self.fs.pages().free_pages(), self.pages.len() as u64);
        self.found.counts.pages = used;
        if free + used > total || free + used < total && self.is_simple() {
            self.note(Damage::Pages { total, free, used });
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::string::ToString;
    use std::vec;

    use hashdir::Key;
    use pages::PageNumber;
    use posix_calls::data::{self, DescriptorOptions};
    use posix_calls::{Credentials, DataOperations, NewObject, OpenFlags, Permissions, Start, directories, names};
    use sync::Spin;
    use sync::atomic::Ordering;

    use super::*;
    use crate::inode::Named;
    use crate::{OwnedConfig, OwnedScaleFs, Process};

    const HERE: Start<crate::Node<'static>> = Start::WorkingDirectory;
    const FLAGS: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE).union(OpenFlags::CREATE);

    /// What a plant may use.
    struct Planted<'p> {
        fs: &'p ScaleFs,
        core: &'p Core<'p>,
        process: &'p Process,
    }

    impl Planted<'_> {
        /// What a name in the root leads to.
        fn node(&self, name: &[u8]) -> InodeRef {
            let guard = self.fs.epochs().pin(self.core);
            let key = Key::new(name, self.fs.hash_seed).unwrap();
            InodeRef::of(&self.fs.root_node().directory().names.lookup(&guard, &key).unwrap())
        }
    }

    /// Makes a small tree, with what is open and has no name, lets `plant` damage it, and looks.
    fn inspected(plant: impl FnOnce(Planted<'_>)) -> Inspection {
        let config = OwnedConfig { metadata_bytes: 16 << 20, page_count: 256, core_count: 2, hash_seed: 1 };
        let owned = OwnedScaleFs::create(config).unwrap();
        let cores = [0, 1].map(|number| owned.claim(number, OwnerId::new(9).unwrap()).unwrap());
        let fs = owned.file_system();
        let process = Process::new(fs, &cores[0], Credentials::SUPERUSER).unwrap();
        {
            let call = fs.enter(&cores[0], &process, &Spin);
            directories::make_directory(call.objects(), HERE, b"d", 0o755).unwrap();
            directories::make_directory(call.objects(), HERE, b"d/gone", 0o755).unwrap();
            directories::change_directory(call.objects(), HERE, b"d/gone").unwrap();
            directories::remove_directory(call.objects(), HERE, b"/d/gone").unwrap();
            names::symlink(call.objects(), b"target", HERE, b"/link").unwrap();
            for path in [b"/file".as_slice(), b"/open"] {
                let number = data::open(&call, HERE, path, FLAGS, 0o644, DescriptorOptions::PLAIN).unwrap();
                data::write(&call, number, &[7; 10_000]).unwrap();
            }
            names::link(call.objects(), (HERE, b"/file"), (HERE, b"/d/other"), posix_calls::Follow::Nothing).unwrap();
            names::unlink(call.objects(), HERE, b"/open").unwrap();
            data::close(&call, 0).unwrap();
        }
        plant(Planted { fs, core: &cores[0], process: &process });
        fs.inspect(&cores, &Spin)
    }

    #[test]
    fn a_whole_instance_is_found_whole() {
        let found = inspected(|_| ());
        assert_eq!(found.damage, []);
        let expected = Counts { names: 4, inodes: 6, open_files: 1, processes: 1, pages: 6 };
        assert_eq!(found.counts, expected);
        assert_eq!(found.runners, [OwnerId::new(9).unwrap()]);
    }

    /// Each damage that is planted is found, and nothing else is said of it but what follows from it.
    #[test]
    fn planted_damage_is_found() {
        let permissions = Permissions { mode: 0o644, user: 0, group: 0 };
        let said = |plant: &dyn Fn(Planted<'_>)| {
            let found = inspected(plant);
            found.damage.iter().map(|damage| damage.to_string()).collect::<Vec<_>>()
        };
        let more_links = said(&|planted| {
            // SAFETY: it has a name.
            unsafe { planted.fs.counts().change(planted.core, &planted.node(b"file").inode().links, 1) };
        });
        assert!(more_links.len() == 1 && more_links[0].ends_with("has 2 names, and counts 3"), "{more_links:?}");
        let no_inode = said(&|planted| {
            let guard = planted.fs.epochs().pin(planted.core);
            let key = Key::new(b"wild", planted.fs.hash_seed).unwrap();
            planted.fs.root_node().directory().names.lock(&guard, &key, &Spin).insert(&key, 0x1234_5600).unwrap();
        });
        assert_eq!(no_inode, ["the name \"wild\" in directory 1 leads to no inode"]);
        let lost_page = said(&|planted| assert!(planted.fs.pages().allocate(planted.core).is_ok()));
        assert_eq!(lost_page, ["of 256 pages 249 are free, and 6 in files: expected that these are all"]);
        let lost_inode = said(&|planted| {
            let (fs, root) = (planted.fs, planted.fs.root_node());
            fs.make(planted.core, NewObject::File, permissions, root, 0, Named::NotYet).unwrap();
        });
        assert_eq!(lost_inode, ["6 inodes are there, and 5 are reached", "3 files are there, and 2 are reached"]);
        let held = said(&|planted| {
            let guard = planted.fs.epochs().pin(planted.core);
            let key = Key::new(b"file", planted.fs.hash_seed).unwrap();
            core::mem::forget(planted.fs.root_node().directory().names.lock(&guard, &key, &Spin));
        });
        assert_eq!(held, ["core 0 holds a lock of directory 1, and no one is in a call"]);
        let orphan = said(&|planted| {
            let node = planted.node(b"d");
            node.directory().place.parent.store(node.to_bits(), Ordering::Release);
        });
        assert!(orphan.len() == 1 && orphan[0].contains("takes another one for its parent"), "{orphan:?}");
        let twice = said(&|planted| {
            let file = planted.node(b"file").file();
            let guard = planted.fs.epochs().pin(planted.core);
            let mut first = None;
            file.for_each_page(&guard, |page| first = first.or(Some(page)));
            file.put_page(&guard, 5, first.unwrap());
        });
        assert!(twice.len() == 1 && twice[0].contains("or another file's as well"), "{twice:?}");
        let beyond = said(&|planted| {
            let guard = planted.fs.epochs().pin(planted.core);
            planted.node(b"file").file().put_page(&guard, 5, PageNumber::new(4096));
        });
        assert!(beyond.len() == 1 && beyond[0].contains("page 4096 of inode"), "{beyond:?}");
        let nowhere = said(&|planted| {
            let root = planted.fs.root_node().to_bits();
            let _ = planted.process.context().replace_working_directory(InodeRef::from_bits(root + (1 << 40)));
        });
        assert!(nowhere.iter().any(|line| line.ends_with("keeps what is no directory")), "{nowhere:?}");
    }

    #[test]
    #[should_panic(expected = "all cores are the caller's")]
    fn a_core_that_is_missing_is_an_error() {
        let config = OwnedConfig { metadata_bytes: 16 << 20, page_count: 16, core_count: 2, hash_seed: 1 };
        let owned = OwnedScaleFs::create(config).unwrap();
        let [_first, second] = [0, 1].map(|number| owned.claim(number, OwnerId::new(9).unwrap()).unwrap());
        let _ = vec![owned.file_system().inspect(&[second], &Spin)];
    }
}
