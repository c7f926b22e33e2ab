//! What cores do between their calls.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use address_space::{KIND_MAPPING, KIND_SHARED_PAGE, Mapping, SharedPage};
use hashdir::ENTRY_CLASS;
use percpu::{ArenaObject, Core};
use refcache::Counted;
use sockets::KIND_ENDPOINT;
use sync::Wait;

use crate::attribute_block;
use crate::description::{Description, DescriptionPtr, KIND_DESCRIPTION};
use crate::family::{Family, KIND_FAMILY};
use crate::file::File;
use crate::inode::{Inode, KIND_LINKS, KIND_REFERENCES};
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;

/// Buckets that one maintenance moves when a directory grows: about 10 microseconds.
const GROWTH_BUDGET_BUCKETS: usize = 64;

/// What maintenance did for whoever looks for space.
#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "leases look for space"))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Maintained {
    /// Objects that were freed.
    pub(crate) freed: usize,
    /// Whether more may become free soon: something waits for other cores, or another core was in a call.
    pub(crate) is_pending: bool,
}

impl ScaleFs {
    /// What the core does between its calls, now and then: fills its magazines, frees what nobody can reach, applies
    /// counts, and moves some buckets of directories that grow.
    pub fn maintain(&self, core: &Core<'_>, wait: &impl Wait) {
        self.maintain_core(core, wait);
    }

    pub(crate) fn maintain_core(&self, core: &Core<'_>, wait: &impl Wait) -> Maintained {
        #[cfg(feature = "planted-causes")]
        crate::planted_causes::maintain(core.index().get());
        for class in [File::CLASS, ENTRY_CLASS, Description::CLASS, Mapping::CLASS, radix::LEAF_CLASS] {
            core.will_allocate(class);
        }
        self.sockets.refill(core);
        core.arena().maintain(core);
        self.inodes.maintain(core);
        self.pages().maintain(core);
        let round = || self.counts().round_of_lists(core);
        self.stamps().narrow(core, round);
        self.directory_stamps().narrow(core, round);
        self.sizes().narrow(core, round);
        // Before counts: an object whose count is found to be zero is not in these caches.
        // What was raised since the last maintenance stays: all cores may write one file, or make names in one directory.
        self.stamps().flush_unchanged(core, wait);
        self.directory_stamps().flush_unchanged(core, wait);
        // SAFETY: sizes are those of files, and what a core has raised is not freed before it has flushed.
        self.sizes().flush_each(core, wait, |size| unsafe { File::note_known(size) });
        self.epochs().seal(core);
        self.counts().flush(core);
        // One after the other, in one line.
        let of_epochs = self.epochs().report(core);
        // SAFETY: flushed just now. The core is in no call, or `seal` would have panicked: calls are pinned. Of its own,
        // maintenance holds nothing here.
        let of_counts = unsafe { self.counts().report(core) };
        let free_retired = |core: &Core<'_>, kind, object| {
            // SAFETY: called once per object, by the maintenance of the instance's one `Epochs`. Who retires there is asked in
            // turn: directories, arrays, the instance's one pool, and extended attributes.
            let is_ours = unsafe {
                hashdir::free_retired(core, kind, object)
                    || radix::free_retired(core, kind, object)
                    || self.pages().free_retired(core, kind, object)
                    || attribute_block::free_retired(core, kind, object)
            };
            debug_assert!(is_ours);
        };
        // SAFETY: this core's report of just now, behind which it has sealed nothing.
        let retired = unsafe { self.epochs().free_old(core, of_epochs, free_retired) };
        let free = |core: &Core<'_>, counted: NonNull<Counted>| {
            // SAFETY: dead objects are given to us once. Kinds say in which field of which type the count is; they are the
            // numbers with which this crate, `address-space` and `sockets` make counts, all different. What a dead object held a
            // reference to is alive until that is given up here.
            unsafe {
                match counted.as_ref().kind() {
                    KIND_LINKS => {
                        let inode = Inode::of_links(counted);
                        self.counts().change(core, &inode.as_ref().references.counted, -1);
                    }
                    KIND_REFERENCES => {
                        let inode = Inode::of_references(counted);
                        self.unmake(core, InodeRef::new(inode, inode.as_ref().header.kind()));
                    }
                    KIND_DESCRIPTION => {
                        let description = DescriptionPtr::of_references(counted);
                        let node = description.get().opened.node;
                        self.counts().change(core, &node.inode().references.counted, -1);
                        description.free(core);
                    }
                    KIND_SHARED_PAGE => SharedPage::free_counted(core, self.pages(), counted),
                    KIND_MAPPING => {
                        let mapping = Mapping::of_count(counted);
                        let node = InodeRef::from_bits(mapping.as_ref().file().0);
                        self.counts().change(core, &node.inode().references.counted, -1);
                        core.free_object(mapping);
                    }
                    KIND_ENDPOINT => self.sockets.free(core, counted),
                    KIND_FAMILY => Family::free(Family::of_references(counted), core),
                    other => debug_assert!(false, "{other:?} is no kind of ours"),
                }
            }
        };
        // SAFETY: as above; what is freed there is counted by nobody.
        let counted = unsafe { self.counts().review(core, of_counts, free) };
        self.grow_directories(core, wait);
        Maintained { freed: retired.freed + counted.freed, is_pending: retired.pending || counted.pending }
    }

    /// Maintains this core and, in turn, all cores that nobody claims at the moment, unless another thread does that. Who dies
    /// meanwhile leaves the core that it was at to its heir.
    pub fn maintain_with_idle_cores(&self, core: &Core<'_>, wait: &impl Wait) {
        self.maintain(core, wait);
        core.arena().for_each_idle_core(core.actor(), |idle| self.maintain(idle, wait));
    }

    /// As [`ScaleFs::maintain_with_idle_cores`]; tells what came of it.
    #[cfg(feature = "std")]
    pub(crate) fn maintain_for_space(&self, core: &Core<'_>, wait: &impl Wait) -> Maintained {
        let mut all = self.maintain_core(core, wait);
        let arena = core.arena();
        let serves = arena.for_each_idle_core(core.actor(), |idle| {
            let Maintained { freed, is_pending } = self.maintain_core(idle, wait);
            all = Maintained { freed: all.freed + freed, is_pending: all.is_pending || is_pending };
        });
        let is_another = |index| index != core.index() && arena.is_claimed(index);
        let another_calls = || arena.cores().take(arena.core_limit_seen()).any(is_another);
        all.is_pending = all.is_pending || !serves || another_calls();
        all
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
                unsafe { self.counts().change(core, &directory.inode().references.counted, -1) };
            }
        }
    }
}
