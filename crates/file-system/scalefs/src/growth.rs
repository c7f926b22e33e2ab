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
            unsafe { self.counts().change(core, &directory.inode().references.counted, 1) };
            place.set(directory.to_bits());
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    extern crate std;

    use std::format;

    use percpu::testing::World;
    use posix_calls::{Credentials, Start, names};
    use sync::Spin;

    use crate::{Context, ScaleFs, ScaleFsConfig};

    /// Regression test: mutants showed that nothing but time told whether a directory grows at all.
    #[test]
    fn a_crowded_directory_is_remembered_and_grows() {
        let world = World::new(1);
        let core = world.core(0);
        let config = ScaleFsConfig { root_bucket_count: 2, ..ScaleFsConfig::default() };
        let fs = ScaleFs::create(&core, config).unwrap();
        let context = Context::new(fs, &core, Credentials::SUPERUSER);
        let wants_growth = || fs.root_node().directory().names.wants_growth();
        for number in 0..1000 {
            let path = format!("n{number}");
            names::symlink(&fs.begin(&core, &context, &Spin), b"target", Start::WorkingDirectory, path.as_bytes())
                .unwrap();
        }
        assert!(wants_growth());
        for _ in 0..1000 {
            fs.maintain(&core, &Spin);
        }
        assert!(!wants_growth());
    }
}
