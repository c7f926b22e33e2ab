//! An arena for one execution of a model. Only built under `cfg(loom)` and `cfg(shuttle)`.

use alloc::sync::Arc;
use core::ptr::NonNull;

use crate::{Arena, ArenaConfig, Core, OwnerId, fixed};

/// An arena that lives until the last clone is dropped; a model's threads want `'static` references.
#[derive(Clone)]
pub struct ModelArena(Arc<Inner>);

struct Inner {
    arena: &'static Arena,
    region: NonNull<u8>,
}

// SAFETY: the pointer is used by `drop` alone.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl ModelArena {
    /// An arena of `size_bytes` with chunks of 4 KiB.
    pub fn new(core_count: usize, size_bytes: usize) -> ModelArena {
        let region = fixed::take(size_bytes);
        let config = ArenaConfig { core_count, chunk_bytes: 4096 };
        // SAFETY: mapped for as long as the process lives, and used for another arena after `drop` alone. Then the model's
        // threads have been joined and dropped their clones; models let no reference live on, which nothing checks.
        let arena = unsafe { Arena::create_at(region, size_bytes, config) }.expect("a model's arena");
        ModelArena(Arc::new(Inner { arena, region }))
    }

    /// The arena. Not to be used once the last clone was dropped: the next model gets its memory.
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
        // Memory that was an arena, and no core is left: it can be one again.
        fixed::give_back(self.arena.size_bytes(), self.region);
    }
}
