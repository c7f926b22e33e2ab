//! Directories that want to grow are remembered for maintenance.
#![allow(unsafe_code)]

use percpu::Core;

use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;

impl ScaleFs {
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
}
