//! An arena for one execution of a loom model. Only built under `cfg(loom)`.

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};

/// An arena that lives until the last clone is dropped; loom's threads want `'static` references.
#[derive(Clone)]
pub struct ModelArena(Arc<Inner>);

struct Inner {
    arena: &'static Arena,
    region: *mut HeapRegion,
}

// SAFETY: the pointer is used by `drop` alone.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl ModelArena {
    /// An arena of `size_bytes` with chunks of 4 KiB.
    pub fn new(core_count: usize, size_bytes: usize) -> ModelArena {
        let region = Box::into_raw(Box::new(HeapRegion::new(size_bytes).expect("memory for a model")));
        let config = ArenaConfig { core_count, chunk_bytes: 4096 };
        // SAFETY: freed in `drop`, when the model's threads have been joined and dropped their clones.
        let arena = Arena::create(unsafe { &mut *region }, config).expect("a model's arena");
        ModelArena(Arc::new(Inner { arena, region }))
    }

    /// The arena.
    pub fn arena(&self) -> &'static Arena {
        self.0.arena
    }

    /// Becomes a core.
    pub fn core(&self, number: usize) -> Core<'static> {
        let owner = OwnerId::new(1).expect("not zero");
        self.0.arena.claim(number, owner).expect("a free core")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `new`; no core is left.
        drop(unsafe { Box::from_raw(self.region) });
    }
}
