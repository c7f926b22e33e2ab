//! An instance of the file system: where everything is, and maintenance.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use address_space::{KIND_MAPPING, KIND_SHARED_PAGE, Mapping, SharedPage};
use commit::{Decisions, Tag};
use epoch::Epochs;
use hashdir::{ENTRY_CLASS, HashDir};
use maxima::{Maxima, MaximaConfig};
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaObject, CacheLine, Core, OutOfMemory, PerCore, SizeClass};
use posix_calls::{InodeNumber, Kind, NewObject, Permissions, ProcessNumber, Space};
use refcache::{Counted, RefCache, RefCacheConfig};
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::{OwnWord, Wait};

use crate::budget::Budget;
use crate::context::Context;
use crate::description::{Description, DescriptionPtr, KIND_DESCRIPTION};
use crate::direct::Direct;
use crate::family::{Family, KIND_FAMILY};
use crate::file::{Access, File};
use crate::host::Host;
use crate::inode::{Directory, Inode, KIND_LINKS, KIND_REFERENCES, Named, Symlink, stamp_of};
use crate::inode_ref::InodeRef;
use crate::moves::Place;
use crate::noted::Noted;
use crate::pipe::Pipe;

/// The root has this number; inodes made later have a core in the low eight bits and a count from 1 above them.
const ROOT_NUMBER: InodeNumber = InodeNumber(1);
const CORE_BITS: u32 = 8;
/// Buckets that one maintenance moves when a directory grows: about 10 microseconds.
const GROWTH_BUDGET_BUCKETS: usize = 64;
/// Directories that a core remembers for growth; others are remembered when their next name comes.
const GROWING_DIRECTORIES: usize = 4;
/// Objects that one call can leave in the middle of a change.
const WORKING_OBJECTS: usize = 4;

/// What of an object changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Its data or names, and so its status.
    Data,
    /// Its status only.
    Status,
}

/// How an instance is laid out.
#[derive(Clone, Copy, Debug)]
pub struct ScaleFsConfig {
    /// Moves hash collisions: of names in buckets and of inodes in count slots.
    pub hash_seed: u64,
    /// Buckets of the root directory at the start, 128 bytes each.
    pub root_bucket_count: usize,
    /// Buckets of every other directory at the start.
    pub directory_bucket_count: usize,
    /// Most files, directories and symbolic links that there can be beside the root.
    pub inode_limit: u64,
    /// Slots of each core in each of its three caches (counts, times, sizes), 64 bytes each.
    pub count_slots_per_core: usize,
}

impl Default for ScaleFsConfig {
    fn default() -> ScaleFsConfig {
        ScaleFsConfig {
            hash_seed: 1,
            root_bucket_count: 4096,
            directory_bucket_count: 16,
            inode_limit: u64::from(u32::MAX),
            count_slots_per_core: 1024,
        }
    }
}

/// Tells instances apart, also one from another that lay at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64);

impl Identity {
    /// Of an instance in this arena.
    fn new(arena: &Arena) -> Identity {
        // The only state outside of arenas: it says nothing but that two instances are two.
        static MADE: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
        let made = MADE.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        // Other processes count for themselves, and have their arenas elsewhere or not at this time.
        Identity(core::ptr::from_ref(arena).addr() as u64 ^ made.rotate_right(16))
    }
}

/// A file system in an arena. Read-only after creation but for what its parts guard themselves.
pub struct ScaleFs {
    pub(crate) identity: Identity,
    pub(crate) decisions: NonNull<Decisions>,
    pub(crate) epochs: NonNull<Epochs>,
    pub(crate) counts: NonNull<RefCache>,
    stamps: NonNull<Maxima<2>>,
    sizes: NonNull<Maxima<1>>,
    pages: NonNull<PagePool>,
    pub(crate) root: NonNull<Directory>,
    pub(crate) hash_seed: u64,
    directory_bucket_count: usize,
    inodes: Budget,
    own: PerCore<Own>,
}

/// What each core keeps for itself.
struct Own {
    /// Where it looks first for a free descriptor's number of its own.
    number_hint: OwnWord<u32>,
    /// How many inodes it has made.
    made: OwnWord<u64>,
    /// How many processes it has made.
    processes: OwnWord<u64>,
    /// Where it looks first for a free place in a family.
    child_hint: OwnWord<u32>,
    /// Bits of nodes of directories that want to grow, each with a reference; or zero.
    growing: [OwnWord<u64>; GROWING_DIRECTORIES],
    /// For whoever takes the core over: bits of nodes that a call is changing, and its operation; or zero.
    working_on: [AtomicU64; WORKING_OBJECTS],
    operation: AtomicU64,
    /// As `working_on`, if they are many.
    noted: Noted,
    /// As above: address of the description whose offset a call moves; or zero.
    moving_offset: AtomicU64,
    /// As above: address of the family that a call works on, or zero; and the number of the child that it makes or ends.
    family: [AtomicU64; 2],
}

/// While it lives, the core has noted that a call works on a family.
pub(crate) struct FamilyNote<'n>(&'n [AtomicU64; 2]);

impl FamilyNote<'_> {
    /// The child that nobody runs if the process dies from now on.
    pub(crate) fn of_child(&self, number: ProcessNumber) {
        self.0[1].store(number.0, Ordering::Relaxed);
        // Before what the call changes then, for the heir.
        fence(Ordering::Release);
    }
}

impl Drop for FamilyNote<'_> {
    fn drop(&mut self) {
        self.0[0].store(0, Ordering::Release);
    }
}

// SAFETY: all pointers lead to `Sync` parts in the same arena.
unsafe impl Sync for ScaleFs {}
// SAFETY: as above.
unsafe impl Send for ScaleFs {}

impl ScaleFs {
    /// Makes an empty file system in the arena of `core`, whose root belongs to user 0. It has no pages: names, directories
    /// and links only.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold the tables of an empty file system.
    pub fn create<'a>(core: &Core<'a>, config: ScaleFsConfig) -> Result<&'a ScaleFs, OutOfMemory> {
        // SAFETY: the pool has no page, so nothing is read or written there; an arena is aligned to pages.
        let pool = unsafe { PagePool::create(core.arena(), NonNull::from(core.arena()).cast(), 0) }?;
        ScaleFs::create_with_pages(core, pool, config)
    }

    /// Makes an empty file system in the arena of `core`, whose root belongs to user 0, with data in these pages, which
    /// nobody else uses.
    ///
    /// # Errors
    /// As [`ScaleFs::create`].
    ///
    /// # Panics
    /// If the pages are of another arena.
    pub fn create_with_pages<'a>(
        core: &Core<'a>,
        pages: &'a PagePool,
        config: ScaleFsConfig,
    ) -> Result<&'a ScaleFs, OutOfMemory> {
        assert!(pages.is_of(core), "pages of another arena");
        let arena = core.arena();
        let decisions = Decisions::create(arena)?;
        let counts = RefCacheConfig {
            slots_per_core: config.count_slots_per_core,
            seed: config.hash_seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        let maxima = MaximaConfig { slots_per_core: counts.slots_per_core, seed: counts.seed };
        // SAFETY: the directory is used with this arena and this instance's epochs only.
        let names = unsafe { HashDir::new(core, decisions, config.root_bucket_count) }?;
        let permissions = Permissions { mode: 0o755, user: 0, group: 0 };
        let place = CacheLine(Place::under(0));
        let inode = Inode::new(ROOT_NUMBER, Kind::Directory, permissions, 0, Named::AtOnce);
        let root = arena.place(Directory { inode, names, place })?;
        let root = NonNull::from(root);
        let node = InodeRef::new(root.cast(), Kind::Directory);
        node.directory().place.parent.store(node.to_bits(), Ordering::Release);
        let instance = arena.place(ScaleFs {
            identity: Identity::new(arena),
            decisions: NonNull::from(decisions),
            epochs: NonNull::from(Epochs::create(arena)?),
            counts: NonNull::from(RefCache::create(arena, decisions, counts)?),
            stamps: NonNull::from(Maxima::create(arena, maxima)?),
            sizes: NonNull::from(Maxima::create(arena, maxima)?),
            pages: NonNull::from(pages),
            root,
            hash_seed: config.hash_seed,
            directory_bucket_count: config.directory_bucket_count,
            inodes: Budget::create(arena, config.inode_limit)?,
            // SAFETY: what is made lies in the arena itself, with what keeps it.
            own: unsafe {
                PerCore::create(arena, |_| Own {
                    number_hint: OwnWord::new(0),
                    made: OwnWord::new(0),
                    processes: OwnWord::new(0),
                    child_hint: OwnWord::new(0),
                    growing: core::array::from_fn(|_| OwnWord::new(0)),
                    working_on: core::array::from_fn(|_| AtomicU64::new(0)),
                    operation: AtomicU64::new(0),
                    noted: Noted::new(),
                    moving_offset: AtomicU64::new(0),
                    family: [AtomicU64::new(0), AtomicU64::new(0)],
                })
            }?,
        })?;
        arena.set_root(instance);
        Ok(instance)
    }

    pub(crate) fn epochs(&self) -> &Epochs {
        // SAFETY: placed in the arena, as `self` is, for good; the same for all below but the pages.
        unsafe { self.epochs.as_ref() }
    }

    pub(crate) fn counts(&self) -> &RefCache {
        // SAFETY: see `epochs`.
        unsafe { self.counts.as_ref() }
    }

    pub(crate) fn decisions(&self) -> &Decisions {
        // SAFETY: see `epochs`.
        unsafe { self.decisions.as_ref() }
    }

    pub(crate) fn stamps(&self) -> &Maxima<2> {
        // SAFETY: see `epochs`.
        unsafe { self.stamps.as_ref() }
    }

    pub(crate) fn sizes(&self) -> &Maxima<1> {
        // SAFETY: see `epochs`.
        unsafe { self.sizes.as_ref() }
    }

    pub(crate) fn pages(&self) -> &PagePool {
        // SAFETY: the pool lies in the arena, as `self` does: `create_with_pages` has asserted it.
        unsafe { self.pages.as_ref() }
    }

    /// Notes the description whose offset a call is about to lock, for the case that its process dies in it; zero ends that.
    #[inline]
    pub(crate) fn moving_offset(&self, core: &Core<'_>, address: u64) {
        self.own.get(core).moving_offset.store(address, Ordering::Relaxed);
        // Before the lock that follows, for the heir.
        fence(Ordering::Release);
    }

    pub(crate) fn is_core_of(&self, core: &Core<'_>) -> bool {
        self.own.is_of(core)
    }

    pub(crate) fn noted<'s>(&'s self, core: &'s Core<'_>) -> &'s Noted {
        &self.own.get(core).noted
    }

    pub(crate) fn number_hint<'s>(&'s self, core: &'s Core<'_>) -> &'s OwnWord<u32> {
        &self.own.get(core).number_hint
    }

    pub(crate) fn child_hint<'s>(&'s self, core: &'s Core<'_>) -> &'s OwnWord<u32> {
        &self.own.get(core).child_hint
    }

    /// Which of the core's processes the next one is, from 1 on.
    pub(crate) fn count_process(&self, core: &Core<'_>) -> u64 {
        let processes = &self.own.get(core).processes;
        processes.set(processes.get() + 1);
        processes.get()
    }

    /// Notes the family that a call is about to change, for the case that its process dies in it, until the note is dropped.
    pub(crate) fn work_on_family<'s>(&'s self, core: &'s Core<'_>, address: u64) -> FamilyNote<'s> {
        let note = FamilyNote(&self.own.get(core).family);
        note.of_child(ProcessNumber(0));
        note.0[0].store(address, Ordering::Relaxed);
        fence(Ordering::Release);
        note
    }

    /// Marks that an object changes now. Objects that two cores mark share nothing by it.
    #[inline]
    pub(crate) fn stamp(&self, core: &Core<'_>, node: InodeRef, stamp: Stamp, now_ns: u64, wait: &impl Wait) {
        let now = stamp_of(now_ns as i64);
        let modified = if stamp == Stamp::Data { now } else { 0 };
        // SAFETY: the caller has found the object in this call; it is not freed before all cores have maintained.
        unsafe { self.stamps().raise(core, &node.inode().stamps, [modified, now], wait) };
    }

    /// Makes a pipe with one reference and a descriptor at each end, which the caller installs.
    pub(crate) fn make_pipe(&self, core: &Core<'_>, context: &Context, now_ns: u64) -> Result<InodeRef, OutOfMemory> {
        let credentials = context.credentials();
        let permissions = Permissions { mode: 0o600, user: credentials.user, group: credentials.group };
        let inode = Inode::new(self.next_number(core), Kind::Pipe, permissions, now_ns, Named::AtOnce);
        Ok(InodeRef::new(core.allocate_object(Pipe::new(inode))?.cast(), Kind::Pipe))
    }

    pub(crate) fn root_node(&self) -> InodeRef {
        InodeRef::new(self.root.cast(), Kind::Directory)
    }

    fn next_number(&self, core: &Core<'_>) -> InodeNumber {
        let made = &self.own.get(core).made;
        made.set(made.get() + 1);
        InodeNumber(made.get() << CORE_BITS | core.index().get() as u64)
    }

    /// Begins a call of this core on behalf of the process of `context`.
    ///
    /// # Panics
    /// If the context or the core is of another instance.
    #[inline]
    pub fn begin<'c, H: Host>(&'c self, core: &'c Core<'_>, context: &'c Context, host: &'c H) -> Direct<'c, H> {
        context.assert_of(self);
        Direct::new(self, core, context, host)
    }

    /// Makes an object with one reference, and one link if its name is inserted at once; in `parent` if it is a directory.
    pub(crate) fn make(
        &self,
        core: &Core<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
        parent: InodeRef,
        now_ns: u64,
        named: Named,
    ) -> Result<InodeRef, OutOfMemory> {
        self.inodes.take(core)?;
        let made = self.make_object(core, object, permissions, parent, now_ns, named);
        made.inspect_err(|_| self.inodes.give(core))
    }

    fn make_object(
        &self,
        core: &Core<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
        parent: InodeRef,
        now_ns: u64,
        named: Named,
    ) -> Result<InodeRef, OutOfMemory> {
        let kind = match object {
            NewObject::File => Kind::Regular,
            NewObject::Directory => Kind::Directory,
            NewObject::Symlink(_) => Kind::Symlink,
        };
        let inode = Inode::new(self.next_number(core), kind, permissions, now_ns, named);
        let address = match object {
            NewObject::File => core.allocate_object(File::new(inode))?.cast(),
            NewObject::Directory => {
                let address = core.allocate_place::<Directory>()?;
                // SAFETY: the directory is used with this arena and this instance's epochs only.
                let names = unsafe { HashDir::new(core, self.decisions(), self.directory_bucket_count) };
                let names = names.inspect_err(|_| {
                    // SAFETY: allocated just now.
                    unsafe { core.free_object::<Directory>(address.cast()) };
                })?;
                let place = CacheLine(Place::under(parent.to_bits()));
                // SAFETY: fresh memory of the right class; the caller has found the parent in this call.
                unsafe {
                    address.write(Directory { inode, names, place });
                    self.counts().change(core, &parent.inode().references, 1);
                }
                address.cast()
            }
            NewObject::Symlink(target) => {
                let place = core.allocate(symlink_class(target.len()))?.cast::<Symlink>();
                // SAFETY: fresh memory for the inode and the bytes behind it.
                unsafe {
                    place.write(Symlink { inode, target_bytes: target.len() as u16 });
                    place.add(1).cast::<u8>().copy_from_nonoverlapping(NonNull::from(target).cast(), target.len());
                }
                place.cast()
            }
        };
        Ok(InodeRef::new(address, kind))
    }

    /// Gives an object back.
    ///
    /// # Safety
    /// No name, reference or call leads to it any more.
    pub(crate) unsafe fn unmake(&self, core: &Core<'_>, node: InodeRef) {
        let address = node.address();
        // Pipes have no names and are not limited, as on Linux.
        if node.kind() != Kind::Pipe {
            self.inodes.give(core);
        }
        // SAFETY: nobody reaches the object, by the caller's promise. Types and classes are those of `make_object` and
        // `make_pipe`, since the node's kind is the one that they gave; a directory still holds the reference to its parent.
        unsafe {
            match node.kind() {
                Kind::Regular => {
                    node.file().destroy(self, core);
                    core.free_object::<File>(address.cast());
                }
                Kind::Pipe => {
                    node.pipe().destroy(self, core);
                    core.free_object::<Pipe>(address.cast());
                }
                Kind::Symlink => {
                    let target_bytes = address.cast::<Symlink>().as_ref().target_bytes;
                    core.free(address.cast(), symlink_class(target_bytes.into()));
                }
                Kind::Directory => {
                    let directory = node.directory();
                    let parent = InodeRef::from_bits(directory.place.parent.load(Ordering::Acquire));
                    directory.names.destroy(core, |_| debug_assert!(false, "removed directories are empty"));
                    self.counts().change(core, &parent.inode().references, -1);
                    core.free_object::<Directory>(address.cast());
                }
            }
        }
    }

    /// Notes what a call is about to change, for the case that its process dies in it.
    #[inline]
    pub(crate) fn working_on(&self, core: &Core<'_>, nodes: &[InodeRef]) {
        let own = self.own.get(core);
        own.operation.store(0, Ordering::Relaxed);
        for (place, node) in own.working_on.iter().zip(nodes) {
            place.store(node.to_bits(), Ordering::Relaxed);
        }
        // Before the locks that follow, for the heir.
        fence(Ordering::Release);
    }

    /// Notes the operation on which the changes depend.
    #[inline]
    pub(crate) fn working_under(&self, core: &Core<'_>, tag: Tag) {
        self.own.get(core).operation.store(tag.to_bits(), Ordering::Release);
    }

    /// Forgets what the call that ends had noted, which may be freed from now on.
    #[inline]
    pub(crate) fn working_ended(&self, core: &Core<'_>) {
        for place in &self.own.get(core).working_on {
            place.store(0, Ordering::Release);
        }
    }

    /// After an insertion: remembers a directory that is crowded, so that maintenance lets it grow.
    #[inline]
    pub(crate) fn note_growth(&self, core: &Core<'_>, directory: InodeRef) {
        if directory.directory().names.wants_growth() {
            self.remember_growth(core, directory);
        }
    }

    #[cold]
    fn remember_growth(&self, core: &Core<'_>, directory: InodeRef) {
        let growing = &self.own.get(core).growing;
        if growing.iter().any(|place| place.get() == directory.to_bits()) {
            return;
        }
        if let Some(place) = growing.iter().find(|place| place.get() == 0) {
            // SAFETY: the caller has found the directory in this call.
            unsafe { self.counts().change(core, &directory.inode().references, 1) };
            place.set(directory.to_bits());
        }
    }

    fn grow_directories(&self, core: &Core<'_>, wait: &impl Wait) {
        for place in &self.own.get(core).growing {
            if place.get() == 0 {
                continue;
            }
            let directory = InodeRef::from_bits(place.get());
            self.working_on(core, &[directory]);
            let names = &directory.directory().names;
            names.grow(self.epochs(), &self.epochs().pin(core), wait, GROWTH_BUDGET_BUCKETS);
            self.working_ended(core);
            if !names.wants_growth() {
                place.set(0);
                // SAFETY: `remember_growth` took the reference that is given up here, once: the place is zero from now on.
                unsafe { self.counts().change(core, &directory.inode().references, -1) };
            }
        }
    }

    /// What the core does between its calls, now and then: fills its magazines, frees what nobody can reach, applies
    /// counts, and moves some buckets of directories that grow.
    pub fn maintain(&self, core: &Core<'_>, wait: &impl Wait) {
        for class in [File::CLASS, ENTRY_CLASS, Description::CLASS, Mapping::CLASS, radix::LEAF_CLASS] {
            core.will_allocate(class);
        }
        core.arena().maintain(core);
        self.inodes.maintain(core);
        self.pages().maintain(core);
        // Before counts: an object whose count is found to be zero is not in these caches.
        self.stamps().flush(core, wait);
        self.sizes().flush(core, wait);
        self.epochs().maintain(core, |core, kind, object| {
            // SAFETY: called once per object, by the maintenance of the instance's one `Epochs`. Who retires there is asked in
            // turn: directories, arrays, and the instance's one pool.
            let is_ours = unsafe {
                hashdir::free_retired(core, kind, object)
                    || radix::free_retired(core, kind, object)
                    || self.pages().free_retired(core, kind, object)
            };
            debug_assert!(is_ours);
        });
        let free = |core: &Core<'_>, counted: NonNull<Counted>| {
            // SAFETY: dead objects are given to us once. Kinds say in which field of which type the count is; they are the
            // numbers with which this crate and `address-space` make counts, all different. What a dead object held a
            // reference to is alive until that is given up here.
            unsafe {
                match counted.as_ref().kind() {
                    KIND_LINKS => {
                        let inode = Inode::of_links(counted);
                        self.counts().change(core, &inode.as_ref().references, -1);
                    }
                    KIND_REFERENCES => {
                        let inode = Inode::of_references(counted);
                        self.unmake(core, InodeRef::new(inode, inode.as_ref().header.kind()));
                    }
                    KIND_DESCRIPTION => {
                        let description = DescriptionPtr::of_references(counted);
                        let node = description.get().opened.node;
                        self.counts().change(core, &node.inode().references, -1);
                        description.free(core);
                    }
                    KIND_SHARED_PAGE => SharedPage::free_counted(core, self.pages(), counted),
                    KIND_MAPPING => {
                        let mapping = Mapping::of_count(counted);
                        let node = InodeRef::from_bits(mapping.as_ref().file().0);
                        self.counts().change(core, &node.inode().references, -1);
                        core.free_object(mapping);
                    }
                    KIND_FAMILY => Family::free(Family::of_references(counted), core),
                    other => debug_assert!(false, "{other:?} is no kind of ours"),
                }
            }
        };
        // SAFETY: the core is in no call, or the maintenance of epochs above would have panicked: calls are pinned. Of its own,
        // maintenance holds nothing here.
        unsafe { self.counts().maintain(core, free) };
        self.grow_directories(core, wait);
    }

    /// Completes or undoes the call in whose middle a process died, and frees its locks. References that the process
    /// held stay.
    ///
    /// # Safety
    /// `heir` was taken over from a dead owner, and is repaired once before it is used.
    pub unsafe fn repair_taken_over(&self, heir: &Core<'_>, wait: &impl Wait) {
        // The decision first: an undecided operation is aborted, and then the rest follows it.
        let (last, last_happened) = self.decisions().last(heir);
        let own = self.own.get(heir);
        let happened = last_happened && own.operation.load(Ordering::Acquire) == last.to_bits();
        // SAFETY: the caller's promise. The objects are not freed: the dead core was in its call, which has not ended.
        unsafe {
            self.epochs().unpin_taken_over(heir);
            self.counts().repair_taken_over(heir);
            let moving = own.moving_offset.swap(0, Ordering::AcqRel);
            if moving != 0 {
                DescriptionPtr::from_address(moving).get().repair_taken_over(heir);
            }
            let noted = || {
                let few = own.working_on.iter().map(|place| place.load(Ordering::Acquire));
                few.filter(|bits| *bits != 0).chain(own.noted.nodes()).map(InodeRef::from_bits)
            };
            let guard = self.epochs().pin(heir);
            let [family, child] = [0, 1].map(|place| own.family[place].load(Ordering::Acquire));
            if let Some(family) = NonNull::new(family as usize as *mut Family) {
                let child = Some(ProcessNumber(child)).filter(|child| child.0 != 0);
                family.as_ref().repair_taken_over(&guard, child, wait);
                own.family[0].store(0, Ordering::Release);
            }
            // What the call was setting back first, whose words only the object can tell.
            for node in noted() {
                let Inode { stamps, links, .. } = node.inode();
                self.counts().repair_object_taken_over(heir, links);
                stamps.repair_taken_over(heir, stamps.applied());
                if node.kind() == Kind::Regular {
                    node.file().end_cut_taken_over(&guard);
                }
            }
            self.stamps().repair_taken_over(heir);
            self.sizes().repair_taken_over(heir);
            for node in noted() {
                node.inode().header.repair_taken_over(heir, happened);
                match node.kind() {
                    Kind::Directory => {}
                    Kind::Symlink => continue,
                    Kind::Regular => {
                        node.file().repair_taken_over(Access { fs: self, guard: &guard, wait });
                        continue;
                    }
                    Kind::Pipe => {
                        node.pipe().repair_taken_over(heir);
                        continue;
                    }
                }
                let Directory { inode, names, place } = node.directory();
                let removed = inode.header.is_named() && self.counts().exact(&inode.links, wait) == 0;
                names.repair_taken_over(self.epochs(), &guard, (last, last_happened), removed);
                if place.moving.holder() == Some(heir.index()) {
                    if happened {
                        self.end_move(heir, node, place.announced());
                    } else {
                        place.withdraw();
                    }
                    place.moving.release_taken_over(heir);
                }
            }
        }
        own.noted.forget(heir);
        self.working_ended(heir);
    }

    pub(crate) fn space(&self) -> Space {
        let (blocks, free_blocks) = (self.pages().total(), self.pages().free_pages());
        Space {
            block_bytes: PAGE_BYTES as u64,
            blocks,
            free_blocks,
            inodes: self.inodes.total(),
            free_inodes: self.inodes.left(),
        }
    }

    /// Maintains this core and, in turn, all cores that nobody claims at the moment.
    pub fn maintain_with_idle_cores(&self, core: &Core<'_>, wait: &impl Wait) {
        self.maintain(core, wait);
        core.arena().for_each_idle_core(|idle| self.maintain(idle, wait));
    }
}

/// The size class of a symbolic link with a target of so many bytes, at most 4,095.
fn symlink_class(target_bytes: usize) -> SizeClass {
    let target = Layout::array::<u8>(target_bytes).expect("targets are short");
    let (layout, _) = Layout::new::<Symlink>().extend(target).expect("targets are short");
    SizeClass::of(layout).expect("targets are short")
}
