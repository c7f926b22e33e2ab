//! A directory gets another parent.
#![allow(unsafe_code)]

use percpu::Core;
use sync::atomic::Ordering;

use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;

impl ScaleFs {
    /// Ends an announced move that has happened, with `moving` still held; also one that a dead process had begun to end.
    /// References in this order, so that a death in between leaves one too many rather than one too few.
    pub(crate) fn end_move(&self, core: &Core<'_>, moved: InodeRef, parent: InodeRef) {
        let place = &moved.directory().place;
        let old = InodeRef::from_bits(place.parent.load(Ordering::Acquire));
        if old != parent {
            // SAFETY: the caller has found the parent in this call; the directory holds a reference to its old one.
            unsafe {
                self.counts().change(core, &parent.inode().references.counted, 1);
                place.parent.store(parent.to_bits(), Ordering::Release);
                self.counts().change(core, &old.inode().references.counted, -1);
            }
        }
        place.end();
    }
}
