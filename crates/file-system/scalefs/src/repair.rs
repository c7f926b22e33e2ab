//! What a call left whose process died in it is completed or undone.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use percpu::Core;
use posix_calls::Kind;
use sync::Wait;
use sync::atomic::Ordering;
use sync::mutant::planted;

use crate::annex::Annex;
use crate::description::DescriptionPtr;
use crate::directory::Directory;
use crate::family::Family;
use crate::file::Access;
use crate::hand::Left;
use crate::inode::Inode;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;

impl ScaleFs {
    /// Completes or undoes the call in whose middle a process died, and frees its locks. References that the process
    /// held stay; [`ScaleFs::end_processes_of`] closes what its processes had open.
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
                few.filter(|bits| *bits != 0)
                    .chain(own.noted.nodes())
                    .chain(own.locked_pipes.nodes())
                    .map(InodeRef::from_bits)
            };
            let guard = self.epochs().pin(heir);
            self.processes.unlock_taken_over(&guard);
            if let Some(family) = NonNull::new(own.family.load(Ordering::Acquire) as usize as *mut Family) {
                family.as_ref().repair_taken_over(&guard);
                own.family.store(0, Ordering::Release);
            }
            if !planted("scalefs: an heir forgets the sockets") {
                self.sockets.repair_call_taken_over(&guard);
            }
            // What the call was setting back first, whose words only the object can tell.
            for node in noted() {
                let Inode { stamps, links, .. } = node.inode();
                self.counts().repair_object_taken_over(heir, links);
                stamps.repair_taken_over(heir, stamps.applied());
                if node.kind() == Kind::Regular {
                    node.file().end_cut_taken_over(&guard, happened);
                }
            }
            self.stamps().repair_taken_over(heir);
            self.directory_stamps().repair_taken_over(heir);
            self.sizes().repair_taken_over(heir);
            for node in noted() {
                node.inode().header.repair_taken_over(heir, happened);
                if let Some(annex) = Annex::of(node.inode())
                    && !planted("scalefs: an heir forgets the lock of attributes")
                {
                    annex.extended.repair_taken_over(heir);
                }
                match node.kind() {
                    Kind::Directory => {}
                    Kind::Symlink
                    | Kind::Socket
                    | Kind::NamedPipe
                    | Kind::NamedSocket
                    | Kind::CharacterDevice
                    | Kind::BlockDevice => continue,
                    Kind::Regular => {
                        node.file().repair_taken_over(Access { fs: self, guard: &guard, wait }, happened);
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
        // Before the hand is emptied, which may give locks up.
        // SAFETY: the caller's promise.
        unsafe { self.repair_locks_taken_over(heir, wait) };
        self.empty_hand_taken_over(heir, wait);
        own.noted.forget(heir);
        own.locked_pipes.forget(heir);
        self.working_ended(heir);
    }

    /// Closes what a dead core had in its hand.
    fn empty_hand_taken_over(&self, heir: &Core<'_>, wait: &impl Wait) {
        match self.hand(heir).left() {
            _ if planted("scalefs: what a core has in its hand dies with it") => self.hand(heir).empty(),
            Left::Nothing => {}
            Left::Counted(address) => DescriptionPtr::from_address(address).release(self, heir, wait),
            Left::Closing(address) => {
                let description = DescriptionPtr::from_address(address);
                description.end_closed(self, heir, wait);
                description.release_reference(self, heir, wait);
            }
        }
    }
}
