//! An arena for one execution of a loom model. Only built under `cfg(loom)`.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};

std::thread_local! {
    /// Regions that no execution uses, by size. Each execution of a model gets the one of the execution before: structures
    /// hash addresses, and loom wants all executions to do the same until they are told otherwise.
    static REGIONS: RefCell<Vec<(usize, *mut HeapRegion)>> = const { RefCell::new(Vec::new()) };
}

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
        let region = REGIONS.with(|regions| {
            let mut regions = regions.borrow_mut();
            match regions.iter().position(|(bytes, _)| *bytes == size_bytes) {
                Some(index) => regions.swap_remove(index).1,
                None => Box::into_raw(Box::new(HeapRegion::new(size_bytes).expect("memory for a model"))),
            }
        });
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
        // Memory that was an arena, and no core is left: it can be one again.
        REGIONS.with(|regions| regions.borrow_mut().push((self.arena.size_bytes(), self.region)));
    }
}
